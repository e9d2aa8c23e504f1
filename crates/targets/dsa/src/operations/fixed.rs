//! Fixed point: 16 bits with 11 behind the point (Q4.11), 32 bits with 14 (Q17.14).
//!
//! Both saturate symmetrically: the most negative pattern of the type is never a result, its neighbour is.

use super::lane::{lane, lanes, zip};

/// Bits behind the point of a 16-bit number.
const FRACTION: u32 = 11;

/// Bits behind the point of a 32-bit number.
const FRACTION_32: u32 = 14;

fn saturate(value: i32) -> i16 {
    value.clamp(-i32::from(i16::MAX), i16::MAX.into()) as i16
}

fn saturate_32(value: i64) -> i32 {
    value.clamp(-i64::from(i32::MAX), i32::MAX.into()) as i32
}

pub(super) fn add(a: i16, b: i16) -> i16 {
    saturate(i32::from(a) + i32::from(b))
}

pub(super) fn sub(a: i16, b: i16) -> i16 {
    saturate(i32::from(a) - i32::from(b))
}

/// The simulator's subtraction of whole words: it takes both numbers for unsigned, and saturates the difference as a signed one.
/// Recorded streams have it so.
pub(super) fn sub_unsigned(a: u16, b: u16) -> u16 {
    saturate(i32::from(a) - i32::from(b)) as u16
}

/// Rounds towards zero.
pub(super) fn mul(a: i16, b: i16) -> i16 {
    saturate(i32::from(a) * i32::from(b) / (1 << FRACTION))
}

/// Rounds down.
pub(super) fn mul_32(a: i32, b: i32) -> i32 {
    saturate_32((i64::from(a) * i64::from(b)) >> FRACTION_32)
}

/// Adds and stops at the ends of the range: at the most positive pattern, and one above the most negative one. A sum that does not
/// overflow stays, the most negative pattern included.
pub(super) fn add_32(a: i32, b: i32) -> i32 {
    a.checked_add(b)
        .unwrap_or(if a < 0 { -i32::MAX } else { i32::MAX })
}

/// The same on 16 bits.
pub(super) fn add_wide(a: i16, b: i16) -> i16 {
    a.checked_add(b)
        .unwrap_or(if a < 0 { -i16::MAX } else { i16::MAX })
}

/// The simulator's subtraction: it takes a difference of numbers of equal sign for an overflow when its sign is not theirs, and
/// saturates then; real overflows wrap. Recorded streams have it so.
pub(super) fn sub_32(a: i32, b: i32) -> i32 {
    let difference = a.wrapping_sub(b);
    if (a < 0) == (b < 0) && (difference < 0) != (a < 0) {
        if a < 0 { -i32::MAX } else { i32::MAX }
    } else {
        difference
    }
}

/// Lanes of one word with lanes of the next: `f` of lanes 0 and 1, then 2 and 3 of `a` in the even lanes, `g` of those of `b` in the odd ones.
pub(super) fn butterfly(
    a: u64,
    b: u64,
    f: impl Fn(i16, i16) -> i16,
    g: impl Fn(i16, i16) -> i16,
) -> u64 {
    lanes(|i| {
        if i % 2 == 0 {
            f(lane(a, i), lane(a, i + 1))
        } else {
            g(lane(b, i - 1), lane(b, i))
        }
    })
}

/// Crossed product: lane 0 with lane 1 of the other word, 1 with 0, 2 with 3, 3 with 2.
pub(super) fn mul_crossed(a: u64, b: u64) -> u64 {
    lanes(|i| mul(lane(a, i), lane(b, i ^ 1)))
}

/// Lanes 0 and 2, 1 and 3 of `a`, then of `b`, added.
pub(super) fn reduce_complex(a: u64, b: u64) -> u64 {
    lanes(|i| {
        let from = if i < 2 { a } else { b };
        add(lane(from, i % 2), lane(from, i % 2 + 2))
    })
}

/// A function of the real number that each 16-bit lane stands for.
pub(super) fn map(a: u64, f: impl Fn(f64) -> f64) -> u64 {
    lanes(|i| from_real(f(to_real(f64::from(lane::<i16>(a, i))))) as i16)
}

/// The exponential of a whole word as a number with 11 bits behind the point.
pub(super) fn exp(a: u64) -> u64 {
    from_real(to_real(a as f64).exp()) as u64
}

fn to_real(value: f64) -> f64 {
    value / f64::from(1 << FRACTION)
}

/// Towards zero, at the ends of the 16-bit range it stops.
fn from_real(value: f64) -> i32 {
    let most = f64::from(i16::MAX) / f64::from(1 << FRACTION);
    (value.clamp(-most, most) * f64::from(1 << FRACTION)) as i32
}

/// Sum of the four lanes, saturating in pairs.
pub(super) fn reduce(a: u64) -> i16 {
    add_wide(
        add_wide(lane(a, 0), lane(a, 1)),
        add_wide(lane(a, 2), lane(a, 3)),
    )
}

/// Saturating accumulation, lane by lane.
pub(super) fn accumulate(sum: u64, a: u64) -> u64 {
    zip(sum, a, add)
}
