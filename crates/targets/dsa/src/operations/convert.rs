//! Changes of type: `SI64ToF32_D64x2` takes each 64-bit lane for a signed integer and puts a single-precision float in its place.

use half::f16;

/// A number type that a conversion names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `SI8` to `SI64`: two's complement of so many bits.
    Signed(u32),
    /// `UI8` to `UI64`.
    Unsigned(u32),
    /// `H16`, `F32`, `D64`.
    Float(u32),
}

impl Scalar {
    fn parse(name: &str) -> Option<Scalar> {
        Some(match name {
            "SI8" => Scalar::Signed(8),
            "SI16" => Scalar::Signed(16),
            "SI32" => Scalar::Signed(32),
            "SI64" => Scalar::Signed(64),
            "UI8" => Scalar::Unsigned(8),
            "UI16" => Scalar::Unsigned(16),
            "UI32" => Scalar::Unsigned(32),
            "UI64" => Scalar::Unsigned(64),
            "H16" => Scalar::Float(16),
            "F32" => Scalar::Float(32),
            "D64" => Scalar::Float(64),
            _ => return None,
        })
    }
}

/// A change of type, lane by lane. The number stands in the lowest bits of its lane, before and after; the bits above it are zero after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// What the lane is.
    pub from: Scalar,
    /// What it becomes.
    pub to: Scalar,
    /// Bits of a lane.
    pub lane: u32,
}

/// A number on its way.
enum Number {
    Integer(i128),
    Single(f32),
    Double(f64),
}

impl Conversion {
    /// The conversion of this name, `SI64ToF32`, on lanes of so many bits.
    pub(super) fn parse(name: &str, lane: u32) -> Option<Conversion> {
        let (from, to) = name.split_once("To")?;
        Some(Conversion {
            from: Scalar::parse(from)?,
            to: Scalar::parse(to)?,
            lane,
        })
    }

    /// Converts all lanes of a word. Integers wrap; floats become integers towards zero and stop at the ends of the range; what is not a
    /// number becomes zero.
    pub fn apply(self, word: u64) -> u64 {
        (0..u64::BITS / self.lane).fold(0, |out, index| {
            let shift = index * self.lane;
            out | (self.put(self.take(word >> shift)) & mask(self.lane)) << shift
        })
    }

    fn take(self, word: u64) -> Number {
        match self.from {
            Scalar::Signed(bits) => {
                let up = u64::BITS - bits;
                Number::Integer(i128::from((word << up) as i64 >> up))
            }
            Scalar::Unsigned(bits) => Number::Integer(i128::from(word & mask(bits))),
            Scalar::Float(16) => Number::Single(f16::from_bits(word as u16).to_f32()),
            Scalar::Float(32) => Number::Single(f32::from_bits(word as u32)),
            Scalar::Float(_) => Number::Double(f64::from_bits(word)),
        }
    }

    fn put(self, number: Number) -> u64 {
        match (self.to, number) {
            (Scalar::Signed(bits) | Scalar::Unsigned(bits), Number::Integer(value)) => {
                value as u64 & mask(bits)
            }
            (Scalar::Signed(bits), Number::Single(value)) => signed(f64::from(value), bits),
            (Scalar::Signed(bits), Number::Double(value)) => signed(value, bits),
            (Scalar::Unsigned(bits), Number::Single(value)) => {
                (f64::from(value) as u64).min(mask(bits))
            }
            (Scalar::Unsigned(bits), Number::Double(value)) => (value as u64).min(mask(bits)),
            // Integers that half precision can hold are exact in double precision: one rounding.
            (Scalar::Float(16), Number::Integer(value)) => {
                f16::from_f64(value as f64).to_bits().into()
            }
            (Scalar::Float(16), Number::Single(value)) => f16::from_f32(value).to_bits().into(),
            (Scalar::Float(16), Number::Double(value)) => f16::from_f64(value).to_bits().into(),
            (Scalar::Float(32), Number::Integer(value)) => (value as f32).to_bits().into(),
            (Scalar::Float(32), Number::Single(value)) => value.to_bits().into(),
            (Scalar::Float(32), Number::Double(value)) => (value as f32).to_bits().into(),
            (Scalar::Float(_), Number::Integer(value)) => (value as f64).to_bits(),
            (Scalar::Float(_), Number::Single(value)) => f64::from(value).to_bits(),
            (Scalar::Float(_), Number::Double(value)) => value.to_bits(),
        }
    }
}

fn signed(value: f64, bits: u32) -> u64 {
    let most = (mask(bits) >> 1) as i64;
    (value as i64).clamp(-most - 1, most) as u64 & mask(bits)
}

/// The lowest so many bits, 1 to 64.
const fn mask(bits: u32) -> u64 {
    u64::MAX >> (u64::BITS - bits)
}
