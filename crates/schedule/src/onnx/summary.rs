//! An ONNX file at a glance.

use super::{Refused, decoded, proto};
use std::collections::{BTreeMap, HashSet};

/// What goes into a network or comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub element: String,
    /// Its dimensions: numbers, or names of open ones. Nothing where the file does not say them.
    pub shape: Vec<String>,
}

/// An ONNX file at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The graph's name.
    pub name: String,
    /// The version of ONNX's own operators.
    pub version: i64,
    /// Inputs that are no constants.
    pub inputs: Vec<Tensor>,
    /// Outputs.
    pub outputs: Vec<Tensor>,
    /// Operators with the number of their nodes, most nodes first.
    pub operators: Vec<(String, usize)>,
}

/// Reads what a file says of itself.
///
/// # Errors
/// No ONNX file.
pub fn summary(bytes: &[u8]) -> Result<Summary, Refused> {
    let (graph, version) = decoded(bytes)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &graph.node {
        *counts
            .entry(node.op_type.as_deref().unwrap_or_default())
            .or_default() += 1;
    }
    let counts = counts.into_iter();
    let mut operators: Vec<(String, usize)> = counts
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    operators.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let constants: HashSet<&Option<String>> = graph.initializer.iter().map(|t| &t.name).collect();
    let inputs = graph.input.iter();
    Ok(Summary {
        name: graph.name.clone().unwrap_or_default(),
        version,
        inputs: inputs
            .filter(|input| !constants.contains(&input.name))
            .map(tensor)
            .collect(),
        outputs: graph.output.iter().map(tensor).collect(),
        operators,
    })
}

fn tensor(of: &proto::ValueInfo) -> Tensor {
    let of_tensor = of.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let dims = of_tensor
        .and_then(|tensor| tensor.shape.as_ref())
        .map_or(&[][..], |shape| &shape.dim);
    let extent = |(at, dim): (usize, &proto::Dimension)| match (dim.dim_value, &dim.dim_param) {
        (Some(extent), _) if extent > 0 => extent.to_string(),
        (_, Some(name)) if !name.is_empty() => name.clone(),
        _ => format!("D{at}"),
    };
    Tensor {
        name: of.name.clone().unwrap_or_default(),
        element: element(of_tensor.and_then(|tensor| tensor.elem_type).unwrap_or(0)),
        shape: dims.iter().enumerate().map(extent).collect(),
    }
}

/// The name of an element type (onnx.proto3, `TensorProto.DataType`).
pub(super) fn element(kind: i32) -> String {
    let known = [
        (1, "float32"),
        (2, "uint8"),
        (3, "int8"),
        (4, "uint16"),
        (5, "int16"),
        (6, "int32"),
        (7, "int64"),
        (8, "string"),
        (9, "bool"),
        (10, "float16"),
        (11, "float64"),
        (12, "uint32"),
        (13, "uint64"),
        (16, "bfloat16"),
    ];
    let name = known.iter().find(|(number, _)| *number == kind);
    name.map_or_else(|| format!("type {kind}"), |(_, name)| (*name).to_owned())
}
