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
//! The published front-end files do not come with their arrays, so where `b` is added and whether halves round up is
//! an assumption.

use crate::network::{Layer, Network};
use chipless_model::ElementType;
use serde_json::{Map, Value};

/// Extents of kernels and strides, at most.
const MOST: u32 = 1 << 12;

/// What a layer computes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    /// As the front end names it.
    pub(crate) name: String,
    /// Layers that it reads.
    pub(crate) previous: Vec<String>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) output: ElementType,
    /// Output channels of the layer.
    pub(crate) channels: u32,
    /// Rows and columns.
    pub(crate) kernel: [u32; 2],
    pub(crate) stride: [u32; 2],
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
    pub(crate) second: Option<Second>,
    pub(crate) relu: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    Add,
    Subtract,
    Multiply,
    Divide,
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
        let weights = matches!(
            layer.operation.as_str(),
            "conv2d" | "conv2d_group" | "dense"
        );
        let count = if weights {
            1
        } else {
            layer.input_shape.len().clamp(1, 2)
        };
        let operands = (0..count)
            .map(|i| {
                Ok(Operand {
                    element: element(&layer.input_dtype, i)?,
                    shape: shape(&layer.input_shape, i)?,
                })
            })
            .collect::<Result<Vec<_>, String>>()?;
        let output = element(&layer.output_dtype, 0)?;
        let usable = [ElementType::Int8, ElementType::Int16, ElementType::Float16];
        if let Some(operand) = operands
            .iter()
            .take(1)
            .find(|o| !usable.contains(&o.element))
        {
            return Err(what(&format!(
                "inputs of type {} are not supported",
                operand.element
            )));
        }
        if !usable.contains(&output) {
            return Err(what(&format!("outputs of type {output} are not supported")));
        }
        let kind = if weights {
            convolution(layer, operands[0].element, &element)?
        } else {
            Kind::Vector(vector(layer).map_err(|e| what(&e))?)
        };
        let [kernel, stride] =
            [layer.kernel_size.or(layer.pool_size), layer.stride].map(|v| v.unwrap_or([1, 1]));
        let padding = layer.padding.unwrap_or_default();
        if kernel.iter().chain(&stride).any(|v| *v == 0 || *v > MOST)
            || padding.iter().any(|p| *p > MOST)
        {
            return Err(what(&format!(
                "kernel {kernel:?}, stride {stride:?} or padding {padding:?} is out of range"
            )));
        }
        let channels = shape(&layer.output_shape, 0)?[1];
        Ok(Operation {
            name: layer.operation.clone(),
            previous: layer.previous_layer.clone(),
            operands,
            output,
            channels: u32::try_from(channels).map_err(|_| what("too many output channels"))?,
            kernel,
            stride,
            padding: [padding[0], padding[2]],
            kind,
        })
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
        "max_pool2d" => vector.window = Some(Window::Maximum),
        "avg_pool2d" => {
            if vector.window.is_none() || vector.factor.is_none() {
                let [rows, columns] = layer.pool_size.or(layer.kernel_size).unwrap_or([1, 1]);
                vector.factor = Some(1.0 / (f64::from(rows) * f64::from(columns)).max(1.0));
            }
            vector.window = Some(Window::Sum);
        }
        "element_wise_add" => vector.second = Some(vector.second.unwrap_or(Second::Add)),
        "element_wise_sub" => vector.second = Some(Second::Subtract),
        "element_wise_mult" => vector.second = Some(Second::Multiply),
        "div" => vector.second = Some(Second::Divide),
        other => return Err(format!("the operation `{other}` is not supported")),
    }
    Ok(vector)
}
