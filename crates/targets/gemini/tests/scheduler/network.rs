//! Small networks of every kind of layer, and what each layer reads.

use super::Dice;

/// Both corners inside: N, C, H, W.
pub(crate) type Box4 = ([u32; 4], [u32; 4]);

pub(crate) fn whole(shape: [u32; 4]) -> Box4 {
    ([0; 4], shape.map(|extent| extent - 1))
}

pub(crate) fn common(a: Box4, b: Box4) -> Option<Box4> {
    let low: [u32; 4] = std::array::from_fn(|d| a.0[d].max(b.0[d]));
    let high: [u32; 4] = std::array::from_fn(|d| a.1[d].min(b.1[d]));
    (0..4).all(|d| low[d] <= high[d]).then_some((low, high))
}

/// A window that moves over rows and columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) kernel: [u32; 2],
    pub(crate) stride: u32,
    pub(crate) pad: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Convolution {
        window: Window,
        groups: u32,
    },
    Dense,
    Pool {
        window: Window,
        is_max: bool,
    },
    /// Element by element: `add`, `sub` or `mult`.
    Binary(&'static str),
    Softmax,
    LayerNorm,
    Exp,
    Matmul {
        is_transposed: bool,
    },
    Permute([usize; 4]),
    Slice {
        axis: usize,
        start: u32,
    },
    Concat {
        axis: usize,
    },
    Reshape,
}

/// Where an operand comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum From {
    /// An input of the network, or a constant.
    Port(String),
    Layer(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) reads: Vec<From>,
    pub(crate) inputs: Vec<[u32; 4]>,
    pub(crate) shape: [u32; 4],
}

impl Layer {
    /// The box of an operand that a box of the result takes; `None` where it takes nothing.
    pub(crate) fn needs(&self, operand: usize, (low, high): Box4) -> Option<Box4> {
        let [_, c, h, w] = self.inputs[operand];
        let rows = |window: &Window, d: usize, extent: u32| {
            let first = (low[d] * window.stride).saturating_sub(window.pad);
            let last = high[d] * window.stride + window.kernel[d - 2] - 1;
            [first, last.saturating_sub(window.pad).min(extent - 1)]
        };
        let (mut a, mut b) = (low, high);
        match &self.kind {
            Kind::Convolution { window, groups } => {
                let (inside, outside) = (c / groups, self.shape[1] / groups);
                (a[1], b[1]) = (
                    low[1] / outside * inside,
                    (high[1] / outside + 1) * inside - 1,
                );
                [a[2], b[2]] = rows(window, 2, h);
                [a[3], b[3]] = rows(window, 3, w);
            }
            Kind::Pool { window, .. } => {
                [a[2], b[2]] = rows(window, 2, h);
                [a[3], b[3]] = rows(window, 3, w);
            }
            Kind::Dense | Kind::Reshape => {
                (a, b) = ([low[0], 0, 0, 0], [high[0], c - 1, h - 1, w - 1]);
            }
            Kind::Softmax | Kind::LayerNorm => (a[1], b[1]) = (0, c - 1),
            Kind::Matmul { is_transposed } => match (operand, is_transposed) {
                (0, _) => (a[1], b[1]) = (0, c - 1),
                (_, true) => (a, b) = ([low[0], 0, low[1], 0], [high[0], c - 1, high[1], 0]),
                (_, false) => (a, b) = ([low[0], low[1], 0, 0], [high[0], high[1], h - 1, 0]),
            },
            Kind::Permute(axes) => {
                for (d, axis) in axes.iter().enumerate() {
                    (a[*axis], b[*axis]) = (low[d], high[d]);
                }
            }
            Kind::Slice { axis, start } => {
                a[*axis] += start;
                b[*axis] += start;
            }
            Kind::Concat { axis } => {
                let before: u32 = self.inputs[..operand]
                    .iter()
                    .map(|shape| shape[*axis])
                    .sum();
                let end = before + self.inputs[operand][*axis] - 1;
                if high[*axis] < before || low[*axis] > end {
                    return None;
                }
                a[*axis] = low[*axis].saturating_sub(before);
                b[*axis] = high[*axis].min(end) - before;
            }
            Kind::Binary(_) | Kind::Exp => {}
        }
        Some((a, b))
    }

    pub(crate) fn has_weights(&self) -> bool {
        matches!(self.kind, Kind::Convolution { .. } | Kind::Dense)
    }

    /// Weights as K, C of a group, R, S.
    pub(crate) fn weights(&self) -> [u32; 4] {
        let [_, c, h, w] = self.inputs[0];
        match &self.kind {
            Kind::Convolution { window, groups } => [
                self.shape[1],
                c / groups,
                window.kernel[0],
                window.kernel[1],
            ],
            _ => [self.shape[1], c, h, w],
        }
    }

    /// Which unit computes it.
    pub(crate) fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Convolution { .. } | Kind::Dense | Kind::Matmul { .. } => "pe",
            Kind::Permute(_) | Kind::Slice { .. } | Kind::Concat { .. } | Kind::Reshape => "dt",
            _ => "vp",
        }
    }

    /// Multiplications of a box.
    pub(crate) fn macs(&self, elements: u64) -> u64 {
        let each = if self.has_weights() {
            self.weights()[1..].iter().map(|n| u64::from(*n)).product()
        } else {
            u64::from(self.inputs[0][1])
        };
        elements * each
    }

    /// Padding that is really used: top, bottom, left, right.
    pub(crate) fn padding(&self, (low, high): Box4) -> [u32; 4] {
        let (Kind::Convolution { window, .. } | Kind::Pool { window, .. }) = &self.kind else {
            return [0; 4];
        };
        let before = |d: usize| window.pad.saturating_sub(low[d] * window.stride);
        let after = |d: usize| {
            (high[d] * window.stride + window.kernel[d - 2] - 1)
                .saturating_sub(window.pad + self.inputs[0][d] - 1)
        };
        [before(2), after(2), before(3), after(3)]
    }
}

/// The result of a window that slides over rows and columns.
fn slides(input: [u32; 4], channels: u32, window: Window) -> [u32; 4] {
    let extent = |d: usize| (input[d] + 2 * window.pad - window.kernel[d - 2]) / window.stride + 1;
    [input[0], channels, extent(2), extent(3)]
}

/// A network in the making.
pub(super) struct Maker<'d> {
    dice: &'d mut Dice,
    layers: Vec<Layer>,
}

impl Maker<'_> {
    fn shape(&self, from: &From) -> [u32; 4] {
        match from {
            From::Layer(layer) => self.layers[*layer].shape,
            From::Port(_) => unreachable!("ports have a layer that reads them"),
        }
    }

    fn push(
        &mut self,
        stem: &str,
        kind: Kind,
        reads: Vec<From>,
        inputs: Vec<[u32; 4]>,
        shape: [u32; 4],
    ) -> From {
        let name = format!("{stem}_{}", self.layers.len());
        self.layers.push(Layer {
            name,
            kind,
            reads,
            inputs,
            shape,
        });
        From::Layer(self.layers.len() - 1)
    }

    /// A convolution over the rows and columns that there are: of 3 x 3, or 1 wide.
    fn convolution(&mut self, from: &From, channels: u32, stride: u32) -> From {
        let input = self.shape(from);
        self.convolution_of(from.clone(), input, channels, stride)
    }

    fn convolution_of(&mut self, from: From, input: [u32; 4], channels: u32, stride: u32) -> From {
        let is_wide = input[2] > 2 && input[3] > 2 && self.dice.chance(60);
        let (kernel, pad) = if is_wide { ([3, 3], 1) } else { ([1, 1], 0) };
        let window = Window {
            kernel,
            stride,
            pad,
        };
        let shape = slides(input, channels, window);
        self.push(
            "Conv",
            Kind::Convolution { window, groups: 1 },
            vec![from],
            vec![input],
            shape,
        )
    }

    fn unary(&mut self, stem: &str, kind: Kind, from: &From) -> From {
        let shape = self.shape(from);
        self.push(stem, kind, vec![from.clone()], vec![shape], shape)
    }

    fn binary(&mut self, name: &'static str, a: &From, b: From) -> From {
        let shape = self.shape(a);
        self.push(
            "Elt",
            Kind::Binary(name),
            vec![a.clone(), b],
            vec![shape; 2],
            shape,
        )
    }

    fn residual(&mut self, from: &From) -> From {
        let [_, channels, h, w] = self.shape(from);
        let stride = if h > 3 && w > 3 && self.dice.chance(30) {
            2
        } else {
            1
        };
        let first = self.convolution(from, channels, 1);
        let input = self.shape(&first);
        let window = Window {
            kernel: [3, 3],
            stride,
            pad: 1,
        };
        let shape = slides(input, channels, window);
        let second = self.push(
            "Conv",
            Kind::Convolution { window, groups: 1 },
            vec![first],
            vec![input],
            shape,
        );
        let shortcut = if stride == 1 {
            from.clone()
        } else {
            let input = self.shape(from);
            let window = Window {
                kernel: [1, 1],
                stride,
                pad: 0,
            };
            let shape = slides(input, channels, window);
            self.push(
                "Conv",
                Kind::Convolution { window, groups: 1 },
                vec![from.clone()],
                vec![input],
                shape,
            )
        };
        self.binary("add", &second, shortcut)
    }

    fn grouped(&mut self, from: &From) -> From {
        let input = self.shape(from);
        let divisors: Vec<u32> = (2..=input[1])
            .filter(|n| input[1].is_multiple_of(*n))
            .collect();
        let groups = divisors[self.dice.below(divisors.len())];
        let window = Window {
            kernel: [3, 3],
            stride: 1,
            pad: 1,
        };
        let shape = slides(input, input[1], window);
        self.push(
            "Group",
            Kind::Convolution { window, groups },
            vec![from.clone()],
            vec![input],
            shape,
        )
    }

    fn pool(&mut self, from: &From) -> From {
        let input = self.shape(from);
        let is_max = self.dice.chance(60);
        let window = if is_max {
            Window {
                kernel: [3, 3],
                stride: 1 + self.dice.below(2) as u32,
                pad: 1,
            }
        } else {
            Window {
                kernel: [2, 2],
                stride: 2,
                pad: 0,
            }
        };
        let shape = slides(input, input[1], window);
        self.push(
            "Pool",
            Kind::Pool { window, is_max },
            vec![from.clone()],
            vec![input],
            shape,
        )
    }

    fn attention(&mut self, from: &From) -> From {
        let [n, c, h, w] = self.shape(from);
        let flat = if w == 1 {
            from.clone()
        } else {
            self.push(
                "Reshape",
                Kind::Reshape,
                vec![from.clone()],
                vec![[n, c, h, w]],
                [n, c, h * w, 1],
            )
        };
        let normal = self.unary("Norm", Kind::LayerNorm, &flat);
        let [query, key, value] = [0; 3].map(|_| self.convolution(&normal, c, 1));
        let tokens = h * w;
        let inputs = vec![[n, c, tokens, 1]; 2];
        let product = Kind::Matmul {
            is_transposed: true,
        };
        let scores = self.push(
            "MatMul",
            product,
            vec![query, key],
            inputs,
            [n, tokens, tokens, 1],
        );
        let weights = self.unary("Softmax", Kind::Softmax, &scores);
        let inputs = vec![[n, tokens, tokens, 1], [n, c, tokens, 1]];
        let product = Kind::Matmul {
            is_transposed: false,
        };
        let mixed = self.push(
            "MatMul",
            product,
            vec![weights, value],
            inputs,
            [n, c, tokens, 1],
        );
        let out = self.convolution(&mixed, c, 1);
        self.binary("add", &out, flat)
    }

    fn parts(&mut self, from: &From) -> From {
        let shape = self.shape(from);
        let half = 1 + self.dice.below(shape[1] as usize - 1) as u32;
        let slice = |start, channels| {
            (
                [shape[0], channels, shape[2], shape[3]],
                Kind::Slice { axis: 1, start },
            )
        };
        let (first_shape, kind) = slice(0, half);
        let first = self.push("Slice", kind, vec![from.clone()], vec![shape], first_shape);
        let (second_shape, kind) = slice(half, shape[1] - half);
        let second = self.push("Slice", kind, vec![from.clone()], vec![shape], second_shape);
        let first = if self.dice.chance(60) {
            self.convolution(&first, half, 1)
        } else {
            first
        };
        self.push(
            "Concat",
            Kind::Concat { axis: 1 },
            vec![second, first],
            vec![second_shape, first_shape],
            shape,
        )
    }

    fn step(&mut self, from: &From) -> From {
        let shape = self.shape(from);
        let is_plane = shape[2] > 3 && shape[3] > 3;
        let channels = [8, 12, 16, 20, 24][self.dice.below(5)];
        match self.dice.below(10) {
            0 | 1 => self.residual(from),
            2 => self.grouped(from),
            3 if is_plane => self.pool(from),
            4 if shape[2] * shape[3] <= 24 => self.attention(from),
            5 => self.parts(from),
            6 => {
                let turned = [shape[0], shape[1], shape[3], shape[2]];
                self.push(
                    "Permute",
                    Kind::Permute([0, 1, 3, 2]),
                    vec![from.clone()],
                    vec![shape],
                    turned,
                )
            }
            7 => {
                let name = format!("constant_{}", self.layers.len());
                let kind = ["add", "sub", "mult"][self.dice.below(3)];
                self.binary(kind, from, From::Port(name))
            }
            8 => self.unary("Exp", Kind::Exp, from),
            _ => self.convolution(from, channels, 1),
        }
    }
}

/// A network of some steps.
pub(super) fn random(dice: &mut Dice) -> Vec<Layer> {
    let batch = [1, 1, 2, 3, 4][dice.below(5)];
    let extents = [4, 5, 6, 7, 8];
    let (h, w) = (extents[dice.below(5)], extents[dice.below(5)]);
    let steps = 1 + dice.below(3);
    let mut maker = Maker {
        dice,
        layers: Vec::new(),
    };
    let input = [batch, 3 + maker.dice.below(6) as u32, h, w];
    let channels = [8, 12, 16, 24][maker.dice.below(4)];
    let mut last = maker.convolution_of(From::Port("input1".into()), input, channels, 1);
    for _ in 0..steps {
        last = maker.step(&last);
    }
    let [n, c, h, w] = maker.shape(&last);
    match maker.dice.below(3) {
        0 => {
            let features = 8 + maker.dice.below(24) as u32;
            maker.push(
                "Dense",
                Kind::Dense,
                vec![last],
                vec![[n, c, h, w]],
                [n, features, 1, 1],
            );
        }
        1 => {
            maker.convolution(&last, 10, 1);
        }
        _ => {}
    }
    maker.layers
}
