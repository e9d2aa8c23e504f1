//! From a neural network to a schedule for a mesh of cores.
//!
//! A network comes in as ONNX or as a front-end file, a machine as a file of its own. What comes out says for each core what it
//! computes when, what it holds, and what moves.

pub mod calibrate;
pub mod compare;
pub mod compute;
pub mod emit;
pub mod front;
pub mod frontend;
pub mod images;
pub mod import;
pub mod machine;
pub mod mesh;
pub mod model;
pub mod network;
pub mod onnx;
pub mod price;
pub mod reading;
pub mod report;
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
pub fn evaluate(
    network: &Network,
    machine: &Machine,
    batch: i64,
    tree: &Tree,
) -> Result<(Cost, Tree), Impossible> {
    model::with_evaluator(network, machine, batch, |evaluator| {
        model::explicit(evaluator, tree)
    })
}

/// What no tree beats in SET's model.
pub fn lower_bounds(network: &Network, machine: &Machine, batch: i64) -> Bounds {
    model::with_evaluator(network, machine, batch, |evaluator| {
        model::bounds(&evaluator.costs)
    })
}

/// A child of the root and what it costs, for one pass of the root.
#[derive(Clone, Debug)]
pub struct SegmentCost {
    /// Its first and last layer, or its only one.
    pub layers: String,
    /// Energy, pJ.
    pub energy: f64,
    /// Cycles.
    pub cycles: i64,
    /// Bytes from and to DRAM.
    pub dram: i64,
    /// Cycles that these take.
    pub dram_cycles: i64,
    /// Cycles that the busiest link takes.
    pub link_cycles: i64,
}

impl SegmentCost {
    /// What its time is.
    pub const fn bound_by(&self) -> &'static str {
        if self.cycles <= self.link_cycles {
            "the busiest link"
        } else if self.cycles <= self.dram_cycles {
            "DRAM"
        } else {
            "its layers, one after another"
        }
    }
}

/// What each segment of a tree costs.
///
/// # Errors
/// What the tree breaks.
pub fn segments(
    network: &Network,
    machine: &Machine,
    tree: &Tree,
) -> Result<Vec<SegmentCost>, Impossible> {
    model::with_evaluator(network, machine, tree.batch(), |evaluator| {
        let root = model::nodes_of(evaluator, tree)?;
        let mut segments = Vec::new();
        for child in &root.children {
            let cost = evaluator.segment(child)?;
            segments.push(SegmentCost {
                layers: network.range(&child.layers()),
                energy: cost.energy,
                cycles: cost.time,
                dram: cost.traffic.dram,
                dram_cycles: machine.dram.cycles(cost.traffic.dram),
                link_cycles: machine.link.cycles(cost.traffic.busiest()),
            });
        }
        Ok(segments)
    })
}
