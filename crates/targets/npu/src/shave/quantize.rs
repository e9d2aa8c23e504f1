//! Changes of number format.

use super::tensor::{Broadcast, Call, Values};
use chipless_model::{ElementType, Fault, Kind};

/// The least and the greatest value of an integer type; u64 ends where i64 does.
pub(super) fn integer_range(element: ElementType) -> (i64, i64) {
    let bits = element.bits().clamp(1, 64) as u32;
    match element.kind() {
        Kind::Signed | Kind::Float => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        Kind::Unsigned if bits == 64 => (0, i64::MAX),
        Kind::Unsigned => (0, (1 << bits) - 1),
    }
}

/// The low bits of a value, read as an integer type: what stays of a result that is too large for it.
pub(super) fn wrap(element: ElementType, value: i64) -> i64 {
    let unused = 64 - element.bits().clamp(1, 64) as u32;
    match element.kind() {
        Kind::Signed | Kind::Float => value << unused >> unused,
        Kind::Unsigned => ((value as u64) << unused >> unused) as i64,
    }
}

/// Change of element type. To an integer type: towards zero, then the nearest value that the type has; NaN is 0.
/// A boolean is an i8 of 0 or 1 to the kernels: it converts like any i8.
pub(super) fn convert(call: Call<'_>) -> Result<Values, Fault> {
    let output = call.output(0)?;
    let (low, high) = integer_range(output.element);
    Ok(match (&call.input(0)?.values, output.element.kind()) {
        (Values::Float(x), Kind::Float) => Values::Float(x.clone()),
        (Values::Float(x), _) => {
            Values::Integer(x.iter().map(|x| (*x as i64).clamp(low, high)).collect())
        }
        (Values::Integer(x), Kind::Float) => Values::Float(x.iter().map(|x| *x as f32).collect()),
        (Values::Integer(x), _) => {
            Values::Integer(x.iter().map(|x| (*x).clamp(low, high)).collect())
        }
    })
}

/// (x − zero point) · scale along one dim.
#[derive(Clone, Debug, PartialEq)]
pub struct Dequantize {
    /// Memory dim, innermost 0, of the channels.
    pub axis: usize,
    /// One scale for each place of the dim, or one for all.
    pub scales: Vec<f32>,
    /// As many zero points.
    pub zero_points: Vec<f32>,
}

impl Dequantize {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let x = call.input(0)?;
        let channels = call.around(&x.shape, self.axis)?.size;
        if self.scales.len() != self.zero_points.len()
            || (self.scales.len() != 1 && self.scales.len() != channels)
        {
            return Err(call.fault(format_args!(
                "expected 1 or {channels} scales, found {}",
                self.scales.len()
            )));
        }
        let mut dims = vec![1; x.shape.dims.len()];
        dims[self.axis] = self.scales.len() as u32;
        let x_values = call.integers(0)?;
        let walk = Broadcast::new(&x.shape.dims, [&x.shape.dims, &dims])
            .map_err(|_| call.fault("channels do not fit"))?;
        let mut values = Vec::with_capacity(x_values.len());
        walk.for_each(|[i, channel]| {
            values.push((x_values[i] as f32 - self.zero_points[channel]) * self.scales[channel]);
        });
        Ok(Values::Float(values))
    }
}

/// Quantisation to a number of levels and back: x, the range of x, the range of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeQuantize {
    /// Levels, ends included.
    pub levels: u32,
}

impl FakeQuantize {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let x = call.floats(0)?;
        let [low, high, out_low, out_high] = [
            call.floats(1)?,
            call.floats(2)?,
            call.floats(3)?,
            call.floats(4)?,
        ];
        let steps = (self.levels - 1) as f32;
        let dims = &call.input(0)?.shape.dims;
        let mut values = Vec::with_capacity(x.len());
        let mut elements = x.iter();
        call.broadcast(dims, [1, 2, 3, 4])?
            .for_each(|[a, b, c, d]| {
                if let Some(x) = elements.next() {
                    let (low, high, out_low, out_high) = (low[a], high[b], out_low[c], out_high[d]);
                    values.push(if *x <= low.min(high) {
                        out_low
                    } else if *x > low.max(high) {
                        out_high
                    } else {
                        let level = ((x - low) / (high - low) * steps).round_ties_even();
                        level / steps * (out_high - out_low) + out_low
                    });
                }
            });
        Ok(Values::Float(values))
    }
}

/// Quantises x to u8: the range of scale and zero point holds 0 and the extremes that are given as inputs 1 and 2.
pub(super) fn dynamic_quantize(call: Call<'_>) -> Result<Vec<Values>, Fault> {
    let x = call.floats(0)?;
    let extreme = |index| -> Result<f32, Fault> {
        let values = call.floats(index)?;
        call.expect_elements("extreme", &call.input(index)?.shape, 1)?;
        Ok(values[0])
    };
    let (minimum, maximum) = (extreme(1)?.min(0.0), extreme(2)?.max(0.0));
    // A tensor of zeros has no range: any scale will do, and 1 divides.
    let range = maximum - minimum;
    let scale = if range == 0.0 { 1.0 } else { range / 255.0 };
    let zero_point = (-minimum / scale).round_ties_even().clamp(0.0, 255.0);
    let quantized = x
        .iter()
        .map(|x| ((x / scale).round_ties_even() + zero_point).clamp(0.0, 255.0) as i64)
        .collect();
    Ok(vec![
        Values::Integer(quantized),
        Values::Float(vec![scale]),
        Values::Integer(vec![zero_point as i64]),
    ])
}
