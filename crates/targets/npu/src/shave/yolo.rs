//! Layers of YOLO networks, as `OpenVINO`'s reference computes them.

use super::activation::sigmoid;
use super::tensor::{Call, Values};
use super::volume::Volume;
use chipless_model::Fault;

/// Logistic functions over coordinates, objectness and classes of each region, or a softmax over its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionYolo {
    /// Numbers that say where a box is.
    pub coordinates: u32,
    /// Classes.
    pub classes: u32,
    /// Boxes of a place.
    pub regions: u32,
    /// Softmax over the classes, not logistic functions.
    pub softmax: bool,
}

impl RegionYolo {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let shape = &call.input(0)?.shape;
        let x = Volume::new(call, shape)?;
        let [batches, channels, _, height, width] = x.sizes;
        let [coordinates, classes, regions] =
            [self.coordinates, self.classes, self.regions].map(|count| count as usize);
        let each = coordinates + classes + 1;
        if regions.checked_mul(each) != Some(channels) {
            return Err(call.fault(format_args!(
                "{regions} regions of {each} channels in {shape}"
            )));
        }
        call.expect_elements("output", call.output(0)?, shape.elements() as usize)?;
        let mut values = call.floats(0)?.to_vec();
        for batch in 0..batches {
            for place in 0..height * width {
                let (v, h) = (place / width, place % width);
                for region in 0..regions {
                    let at = |entry: usize| x.at([batch, region * each + entry, 0, v, h]);
                    let logistic = if self.softmax { 1 } else { 1 + classes };
                    for entry in (0..coordinates.min(2)).chain(coordinates..coordinates + logistic)
                    {
                        values[at(entry)] = sigmoid(values[at(entry)]);
                    }
                    if self.softmax {
                        softmax(&mut values, (coordinates + 1..each).map(at).collect());
                    }
                }
            }
        }
        Ok(Values::Float(values))
    }
}

fn softmax(values: &mut [f32], places: Vec<usize>) {
    let highest = places
        .iter()
        .map(|at| values[*at])
        .fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = places.iter().map(|at| (values[*at] - highest).exp()).sum();
    for at in places {
        values[at] = (values[at] - highest).exp() / sum;
    }
}

/// Blocks of space become channels, in the order of the inverse operation's places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReorgYolo {
    /// Height and width of a block.
    pub stride: u32,
}

impl ReorgYolo {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (shape, output) = (&call.input(0)?.shape, call.output(0)?);
        let values = call.floats(0)?;
        let stride = self.stride as usize;
        let [batches, channels, _, height, width] = Volume::new(call, shape)?.sizes;
        // The block is taken for the input of the inverse operation: as many numbers, in other sizes.
        let deep = stride
            .checked_mul(stride)
            .and_then(|block| channels.checked_div(block));
        let Some(deep) = deep.filter(|deep| *deep > 0 && deep * stride * stride == channels) else {
            return Err(call.fault(format_args!("stride {stride} does not divide {shape}")));
        };
        call.expect_elements("output", output, values.len())?;
        let mut results = Vec::with_capacity(values.len());
        for batch in 0..batches {
            for channel in 0..channels {
                let (offset, channel) = (channel / deep, channel % deep);
                for row in 0..height {
                    for column in 0..width {
                        let v = row * stride + offset / stride;
                        let h = column * stride + offset % stride;
                        let line = (batch * deep + channel) * height * stride + v;
                        results.push(values[line * width * stride + h]);
                    }
                }
            }
        }
        Ok(Values::Float(results))
    }
}
