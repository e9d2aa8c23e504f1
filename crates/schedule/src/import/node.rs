//! A node with its attributes and operands.

use super::array::{Array, axis_of};
use super::value::Value;
use crate::onnx::proto::{Attribute, Graph};

/// A node.
pub(super) struct Node<'g> {
    /// ONNX's name of its operation.
    pub(super) kind: &'g str,
    pub(super) attributes: &'g [Attribute],
    /// Operands; nothing where one is left out.
    pub(super) inputs: Vec<Option<Value>>,
    /// Names of results that something reads.
    pub(super) outputs: Vec<&'g str>,
}

impl<'g> Node<'g> {
    fn find(&self, name: &str) -> Option<&'g Attribute> {
        self.attributes
            .iter()
            .find(|a| a.name.as_deref() == Some(name))
    }

    pub(super) fn int(&self, name: &str, otherwise: i64) -> i64 {
        self.find(name).and_then(|a| a.i).unwrap_or(otherwise)
    }

    pub(super) fn float(&self, name: &str, otherwise: f64) -> f64 {
        let given = self.find(name).and_then(|a| a.f);
        // What is written as a decimal is meant so: 0.1, not the nearest binary32.
        given.map_or(otherwise, |v| v.to_string().parse().unwrap_or(f64::from(v)))
    }

    pub(super) fn floats(&self, name: &str) -> Option<&'g [f32]> {
        self.find(name).map(|a| a.floats.as_slice())
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'g [i64]> {
        self.find(name).map(|a| a.ints.as_slice())
    }

    pub(super) fn text(&self, name: &str) -> Option<&'g str> {
        std::str::from_utf8(self.find(name)?.s.as_deref()?).ok()
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let of = |text: &Vec<u8>| String::from_utf8_lossy(text).into_owned();
        let given = self.find(name).map(|a| a.strings.as_slice());
        given.unwrap_or_default().iter().map(of).collect()
    }

    pub(super) fn graph(&self, name: &str) -> Result<&'g Graph, String> {
        let graph = self.find(name).and_then(|a| a.g.as_deref());
        graph.ok_or_else(|| format!("its `{name}` is missing"))
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'g Attribute> {
        self.find(name)
    }

    /// An operand that must be there.
    pub(super) fn input(&self, at: usize) -> Result<&Value, String> {
        self.optional(at)
            .ok_or_else(|| format!("input {at} is missing"))
    }

    pub(super) fn optional(&self, at: usize) -> Option<&Value> {
        self.inputs.get(at).and_then(Option::as_ref)
    }

    /// An operand that must be a constant, if it is there.
    pub(super) fn constant(&self, at: usize) -> Result<Option<&Array>, String> {
        match self.optional(at) {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(array)),
            Some(Value::Tensor(_)) => Err(format!(
                "input {at} depends on what goes into the network; only a constant is supported there"
            )),
        }
    }

    /// Whole numbers that are an operand in newer versions and an attribute in older ones.
    pub(super) fn list(&self, at: usize, name: &str) -> Result<Option<Vec<i64>>, String> {
        match self.constant(at)? {
            Some(array) => Ok(Some(array.whole())),
            None => Ok(self.ints(name).map(<[i64]>::to_vec)),
        }
    }

    /// Axes, as an operand or an attribute, counted from the front.
    pub(super) fn axes(&self, at: usize, rank: usize) -> Result<Option<Vec<usize>>, String> {
        let Some(axes) = self.list(at, "axes")? else {
            return Ok(None);
        };
        axes.iter()
            .map(|axis| axis_of(*axis, rank))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// What a node is called.
pub(super) fn name_of(node: &crate::onnx::proto::Node, index: usize) -> String {
    let kind = node.op_type.as_deref().unwrap_or_default();
    let name = node.name.clone().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| format!("{kind}_{index}"))
}
