//! A plan as text, and the IOSpec of its step.

use super::plan::{Array, Declared, Graph, Node, Numbers, Plan, Tensor};
use crate::lower::declared_bits;
use crate::yaml::{Node as Yaml, Value};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::collections::HashSet;

impl Plan<'_> {
    /// The plan as JSON, version 1, indented as the vendor writes it. Where the graph says more than that version holds, it
    /// stands beside: `subgraphs` of a node are the branches of a `conditional`, `tensors` of a graph what is known of the
    /// tensors between nodes.
    ///
    /// # Errors
    /// None that a plan can lead to.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&self.main)
    }

    /// The IOSpec of a step, before compilation: one sequence that takes every input and gives every output.
    pub fn iospec(&self) -> Yaml {
        let step = self.step().0;
        let section = |tensors: &[Tensor], side: &str| {
            let mut seen = HashSet::new();
            let each = tensors
                .iter()
                .filter(|tensor| seen.insert(tensor.name.clone()));
            Yaml::from(Value::Map(
                each.map(|tensor| vector(tensor, side)).collect(),
            ))
        };
        let names = |tensors: &[Tensor]| {
            let mut seen = HashSet::new();
            let each = tensors
                .iter()
                .filter(|tensor| seen.insert(tensor.name.clone()));
            Yaml::list(each.map(|tensor| Yaml::from(&*tensor.name)))
        };
        let sequence = Yaml::map([
            ("type", "simple_sequence".into()),
            ("inputs", names(&step.inputs)),
            ("outputs", names(&step.outputs)),
            ("comments", Yaml::map([])),
        ]);
        Yaml::map([
            ("inputs", section(&step.inputs, "input")),
            ("outputs", section(&step.outputs, "output")),
            ("simple_sequences", Yaml::map([("sequence_0", sequence)])),
            ("complex_sequences", Yaml::map([])),
        ])
    }
}

/// Length is the number of elements, precision that of the type, scale 2^quanta.
fn vector(tensor: &Tensor, side: &str) -> (Yaml, Yaml) {
    let length: u64 = tensor.shape.iter().fold(1, |n, d| n.saturating_mul(*d));
    let bits = declared_bits(&tensor.dtype).unwrap_or(16);
    let mut fields = vec![
        ("type", Yaml::from(side)),
        ("varname", Yaml::from(&*tensor.name)),
        ("length", Yaml::from(Value::Integer(length.into()))),
        ("precision", Yaml::from(i64::from(bits))),
        ("padded_length", Yaml::from(Value::Null)),
    ];
    if let Some(quanta) = tensor.quanta.filter(|quanta| quanta.abs() <= 1000.0) {
        let scale = Yaml::from(Value::Float(quanta.exp2()));
        fields.push((
            "quantization",
            Yaml::map([("scale", scale), ("zero_pt", 0.into())]),
        ));
    }
    fields.push(("comments", Yaml::map([])));
    (Yaml::from(&*tensor.name), Yaml::map(fields))
}

impl Serialize for Graph {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let graph = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &graph.name)?;
        map.serialize_entry("unbind_dim", &())?;
        map.serialize_entry("stack_dim", &())?;
        map.serialize_entry("inputs", &graph.inputs)?;
        map.serialize_entry("outputs", &graph.outputs)?;
        map.serialize_entry("parameters", &graph.parameters)?;
        map.serialize_entry("nodes", &graph.nodes)?;
        map.serialize_entry("subgraphs", &graph.subgraphs)?;
        if !graph.tensors.is_empty() {
            map.serialize_entry("tensors", &graph.tensors)?;
        }
        map.serialize_entry("version", &1)?;
        map.end()
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let node = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &node.name)?;
        map.serialize_entry("op_name", &node.op_name)?;
        map.serialize_entry("inputs", &node.inputs)?;
        map.serialize_entry("outputs", &node.outputs)?;
        map.serialize_entry("constants", &node.constants)?;
        map.serialize_entry("subgraph", &node.subgraph)?;
        if !node.subgraphs.is_empty() {
            map.serialize_entry("subgraphs", &node.subgraphs)?;
        }
        map.end()
    }
}

/// Scales are powers of two: a whole number as such.
fn quanta(value: Option<f64>) -> serde_json::Value {
    match value {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e9 => (whole as i64).into(),
        Some(real) => real.into(),
        None => serde_json::Value::Null,
    }
}

impl Serialize for Tensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tensor = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &tensor.name)?;
        map.serialize_entry("dtype", &tensor.dtype)?;
        map.serialize_entry("shape", &tensor.shape)?;
        map.serialize_entry("quanta", &quanta(tensor.quanta))?;
        map.serialize_entry("has_value", &tensor.value.is_some())?;
        map.serialize_entry("value", &tensor.value.as_deref())?;
        map.end()
    }
}

impl Serialize for Declared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("dtype", &self.dtype)?;
        map.serialize_entry("shape", &self.shape)?;
        map.serialize_entry("quanta", &quanta(self.quanta))?;
        map.end()
    }
}

impl Serialize for Array {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let array = self;
        let dtype = match array.numbers {
            Numbers::Integers(_) => "int64",
            Numbers::Reals(_) => "float64",
        };
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", "ndarray")?;
        map.serialize_entry("dtype", dtype)?;
        map.serialize_entry("shape", &array.shape)?;
        match &array.numbers {
            Numbers::Integers(all) => map.serialize_entry(
                "data",
                &Nested {
                    shape: &array.shape,
                    elements: all,
                },
            )?,
            Numbers::Reals(all) => map.serialize_entry(
                "data",
                &Nested {
                    shape: &array.shape,
                    elements: all,
                },
            )?,
        }
        map.end()
    }
}

/// Elements as lists within lists.
struct Nested<'a, T> {
    shape: &'a [u64],
    elements: &'a [T],
}

impl<T: Serialize> Serialize for Nested<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [length, inner @ ..] = self.shape else {
            return self.elements.first().serialize(serializer);
        };
        let size = inner.iter().product::<u64>() as usize;
        let mut list = serializer.serialize_seq(Some(*length as usize))?;
        for index in 0..*length as usize {
            let elements = self
                .elements
                .get(index * size..(index + 1) * size)
                .unwrap_or_default();
            if inner.is_empty() {
                list.serialize_element(&elements.first())?;
            } else {
                list.serialize_element(&Nested {
                    shape: inner,
                    elements,
                })?;
            }
        }
        list.end()
    }
}
