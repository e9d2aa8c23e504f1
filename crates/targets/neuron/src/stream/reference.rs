//! docs/neuron-opcodes.md, made from the tables that decode.

use super::formats::{Code, FORMATS, Kind, ONE_PARTITION};
use super::operators;
use super::{ALU_OPERATIONS, ELEMENT_CODES, Generation, OPCODES, Operands};
use chipless_model::Direction;
use std::fmt::Write;

const HEAD: &str = "\
# Neuron: opcodes

An engine of a NeuronCore executes a stream of 64-byte slots. This page says what Chipless knows of them, and from where. It is made from the tables that decode:
`cargo run -p chipless-neuron --example opcodes > docs/neuron-opcodes.md`.

*executed*: a functional run does what the instruction does. *no effect on memory*: its waits and signals count, nothing else. *listed*: `chipless list` shows the
name and the bytes of the operands; a functional run that reaches one stops there, `--timing-only` goes on.

Evidence, from strong to weak. *proven*: compiled programs for Trainium 2 that have it give the right numbers when it is executed as Chipless does it. *documented*: the
vendor's documentation or code says so. *quoted*: a public third-party text repeats the vendor's instruction headers field by field. *assumed*: chosen so that work can go on,
or inferred; it may be wrong. Nothing here was run on Neuron hardware.

A byte of an executed instruction that no field covers must be 0, and so must a field that is marked *refused*: otherwise the instruction is refused by name, with the byte.

## The head of every slot

| bytes | what |
|---|---|
| `00` | opcode |
| `01` | length in words: `10` |
| `02`, `03` | for the profiler |
| `04`, `05` | wait: mode (0 none, 1 equal, 4 greater, 5 at least; with the high bit the value is in a register) and semaphore |
| `06`, `07` | signal: mode (high digit 0 at read, 1 at completion, 8 and 9 with a register; low digit 3 +1, 4 -1, 5 + value, 6 - value) and semaphore |
| `08`..`0b` | value of the wait, and of signals that take one |
";

const ADDRESSES: &str = "
## Addresses of transfers and of elements in registers

Eight bytes, of which the last says what the others mean. What is not named is refused.

| last byte | text | bytes 0..3 | bytes 4..6 | evidence |
|---|---|---|---|---|
| `10` | `var[3]+0x40` | offset | number of the variable | proven |
| `20` | `table[2]+0x40` | offset | place in the table of variables | proven |
| `28` | `table[2]+register[5]` | register with the offset, in bytes | place in the table of variables | assumed |
| `80` | `registers[4,5]` | registers with the low and the high half of an address of the device | 0 | assumed |
| `00` | `address+0x4000` | address of the device; executed for elements on the chip alone | its high half | assumed |

The bound of an offset in a register is another register: its number in the lowest six bits, `80` where it counts, `40` where nobody is told.
";

/// The page.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Opcodes\n\n| byte | name | format | engines | operands in | generations | Chipless | evidence | remark |\n|---|---|---|---|---|---|---|---|---|\n");
    for opcode in OPCODES {
        let format = match opcode.format().name {
            "Raw" => "–".to_owned(),
            name => format!("[{name}](#{})", name.to_lowercase()),
        };
        let remark = if opcode.remark.is_empty() {
            "–"
        } else {
            opcode.remark
        };
        writeln!(
            page,
            "| `{:02x}` | `{}` | {format} | {} | {} | {} | {} | {} | {remark} |",
            opcode.byte,
            opcode.name,
            opcode.engines.names(),
            places(opcode.operands),
            generations(opcode.generations),
            opcode.support.name(),
            opcode.evidence.name(),
        )
        .expect("a string takes everything that is written to it");
    }
    page.push_str("\nEngines: pe tensor, act scalar, dve vector, pool GpSimd, sp sync. GpSimd never reaches PSUM.\n");
    operators::section(&mut page);
    page.push_str("\n## Formats\n\nBytes are hexadecimal. A tensor is an address, steps and numbers of elements, innermost first. Elements in groups with scales are, \
        byte by byte: address (4), address of the scales (4), elements (2), step (1), first partition of the scales in their quadrant (1); in the text form\n\
        `fp8e4@[address,scales,partition][step][elements]`.\n");
    for format in FORMATS.iter().filter(|format| format.name != "Raw") {
        let users = OPCODES.iter().filter(|o| o.format().name == format.name);
        let users: Vec<String> = users.map(|o| format!("`{}`", o.name)).collect();
        let of = users.join(", ");
        if format.fields.is_empty() {
            write!(page, "\n### {}\n\nNo operands: {of}.\n", format.name)
                .expect("a string takes everything that is written to it");
            continue;
        }
        write!(
            page,
            "\n### {}\n\nOf {of}.\n\n| bytes | field | what | evidence |\n|---|---|---|---|\n",
            format.name
        )
        .expect("a string takes everything that is written to it");
        for field in format.fields {
            let bytes = match (field.kind.size(), field.kind) {
                (0, Kind::Element(code)) => place(code),
                (1, _) => format!("`{:02x}`", field.at),
                (size, _) => format!("`{:02x}`..`{:02x}`", field.at, field.at + size - 1),
            };
            let refused = if field.refused { ", refused" } else { "" };
            writeln!(
                page,
                "| {bytes} | `{}` | {} | {}{refused} |",
                field.name,
                what(field.kind),
                field.evidence.name(),
            )
            .expect("a string takes everything that is written to it");
        }
    }
    page.push_str(ADDRESSES);
    page.push_str("\n## Element types\n\n| code | name | type | evidence |\n|---|---|---|---|\n");
    for code in ELEMENT_CODES {
        writeln!(
            page,
            "| `{:x}` | `{}` | {} | {} |",
            code.code,
            code.name,
            code.element,
            code.evidence.name()
        )
        .expect("a string takes everything that is written to it");
    }
    page.push_str(
        "\n## Operations of the arithmetic units\n\n| code | name | evidence |\n|---|---|---|\n",
    );
    for operation in ALU_OPERATIONS {
        writeln!(
            page,
            "| `{:02x}` | `{}` | {} |",
            operation.code,
            operation.name,
            operation.evidence.name()
        )
        .expect("a string takes everything that is written to it");
    }
    page
}

const fn places(operands: Operands) -> &'static str {
    match operands {
        Operands::Any => "any",
        Operands::StateBuffer => "state buffer",
        Operands::OneInPsum => "any, one source at most in PSUM",
        Operands::Matrix => "sources state buffer, sums PSUM",
    }
}

fn generations((first, last): (Generation, Generation)) -> String {
    match (first, last) {
        (Generation::V2, Generation::V5) => "all".to_owned(),
        (first, Generation::V5) => format!("from {}", first.name()),
        (Generation::V2, last) => format!("up to {}", last.name()),
        (first, last) => format!("{} to {}", first.name(), last.name()),
    }
}

fn place(code: Code) -> String {
    match code {
        Code::At(at) => format!("`{at:02x}`"),
        Code::Low(at) => format!("`{at:02x}` low digit"),
        Code::High(at) => format!("`{at:02x}` high digit"),
        Code::Sums => "float32, transposed the type of the source".to_owned(),
    }
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "written",
    }
}

fn what(kind: Kind) -> String {
    match kind {
        Kind::Tensor {
            dimensions,
            direction,
            element,
            partitions,
        } => format!(
            "tensor of {dimensions} dimensions, {}; type {}, {}",
            verb(direction),
            place(element),
            match partitions {
                ONE_PARTITION => "one partition".to_owned(),
                at => format!("partitions `{at:02x}`"),
            }
        ),
        Kind::Microscaled {
            direction,
            element,
            partitions,
        } => format!(
            "elements in groups with scales, {}; type {}, partitions `{partitions:02x}`",
            verb(direction),
            place(element)
        ),
        Kind::Generator => "base, four steps, four numbers".to_owned(),
        Kind::Element(_) => "element type".to_owned(),
        Kind::Alu => "operation".to_owned(),
        Kind::Byte => "number".to_owned(),
        Kind::Flags([]) | Kind::Bits => "bits".to_owned(),
        Kind::Flags(names) => format!("bits from the lowest: {}", names.join(", ")),
        Kind::Choice(names) => format!("from 0: {}", names.join(", ")),
        Kind::Word => "unsigned number".to_owned(),
        Kind::Signed => "signed number".to_owned(),
        Kind::Value => "binary32, or an address".to_owned(),
        Kind::Array(size) => format!("{size} bytes"),
        Kind::Name => "name, zeros behind".to_owned(),
        Kind::Side(element) => format!(
            "offset, variable or table entry, two steps in bytes, two numbers of rows, bytes of a row; type {}",
            place(element)
        ),
        Kind::Scalars(element) => format!(
            "two numbers of elements, address, two steps in elements; type {}",
            place(element)
        ),
        Kind::SymbolicScalars(element) => format!(
            "two numbers of elements, variable, offset, two steps in elements; type {}",
            place(element)
        ),
        Kind::Events => "a second wait and signal, as `04`..`0b`".to_owned(),
        Kind::Completion => "semaphore that rises at completion, and by how much".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Support;
    use super::*;

    #[test]
    fn the_documentation_is_up_to_date() {
        let page = include_str!("../../../../../docs/neuron-opcodes.md");
        let advice = "cargo run -p chipless-neuron --example opcodes > docs/neuron-opcodes.md";
        assert!(
            page == reference(),
            "docs/neuron-opcodes.md is stale: {advice}"
        );
    }

    #[test]
    fn every_executed_opcode_has_a_format() {
        for opcode in OPCODES {
            let is_done = opcode.support == Support::Executed;
            assert!(!is_done || opcode.format().name != "Raw", "{}", opcode.name);
        }
    }
}
