//! Which engine may execute what, where its operands may live and of which types they are: rules of the hardware, from the table of
//! opcodes and the public documentation.

use super::formats::{Instruction, Kind};
use super::{ElementCode, Generation, OnChip, Opcode, Operand, Operands, Slot, Space};
use crate::graph::{Architecture, Engine};
use chipless_model::{Direction, Kind as Number, Rule};
use smallvec::SmallVec;

chipless_model::rules! {
    ENGINE Fault Error Hardware "neff-engine" "an engine does not execute this instruction"
        "Each instruction belongs to some of the engines: products to the tensor engine, activations to the scalar engine, and so on."
        "Move the instruction to an engine that has it (docs/neuron-opcodes.md)."
        "NKI instruction set documentation; quoted instruction headers";
    GENERATION Fault Error Hardware "neff-generation" "the hardware does not have this instruction"
        "Opcodes come and go with the generations of NeuronCores; the kelf file names the one that the program is for."
        "Compile for the hardware that has it, or without it."
        "quoted instruction headers";
    OPERAND_MEMORY Fault Error Hardware "neff-operand-memory" "an operand lies in a memory that the instruction does not reach"
        "The matrix engine takes weights and moving data from the state buffer and gives sums to PSUM; GpSimd never reaches PSUM; of two sources one at most lies in PSUM."
        "Copy the operand to the other memory first."
        "NKI instruction set documentation; NKI architecture guides";
    OPERAND_TYPE Fault Error Hardware "neff-operand-type" "an operand has a type that the instruction does not take"
        "COPY keeps the type, bitwise instructions and predicates take integers, indices are uint16 or uint32."
        "Use CAST, or another type."
        "NKI instruction set documentation; quoted instruction headers";
    OPERATION Fault Error Hardware "neff-operation" "an instruction does not have this operation"
        "RECIPROCAL has no operation of its own; the second operation of TENSOR_SCALAR needs a first."
        "Correct the operation."
        "quoted instruction headers";
    SHAPE Fault Error Hardware "neff-instruction-shape" "an instruction does not take this many elements or partitions"
        "MAX8 and FIND_INDEX8 take 8 to 16384 elements, STREAM_TRANSPOSE a multiple of 32 partitions; the count of a MEMSET is that of its destination."
        "Split the instruction, or correct the count."
        "NKI instruction set documentation; compiled programs (count of MEMSET)";
    FUNCTION Unsupported Error Chipless "neff-activation-function" "an instruction names a function or a set of functions that is not loaded"
        "Byte 0x23 of ACTIVATE is the func_id of a function of the sets that the engine file names; PSEUDO_LOAD_ACT_FUNC_SET names one of them."
        "Name the set that has the function in activation_function_sets."
        "function tables of compiled programs";
}

/// What is wrong with an instruction on its engine.
pub(super) type Wrong = (&'static Rule, String);

/// Checks a slot of an engine. `functions` are those of the loaded sets, where they can be told.
pub(crate) fn check(
    slot: &Slot,
    engine: Engine,
    architecture: Architecture,
    functions: Option<&[bool; 256]>,
    operands: &[Operand],
) -> SmallVec<[Wrong; 1]> {
    let mut wrong = SmallVec::new();
    let Some(opcode) = slot.opcode() else {
        return wrong;
    };
    let name = opcode.name;
    if !opcode.engines.has(engine) {
        let message = format!("{name} on {engine}; {} can", opcode.engines.names());
        wrong.push((&ENGINE, message));
    }
    let generation = match architecture {
        Architecture::Trn1 => Some(Generation::V2),
        Architecture::Trn2 => Some(Generation::V3),
        Architecture::Trn3 => Some(Generation::V4),
        _ => None,
    };
    let (first, last) = opcode.generations;
    if let Some(generation) = generation.filter(|g| !(first..=last).contains(g)) {
        let message = format!(
            "{name} exists from {} to {}, the program is for {}",
            first.name(),
            last.name(),
            generation.name()
        );
        wrong.push((&GENERATION, message));
    }
    wrong.extend(
        memories(opcode, engine, operands).map(|what| (&OPERAND_MEMORY, format!("{name}: {what}"))),
    );
    wrong.extend(
        types(slot, opcode, operands).map(|what| (&OPERAND_TYPE, format!("{name}: {what}"))),
    );
    wrong.extend(shapes(slot, operands).map(|what| (&SHAPE, format!("{name}: {what}"))));
    match slot.decode() {
        Instruction::Reduce(i) if opcode.byte == RECIPROCAL && i.op() != 0 => {
            wrong.push((&OPERATION, format!("{name} with operation {:#04x}", i.op())));
        }
        Instruction::TensorScalar(i) if i.op0() == 0 && i.op1() != 0 => {
            let message = format!("{name}: the first operation is bypass, the second is not");
            wrong.push((&OPERATION, message));
        }
        Instruction::Activate(i) => {
            let is_unknown = |functions: &[bool; 256]| !functions[usize::from(i.function())];
            if functions.is_some_and(is_unknown) {
                let message = format!(
                    "{name} of function {}, which no loaded set has",
                    i.function()
                );
                wrong.push((&FUNCTION, message));
            }
        }
        _ => {}
    }
    wrong
}

const RECIPROCAL: u8 = 0x48;
const COPY: u8 = 0x46;
const MEMSET: u8 = 0x49;
const MAX8: u8 = 0x6c;
const FIND_INDEX8: u8 = 0x6e;
const STREAM_TRANSPOSE: u8 = 0x6b;
const COPY_PREDICATED: u8 = 0x72;
const CAST_PREDICATED: u8 = 0x99;

/// The operand that lies in the wrong memory.
fn memories(opcode: &Opcode, engine: Engine, operands: &[Operand]) -> Option<String> {
    let lies_in = |operand: &&Operand, space: Space| {
        operand.elements() > 0 && OnChip::at(operand.address).is_some_and(|at| at.space == space)
    };
    let in_psum = |operand: &&Operand| lies_in(operand, Space::Psum);
    if engine == Engine::Pool
        && let Some(operand) = operands.iter().find(in_psum)
    {
        return Some(format!(
            "{} is in PSUM, which GpSimd does not reach",
            operand.role
        ));
    }
    match opcode.operands {
        Operands::Any => None,
        Operands::StateBuffer => {
            let operand = operands.iter().find(in_psum)?;
            Some(format!(
                "{} is in PSUM, not in the state buffer",
                operand.role
            ))
        }
        Operands::OneInPsum => {
            let reads = |operand: &&Operand| operand.direction == Direction::Read;
            let both = operands.iter().filter(reads).filter(in_psum).count() > 1;
            both.then(|| "both sources are in PSUM".to_owned())
        }
        Operands::Matrix => operands.iter().find_map(|operand| match operand.direction {
            Direction::Read if in_psum(&operand) => Some(format!(
                "{} is in PSUM, not in the state buffer",
                operand.role
            )),
            Direction::Write if lies_in(&operand, Space::StateBuffer) => Some(format!(
                "{} is in the state buffer, not in PSUM",
                operand.role
            )),
            _ => None,
        }),
    }
}

/// The operand of the wrong type.
fn types(slot: &Slot, opcode: &Opcode, operands: &[Operand]) -> Option<String> {
    let name = |operand: &Operand| ElementCode::of(operand.code).map_or("unknown", |c| c.name);
    let is_float = |operand: &&Operand| {
        ElementCode::of(operand.code).is_some_and(|c| c.element.kind() == Number::Float)
    };
    match (opcode.byte, operands) {
        (COPY, [to, from]) if to.code != from.code => {
            Some(format!("{} becomes {}", name(from), name(to)))
        }
        (COPY_PREDICATED | CAST_PREDICATED, [_, predicate, _]) if is_float(&predicate) => Some(
            format!("the predicate is {}, expected an integer", name(predicate)),
        ),
        (FIND_INDEX8, [to, _]) => {
            let is_index = matches!(name(to), "uint16" | "uint32");
            (!is_index).then(|| format!("indices are {}, expected uint16 or uint32", name(to)))
        }
        _ if opcode.name.ends_with("_BITVEC") && has_operation(slot) => {
            let operand = operands.iter().find(is_float)?;
            Some(format!(
                "{} is {}, expected an integer",
                operand.role,
                name(operand)
            ))
        }
        _ => None,
    }
}

/// Whether a field of the format is an operation: only then types can be judged.
fn has_operation(slot: &Slot) -> bool {
    let fields = slot.format().fields;
    fields.iter().any(|field| matches!(field.kind, Kind::Alu))
}

/// What of the numbers of elements and partitions is wrong.
fn shapes(slot: &Slot, operands: &[Operand]) -> Option<String> {
    match (slot.head.opcode, operands) {
        (MAX8 | FIND_INDEX8, [_, from]) if !(8..=16384).contains(&from.elements()) => {
            Some(format!(
                "{} elements of each partition, possible are 8 to 16384",
                from.elements()
            ))
        }
        (STREAM_TRANSPOSE, [_, from]) if !from.partitions.is_multiple_of(32) => Some(format!(
            "{} partitions, expected a multiple of 32",
            from.partitions
        )),
        (MEMSET, [to]) => {
            let Instruction::Memset(i) = slot.decode() else {
                return None;
            };
            (u64::from(i.elements()) != to.elements()).then(|| {
                format!(
                    "counts {} elements, dst has {}",
                    i.elements(),
                    to.elements()
                )
            })
        }
        _ => None,
    }
}
