//! Bytes of elements to numbers and back.
//!
//! Elements are little-endian; types of less than a byte are packed low bits first, and the unused bits of the last byte
//! are written as zero. Decoding takes as many elements as the slice of numbers holds, encoding writes as many as it is
//! given; the bytes must be exactly as long as those elements take.
//!
//! Every conversion rounds at most once:
//!
//! | to | rule |
//! |---|---|
//! | a float type | to nearest, ties to even; overflow gives infinity, in `float8_e4m3fn`, which has none, NaN |
//! | an integer type, from floats | by [`Rounding`], then saturated to the range of the type; NaN gives 0 |
//! | an integer type, from integers | saturated; `int64` and `uint64` keep the 64 bits |
//! | `bool` | 1 for everything but zero |

use crate::Error;
use crate::wide::wide;
use chipless_model::{ElementType, Kind};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

mod float8;

#[cfg(test)]
mod tests;

/// How floats become integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest integer, ties to the even one.
    NearestEven,
    /// Towards zero.
    TowardZero,
}

/// Numbers converted at a time where a conversion takes two steps; few enough to stay in the first-level cache.
const BLOCK: usize = 512;

/// Reads the elements of an integer type as `$number`, by the rules of `as`. Float types return an error.
macro_rules! read_integers {
    ($element:expr, $bytes:expr, $values:expr, $number:ident) => {
        match $element {
            ElementType::Int64 => read($bytes, $values, |b| i64::from_le_bytes(b) as $number),
            ElementType::Int32 => read($bytes, $values, |b| i32::from_le_bytes(b) as $number),
            ElementType::Int16 => read($bytes, $values, |b| i16::from_le_bytes(b) as $number),
            ElementType::Int8 => read($bytes, $values, |b| i8::from_le_bytes(b) as $number),
            ElementType::Int4 => {
                read_packed::<4, _>($bytes, $values, |v| ((v << 4) as i8 >> 4) as $number)
            }
            ElementType::Int2 => {
                read_packed::<2, _>($bytes, $values, |v| ((v << 6) as i8 >> 6) as $number)
            }
            ElementType::UInt64 => read($bytes, $values, |b| u64::from_le_bytes(b) as $number),
            ElementType::UInt32 => read($bytes, $values, |b| u32::from_le_bytes(b) as $number),
            ElementType::UInt16 => read($bytes, $values, |b| u16::from_le_bytes(b) as $number),
            ElementType::UInt8 => read($bytes, $values, |[b]| b as $number),
            ElementType::UInt4 => read_packed::<4, _>($bytes, $values, |v| v as $number),
            ElementType::Binary => read_packed::<1, _>($bytes, $values, |v| v as $number),
            ElementType::Bool => read($bytes, $values, |[b]| u8::from(b != 0) as $number),
            element => {
                return Err(Error::Element {
                    element,
                    number: stringify!($number),
                })
            }
        }
    };
}

/// Writes floats as elements of an integer type, rounded by `$round`. Float types return an error.
macro_rules! write_integers {
    ($element:expr, $values:expr, $bytes:expr, $number:ident, $round:expr) => {
        match $element {
            ElementType::Int64 => write($values, $bytes, |v| ($round(v) as i64).to_le_bytes()),
            ElementType::Int32 => write($values, $bytes, |v| ($round(v) as i32).to_le_bytes()),
            ElementType::Int16 => write($values, $bytes, |v| ($round(v) as i16).to_le_bytes()),
            ElementType::Int8 => write($values, $bytes, |v| ($round(v) as i8).to_le_bytes()),
            ElementType::Int4 => {
                write_packed::<4, _>($values, $bytes, |v| ($round(v) as i8).clamp(-8, 7) as u8)
            }
            ElementType::Int2 => {
                write_packed::<2, _>($values, $bytes, |v| ($round(v) as i8).clamp(-2, 1) as u8)
            }
            ElementType::UInt64 => write($values, $bytes, |v| ($round(v) as u64).to_le_bytes()),
            ElementType::UInt32 => write($values, $bytes, |v| ($round(v) as u32).to_le_bytes()),
            ElementType::UInt16 => write($values, $bytes, |v| ($round(v) as u16).to_le_bytes()),
            ElementType::UInt8 => write($values, $bytes, |v| [$round(v) as u8]),
            ElementType::UInt4 => {
                write_packed::<4, _>($values, $bytes, |v| ($round(v) as u8).min(15))
            }
            ElementType::Binary => {
                write_packed::<1, _>($values, $bytes, |v| ($round(v) as u8).min(1))
            }
            ElementType::Bool => write($values, $bytes, |v: $number| [u8::from(v != 0.0)]),
            element => {
                return Err(Error::Element {
                    element,
                    number: stringify!($number),
                })
            }
        }
    };
}

/// Decodes elements of any type to `f32`. Floats of 32 bits or less are exact.
pub fn decode_f32(element: ElementType, bytes: &[u8], values: &mut [f32]) -> Result<(), Error> {
    check("bytes to decode", element, values.len(), bytes.len())?;
    match element {
        ElementType::Float64 => read(bytes, values, |b| f64::from_le_bytes(b) as f32),
        ElementType::Float32 => read(bytes, values, f32::from_le_bytes),
        ElementType::BFloat16 => read(bytes, values, |b| bf16::from_le_bytes(b).to_f32()),
        ElementType::Float16 => read_f16(bytes, values),
        ElementType::Float8E4M3Fn => read(bytes, values, |[b]| float8::decode::<4, 3, false>(b)),
        ElementType::Float8E4M3 => read(bytes, values, |[b]| float8::decode::<4, 3, true>(b)),
        ElementType::Float8E5M2 => read(bytes, values, |[b]| float8::decode::<5, 2, true>(b)),
        ElementType::Float8E3M4 => read(bytes, values, |[b]| float8::decode::<3, 4, true>(b)),
        _ => read_integers!(element, bytes, values, f32),
    }
    Ok(())
}

/// Decodes elements of any type to `f64`. Everything but integers beyond 2^53 is exact.
pub fn decode_f64(element: ElementType, bytes: &[u8], values: &mut [f64]) -> Result<(), Error> {
    check("bytes to decode", element, values.len(), bytes.len())?;
    match element {
        ElementType::Float64 => read(bytes, values, f64::from_le_bytes),
        ElementType::Float32 => read(bytes, values, |b| f64::from(f32::from_le_bytes(b))),
        _ if is_small_float(element) => {
            let mut block = [0.0; BLOCK];
            for (bytes, values) in bytes
                .chunks(BLOCK * element.bits() as usize / 8)
                .zip(values.chunks_mut(BLOCK))
            {
                let block = &mut block[..values.len()];
                decode_f32(element, bytes, block)?;
                for (value, narrow) in values.iter_mut().zip(block) {
                    *value = f64::from(*narrow);
                }
            }
        }
        _ => read_integers!(element, bytes, values, f64),
    }
    Ok(())
}

/// Decodes elements of an integer type to `i64`, exactly. `uint64` keeps its 64 bits: values of 2^63 and more appear
/// negative, and [`encode_i64`] restores them. Float types are an error.
pub fn decode_i64(element: ElementType, bytes: &[u8], values: &mut [i64]) -> Result<(), Error> {
    check("bytes to decode", element, values.len(), bytes.len())?;
    read_integers!(element, bytes, values, i64);
    Ok(())
}

/// Decodes elements of an integer type whose whole range fits, 8 bits or less and `int16`, to `i16`, exactly. Others are
/// an error.
pub fn decode_i16(element: ElementType, bytes: &[u8], values: &mut [i16]) -> Result<(), Error> {
    check("bytes to decode", element, values.len(), bytes.len())?;
    if element.bits() > 8 && element != ElementType::Int16 {
        return Err(Error::Element {
            element,
            number: "i16",
        });
    }
    read_integers!(element, bytes, values, i16);
    Ok(())
}

/// Encodes `f32` as elements of any type.
pub fn encode_f32(
    element: ElementType,
    values: &[f32],
    rounding: Rounding,
    bytes: &mut [u8],
) -> Result<(), Error> {
    check("bytes to encode into", element, values.len(), bytes.len())?;
    match element {
        ElementType::Float64 => write(values, bytes, |v| f64::from(v).to_le_bytes()),
        ElementType::Float32 => write(values, bytes, f32::to_le_bytes),
        ElementType::BFloat16 => write(values, bytes, |v| bf16::from_f32(v).to_le_bytes()),
        ElementType::Float16 => write_f16(values, bytes),
        ElementType::Float8E4M3Fn => write(values, bytes, |v| [float8::encode::<4, 3, false>(v)]),
        ElementType::Float8E4M3 => write(values, bytes, |v| [float8::encode::<4, 3, true>(v)]),
        ElementType::Float8E5M2 => write(values, bytes, |v| [float8::encode::<5, 2, true>(v)]),
        ElementType::Float8E3M4 => write(values, bytes, |v| [float8::encode::<3, 4, true>(v)]),
        _ => match rounding {
            Rounding::NearestEven => write_integers!(element, values, bytes, f32, nearest_even_f32),
            Rounding::TowardZero => write_integers!(element, values, bytes, f32, |v| v),
        },
    }
    Ok(())
}

/// Encodes `f64` as elements of any type.
pub fn encode_f64(
    element: ElementType,
    values: &[f64],
    rounding: Rounding,
    bytes: &mut [u8],
) -> Result<(), Error> {
    check("bytes to encode into", element, values.len(), bytes.len())?;
    match (element, rounding) {
        (ElementType::Float64, _) => write(values, bytes, f64::to_le_bytes),
        (ElementType::Float32, _) => write(values, bytes, |v| (v as f32).to_le_bytes()),
        _ if is_small_float(element) => {
            return write_small_floats(element, values, bytes, odd_from_f64);
        }
        (_, Rounding::NearestEven) => {
            write_integers!(element, values, bytes, f64, nearest_even_f64);
        }
        (_, Rounding::TowardZero) => write_integers!(element, values, bytes, f64, |v| v),
    }
    Ok(())
}

/// Encodes `i64` as elements of any type.
pub fn encode_i64(element: ElementType, values: &[i64], bytes: &mut [u8]) -> Result<(), Error> {
    check("bytes to encode into", element, values.len(), bytes.len())?;
    match element {
        ElementType::Float64 => write(values, bytes, |v| (v as f64).to_le_bytes()),
        ElementType::Float32 => write(values, bytes, |v| (v as f32).to_le_bytes()),
        ElementType::Int64 | ElementType::UInt64 => write(values, bytes, i64::to_le_bytes),
        ElementType::Int32 => write(values, bytes, |v| {
            (v.clamp(i32::MIN.into(), i32::MAX.into()) as i32).to_le_bytes()
        }),
        ElementType::Int16 => write(values, bytes, |v| {
            (v.clamp(i16::MIN.into(), i16::MAX.into()) as i16).to_le_bytes()
        }),
        ElementType::Int8 => write(values, bytes, |v| {
            (v.clamp(i8::MIN.into(), i8::MAX.into()) as i8).to_le_bytes()
        }),
        ElementType::Int4 => write_packed::<4, _>(values, bytes, |v| v.clamp(-8, 7) as u8),
        ElementType::Int2 => write_packed::<2, _>(values, bytes, |v| v.clamp(-2, 1) as u8),
        ElementType::UInt32 => write(values, bytes, |v| {
            (v.clamp(0, u32::MAX.into()) as u32).to_le_bytes()
        }),
        ElementType::UInt16 => write(values, bytes, |v| {
            (v.clamp(0, u16::MAX.into()) as u16).to_le_bytes()
        }),
        ElementType::UInt8 => write(values, bytes, |v| [v.clamp(0, u8::MAX.into()) as u8]),
        ElementType::UInt4 => write_packed::<4, _>(values, bytes, |v| v.clamp(0, 15) as u8),
        ElementType::Binary => write_packed::<1, _>(values, bytes, |v| v.clamp(0, 1) as u8),
        ElementType::Bool => write(values, bytes, |v| [u8::from(v != 0)]),
        _ => return write_small_floats(element, values, bytes, odd_from_i64),
    }
    Ok(())
}

fn check(
    operand: &'static str,
    element: ElementType,
    count: usize,
    found: usize,
) -> Result<(), Error> {
    let expected = (count as u128 * u128::from(element.bits())).div_ceil(8);
    if expected == found as u128 {
        Ok(())
    } else {
        Err(Error::Length {
            operand,
            expected,
            found,
        })
    }
}

fn read<const BYTES: usize, T>(bytes: &[u8], values: &mut [T], decode: impl Fn([u8; BYTES]) -> T) {
    wide(|| {
        for (value, element) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = decode(*element);
        }
    });
}

fn write<const BYTES: usize, T: Copy>(
    values: &[T],
    bytes: &mut [u8],
    encode: impl Fn(T) -> [u8; BYTES],
) {
    wide(|| {
        for (element, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *element = encode(*value);
        }
    });
}

fn read_packed<const BITS: usize, T>(bytes: &[u8], values: &mut [T], decode: impl Fn(u8) -> T) {
    wide(|| {
        for (values, byte) in values.chunks_mut(8 / BITS).zip(bytes) {
            for (i, value) in values.iter_mut().enumerate() {
                *value = decode(byte >> (i * BITS) & ((1 << BITS) - 1));
            }
        }
    });
}

fn write_packed<const BITS: usize, T: Copy>(
    values: &[T],
    bytes: &mut [u8],
    encode: impl Fn(T) -> u8,
) {
    wide(|| {
        for (byte, values) in bytes.iter_mut().zip(values.chunks(8 / BITS)) {
            *byte = values.iter().rev().fold(0, |byte: u8, value| {
                byte << BITS | encode(*value) & ((1 << BITS) - 1)
            });
        }
    });
}

fn read_f16(bytes: &[u8], values: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if has_f16() {
        let (vectors, rest) = bytes.as_chunks::<16>();
        let (places, values) = values.as_chunks_mut::<8>();
        // What does not fill a vector goes through one that it fills in part.
        let (mut vector, mut place) = ([0; 16], [0.0; 8]);
        // SAFETY: the CPU has the instructions.
        #[allow(unsafe_code)]
        unsafe {
            read_f16_vectors(vectors, places);
            if !values.is_empty() {
                vector[..rest.len()].copy_from_slice(rest);
                read_f16_vectors(&[vector], std::slice::from_mut(&mut place));
                values.copy_from_slice(&place[..values.len()]);
            }
        }
        return;
    }
    let mut block = [f16::ZERO; BLOCK];
    for (bytes, values) in bytes.chunks(2 * BLOCK).zip(values.chunks_mut(BLOCK)) {
        let block = &mut block[..values.len()];
        read(bytes, block, f16::from_le_bytes);
        block.convert_to_f32_slice(values);
    }
}

fn write_f16(values: &[f32], bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if has_f16() {
        let (vectors, rest) = values.as_chunks::<8>();
        let (places, bytes) = bytes.as_chunks_mut::<16>();
        // As in `read_f16`.
        let (mut vector, mut place) = ([0.0; 8], [0; 16]);
        // SAFETY: the CPU has the instructions.
        #[allow(unsafe_code)]
        unsafe {
            write_f16_vectors(vectors, places);
            if !rest.is_empty() {
                vector[..rest.len()].copy_from_slice(rest);
                write_f16_vectors(&[vector], std::slice::from_mut(&mut place));
                bytes.copy_from_slice(&place[..bytes.len()]);
            }
        }
        return;
    }
    let mut block = [f16::ZERO; BLOCK];
    for (bytes, values) in bytes.chunks_mut(2 * BLOCK).zip(values.chunks(BLOCK)) {
        let block = &mut block[..values.len()];
        block.convert_from_f32_slice(values);
        write(block, bytes, f16::to_le_bytes);
    }
}

/// Whether the CPU converts halves by itself. `half` does the same, with a call for each vector of eight; the numbers are the same, NaN
/// included, as those of its code for other CPUs.
#[cfg(target_arch = "x86_64")]
fn has_f16() -> bool {
    is_x86_feature_detected!("f16c") && is_x86_feature_detected!("avx")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
fn read_f16_vectors(vectors: &[[u8; 16]], places: &mut [[f32; 8]]) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
    for (place, vector) in places.iter_mut().zip(vectors) {
        // SAFETY: both are as large as what is read and written, which may stand at any address.
        #[allow(unsafe_code)]
        unsafe {
            let halves = _mm_loadu_si128(vector.as_ptr().cast());
            _mm256_storeu_ps(place.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
fn write_f16_vectors(vectors: &[[f32; 8]], places: &mut [[u8; 16]]) {
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps,
    };
    for (place, vector) in places.iter_mut().zip(vectors) {
        // SAFETY: both are as large as what is read and written, which may stand at any address.
        #[allow(unsafe_code)]
        unsafe {
            let floats = _mm256_loadu_ps(vector.as_ptr());
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(floats);
            _mm_storeu_si128(place.as_mut_ptr().cast(), halves);
        }
    }
}

fn is_small_float(element: ElementType) -> bool {
    element.kind() == Kind::Float && element.bits() <= 16
}

/// Encodes as a float type of 16 bits or less by way of `f32`, to which `odd` rounds to odd: where it is inexact, the last
/// bit is set. Such a value never lies on a tie of a type with two bits less, so that the second rounding is the only one.
fn write_small_floats<T: Copy>(
    element: ElementType,
    values: &[T],
    bytes: &mut [u8],
    odd: impl Fn(T) -> f32,
) -> Result<(), Error> {
    let mut block = [0.0; BLOCK];
    for (bytes, values) in bytes
        .chunks_mut(BLOCK * element.bits() as usize / 8)
        .zip(values.chunks(BLOCK))
    {
        let block = &mut block[..values.len()];
        for (wide, value) in block.iter_mut().zip(values) {
            *wide = odd(*value);
        }
        encode_f32(element, block, Rounding::NearestEven, bytes)?;
    }
    Ok(())
}

fn odd_from_f64(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let toward_zero = if f64::from(nearest.abs()) > value.abs() {
        nearest.to_bits() - 1
    } else {
        nearest.to_bits()
    };
    f32::from_bits(toward_zero | 1)
}

fn odd_from_i64(value: i64) -> f32 {
    let nearest = value as f32;
    let magnitude = nearest.abs() as u64;
    if magnitude == value.unsigned_abs() {
        return nearest;
    }
    let toward_zero = if magnitude > value.unsigned_abs() {
        nearest.to_bits() - 1
    } else {
        nearest.to_bits()
    };
    f32::from_bits(toward_zero | 1)
}

/// As `round_ties_even`, which costs a call where the baseline of the CPU has no instruction for it: adding 2^23 leaves no
/// bits for a fraction, and floats from there on have none.
fn nearest_even_f32(value: f32) -> f32 {
    let shift = 8_388_608_f32.copysign(value);
    if value.abs() < 8_388_608.0 {
        (value + shift) - shift
    } else {
        value
    }
}

/// See [`nearest_even_f32`].
fn nearest_even_f64(value: f64) -> f64 {
    let shift = 4_503_599_627_370_496_f64.copysign(value);
    if value.abs() < 4_503_599_627_370_496.0 {
        (value + shift) - shift
    } else {
        value
    }
}
