//! Stored elements as numbers to compute with: floats as `f32`, integers as `i16` less their zero point.

use chipless_kernels::matrix::{Decode, Half};
use chipless_kernels::{Error, Number, cast, room, wide};
use chipless_model::{ElementType, Kind};
use std::ops::{Add, Mul, Sub};

/// The element type of a mode register (`amode`, `wmode`); `None` for numbers that mean nothing.
/// FP8 is E5M2; 9 is reserved for E4M3 (public firmware headers and compiler sources).
pub(super) fn input_format(mode: u32) -> Option<ElementType> {
    Some(match mode {
        0 => ElementType::Float16,
        1 => ElementType::UInt8,
        2 => ElementType::Int8,
        3 => ElementType::Int4,
        4 => ElementType::Int2,
        5 => ElementType::BFloat16,
        6 => ElementType::UInt4,
        7 => ElementType::Binary,
        8 => ElementType::Float8E5M2,
        9 => ElementType::Float8E4M3Fn,
        _ => return None,
    })
}

/// An 8-bit zero point register, signed or not as the elements that it belongs to. Floats have none.
pub(super) fn zero_point(format: ElementType, register: u32) -> i16 {
    match format.kind() {
        Kind::Float => 0,
        Kind::Signed => i16::from(register as u8 as i8),
        Kind::Unsigned => i16::from(register as u8),
    }
}

/// What stored elements become.
pub(super) trait Decoded: room::Element {
    /// Elements as numbers, integers less their zero point; or as they are.
    fn decode(
        format: ElementType,
        zero_point: i16,
        bytes: &[u8],
        out: &mut [Self],
    ) -> Result<(), Error>;
}

/// Numbers of the two classes that the multipliers know: floats, and integers with 32-bit accumulators that wrap.
pub(super) trait Element:
    Decoded
    + Number<
        Sum: From<Self>
                 + Add<Output = Self::Sum>
                 + Sub<Output = Self::Sum>
                 + Mul<Output = Self::Sum>,
    >
{
    /// What makes numbers of halves of this format; `None` where it has other elements.
    fn of_halves(format: ElementType) -> Option<Decode<Self>>;

    /// `sum · factor`.
    fn scale(sum: Self::Sum, factor: Self) -> Self::Sum;

    /// An operand of an elementwise operation times its scale. Integers of 9 bits stay within 25.
    fn scaled(self, scale: u16) -> Self::Sum;

    /// Whether the product with zero is zero.
    fn is_finite(self) -> bool;

    /// Whether that is so of all of them.
    fn are_finite(values: &[Self]) -> bool;
}

impl Decoded for Half {
    fn decode(format: ElementType, _: i16, bytes: &[u8], out: &mut [Half]) -> Result<(), Error> {
        let places = out.as_flattened_mut();
        if format.bits() != 16 || bytes.len() != places.len() {
            return Err(Error::Length {
                operand: "bytes of halves",
                expected: places.len() as u128,
                found: bytes.len(),
            });
        }
        places.copy_from_slice(bytes);
        Ok(())
    }
}

impl Decoded for f32 {
    fn decode(
        format: ElementType,
        zero_point: i16,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), Error> {
        cast::decode_f32(format, bytes, out)?;
        if zero_point != 0 {
            let zero_point = f32::from(zero_point);
            for value in out {
                *value -= zero_point;
            }
        }
        Ok(())
    }
}

impl Element for f32 {
    fn of_halves(format: ElementType) -> Option<Decode<f32>> {
        fn decode(format: ElementType, halves: &[Half], numbers: &mut [f32]) {
            let decoded = cast::decode_f32(format, halves.as_flattened(), numbers);
            debug_assert!(decoded.is_ok(), "both have 16 bits, and are as many");
        }
        match format {
            ElementType::Float16 => Some(|from, to| decode(ElementType::Float16, from, to)),
            ElementType::BFloat16 => Some(|from, to| decode(ElementType::BFloat16, from, to)),
            _ => None,
        }
    }

    fn scale(sum: f32, factor: f32) -> f32 {
        sum * factor
    }

    fn scaled(self, scale: u16) -> f32 {
        self * f32::from(scale)
    }

    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }

    fn are_finite(values: &[f32]) -> bool {
        // Those of infinities are the largest bits but for those of NaNs.
        let mut largest = 0;
        let found = &mut largest;
        wide(move || {
            for value in values {
                *found = value.abs().to_bits().max(*found);
            }
        });
        largest < f32::INFINITY.to_bits()
    }
}

impl Decoded for i16 {
    fn decode(
        format: ElementType,
        zero_point: i16,
        bytes: &[u8],
        out: &mut [i16],
    ) -> Result<(), Error> {
        cast::decode_i16(format, bytes, out)?;
        if zero_point != 0 {
            // Elements have 8 bits at most and so do zero points.
            wide(|| {
                for value in out {
                    *value = value.wrapping_sub(zero_point);
                }
            });
        }
        Ok(())
    }
}

impl Element for i16 {
    fn of_halves(_: ElementType) -> Option<Decode<i16>> {
        None
    }

    fn scale(sum: i32, factor: i16) -> i32 {
        sum.wrapping_mul(i32::from(factor))
    }

    fn scaled(self, scale: u16) -> i32 {
        i32::from(self) * i32::from(scale)
    }

    fn is_finite(self) -> bool {
        true
    }

    fn are_finite(_: &[i16]) -> bool {
        true
    }
}
