//! What is known of each opcode, and on which evidence.

/// An opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// Byte 0 of the slot.
    pub byte: u8,
    /// Its name.
    pub name: &'static str,
    /// First generation of the hardware that has it, where that is known.
    pub since: Option<&'static str>,
    /// What Chipless does with it.
    pub support: Support,
    /// Where the name and the meaning come from.
    pub evidence: Evidence,
    /// What its operands are known to be.
    pub known: &'static str,
}

/// What Chipless does with an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Executes it.
    Executed,
    /// Knows that it has no effect on memory: waits and signals count, nothing else.
    NoEffect,
    /// Lists it; a functional run that reaches one stops there.
    Listed,
}

/// Where knowledge of an opcode comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Compiled programs that have it give the right numbers when it is executed as described here.
    Execution,
    /// The vendor's documentation names it.
    Documentation,
    /// Third parties name it; nobody confirmed it.
    ThirdParty,
}

impl Support {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Support::Executed => "executed",
            Support::NoEffect => "no effect on memory",
            Support::Listed => "listed",
        }
    }
}

impl Evidence {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::Execution => "execution of real programs",
            Evidence::Documentation => "the vendor's documentation",
            Evidence::ThirdParty => "third parties",
        }
    }
}

macro_rules! opcodes {
    ($($byte:literal $name:literal $support:ident $evidence:ident $since:expr, $known:literal;)*) => {
        /// Every opcode with a name, by byte.
        pub static OPCODES: &[Opcode] = &[$(Opcode {
            byte: $byte, name: $name, since: $since, support: Support::$support, evidence: Evidence::$evidence, known: $known,
        },)*];
    };
}

const V3: Option<&str> = Some("NeuronCore-v3");

opcodes! {
    0x01 "LDWEIGHTS" Executed Execution None, "source, element type, rows and columns; columns enter last first";
    0x02 "MATMUL" Executed Execution None, "source, element type, transposition, sums in PSUM that start, go on or end";
    0x21 "ACTIVATE" Listed ThirdParty None, "";
    0x22 "ACT_QUANTIZE" Listed ThirdParty None, "";
    0x23 "ACTIVATION_TABLE_LOAD" NoEffect Execution None, "none: numbers come out right without it as long as no activation follows";
    0x24 "ACT_READ_ACC" Listed ThirdParty None, "";
    0x41 "TENSOR_TENSOR" Executed Execution None, "two sources, destination, element types, operation (4 adds)";
    0x42 "TENSOR_REDUCE" Listed ThirdParty None, "";
    0x43 "TENSOR_SCALAR" Listed ThirdParty None, "";
    0x44 "TENSOR_SCALAR_PTR" Listed ThirdParty None, "";
    0x45 "POOL" Listed ThirdParty None, "";
    0x46 "COPY" Executed Execution None, "source, destination, element types, partitions";
    0x47 "CAST" Executed Execution None, "as COPY, from one type to another";
    0x48 "RECIPROCAL" Listed ThirdParty None, "";
    0x49 "MEMSET" Executed Execution None, "value, element type, partitions, destination";
    0x51 "BITVEC_51" Listed ThirdParty None, "bitwise; which form is not known";
    0x52 "BITVEC_52" Listed ThirdParty None, "bitwise; which form is not known";
    0x53 "BITVEC_53" Listed ThirdParty None, "bitwise; which form is not known";
    0x60 "BN_60" Listed ThirdParty None, "batch normalisation; which step is not known";
    0x61 "BN_61" Listed ThirdParty None, "batch normalisation; which step is not known";
    0x62 "BN_62" Listed ThirdParty None, "batch normalisation; which step is not known";
    0x63 "BN_63" Listed ThirdParty None, "batch normalisation; which step is not known";
    0x64 "BN_64" Listed ThirdParty None, "batch normalisation; which step is not known";
    0x65 "BN_65" Listed ThirdParty None, "batch normalisation; which step is not known";
    0x68 "GATHER" Listed ThirdParty None, "";
    0x6a "STREAM_SHUFFLE" Listed ThirdParty None, "";
    0x6b "STREAM_TRANSPOSE" Listed ThirdParty None, "";
    0x6c "MAX8" Listed ThirdParty None, "";
    0x7c "CROSS_LANE_REDUCE" Listed ThirdParty None, "";
    0x7d "CROSS_LANE_REDUCE_7D" Listed ThirdParty None, "";
    0x7e "IOTA" Listed ThirdParty None, "";
    0xa0 "EVENT_SEMAPHORE" Executed Execution None, "two waits, both of which must hold, and two signals";
    0xa1 "HALT" Listed ThirdParty None, "";
    0xa2 "DRAIN" Listed ThirdParty None, "";
    0xa4 "NOP" Executed Execution None, "waits and signals as EVENT_SEMAPHORE";
    0xa5 "WRITE" Listed ThirdParty None, "";
    0xa6 "NOTIFY" Listed ThirdParty None, "";
    0xa7 "MOVE" Listed ThirdParty None, "";
    0xa8 "ALU_OP" Listed ThirdParty None, "";
    0xa9 "COMPARE_BRANCH" Listed ThirdParty None, "";
    0xaa "TENSOR_LOAD" Listed ThirdParty None, "";
    0xab "TENSOR_STORE" Listed ThirdParty None, "";
    0xb0 "SEM_RANGE_CLEAR" Listed ThirdParty None, "";
    0xb1 "SET_ORDERING_MODE" NoEffect Execution None, "none: numbers come out right without it";
    0xb8 "DMAMEMCPY" Listed ThirdParty None, "";
    0xbb "DMA_INDIRECT" Listed ThirdParty None, "";
    0xbd "DMA_TRANSPOSE" Listed ThirdParty V3, "";
    0xc1 "PSEUDO_DMA_TRIGGER" Listed ThirdParty None, "name of a queue set (text at 0x0c)";
    0xc2 "REARM" Listed ThirdParty None, "";
    0xc3 "DMA_BARRIER" Listed ThirdParty None, "";
    0xc4 "INDIRECT" Listed ThirdParty None, "";
    0xc8 "TRIGGER_COLLECTIVE" Listed ThirdParty None, "";
    0xca "EMBEDDING_UPDATE" Listed ThirdParty None, "";
    0xcc "PSEUDO_BRANCH_LABEL" NoEffect Execution None, "none: marks a place for branches";
    0xcf "SWAP_QUEUE_SET" Listed ThirdParty None, "";
    0xd1 "FUNCTION_BEGIN" Listed ThirdParty None, "";
    0xd2 "FUNCTION_RETURN" Listed ThirdParty None, "";
    0xd3 "FUNCTION_CALL" Listed ThirdParty None, "";
    0xd4 "PSEUDO_DMA_DIRECT2D" Executed Execution V3, "two rows-by-columns sides by variable or table entry, element types, semaphore and increment";
    0xd5 "SYNC_BARRIER" Listed ThirdParty None, "";
    0xd6 "RANGE_CHECK" Listed Documentation None, "";
    0xd8 "CORE_BARRIER" Listed ThirdParty None, "";
    0xd9 "TRIGGER_COLLECTIVE2" Listed ThirdParty None, "";
    0xda "EXTENSION" Listed ThirdParty None, "";
    0xe5 "SCAN" Listed ThirdParty None, "";
    0xea "SELECT_REDUCE" Listed ThirdParty None, "";
    0xf0 "EXTENDED" Listed ThirdParty None, "";
    0xf1 "DMA_GATHER_TRANSPOSE" Listed ThirdParty V3, "";
}

impl Opcode {
    /// The opcode of a byte; `None` where it has no name.
    pub fn of(byte: u8) -> Option<&'static Opcode> {
        OPCODES
            .binary_search_by_key(&byte, |o| o.byte)
            .ok()
            .map(|index| &OPCODES[index])
    }

    /// Its name, or `Operation(238)` as the vendor's tools write a byte without one.
    pub fn name_of(byte: u8) -> String {
        Opcode::of(byte).map_or_else(|| format!("Operation({byte})"), |o| o.name.to_owned())
    }

    /// Whether it decides which descriptors of the engine JSON files move, or when: in a stream that has one, the order
    /// of the list is not the order of execution.
    pub const fn triggers(byte: u8) -> bool {
        matches!(byte, 0xc1 | 0xc2 | 0xc4 | 0xca | 0xcf)
    }
}

/// An element type code of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementCode {
    /// The code.
    pub code: u8,
    /// As the vendor's tools write it.
    pub name: &'static str,
    /// The type.
    pub element: chipless_model::ElementType,
    /// Whether programs that ran to the right numbers have it.
    pub proven: bool,
}

/// Every element type code that is known.
pub static ELEMENT_CODES: &[ElementCode] = {
    use chipless_model::ElementType as E;
    const fn code(code: u8, name: &'static str, element: E, proven: bool) -> ElementCode {
        ElementCode {
            code,
            name,
            element,
            proven,
        }
    }
    &[
        code(0x2, "int8", E::Int8, false),
        code(0x3, "uint8", E::UInt8, false),
        code(0x6, "bf16", E::BFloat16, false),
        code(0x7, "fp16", E::Float16, true),
        code(0x8, "int32", E::Int32, true),
        code(0xa, "fp32", E::Float32, true),
        code(0xb, "fp32r", E::Float32, false),
        code(0xd, "fp8e3", E::Float8E3M4, false),
        code(0xe, "fp8e4", E::Float8E4M3, false),
        code(0xf, "fp8e5", E::Float8E5M2, false),
    ]
};

impl ElementCode {
    /// The type of a code; `None` where it is not known.
    pub fn of(code: u8) -> Option<&'static ElementCode> {
        ELEMENT_CODES.iter().find(|c| c.code == code)
    }

    /// The code of a type; of binary32 the plain one.
    pub fn for_element(element: chipless_model::ElementType) -> Option<&'static ElementCode> {
        ELEMENT_CODES.iter().find(|c| c.element == element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_names_are_unique() {
        assert!(OPCODES.is_sorted_by(|a, b| a.byte < b.byte));
        for (i, opcode) in OPCODES.iter().enumerate() {
            assert!(
                OPCODES[..i].iter().all(|o| o.name != opcode.name),
                "{}",
                opcode.name
            );
            assert_eq!(Opcode::of(opcode.byte), Some(opcode));
        }
        assert_eq!(Opcode::of(0xee), None);
        assert_eq!(Opcode::name_of(0xee), "Operation(238)");
    }

    /// docs/neuron-opcodes.md is this table and the one of element types.
    #[test]
    fn the_documentation_is_up_to_date() {
        let rows = OPCODES.iter().map(|o| {
            let since = o.since.unwrap_or("–");
            let known = if o.known.is_empty() { "–" } else { o.known };
            format!(
                "| `{:02x}` | `{}` | {since} | {} | {} | {known} |\n",
                o.byte,
                o.name,
                o.support.name(),
                o.evidence.name()
            )
        });
        let codes = ELEMENT_CODES.iter().map(|c| {
            let evidence = if c.proven {
                Evidence::Execution
            } else {
                Evidence::ThirdParty
            };
            format!(
                "| `{:x}` | `{}` | {} | {} |\n",
                c.code,
                c.name,
                c.element,
                evidence.name()
            )
        });
        let (rows, codes): (Vec<String>, Vec<String>) = (rows.collect(), codes.collect());
        let page = include_str!("../../../../../docs/neuron-opcodes.md");
        for (name, rows) in [("opcodes", rows), ("element types", codes)] {
            let table = rows.concat();
            assert!(
                page.contains(&table),
                "docs/neuron-opcodes.md: the table of {name} should read\n{table}"
            );
        }
    }
}
