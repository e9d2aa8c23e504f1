//! Reals to integers and back, by scale and zero point of a vector.

use super::document::Vector;
use super::violation::Violation;

fn quantization(vector: &Vector) -> Result<super::Quantization, Violation> {
    let found = vector
        .quantization
        .filter(|q| q.scale > 0.0 && q.scale.is_finite());
    found.ok_or_else(|| {
        Violation::value(format!(
            "expected a positive scale of `{}` in the IOSpec to quantise with, found none",
            vector.key
        ))
    })
}

/// Integers for reals: divided by the scale, rounded down as the compiler's own quantiser does, the zero point added,
/// clipped to the precision.
///
/// # Errors
/// No scale, a precision that makes no sense, or a value that is no number.
pub fn quantize(vector: &Vector, values: &[f64]) -> Result<Vec<i64>, Violation> {
    let range = vector.range().ok_or_else(|| {
        Violation::value(format!(
            "expected a precision of 1 to 63 bits, found {}",
            vector.precision
        ))
    })?;
    let range = i128::from(*range.start())..=i128::from(*range.end());
    let integers = quantize_to(vector, range, values)?;
    Ok(integers.into_iter().map(|v| v as i64).collect())
}

/// The same for integers of a range: those of a program may have no sign, or 64 bits.
///
/// # Errors
/// No scale, or a value that is no number.
pub fn quantize_to(
    vector: &Vector,
    range: std::ops::RangeInclusive<i128>,
    values: &[f64],
) -> Result<Vec<i128>, Violation> {
    let q = quantization(vector)?;
    let (low, high) = range.into_inner();
    let one = |(at, value): (usize, &f64)| {
        if value.is_nan() {
            return Err(Violation::value(format!(
                "expected numbers for `{}`, found none at element {at}",
                vector.key
            )));
        }
        Ok((((value / q.scale).floor() + q.zero_point) as i128).clamp(low, high))
    };
    values.iter().enumerate().map(one).collect()
}

/// Reals for integers: (value − zero point) × scale.
///
/// # Errors
/// No scale.
pub fn dequantize(
    vector: &Vector,
    values: impl IntoIterator<Item = i128>,
) -> Result<Vec<f64>, Violation> {
    let q = quantization(vector)?;
    Ok(values
        .into_iter()
        .map(|value| (value as f64 - q.zero_point) * q.scale)
        .collect())
}
