//! The operations of the element-wise units.
//!
//! | group | operands | how |
//! |---|---|---|
//! | [`Group::Arithmetic`] | of any type | widened to binary32, one operation in binary32, rounded once to the type of the result |
//! | [`Group::Bits`] | integers of one type | bit patterns, without any conversion |
//! | [`Group::Integer`] | 32-bit integers of one type | exact, wrapping around |
//!
//! Comparisons and logical operations give 1 or 0. Meanings are those of NKI API Common Fields, "Supported Math Operators"; names
//! are in [`ALU_OPERATIONS`](crate::stream::ALU_OPERATIONS).

use crate::stream::AluOperation;
use Group::{Arithmetic, Bits, Integer};
use std::fmt;

/// What an operation does its work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Binary32 numbers.
    Arithmetic,
    /// Bit patterns.
    Bits,
    /// Whole numbers of 32 bits.
    Integer,
}

macro_rules! operations {
    ($($code:literal $variant:ident $group:ident;)*) => {
        /// An operation of the element-wise units.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Operation { $($variant = $code,)* }

        /// Every operation that has a meaning here, and what it works on.
        const OPERATIONS: &[(Operation, Group)] = &[$((Operation::$variant, $group),)*];
    };
}

operations! {
    0x00 Bypass Arithmetic;
    0x01 Not Bits;
    0x02 ShiftLeft Bits;
    0x03 ShiftRight Bits;
    0x04 Add Arithmetic;
    0x05 Subtract Arithmetic;
    0x06 Multiply Arithmetic;
    0x07 Divide Arithmetic;
    0x08 Max Arithmetic;
    0x09 Min Arithmetic;
    0x0a And Bits;
    0x0b Or Bits;
    0x0c Xor Bits;
    0x0d LogicalAnd Arithmetic;
    0x0e LogicalOr Arithmetic;
    0x0f LogicalXor Arithmetic;
    0x10 LogicalShiftLeft Bits;
    0x11 LogicalShiftRight Bits;
    0x12 Equal Arithmetic;
    0x13 Greater Arithmetic;
    0x14 AtLeast Arithmetic;
    0x15 AtMost Arithmetic;
    0x16 Less Arithmetic;
    0x17 Difference Arithmetic;
    0x18 NotEqual Arithmetic;
    0x19 Magnitude Arithmetic;
    0x1a Power Arithmetic;
    0x1b Modulo Arithmetic;
    0x1d ReciprocalRoot Arithmetic;
    0x20 LargestMagnitude Arithmetic;
    0x21 SmallestMagnitude Arithmetic;
    0x22 Rectify Arithmetic;
    0x23 Square Arithmetic;
    0xc4 IntegerAdd Integer;
    0xc5 IntegerMultiply Integer;
    0xc6 IntegerSubtract Integer;
    0xc7 IntegerDivide Integer;
    0xc8 IntegerModulo Integer;
    0xc9 IntegerEqual Integer;
    0xca IntegerNotEqual Integer;
    0xcb IntegerLargestMagnitude Integer;
    0xcc IntegerSmallestMagnitude Integer;
    0xcd IntegerDifference Integer;
    0xce IntegerMagnitude Integer;
    0xcf IntegerMax Integer;
    0xd0 IntegerMin Integer;
    0xd1 IntegerGreater Integer;
    0xd2 IntegerAtLeast Integer;
    0xd3 IntegerAtMost Integer;
    0xd4 IntegerLess Integer;
    0xd5 UnsignedMax Integer;
    0xd6 UnsignedMin Integer;
    0xd7 UnsignedGreater Integer;
    0xd8 UnsignedAtLeast Integer;
    0xd9 UnsignedAtMost Integer;
    0xda UnsignedLess Integer;
    0xdb UnsignedMultiply Integer;
    0xdc UnsignedDivide Integer;
    0xdd UnsignedModulo Integer;
}

impl Operation {
    /// The operation of a code; `None` where its meaning is not known.
    pub(crate) fn of(code: u8) -> Option<Operation> {
        let known = OPERATIONS
            .iter()
            .find(|(operation, _)| *operation as u8 == code)?;
        Some(known.0)
    }

    /// What it works on.
    pub(crate) fn group(self) -> Group {
        let known = OPERATIONS.iter().find(|(operation, _)| *operation == self);
        known.map_or(Arithmetic, |(_, group)| *group)
    }

    /// An accumulator that holds nothing yet, for the operations that reduce; `None` for all others.
    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    pub(crate) const fn identity(self) -> Option<f32> {
        use Operation::*;
        Some(match self {
            Add | LogicalOr | LogicalXor | LargestMagnitude => 0.0,
            Multiply | LogicalAnd => 1.0,
            Max => f32::NEG_INFINITY,
            Min | SmallestMagnitude => f32::INFINITY,
            _ => return None,
        })
    }

    /// On numbers: the function of an arithmetic operation.
    #[allow(
        clippy::enum_glob_use,
        clippy::float_cmp,
        reason = "a table of them, comparisons among them"
    )]
    pub(crate) fn on_numbers(self) -> Option<fn(f32, f32) -> f32> {
        use Operation::*;
        Some(match self {
            Bypass => |a, _| a,
            Add => |a, b| a + b,
            Subtract => |a, b| a - b,
            Multiply => |a, b| a * b,
            Divide => |a, b| a / b,
            Max => max,
            Min => min,
            LogicalAnd => |a, b| one(a != 0.0 && b != 0.0),
            LogicalOr => |a, b| one(a != 0.0 || b != 0.0),
            LogicalXor => |a, b| one((a != 0.0) != (b != 0.0)),
            Equal => |a, b| one(a == b),
            Greater => |a, b| one(a > b),
            AtLeast => |a, b| one(a >= b),
            AtMost => |a, b| one(a <= b),
            Less => |a, b| one(a < b),
            NotEqual => |a, b| one(a != b),
            Difference => |a, b| (a - b).abs(),
            Magnitude => |a, _| a.abs(),
            // Binary64 has the digits that a correctly rounded binary32 needs, all but always.
            Power => |a, b| f64::from(a).powf(f64::from(b)) as f32,
            Modulo => modulo,
            ReciprocalRoot => |a, _| (1.0 / f64::from(a).sqrt()) as f32,
            LargestMagnitude => |a, b| max(a.abs(), b.abs()),
            SmallestMagnitude => |a, b| min(a.abs(), b.abs()),
            Rectify => |a, _| max(a, 0.0),
            Square => |a, _| a * a,
            _ => return None,
        })
    }

    /// On bit patterns of so many bits, the higher ones zero.
    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    pub(crate) fn on_bits(self, a: u32, b: u32, width: u32) -> Option<u32> {
        use Operation::*;
        let mask = u32::MAX >> (32 - width);
        let sign = ((a << (32 - width)) as i32) >> (32 - width);
        let within = b < width;
        let result = match self {
            Bypass => a,
            Not => !a,
            And => a & b,
            Or => a | b,
            Xor => a ^ b,
            ShiftLeft | LogicalShiftLeft if within => a << b,
            LogicalShiftRight if within => a >> b,
            ShiftLeft | LogicalShiftLeft | LogicalShiftRight => 0,
            ShiftRight => (sign >> b.min(31)) as u32,
            _ => return None,
        };
        Some(result & mask)
    }

    /// On whole numbers. The error says why there is no result.
    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    pub(crate) fn on_integers(self, a: u32, b: u32) -> Result<u32, &'static str> {
        use Operation::*;
        let (x, y) = (a as i32, b as i32);
        let zero = "divides by zero";
        Ok(match self {
            Bypass => a,
            IntegerAdd => a.wrapping_add(b),
            IntegerSubtract => a.wrapping_sub(b),
            IntegerMultiply | UnsignedMultiply => a.wrapping_mul(b),
            IntegerDivide | IntegerModulo if y == 0 => return Err(zero),
            IntegerDivide => x.wrapping_div(y) as u32,
            IntegerModulo => x.wrapping_rem(y) as u32,
            UnsignedDivide => a.checked_div(b).ok_or(zero)?,
            UnsignedModulo => a.checked_rem(b).ok_or(zero)?,
            IntegerEqual => u32::from(a == b),
            IntegerNotEqual => u32::from(a != b),
            IntegerLargestMagnitude => x.unsigned_abs().max(y.unsigned_abs()),
            IntegerSmallestMagnitude => x.unsigned_abs().min(y.unsigned_abs()),
            IntegerDifference => x.wrapping_sub(y).unsigned_abs(),
            IntegerMagnitude => x.unsigned_abs(),
            IntegerMax => x.max(y) as u32,
            IntegerMin => x.min(y) as u32,
            IntegerGreater => u32::from(x > y),
            IntegerAtLeast => u32::from(x >= y),
            IntegerAtMost => u32::from(x <= y),
            IntegerLess => u32::from(x < y),
            UnsignedMax => a.max(b),
            UnsignedMin => a.min(b),
            UnsignedGreater => u32::from(a > b),
            UnsignedAtLeast => u32::from(a >= b),
            UnsignedAtMost => u32::from(a <= b),
            UnsignedLess => u32::from(a < b),
            _ => return Err("is no operation on whole numbers"),
        })
    }

    /// On whole numbers of so many bits in registers of a sequencer, of which the result keeps the lowest bits. The error says why there is
    /// no result.
    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    pub(crate) fn on_registers(self, a: i128, b: i128, bits: u32) -> Result<i128, String> {
        use Operation::*;
        let zero = || "is not supported with a divisor of 0".to_owned();
        let shift = u32::try_from(b).ok().filter(|by| *by < bits);
        let shift = || shift.ok_or_else(|| format!("by {b} bits of {bits} is not supported"));
        let unsigned = a & ((1 << bits) - 1);
        Ok(match self {
            Bypass => a,
            Not => !a,
            And => a & b,
            Or => a | b,
            Xor => a ^ b,
            ShiftLeft | LogicalShiftLeft => a << shift()?,
            ShiftRight => (unsigned << (128 - bits) >> (128 - bits)) >> shift()?,
            LogicalShiftRight => unsigned >> shift()?,
            Add | IntegerAdd => a + b,
            Subtract | IntegerSubtract => a - b,
            Multiply | IntegerMultiply | UnsignedMultiply => a.wrapping_mul(b),
            Divide | IntegerDivide | UnsignedDivide => a.checked_div(b).ok_or_else(zero)?,
            Modulo if a < 0 || b < 0 => {
                return Err(
                    "is not supported on negative numbers: the sign is not known".to_owned(),
                );
            }
            Modulo | IntegerModulo | UnsignedModulo => a.checked_rem(b).ok_or_else(zero)?,
            Max | IntegerMax | UnsignedMax => a.max(b),
            Min | IntegerMin | UnsignedMin => a.min(b),
            LogicalAnd => i128::from(a != 0 && b != 0),
            LogicalOr => i128::from(a != 0 || b != 0),
            LogicalXor => i128::from((a != 0) != (b != 0)),
            Equal | IntegerEqual => i128::from(a == b),
            NotEqual | IntegerNotEqual => i128::from(a != b),
            Greater | IntegerGreater | UnsignedGreater => i128::from(a > b),
            AtLeast | IntegerAtLeast | UnsignedAtLeast => i128::from(a >= b),
            AtMost | IntegerAtMost | UnsignedAtMost => i128::from(a <= b),
            Less | IntegerLess | UnsignedLess => i128::from(a < b),
            Difference | IntegerDifference => (a - b).abs(),
            Magnitude | IntegerMagnitude => a.abs(),
            LargestMagnitude | IntegerLargestMagnitude => a.abs().max(b.abs()),
            SmallestMagnitude | IntegerSmallestMagnitude => a.abs().min(b.abs()),
            Power | ReciprocalRoot | Rectify | Square => return Err("is not supported".to_owned()),
        })
    }

    /// Whether an integer operation takes signed numbers; `None` where it takes both.
    pub(crate) const fn signedness(self) -> Option<bool> {
        match self as u8 {
            0xd5..=0xdd => Some(false),
            0xc7..=0xc8 | 0xcb..=0xd4 => Some(true),
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(AluOperation::of(*self as u8).map_or("operation", |operation| operation.name))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arithmetic => "numbers",
            Bits => "bit patterns",
            Integer => "whole numbers",
        })
    }
}

fn one(holds: bool) -> f32 {
    if holds { 1.0 } else { 0.0 }
}

/// The larger number; NaN where there is one.
fn max(a: f32, b: f32) -> f32 {
    if a.is_nan() || a >= b { a } else { b }
}

/// The smaller number; NaN where there is one.
fn min(a: f32, b: f32) -> f32 {
    if a.is_nan() || a <= b { a } else { b }
}

/// The remainder with the sign of the divisor, as array libraries have it.
fn modulo(a: f32, b: f32) -> f32 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_name_and_a_meaning() {
        for (operation, group) in OPERATIONS {
            assert!(
                AluOperation::of(*operation as u8).is_some(),
                "{operation:?}"
            );
            assert_eq!(
                (Operation::of(*operation as u8), operation.group()),
                (Some(*operation), *group)
            );
            let is = [
                operation.on_numbers().is_some(),
                operation.on_bits(1, 1, 32).is_some(),
                operation.on_integers(1, 1).is_ok(),
            ];
            let expected =
                [Arithmetic, Bits, Integer].map(|g| g == *group || *operation == Operation::Bypass);
            assert_eq!(is, expected, "{operation:?}");
        }
        assert_eq!(Operation::of(0x1f), None);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these results are exact")]
    fn numbers() {
        let on = |o: Operation, a, b| o.on_numbers().expect("arithmetic")(a, b);
        assert_eq!(on(Operation::Modulo, -7.0, 3.0), 2.0);
        assert_eq!(on(Operation::Modulo, 7.0, -3.0), -2.0);
        assert_eq!(on(Operation::LogicalXor, 2.0, -3.0), 0.0);
        assert_eq!(on(Operation::Difference, 1.0, 3.5), 2.5);
        assert_eq!(on(Operation::ReciprocalRoot, 4.0, 9.0), 0.5);
        assert_eq!(on(Operation::AtLeast, 2.0, 2.0), 1.0);
        assert!(on(Operation::Max, 1.0, f32::NAN).is_nan());
        assert!(on(Operation::Max, f32::NAN, 1.0).is_nan());
        assert!(on(Operation::Min, 1.0, f32::NAN).is_nan());
        assert_eq!(on(Operation::Min, 1.0, -1.0), -1.0);
    }

    #[test]
    fn bits_keep_their_width() {
        let on = |o: Operation, a, b, w| o.on_bits(a, b, w).expect("bits");
        assert_eq!(on(Operation::Not, 0x0f, 0, 8), 0xf0);
        assert_eq!(on(Operation::ShiftRight, 0x80, 3, 8), 0xf0);
        assert_eq!(on(Operation::LogicalShiftRight, 0x80, 3, 8), 0x10);
        assert_eq!(on(Operation::LogicalShiftLeft, 0xff, 4, 8), 0xf0);
        assert_eq!(on(Operation::LogicalShiftLeft, 1, 16, 16), 0);
        assert_eq!(on(Operation::ShiftRight, 0x8000_0000, 99, 32), u32::MAX);
    }

    #[test]
    fn whole_numbers_wrap_and_do_not_pass_through_floats() {
        let on = |o: Operation, a: i64, b: i64| o.on_integers(a as u32, b as u32).map(|r| r as i32);
        assert_eq!(on(Operation::IntegerMax, 16_777_217, -5), Ok(16_777_217));
        assert_eq!(
            on(Operation::IntegerAdd, i64::from(i32::MAX), 1),
            Ok(i32::MIN)
        );
        assert_eq!(
            on(Operation::IntegerDivide, i64::from(i32::MIN), -1),
            Ok(i32::MIN)
        );
        assert_eq!(on(Operation::UnsignedGreater, -1, 1), Ok(1));
        assert!(on(Operation::IntegerModulo, 1, 0).is_err());
    }
}
