//! Tensors as batches of channels of volumes: what pools and samplers work on, in any memory order.

use super::tensor::{Call, Shape};
use chipless_model::Fault;

/// Sizes and element strides of batch, channel, depth, height and width. Dims that a tensor of lower rank lacks have
/// size 1: depth for four dims, batch for three, channel for two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub(super) sizes: [usize; 5],
    pub(super) strides: [usize; 5],
}

impl Volume {
    pub(super) fn new(call: Call<'_>, shape: &Shape) -> Result<Volume, Fault> {
        let places: &[usize] = match shape.dims.len() {
            2 => &[3, 4],
            3 => &[1, 3, 4],
            4 => &[0, 1, 3, 4],
            5 => &[0, 1, 2, 3, 4],
            rank => return Err(call.fault(format_args!("expected 2 to 5 dims, found {rank}"))),
        };
        let mut volume = Volume {
            sizes: [1; 5],
            strides: [0; 5],
        };
        for (logical, place) in places.iter().enumerate() {
            let around = call.around(shape, call.memory_axis(shape, logical)?)?;
            volume.sizes[*place] = around.size;
            volume.strides[*place] = around.inner;
        }
        Ok(volume)
    }

    /// Number of an element.
    pub(super) fn at(&self, index: [usize; 5]) -> usize {
        index
            .iter()
            .zip(self.strides)
            .map(|(index, stride)| index * stride)
            .sum()
    }
}
