//! Figures of the machine file that time workloads.

use serde::Deserialize;

/// Figures of the block model: a DPU works on blocks of 4 × 4 positions and 16 output channels, and started blocks count whole. Where each
/// figure comes from stands in `machine.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpuFigures {
    /// Convolutions: a tap is one of one input channel.
    pub convolution: Cost,
    /// Depthwise convolutions.
    pub depthwise: Cost,
    /// Average pools.
    pub average_pool: Cost,
    /// Max pools.
    pub max_pool: Cost,
    /// Elementwise operations, which have a single tap.
    pub elementwise: Cost,
    /// Multiplications a cycle.
    pub macs: Multipliers,
    /// The shape of the DPU.
    pub stencil: Stencil,
    /// Time of elements of 8 bits relative to those of 16.
    pub narrow: f64,
    /// Convolutions with sparse weights.
    pub sparse: Sparse,
    /// Time of the taps of a depthwise convolution of 3 × 3 with a stride of 1 along a row, relative to those of others.
    pub depthwise_3x3: f64,
    /// What a tap of one input channel of a convolution takes at least for a block's positions, for all its output channels together.
    pub activations: f64,
}

/// What a convolution with sparse weights costs, in cycles of the DPU clock: it reads activations, multiplies and finishes blocks, and the
/// three overlap in part.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sparse {
    /// From the start to the first block, and from the last sum to the last byte in memory.
    pub fixed: f64,
    /// A tap of one input channel, read once for a block's positions and up to 64 output channels.
    pub activations: f64,
    /// A tap of a block whose weight is there.
    pub tap: f64,
    /// How much longer the present weights take than their part of all: blocks wait for the channel that has most of them.
    pub uneven: f64,
    /// A block, whatever its taps.
    pub block: f64,
    /// A 16-bit element of the input's window.
    pub read: f64,
    /// A 16-bit element of the output.
    pub written: f64,
    /// The exponent of the norm that joins the three: 1 adds them, and the greater it is the more they overlap.
    pub norm: f64,
}

impl Sparse {
    /// The part of a dense convolution's multiplications that takes the time of those whose weights are there, which are `present` of all.
    pub(super) fn multiplied(&self, present: f64) -> f64 {
        (present * (1.0 + self.uneven * (1.0 - present))).min(1.0)
    }

    /// Names and values.
    const fn parts(&self) -> [(&'static str, f64); 8] {
        [
            ("fixed", self.fixed),
            ("activations", self.activations),
            ("tap", self.tap),
            ("uneven", self.uneven),
            ("block", self.block),
            ("read", self.read),
            ("written", self.written),
            ("norm", self.norm),
        ]
    }
}

/// What a workload of one kind costs, in cycles of the DPU clock.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// From the start to the first block, and from the last sum to the last byte in memory.
    pub fixed: f64,
    /// A tap of a block of 16-bit elements.
    pub tap: f64,
    /// A block, whatever its taps.
    pub block: f64,
    /// A 16-bit element of the input's window.
    pub read: f64,
    /// A 16-bit element of the output.
    pub written: f64,
    /// A weight.
    #[serde(default)]
    pub weight: f64,
}

impl Cost {
    /// Names and values.
    const fn parts(&self) -> [(&'static str, f64); 6] {
        [
            ("fixed", self.fixed),
            ("tap", self.tap),
            ("block", self.block),
            ("read", self.read),
            ("written", self.written),
            ("weight", self.weight),
        ]
    }
}

impl DpuFigures {
    /// Names and values of the cost that a section of the machine file holds.
    pub(crate) fn of(&self, section: &str) -> Option<Vec<(&'static str, f64)>> {
        let cost = match section {
            "dpu.convolution" => &self.convolution,
            "dpu.depthwise" => &self.depthwise,
            "dpu.average_pool" => &self.average_pool,
            "dpu.max_pool" => &self.max_pool,
            "dpu.elementwise" => &self.elementwise,
            "dpu.sparse" => return Some(self.sparse.parts().to_vec()),
            _ => return None,
        };
        Some(cost.parts().to_vec())
    }

    /// Every figure, for checks.
    pub(crate) fn all(&self) -> impl Iterator<Item = f64> {
        [
            self.convolution,
            self.depthwise,
            self.average_pool,
            self.max_pool,
            self.elementwise,
        ]
        .into_iter()
        .flat_map(|cost| cost.parts().to_vec())
        .chain(self.sparse.parts())
        .map(|(_, value)| value)
        .chain([self.narrow, self.depthwise_3x3, self.activations])
    }

    /// Every rate, for checks.
    pub(crate) const fn rates(&self) -> [(&'static str, f64); 6] {
        [
            ("dpu.sparse.norm", self.sparse.norm),
            ("dpu.macs.float16", self.macs.float16),
            ("dpu.macs.int8", self.macs.int8),
            ("dpu.macs.fitted", self.macs.fitted),
            ("dpu.stencil.contexts", self.stencil.contexts),
            ("dpu.stencil.read", self.stencil.read),
        ]
    }
}

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
    pub(super) fn of(&self, bits: u64) -> f64 {
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
