//! A tensor as a picture: a heat map, numbers, or bytes.

use crate::tensor::Tensor;
use chipless_report::number;
use std::fmt::Write;

/// Shades from the smallest to the largest value.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Elements that a heat map looks at, at most.
const ELEMENTS: usize = 1 << 20;

/// Rows of shades: the last dimension goes to the right, all others down, as many elements to a cell as it takes. What is not finite
/// is an `N`.
pub(super) fn heat_map(tensor: &Tensor, width: usize, height: usize) -> Vec<String> {
    let count = tensor.len().min(ELEMENTS);
    if count == 0 || width == 0 || height == 0 {
        return Vec::new();
    }
    let columns = tensor
        .shape
        .last()
        .map_or(1, |n| (*n).max(1) as usize)
        .min(count);
    let columns = if columns == 1 {
        count.min(width)
    } else {
        columns
    };
    let rows = count.div_ceil(columns);
    let values = tensor.numbers(0, count);
    let finite = values.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    let (across, down) = (columns.min(width), rows.min(height));
    let mut picture = Vec::with_capacity(down);
    for row in 0..down {
        let ys = row * rows / down..((row + 1) * rows).div_ceil(down);
        let mut line = String::with_capacity(across * 3);
        for column in 0..across {
            let xs = column * columns / across..((column + 1) * columns).div_ceil(across);
            line.push(shade(&values, columns, &ys, &xs, (low, high)));
        }
        picture.push(line);
    }
    picture
}

/// The shade of a cell: its largest value.
fn shade(
    values: &[f64],
    columns: usize,
    rows: &std::ops::Range<usize>,
    within: &std::ops::Range<usize>,
    (low, high): (f64, f64),
) -> char {
    let mut largest = f64::NEG_INFINITY;
    for row in rows.clone() {
        for column in within.clone() {
            match values.get(row * columns + column) {
                Some(value) if !value.is_finite() => return 'N',
                Some(value) => largest = largest.max(*value),
                None => {}
            }
        }
    }
    if largest == f64::NEG_INFINITY {
        return ' ';
    }
    let share = if high > low {
        (largest - low) / (high - low)
    } else {
        0.5
    };
    SHADES[((share * 5.0) as usize).min(4)]
}

/// Numbers from the first on, as many as there is room for.
pub(super) fn numbers(tensor: &Tensor, width: usize, height: usize) -> Vec<String> {
    let across = (width / 10).max(1);
    let values = tensor.numbers(0, across * height);
    let row = |row: &[f64]| row.iter().map(|v| format!("{:>10}", number(*v))).collect();
    values.chunks(across).map(row).collect()
}

/// Bytes from the first on, as many as there is room for.
pub(super) fn hex(tensor: &Tensor, width: usize, height: usize) -> Vec<String> {
    let across = match width.saturating_sub(7) / 3 {
        32.. => 32,
        16.. => 16,
        _ => 8,
    };
    let rows = tensor.bytes.chunks(across).take(height).enumerate();
    let line = |(row, bytes): (usize, &[u8])| {
        let mut text = format!("{:05x} ", row * across);
        for byte in bytes {
            let _ = write!(text, " {byte:02x}");
        }
        text
    };
    rows.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::ElementType;

    #[test]
    fn large_values_are_dark_and_nan_stands_out() {
        let values = [0.0f32, 1.0, 2.0, f32::NAN, 3.0, 4.0];
        let tensor = Tensor {
            element: ElementType::Float32,
            shape: vec![2, 3],
            bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        assert_eq!(heat_map(&tensor, 10, 10), [" ░▒", "N▓█"]);
        assert_eq!(heat_map(&tensor, 1, 1), ["N"]);
        assert!(heat_map(&tensor, 0, 3).is_empty());
    }
}
