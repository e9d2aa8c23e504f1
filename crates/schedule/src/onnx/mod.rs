//! Reads ONNX.
//!
//! Nodes become layers, or are taken into the layer before them (batch norm, bias, activations, quantisation), or change nothing
//! but the view of a tensor (reshapes, concatenation, slices of channels). Shapes are inferred for the batch that is asked for.

mod attributes;
mod compute;
pub(crate) mod constant;
mod elements;
mod fixed;
mod fold;
mod fuse;
mod graph;
mod moves;
pub(crate) mod proto;
mod summary;
mod value;
mod view;

pub use constant::Beside;
pub use fixed::{Constants, Fixed, with_constants};
pub(crate) use fold::axis_of;
pub use summary::{Summary, Tensor, summary};

use crate::front::Front;
use crate::import::Shapes;
use std::fmt;

/// Why an ONNX file cannot be scheduled: what is wrong, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

/// Lines of a refusal that are shown.
const SHOWN: usize = 10;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            &self
                .0
                .iter()
                .take(SHOWN)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n  "),
        )?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more; {} in all", self.0.len()),
        }
    }
}

impl std::error::Error for Refused {}

/// Reads an ONNX file for a batch; files that it names are asked for with `beside`.
///
/// # Errors
/// What cannot be read or is not supported, by node.
pub fn read(bytes: &[u8], batch: i64, beside: Beside<'_>) -> Result<Front, Refused> {
    let (graph, version) = decoded(bytes)?;
    graph::Reader::new(&graph, version, batch, beside)?.read()
}

/// The same with shapes of inputs, whose first extents are the batch.
///
/// # Errors
/// What cannot be read or is not supported, by node; a shape that is not one of the file's.
pub fn read_shaped(
    bytes: &[u8],
    batch: i64,
    shapes: &Shapes,
    beside: Beside<'_>,
) -> Result<Front, Refused> {
    let (mut graph, version) = decoded(bytes)?;
    for (name, given) in shapes {
        set_shape(&mut graph, name, given, batch).map_err(|text| Refused(vec![text]))?;
    }
    graph::Reader::new(&graph, version, batch, beside)?.read()
}

/// The inputs whose first dimension may be the number of images: the model leaves it open, or has 1.
pub(crate) fn of_images(bytes: &[u8]) -> Vec<String> {
    let Ok((graph, _)) = decoded(bytes) else {
        return Vec::new();
    };
    let first = |input: &proto::ValueInfo| {
        let shape = input
            .r#type
            .as_ref()?
            .tensor_type
            .as_ref()?
            .shape
            .as_ref()?;
        shape.dim.first()?.dim_value
    };
    let inputs = graph.input.into_iter();
    let inputs = inputs.filter(|input| first(input).is_none_or(|extent| extent <= 1));
    inputs.filter_map(|input| input.name).collect()
}

/// Whether a layer of the model is an LSTM whose gates see its cells (input `P`).
pub fn has_peepholes(bytes: &[u8]) -> bool {
    let sees_cells = |node: &proto::Node| {
        node.op_type.as_deref() == Some("LSTM")
            && node.input.get(7).is_some_and(|name| !name.is_empty())
    };
    decoded(bytes).is_ok_and(|(graph, _)| graph.node.iter().any(sees_cells))
}

/// Letters in place of the extents that somebody has to say.
#[derive(Clone, Debug, Default)]
pub struct Letters(Vec<char>);

impl Letters {
    /// For a first dimension whose name does not tell what it counts.
    pub fn first(&mut self) -> String {
        if !self.0.contains(&'M') {
            self.0.insert(0, 'M');
        }
        "M".to_owned()
    }

    /// For any other dimension, each its own.
    pub fn other(&mut self) -> String {
        let others = self.0.iter().filter(|letter| **letter != 'M').count();
        let letter = "NPQRSTUVWXYZ".chars().nth(others).unwrap_or('Z');
        self.0.push(letter);
        letter.to_string()
    }

    /// What to put for them; nothing where there are none.
    pub fn told(&self) -> Option<String> {
        let said = self.0.iter().map(|letter| match letter {
            'M' => "M (1 if it counts images)".to_owned(),
            letter => letter.to_string(),
        });
        let said: Vec<String> = said.collect();
        Some(match &said[..] {
            [] => return None,
            [only] => format!("a number for {only}"),
            [first @ .., last] => format!("numbers for {} and {last}", first.join(", ")),
        })
    }
}

/// Whether an open first dimension of this name counts images: by its name, as exporters write it.
pub fn counts_images(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("batch") || matches!(&*name, "n" | "b" | "bs")
}

/// Gives an input its open dimensions.
fn set_shape(
    graph: &mut proto::Graph,
    name: &str,
    given: &[i64],
    batch: i64,
) -> Result<(), String> {
    let names = port_names(graph)[0].join(", ");
    let input = graph.input.iter_mut();
    let input = input
        .rev()
        .find(|input| input.name.as_deref() == Some(name));
    let input = input.ok_or_else(|| {
        format!("expected the name of an input ({names}) as --shape, found `{name}`")
    })?;
    let dims = input.r#type.as_mut();
    let dims = dims.and_then(|of| Some(&mut of.tensor_type.as_mut()?.shape.as_mut()?.dim));
    let dims = dims.ok_or_else(|| format!("the input `{name}` has no dimensions in the file"))?;
    if dims.len() != given.len() {
        return Err(format!(
            "the input `{name}` has {} dimensions, --shape gives {}",
            dims.len(),
            given.len()
        ));
    }
    for (at, (dim, told)) in dims.iter_mut().zip(given).enumerate() {
        match dim.dim_value.filter(|extent| *extent > 0) {
            None | Some(1) if at == 0 && *told != batch => {
                return Err(format!(
                    "the shape of the input `{name}` has {told} images, others or --batch have {batch}"
                ));
            }
            Some(fixed) if (at > 0 || fixed > 1) && fixed != *told => {
                return Err(format!(
                    "the model fixes dimension {at} of the input `{name}` at {fixed}, --shape gives {told}. Only open dimensions can be given, and a batch of 1 in front of others: export the model with an open dimension there"
                ));
            }
            Some(_) => {}
            None => dim.dim_value = Some(*told),
        }
    }
    Ok(())
}

/// The version of a file that names none.
const NEWEST: i64 = 21;

/// Names of what goes into a model and of what comes out, in order.
pub(crate) fn port_names(graph: &proto::Graph) -> [Vec<String>; 2] {
    let constants: Vec<&Option<String>> = graph.initializer.iter().map(|t| &t.name).collect();
    let inputs = graph
        .input
        .iter()
        .filter(|input| !constants.contains(&&input.name));
    let outputs = graph.output.iter();
    [
        inputs.filter_map(|input| input.name.clone()).collect(),
        outputs.filter_map(|output| output.name.clone()).collect(),
    ]
}

/// A file, which has a graph.
fn model(bytes: &[u8]) -> Result<proto::Model, Refused> {
    let alone = |text: String| Refused(vec![text]);
    if bytes.is_empty() {
        return Err(alone(
            "the file is empty; expected an ONNX model".to_owned(),
        ));
    }
    let model = <proto::Model as prost::Message>::decode(bytes)
        .map_err(|error| alone(format!("not an ONNX model, or a damaged one: {error}")))?;
    if model.graph.is_none() {
        return Err(alone("not an ONNX model: it has no graph".to_owned()));
    }
    Ok(model)
}

/// The graph of a file, and the version of ONNX's own operations.
pub(crate) fn decoded(bytes: &[u8]) -> Result<(proto::Graph, i64), Refused> {
    let model = model(bytes)?;
    let graph = model.graph.unwrap_or_default();
    let version = model
        .opset_import
        .iter()
        .find(|set| matches!(set.domain.as_deref(), None | Some("" | "ai.onnx")))
        .and_then(|set| set.version);
    Ok((graph, version.unwrap_or(NEWEST)))
}
