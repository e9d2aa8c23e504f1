//! Codes in the fields of instructions: element types, operations of the arithmetic units, and how well each is known.

use chipless_model::ElementType;

pub use chipless_model::Grade as Evidence;

/// An element type code of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementCode {
    /// The code.
    pub code: u8,
    /// As the vendor's tools write it.
    pub name: &'static str,
    /// The type.
    pub element: ElementType,
    /// How well the code is known.
    pub evidence: Evidence,
}

/// Every element type code that is known, by code.
pub static ELEMENT_CODES: &[ElementCode] = {
    use ElementType as E;
    use Evidence::{Proven, Quoted};
    const fn code(
        code: u8,
        name: &'static str,
        element: ElementType,
        evidence: Evidence,
    ) -> ElementCode {
        ElementCode {
            code,
            name,
            element,
            evidence,
        }
    }
    &[
        code(0x1, "uint64", E::UInt64, Quoted),
        code(0x2, "int8", E::Int8, Quoted),
        code(0x3, "uint8", E::UInt8, Quoted),
        code(0x4, "int16", E::Int16, Quoted),
        code(0x5, "uint16", E::UInt16, Quoted),
        code(0x6, "bf16", E::BFloat16, Quoted),
        code(0x7, "fp16", E::Float16, Proven),
        code(0x8, "int32", E::Int32, Proven),
        code(0x9, "uint32", E::UInt32, Quoted),
        code(0xa, "fp32", E::Float32, Proven),
        code(0xb, "fp32r", E::Float32, Quoted),
        code(0xc, "int64", E::Int64, Quoted),
        code(0xd, "fp8e3", E::Float8E3M4, Quoted),
        code(0xe, "fp8e4", E::Float8E4M3, Quoted),
        code(0xf, "fp8e5", E::Float8E5M2, Quoted),
    ]
};

/// Element type code of PSUM sums.
pub(crate) const ACCUMULATOR: u8 = 0xa;

impl ElementCode {
    /// The type of a code; `None` where it is not known.
    pub fn of(code: u8) -> Option<&'static ElementCode> {
        ELEMENT_CODES
            .get(usize::from(code).wrapping_sub(1))
            .filter(|known| known.code == code)
    }

    /// The code of a name.
    pub fn named(name: &str) -> Option<&'static ElementCode> {
        ELEMENT_CODES.iter().find(|code| code.name == name)
    }
}

/// An operation of the arithmetic units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AluOperation {
    /// The code.
    pub code: u8,
    /// Its name in the text form.
    pub name: &'static str,
    /// How well code and meaning are known.
    pub evidence: Evidence,
}

macro_rules! operations {
    ($($code:literal $name:literal $evidence:ident;)*) => {
        /// Every operation of the arithmetic units, by code.
        pub static ALU_OPERATIONS: &[AluOperation] = &[$(AluOperation { code: $code, name: $name, evidence: Evidence::$evidence },)*];
    };
}

operations! {
    0x00 "bypass" Quoted;
    0x01 "not" Quoted;
    0x02 "shift_left_arithmetic" Quoted;
    0x03 "shift_right_arithmetic" Quoted;
    0x04 "add" Proven;
    0x05 "subtract" Quoted;
    0x06 "multiply" Quoted;
    0x07 "divide" Quoted;
    0x08 "max" Quoted;
    0x09 "min" Quoted;
    0x0a "and" Quoted;
    0x0b "or" Quoted;
    0x0c "xor" Quoted;
    0x0d "logical_and" Quoted;
    0x0e "logical_or" Quoted;
    0x0f "logical_xor" Quoted;
    0x10 "shift_left" Quoted;
    0x11 "shift_right" Quoted;
    0x12 "equal" Quoted;
    0x13 "greater" Quoted;
    0x14 "at_least" Quoted;
    0x15 "at_most" Quoted;
    0x16 "less" Quoted;
    0x17 "absolute_difference" Quoted;
    0x18 "not_equal" Quoted;
    0x19 "absolute" Quoted;
    0x1a "power" Quoted;
    0x1b "modulo" Quoted;
    0x1c "crc32" Quoted;
    0x1d "reciprocal_root" Quoted;
    0x20 "largest_magnitude" Quoted;
    0x21 "smallest_magnitude" Quoted;
    0x22 "relu" Quoted;
    0x23 "square" Quoted;
    0xc4 "integer_add" Quoted;
    0xc5 "integer_multiply" Quoted;
    0xc6 "integer_subtract" Quoted;
    0xc7 "integer_divide" Quoted;
    0xc8 "integer_modulo" Quoted;
    0xc9 "integer_equal" Quoted;
    0xca "integer_not_equal" Quoted;
    0xcb "integer_largest_magnitude" Quoted;
    0xcc "integer_smallest_magnitude" Quoted;
    0xcd "integer_absolute_difference" Quoted;
    0xce "integer_absolute" Quoted;
    0xcf "integer_max" Quoted;
    0xd0 "integer_min" Quoted;
    0xd1 "integer_greater" Quoted;
    0xd2 "integer_at_least" Quoted;
    0xd3 "integer_at_most" Quoted;
    0xd4 "integer_less" Quoted;
    0xd5 "unsigned_max" Quoted;
    0xd6 "unsigned_min" Quoted;
    0xd7 "unsigned_greater" Quoted;
    0xd8 "unsigned_at_least" Quoted;
    0xd9 "unsigned_at_most" Quoted;
    0xda "unsigned_less" Quoted;
    0xdb "unsigned_multiply" Quoted;
    0xdc "unsigned_divide" Quoted;
    0xdd "unsigned_modulo" Quoted;
    0xde "integer_argmax" Quoted;
    0xdf "integer_argmin" Quoted;
    0xe0 "unsigned_argmax" Quoted;
    0xe1 "unsigned_argmin" Quoted;
}

impl AluOperation {
    /// The operation of a code.
    pub fn of(code: u8) -> Option<&'static AluOperation> {
        let place = ALU_OPERATIONS.binary_search_by_key(&code, |operation| operation.code);
        place.ok().map(|place| &ALU_OPERATIONS[place])
    }

    /// The operation of a name.
    pub fn named(name: &str) -> Option<&'static AluOperation> {
        ALU_OPERATIONS
            .iter()
            .find(|operation| operation.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(ALU_OPERATIONS.is_sorted_by(|a, b| a.code < b.code));
        for (index, code) in ELEMENT_CODES.iter().enumerate() {
            assert_eq!(usize::from(code.code), index + 1);
        }
    }
}
