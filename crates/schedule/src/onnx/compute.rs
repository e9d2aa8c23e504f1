//! Nodes that become layers.

use super::attributes::Attributes;
use super::constant::Constant;
use super::elements::function;
use super::fold::axis_of;
use super::graph::Reader;
use super::proto::Node;
use super::value::{Known, Outcome, Scales, Value};
use crate::front::{Action, Activation, Arithmetic, Layout, Numbers, Window};
use crate::network::Kind;
use std::rc::Rc;

impl<'g> Reader<'g> {
    pub(super) fn compute(
        &mut self,
        node: &'g Node,
        kind: &str,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let attributes = Attributes(&node.attribute);
        match kind {
            "Conv" => self.convolution(&attributes, inputs),
            "Gemm" => self.gemm(&attributes, inputs),
            "MatMul" => self.product(inputs),
            "MaxPool" | "AveragePool" => self.pool(kind, &attributes, inputs),
            "GlobalAveragePool" | "GlobalMaxPool" => {
                self.global_pool(kind == "GlobalMaxPool", inputs)
            }
            "ReduceMean" => self.mean(&attributes, inputs),
            "Add" => self.combine(Arithmetic::Add, node, inputs),
            "Sub" => self.combine(Arithmetic::Subtract, node, inputs),
            "Mul" => self.combine(Arithmetic::Multiply, node, inputs),
            "Div" => self.combine(Arithmetic::Divide, node, inputs),
            "Softmax" => self.softmax(&attributes, inputs),
            "LayerNormalization" => self.layer_norm(&attributes, inputs),
            "BatchNormalization" => self.batch_norm(node, &attributes, inputs),
            "Relu" => self.activation(node, Activation::Relu, inputs),
            "Clip" => self.clip(node, &attributes, inputs),
            "Gelu" | "Sigmoid" | "Tanh" | "Erf" | "HardSigmoid" | "HardSwish" | "Swish"
            | "LeakyRelu" | "Elu" | "Softplus" | "Mish" => {
                self.function(function(kind, &attributes)?, inputs)
            }
            "QuantizeLinear" => self.quantise(&attributes, inputs),
            "DequantizeLinear" => self.dequantise(&attributes, inputs),
            _ => self.view(node, kind, &attributes, inputs),
        }
    }

    fn convolution(&mut self, attributes: &Attributes<'_>, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let (weight, scales) = Self::constant(inputs, 1)?.ok_or("it has no weights")?;
        let [c, rows, columns] = map(&x)?;
        let &[k, per_group, ref taps @ ..] = weight.shape.as_slice() else {
            return Err(format!("weights of the shape {:?}", weight.shape));
        };
        let [r, s] = sides(x.layout, taps, 1)
            .ok_or_else(|| format!("weights of the shape {:?} for {:?}", weight.shape, x.dims()))?;
        let groups = attributes.int("group").unwrap_or(1);
        if groups < 1 || k < 1 || k % groups != 0 || per_group.checked_mul(groups) != Some(c) {
            return Err(format!(
                "{c} channels arrive; its weights {:?}, group={groups}, expect {}",
                weight.shape,
                per_group.saturating_mul(groups)
            ));
        }
        let (window, [h, w]) = window(attributes, x.layout, [rows, columns], Some([r, s]))?;
        let kind = if groups > 1 {
            Kind::GroupConv
        } else {
            Kind::Conv
        };
        let mut layer = self.plain(kind, [k, h, w]);
        (layer.channels, layer.groups, layer.kernel, layer.stride) =
            (c, groups, [r, s], window.stride);
        let bias = Self::constant(inputs, 2)?
            .map(|(bias, scales)| bias_of(bias, scales, k))
            .transpose()?;
        let mut weight = weights(weight, scales, 0)?;
        weight.shape = vec![k, per_group, r, s];
        let action = Action::Weighted {
            window,
            weight,
            columns: false,
            bias,
        };
        Ok(Known::Value(self.layer(
            layer,
            &[&x],
            None,
            action,
            x.layout,
        )))
    }

    fn gemm(&mut self, attributes: &Attributes<'_>, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        if attributes.int("transA").unwrap_or(0) != 0 {
            return Err("a transposed first operand is not supported".to_owned());
        }
        let factor = |name: &str| attributes.float(name).unwrap_or(1.0);
        let (weight, scales) = Self::constant(inputs, 1)?.ok_or("it has no weights")?;
        let columns = attributes.int("transB").unwrap_or(0) == 0;
        let weight = weights(weight, scales, usize::from(columns))?;
        let outputs = weight.shape.get(usize::from(columns)).copied();
        let bias = Self::constant(inputs, 2)?
            .map(|(bias, scales)| bias_of(bias, scales, outputs.unwrap_or(0)))
            .transpose()?;
        let weight = times(weight, factor("alpha"));
        let bias = bias.map(|bias| times(bias, factor("beta")));
        self.fully_connected(&x, weight, columns, bias)
    }

    fn fully_connected(
        &mut self,
        x: &Value,
        weight: Numbers,
        columns: bool,
        bias: Option<Numbers>,
    ) -> Outcome {
        let &[a, b] = weight.shape.as_slice() else {
            return Err(format!(
                "weights of the shape {:?}; expected two dimensions",
                weight.shape
            ));
        };
        let (inputs, outputs) = if columns { (a, b) } else { (b, a) };
        let [c, h, w] = x.extents;
        if x.layout == Layout::Sequence {
            if inputs != c {
                return Err(format!("{c} features arrive, its weights expect {inputs}"));
            }
            let mut layer = self.plain(Kind::Conv, [outputs, h, 1]);
            layer.channels = c;
            let action = Action::Weighted {
                window: Window::POINT,
                weight,
                columns,
                bias,
            };
            return Ok(Known::Value(self.layer(
                layer,
                &[x],
                None,
                action,
                Layout::Sequence,
            )));
        }
        if x.layout != Layout::Vector || inputs != c * h * w {
            return Err(format!(
                "{:?} arrives, its weights expect {inputs} numbers",
                x.dims()
            ));
        }
        let mut layer = self.plain(Kind::Fc, [outputs, 1, 1]);
        (layer.channels, layer.kernel) = (c, [h, w]);
        let window = Window {
            kernel: [h, w],
            ..Window::POINT
        };
        let action = Action::Weighted {
            window,
            weight,
            columns,
            bias,
        };
        Ok(Known::Value(self.layer(
            layer,
            &[x],
            None,
            action,
            Layout::Vector,
        )))
    }

    fn product(&mut self, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        if let Some(Some(Known::Constant(weight, scales))) = inputs.get(1) {
            let weight = weights(weight, scales.as_ref(), 1)?;
            return self.fully_connected(&x, weight, true, None);
        }
        let y = Self::value(inputs, 1)?.clone();
        let groups = |value: &Value| match value.layout {
            Layout::Sequence => Some(1),
            Layout::Heads(groups) => Some(groups),
            _ => None,
        };
        let (Some(groups), true) = (groups(&x), x.layout == y.layout) else {
            return Err(format!(
                "a product of {:?} and {:?} is not supported",
                x.dims(),
                y.dims()
            ));
        };
        let ([c, l, _], [k, inner, _]) = (x.extents, y.extents);
        if c / groups != inner {
            return Err(format!("a product of {:?} and {:?}", x.dims(), y.dims()));
        }
        let mut layer = self.plain(Kind::GroupConv, [k, l, 1]);
        (layer.channels, layer.groups) = (c, groups);
        Ok(Known::Value(self.layer(
            layer,
            &[&x],
            Some(&y),
            Action::Product,
            x.layout,
        )))
    }

    fn pool(
        &mut self,
        kind: &str,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let [c, rows, columns] = map(&x)?;
        let (window, [h, w]) = window(attributes, x.layout, [rows, columns], None)?;
        let counts_padding = attributes.int("count_include_pad") == Some(1);
        let said: i64 = attributes.ints("pads").unwrap_or_default().iter().sum();
        let same = attributes
            .text("auto_pad")
            .is_some_and(|how| how.starts_with("SAME"));
        let beyond = !same && window.padding.iter().sum::<i64>() > said;
        if kind == "AveragePool" && counts_padding && beyond && said > 0 {
            return Err(
                "windows that reach beyond a padding that counts are not supported".to_owned(),
            );
        }
        let mut layer = self.plain(Kind::Pool, [c, h, w]);
        (layer.kernel, layer.stride) = (window.kernel, window.stride);
        let action = if kind == "MaxPool" {
            Action::MaxPool(window)
        } else {
            // Where windows reach beyond the map (`ceil_mode`), what lies there never counts.
            Action::AveragePool(window, counts_padding && !beyond)
        };
        Ok(Known::Value(self.layer(
            layer,
            &[&x],
            None,
            action,
            x.layout,
        )))
    }

    fn global_pool(&mut self, largest: bool, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        map(&x)?;
        Ok(self.pool_all(largest, &x))
    }

    /// A pooling of all rows and columns.
    fn pool_all(&mut self, largest: bool, x: &Value) -> Known {
        let [c, rows, columns] = x.extents;
        let window = Window {
            kernel: [rows, columns],
            stride: [rows, columns],
            ..Window::POINT
        };
        let mut layer = self.plain(Kind::Pool, [c, 1, 1]);
        (layer.kernel, layer.stride) = (window.kernel, window.stride);
        let action = if largest {
            Action::MaxPool(window)
        } else {
            Action::AveragePool(window, false)
        };
        Known::Value(self.layer(layer, &[x], None, action, x.layout))
    }

    fn mean(&mut self, attributes: &Attributes<'_>, inputs: &[Option<Known>]) -> Outcome {
        let mut axes = attributes.ints("axes").unwrap_or_default().to_vec();
        if let Some((constant, _)) = Self::constant(inputs, 1)? {
            axes = Self::whole(constant)?;
        }
        let x = Self::value(inputs, 0)?;
        let rank = x.dims().len() as i64 + 1;
        axes.iter_mut()
            .filter(|axis| **axis < 0)
            .for_each(|axis| *axis += rank);
        axes.sort_unstable();
        let whole = match x.layout {
            Layout::Map => axes == [2, 3],
            Layout::Line => axes == [2],
            Layout::Sequence => axes == [1],
            _ => false,
        };
        if !whole {
            return Err("a mean over other axes than rows and columns is not supported".to_owned());
        }
        let mean = self.pool_all(false, &x.clone());
        Ok(match mean {
            Known::Value(value) if attributes.int("keepdims") == Some(0) => Known::Value(Value {
                layout: Layout::Vector,
                ..value
            }),
            mean => mean,
        })
    }

    fn softmax(&mut self, attributes: &Attributes<'_>, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let rank = x.dims().len() + 1;
        // Before version 13, all axes from this one on are taken together.
        let together = self.version < 13;
        let axis = attributes
            .int("axis")
            .unwrap_or(if together { 1 } else { -1 });
        let axis = axis_of(axis, rank)?;
        let groups = match x.layout {
            Layout::Map | Layout::Line if axis == 1 && !together => 1,
            Layout::Sequence if axis == 2 => 1,
            Layout::Heads(groups) if axis == 3 => groups,
            Layout::Vector if axis == 1 && x.extents[1] * x.extents[2] == 1 => 1,
            _ => {
                return Err(format!(
                    "over the axis {axis} of {:?} of each image it is not supported",
                    x.dims()
                ));
            }
        };
        Ok(self.pointwise(&x, Action::Softmax(groups)))
    }

    fn layer_norm(&mut self, attributes: &Attributes<'_>, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let axis = attributes.int("axis").unwrap_or(-1);
        let vector = x.layout == Layout::Vector && x.extents[1] * x.extents[2] == 1;
        if !(x.layout == Layout::Sequence && matches!(axis, -1 | 2)
            || vector && matches!(axis, -1 | 1))
        {
            return Err(format!(
                "over the axis {axis} of {:?} it is not supported; only over the last of a sequence",
                x.dims()
            ));
        }
        let (factor, scales) = Self::constant(inputs, 1)?.ok_or("its factor is missing")?;
        let factor = Self::reals(factor, scales);
        let offset = Self::constant(inputs, 2)?.map(|(offset, scales)| Self::reals(offset, scales));
        if factor.shape.iter().product::<i64>() != x.extents[0] {
            return Err(format!(
                "{} features arrive, its factor has the shape {:?}",
                x.extents[0], factor.shape
            ));
        }
        let epsilon = attributes.float("epsilon").unwrap_or(1e-5);
        Ok(self.pointwise(&x, Action::LayerNorm(factor, offset, epsilon)))
    }
}

/// The weights of a layer whose outputs lie along an axis of them.
fn weights(
    constant: &Constant,
    scales: Option<&Scales>,
    outputs: usize,
) -> Result<Numbers, String> {
    let numbers = Reader::numbers(constant, scales);
    if let Some((scales, axis)) = &numbers.scales {
        if scales.len() > 1 && *axis != outputs {
            return Err(format!(
                "the weights `{}` have scales along their axis {axis}; expected one for all or for each output, along the axis {outputs}",
                constant.name
            ));
        }
        if !matches!(constant.kind, 2 | 3) {
            return Err(format!(
                "the weights `{}` are integers of ONNX type {}; expected 8 bits",
                constant.name, constant.kind
            ));
        }
    }
    Ok(numbers)
}

/// One number for each output, or for all of them.
fn bias_of(constant: &Constant, scales: Option<&Scales>, outputs: i64) -> Result<Numbers, String> {
    let count: i64 = constant.shape.iter().product();
    if count != 1 && (count != outputs || constant.shape.last() != Some(&outputs)) {
        return Err(format!(
            "a bias of the shape {:?} for {outputs} outputs is not supported",
            constant.shape
        ));
    }
    Ok(Reader::numbers(constant, scales))
}

/// Numbers times a factor.
fn times(numbers: Numbers, factor: f64) -> Numbers {
    let all = |numbers: Rc<Vec<f64>>| Rc::new(numbers.iter().map(|v| v * factor).collect());
    match numbers.scales {
        _ if factor.to_bits() == 1f64.to_bits() => numbers,
        Some((scales, axis)) => Numbers {
            scales: Some((all(scales), axis)),
            ..numbers
        },
        None => Numbers {
            values: numbers.values.map(all),
            ..numbers
        },
    }
}

/// Channels, rows and columns of what windows go over.
fn map(value: &Value) -> Result<[i64; 3], String> {
    match value.layout {
        Layout::Map | Layout::Line => Ok(value.extents),
        _ => Err(format!(
            "{:?} arrives; expected channels, rows and columns, or channels and rows",
            value.dims()
        )),
    }
}

/// What a node says of each side that windows go over, as rows and columns; a line has one column.
fn sides(layout: Layout, given: &[i64], otherwise: i64) -> Option<[i64; 2]> {
    match (layout, given) {
        (Layout::Map, [rows, columns]) => Some([*rows, *columns]),
        (Layout::Line, [rows]) => Some([*rows, otherwise]),
        _ => None,
    }
}

/// The window of a node, and the rows and columns of its result.
fn window(
    attributes: &Attributes<'_>,
    layout: Layout,
    from: [i64; 2],
    weights: Option<[i64; 2]>,
) -> Result<(Window, [i64; 2]), String> {
    let pair = |name: &str, otherwise: Option<[i64; 2]>| {
        let given = attributes.ints(name);
        let wrong = || {
            format!(
                "`{name}` is {:?}; expected a positive number for each side",
                given.unwrap_or_default()
            )
        };
        let pair = match given {
            None => otherwise,
            Some(given) => sides(layout, given, 1),
        };
        let fits = |pair: &[i64; 2]| pair.iter().all(|v| (1..1 << 20).contains(v));
        pair.filter(fits).ok_or_else(wrong)
    };
    let kernel = pair("kernel_shape", weights)?;
    if weights.is_some_and(|weights| weights != kernel) {
        return Err(format!(
            "`kernel_shape` is {kernel:?}, its weights have {weights:?}"
        ));
    }
    let stride = pair("strides", Some([1, 1]))?;
    let dilation = pair("dilations", Some([1, 1]))?;
    if dilation != [1, 1] && weights.is_none() {
        return Err("dilations of a pooling are not supported".to_owned());
    }
    let mut window = Window {
        kernel,
        stride,
        padding: [0; 4],
        dilation,
    };
    let span = window.span();
    if span.iter().any(|span| *span >= 1 << 20) {
        return Err(format!("a window of {span:?} elements"));
    }
    let given = attributes.ints("pads");
    let mut padding = match given.map(|pads| pads.split_at(pads.len() / 2)) {
        None => [0; 4],
        Some((before, after)) => {
            let both = sides(layout, before, 0).zip(sides(layout, after, 0));
            let pads = both.map(|([top, left], [bottom, right])| [top, bottom, left, right]);
            pads.filter(|pads| pads.iter().all(|v| (0..1 << 20).contains(v)))
                .ok_or_else(|| {
                    format!(
                        "`pads` is {:?}; expected two numbers that are not negative for each side",
                        given.unwrap_or_default()
                    )
                })?
        }
    };
    let same = attributes.text("auto_pad").unwrap_or("NOTSET");
    let mut to = [0; 2];
    for d in 0..2 {
        let (extent, kernel, stride) = (from[d], span[d], stride[d]);
        if same.starts_with("SAME") {
            to[d] = (extent - 1) / stride + 1;
            let all = ((to[d] - 1) * stride + kernel - extent).max(0);
            let small = all / 2;
            let (first, last) = if same == "SAME_LOWER" {
                (all - small, small)
            } else {
                (small, all - small)
            };
            (padding[2 * d], padding[2 * d + 1]) = (first, last);
            continue;
        }
        let room = extent + padding[2 * d] + padding[2 * d + 1] - kernel;
        if room < 0 {
            return Err(format!(
                "a window of {kernel} over {extent} elements with {} of padding",
                room + kernel - extent
            ));
        }
        to[d] = room / stride + 1;
        let begins = |last: i64| last * stride < extent + padding[2 * d];
        if attributes.int("ceil_mode") == Some(1) && room % stride != 0 && begins(to[d]) {
            to[d] += 1;
            padding[2 * d + 1] += stride - room % stride;
        }
    }
    window.padding = padding;
    Ok((window, to))
}
