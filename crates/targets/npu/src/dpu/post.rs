//! The post-processing engine (PPE): what happens to a sum before it is stored.
//!
//! Floats: `(sum + bias) · scale` in binary32, for negative values the slope instead of the scale, then one conversion to the stored
//! type, then an upper clamp on the stored bit pattern. Integers: `(sum + bias) · multiplier`, shifted right with
//! rounding, then the slope for negative values, then the zero point, then clamps; or the unrounded value as binary16.
//! Scale and bias come from registers or, channel by channel, from the weight table.

mod apply;

use super::operation::Operation;
use super::registers::DecodeError;
use super::registers::Invariant;
use super::weights::Entry;
use crate::generation::PostStages;
use chipless_kernels::room::Room;
use chipless_model::{ElementType, Kind};
use half::f16;

/// How sums become elements.
#[derive(Clone, Debug)]
pub(super) enum Post {
    /// Values of the input's float type pass as they are (max pooling).
    Bypass {
        format: ElementType,
    },
    Float(FloatPost),
    Integer(IntegerPost),
    /// Decodes, but is not executed.
    Unknown {
        reason: String,
    },
}

#[derive(Clone, Debug)]
pub(super) struct FloatPost {
    /// Bias and scale of all channels; `None`: from the weight table.
    scale: Option<(f32, f32)>,
    /// Factor of negative values.
    slope: Option<Slope>,
    target: FloatTarget,
    /// Bit pattern, as a signed integer, that stored values do not exceed.
    high_clamp: i32,
    /// Limits of values before they become what is stored.
    limits: Option<(f32, f32)>,
}

/// Factor of negative values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slope {
    /// In place of the scale: compilers multiply it by the scale, and divide it by that of a quantised result.
    ForScale(f32),
    /// Of the scaled value.
    OfScaled(f32),
}

/// What a float becomes.
#[derive(Clone, Debug)]
enum FloatTarget {
    Float32,
    Float16 {
        saturate: bool,
        flush: bool,
    },
    BFloat16 {
        nearest: bool,
    },
    Float8(ElementType),
    /// The nearest integer goes through the integer stages.
    Integer(IntegerPost),
}

#[derive(Clone, Debug)]
pub(super) struct IntegerPost {
    /// Bias and scale of all channels; `None`: from the weight table.
    scale: Option<(i32, Scale)>,
    /// Factor of negative values, as a multiplier and a right shift.
    slope: (i64, u32),
    zero_point: i64,
    low: i32,
    high: i32,
    target: IntegerTarget,
}

/// What an integer becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntegerTarget {
    /// Its low bytes.
    Bytes(u32),
    /// Binary16, without having been rounded to an integer; the upper clamp is a bit pattern.
    Float16,
}

/// A factor below one: `multiplier · 2^-shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    multiplier: u16,
    shift: u32,
    round: Round,
}

/// How a right shift rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    NearestEven,
    NearestAway,
    Down,
}

impl FloatPost {
    /// Whether a sum of zero becomes an element whose bytes are zero. Registers hold the bias of all channels, or the table that of each.
    pub(super) fn keeps_zero(&self, entry: Option<&Entry>) -> bool {
        let bias = match self.scale {
            Some((bias, _)) => Some(bias),
            None => entry.map(|entry| f32::from_bits(entry.bias)),
        };
        let clamps = self
            .limits
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        bias == Some(0.0)
            && !clamps
            && self.high_clamp >= 0
            && !matches!(self.target, FloatTarget::Integer(_))
    }
}

impl Round {
    fn from_register(value: u32) -> Option<Round> {
        match value {
            0 => Some(Round::NearestEven),
            2 => Some(Round::NearestAway),
            3 => Some(Round::Down),
            _ => None,
        }
    }

    fn shift(self, value: i64, shift: u32) -> i64 {
        let Some(below) = shift.checked_sub(1) else {
            return value;
        };
        let (floor, half) = (value >> shift, 1i64 << below);
        let rest = value - (floor << shift);
        let up = match self {
            Round::NearestEven => rest > half || (rest == half && floor & 1 == 1),
            Round::NearestAway => rest > half || (rest == half && value >= 0),
            Round::Down => false,
        };
        floor + i64::from(up)
    }
}

impl Scale {
    /// The scale word of a weight table entry.
    fn from_word(word: u32) -> Option<Scale> {
        let round = Round::from_register(word >> 14 & 3)?;
        Some(Scale {
            multiplier: (word >> 16) as u16,
            shift: word >> 8 & 0x3f,
            round,
        })
    }
}

/// Results as they are stored, `[y][x][z]`.
pub(super) enum Elements {
    One(Room<[u8; 1]>),
    Two(Room<[u8; 2]>),
    Four(Room<[u8; 4]>),
}

impl Post {
    pub(super) fn decode(
        i: &Invariant,
        operation: Operation,
        input: ElementType,
        stages: PostStages,
    ) -> Result<Post, DecodeError> {
        let bits = 1 << i.dtype;
        if bits < 8 {
            return Ok(Post::Unknown {
                reason: "output elements of less than a byte (odu dtype)".into(),
            });
        }
        let width = |expected: u32, what: &str| {
            if bits == expected {
                Ok(())
            } else {
                Err(DecodeError::new(
                    "odu dtype",
                    format_args!("{expected} bits for {what}"),
                    format_args!("{bits} bits"),
                ))
            }
        };
        if input.kind() != Kind::Float && stages == PostStages::Separate {
            return IntegerPost::decode(i, bits, i.ppe_i32_convert).map(|post| match post {
                _ if i.ppe_fp_bypass == 0 => Post::Unknown {
                    reason: "integer sums in the float PPE (ppe_fp_bypass 0)".into(),
                },
                None => Post::Unknown {
                    reason: "float8 from integers (ppe_i32_convert 2)".into(),
                },
                Some(post) => Post::Integer(post),
            });
        }
        if i.ppe_fp_bypass == 1 {
            return Ok(
                if operation == Operation::MaxPool && input.bits() == u64::from(bits) {
                    Post::Bypass { format: input }
                } else {
                    Post::Unknown {
                        reason: "float sums that bypass the PPE (ppe_fp_bypass 1)".into(),
                    }
                },
            );
        }
        let target = match i.ppe_fp_convert {
            0 => width(32, "float32 (ppe_fp_convert 0)").map(|()| FloatTarget::Float32)?,
            1 => {
                width(16, "float16 (ppe_fp_convert 1)")?;
                FloatTarget::Float16 {
                    saturate: i.ppe_fp16_clamp == 1,
                    flush: i.ppe_fp16_ftz == 1,
                }
            }
            2 => width(16, "bfloat16 (ppe_fp_convert 2)").map(|()| FloatTarget::BFloat16 {
                nearest: i.ppe_bf16_round == 1,
            })?,
            3 => width(8, "bf8 (ppe_fp_convert 3)")
                .map(|()| FloatTarget::Float8(ElementType::Float8E5M2))?,
            5 => width(8, "hf8 (ppe_fp_convert 5)")
                .map(|()| FloatTarget::Float8(ElementType::Float8E4M3Fn))?,
            4 if stages == PostStages::Float => FloatTarget::Integer(IntegerPost::passing(i, bits)),
            4 => match IntegerPost::decode(i, bits, 0)? {
                Some(post) if post.scale.is_some() => FloatTarget::Integer(post),
                _ => {
                    return Ok(Post::Unknown {
                        reason: "integers from floats with scales of the weight table".into(),
                    });
                }
            },
            other => return Err(DecodeError::new("ppe_fp_convert", "0 to 5", other)),
        };
        Ok(Post::Float(FloatPost {
            scale: (i.ppe_fp_scale_override == 1).then(|| {
                (
                    f32::from_bits(i.ppe_fp_bias),
                    f32::from_bits(i.ppe_fp_scale),
                )
            }),
            slope: (i.ppe_fp_prelu_en == 1).then(|| {
                let slope = f32::from_bits(i.ppe_fp_prelu);
                match stages {
                    PostStages::Separate => Slope::ForScale(slope),
                    PostStages::Float => Slope::OfScaled(slope),
                }
            }),
            high_clamp: match stages {
                PostStages::Separate => i.ppe_scale_hclamp as i32,
                PostStages::Float => i32::MAX,
            },
            limits: (stages == PostStages::Float).then(|| {
                (
                    f32::from_bits(i.ppe_scale_lclamp),
                    f32::from_bits(i.ppe_scale_hclamp),
                )
            }),
            target,
        }))
    }

    /// Whether scale and bias come from the weight table.
    pub(super) fn scale_from_table(&self) -> bool {
        match self {
            Post::Bypass { .. } | Post::Unknown { .. } => false,
            Post::Float(post) => post.scale.is_none(),
            Post::Integer(post) => post.scale.is_none(),
        }
    }

    /// Whether it is known what becomes of its values in a lookup table.
    pub(super) fn takes_lookup(&self) -> bool {
        matches!(self, Post::Float(_))
    }

    pub(super) fn unsupported(&self) -> Option<&str> {
        match self {
            Post::Unknown { reason } => Some(reason),
            _ => None,
        }
    }

    pub(super) fn unproven(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Post::Float(post) = self {
            match &post.target {
                FloatTarget::Float16 { flush: true, .. } => {
                    found.push("flushing of float16 denormals (ppe_fp16_ftz)".into());
                }
                FloatTarget::BFloat16 { .. } => found.push("bfloat16 results".into()),
                FloatTarget::Float8(format) => found.push(format!("{format} results")),
                FloatTarget::Float32 if post.high_clamp != i32::MAX => {
                    found.push("an upper clamp of float32 results".into());
                }
                _ => {}
            }
        }
        let (Post::Integer(integer)
        | Post::Float(FloatPost {
            target: FloatTarget::Integer(integer),
            ..
        })) = self
        else {
            return found;
        };
        if matches!(integer.target, IntegerTarget::Bytes(2 | 4)) {
            found.push("integer results of more than 8 bits".into());
        }
        if let Some((
            _,
            Scale {
                round: round @ (Round::NearestAway | Round::Down),
                shift: 1..,
                ..
            },
        )) = integer.scale
        {
            found.push(format!("integer rounding {round:?} (ppe_scale_round)"));
        }
        found
    }

    /// What a reader of a listing wants to know of the activation function.
    pub(super) fn describe(&self, has_lookup: bool) -> Vec<String> {
        let mut found = Vec::new();
        if has_lookup {
            found.push("lookup table".into());
        }
        match self {
            Post::Float(FloatPost {
                slope,
                high_clamp,
                limits,
                target,
                ..
            }) => {
                match slope {
                    Some(Slope::OfScaled(1.0)) | None => {}
                    // What a table gives is scaled, whatever its sign.
                    Some(Slope::ForScale(scale) | Slope::OfScaled(scale)) if has_lookup => {
                        found.push(format!("scaled by {scale}"));
                    }
                    Some(Slope::ForScale(0.0) | Slope::OfScaled(0.0)) => found.push("ReLU".into()),
                    Some(Slope::ForScale(slope) | Slope::OfScaled(slope)) => {
                        found.push(format!("slope {slope}"));
                    }
                }
                if let Some((low, high)) = *limits {
                    match (low > f32::MIN, high < f32::MAX) {
                        (true, true) => found.push(format!("clamp {low} to {high}")),
                        (true, false) => found.push(format!("at least {low}")),
                        (false, true) => found.push(format!("at most {high}")),
                        (false, false) => {}
                    }
                }
                if *high_clamp != i32::MAX && matches!(target, FloatTarget::Float16 { .. }) {
                    found.push(format!("at most {}", f16::from_bits(*high_clamp as u16)));
                }
            }
            Post::Integer(IntegerPost {
                slope,
                zero_point,
                low,
                high,
                target,
                ..
            }) => {
                match slope {
                    (0, _) => found.push("ReLU".into()),
                    (1, 0) => {}
                    (multiplier, shift) => found.push(format!("slope {multiplier}/2^{shift}")),
                }
                if *zero_point != 0 {
                    found.push(format!("zero point {zero_point}"));
                }
                match target {
                    IntegerTarget::Float16 if *high != i32::MAX => {
                        found.push(format!("at most {}", f16::from_bits(*high as u16)));
                    }
                    IntegerTarget::Bytes(_) if (*low, *high) != (i32::MIN, i32::MAX) => {
                        found.push(format!("clamp {low} to {high}"));
                    }
                    _ => {}
                }
            }
            Post::Bypass { .. } | Post::Unknown { .. } => {}
        }
        found
    }

    /// The type of the results.
    pub(super) fn result(&self) -> Option<ElementType> {
        match self {
            Post::Bypass { format } => Some(*format),
            Post::Float(FloatPost { target, .. }) => match target {
                FloatTarget::Float32 => Some(ElementType::Float32),
                FloatTarget::Float16 { .. } => Some(ElementType::Float16),
                FloatTarget::BFloat16 { .. } => Some(ElementType::BFloat16),
                FloatTarget::Float8(format) => Some(*format),
                FloatTarget::Integer(post) => post.result(),
            },
            Post::Integer(post) => post.result(),
            Post::Unknown { .. } => None,
        }
    }
}

impl IntegerPost {
    /// What is left of the integer stages behind the float ones: the zero point, and the limits of the stored type, whose sign the lower
    /// clamp tells.
    fn passing(i: &Invariant, bits: u32) -> IntegerPost {
        let zero_point = zero_point(i);
        let lowest = f64::from(f32::from_bits(i.ppe_scale_lclamp)) + zero_point as f64;
        let (low, high) = match (bits, lowest >= 0.0) {
            (8, true) => (0, 255),
            (16, true) => (0, 65535),
            (8, false) if f32::from_bits(i.ppe_scale_lclamp) > f32::MIN => (-128, 127),
            (8, false) => (-128, 255),
            (16, false) => (-32768, 32767),
            _ => (i32::MIN, i32::MAX),
        };
        let scale = Scale {
            multiplier: 1,
            shift: 0,
            round: Round::NearestEven,
        };
        IntegerPost {
            scale: Some((0, scale)),
            slope: (1, 0),
            zero_point,
            low,
            high,
            target: IntegerTarget::Bytes(bits / 8),
        }
    }

    /// `None` where integers become something that is not known.
    fn decode(i: &Invariant, bits: u32, convert: u32) -> Result<Option<IntegerPost>, DecodeError> {
        let target = match convert {
            0 => IntegerTarget::Bytes(bits / 8),
            1 if bits == 16 => IntegerTarget::Float16,
            1 => {
                return Err(DecodeError::new(
                    "odu dtype",
                    "16 bits for float16 (ppe_i32_convert 1)",
                    format_args!("{bits} bits"),
                ));
            }
            2 => return Ok(None),
            other => return Err(DecodeError::new("ppe_i32_convert", "0 to 2", other)),
        };
        let round = Round::from_register(i.ppe_scale_round)
            .ok_or_else(|| DecodeError::new("ppe_scale_round", "0, 2 or 3", i.ppe_scale_round))?;
        let scale = Scale {
            multiplier: i.ppe_scale_mult as u16,
            shift: i.ppe_scale_shift,
            round,
        };
        Ok(Some(IntegerPost {
            scale: (i.ppe_scale_override == 1).then_some((i.ppe_bias as i32, scale)),
            slope: (i64::from(i.ppe_prelu_mult), i.ppe_prelu_shift),
            zero_point: zero_point(i),
            low: i.ppe_scale_lclamp as i32,
            high: i.ppe_scale_hclamp as i32,
            target,
        }))
    }

    fn result(&self) -> Option<ElementType> {
        match self.target {
            IntegerTarget::Float16 => Some(ElementType::Float16),
            IntegerTarget::Bytes(1) if self.low >= 0 => Some(ElementType::UInt8),
            IntegerTarget::Bytes(1) => Some(ElementType::Int8),
            IntegerTarget::Bytes(2) => Some(ElementType::Int16),
            IntegerTarget::Bytes(4) => Some(ElementType::Int32),
            IntegerTarget::Bytes(_) => None,
        }
    }
}

/// Nine bits, two's complement.
fn zero_point(i: &Invariant) -> i64 {
    i64::from(i.ppe_g8_bias_c) - if i.ppe_g8_bias_c >= 1 << 8 { 1 << 9 } else { 0 }
}
