//! Reads ONNX of any operation in real numbers.
//!
//! A tensor is a constant, or a view of what a layer makes: extents and strides. Reshapes, transposes, slices and repeats change the view
//! alone; where a layer needs its operands as channels, rows and columns that no view of what there is can be, a layer that moves elements is
//! put between. What follows from constants alone is computed while the file is read. Norms, recurrent layers, resizing and the like are
//! made of fewer operations.

mod activations;
mod array;
mod builder;
mod constants;
mod control;
mod elements;
mod extended;
mod gather;
mod graph;
mod moves;
mod node;
mod operation;
mod pool;
mod product;
mod quantised;
mod recurrent;
mod reduce;
mod resize;
mod supported;
mod value;
mod window;

use crate::front::Front;
use crate::onnx::{Beside, Refused};
use builder::Builder;
use std::collections::{BTreeMap, HashMap, HashSet};
use value::{Tensor, Value};

/// Extents that are given for inputs, by name.
pub type Shapes = BTreeMap<String, Vec<i64>>;

/// The operations that are read.
pub use supported::{EXTENDED, SUPPORTED};

/// Reads an ONNX file; files that it names are asked for with `beside`.
///
/// # Errors
/// What cannot be read or is not supported, by node; inputs whose extents are open and not given.
pub fn read(bytes: &[u8], shapes: &Shapes, beside: Beside<'_>) -> Result<Front, Refused> {
    let (graph, version) = crate::onnx::decoded(bytes)?;
    let mut reader = Reader::new(version);
    reader.read(&graph, shapes, beside)
}

/// Reads a graph.
struct Reader<'g> {
    builder: Builder,
    /// Version of ONNX's own operations.
    version: i64,
    /// What each name stands for; nothing where a node was refused.
    known: HashMap<&'g str, Option<Value>>,
    /// How many nodes and outputs read each name.
    uses: HashMap<&'g str, usize>,
    /// Operations of the nodes that read each name.
    readers: HashMap<&'g str, Vec<&'g str>>,
    /// What several things read.
    shared: HashSet<crate::front::Source>,
    refused: Vec<String>,
    /// The batch that `--shape` gives in the place of the model's, which is 1.
    batch: Option<i64>,
    /// Nodes so far, those in branches and loops among them.
    nodes: usize,
}

impl Reader<'_> {
    /// Whether nothing else reads what a tensor is a view of.
    fn is_sole(&self, tensor: &Tensor) -> bool {
        !self.shared.contains(&tensor.source)
    }
}
