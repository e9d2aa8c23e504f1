//! How long a workload takes, and what listings say of it.

use super::geometry::Axes;
use super::workload::{Operation, Workload};
use serde::Deserialize;
use std::borrow::Cow;

/// Figures of the block model: a DPU works on blocks of 4 × 4 positions and 16 output channels, and started blocks count
/// whole. Cycles are those of the DPU clock.
///
/// The block model and the figures marked *measured* come from the one published silicon profile of NPU4 (age-gender
/// network, DPU records of nine variants); the others from the theoretical rates or from VPUNN's estimates for VPU 4.0.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpuFigures {
    /// A block of a 16-bit convolution, for each tap of each input channel. 1024 multiplications a cycle give 0.25;
    /// measured 0.24.
    pub convolution: f64,
    /// A block of a 16-bit depthwise convolution or average pool, for each tap. VPUNN: 37.8 cycles for 3 × 3 taps.
    pub depthwise: f64,
    /// A block of a 16-bit max pool, for each tap. Measured: 47 to 51 cycles for 3 × 3 taps.
    pub max_pool: f64,
    /// A block of a 16-bit elementwise operation. Measured 15.6 on a permuting one; VPUNN: 21.1.
    pub elementwise: f64,
    /// Time of 8-bit elements relative to that of 16-bit ones. Twice the multiplications a cycle; no measurement is public.
    pub narrow: f64,
    /// Time of a convolution with sparse weights relative to that of a dense one. Measured: 0.52 with 81 % of the weights absent.
    pub sparse_weights: f64,
    /// From the last sum to the last byte in memory. Measured: 180 to 1000 cycles, 636 on average.
    pub drain: f64,
}

impl Default for DpuFigures {
    fn default() -> DpuFigures {
        DpuFigures {
            convolution: 0.25,
            depthwise: 4.2,
            max_pool: 5.3,
            elementwise: 21.1,
            narrow: 0.5,
            sparse_weights: 0.52,
            drain: 636.0,
        }
    }
}

impl Workload {
    /// An estimate of the time, in cycles of the DPU clock.
    pub fn cycles(&self, figures: &DpuFigures) -> f64 {
        let Axes { x, y, z } = self.geometry.extent();
        let blocks = (x.div_ceil(4) * y.div_ceil(4) * z.div_ceil(16)) as f64;
        let taps = self.geometry.taps() as f64;
        let mut block = match self.operation {
            Operation::Convolution => {
                // A compressed input has the four channels that are stored, not those that the registers name.
                let channels = if self.input.pattern.is_some() {
                    4
                } else {
                    self.geometry.channels
                };
                let sparse = if self.weights.dense {
                    1.0
                } else {
                    figures.sparse_weights
                };
                figures.convolution * taps * channels as f64 * sparse
            }
            Operation::Depthwise | Operation::AveragePool { .. } => figures.depthwise * taps,
            Operation::MaxPool => figures.max_pool * taps,
            Operation::Add { .. } => figures.elementwise,
        };
        if self.input.format.bits() <= 8 {
            block *= figures.narrow;
        }
        blocks * block + figures.drain
    }

    /// Arithmetic operations, absent weights counted: a multiplication and an addition are two.
    pub fn arithmetic(&self) -> u64 {
        let Axes { x, y, z } = self.geometry.extent();
        let (outputs, taps) = (x * y * z, self.geometry.taps());
        let each = match self.operation {
            Operation::Convolution => 2 * taps * self.geometry.channels,
            Operation::Depthwise | Operation::AveragePool { .. } => 2 * taps,
            Operation::MaxPool => taps,
            Operation::Add { .. } => 1,
        };
        outputs as u64 * each as u64
    }

    /// The operation in the field's words: `conv 3x3 stride 1`.
    pub fn operation(&self) -> Cow<'static, str> {
        let (x, y) = (self.geometry.x, self.geometry.y);
        let stride = if x.stride == y.stride {
            x.stride.to_string()
        } else {
            format!("{}x{}", x.stride, y.stride)
        };
        let window =
            |name: &str| Cow::from(format!("{name} {}x{} stride {stride}", x.kernel, y.kernel));
        match self.operation {
            Operation::Convolution => window("conv"),
            Operation::Depthwise => window("depthwise conv"),
            Operation::MaxPool => window("max pool"),
            Operation::AveragePool { .. } => window("average pool"),
            Operation::Add { .. } => Cow::from("eltwise add"),
        }
    }

    /// Formats, boxes (width, height, channels), options: what a listing shows behind the operation.
    pub fn details(&self) -> String {
        let begin = self.output.begin;
        let mut parts = vec![match self.operation {
            Operation::Convolution | Operation::Depthwise | Operation::Add { .. }
                if self.weights.format != self.input.format =>
            {
                format!(
                    "{}*{}→{}",
                    self.input.format,
                    self.weights.format,
                    self.result()
                )
            }
            _ => format!("{}→{}", self.input.format, self.result()),
        }];
        parts.push(format!("in {}", self.geometry.window().describe()));
        parts.push(format!(
            "out {} at ({},{},{})",
            self.geometry.extent().describe(),
            begin.x,
            begin.y,
            begin.z
        ));
        let (x, y) = (self.geometry.x, self.geometry.y);
        if (x.pad, y.pad) != (0, 0) {
            parts.push(format!("padding {}x{}", x.pad, y.pad));
        }
        parts.extend(self.post.describe());
        let flags = [
            (self.uses_weights() && !self.weights.dense, "sparse weights"),
            (
                self.uses_weights() && self.weights.palette.is_some(),
                "palettised weights",
            ),
            (self.input.sparse.is_some(), "storage elements"),
            (self.input.pattern.is_some(), "compressed input"),
            (self.continued, "continued"),
        ];
        parts.extend(
            flags
                .into_iter()
                .filter(|(set, _)| *set)
                .map(|(_, name)| name.to_owned()),
        );
        parts.extend(
            self.output
                .permutation()
                .map(|order| format!("order {order}")),
        );
        for (name, swizzle) in [
            ("in", self.input.swizzle),
            ("weights", self.weights.swizzle),
            ("out", self.output.swizzle),
        ] {
            if !swizzle.is_off() {
                parts.push(format!("swizzle {name} {}", swizzle.key()));
            }
        }
        let tiles: Vec<String> = self
            .output
            .halo_tiles()
            .map(|tile| tile.to_string())
            .collect();
        match tiles.as_slice() {
            [] => {}
            [tile] => parts.push(format!("halo to tile {tile}")),
            tiles => parts.push(format!("halo to tiles {}", tiles.join(","))),
        }
        parts.join(", ")
    }

    fn result(&self) -> String {
        self.post.result(self.output.element_bits)
    }
}
