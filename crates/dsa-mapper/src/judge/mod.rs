//! The judge: whether a mapping is legal, and when everything happens in it.
//!
//! It is written from the rules alone (`docs/dsa-mapping.md` lists them) and shares nothing with the mapper but the types of graph,
//! fabric and mapping: what one of the two gets wrong the other is to find. It judges mappings of any origin.

mod place;
mod ways;
mod when;

use crate::Mapping;
use chipless_dsa::adg::Adg;
use chipless_dsa::graph::Graph;

/// What is to be said of a mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Cycles from the first input to the last output.
    pub latency: u32,
    /// Cycles by which operands of one node miss each other at worst.
    pub mismatch: u32,
    /// Cycles from one row to the next.
    pub initiation_interval: u32,
    /// Cycle in which the operands of each node meet for the first row.
    pub starts: Vec<u32>,
    /// Values, vertices or ports too many on one link, slot or port at worst.
    pub overprovision: u32,
    /// Delay of each edge, as stated or as found.
    pub delays: Vec<u32>,
    /// Cycle of the result of each node; 0 for nodes that take no part in timing.
    pub ready: Vec<u32>,
    /// Cycles by which the operands of each node miss each other.
    pub misses: Vec<u32>,
    /// What breaks a rule, in the words of the field.
    pub faults: Vec<String>,
}

impl Verdict {
    /// Whether no rule is broken.
    pub fn is_legal(&self) -> bool {
        self.faults.is_empty()
    }

    /// The first faults in one line.
    pub fn reason(&self) -> Option<String> {
        let first = self.faults.first()?;
        Some(match self.faults.len() {
            1 => first.clone(),
            count => format!("{first}; and {} more", count - 1),
        })
    }
}

/// Judges a mapping of a graph onto a fabric.
pub fn judge(graph: &Graph, adg: &Adg, mapping: &Mapping) -> Verdict {
    let mut verdict = Verdict::default();
    place::check(graph, adg, mapping, &mut verdict);
    ways::check(graph, adg, mapping, &mut verdict);
    when::check(graph, adg, mapping, &mut verdict);
    verdict
}

/// A node as people call it.
fn name(graph: &Graph, node: chipless_dsa::graph::NodeId) -> String {
    let body = &graph.nodes[node];
    if body.name.is_empty() {
        format!("node {}", node.index())
    } else {
        body.name.clone()
    }
}
