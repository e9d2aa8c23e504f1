//! A network as it comes in: the layers, and what each of them computes.

use crate::network::Network;
use chipless_gemini::strided::Axis;
use std::rc::Rc;
use std::sync::Arc;

/// What an element is stored as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Element {
    /// 8-bit integers that stand for numbers.
    #[default]
    Int8,
    /// 16-bit integers, as they are.
    Int16,
    /// Numbers of half precision.
    Float16,
}

impl Element {
    /// As front-end files name it.
    pub const fn name(self) -> &'static str {
        match self {
            Element::Int8 => "int8",
            Element::Int16 => "int16",
            Element::Float16 => "float16",
        }
    }

    /// Bits.
    pub const fn bits(self) -> u8 {
        match self {
            Element::Int8 => 8,
            Element::Int16 | Element::Float16 => 16,
        }
    }
}

/// How the model itself has a tensor that goes in or comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its element type, as `numpy` names it.
    pub element: &'static str,
    /// Its extents.
    pub shape: Vec<i64>,
}

/// How integers stand for numbers: real = (stored − zero) · scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantisation {
    /// Of a step.
    pub scale: f64,
    /// What stands for zero.
    pub zero: f64,
}

/// How the elements C, H, W of a tensor are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// N, C, H, W.
    Map,
    /// N, L, D: D channels, L rows.
    Sequence,
    /// N, C, L: L rows of one column.
    Line,
    /// N and all the rest.
    Vector,
    /// N, L, G, d: G · d channels.
    Split(i64),
    /// N, G, L, d: G · d channels.
    Heads(i64),
    /// N, L, P, G, d: P · G · d channels.
    Parts(i64, i64),
    /// P, N, G, L, d: P · G · d channels.
    Stacked(i64, i64),
}

/// An input of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// `input1`, `input2`, … in the order of the file.
    pub name: String,
    /// Channels, rows, columns.
    pub extents: [i64; 3],
    /// How the file writes it.
    pub layout: Layout,
    /// As the file says it.
    pub quantisation: Option<Quantisation>,
    /// What it is stored as.
    pub element: Element,
    /// How the model has it, where that differs.
    pub declared: Option<Declared>,
}

/// Where a part of an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An input of the network.
    Input(usize),
    /// A layer.
    Layer(usize),
    /// A constant that is no layer's weights.
    Constant(usize),
}

/// Channels of an input, a layer's result or a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Whose.
    pub source: Source,
    /// First channel and the one behind the last.
    pub channels: [i64; 2],
    /// Ways in which it is stored again, one after another, before the operand's own.
    pub through: Vec<Quantisation>,
}

/// What a layer reads: pieces whose channels follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// How the reader takes it, as the file says it.
    pub quantisation: Option<Quantisation>,
    /// Channels, rows, columns.
    pub extents: [i64; 3],
    /// The node that joined the pieces or took a part.
    pub name: Option<Rc<str>>,
}

impl Operand {
    /// The operand stored in another way.
    #[must_use]
    pub fn stored_as(&self, stored: Quantisation) -> Operand {
        let mut operand = self.clone();
        for piece in &mut operand.pieces {
            piece.through.extend(self.quantisation);
        }
        operand.quantisation = Some(stored);
        operand
    }
}

/// A constant tensor: its numbers, or what is missing.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// In the order of `shape`, or the tensor and the file that are not there.
    pub values: Result<Rc<Vec<f64>>, String>,
    /// Extents.
    pub shape: Vec<i64>,
    /// Scales along an axis where the numbers are stored integers; none where they are real.
    pub scales: Option<(Rc<Vec<f64>>, usize)>,
}

/// A constant that stands beside activations, element by element, or is joined with one. One operation reads it.
#[derive(Clone, Debug)]
pub struct Table {
    /// `constant_` and the name of the node that reads it.
    pub name: String,
    /// In the order of channels, rows, columns, or the tensor and the file that are not there.
    pub values: Result<Rc<Vec<f64>>, String>,
    /// Channels, rows, columns; 1 where one is for all.
    pub extents: [i64; 3],
    /// What a stored integer stands for; none where the numbers are real.
    pub scale: Option<f64>,
    /// What it is stored as.
    pub element: Element,
}

/// What bounds a result from below and above.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// Zero.
    Relu,
    /// Zero and this.
    Bounded(f64),
}

/// Window of a convolution or a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns.
    pub kernel: [i64; 2],
    /// Rows and columns.
    pub stride: [i64; 2],
    /// Top, bottom, left, right.
    pub padding: [i64; 4],
    /// Rows and columns from one element of the kernel to the next.
    pub dilation: [i64; 2],
}

impl Window {
    /// Of one element.
    pub const POINT: Window = Window {
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0; 4],
        dilation: [1, 1],
    };

    /// Rows and columns from the first element of the kernel to the last.
    pub fn span(&self) -> [i64; 2] {
        [0, 1].map(|d| (self.kernel[d] - 1) * self.dilation[d] + 1)
    }
}

/// Functions of an element, as ONNX has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// The error function's.
    Gelu,
    /// The hyperbolic tangent's.
    GeluByTanh,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// This times x, and that, between 0 and 1.
    HardSigmoid(f64, f64),
    /// x times a hard sigmoid of 1/6 and 1/2.
    HardSwish,
    /// x times the sigmoid of this times x.
    Swish(f64),
    /// This times x below zero.
    LeakyRelu(f64),
    /// This times e^x − 1 below zero.
    Elu(f64),
    /// ln(1 + e^x).
    Softplus,
    /// x times the hyperbolic tangent of softplus.
    Mish,
    /// Nothing below the one, nothing above the other; infinite where there is no bound.
    Clip(f64, f64),
    /// Nothing but the activation.
    Identity,
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient.
    Divide,
}

/// What a layer computes.
#[derive(Clone, Debug)]
pub enum Action {
    /// A convolution or matrix product with constants: weights K, C / groups, R, S. `columns` says that the file has them as
    /// C, K.
    Weighted {
        /// The window.
        window: Window,
        /// The weights.
        weight: Numbers,
        /// Whether the file has them with the inputs first.
        columns: bool,
        /// One number for each output channel.
        bias: Option<Numbers>,
    },
    /// The product of two activations by groups.
    Product,
    /// The largest of a window.
    MaxPool(Window),
    /// The mean of a window; whether what is padded counts.
    AveragePool(Window, bool),
    /// Two operands, the second of which may be a constant.
    Combine(Arithmetic),
    /// An operand and a constant: one number, or one for each channel.
    Constant(Arithmetic, Numbers),
    /// Over the features of each position, by groups.
    Softmax(i64),
    /// Over the features of each position: factor, offset, what is added to the variance.
    LayerNorm(Numbers, Option<Numbers>, f64),
    /// A factor and an offset for each channel.
    Affine(Numbers, Numbers),
    /// A function of each element.
    Function(Function),
    /// Elements in other places.
    Move(Move),
    /// An operation of the vector processor by its name, with what the front-end file says of it.
    Named(Named),
    /// Elements at places that follow from strides.
    Strided(View),
    /// These places along channels, rows or columns.
    Take(usize, Arc<[i64]>),
}

/// An operation of the vector processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// As the front-end file names it.
    pub name: &'static str,
    /// What else the file says.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Whether each result needs all channels of its place.
    pub across: bool,
}

/// A tensor as another one.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Axes, outermost first.
    pub axes: Vec<Axis>,
    /// Place of the first element.
    pub offset: i64,
    /// What is put where nothing is read.
    pub fill: f64,
}

/// How elements move. Axes are channels, rows, columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Channels and rows exchanged.
    Exchange,
    /// From here on along an axis.
    Slice(usize, i64),
    /// Operands one after another along an axis.
    Concat(usize),
    /// The same elements in the order of channels, rows, columns.
    Reshape,
    /// Every row and column so many times.
    Repeat([i64; 2]),
}

/// What a layer does.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Operands, in order.
    pub operands: Vec<Operand>,
    /// What becomes of them.
    pub action: Action,
    /// What bounds the result.
    pub activation: Activation,
    /// How the result is stored, as the file says it.
    pub output: Option<Quantisation>,
    /// How the file writes the result.
    pub layout: Layout,
    /// What the result is stored as.
    pub element: Element,
}

impl Front {
    /// Bits of every element.
    pub fn bits(&self) -> u8 {
        let results = self.operations.iter().map(|operation| operation.element);
        results.map(Element::bits).max().unwrap_or(8)
    }

    /// Layers that add constants which half precision has no number for but 0, with the largest of each: what divides by their results, or takes
    /// a logarithm of them, may become infinite.
    pub fn vanishing(&self) -> Vec<(&str, f64)> {
        let of = |operation: &Operation| {
            let added = match &operation.action {
                Action::Constant(Arithmetic::Add | Arithmetic::Subtract, numbers)
                | Action::Affine(_, numbers) => &numbers.values,
                Action::Combine(Arithmetic::Add | Arithmetic::Subtract) => {
                    let pieces = operation.operands.iter().flat_map(|of| &of.pieces);
                    let mut tables = pieces.filter_map(|piece| match piece.source {
                        Source::Constant(at) => self.constants.get(at),
                        _ => None,
                    });
                    &tables.next()?.values
                }
                _ => return None,
            };
            let values = added.as_ref().ok()?;
            let most = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            (operation.element == Element::Float16 && most > 0.0 && most <= VANISHES)
                .then_some(most)
        };
        let layers = self.network.layers.iter().zip(&self.operations);
        layers
            .filter_map(|(layer, operation)| Some((&*layer.name, of(operation)?)))
            .collect()
    }

    /// Layers that add or multiply integers, which have 16 bits here and more in the model.
    pub fn integer_arithmetic(&self) -> Vec<&str> {
        use Arithmetic::{Add, Multiply, Subtract};
        let computes = |operation: &Operation| {
            operation.element == Element::Int16
                && matches!(
                    operation.action,
                    Action::Combine(Add | Subtract | Multiply)
                        | Action::Constant(Add | Subtract | Multiply, _)
                        | Action::Affine(..)
                )
        };
        let layers = self.network.layers.iter().zip(&self.operations);
        layers
            .filter(|(_, operation)| computes(operation))
            .map(|(layer, _)| &*layer.name)
            .collect()
    }
}

/// Half the smallest number of half precision: what is no larger is rounded to 0.
const VANISHES: f64 = 1.0 / 33_554_432.0;

/// A network with everything that the file says.
#[derive(Clone, Debug)]
pub struct Front {
    /// The layers.
    pub network: Network,
    /// What goes in.
    pub inputs: Vec<Input>,
    /// Constants that layers read beside activations.
    pub constants: Vec<Table>,
    /// What each layer does.
    pub operations: Vec<Operation>,
    /// What comes out: channels of layers.
    pub outputs: Vec<Operand>,
    /// How the model has what comes out, where that differs.
    pub declared: Vec<Declared>,
    /// What the model calls its inputs and its outputs, in order; nothing for a front-end file.
    pub called: [Vec<String>; 2],
    /// Whether the file says how its numbers are quantised; otherwise a rule without calibration data has done so.
    pub is_quantised: bool,
    /// Whether data said how its numbers are stored ([`calibrate`](crate::calibrate::calibrate)).
    pub is_calibrated: bool,
}
