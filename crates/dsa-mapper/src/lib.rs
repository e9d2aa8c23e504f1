//! Mapping a graph onto a fabric: which element computes what, and which links carry which value.
//!
//! ```text
//! Graph ─▶ Kernel (vertices, wires, nets) ─┬▶ feasible ─▶ place ─▶ route ─▶ timing ─▶ Mapping
//! Adg ───▶ Fabric (distances, slots) ──────┘              ▲                   │
//!                                                         └── search: trials ─┘
//! ```
//!
//! `docs/dsa-mapping.md` explains the rules and the algorithm.

pub mod bits;
pub mod cycles;
mod deadline;
mod exact;
mod fabric;
mod feasible;
mod file;
mod interval;
pub mod judge;
mod kernel;
mod outcome;
pub mod performance;
pub mod pictures;
mod pipelines;
mod place;
mod result;
mod route;
pub mod rules;
mod search;
mod timing;

pub use file::{looks_like_mapping, read, write};
pub use outcome::Outcome;
pub use search::{NEVER, Objective, Options, Progress, map};

use chipless_dsa::adg::{Adg, ElementId, LinkId};
use chipless_dsa::graph::{EdgeId, Graph, NodeId};
use index_vec::IndexVec;

/// Where everything of a graph is on a fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Name of the graph's file.
    pub name: String,
    /// The place of each node; `None` where it has none.
    pub nodes: IndexVec<NodeId, Option<Location>>,
    /// The way of each edge.
    pub edges: IndexVec<EdgeId, Route>,
    /// The cycle in which the operands of each node meet for the first row, where the mapping states it.
    pub starts: IndexVec<NodeId, Option<u32>>,
    /// Cycles from one row to the next, where the mapping states it.
    pub interval: Option<u32>,
    /// What the mapping says of itself.
    pub claim: Option<Claim>,
}

/// A place on the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The element.
    pub element: ElementId,
    /// The first of the parts of its data path that are taken, in units of its granularity.
    pub slot: u32,
}

/// The way of an edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Links from the source to the sink; none where both are in one place.
    pub links: Vec<Hop>,
    /// Cycles that the value waits in the sink's delay buffer; `None` where the mapping does not say.
    pub delay: Option<u32>,
}

/// A step of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// The link.
    pub link: LinkId,
    /// The first bit of the link that is taken.
    pub bit: u32,
}

/// What a mapping says of itself; a judge finds out whether it is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Cycles from the first input to the last output.
    pub latency: u32,
    /// Cycles by which operands of one node miss each other.
    pub mismatch: u32,
}

impl Mapping {
    /// Nothing mapped yet.
    pub fn empty(graph: &Graph) -> Mapping {
        Mapping {
            name: String::new(),
            nodes: graph.nodes.iter().map(|_| None).collect(),
            edges: graph.edges.iter().map(|_| Route::default()).collect(),
            starts: graph.nodes.iter().map(|_| None).collect(),
            interval: None,
            claim: None,
        }
    }

    /// Links that carry something, each counted once.
    pub fn links_used(&self, adg: &Adg) -> usize {
        let mut used: IndexVec<LinkId, bool> = adg.links.iter().map(|_| false).collect();
        for hop in self.edges.iter().flat_map(|route| &route.links) {
            if let Some(used) = used.get_mut(hop.link) {
                *used = true;
            }
        }
        used.iter().filter(|used| **used).count()
    }
}
