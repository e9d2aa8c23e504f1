//! What a layer computes, as the front-end IR says it.
//!
//! Layers of the processing elements: `acc = b + Σ (x + zero point) · w`, exactly; activation; `real = acc · k · input scale`; an
//! integer output is `floor(real · output scale + ½) + zero point`, saturated, and without an output scale the result is
//! `real` itself. `k` and `b` are arrays with one number for each output channel. Padding stands for real zero.
//!
//! Layers of the vector processor go through the stages of `module_list`, in binary64 with one rounding at the end: each
//! operand becomes `x = q · scale + offset`; maximum or sum over the window, multiplication by a number, addition or
//! subtraction of the second operand, `relu`; then `floor(x · mul_k + sum_b + ½)`, saturated, for an integer output, or
//! `x · mul_k + sum_b`.
//!
//! A `softmax` and a `layer_norm` go over the channels, `exp` over elements, each between the first and the last of these stages.
//!
//! The published front-end files do not come with their arrays, so where `b` is added and whether halves round up is
//! an assumption.

mod read;

use crate::function::{Function, Known, OfTwo};
use crate::network::Layer;
use crate::strided::Strided;
use chipless_model::ElementType;
use serde_json::Value;
use std::sync::Arc;

/// Extents of kernels and strides, at most.
const MOST: u32 = 1 << 12;

/// What a layer computes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    /// As the front end names it.
    pub(crate) name: String,
    /// What its operands are called: layers, inputs of the network, constants.
    pub(crate) previous: Vec<String>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) output: ElementType,
    /// Output channels of the layer.
    pub(crate) channels: u32,
    /// N, C, H, W of the whole result.
    pub(crate) shape: [u64; 4],
    /// Rows and columns.
    pub(crate) kernel: [u32; 2],
    pub(crate) stride: [u32; 2],
    /// Rows and columns of the input from one element of the kernel to the next.
    pub(crate) dilation: [u32; 2],
    /// Rows above and columns to the left.
    pub(crate) padding: [u32; 2],
    pub(crate) kind: Kind,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) element: ElementType,
    /// N, C, H, W of the whole.
    pub(crate) shape: [u64; 4],
}

/// The kinds of layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Convolution, and matrix product as one of 1 × 1.
    Convolution {
        groups: u32,
        /// Bytes of a weight: 1 or 2; two-byte weights are int16, or float16 with float inputs.
        weight: ElementType,
        quantisation: Quantisation,
        activation: Activation,
    },
    /// Stages of the vector processor.
    Vector(Vector),
    /// Product of two activations.
    Product {
        /// Heads: channels of the first operand and of the result are cut into so many, one product each.
        groups: u32,
        /// Whether the second operand is read along its channels.
        transposed: bool,
        /// What is added to the elements of both.
        zeros: [f64; 2],
        scale: f64,
        output_zero: f64,
    },
    /// Elements change their place and nothing else.
    Move(Move),
}

/// How elements move.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Move {
    /// The axis of the input for each axis of the output.
    Permute([usize; 4]),
    /// A part that begins here.
    Slice([u32; 4]),
    /// Operands one after another along an axis.
    Concat(usize),
    /// The same elements in the order of C, H, W.
    Reshape,
    /// Every element so many times along rows and columns.
    Repeat([u32; 2]),
    /// As strides say it.
    Strided(Arc<Strided>),
    /// These places along an axis.
    Take(usize, Arc<[u32]>),
}

/// What a stage needs all channels for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Across {
    Softmax,
    /// Mean 0 and variance 1; what is added to the variance.
    Normalise {
        epsilon: f64,
    },
    /// Mean of the squares 1; what is added to it.
    NormaliseSquare {
        epsilon: f64,
    },
    LogSoftmax,
    /// 1 at the first of the largest, 0 elsewhere.
    Hardmax,
    /// Divided by the sum of magnitudes or the root of the sum of squares.
    LpNormalise {
        squares: bool,
    },
    /// One number of all channels of a group.
    Reduce(Reduction),
    /// A step of an LSTM: of gates i, o, f, c before their functions, and h and c before it, it makes h and c.
    LstmCell,
}

/// What all channels of a group become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Maximum,
    Minimum,
    Product,
    Magnitudes,
    Norm,
    Squares,
    LogSum,
    LogSumExp,
    /// Index of the largest; whether the last of several.
    ArgMax(bool),
    /// Index of the smallest; whether the last of several.
    ArgMin(bool),
}

impl Across {
    /// Channels of the result for so many channels and groups.
    fn outputs(self, channels: u64, groups: u64) -> u64 {
        match self {
            Across::Reduce(_) => groups,
            Across::LstmCell => channels / 2,
            _ => channels,
        }
    }

    /// What an operation of the front end is of these, if it is one.
    fn of(layer: &Layer) -> Option<Across> {
        let number = |key: &str, otherwise| {
            let value = layer.other.get(key).and_then(Value::as_f64);
            value.unwrap_or(otherwise)
        };
        let epsilon = number("epsilon", 1e-5);
        let last = number("select_last_index", 0.0) != 0.0;
        let reduction = match layer.operation.as_str() {
            "softmax" => return Some(Across::Softmax),
            "layer_norm" => return Some(Across::Normalise { epsilon }),
            "rms_norm" => return Some(Across::NormaliseSquare { epsilon }),
            "log_softmax" => return Some(Across::LogSoftmax),
            "hardmax" => return Some(Across::Hardmax),
            "lp_normalization" => {
                let squares = number("p", 2.0) > 1.5;
                return Some(Across::LpNormalise { squares });
            }
            "lstm_cell" => return Some(Across::LstmCell),
            "reduce_sum" => Reduction::Sum,
            "reduce_mean" => Reduction::Mean,
            "reduce_max" => Reduction::Maximum,
            "reduce_min" => Reduction::Minimum,
            "reduce_prod" => Reduction::Product,
            "reduce_l1" => Reduction::Magnitudes,
            "reduce_l2" => Reduction::Norm,
            "reduce_sum_square" => Reduction::Squares,
            "reduce_log_sum" => Reduction::LogSum,
            "reduce_log_sum_exp" => Reduction::LogSumExp,
            "arg_max" => Reduction::ArgMax(last),
            "arg_min" => Reduction::ArgMin(last),
            _ => return None,
        };
        Some(Across::Reduce(reduction))
    }
}

/// How the integers of a convolution stand for numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantisation {
    pub(crate) input_zero: f64,
    pub(crate) input_scale: f64,
    /// `None`: the result is not quantised.
    pub(crate) output_scale: Option<f64>,
    pub(crate) output_zero: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Activation {
    None,
    /// Nothing below zero, nothing above the bound if there is one.
    Relu(Option<f64>),
}

/// Stages of the vector processor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Vector {
    /// Scale and offset of each operand.
    pub(crate) inputs: [(f64, f64); 2],
    /// A number that every element is multiplied by.
    pub(crate) factor: Option<f64>,
    pub(crate) window: Option<Window>,
    pub(crate) across: Option<Across>,
    /// Into how many parts the channels are cut for that.
    pub(crate) groups: u32,
    /// Factors and offsets of the channels, after what needs all of them.
    pub(crate) affine: Option<(Vec<f64>, Vec<f64>)>,
    /// What becomes of each element.
    pub(crate) function: Option<Function>,
    /// Whether a sum over a window becomes the mean of what lies inside the map.
    pub(crate) mean_inside: bool,
    pub(crate) second: Option<Second>,
    pub(crate) relu: bool,
    /// Nothing above this, where there is a bound.
    pub(crate) bound: Option<f64>,
    /// Scale and offset of the result.
    pub(crate) output: (f64, f64),
}

/// What becomes of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Maximum,
    Sum,
}

/// What is done with the second operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Second {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// A function of both.
    Plain(Known<OfTwo>),
    /// The second operand where the first is not zero, or, inverted, where it is; another number elsewhere.
    Where {
        inverted: bool,
        otherwise: f64,
    },
}
