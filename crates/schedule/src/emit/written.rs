//! The network as it is executed: every layer of the front-end file with its arrays, the ones that only move elements among them.

use super::lowered::Reach;
use super::scales::{PLAIN, Scales, as_they_are, scales, taken};
use super::stages::stages;
use super::view::{Operand as ViewOperand, Part, Producer, Viewed};
use crate::front::{Declared, Element, Front, Move, Operand, Piece, Quantisation, Source};
use chipless_gemini::schedule::LayerType;
use chipless_gemini::{Array, Arrays};
use chipless_kernels::cast::decode_f64;
use chipless_kernels::npy as headers;
use chipless_model::ElementType;
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// A network with its arrays, as `chipless run` reads both.
#[derive(Debug)]
pub struct Written {
    pub(crate) layers: Vec<Viewed>,
    pub(crate) reach: Vec<Reach>,
    /// The layer of the network that each is, or the first reader of one that only moves elements.
    pub(crate) of: Vec<Placement>,
    pub(crate) inputs: Vec<String>,
    /// Constants beside activations: names, and channels, rows and columns.
    pub(crate) constants: Vec<(String, [i64; 3])>,
    /// Bits of every element.
    pub(crate) bits: u8,
    values: IndexMap<String, Value>,
    pub(super) arrays: Result<Vec<(String, Vec<u8>)>, String>,
    /// How the result of each layer of the network is stored.
    pub(crate) stored_layers: Vec<Quantisation>,
    /// How inputs are stored.
    pub(crate) stored_inputs: Vec<Quantisation>,
    /// The layer that makes each output, and how it is stored.
    pub(crate) stored_outputs: Vec<(String, Quantisation)>,
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
    /// How integers stand for the numbers of each input and each output, by the names that the schedule has; nothing for half precision.
    pub fn stored(&self) -> [Vec<(&str, Quantisation)>; 2] {
        if self.bits != 8 {
            return [Vec::new(), Vec::new()];
        }
        let inputs = self.inputs.iter().zip(&self.stored_inputs);
        let outputs = self.stored_outputs.iter();
        [
            inputs.map(|(name, how)| (name.as_str(), *how)).collect(),
            outputs.map(|(name, how)| (name.as_str(), *how)).collect(),
        ]
    }

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
        let scales = match found {
            Ok(scales) => scales,
            Err(text) if text.contains("which is not there") => as_they_are(front),
            Err(text) => return Err(text),
        };
        let stored_inputs = scales.inputs.clone();
        let stored_layers = scales.layers.clone();
        let mut writer = Writer {
            front,
            batch,
            scales,
            known,
            moved: HashMap::new(),
            place: Vec::new(),
            written: Written {
                stored_layers,
                stored_inputs,
                stored_outputs: Vec::new(),
                layers: Vec::new(),
                reach: Vec::new(),
                of: Vec::new(),
                inputs: front
                    .inputs
                    .iter()
                    .map(|input| input.name.clone())
                    .collect(),
                constants: front
                    .constants
                    .iter()
                    .map(|table| (plain(&table.name), table.extents))
                    .collect(),
                bits: front.bits(),
                values: IndexMap::new(),
                arrays: missing.map_or_else(|| Ok(Vec::new()), Err),
            },
        };
        writer.tables();
        for index in 0..front.network.layers.len() {
            writer.layer(index)?;
        }
        writer.outputs();
        writer.declared();
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

    /// The place of an input among those of the network, by its name in the front-end file or the model's.
    pub(crate) fn input(&self, name: &str) -> Option<usize> {
        let declared = |own: &String| {
            let value = self.values.get(own);
            value.and_then(|value| value["declared"]["name"].as_str()) == Some(name)
        };
        let mut inputs = self.inputs.iter();
        inputs.position(|own| own == name || declared(own))
    }

    /// The arrays as numbers, by the layer that they belong to.
    ///
    /// # Errors
    /// The tensor that is not there.
    pub fn numbers(&self) -> Result<HashMap<String, Arrays>, String> {
        // File names lack what no file's name may have.
        let layers = self.layers.iter().map(|layer| &layer.name);
        let layers: HashMap<String, &String> = layers.map(|name| (plain(name), name)).collect();
        let mut all: HashMap<String, Arrays> = HashMap::new();
        for (name, bytes) in self.arrays()? {
            let name = name.trim_end_matches(".npy");
            let (layer, role) = match name.rsplit_once('_') {
                Some((layer, role)) if !name.starts_with("constant") => (layer, role),
                _ => (name, "weight"),
            };
            let layer = layers.get(layer).map_or(layer, |own| own.as_str());
            let arrays = all.entry(layer.to_owned()).or_default();
            let array = numbers_of(bytes).map_err(|error| format!("{name}: {error}"))?;
            match role {
                "k" => arrays.k = array,
                "b" => arrays.b = array,
                _ => arrays.weight = array,
            }
        }
        Ok(all)
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

pub(super) struct Writer<'f> {
    pub(super) front: &'f Front,
    batch: i64,
    pub(super) scales: Scales,
    pub(super) known: bool,
    moved: HashMap<Moved, usize>,
    /// Position of each layer of the network.
    pub(super) place: Vec<usize>,
    pub(super) written: Written,
}

/// The numbers of a .npy file that [`npy`] has written.
fn numbers_of(bytes: &[u8]) -> Result<Array, String> {
    let (header, data) = headers::read(bytes).map_err(|error| error.to_string())?;
    let found = header.element.ok_or("a structured array")?;
    let element = ElementType::ALL
        .iter()
        .find(|element| headers::numpy_type(**element) == (found.kind, found.size))
        .ok_or_else(|| format!("an array of the type {}", found.text))?;
    let mut values = vec![0.0; data.len() / found.size.max(1) as usize];
    decode_f64(*element, data, &mut values).map_err(|error| error.to_string())?;
    Ok(Array {
        shape: header.shape,
        values,
    })
}

/// Bytes of a .npy file, of values that are least significant byte first.
pub(super) fn npy<const SIZE: usize>(
    element: ElementType,
    shape: &[u64],
    values: impl Iterator<Item = [u8; SIZE]>,
) -> Vec<u8> {
    let (kind, size) = headers::numpy_type(element);
    let mut bytes = headers::write(kind, size, shape);
    bytes.extend(values.flatten());
    bytes
}

impl Writer<'_> {
    fn name(&self, producer: Producer) -> String {
        match producer {
            Producer::Input(input) => self.front.inputs[input].name.clone(),
            Producer::Constant(constant) => self.written.constants[constant].0.clone(),
            Producer::Layer(layer) => self.written.layers[layer].name.clone(),
        }
    }

    pub(super) fn extents(&self, producer: Producer) -> [i64; 3] {
        match producer {
            Producer::Input(input) => self.front.inputs[input].extents,
            Producer::Constant(constant) => self.written.constants[constant].1,
            Producer::Layer(layer) => self.written.layers[layer].output,
        }
    }

    /// What the elements of a producer are stored as.
    fn element(&self, producer: Producer) -> Element {
        match producer {
            Producer::Input(input) => self.front.inputs[input].element,
            Producer::Constant(constant) => self.front.constants[constant].element,
            Producer::Layer(layer) => match self.written.of[layer] {
                Placement::Layer(of) => self.front.operations[of].element,
                _ => Element::Int8,
            },
        }
    }

    /// Images of what is read: a constant is the same for all.
    pub(super) fn images(&self, producer: Producer) -> i64 {
        match producer {
            Producer::Constant(_) => 1,
            _ => self.batch,
        }
    }

    fn stored(&self, source: Source) -> Quantisation {
        match source {
            Source::Input(input) => self.scales.inputs[input],
            Source::Layer(layer) => self.scales.layers[layer],
            Source::Constant(constant) => {
                let stored = self.scales.tables[constant].as_ref();
                stored.map_or(PLAIN, |(stored, _)| *stored)
            }
        }
    }

    fn producer(&self, source: Source) -> Producer {
        match source {
            Source::Input(input) => Producer::Input(input),
            Source::Layer(layer) => Producer::Layer(self.place[layer]),
            Source::Constant(constant) => Producer::Constant(constant),
        }
    }

    fn channels(&self, source: Source) -> i64 {
        match source {
            Source::Input(input) => self.front.inputs[input].extents[0],
            Source::Layer(layer) => self.front.network.layers[layer].output[0],
            Source::Constant(constant) => self.front.constants[constant].extents[0],
        }
    }

    /// The arrays of constants beside activations.
    fn tables(&mut self) {
        for (table, (name, extents)) in self.front.constants.iter().zip(&self.written.constants) {
            let (Ok(arrays), true) = (&mut self.written.arrays, table.element != Element::Int8)
            else {
                continue;
            };
            let [c, h, w] = extents.map(|extent| extent as u64);
            let single = |values: Rc<Vec<f64>>| -> Vec<f32> {
                values.iter().map(|value| *value as f32).collect()
            };
            let values = table.values.clone().map(single);
            match values {
                Ok(values) => {
                    let bytes = values.iter().map(|value| value.to_le_bytes());
                    let array = npy(ElementType::Float32, &[1, c, h, w], bytes);
                    arrays.push((format!("{name}.npy"), array));
                }
                Err(error) => self.written.arrays = Err(error),
            }
        }
        for ((name, extents), stored) in self.written.constants.iter().zip(&self.scales.tables) {
            let (Ok(arrays), Some((_, values))) = (&mut self.written.arrays, stored) else {
                continue;
            };
            let [c, h, w] = extents.map(|extent| extent as u64);
            let bytes = values.iter().map(|value| value.to_le_bytes());
            let array = npy(ElementType::Int8, &[1, c, h, w], bytes);
            arrays.push((format!("{name}.npy"), array));
        }
    }

    /// Who makes an operand: a layer or an input, after slices, concatenation and storing again where these are needed.
    pub(super) fn operand(
        &mut self,
        operand: &Operand,
        reader: Placement,
    ) -> (Producer, Quantisation) {
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
            let [_, h, w] = operand.extents;
            let channels = parts.iter().map(|part| self.extents(*part)[0]).sum();
            let at = self.move_layer(
                ("concat", operand.name.as_deref()),
                &parts,
                [channels, h, w],
                reader,
                |writer, value| writer.moved_as(Move::Concat(0), &parts, [channels, h, w], value),
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
                let part = [end - first, h, w];
                self.move_layer(("slice", name), &[whole], part, reader, |writer, value| {
                    writer.moved_as(Move::Slice(0, first), &[whole], part, value)
                })
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
                    reader,
                    |_, value| {
                        value["module_list"] = modules;
                        Reach::Same
                    },
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
        reader: Placement,
        more: impl FnOnce(&Self, &mut Value) -> Reach,
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
        let element = self.element(from[0]);
        let mut value = self.value(&name, operation, from, output, element);
        let reach = more(self, &mut value);
        self.push(name, kind, output, from, reach, None, reader, value)
    }

    /// What every layer of a front-end file has.
    pub(super) fn value(
        &self,
        name: &str,
        operation: &str,
        from: &[Producer],
        [c, h, w]: [i64; 3],
        element: Element,
    ) -> Value {
        let shapes: Vec<Value> = from
            .iter()
            .map(|producer| {
                let [c, h, w] = self.extents(*producer);
                json!([self.images(*producer), c, h, w])
            })
            .collect();
        // A constant has no images, whatever the batch.
        let dimension = |producer: &Producer| match producer {
            Producer::Constant(_) => -1,
            _ => 0,
        };
        json!({
            "layer_index": self.written.layers.len(),
            "name": name,
            "operation": operation,
            "device": "npu",
            "input_dtype": from.iter().map(|p| self.element(*p).name()).collect::<Vec<_>>(),
            "output_dtype": [element.name()],
            "input_shape": shapes,
            "output_shape": [[self.batch, c, h, w]],
            "previous_layer": from.iter().map(|p| self.name(*p)).collect::<Vec<_>>(),
            "next_layer": [],
            "input_batchdim": from.iter().map(dimension).collect::<Vec<_>>(),
            "output_batchdim": [0],
        })
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn push(
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
        let operands = from
            .iter()
            .map(|producer| {
                let channels = self.extents(*producer)[0];
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

    /// What the network gives: layers, or parts of them joined at the end.
    fn outputs(&mut self) {
        for (number, output) in self.front.outputs.clone().iter().enumerate() {
            let (producer, stored) = self.operand(output, Placement::Last);
            let name = self.name(producer);
            self.written.stored_outputs.push((name, stored));
            if let Producer::Layer(layer) = producer {
                self.written.layers[layer].is_output = true;
                let name = self.written.layers[layer].name.clone();
                let says_scale = self.known && self.written.bits == 8;
                let called = self.front.called[1].get(number).unwrap_or(&name);
                if let Some(value) = self.written.values.get_mut(&name) {
                    // Those of another form than the model's are known by its names alone.
                    if self.front.declared.is_empty() && value["declared"].is_null() {
                        value["declared"] = json!({ "name": called });
                    }
                    if let Some(next) = value["next_layer"].as_array_mut() {
                        next.push(json!(format!("output{}", number + 1)));
                    }
                    // What its integers stand for: layers without weights say it for this alone.
                    if says_scale && value["quant_info"].is_null() {
                        value["quant_info"] = json!({
                            "output_scale": 1.0 / stored.scale, "output_zero_point": stored.zero, "round_type": "round",
                        });
                    }
                }
            }
        }
    }

    /// How the model has what goes in and comes out: a layer that nobody schedules says it for an input.
    fn declared(&mut self) {
        let say = |declared: &Declared| json!({ "name": declared.name, "dtype": declared.element, "shape": declared.shape });
        for (at, input) in self.front.inputs.iter().enumerate() {
            let called = self.front.called[0].get(at);
            let called = called.map(|name| json!({ "name": name }));
            let Some(declared) = input.declared.as_ref().map(say).or(called) else {
                continue;
            };
            let [c, h, w] = input.extents;
            let value = json!({
                "layer_index": self.written.values.len(),
                "name": input.name,
                "operation": "input",
                "device": "cpu",
                "output_dtype": [input.element.name()],
                "output_shape": [[self.batch, c, h, w]],
                "declared": declared,
            });
            self.written.values.insert(input.name.clone(), value);
        }
        for (output, declared) in self.front.outputs.iter().zip(&self.front.declared) {
            let [Piece { source, .. }] = output.pieces[..] else {
                continue;
            };
            let name = self.name(self.producer(source));
            if let Some(value) = self.written.values.get_mut(&name) {
                value["declared"] = say(declared);
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
                Producer::Input(_) | Producer::Constant(_) => None,
            })
            .collect();
        for (at, layer) in self.written.layers.iter_mut().enumerate() {
            layer.is_output |= !read.contains(&at);
        }
        self.written
    }
}

/// Characters of a name, at most: file systems allow 255 bytes, and the role of an array follows.
const LONGEST_NAME: usize = 120;

/// A file name. Of a long name its start and a number that the rest decides.
pub(super) fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    if plain.len() <= LONGEST_NAME {
        return plain;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("{}_{:016x}", &plain[..LONGEST_NAME - 17], hasher.finish())
}
