//! Pictures of video: luma for each pixel and chroma for each two by two.

use super::operation::Operation;
use super::tensor::{Call, Values};
use chipless_model::{Fault, Kind};

/// From Y and UV (NV12), or Y, U and V (I420), to three channels, the innermost dim, by the matrix of BT.601 for video range. Sizes
/// are those of `[channels][width][height][pictures]`, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Color {
    /// Blue comes first, not red.
    pub blue_first: bool,
}

impl Color {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let output = call.output(0)?;
        let [3, width, height, pictures] = output.dims[..] else {
            return Err(call.fault(format_args!("{output} is no picture of three channels")));
        };
        let planes: &[u32] = match call.operation {
            Operation::Nv12ToRgb => &[2],
            _ => &[1, 1],
        };
        let expected = |number: usize| match number.checked_sub(1) {
            Some(plane) => [planes[plane], width / 2, height / 2, pictures],
            None => [1, width, height, pictures],
        };
        let mut values = Vec::with_capacity(planes.len() + 1);
        for number in 0..=planes.len() {
            let input = call.input(number)?;
            if input.shape.dims != expected(number) || width % 2 != 0 || height % 2 != 0 {
                return Err(call.fault(format_args!("{} of a picture {output}", input.shape)));
            }
            values.push(match &input.values {
                Values::Float(values) => values.clone(),
                Values::Integer(values) => values.iter().map(|value| *value as f32).collect(),
            });
        }
        let chroma = |at: usize| match &values[1..] {
            [both] => (both[2 * at], both[2 * at + 1]),
            [u, v, ..] => (u[at], v[at]),
            [] => (128.0, 128.0),
        };
        let whole = output.element.kind() != Kind::Float;
        let mut channels = Vec::with_capacity(3 * values[0].len());
        let (width, height) = (width as usize, height as usize);
        for (at, luma) in values[0].iter().enumerate() {
            let (column, row, picture) = (at % width, at / width % height, at / width / height);
            let half = (picture * (height / 2) + row / 2) * (width / 2) + column / 2;
            let (u, v) = chroma(half);
            let (luma, u, v) = (1.164 * (luma - 16.0), u - 128.0, v - 128.0);
            let mut color = [
                luma + 1.596 * v,
                luma - 0.391 * u - 0.813 * v,
                luma + 2.018 * u,
            ];
            if self.blue_first {
                color.reverse();
            }
            let color = color.map(|value| value.clamp(0.0, 255.0));
            channels.extend(if whole { color.map(f32::round) } else { color });
        }
        Ok(if whole {
            Values::Integer(channels.iter().map(|value| *value as i64).collect())
        } else {
            Values::Float(channels)
        })
    }
}
