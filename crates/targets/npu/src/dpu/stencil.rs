//! What a convolution takes by the shape of the DPU alone: its multipliers, its accumulator contexts, and the reads that these ask for.
//!
//! In a cycle, the multipliers take 4 × 4 positions, 16 output channels and, of 8-bit numbers, 8 input channels. 64 contexts of such blocks
//! accumulate at a time: 16 blocks of positions with 4 of channels, 8 with 8, or 4 with 16, as the workload asks. What is beyond them is
//! another pass: each pass over positions reads the weights again, each pass over channels the activations.

use super::cost::DpuFigures;
use super::geometry::Axes;
use super::workload::{Operation, Workload};
use serde::Deserialize;

/// Which costs time a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Those that are fitted to the compiler's estimates.
    Fitted,
    /// Those that follow from the shape of the DPU.
    Stencil,
}

/// Multiplications a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multipliers {
    /// Of numbers of 16 bits.
    pub float16: f64,
    /// Of numbers of 8 bits.
    pub int8: f64,
    /// Of numbers of 16 bits, where the fitted costs of taps hold.
    pub fitted: f64,
}

impl Multipliers {
    /// Of numbers of so many bits.
    fn of(&self, bits: u64) -> f64 {
        if bits <= 8 { self.int8 } else { self.float16 }
    }

    /// What a tap of numbers of so many bits takes of the fitted cost of one.
    pub(super) fn tap(&self, bits: u64) -> f64 {
        self.fitted / self.of(bits)
    }
}

/// The shape of the DPU.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stencil {
    /// Which costs time a convolution.
    pub model: Model,
    /// Blocks that accumulate at a time.
    pub contexts: f64,
    /// Bytes that the DPU reads from CMX in a cycle of its own.
    pub read: f64,
}

/// Positions, and output channels, of a block.
const BLOCK: (usize, usize) = (4, 16);
/// Blocks that accumulate at a time, as registers name them.
const CONTEXTS: usize = 64;

/// How the contexts are divided: `nthw_ntk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Blocks of positions.
    positions: usize,
}

impl Grid {
    pub(super) fn decode(nthw_ntk: u32) -> Grid {
        let positions = match nthw_ntk {
            1 => 4,
            3 => 16,
            _ => 8,
        };
        Grid { positions }
    }

    /// Passes over positions and over output channels that a box takes, with so many contexts.
    fn passes(self, extent: Axes, contexts: f64) -> (usize, usize) {
        let Axes { x, y, z } = extent;
        let positions = x.div_ceil(BLOCK.0) * y.div_ceil(BLOCK.0);
        let channels = z.div_ceil(BLOCK.1);
        let share = contexts / CONTEXTS as f64;
        let room = |blocks: usize| ((blocks as f64 * share) as usize).max(1);
        (
            positions.div_ceil(room(self.positions)),
            channels.div_ceil(room(CONTEXTS / self.positions)),
        )
    }

    /// Whether a box accumulates at one time.
    pub(super) fn holds(self, extent: Axes) -> bool {
        self.passes(extent, CONTEXTS as f64) == (1, 1)
    }

    /// `8x8`, as the notes on VPU4 write it.
    pub(super) fn describe(self) -> String {
        format!("{}x{}", self.positions, CONTEXTS / self.positions)
    }
}

impl Workload {
    /// The least time of a convolution, in cycles of the DPU clock: its multiplications, or its reads, whichever take longer. `None` for
    /// other operations.
    pub fn least_cycles(&self, figures: &DpuFigures) -> Option<f64> {
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
        let dense = if self.weights.dense {
            1.0
        } else {
            figures.sparse_weights
        };
        let multiply = blocks as f64 * taps * (channels / at_once).ceil() * dense;
        let (over_positions, over_channels) = self.grid.passes(extent, figures.stencil.contexts);
        let bytes = |elements: f64, bits: u64| elements * bits as f64 / 8.0;
        let weights = bytes(taps * channels * z as f64, self.weights.format.bits());
        let positions = (window.x * window.y) as f64;
        let activations = bytes(positions * channels, self.input.format.bits());
        let read = weights * over_positions as f64 + activations * over_channels as f64;
        Some(multiply.max(read / figures.stencil.read))
    }
}
