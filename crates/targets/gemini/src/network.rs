//! The front-end IR: the network from which a schedule was made, layer by layer.

use crate::function::OF_TWO;
use crate::place;
use crate::read::{Error, text};
use crate::rules::reading as rules;
use chipless_model::{ElementType, Limits, Place, Port, Scale};
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// A network: layers by name, in the file's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Layers. Names that begin with `constant` or end in `_constant1` are constants and no layers; `inputN` and `outputN` are
    /// the network's ports.
    pub layers: IndexMap<String, Layer>,
}

/// A layer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Layer {
    /// Its place in the front end's order; a scheduler may take another.
    pub layer_index: u64,
    /// What it computes: `conv2d`, `dense`, `max_pool2d`, …
    pub operation: String,
    /// `npu`, or `cpu` for what is not scheduled.
    #[serde(default)]
    pub device: String,
    /// Element types of the inputs, weights among them.
    #[serde(default, deserialize_with = "one_or_many")]
    pub input_dtype: Vec<String>,
    /// Element types of the outputs.
    #[serde(default, deserialize_with = "one_or_many")]
    pub output_dtype: Vec<String>,
    /// Shapes of the inputs; of weights K, C, R, S.
    #[serde(default, deserialize_with = "shapes")]
    pub input_shape: Vec<Vec<u64>>,
    /// Shapes of the outputs.
    #[serde(default, deserialize_with = "shapes")]
    pub output_shape: Vec<Vec<u64>>,
    /// Layers, constants and network inputs that it reads, in the order of the inputs.
    #[serde(default)]
    pub previous_layer: Vec<String>,
    /// Layers and network outputs that read it.
    #[serde(default)]
    pub next_layer: Vec<String>,
    /// Array files by role: `weight`, `k`, `b`, …
    #[serde(default, deserialize_with = "files")]
    pub file_list: IndexMap<String, String>,
    /// Which axis of each input is the batch; -1 for none.
    #[serde(default, deserialize_with = "one_or_many")]
    pub input_batchdim: Vec<i64>,
    /// Which axis of each output is the batch; -1 for none.
    #[serde(default, deserialize_with = "one_or_many")]
    pub output_batchdim: Vec<i64>,
    /// Rows and columns of a convolution's kernel.
    pub kernel_size: Option<[u32; 2]>,
    /// Rows and columns of a pooling window.
    pub pool_size: Option<[u32; 2]>,
    /// Top, bottom, left, right.
    pub padding: Option<[u32; 4]>,
    /// Rows and columns.
    pub stride: Option<[u32; 2]>,
    /// Groups of a grouped convolution.
    pub group: Option<u32>,
    /// `relu`, `relu_x` or none.
    pub activation_type: Option<String>,
    /// Parameter of the activation: the bound of `relu_x`.
    pub activation_attr: Option<f64>,
    /// How integers stand for numbers (layers of the processing elements).
    pub quant_info: Option<QuantInfo>,
    /// Stages of the vector processor by name, in their order.
    #[serde(default)]
    pub module_list: IndexMap<String, Map<String, Value>>,
    /// Everything else, as the file has it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How integers stand for numbers: real input = (stored + input zero point) · input scale; stored output = round(real ·
/// output scale) + output zero point.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct QuantInfo {
    /// Scale of the first input.
    pub input_scale1: Option<f64>,
    /// What is added to the first input: 128 where -128 is zero.
    pub input_zero_point1: Option<f64>,
    /// Scale of the second input.
    pub input_scale2: Option<f64>,
    /// What is added to the second input.
    pub input_zero_point2: Option<f64>,
    /// Reciprocal of the output's step; without it the output is float16.
    pub output_scale: Option<f64>,
    /// What is added to the output.
    pub output_zero_point: Option<f64>,
    /// `round`, …
    pub round_type: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How a model has a tensor that goes in or comes out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its element type and its extents, where the host has it in the model's form and not in the schedule's.
    #[serde(flatten)]
    pub form: Option<Form>,
}

/// Element type and extents of a tensor of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Form {
    /// Its element type.
    pub dtype: String,
    /// Its extents.
    pub shape: Vec<u64>,
}

impl Declared {
    /// Gives a port the model's name, extents and type. Extents of another number of elements, as of another batch, stay. Where the host
    /// has the schedule's form, as of integers, the port keeps its name as well, and the model's is another one.
    pub(crate) fn onto(self, port: &mut Port) {
        let mut alias = self.name;
        if let Some(Form { dtype, shape }) = self.form {
            let count = |shape: &[u64]| shape.iter().fold(1u64, |n, d| n.saturating_mul(*d));
            if count(&shape) == count(&port.shape) {
                port.shape = shape;
            }
            let element = ElementType::from_name(&dtype);
            port.host_element = element.filter(|element| *element != port.element);
            std::mem::swap(&mut alias, &mut port.name);
        }
        port.alias = Some(alias).filter(|alias| *alias != port.name);
    }
}

impl Network {
    /// What the integers of a layer's result stand for, where the file says it: `output_scale` is the reciprocal of a step.
    pub(crate) fn scale(&self, name: &str) -> Option<Scale> {
        let stored = self.layers.get(name)?.quant_info.as_ref()?;
        let scale = stored.output_scale?;
        let step = 1.0 / scale;
        let zero = stored.output_zero_point.unwrap_or(0.0);
        (step.is_finite() && zero.is_finite()).then_some(Scale { step, zero })
    }

    /// Which of the network's outputs a result is, counted from 1.
    pub(crate) fn output_number(&self, name: &str) -> Option<u64> {
        let readers = &self.layers.get(name)?.next_layer;
        let mut numbers = readers
            .iter()
            .filter_map(|reader| reader.strip_prefix("output")?.parse().ok());
        numbers.next()
    }

    /// How the model has what an input of the network or the result of a layer is, where the file says it.
    pub fn declared(&self, name: &str) -> Option<Declared> {
        let declared = self.layers.get(name)?.other.get("declared")?;
        Declared::deserialize(declared).ok()
    }

    /// Whether a result is one of the model's outputs, as far as the file says which are: nothing where it does not.
    pub fn declares_output(&self, name: &str) -> Option<bool> {
        let declares =
            |layer: &Layer| layer.device != "cpu" && layer.other.contains_key("declared");
        let any = self.layers.values().any(declares);
        any.then(|| self.layers.get(name).is_some_and(declares))
    }

    /// Reads a front-end file.
    ///
    /// # Errors
    /// No JSON, a layer without what every layer has, or two layers of one name.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Network, Error> {
        let text = text(bytes, limits)?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let wrong = |pointer: &str, error: &serde_json::Error| {
            let message = error.to_string();
            let message = message
                .rsplit_once(" at line ")
                .map_or(message.as_str(), |(message, _)| message);
            let [line, column] = [error.line(), error.column()]
                .map(|count| u32::try_from(count.max(1)).unwrap_or(u32::MAX));
            Box::new(rules::NETWORK.at(Place::line(line, column).at(pointer), message))
        };
        let network: Network = serde_path_to_error::deserialize(&mut reader).map_err(|traced| {
            let pointer = traced
                .path()
                .iter()
                .fold(String::new(), |pointer, segment| {
                    pointer + "/" + &segment.to_string()
                });
            wrong(&pointer, traced.inner())
        })?;
        reader.end().map_err(|error| wrong("/", &error))?;
        Ok(network)
    }

    /// Whether bytes look like a front-end file: an object of objects with `layer_index`.
    pub fn recognize(bytes: &[u8]) -> bool {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
        place::second_level_keys(&start)
            .iter()
            .any(|key| key == "layer_index")
    }

    /// The network for a batch of this many images, where it was written for another.
    pub fn at_batch(&self, batch: u64) -> Cow<'_, Network> {
        let is_other = |shape: &Vec<u64>| shape.first().is_some_and(|images| *images != batch);
        if !self
            .layers
            .values()
            .any(|layer| layer.output_shape.iter().any(is_other))
        {
            return Cow::Borrowed(self);
        }
        let mut network = self.clone();
        for layer in network.layers.values_mut() {
            let weights = has_weights(layer);
            for (index, shape) in layer.input_shape.iter_mut().enumerate() {
                let has_images = layer.input_batchdim.get(index).is_none_or(|dim| *dim == 0);
                if let Some(images) = shape
                    .first_mut()
                    .filter(|_| has_images && !(weights && index > 0))
                {
                    *images = batch;
                }
            }
            for shape in &mut layer.output_shape {
                if let Some(images) = shape.first_mut() {
                    *images = batch;
                }
            }
        }
        Cow::Owned(network)
    }

    /// Constants that layers without weights read as operands, each with the array file that the front-end file names for it.
    pub fn constants(&self) -> IndexMap<&str, Option<&str>> {
        let mut constants = IndexMap::new();
        for (_, layer) in self.scheduled().filter(|(_, l)| !has_weights(l)) {
            for name in operands_of(layer).filter(|name| is_constant(name)) {
                let named = layer.file_list.get("input_activation2").map(String::as_str);
                let file = constants.entry(name).or_insert(named);
                *file = file.or(named);
            }
        }
        constants
    }

    /// The layers whose results the network gives: those that an output reads, or a layer that is not scheduled, or nobody.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        let leaves = |next: &String| match self.layers.get(next) {
            Some(layer) => layer.device == "cpu",
            None => next.starts_with("output"),
        };
        self.scheduled()
            .filter(move |(_, layer)| {
                layer.next_layer.is_empty() || layer.next_layer.iter().any(leaves)
            })
            .map(|(name, _)| name)
    }

    /// The layers that a schedule has work for.
    pub fn scheduled(&self) -> impl Iterator<Item = (&str, &Layer)> {
        self.layers
            .iter()
            .filter(|(_, layer)| layer.device != "cpu")
            .map(|(name, layer)| (name.as_str(), layer))
    }
}

impl Layer {
    /// How many inputs are neither constants nor weights.
    pub fn activations(&self) -> usize {
        self.previous_layer
            .iter()
            .filter(|name| !name.starts_with("constant") && !name.ends_with("_constant1"))
            .count()
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
        struct Layers;
        impl<'de> Visitor<'de> for Layers {
            type Value = Network;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of layers")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Network, A::Error> {
                let mut layers = IndexMap::new();
                while let Some((name, layer)) = map.next_entry::<String, Layer>()? {
                    if layers.contains_key(&name) {
                        return Err(de::Error::custom(format_args!(
                            "the layer `{name}` stands twice"
                        )));
                    }
                    layers.insert(name, layer);
                }
                Ok(Network { layers })
            }
        }
        deserializer.deserialize_map(Layers)
    }
}

/// A value, or a list of values: older files write the only one without brackets.
fn one_or_many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<T> {
        Many(Vec<T>),
        One(T),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Many(values) => values,
        Either::One(value) => vec![value],
    })
}

/// Shapes, or the only shape without brackets around it.
fn shapes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u64>>, D::Error> {
    one_or_many(deserializer)
}

/// File names by role; what is no name is left out.
fn files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, String>, D::Error> {
    let all = Map::deserialize(deserializer)?;
    Ok(all
        .into_iter()
        .filter_map(|(role, file)| Some((role, file.as_str()?.to_owned())))
        .collect())
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
    placed_operands_of(layer).map(|(_, name)| name)
}

/// The same, each with its place in the lists of the layer: its shape and type are there, wherever the operation takes it.
pub(crate) fn placed_operands_of(layer: &Layer) -> impl Iterator<Item = (usize, &str)> {
    let weights = has_weights(layer);
    let names = || layer.previous_layer.iter().map(String::as_str).enumerate();
    // Of a constant beside an activation the place says nothing in what the front ends of this family write.
    let joined = is_ordered(&layer.operation);
    let inputs = names()
        .filter(move |(_, name)| {
            joined && is_constant(name) || !is_constant(name) && !name.ends_with("_constant1")
        })
        .take(if weights { 1 } else { usize::MAX });
    inputs.chain(names().filter(move |(_, name)| !weights && !joined && is_constant(name)))
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
