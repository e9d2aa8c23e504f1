//! What a convolution takes by the shape of the DPU alone: its multipliers, its accumulator contexts, and the reads that these ask for.
//!
//! In a cycle, the multipliers take 4 × 4 positions, 16 output channels and, of 8-bit numbers, 8 input channels. 64 contexts of such blocks
//! accumulate at a time: 16 blocks of positions with 4 of channels, 8 with 8, or 4 with 16, as the workload asks. What is beyond them is
//! another pass: each pass over positions reads the weights again, each pass over channels the activations.

use super::figures::DpuFigures;
use super::geometry::Axes;
use super::grid::BLOCK;
use super::operation::Operation;
use super::workload::Workload;

impl Workload {
    /// The least time of a convolution of whose weights a part is `present`, in cycles of the DPU clock: its multiplications, or its reads,
    /// whichever take longer. `None` for other operations.
    pub fn least_cycles(&self, figures: &DpuFigures, present: f64) -> Option<f64> {
        let (window, extent) = (self.geometry.window(), self.geometry.extent());
        if self.operation != Operation::Convolution {
            return None;
        }
        let channels = self.channels_read() as f64;
        let taps = self.geometry.taps() as f64;
        let bits = self.input.format.bits().max(self.weights.format.bits());
        let Axes { x, y, z } = extent;
        let blocks = x.div_ceil(BLOCK.0) * y.div_ceil(BLOCK.0) * z.div_ceil(BLOCK.1);
        let stencil = (BLOCK.0 * BLOCK.0 * BLOCK.1) as f64;
        let at_once = (figures.macs.of(bits) / stencil).max(1.0);
        let multiplied = figures.sparse.multiplied(present);
        let multiply = blocks as f64 * taps * (channels / at_once).ceil() * multiplied;
        let (over_positions, over_channels) = self.grid.passes(extent, figures.stencil.contexts);
        let bytes = |elements: f64, bits: u64| elements * bits as f64 / 8.0;
        let weights = bytes(taps * channels * z as f64, self.weights.format.bits());
        let positions = (window.x * window.y) as f64;
        let activations = bytes(positions * channels, self.input.format.bits());
        let read = weights * over_positions as f64 + activations * over_channels as f64;
        Some(multiply.max(read / figures.stencil.read))
    }
}
