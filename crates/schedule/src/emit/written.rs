//! The network as it is executed: every layer of the front-end file with its arrays, the ones that only move elements among them.

use super::lowered::Reach;
use super::scales::{Scales, scales, taken};
use super::view::{Operand as ViewOperand, Part, Producer, Viewed};
use crate::front::{
    Action, Activation, Arithmetic, Front, Function, Operand, Piece, Quantisation, Source, Window,
};
use crate::network::Layer;
use chipless_gemini::schedule::LayerType;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A network with its arrays, as `chipless run` reads both.
#[derive(Debug)]
pub struct Written {
    pub(crate) layers: Vec<Viewed>,
    pub(crate) reach: Vec<Reach>,
    /// The layer of the network that each is, or the first reader of one that only moves elements.
    pub(crate) of: Vec<Placement>,
    pub(crate) inputs: Vec<String>,
    values: IndexMap<String, Value>,
    arrays: Result<Vec<(String, Vec<u8>)>, String>,
}

/// Where a layer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// As the tree has this layer.
    Layer(usize),
    /// Before this layer, which is the first that reads it.
    Before(usize),
    /// At the end.
    Last,
}

impl Written {
    /// The network that a file describes.
    ///
    /// # Errors
    /// What cannot be written: weights that are not there, where they are wanted; a result that is not stored.
    pub fn of(front: &Front, batch: i64, weights: bool) -> Result<Written, String> {
        let found = scales(front);
        if weights {
            found.clone()?;
        }
        let missing = found.as_ref().err().cloned();
        // Where weights are not there, shapes suffice for a schedule.
        let known = found.is_ok();
        let plain = Quantisation {
            scale: 1.0,
            zero: 0.0,
        };
        let scales = match found {
            Ok(scales) => scales,
            Err(text) if text.contains("which is not there") => Scales {
                inputs: vec![plain; front.inputs.len()],
                layers: vec![plain; front.network.layers.len()],
                constants: vec![None; front.network.layers.len()],
            },
            Err(text) => return Err(text),
        };
        let mut writer = Writer {
            front,
            batch,
            scales,
            known,
            moved: HashMap::new(),
            place: Vec::new(),
            written: Written {
                layers: Vec::new(),
                reach: Vec::new(),
                of: Vec::new(),
                inputs: front
                    .inputs
                    .iter()
                    .map(|input| input.name.clone())
                    .collect(),
                values: IndexMap::new(),
                arrays: missing.map_or_else(|| Ok(Vec::new()), Err),
            },
        };
        for index in 0..front.network.layers.len() {
            writer.layer(index)?;
        }
        writer.outputs();
        Ok(writer.finish())
    }

    /// The front-end file.
    pub fn network_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.values).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The arrays: file names with their bytes.
    ///
    /// # Errors
    /// The tensor that is not there.
    pub fn arrays(&self) -> Result<&[(String, Vec<u8>)], String> {
        self.arrays.as_deref().map_err(Clone::clone)
    }
}

/// Elements that were moved: pieces with how they were stored on the way, and how they are stored.
type Moved = (Vec<(Source, [i64; 2], Vec<[u64; 2]>)>, [u64; 2]);

/// How numbers are stored, to the bit.
fn bits(quantisation: Quantisation) -> [u64; 2] {
    [quantisation.scale.to_bits(), quantisation.zero.to_bits()]
}

fn moved<'p>(pieces: impl Iterator<Item = &'p Piece>, stored: Quantisation) -> Moved {
    let piece = |piece: &Piece| {
        let through = piece.through.iter().copied().map(bits).collect();
        (piece.source, piece.channels, through)
    };
    (pieces.map(piece).collect(), bits(stored))
}

struct Writer<'f> {
    front: &'f Front,
    batch: i64,
    scales: Scales,
    known: bool,
    moved: HashMap<Moved, usize>,
    /// Position of each layer of the network.
    place: Vec<usize>,
    written: Written,
}

/// Bytes of a .npy file.
fn npy<T: npyz::Serialize + npyz::AutoSerialize + Copy>(
    shape: &[u64],
    values: &[T],
) -> Result<Vec<u8>, String> {
    use npyz::WriterBuilder;
    let mut bytes = Vec::new();
    let write = |bytes: &mut Vec<u8>| -> std::io::Result<()> {
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .shape(shape)
            .writer(bytes)
            .begin_nd()?;
        writer.extend(values.iter().copied())?;
        writer.finish()
    };
    write(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

impl Writer<'_> {
    fn name(&self, producer: Producer) -> String {
        match producer {
            Producer::Input(input) => self.front.inputs[input].name.clone(),
            Producer::Layer(layer) => self.written.layers[layer].name.clone(),
        }
    }

    fn extents(&self, producer: Producer) -> [i64; 3] {
        match producer {
            Producer::Input(input) => self.front.inputs[input].extents,
            Producer::Layer(layer) => self.written.layers[layer].output,
        }
    }

    fn stored(&self, source: Source) -> Quantisation {
        match source {
            Source::Input(input) => self.scales.inputs[input],
            Source::Layer(layer) => self.scales.layers[layer],
        }
    }

    fn producer(&self, source: Source) -> Producer {
        match source {
            Source::Input(input) => Producer::Input(input),
            Source::Layer(layer) => Producer::Layer(self.place[layer]),
        }
    }

    fn channels(&self, source: Source) -> i64 {
        match source {
            Source::Input(input) => self.front.inputs[input].extents[0],
            Source::Layer(layer) => self.front.network.layers[layer].output[0],
        }
    }

    /// Who makes an operand: a layer or an input, after slices, concatenation and storing again where these are needed.
    fn operand(&mut self, operand: &Operand, reader: Placement) -> (Producer, Quantisation) {
        let wanted = taken(&self.scales, operand);
        let mut parts = Vec::new();
        for piece in &operand.pieces {
            let name = operand
                .name
                .as_deref()
                .filter(|_| operand.pieces.len() == 1);
            parts.push(self.piece(piece, wanted, reader, name));
        }
        let [part] = parts[..] else {
            let key = moved(operand.pieces.iter(), wanted);
            if let Some(at) = self.moved.get(&key) {
                return (Producer::Layer(*at), wanted);
            }
            let mut ranges = Vec::new();
            let mut channel = 0;
            for part in &parts {
                let more = self.extents(*part)[0];
                ranges.push([channel, channel + more]);
                channel += more;
            }
            let [_, h, w] = operand.extents;
            let at = self.move_layer(
                ("concat", operand.name.as_deref()),
                &parts,
                [channel, h, w],
                Reach::Concat(ranges),
                reader,
                |value| value["axis"] = json!(1),
            );
            self.moved.insert(key, at);
            return (Producer::Layer(at), wanted);
        };
        (part, wanted)
    }

    fn piece(
        &mut self,
        piece: &Piece,
        wanted: Quantisation,
        reader: Placement,
        name: Option<&str>,
    ) -> Producer {
        let mut stored = self.stored(piece.source);
        let whole = self.producer(piece.source);
        let [_, h, w] = self.extents(whole);
        let mut producer = whole;
        // The piece as it is after so many ways of storing.
        let key = |stored: Quantisation, steps: usize| {
            let mut piece = piece.clone();
            piece.through.truncate(steps);
            moved(std::iter::once(&piece), stored)
        };
        if piece.channels != [0, self.channels(piece.source)] {
            let known = self.moved.get(&key(stored, 0)).copied();
            let at = known.unwrap_or_else(|| {
                let [first, end] = piece.channels;
                self.move_layer(
                    ("slice", name),
                    &[whole],
                    [end - first, h, w],
                    Reach::Slice(first),
                    reader,
                    |value| {
                        value["starts"] = json!([first]);
                        value["ends"] = json!([end]);
                        value["axes"] = json!([1]);
                        value["steps"] = json!([1]);
                    },
                )
            });
            self.moved.insert(key(stored, 0), at);
            producer = Producer::Layer(at);
        }
        for (steps, next) in piece.through.iter().chain([&wanted]).enumerate() {
            if *next == stored {
                continue;
            }
            let known = self.moved.get(&key(*next, steps)).copied();
            let at = known.unwrap_or_else(|| {
                let extents = self.extents(producer);
                let modules = stages(&[stored], *next, None);
                self.move_layer(
                    ("quantize", None),
                    &[producer],
                    extents,
                    Reach::Same,
                    reader,
                    |value| value["module_list"] = modules,
                )
            });
            self.moved.insert(key(*next, steps), at);
            (producer, stored) = (Producer::Layer(at), *next);
        }
        producer
    }

    /// A layer that computes nothing of its own; it is called as its node, if no layer is, or after what it moves.
    fn move_layer(
        &mut self,
        (operation, node): (&str, Option<&str>),
        from: &[Producer],
        output: [i64; 3],
        reach: Reach,
        reader: Placement,
        more: impl FnOnce(&mut Value),
    ) -> usize {
        let base = format!(
            "{operation}_of_{}",
            from.iter()
                .map(|p| self.name(*p))
                .take(3)
                .collect::<Vec<_>>()
                .join("_")
        );
        let is_taken = |name: &str| {
            let mut layers = self.front.network.layers.iter();
            self.written.values.contains_key(name) || layers.any(|layer| layer.name == name)
        };
        let own = node.filter(|node| !is_taken(node));
        let mut name = own.unwrap_or(&base).to_owned();
        let mut number = 2;
        while is_taken(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        let kind = if operation == "quantize" {
            LayerType::Vp
        } else {
            LayerType::Dt
        };
        let mut value = self.value(&name, operation, from, output);
        more(&mut value);
        self.push(name, kind, output, from, reach, None, reader, value)
    }

    /// What every layer of a front-end file has.
    fn value(&self, name: &str, operation: &str, from: &[Producer], [c, h, w]: [i64; 3]) -> Value {
        let shapes: Vec<Value> = from
            .iter()
            .map(|producer| {
                let [c, h, w] = self.extents(*producer);
                json!([self.batch, c, h, w])
            })
            .collect();
        json!({
            "layer_index": self.written.layers.len(),
            "name": name,
            "operation": operation,
            "device": "npu",
            "input_dtype": vec!["int8"; from.len()],
            "output_dtype": ["int8"],
            "input_shape": shapes,
            "output_shape": [[self.batch, c, h, w]],
            "previous_layer": from.iter().map(|p| self.name(*p)).collect::<Vec<_>>(),
            "next_layer": [],
            "input_batchdim": vec![0; from.len()],
            "output_batchdim": [0],
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn push(
        &mut self,
        name: String,
        kind: LayerType,
        output: [i64; 3],
        from: &[Producer],
        reach: Reach,
        weights: Option<[i64; 2]>,
        of: Placement,
        value: Value,
    ) -> usize {
        let at = self.written.layers.len();
        let mut channel = 0;
        let concat = matches!(reach, Reach::Concat(_));
        let operands = from
            .iter()
            .map(|producer| {
                let channels = self.extents(*producer)[0];
                channel += channels;
                ViewOperand {
                    parts: vec![Part {
                        producer: *producer,
                        channels: [0, channels],
                        offset: 0,
                    }],
                    is_weight: false,
                }
            })
            .collect();
        debug_assert!(!concat || channel == output[0]);
        for producer in from {
            if let Producer::Layer(layer) = producer {
                let producer = self.written.layers[*layer].name.clone();
                if let Some(next) = self
                    .written
                    .values
                    .get_mut(&producer)
                    .and_then(|v| v["next_layer"].as_array_mut())
                {
                    next.push(json!(name));
                }
            }
        }
        self.written.layers.push(Viewed {
            name: name.clone(),
            kind,
            output,
            operands,
            weights,
            is_output: false,
        });
        self.written.reach.push(reach);
        self.written.of.push(of);
        self.written.values.insert(name, value);
        at
    }

    fn layer(&mut self, index: usize) -> Result<(), String> {
        let front = self.front;
        let (layer, operation) = (&front.network.layers[index], &front.operations[index]);
        let here = Placement::Layer(index);
        let (mut from, mut taken) = (Vec::new(), Vec::new());
        for operand in &operation.operands {
            let (producer, quantisation) = self.operand(operand, Placement::Before(index));
            from.push(producer);
            taken.push(quantisation);
        }
        let own = self.scales.layers[index];
        let mut value = self.value(
            &layer.name,
            operation_name(&operation.action),
            &from,
            layer.output,
        );
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
                self.weighted(index, window, taken[0], &mut value);
            }
            Action::Product => {
                kind = LayerType::Pe;
                reach = Reach::Product {
                    inner: layer.channels / layer.groups,
                    outputs: layer.output[0] / layer.groups,
                };
                value["group"] = json!(layer.groups);
                value["quant_info"] = json!({
                    "input_scale1": taken[0].scale, "input_zero_point1": -taken[0].zero,
                    "input_scale2": taken[1].scale, "input_zero_point2": -taken[1].zero,
                    "output_scale": 1.0 / own.scale, "output_zero_point": own.zero, "round_type": "round",
                });
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
                reach = Reach::AllChannels(input[0]);
                value["group"] = json!(groups);
                value["axis"] = json!(1);
            }
            Action::LayerNorm(factor, offset, epsilon) => {
                reach = Reach::AllChannels(input[0]);
                value["epsilon"] = json!(epsilon);
                if self.known {
                    let factor = factor.values.clone()?;
                    let offset = offset
                        .as_ref()
                        .map(|offset| offset.values.clone())
                        .transpose()?;
                    let offset =
                        offset.map_or_else(|| vec![0.0; factor.len()], |offset| offset.to_vec());
                    affine(&mut value, &factor, &offset);
                }
            }
            Action::Affine(factor, offset) => {
                if self.known {
                    affine(&mut value, &factor.values.clone()?, &offset.values.clone()?);
                }
            }
            Action::Constant(arithmetic, numbers) => {
                if self.known {
                    let values = numbers.values.clone()?;
                    let each = |i: usize| values.get(i).or(values.first()).copied().unwrap_or(0.0);
                    let all = (0..layer.output[0] as usize).map(each);
                    let (factor, offset) = match arithmetic {
                        Arithmetic::Add => (vec![1.0; all.len()], all.collect()),
                        Arithmetic::Subtract => (vec![1.0; all.len()], all.map(|v| -v).collect()),
                        Arithmetic::Multiply => (all.clone().collect(), vec![0.0; all.len()]),
                        Arithmetic::Divide => {
                            (all.clone().map(|v| 1.0 / v).collect(), vec![0.0; all.len()])
                        }
                    };
                    affine(&mut value, &factor, &offset);
                }
            }
            Action::Transpose => {
                kind = LayerType::Dt;
                reach = Reach::Transpose;
                value["perm"] = json!([0, 2, 1, 3]);
            }
            Action::Combine(_) | Action::Function(_) => {}
        }
        if kind == LayerType::Vp {
            let combined = match operation.action {
                Action::Combine(arithmetic) => Some(arithmetic),
                _ => None,
            };
            value["module_list"] = stages(&taken, own, combined);
        } else if kind == LayerType::Dt && taken[0] != own {
            return Err(format!(
                "`{}` stores its result in another way than its operand, which is not supported",
                layer.name
            ));
        }
        let (name, attribute) = match operation.activation {
            Activation::None => (Value::Null, Value::Null),
            Activation::Relu if kind == LayerType::Vp => (json!("relu"), Value::Null),
            Activation::Relu => (json!("relu"), Value::Null),
            Activation::Bounded(most) => (json!("relu_x"), json!(most)),
        };
        if kind == LayerType::Vp && operation.activation == Activation::Relu {
            value["module_list"]["relu_group"] = json!({});
        }
        value["activation_type"] = name;
        value["activation_attr"] = attribute;
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

    fn weighted(&mut self, index: usize, window: &Window, taken: Quantisation, value: &mut Value) {
        let layer: &Layer = &self.front.network.layers[index];
        let own = self.scales.layers[index];
        let group = layer.channels / layer.groups;
        let constant = format!("constant_{}_weight", layer.name);
        if let Some(inputs) = value["input_dtype"].as_array_mut() {
            inputs.push(json!("int8"));
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
        if layer.groups > 1 {
            value["group"] = json!(layer.groups);
            value["operation"] = json!("conv2d_group");
        } else if layer.kind == crate::network::Kind::Fc {
            value["operation"] = json!("dense");
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
            let made = [
                (
                    "weight",
                    npy(&constants.shape.map(|v| v as u64), &constants.weights),
                ),
                ("k", npy(&k, &constants.scales)),
                ("b", npy(&k, &constants.biases)),
            ];
            for (role, bytes) in made {
                match bytes {
                    Ok(bytes) => arrays.push((file(role), bytes)),
                    Err(error) => {
                        self.written.arrays = Err(error);
                        return;
                    }
                }
            }
        }
    }

    /// What the network gives: layers, or parts of them joined at the end.
    fn outputs(&mut self) {
        for (number, output) in self.front.outputs.clone().iter().enumerate() {
            let (producer, _) = self.operand(output, Placement::Last);
            if let Producer::Layer(layer) = producer {
                self.written.layers[layer].is_output = true;
                let name = self.written.layers[layer].name.clone();
                if let Some(next) = self
                    .written
                    .values
                    .get_mut(&name)
                    .and_then(|v| v["next_layer"].as_array_mut())
                {
                    next.push(json!(format!("output{}", number + 1)));
                }
            }
        }
    }

    fn finish(mut self) -> Written {
        let read: Vec<usize> = self
            .written
            .layers
            .iter()
            .flat_map(|layer| &layer.operands)
            .flat_map(|operand| &operand.parts)
            .filter_map(|part| match part.producer {
                Producer::Layer(layer) => Some(layer),
                Producer::Input(_) => None,
            })
            .collect();
        for (at, layer) in self.written.layers.iter_mut().enumerate() {
            layer.is_output |= !read.contains(&at);
        }
        self.written
    }
}

/// A file name.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}

fn affine(value: &mut Value, factor: &[f64], offset: &[f64]) {
    value["channel_scale"] = json!(factor);
    value["channel_offset"] = json!(offset);
}

fn reach_of(window: &Window, group: Option<[i64; 2]>, input: [i64; 3]) -> Reach {
    Reach::Window {
        group,
        kernel: window.kernel,
        stride: window.stride,
        padding: [window.padding[0], window.padding[2]],
        extents: [input[1], input[2]],
    }
}

/// Stages of the vector processor: real numbers of the operands, and how the result is stored.
fn stages(taken: &[Quantisation], own: Quantisation, combined: Option<Arithmetic>) -> Value {
    let mut before = Map::new();
    for (operand, letter) in taken.iter().zip(["a", "b"]) {
        before.insert(format!("requan_scale_{letter}"), json!(operand.scale));
        before.insert(
            format!("requan_zp_{letter}"),
            json!(-operand.zero * operand.scale),
        );
    }
    let mut modules = json!({ "pre_cal": before });
    match combined {
        Some(Arithmetic::Add) => {
            modules["fp32_sum_sub_group0"] = json!({ "sumsub_group_mode": "add" });
        }
        Some(Arithmetic::Subtract) => {
            modules["fp32_sum_sub_group0"] = json!({ "sumsub_group_mode": "sub" });
        }
        _ => {}
    }
    modules["post_cal"] = json!({ "mul_k": 1.0 / own.scale, "sum_b": own.zero });
    modules
}

fn operation_name(action: &Action) -> &'static str {
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
        Action::Function(Function::Gelu) => "gelu",
        Action::Function(Function::Sigmoid) => "sigmoid",
        Action::Function(Function::Tanh) => "tanh",
        Action::Function(Function::Erf) => "erf",
        Action::Transpose => "permute",
    }
}
