//! From a neural network to a schedule for a mesh of cores.
//!
//! A network comes in as ONNX or as a front-end file, a machine as a file of its own. What comes out says for each core what it
//! computes when, what it holds, and what moves.

pub mod front;
pub mod machine;
pub mod model;
pub mod network;
pub mod onnx;
pub mod search;
pub mod tree;

use machine::Machine;
use model::{Bounds, Cost, Impossible};
use network::Network;
use tree::Tree;

/// A tree's cost in SET's model, and the tree with every partition and list of cores.
///
/// # Errors
/// What the tree breaks.
pub fn evaluate(network: &Network, machine: &Machine, batch: i64, tree: &Tree) -> Result<(Cost, Tree), Impossible> {
    model::with_evaluator(network, machine, batch, |evaluator| model::explicit(evaluator, tree))
}

/// What no tree beats in SET's model.
pub fn lower_bounds(network: &Network, machine: &Machine, batch: i64) -> Bounds {
    model::with_evaluator(network, machine, batch, |evaluator| model::bounds(&evaluator.costs))
}
