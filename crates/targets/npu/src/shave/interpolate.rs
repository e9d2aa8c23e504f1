//! Resizing of height and width.
//!
//! A tile computes its part of a larger output from its part of a larger input: coordinates are those of the whole tensors.
//! The kernel may get the columns and weights of linear modes as two more inputs, which agree with the formula to
//! binary16; here the formula is used. Coordinates and weights are binary64, values binary32.

use super::tensor::{Call, Values};
use chipless_model::Fault;

/// How an output element is made of input elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterpolateMode {
    /// The nearest one.
    Nearest,
    /// The weighted two of each dim.
    Linear,
    /// As linear, by another name.
    LinearOnnx,
    /// The weighted four of each dim.
    Cubic,
}

/// Where an output place lies in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinateMode {
    /// (g + ½) / scale − ½.
    HalfPixel,
    /// The same, 0 for an output of one.
    PytorchHalfPixel,
    /// g / scale.
    Asymmetric,
    /// (g + ½) / scale.
    TfHalfPixelForNearest,
    /// g · (input − 1) / (output − 1).
    AlignCorners,
}

/// Which element is nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearestMode {
    /// Halves go down.
    RoundPreferFloor,
    /// Halves go up.
    RoundPreferCeil,
    /// The one below.
    Floor,
    /// The one above.
    Ceil,
    /// The one above when the output is smaller than the input, else the one below.
    Simple,
}

/// Scalars of a resize. Arrays of four are memory dims, innermost first.
#[derive(Clone, Debug, PartialEq)]
pub struct Interpolate {
    /// How elements are combined.
    pub mode: InterpolateMode,
    /// How coordinates are made.
    pub coordinate_mode: CoordinateMode,
    /// How `Nearest` chooses.
    pub nearest_mode: NearestMode,
    /// Wider windows when the output is smaller. Not executed.
    pub antialias: bool,
    /// Sizes of the whole input.
    pub input_dims: [u32; 4],
    /// Sizes of the whole output.
    pub output_dims: [u32; 4],
    /// Logical dims to resize: 2 is height, 3 is width.
    pub axes: [u32; 2],
    /// Coefficient of the cubic kernel, −0.75 as a rule.
    pub cubic_coefficient: f32,
    /// Of this tile's input in the whole input.
    pub input_offset: [u32; 4],
    /// Of this tile's output in the whole output.
    pub output_offset: [u32; 4],
    /// Output over input along each axis; `None` where the sizes say it.
    pub scales: Option<[f32; 2]>,
}

/// Input places and weights of one output place.
type Taps = Vec<(usize, f32)>;

impl Interpolate {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        if self.antialias {
            return Err(call.unsupported("antialiasing is not executed"));
        }
        let (input, output) = (&call.input(0)?.shape, call.output(0)?);
        if input.dims.len() != 4 || output.dims.len() != 4 {
            return Err(call.fault(format_args!(
                "expected four dims, found {input} and {output}"
            )));
        }
        let mut dims = input.dims.clone();
        let mut values = call.floats(0)?.to_vec();
        let mut axes = [
            (0, call.memory_axis(input, self.axes[0] as usize)?),
            (1, call.memory_axis(input, self.axes[1] as usize)?),
        ];
        // What shrinks comes first, so that nothing in between is larger than both input and output.
        axes.sort_by_key(|(_, axis)| output.dims[*axis] > input.dims[*axis]);
        for (number, axis) in axes {
            let inner: usize = dims[..axis].iter().map(|dim| *dim as usize).product();
            let taps = self.taps(
                call,
                axis,
                number,
                dims[axis] as usize,
                output.dims[axis] as usize,
            )?;
            values = resample(&values, inner, dims[axis] as usize, &taps);
            dims[axis] = output.dims[axis];
        }
        if dims != output.dims {
            return Err(call.fault(format_args!(
                "{input} to {output} changes dims other than logical {:?}",
                self.axes
            )));
        }
        Ok(Values::Float(values))
    }

    /// The taps of every output place along a memory dim.
    fn taps(
        &self,
        call: Call<'_>,
        axis: usize,
        number: usize,
        inputs: usize,
        outputs: usize,
    ) -> Result<Vec<Taps>, Fault> {
        let (whole_input, whole_output) = (
            i64::from(self.input_dims[axis]),
            i64::from(self.output_dims[axis]),
        );
        let offset = i64::from(self.input_offset[axis]);
        (0..outputs as i64)
            .map(|output| {
                let global = output + i64::from(self.output_offset[axis]);
                let weights = self.weights(global, whole_input, whole_output, number);
                weights
                    .into_iter()
                    .filter(|(_, weight)| *weight != 0.0)
                    .map(|(place, weight)| {
                        let local = place.clamp(0, (whole_input - 1).max(0)) - offset;
                        // A place beyond the slice with next to no weight comes from rounding of the coordinate.
                        if !(0..inputs as i64).contains(&local) && weight.abs() > 1e-4 {
                            let expected = format!("{offset} to {}", offset + inputs as i64 - 1);
                            return Err(call.fault(format_args!(
                                "output place {global} needs input place {}, the tile has {expected}",
                                local + offset
                            )));
                        }
                        Ok((local.clamp(0, inputs as i64 - 1) as usize, weight))
                    })
                    .collect()
            })
            .collect()
    }

    /// Input places, not yet limited to the tensor, and weights of a place of the whole output.
    fn weights(&self, global: i64, input: i64, output: i64, number: usize) -> Vec<(i64, f32)> {
        let (g, inputs, outputs) = (global as f64, input as f64, output as f64);
        // Products before quotients: places that fall on an element are exact.
        let scaled = |g: f64| {
            self.scales
                .map_or(g * inputs / outputs, |scales| g / f64::from(scales[number]))
        };
        let place = match self.coordinate_mode {
            CoordinateMode::PytorchHalfPixel | CoordinateMode::AlignCorners if output <= 1 => 0.0,
            CoordinateMode::HalfPixel | CoordinateMode::PytorchHalfPixel => scaled(g + 0.5) - 0.5,
            CoordinateMode::Asymmetric => scaled(g),
            CoordinateMode::TfHalfPixelForNearest => scaled(g + 0.5),
            CoordinateMode::AlignCorners => g * (inputs - 1.0) / (outputs - 1.0),
        };
        match self.mode {
            InterpolateMode::Nearest => {
                let nearest = match self.nearest_mode {
                    NearestMode::RoundPreferFloor => (place - 0.5).ceil(),
                    NearestMode::RoundPreferCeil => (place + 0.5).floor(),
                    NearestMode::Simple if scaled(1.0) > 1.0 => place.ceil(),
                    NearestMode::Floor | NearestMode::Simple => place.floor(),
                    NearestMode::Ceil => place.ceil(),
                };
                vec![(nearest as i64, 1.0)]
            }
            InterpolateMode::Linear | InterpolateMode::LinearOnnx => {
                let place = place.clamp(0.0, (inputs - 1.0).max(0.0));
                let fraction = place - place.floor();
                let left = place.floor() as i64;
                vec![(left, (1.0 - fraction) as f32), (left + 1, fraction as f32)]
            }
            InterpolateMode::Cubic => {
                let left = place.floor() as i64;
                cubic_weights(place - place.floor(), f64::from(self.cubic_coefficient))
                    .into_iter()
                    .zip([-1, 0, 1, 2])
                    .map(|(weight, step)| (left.saturating_add(step), weight as f32))
                    .collect()
            }
        }
    }
}

/// Weights of the four elements around a place, `fraction` after the second (Keys' cubic convolution).
pub(super) fn cubic_weights(fraction: f64, a: f64) -> [f64; 4] {
    let near = |t: f64| ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
    let far = |t: f64| a * (((t - 5.0) * t + 8.0) * t - 4.0);
    [
        far(fraction + 1.0),
        near(fraction),
        near(1.0 - fraction),
        far(2.0 - fraction),
    ]
}

/// Replaces a dim by weighted sums of its places.
fn resample(values: &[f32], inner: usize, size: usize, taps: &[Taps]) -> Vec<f32> {
    let mut results = Vec::with_capacity(values.len() / size.max(1) * taps.len());
    for plane in values.chunks_exact(inner * size) {
        for taps in taps {
            let start = results.len();
            results.resize(start + inner, 0.0);
            for (place, weight) in taps {
                for (result, value) in results[start..].iter_mut().zip(&plane[place * inner..]) {
                    *result += weight * value;
                }
            }
        }
    }
    results
}
