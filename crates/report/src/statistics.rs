//! The numbers of a tensor in one line: minimum, maximum, mean.

use chipless_kernels::cast::decode_f64;
use chipless_model::ElementType;
use std::fmt;

/// Elements decoded at a time; a multiple of eight, so that packed elements begin at a byte.
const BLOCK: usize = 512;

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
    /// Of the first `elements` elements in `bytes`, or of those that are there if there are fewer.
    pub fn of(element: ElementType, elements: u64, bytes: &[u8]) -> Statistics {
        let mut sum = Sum {
            statistics: Statistics {
                elements: 0,
                not_finite: 0,
                min: f64::INFINITY,
                max: f64::NEG_INFINITY,
                mean: 0.0,
            },
        };
        let mut left = elements.min(bytes.len() as u64 * 8 / element.bits()) as usize;
        let mut values = [0.0; BLOCK];
        for block in bytes.chunks(BLOCK * element.bits() as usize / 8) {
            let values = &mut values[..left.min(BLOCK)];
            left -= values.len();
            let used = (values.len() * element.bits() as usize).div_ceil(8);
            if decode_f64(element, &block[..used.min(block.len())], values).is_ok() {
                for value in values {
                    sum.add(*value);
                }
            }
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
            return write!(
                f,
                "{}",
                if self.elements == 0 {
                    "no elements"
                } else {
                    "no finite element"
                }
            );
        }
        write!(
            f,
            "min {}  max {}  mean {}",
            number(self.min),
            number(self.max),
            number(self.mean)
        )?;
        match self.not_finite {
            0 => Ok(()),
            n => write!(f, "  {n} not finite"),
        }
    }
}

/// Four significant digits, or the whole number.
pub fn number(value: f64) -> String {
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
        assert_eq!(
            (s.elements, s.not_finite, s.min, s.max, s.mean),
            (5, 2, -3.25, 1.5, -0.5)
        );
        assert_eq!(
            s.to_string(),
            "min -3.250  max 1.500  mean -0.5000  2 not finite"
        );
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
        assert_eq!(
            Statistics::of(ElementType::Int8, 0, &[]).to_string(),
            "no elements"
        );
        assert_eq!(
            Statistics::of(ElementType::Float16, 1, &[0, 0x7e]).to_string(),
            "no finite element"
        );
        // Fewer bytes than elements: what is there counts.
        assert_eq!(
            Statistics::of(ElementType::Int16, 9, &[1, 0, 2]).elements,
            1
        );
    }

    #[test]
    fn numbers_keep_four_digits() {
        let said: Vec<String> = [0.0, -7.0, 0.012345, 123.456, 1.5e-9, 2.5e12]
            .into_iter()
            .map(number)
            .collect();
        assert_eq!(
            said,
            ["0", "-7", "0.01235", "123.5", "1.500e-9", "2.500e12"]
        );
    }
}
