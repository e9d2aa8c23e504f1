//! Reals to integers and back, by scale and zero point of a vector.

use super::document::Vector;
use super::session::Violation;

fn quantization(vector: &Vector) -> Result<super::Quantization, Violation> {
    let found = vector
        .quantization
        .filter(|q| q.scale > 0.0 && q.scale.is_finite());
    found.ok_or_else(|| {
        Violation::value(format!(
            "expected a positive scale of `{}` to quantise with, found none",
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
    quantize_to(vector, range, values)
}

/// The same for integers of a range: those of a program may have no sign.
///
/// # Errors
/// No scale, or a value that is no number.
pub fn quantize_to(
    vector: &Vector,
    range: std::ops::RangeInclusive<i64>,
    values: &[f64],
) -> Result<Vec<i64>, Violation> {
    let q = quantization(vector)?;
    let (low, high) = (*range.start() as f64, *range.end() as f64);
    let one = |(at, value): (usize, &f64)| {
        if value.is_nan() {
            return Err(Violation::value(format!(
                "expected numbers for `{}`, found none at element {at}",
                vector.key
            )));
        }
        Ok(((value / q.scale).floor() + q.zero_point).clamp(low, high) as i64)
    };
    values.iter().enumerate().map(one).collect()
}

/// Reals for integers: (value − zero point) × scale.
///
/// # Errors
/// No scale.
pub fn dequantize(vector: &Vector, values: &[i64]) -> Result<Vec<f64>, Violation> {
    let q = quantization(vector)?;
    Ok(values
        .iter()
        .map(|value| (*value as f64 - q.zero_point) * q.scale)
        .collect())
}
