//! How long a workload takes, and what listings say of it.

use super::activations::Taken;
use super::figures::{DpuFigures, Model};
use super::geometry::Axes;
use super::operation::{Elementwise, Operation};
use super::workload::Workload;
use chipless_model::ElementType;
use std::borrow::Cow;

impl Workload {
    /// An estimate of the time, in cycles of the DPU clock. Of its weights, a part is `present`: 1 where they are dense.
    pub fn cycles(&self, figures: &DpuFigures, present: f64) -> f64 {
        if figures.stencil.model == Model::Stencil
            && let Some(least) = self.least_cycles(figures, present)
        {
            return figures.convolution.fixed + least;
        }
        let (window, Axes { x, y, z }) = (self.geometry.window(), self.geometry.extent());
        let positions = (x.div_ceil(4) * y.div_ceil(4)) as f64;
        let blocks = positions * z.div_ceil(16) as f64;
        let mut taps = self.geometry.taps() as f64;
        let narrow = |is_narrow: bool| if is_narrow { figures.narrow } else { 1.0 };
        let input = narrow(self.input.format.bits() <= 8);
        let tap = figures.macs.tap(self.input.format.bits());
        let read = (window.x * window.y * window.z) as f64 * input;
        let written = (x * y * z) as f64 * narrow(self.output.element_bits <= 8);
        let mut weights = 0.0;
        // However few output channels there are, the positions are read.
        let mut activations = 0.0;
        let cost = match self.operation {
            Operation::Convolution => {
                taps *= self.channels_read() as f64;
                if self.is_sparse() {
                    let cost = &figures.sparse;
                    let reads = cost.activations * taps * positions * z.div_ceil(64) as f64 * input;
                    let products = cost.tap * taps * blocks * cost.multiplied(present) * tap;
                    let finished = cost.block * blocks + cost.read * read + cost.written * written;
                    let together = [reads, products, finished].map(|part| part.powf(cost.norm));
                    return cost.fixed + together.iter().sum::<f64>().powf(1.0 / cost.norm);
                }
                weights = taps * z as f64;
                activations = figures.activations * taps / z.div_ceil(16) as f64;
                &figures.convolution
            }
            Operation::Depthwise => {
                if self.has_dense_3x3() {
                    taps *= figures.depthwise_3x3;
                }
                &figures.depthwise
            }
            Operation::AveragePool { .. } => &figures.average_pool,
            // A convolution whose weights are one constant.
            Operation::Reduce { .. } => {
                taps *= self.geometry.channels as f64;
                &figures.convolution
            }
            Operation::MaxPool => &figures.max_pool,
            Operation::Elementwise { .. } => &figures.elementwise,
        };
        let computed = blocks * ((cost.tap * taps * tap).max(activations * input) + cost.block);
        let moved = cost.read * read + cost.written * written + cost.weight * weights * input;
        // The estimates of depthwise convolutions have the two at the same time.
        cost.fixed
            + match self.operation {
                Operation::Depthwise => computed.max(moved),
                _ => computed + moved,
            }
    }

    /// Whether it is a convolution of whose weights only those are stored that are not zero.
    pub(crate) fn is_sparse(&self) -> bool {
        self.operation == Operation::Convolution && !self.weights.dense
    }

    /// Whether its windows are 3 × 3, with a stride of 1 along a row.
    fn has_dense_3x3(&self) -> bool {
        let (x, y) = (self.geometry.x, self.geometry.y);
        (x.kernel, y.kernel, x.stride) == (3, 3, 1)
    }

    /// Keys of the figures that [`cycles`](Workload::cycles) rest on; of the costs of its kind, their section.
    pub(crate) fn rests_on(&self, figures: &DpuFigures) -> Vec<&'static str> {
        let is_narrow = |bits: u64| bits <= 8;
        let macs = |bits| {
            if is_narrow(bits) {
                "dpu.macs.int8"
            } else {
                "dpu.macs.float16"
            }
        };
        let mut keys = vec!["clock.dpu"];
        let (input, weights) = (self.input.format.bits(), self.weights.format.bits());
        if figures.stencil.model == Model::Stencil && self.operation == Operation::Convolution {
            keys.extend(["dpu.convolution.fixed", "dpu.stencil.model"]);
            keys.extend(["dpu.stencil.contexts", "dpu.stencil.read"]);
            keys.push(macs(input.max(weights)));
            if self.is_sparse() {
                keys.push("dpu.sparse.uneven");
            }
            return keys;
        }
        keys.push(match self.operation {
            Operation::Convolution if self.is_sparse() => "dpu.sparse",
            Operation::Convolution | Operation::Reduce { .. } => "dpu.convolution",
            Operation::Depthwise => "dpu.depthwise",
            Operation::AveragePool { .. } => "dpu.average_pool",
            Operation::MaxPool => "dpu.max_pool",
            Operation::Elementwise { .. } => "dpu.elementwise",
        });
        if !matches!(self.operation, Operation::Elementwise { .. }) {
            keys.extend(["dpu.macs.fitted", macs(input)]);
        }
        if self.operation == Operation::Convolution && !self.is_sparse() {
            keys.push("dpu.activations");
        }
        if self.operation == Operation::Depthwise && self.has_dense_3x3() {
            keys.push("dpu.depthwise_3x3");
        }
        if is_narrow(input) || is_narrow(self.output.element_bits.into()) {
            keys.push("dpu.narrow");
        }
        keys
    }

    /// Input channels of a convolution that its registers name; of a compressed input the four that are stored instead.
    pub(super) fn channels_read(&self) -> usize {
        let channels = self.geometry.channels.min(self.channels);
        self.input.taken.map_or(channels, |taken| taken.stored)
    }

    /// Arithmetic operations, absent weights counted: a multiplication and an addition are two.
    pub fn arithmetic(&self) -> u64 {
        let Axes { x, y, z } = self.geometry.extent();
        let (outputs, taps) = (x * y * z, self.geometry.taps());
        let each = match self.operation {
            Operation::Convolution | Operation::Reduce { .. } => 2 * taps * self.geometry.channels,
            Operation::Depthwise | Operation::AveragePool { .. } => 2 * taps,
            Operation::MaxPool => taps,
            Operation::Elementwise { .. } => 1,
        };
        outputs as u64 * each as u64
    }

    /// The operation in the field's words, `conv 3x1 stride 2x1`: height before width, as models have it.
    pub fn operation(&self) -> Cow<'static, str> {
        let (x, y) = (self.geometry.x, self.geometry.y);
        let stride = if x.stride == y.stride {
            x.stride.to_string()
        } else {
            format!("{}x{}", y.stride, x.stride)
        };
        let window =
            |name: &str| Cow::from(format!("{name} {}x{} stride {stride}", y.kernel, x.kernel));
        match self.operation {
            Operation::Convolution => window("conv"),
            Operation::Depthwise => window("depthwise conv"),
            Operation::MaxPool => window("max pool"),
            Operation::AveragePool { .. } => window("average pool"),
            Operation::Reduce { .. } => window("reduce sum"),
            Operation::Elementwise { function, .. } => Cow::from(match function {
                Elementwise::Add => "eltwise add",
                Elementwise::Subtract => "eltwise subtract",
                Elementwise::Multiply => "eltwise multiply",
            }),
        }
    }

    /// Formats, boxes (width, height, channels), padding (height, width), options: what a listing shows behind the operation.
    pub fn details(&self) -> String {
        let begin = self.output.begin;
        let mut parts = vec![match self.operation {
            Operation::Convolution | Operation::Depthwise | Operation::Elementwise { .. }
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
            parts.push(format!("padding {}x{}", y.pad, x.pad));
        }
        parts.extend(self.post.describe(self.has_lookup()));
        let flags = [
            (self.uses_weights() && !self.weights.dense, "sparse weights"),
            (
                self.uses_weights() && self.weights.palette.is_some(),
                "palettised weights",
            ),
            (self.input.sparse.is_some(), "storage elements"),
            (
                self.input.taken.is_some_and(Taken::is_compressed),
                "compressed input",
            ),
            (
                self.input.taken.is_some_and(|taken| !taken.is_compressed()),
                "weights of some channels",
            ),
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
        match self.result_element() {
            Some(element) => element.to_string(),
            None => format!("{} bits", self.output.element_bits),
        }
    }

    /// The type of what it writes, where that is known.
    pub(super) fn result_element(&self) -> Option<ElementType> {
        self.post.result()
    }
}
