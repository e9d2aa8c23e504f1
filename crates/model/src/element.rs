//! Element types of tensors.

use std::fmt;

macro_rules! elements {
    ($($(#[$doc:meta])* $variant:ident $name:literal $bits:literal $kind:ident;)*) => {
        /// The type of one element, named as the array libraries name it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ElementType { $($(#[$doc])* $variant,)* }

        impl ElementType {
            /// Every type, in the order of declaration.
            pub const ALL: &[ElementType] = &[$(ElementType::$variant,)*];

            /// The name used in every output and accepted in every input.
            pub const fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name,)* }
            }

            /// Bits of one element; types of less than a byte are packed, low bits first.
            pub const fn bits(self) -> u64 {
                match self { $(ElementType::$variant => $bits,)* }
            }

            /// What the bits mean.
            pub const fn kind(self) -> Kind {
                match self { $(ElementType::$variant => Kind::$kind,)* }
            }
        }
    };
}

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Binary floating point.
    Float,
    /// Two's complement.
    Signed,
    /// Unsigned; booleans are unsigned bytes of 0 and 1.
    Unsigned,
}

elements! {
    /// IEEE binary64.
    Float64 "float64" 64 Float;
    /// IEEE binary32.
    Float32 "float32" 32 Float;
    /// IEEE binary16.
    Float16 "float16" 16 Float;
    /// The upper half of binary32.
    BFloat16 "bfloat16" 16 Float;
    /// 4 exponent bits, 3 mantissa bits, no infinity (OCP E4M3).
    Float8E4M3Fn "float8_e4m3fn" 8 Float;
    /// 4 exponent bits, 3 mantissa bits, with infinity (IEEE style).
    Float8E4M3 "float8_e4m3" 8 Float;
    /// 5 exponent bits, 2 mantissa bits, with infinity.
    Float8E5M2 "float8_e5m2" 8 Float;
    /// 3 exponent bits, 4 mantissa bits, with infinity.
    Float8E3M4 "float8_e3m4" 8 Float;
    /// Signed 64 bit.
    Int64 "int64" 64 Signed;
    /// Signed 32 bit.
    Int32 "int32" 32 Signed;
    /// Signed 16 bit.
    Int16 "int16" 16 Signed;
    /// Signed 8 bit.
    Int8 "int8" 8 Signed;
    /// Signed 4 bit, two to a byte.
    Int4 "int4" 4 Signed;
    /// Signed 2 bit, four to a byte.
    Int2 "int2" 2 Signed;
    /// Unsigned 64 bit.
    UInt64 "uint64" 64 Unsigned;
    /// Unsigned 32 bit.
    UInt32 "uint32" 32 Unsigned;
    /// Unsigned 16 bit.
    UInt16 "uint16" 16 Unsigned;
    /// Unsigned 8 bit.
    UInt8 "uint8" 8 Unsigned;
    /// Unsigned 4 bit, two to a byte.
    UInt4 "uint4" 4 Unsigned;
    /// One bit, eight to a byte.
    Binary "uint1" 1 Unsigned;
    /// A byte that is 0 or 1.
    Bool "bool" 8 Unsigned;
}

impl ElementType {
    /// The type of this [name](ElementType::name).
    pub fn from_name(name: &str) -> Option<ElementType> {
        ElementType::ALL.iter().copied().find(|t| t.name() == name)
    }

    /// The type of a [name](ElementType::name), or of one of the short forms that listings and the field use: `fp32`, `f32`, `bf16`, `fp8e4`, `i8`,
    /// `s8`, `u8`. For what people type; files are read by their own names.
    pub fn from_word(word: &str) -> Option<ElementType> {
        let word = word.to_ascii_lowercase();
        ElementType::from_name(&word).or_else(|| {
            Some(match &*word {
                "double" => ElementType::Float64,
                "fp32r" => ElementType::Float32,
                "half" => ElementType::Float16,
                "bf16" => ElementType::BFloat16,
                "fp8e4" | "fp8_e4m3" | "f8e4m3" => ElementType::Float8E4M3,
                "fp8_e4m3fn" | "f8e4m3fn" => ElementType::Float8E4M3Fn,
                "fp8e5" | "fp8_e5m2" | "f8e5m2" => ElementType::Float8E5M2,
                "fp8e3" | "fp8_e3m4" | "f8e3m4" => ElementType::Float8E3M4,
                _ => return ElementType::from_name(&lengthened(&word)?),
            })
        })
    }

    /// The bits that are all ones in NaN and the infinities, and in no other number; `None` for types that have neither.
    pub const fn nonfinite_bits(self) -> Option<u64> {
        Some(match self {
            ElementType::Float64 => 0x7ff0_0000_0000_0000,
            ElementType::Float32 => 0x7f80_0000,
            ElementType::Float16 => 0x7c00,
            ElementType::BFloat16 => 0x7f80,
            ElementType::Float8E4M3Fn => 0x7f,
            ElementType::Float8E4M3 => 0x78,
            ElementType::Float8E5M2 => 0x7c,
            ElementType::Float8E3M4 => 0x70,
            _ => return None,
        })
    }

    /// Bytes that `count` packed elements take; `None` beyond 2^64.
    pub const fn bytes_for(self, count: u64) -> Option<u64> {
        match count.checked_mul(self.bits()) {
            Some(bits) => Some(bits.div_ceil(8)),
            None => None,
        }
    }
}

/// The name that a letter or two and a number of bits stand for: `float32` of `fp32` and `f32`, `uint8` of `u8`.
fn lengthened(word: &str) -> Option<String> {
    let (kind, bits) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
    let kind = match kind {
        "f" | "fp" => "float",
        "i" | "s" => "int",
        "u" => "uint",
        _ => return None,
    };
    Some(format!("{kind}{bits}"))
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_names_and_their_short_forms() {
        for element in ElementType::ALL {
            assert_eq!(ElementType::from_word(element.name()), Some(*element));
        }
        for (word, element) in [
            ("fp32", ElementType::Float32),
            ("F32", ElementType::Float32),
            ("fp16", ElementType::Float16),
            ("bf16", ElementType::BFloat16),
            ("fp8e4", ElementType::Float8E4M3),
            ("f8e4m3fn", ElementType::Float8E4M3Fn),
            ("i8", ElementType::Int8),
            ("s32", ElementType::Int32),
            ("u1", ElementType::Binary),
        ] {
            assert_eq!(ElementType::from_word(word), Some(element), "{word}");
        }
        assert_eq!(
            ["fp33", "x32", "f8", ""].map(ElementType::from_word),
            [None; 4]
        );
    }
}
