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

use crate::function::{Function, Known, OF_TWO, OfTwo};
use crate::network::{Layer, Network};
use crate::strided::Strided;
use chipless_model::ElementType;
use serde_json::{Map, Value};
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

fn number(stage: Option<&Map<String, Value>>, key: &str, otherwise: f64) -> f64 {
    stage
        .and_then(|s| s.get(key))
        .and_then(Value::as_f64)
        .unwrap_or(otherwise)
}

impl Operation {
    /// What a layer of the network computes.
    ///
    /// # Errors
    /// What Chipless lacks, or what the front end leaves out.
    pub(crate) fn of(network: &Network, name: &str) -> Result<Operation, String> {
        let layer = network
            .layers
            .get(name)
            .ok_or_else(|| format!("the network has no layer `{name}`"))?;
        let what = |text: &str| format!("layer `{name}` ({}): {text}", layer.operation);
        let element = |names: &[String], index: usize| {
            let dtype = names
                .get(index)
                .or(names.first())
                .map_or("int8", String::as_str);
            ElementType::from_name(dtype)
                .ok_or_else(|| what(&format!("element type `{dtype}` is not supported")))
        };
        let shape = |shapes: &[Vec<u64>], index: usize| -> Result<[u64; 4], String> {
            let shape = shapes
                .get(index)
                .ok_or_else(|| what("a shape is missing"))?;
            let mut four = [1; 4];
            if shape.len() > 4 {
                return Err(what(
                    "a shape of more than four dimensions is not supported",
                ));
            }
            four[..shape.len()].copy_from_slice(shape);
            Ok(four)
        };
        let dilation = dilation(layer).map_err(|e| what(&e))?;
        let weights = has_weights(layer);
        let previous: Vec<String> = operands_of(layer).map(str::to_owned).collect();
        let operands = previous
            .iter()
            .enumerate()
            .map(|(i, _)| {
                let i = i.min(layer.input_shape.len().saturating_sub(1));
                Ok(Operand {
                    element: element(&layer.input_dtype, i)?,
                    shape: shape(&layer.input_shape, i)?,
                })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let Some(first) = operands.first() else {
            return Err(what("it reads nothing"));
        };
        let output = element(&layer.output_dtype, 0)?;
        let usable = [ElementType::Int8, ElementType::Int16, ElementType::Float16];
        if let Some(operand) = operands.iter().find(|o| !usable.contains(&o.element)) {
            return Err(what(&format!(
                "inputs of type {} are not supported",
                operand.element
            )));
        }
        if !usable.contains(&output) {
            return Err(what(&format!("outputs of type {output} are not supported")));
        }
        let whole = shape(&layer.output_shape, 0)?;
        let kind = if weights {
            convolution(layer, first.element, &element)?
        } else if layer.operation == "matmul" {
            product(layer)
        } else if let Some(moved) = moved(layer, operands.len()).map_err(|e| what(&e))? {
            Kind::Move(moved)
        } else {
            Kind::Vector(vector(layer).map_err(|e| what(&e))?)
        };
        let wanted = match &kind {
            Kind::Product { .. } => 2,
            Kind::Vector(vector) if vector.across == Some(Across::LstmCell) => 2,
            Kind::Vector(vector) if vector.second.is_some() => 2,
            _ => 1,
        };
        if operands.len() < wanted {
            return Err(what(&format!(
                "expected {wanted} operands in previous_layer, found {}",
                operands.len()
            )));
        }
        if let Kind::Vector(Vector {
            across: Some(across),
            groups,
            ..
        }) = &kind
        {
            let expected = across.outputs(first.shape[1], u64::from(*groups));
            if expected != whole[1] || !first.shape[1].is_multiple_of(u64::from(*groups)) {
                return Err(what(&format!(
                    "expected {expected} channels of {} in {groups} groups, found {}",
                    first.shape[1], whole[1]
                )));
            }
        }
        let [mut kernel, mut stride] =
            [layer.kernel_size.or(layer.pool_size), layer.stride].map(|v| v.unwrap_or([1, 1]));
        if layer.operation == "dense" {
            // On a map of the size of its weights it flattens.
            let of_weights = shape(&layer.input_shape, 1)?;
            kernel = if first.shape[2..] == of_weights[2..] {
                [of_weights[2], of_weights[3]].map(|v| u32::try_from(v).unwrap_or(0))
            } else {
                [1, 1]
            };
            stride = [1, 1];
        }
        let padding = layer
            .padding
            .filter(|_| layer.operation != "dense")
            .unwrap_or_default();
        if kernel.iter().chain(&stride).any(|v| *v == 0 || *v > MOST)
            || padding.iter().any(|p| *p > MOST)
        {
            return Err(what(&format!(
                "kernel {kernel:?}, stride {stride:?} or padding {padding:?} is out of range"
            )));
        }
        let channels = whole[1];
        if let Kind::Convolution { groups, .. } | Kind::Product { groups, .. } = &kind {
            let groups = u64::from(*groups);
            if !first.shape[1].is_multiple_of(groups) || !channels.is_multiple_of(groups) {
                return Err(what("its groups do not divide its channels"));
            }
        }
        if let Kind::Product {
            groups: 2..,
            transposed: true,
            ..
        } = &kind
        {
            return Err(what(
                "a transposed second operand in groups is not supported",
            ));
        }
        Ok(Operation {
            name: layer.operation.clone(),
            previous,
            shape: whole,
            operands,
            output,
            channels: u32::try_from(channels).map_err(|_| what("too many output channels"))?,
            kernel,
            stride,
            dilation,
            padding: [padding[0], padding[2]],
            kind,
        })
    }
}

/// How far the elements of a kernel lie apart.
fn dilation(layer: &Layer) -> Result<[u32; 2], String> {
    let given = match layer.other.get("dilation") {
        None | Some(Value::Null) => return Ok([1, 1]),
        Some(Value::Array(values)) => values.clone(),
        Some(value) => vec![value.clone(); 2],
    };
    let apart = |value: &Value| {
        let value = value.as_u64().and_then(|value| u32::try_from(value).ok());
        value.filter(|value| (1..=MOST).contains(value))
    };
    let all: Option<Vec<u32>> = given.iter().map(apart).collect();
    match all.as_deref() {
        Some(all) if all.iter().all(|value| *value == 1) => Ok([1, 1]),
        Some(_) if !has_weights(layer) => {
            Err("a dilation of anything but a convolution is not supported".to_owned())
        }
        Some([rows, columns]) => Ok([*rows, *columns]),
        _ => Err(format!("the dilation {given:?} is not supported")),
    }
}

/// Whether a layer computes with weights.
pub(crate) fn has_weights(layer: &Layer) -> bool {
    matches!(
        layer.operation.as_str(),
        "conv2d" | "conv2d_group" | "dense"
    )
}

/// What a layer reads of others, of the network's inputs and of constants, in the order of its operands; weights are none.
pub(crate) fn operands_of(layer: &Layer) -> impl Iterator<Item = &str> {
    let weights = has_weights(layer);
    let names = || layer.previous_layer.iter().map(String::as_str);
    // Of a constant beside an activation the place says nothing in what the front ends of this family write.
    let joined = is_ordered(&layer.operation);
    let inputs = names()
        .filter(move |name| {
            joined && is_constant(name) || !is_constant(name) && !name.ends_with("_constant1")
        })
        .take(if weights { 1 } else { usize::MAX });
    inputs.chain(names().filter(move |name| !weights && !joined && is_constant(name)))
}

/// Whether the operands of an operation stand in their order, constants among them.
fn is_ordered(operation: &str) -> bool {
    let others = ["concat", "where", "where_not", "lstm_cell"];
    others.contains(&operation) || OF_TWO.iter().any(|(name, _)| *name == operation)
}

/// Whether a name of `previous_layer` is that of a constant.
pub(crate) fn is_constant(name: &str) -> bool {
    name.starts_with("constant")
}

fn product(layer: &Layer) -> Kind {
    let q = layer.quant_info.clone().unwrap_or_default();
    let or = |value: Option<f64>, otherwise| value.unwrap_or(otherwise);
    Kind::Product {
        groups: layer.group.unwrap_or(1).max(1),
        transposed: layer.other.get("transpose_b").and_then(Value::as_bool) == Some(true),
        zeros: [or(q.input_zero_point1, 0.0), or(q.input_zero_point2, 0.0)],
        scale: or(q.input_scale1, 1.0) * or(q.input_scale2, 1.0) * or(q.output_scale, 1.0),
        output_zero: or(q.output_zero_point, 0.0),
    }
}

/// How a layer moves elements, if that is what it does.
fn moved(layer: &Layer, operands: usize) -> Result<Option<Move>, String> {
    let list = |key: &str| -> Option<Vec<i64>> {
        let values = layer.other.get(key)?.as_array()?;
        values.iter().map(Value::as_i64).collect()
    };
    let axis = |value: i64| {
        usize::try_from(if value < 0 { value + 4 } else { value })
            .ok()
            .filter(|axis| *axis < 4)
            .ok_or_else(|| format!("there is no axis {value}"))
    };
    Ok(Some(match layer.operation.as_str() {
        "permute" => {
            let perm = list("perm").ok_or("`perm` is missing")?;
            let mut axes = [0, 1, 2, 3];
            for (to, from) in axes.iter_mut().zip(&perm) {
                *to = axis(*from)?;
            }
            let mut sorted = axes;
            sorted.sort_unstable();
            if sorted != [0, 1, 2, 3] || perm.len() > 4 {
                return Err(format!("`perm` {perm:?} is no order of the axes"));
            }
            Move::Permute(axes)
        }
        "slice" => {
            let (starts, axes) = (
                list("starts").ok_or("`starts` is missing")?,
                list("axes").ok_or("`axes` is missing")?,
            );
            if list("steps").is_some_and(|steps| steps.iter().any(|step| *step != 1)) {
                return Err("steps other than 1 are not supported".into());
            }
            let shape = layer.input_shape.first().map(Vec::as_slice);
            let mut from = [0; 4];
            for (start, of) in starts.iter().zip(&axes) {
                let of = axis(*of)?;
                let extent = shape.and_then(|s| s.get(of)).copied().unwrap_or(1) as i64;
                let start = if *start < 0 { start + extent } else { *start };
                from[of] = u32::try_from(start)
                    .map_err(|_| format!("it starts at {start} along axis {of}"))?;
            }
            Move::Slice(from)
        }
        "concat" => {
            let along = layer.other.get("axis").and_then(Value::as_i64);
            Move::Concat(axis(along.ok_or("`axis` is missing")?)?)
        }
        "reshape" => {
            let elements = |shapes: &[Vec<u64>]| {
                let all = shapes.first()?.iter().skip(1);
                Some(all.fold(1u64, |n, extent| n.saturating_mul(*extent)))
            };
            if operands != 1 || elements(&layer.input_shape) != elements(&layer.output_shape) {
                return Err("input and output have another number of elements".into());
            }
            Move::Reshape
        }
        "resize" => {
            let given = list("scales").ok_or("`scales` is missing")?;
            let shapes = [&layer.input_shape, &layer.output_shape].map(|shapes| shapes.first());
            let times = |d: usize| {
                let times = u32::try_from(given[d]).ok();
                let [from, to] = shapes.map(|shape| shape.and_then(|s| s.get(d + 2)).copied());
                times.filter(|times| {
                    (1..=MOST).contains(times) && from.map(|from| from * u64::from(*times)) == to
                })
            };
            let scales = match given.len() {
                2 => times(0).zip(times(1)),
                _ => None,
            };
            let (rows, columns) = scales.ok_or_else(|| {
                format!("`scales` {given:?} are not how often rows and columns are repeated")
            })?;
            Move::Repeat([rows, columns])
        }
        "as_strided" => {
            let of = |shapes: &[Vec<u64>]| {
                let shape = shapes.first()?;
                Some([1, 2, 3].map(|d| shape.get(d).copied().unwrap_or(1)))
            };
            let shapes = of(&layer.input_shape).zip(of(&layer.output_shape));
            let (input, output) = shapes.ok_or("its shapes are missing")?;
            Move::Strided(Arc::new(Strided::read(&layer.other, input, output)?))
        }
        "gather" => {
            let along = layer.other.get("axis").and_then(Value::as_i64);
            let axis = axis(along.ok_or("`axis` is missing")?)?;
            let of = |shapes: &[Vec<u64>]| shapes.first()?.get(axis).copied();
            let extents = of(&layer.input_shape).zip(of(&layer.output_shape));
            let (from, to) = extents.ok_or("its shapes are missing")?;
            let places = list("indices").ok_or("`indices` is missing")?;
            let places: Option<Arc<[u32]>> = places
                .into_iter()
                .map(|at| u32::try_from(at).ok().filter(|at| u64::from(*at) < from))
                .collect();
            let places = places.filter(|places| places.len() as u64 == to && axis > 0);
            Move::Take(
                axis,
                places.ok_or_else(|| format!("expected {to} `indices` below {from}"))?,
            )
        }
        _ => return Ok(None),
    }))
}

/// A scale and an offset for each channel.
type Affine = (Vec<f64>, Vec<f64>);

/// `channel_scale` and `channel_offset`: a number for each channel.
fn affine(layer: &Layer) -> Result<Option<Affine>, String> {
    let list = |key: &str| -> Option<Vec<f64>> {
        let values = layer.other.get(key)?.as_array()?;
        values.iter().map(Value::as_f64).collect()
    };
    let channels = layer
        .output_shape
        .first()
        .and_then(|shape| shape.get(1))
        .copied()
        .unwrap_or(1);
    match (list("channel_scale"), list("channel_offset")) {
        (None, None) => Ok(None),
        (Some(scale), Some(offset))
            if scale.len() as u64 == channels && offset.len() as u64 == channels =>
        {
            Ok(Some((scale, offset)))
        }
        _ => Err(format!(
            "`channel_scale` and `channel_offset` are not {channels} numbers each"
        )),
    }
}

fn convolution(
    layer: &Layer,
    input: ElementType,
    element: &impl Fn(&[String], usize) -> Result<ElementType, String>,
) -> Result<Kind, String> {
    let q = layer.quant_info.clone().unwrap_or_default();
    let weight = match element(&layer.input_dtype, 1)? {
        ElementType::Int8 => ElementType::Int8,
        _ if input == ElementType::Float16 => ElementType::Float16,
        other => other,
    };
    let groups = layer.group.unwrap_or(1).max(1);
    let activation = match layer.activation_type.as_deref() {
        None | Some("" | "none") => Activation::None,
        Some("relu") => Activation::Relu(None),
        Some("relu_x" | "relu6") => Activation::Relu(Some(layer.activation_attr.unwrap_or(6.0))),
        Some(other) => return Err(format!("activation `{other}` is not supported")),
    };
    let quantisation = Quantisation {
        input_zero: q.input_zero_point1.unwrap_or(0.0),
        input_scale: q.input_scale1.unwrap_or(1.0),
        output_scale: q.output_scale,
        output_zero: q.output_zero_point.unwrap_or(0.0),
    };
    Ok(Kind::Convolution {
        groups,
        weight,
        quantisation,
        activation,
    })
}

fn vector(layer: &Layer) -> Result<Vector, String> {
    let stage = |name: &str| layer.module_list.get(name);
    let (before, after) = (stage("pre_cal"), stage("post_cal"));
    let mut vector = Vector {
        inputs: [
            (
                number(before, "requan_scale_a", 1.0),
                number(before, "requan_zp_a", 0.0),
            ),
            (
                number(before, "requan_scale_b", 1.0),
                number(before, "requan_zp_b", 0.0),
            ),
        ],
        output: (number(after, "mul_k", 1.0), number(after, "sum_b", 0.0)),
        relu: stage("relu_group").is_some(),
        ..Vector::default()
    };
    if let Some(multiply) = stage("fp32_mul_group") {
        if multiply
            .get("mul_group_k_mux")
            .and_then(Value::as_str)
            .is_some_and(|mux| mux == "vector")
        {
            vector.second = Some(Second::Multiply);
        } else {
            vector.factor = Some(number(Some(multiply), "mul_group_k_scalar", 1.0));
        }
    }
    vector.groups = layer.group.unwrap_or(1).max(1);
    vector.affine = affine(layer)?;
    vector.mean_inside = layer
        .other
        .get("count_include_pad")
        .and_then(Value::as_bool)
        == Some(false);
    if layer.activation_type.as_deref() == Some("relu_x") {
        vector.relu = true;
        vector.bound = layer.activation_attr;
    }
    if stage("compare_group").is_some() {
        vector.window = Some(Window::Maximum);
    }
    if stage("acc_tree_group").is_some() {
        vector.window = Some(Window::Sum);
    }
    if let Some(sum) = stage("fp32_sum_sub_group0") {
        let subtracts = sum.get("sumsub_group_mode").and_then(Value::as_str) == Some("sub");
        vector.second = Some(if subtracts {
            Second::Subtract
        } else {
            Second::Add
        });
    }
    match layer.operation.as_str() {
        "quantize" | "dequantize" | "relu" => {}
        "softmax" => {
            let axis = layer.other.get("axis").and_then(Value::as_i64);
            if !matches!(axis, None | Some(1 | -3)) {
                return Err("softmax over another axis than the channels is not supported".into());
            }
            vector.across = Some(Across::Softmax);
        }
        "max_pool2d" => vector.window = Some(Window::Maximum),
        "avg_pool2d" => {
            if vector.mean_inside {
                vector.factor = None;
            } else if vector.window.is_none() || vector.factor.is_none() {
                let [rows, columns] = layer.pool_size.or(layer.kernel_size).unwrap_or([1, 1]);
                vector.factor = Some(1.0 / (f64::from(rows) * f64::from(columns)).max(1.0));
            }
            vector.window = Some(Window::Sum);
        }
        "element_wise_add" => vector.second = Some(vector.second.unwrap_or(Second::Add)),
        "element_wise_sub" => vector.second = Some(Second::Subtract),
        "element_wise_mult" => vector.second = Some(Second::Multiply),
        "div" => vector.second = Some(Second::Divide),
        "where" | "where_not" => {
            let otherwise = layer.other.get("otherwise").and_then(Value::as_f64);
            vector.second = Some(Second::Where {
                inverted: layer.operation == "where_not",
                otherwise: otherwise.unwrap_or(0.0),
            });
        }
        other => {
            let of_two = Known::find(other, OF_TWO);
            vector.second = vector.second.or(of_two.map(Second::Plain));
            vector.across = Across::of(layer);
            vector.function = Function::of(layer);
            if of_two.is_none() && vector.across.is_none() && vector.function.is_none() {
                return Err(format!("the operation `{other}` is not supported"));
            }
        }
    }
    Ok(vector)
}
