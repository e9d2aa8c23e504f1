//! Layers of the front-end file: what each of them computes, and its arrays.

use super::lowered::{Reach, axis_of_boxes};
use super::stages::stages;
use super::view::Producer;
use super::written::{Placement, Writer, npy, plain};
use crate::front::{
    Action, Activation, Arithmetic, Element, Function, Move, Named, Numbers, Quantisation, View,
    Window,
};
use crate::network::Layer;
use chipless_gemini::schedule::LayerType;
use chipless_gemini::strided::Strided;
use chipless_model::ElementType;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// How a layer stands in the schedule.
struct Described {
    kind: LayerType,
    reach: Reach,
    /// Channels of a group and elements of the window, where it has weights.
    weights: Option<[i64; 2]>,
}

impl Writer<'_> {
    /// A layer of the network.
    pub(super) fn layer(&mut self, index: usize) -> Result<(), String> {
        let front = self.front;
        let (layer, operation) = (&front.network.layers[index], &front.operations[index]);
        let here = Placement::Layer(index);
        let own = self.scales.layers[index];
        let mut read = Vec::new();
        for operand in &operation.operands {
            // What moves is stored as the result is before it moves.
            let operand = match operation.action {
                Action::Move(_) if operation.element == Element::Int8 => {
                    Cow::Owned(operand.stored_as(own))
                }
                _ => Cow::Borrowed(operand),
            };
            read.push(self.operand(&operand, Placement::Before(index)));
        }
        let name = operation_name(&operation.action);
        // The format has the constant of a sum or a product behind the activation.
        if ["element_wise_add", "element_wise_mult"].contains(&name) {
            read.sort_by_key(|(producer, _)| matches!(producer, Producer::Constant(_)));
        }
        let (from, taken): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let mut value = self.value(&layer.name, name, &from, layer.output, operation.element);
        let Described {
            kind,
            reach,
            weights,
        } = self.described(index, &from, &taken, &mut value)?;
        if kind == LayerType::Vp {
            let combined = match operation.action {
                Action::Combine(arithmetic) => Some(arithmetic),
                _ => None,
            };
            value["module_list"] = stages(&taken, own, combined);
        }
        activation(operation.activation, kind, &mut value);
        let at = self.push(
            layer.name.clone(),
            kind,
            layer.output,
            &from,
            reach,
            weights,
            here,
            value,
        );
        self.place.push(at);
        Ok(())
    }

    /// What a layer's action says in the file, and what a box of its result needs.
    fn described(
        &mut self,
        index: usize,
        from: &[Producer],
        taken: &[Quantisation],
        value: &mut Value,
    ) -> Result<Described, String> {
        let front = self.front;
        let (layer, operation) = (&front.network.layers[index], &front.operations[index]);
        let own = self.scales.layers[index];
        let (mut reach, mut kind, mut weights) = (Reach::Same, LayerType::Vp, None);
        let input = self.extents(from[0]);
        match &operation.action {
            Action::Weighted { window, .. } => {
                let group = [
                    layer.channels / layer.groups,
                    layer.output[0] / layer.groups,
                ];
                kind = LayerType::Pe;
                weights = Some([group[0], window.kernel[0] * window.kernel[1]]);
                let fc = layer.kind == crate::network::Kind::Fc;
                reach = if fc {
                    Reach::Whole(input)
                } else {
                    reach_of(window, Some(group), input)
                };
                self.weighted(index, window, taken[0], value);
            }
            Action::Product => {
                kind = LayerType::Pe;
                reach = Reach::Product {
                    inner: layer.channels / layer.groups,
                    outputs: layer.output[0] / layer.groups,
                };
                product(layer.groups, taken, own, value);
            }
            Action::MaxPool(window) | Action::AveragePool(window, _) => {
                reach = reach_of(window, None, input);
                value["pool_size"] = json!(window.kernel);
                value["stride"] = json!(window.stride);
                value["padding"] = json!(window.padding);
                if let Action::AveragePool(_, padded) = operation.action {
                    value["count_include_pad"] = json!(padded);
                }
            }
            Action::Softmax(groups) => {
                reach = Reach::AllChannels(vec![input[0]]);
                value["group"] = json!(groups);
                value["axis"] = json!(1);
            }
            Action::LayerNorm(factor, offset, epsilon) => {
                reach = Reach::AllChannels(vec![input[0]]);
                value["epsilon"] = json!(epsilon);
                if self.known {
                    let factor = factor.values.clone()?;
                    let offset = match offset {
                        Some(offset) => offset.values.clone()?.to_vec(),
                        None => vec![0.0; factor.len()],
                    };
                    affine(value, &factor, &offset);
                }
            }
            Action::Affine(factor, offset) => {
                if self.known {
                    affine(value, &factor.values.clone()?, &offset.values.clone()?);
                }
            }
            Action::Constant(arithmetic, numbers) => {
                if self.known {
                    let values = numbers.values.clone()?;
                    with_constant(*arithmetic, &values, layer.output[0], value);
                }
            }
            Action::Move(how) => {
                kind = LayerType::Dt;
                reach = self.moved_as(*how, from, layer.output, value);
            }
            Action::Combine(_) => {
                let extents = |of: &Producer| {
                    let [c, h, w] = self.extents(*of);
                    [c, self.images(*of), h, w]
                };
                reach = Reach::Broadcast(from.iter().map(extents).collect());
            }
            Action::Function(function) => parameters(*function, value),
            Action::Named(named) => reach = self.named(named, from, value),
            Action::Strided(view) => {
                kind = LayerType::Dt;
                reach = strided(view, input, layer.output, value)?;
            }
            Action::Take(axis, places) => {
                kind = LayerType::Dt;
                value["axis"] = json!(axis + 1);
                value["indices"] = json!(places.to_vec());
                reach = Reach::Take(axis_of_boxes(*axis), Arc::clone(places));
            }
        }
        Ok(Described {
            kind,
            reach,
            weights,
        })
    }

    /// An operation that has no form of its own in the front-end file.
    fn named(&self, named: &Named, from: &[Producer], value: &mut Value) -> Reach {
        if let Some(layer) = value.as_object_mut() {
            layer.extend(named.attributes.clone());
        }
        let extents = from.iter().map(|producer| self.extents(*producer));
        if named.across {
            Reach::AllChannels(extents.map(|[c, ..]| c).collect())
        } else {
            let images = from.iter().map(|producer| self.images(*producer));
            let all = extents.zip(images);
            Reach::Broadcast(all.map(|([c, h, w], n)| [c, n, h, w]).collect())
        }
    }

    /// How elements move: what the front-end file says of it, and what a box of the result needs.
    pub(super) fn moved_as(
        &self,
        how: Move,
        from: &[Producer],
        output: [i64; 3],
        value: &mut Value,
    ) -> Reach {
        match how {
            Move::Exchange => {
                value["perm"] = json!([0, 2, 1, 3]);
                Reach::Transpose
            }
            Move::Slice(axis, first) => {
                value["starts"] = json!([first]);
                value["ends"] = json!([first + output[axis]]);
                value["axes"] = json!([axis + 1]);
                value["steps"] = json!([1]);
                Reach::Slice(axis_of_boxes(axis), first)
            }
            Move::Concat(axis) => {
                value["axis"] = json!(axis + 1);
                let mut end = 0;
                let ranges = from.iter().map(|producer| {
                    let first = end;
                    end += self.extents(*producer)[axis];
                    ([first, end], self.images(*producer) == 1)
                });
                Reach::Concat(axis_of_boxes(axis), ranges.collect())
            }
            Move::Reshape => Reach::Whole(self.extents(from[0])),
            Move::Repeat(times) => {
                value["scales"] = json!(times);
                Reach::Repeat(times)
            }
        }
    }

    /// Weights and biases as they are.
    fn real_weights(
        &mut self,
        index: usize,
        window: &Window,
        [taken, own]: [Quantisation; 2],
        value: &mut Value,
    ) {
        let (front, layer) = (self.front, &self.front.network.layers[index]);
        value["quant_info"] = json!({
            "input_scale1": taken.scale / own.scale, "input_zero_point1": 0.0, "round_type": "round",
        });
        let file = |role: &str| format!("{}_{role}.npy", plain(&layer.name));
        let mut files = json!({ "weight": file("weight") });
        let Action::Weighted {
            weight,
            columns,
            bias,
            ..
        } = &front.operations[index].action
        else {
            return;
        };
        if bias.is_some() {
            files["b"] = json!(file("b"));
        }
        value["file_list"] = files;
        let k = layer.output[0] as u64;
        let mut add = |role: &str, numbers: &Numbers, shape: &[u64], turned: bool| {
            let Ok(arrays) = &mut self.written.arrays else {
                return;
            };
            let made = numbers.values.clone().map(|values| {
                let (k, all) = (k as usize, values.len());
                let inner = all / k.max(1);
                let at = |i: usize| if turned { i % inner * k + i / inner } else { i };
                let single = (0..all).map(|i| (values[at(i)] as f32).to_le_bytes());
                npy(ElementType::Float32, shape, single)
            });
            match made {
                Ok(bytes) => arrays.push((file(role), bytes)),
                Err(error) => self.written.arrays = Err(error),
            }
        };
        let group = (layer.channels / layer.groups) as u64;
        let [rows, taps] = window.kernel.map(|extent| extent as u64);
        add("weight", weight, &[k, group, rows, taps], *columns);
        if let Some(bias) = bias {
            // Sums are in steps of what is read.
            let mut bias = bias.clone();
            let steps = |values: Rc<Vec<f64>>| {
                Rc::new(values.iter().map(|value| value / taken.scale).collect())
            };
            bias.values = bias.values.map(steps);
            add("b", &bias, &[k], false);
        }
    }

    fn weighted(&mut self, index: usize, window: &Window, taken: Quantisation, value: &mut Value) {
        let layer: &Layer = &self.front.network.layers[index];
        let own = self.scales.layers[index];
        let group = layer.channels / layer.groups;
        let constant = format!("constant_{}_weight", layer.name);
        let element = self.front.operations[index].element;
        if let Some(inputs) = value["input_dtype"].as_array_mut() {
            inputs.push(json!(element.name()));
        }
        if let Some(shapes) = value["input_shape"].as_array_mut() {
            shapes.push(json!([
                layer.output[0],
                group,
                window.kernel[0],
                window.kernel[1]
            ]));
        }
        if let Some(previous) = value["previous_layer"].as_array_mut() {
            previous.push(json!(constant));
        }
        if let Some(dims) = value["input_batchdim"].as_array_mut() {
            dims.push(json!(-1));
        }
        value["kernel_size"] = json!(window.kernel);
        value["stride"] = json!(window.stride);
        value["padding"] = json!(window.padding);
        if window.dilation != [1, 1] {
            value["dilation"] = json!(window.dilation);
        }
        if layer.groups > 1 {
            value["group"] = json!(layer.groups);
            value["operation"] = json!("conv2d_group");
        } else if layer.kind == crate::network::Kind::Fc {
            value["operation"] = json!("dense");
        }
        if element != Element::Int8 {
            self.real_weights(index, window, [taken, own], value);
            return;
        }
        if self.known {
            value["quant_info"] = json!({
                "input_scale1": taken.scale, "input_zero_point1": -taken.zero,
                "output_scale": 1.0 / own.scale, "output_zero_point": own.zero, "round_type": "round",
            });
        }
        let file = |role: &str| format!("{}_{role}.npy", plain(&layer.name));
        value["file_list"] = json!({ "weight": file("weight"), "k": file("k"), "b": file("b") });
        if let (Some(constants), Ok(arrays)) =
            (&self.scales.constants[index], &mut self.written.arrays)
        {
            let k = [constants.scales.len() as u64];
            let real = |values: &[f64]| {
                let bytes = values.iter().map(|value| value.to_le_bytes());
                npy(ElementType::Float64, &k, bytes)
            };
            let shape = constants.shape.map(|extent| extent as u64);
            let weights = constants.weights.iter().map(|value| value.to_le_bytes());
            arrays.push((file("weight"), npy(ElementType::Int8, &shape, weights)));
            arrays.push((file("k"), real(&constants.scales)));
            arrays.push((file("b"), real(&constants.biases)));
        }
    }
}

/// A tensor as another one.
fn strided(
    view: &View,
    input: [i64; 3],
    output: [i64; 3],
    value: &mut Value,
) -> Result<Reach, String> {
    let [of, to] = [input, output].map(|extents| extents.map(|extent| extent as u64));
    let strided = Strided::new(&view.axes, view.offset, view.fill, of, to)?;
    let axes = || view.axes.iter();
    value["extents"] = axes().map(|axis| axis.extent).collect();
    value["strides"] = axes().map(|axis| axis.stride).collect();
    if axes().any(|axis| axis.valid != [0, axis.extent]) {
        value["valid"] = json!(axes().map(|axis| axis.valid).collect::<Vec<_>>());
        value["fill"] = json!(view.fill);
    }
    value["offset"] = json!(view.offset);
    Ok(Reach::Strided(Arc::new(strided)))
}

/// What a function has beside its name.
fn parameters(function: Function, value: &mut Value) {
    match function {
        Function::GeluByTanh => value["approximate"] = json!("tanh"),
        Function::HardSigmoid(alpha, beta) => {
            value["alpha"] = json!(alpha);
            value["beta"] = json!(beta);
        }
        Function::Swish(alpha) | Function::LeakyRelu(alpha) | Function::Elu(alpha) => {
            value["alpha"] = json!(alpha);
        }
        Function::Clip(least, most) => {
            for (name, bound) in [("min", least), ("max", most)] {
                if bound.is_finite() {
                    value[name] = json!(bound);
                }
            }
        }
        _ => {}
    }
}

/// What bounds a result.
fn activation(activation: Activation, kind: LayerType, value: &mut Value) {
    let (name, attribute) = match activation {
        Activation::None => (Value::Null, Value::Null),
        Activation::Relu if kind == LayerType::Vp => (json!("relu"), Value::Null),
        Activation::Relu => (json!("relu"), Value::Null),
        Activation::Bounded(most) => (json!("relu_x"), json!(most)),
    };
    if kind == LayerType::Vp && activation == Activation::Relu {
        value["module_list"]["relu_group"] = json!({});
    }
    value["activation_type"] = name;
    value["activation_attr"] = attribute;
}

/// A constant operand as a factor and an offset of each channel.
fn with_constant(arithmetic: Arithmetic, values: &[f64], channels: i64, value: &mut Value) {
    let each = |i: usize| values.get(i).or(values.first()).copied().unwrap_or(0.0);
    let all: Vec<f64> = (0..channels as usize).map(each).collect();
    let (factor, offset) = match arithmetic {
        Arithmetic::Add => (vec![1.0; all.len()], all),
        Arithmetic::Subtract => (vec![1.0; all.len()], all.iter().map(|v| -v).collect()),
        Arithmetic::Multiply => (all.clone(), vec![0.0; all.len()]),
        Arithmetic::Divide => (all.iter().map(|v| 1.0 / v).collect(), vec![0.0; all.len()]),
    };
    affine(value, &factor, &offset);
}

fn affine(value: &mut Value, factor: &[f64], offset: &[f64]) {
    value["channel_scale"] = json!(factor);
    value["channel_offset"] = json!(offset);
}

fn reach_of(window: &Window, group: Option<[i64; 2]>, input: [i64; 3]) -> Reach {
    Reach::Window {
        group,
        kernel: window.span(),
        stride: window.stride,
        padding: [window.padding[0], window.padding[2]],
        extents: [input[1], input[2]],
    }
}

pub(super) fn operation_name(action: &Action) -> &'static str {
    match action {
        Action::Weighted { .. } => "conv2d",
        Action::Product => "matmul",
        Action::MaxPool(_) => "max_pool2d",
        Action::AveragePool(..) => "avg_pool2d",
        Action::Combine(Arithmetic::Add) => "element_wise_add",
        Action::Combine(Arithmetic::Subtract) => "element_wise_sub",
        Action::Combine(Arithmetic::Multiply) => "element_wise_mult",
        Action::Combine(Arithmetic::Divide) => "div",
        Action::Softmax(_) => "softmax",
        Action::LayerNorm(..) => "layer_norm",
        Action::Constant(..) | Action::Affine(..) | Action::Function(Function::Identity) => {
            "quantize"
        }
        Action::Function(function) => function_name(*function),
        Action::Move(Move::Exchange) => "permute",
        Action::Move(Move::Slice(..)) => "slice",
        Action::Move(Move::Concat(_)) => "concat",
        Action::Move(Move::Reshape) => "reshape",
        Action::Move(Move::Repeat(_)) => "resize",
        Action::Named(named) => named.name,
        Action::Strided(_) => "as_strided",
        Action::Take(..) => "gather",
    }
}

fn function_name(function: Function) -> &'static str {
    match function {
        Function::Gelu | Function::GeluByTanh => "gelu",
        Function::Sigmoid => "sigmoid",
        Function::Tanh => "tanh",
        Function::Erf => "erf",
        Function::HardSigmoid(..) => "hard_sigmoid",
        Function::HardSwish => "hard_swish",
        Function::Swish(_) => "swish",
        Function::LeakyRelu(_) => "leaky_relu",
        Function::Elu(_) => "elu",
        Function::Softplus => "softplus",
        Function::Mish => "mish",
        Function::Clip(..) => "clip",
        Function::Identity => "quantize",
    }
}

/// The scales of a product of two activations.
fn product(groups: i64, taken: &[Quantisation], own: Quantisation, value: &mut Value) {
    value["group"] = json!(groups);
    value["quant_info"] = json!({
        "input_scale1": taken[0].scale, "input_zero_point1": -taken[0].zero,
        "input_scale2": taken[1].scale, "input_zero_point2": -taken[1].zero,
        "output_scale": 1.0 / own.scale, "output_zero_point": own.zero, "round_type": "round",
    });
}
