//! The numbers of a tensor in one line: minimum, maximum, mean.

use chipless_model::ElementType;
use half::{bf16, f16};
use microfloat::{f8e3m4, f8e4m3, f8e4m3fn, f8e5m2};
use std::fmt;

/// Of the finite elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Elements, finite or not.
    pub elements: u64,
    /// Elements that are infinite or not a number.
    pub not_finite: u64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Average, summed in order of the elements.
    pub mean: f64,
}

impl Statistics {
    /// Of the elements that `bytes` hold, packed, little-endian. Bytes beyond the last whole element are left out; of
    /// types below a byte every element that the bytes have room for counts, up to `elements`.
    pub fn of(element: ElementType, elements: u64, bytes: &[u8]) -> Statistics {
        let mut sum = Sum { statistics: Statistics { elements: 0, not_finite: 0, min: f64::INFINITY, max: f64::NEG_INFINITY, mean: 0.0 } };
        /// Elements of a fixed number of bytes, each turned into a number.
        fn fixed<const N: usize>(sum: &mut Sum, elements: u64, bytes: &[u8], number: impl Fn([u8; N]) -> f64) {
            for chunk in bytes.as_chunks::<N>().0.iter().take(usize::try_from(elements).unwrap_or(usize::MAX)) {
                sum.add(number(*chunk));
            }
        }
        let packed = |sum: &mut Sum, bits: u32, signed: bool| {
            let per_byte = u64::from(8 / bits);
            for i in 0..elements.min(bytes.len() as u64 * per_byte) {
                let shift = (i % per_byte) as u32 * bits;
                let value = (bytes[(i / per_byte) as usize] >> shift) & ((1 << bits) - 1);
                let value = i16::from(value);
                sum.add(f64::from(if signed && value >= 1 << (bits - 1) { value - (1 << bits) } else { value }));
            }
        };
        match element {
            ElementType::Float64 => fixed(&mut sum, elements, bytes, f64::from_le_bytes),
            ElementType::Float32 => fixed(&mut sum, elements, bytes, |b| f64::from(f32::from_le_bytes(b))),
            ElementType::Float16 => fixed(&mut sum, elements, bytes, |b| f16::from_le_bytes(b).to_f64()),
            ElementType::BFloat16 => fixed(&mut sum, elements, bytes, |b| bf16::from_le_bytes(b).to_f64()),
            ElementType::Float8E4M3Fn => fixed(&mut sum, elements, bytes, |[b]| f64::from(f8e4m3fn::from_bits(b).to_f32())),
            ElementType::Float8E4M3 => fixed(&mut sum, elements, bytes, |[b]| f64::from(f8e4m3::from_bits(b).to_f32())),
            ElementType::Float8E5M2 => fixed(&mut sum, elements, bytes, |[b]| f64::from(f8e5m2::from_bits(b).to_f32())),
            ElementType::Float8E3M4 => fixed(&mut sum, elements, bytes, |[b]| f64::from(f8e3m4::from_bits(b).to_f32())),
            ElementType::Int64 => fixed(&mut sum, elements, bytes, |b| i64::from_le_bytes(b) as f64),
            ElementType::Int32 => fixed(&mut sum, elements, bytes, |b| f64::from(i32::from_le_bytes(b))),
            ElementType::Int16 => fixed(&mut sum, elements, bytes, |b| f64::from(i16::from_le_bytes(b))),
            ElementType::Int8 => fixed(&mut sum, elements, bytes, |b| f64::from(i8::from_le_bytes(b))),
            ElementType::UInt64 => fixed(&mut sum, elements, bytes, |b| u64::from_le_bytes(b) as f64),
            ElementType::UInt32 => fixed(&mut sum, elements, bytes, |b| f64::from(u32::from_le_bytes(b))),
            ElementType::UInt16 => fixed(&mut sum, elements, bytes, |b| f64::from(u16::from_le_bytes(b))),
            ElementType::UInt8 | ElementType::Bool => fixed(&mut sum, elements, bytes, |[b]| f64::from(b)),
            ElementType::Int4 => packed(&mut sum, 4, true),
            ElementType::Int2 => packed(&mut sum, 2, true),
            ElementType::UInt4 => packed(&mut sum, 4, false),
            ElementType::Binary => packed(&mut sum, 1, false),
        }
        sum.finish()
    }
}

/// The sum so far stands in `mean`.
struct Sum {
    statistics: Statistics,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let s = &mut self.statistics;
        s.elements += 1;
        if value.is_finite() {
            s.min = s.min.min(value);
            s.max = s.max.max(value);
            s.mean += value;
        } else {
            s.not_finite += 1;
        }
    }

    fn finish(mut self) -> Statistics {
        let s = &mut self.statistics;
        s.mean /= (s.elements - s.not_finite) as f64;
        self.statistics
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.elements == self.not_finite {
            return write!(f, "{}", if self.elements == 0 { "no elements" } else { "no finite element" });
        }
        write!(f, "min {}  max {}  mean {}", number(self.min), number(self.max), number(self.mean))?;
        match self.not_finite {
            0 => Ok(()),
            n => write!(f, "  {n} not finite"),
        }
    }
}

/// Four significant digits, or the whole number.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        s if s.fract() == 0.0 && s < 1e9 => format!("{value:.0}"),
        s if (1e-4..1e6).contains(&s) => {
            let digits = (3 - s.log10().floor() as i32).max(0) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_leave_out_what_is_not_finite() {
        let values = [1.5f32, -3.25, f32::NAN, f32::INFINITY, 0.25];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let s = Statistics::of(ElementType::Float32, 5, &bytes);
        assert_eq!((s.elements, s.not_finite, s.min, s.max, s.mean), (5, 2, -3.25, 1.5, -0.5));
        assert_eq!(s.to_string(), "min -3.250  max 1.500  mean -0.5000  2 not finite");
    }

    #[test]
    fn small_types_are_unpacked_low_bits_first() {
        let s = |element, bytes: &[u8]| {
            let s = Statistics::of(element, 3, bytes);
            (s.elements, s.min, s.max)
        };
        assert_eq!(s(ElementType::Int4, &[0x8f, 0x07]), (3, -8.0, 7.0));
        assert_eq!(s(ElementType::UInt4, &[0x8f, 0xf1]), (3, 1.0, 15.0));
        assert_eq!(s(ElementType::Int2, &[0b00_10_01_11]), (3, -2.0, 1.0));
        assert_eq!(s(ElementType::Binary, &[0b0110]), (3, 0.0, 1.0));
    }

    #[test]
    fn eight_bit_floats_follow_their_formats() {
        // 1.5 and the largest finite number of each format.
        for (element, one_and_a_half, largest, value) in [
            (ElementType::Float8E4M3Fn, 0x3c, 0x7e, 448.0),
            (ElementType::Float8E4M3, 0x3c, 0x77, 240.0),
            (ElementType::Float8E5M2, 0x3e, 0x7b, 57344.0),
            (ElementType::Float8E3M4, 0x38, 0x6f, 15.5),
        ] {
            let s = Statistics::of(element, 2, &[one_and_a_half, largest]);
            assert_eq!((s.min, s.max), (1.5, value), "{element}");
        }
    }

    #[test]
    fn nothing_is_not_a_number() {
        assert_eq!(Statistics::of(ElementType::Int8, 0, &[]).to_string(), "no elements");
        assert_eq!(Statistics::of(ElementType::Float16, 1, &[0, 0x7e]).to_string(), "no finite element");
        // Fewer bytes than elements: what is there counts.
        assert_eq!(Statistics::of(ElementType::Int16, 9, &[1, 0, 2]).elements, 1);
    }

    #[test]
    fn numbers_keep_four_digits() {
        let said: Vec<String> = [0.0, -7.0, 0.012345, 123.456, 1.5e-9, 2.5e12].into_iter().map(number).collect();
        assert_eq!(said, ["0", "-7", "0.01235", "123.5", "1.500e-9", "2.500e12"]);
    }
}
