//! What still waits at the end, and for what.

use crate::graph::{Graph, NodeId, NodeKind};

/// A node that had something to do at the end and could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The node.
    pub node: NodeId,
    /// What it waits for, in words.
    pub reason: String,
    /// Whether that is a stream that has come to its end: then there was nothing more to do, and the node has what is left over.
    pub ended: bool,
}

impl Waiting {
    /// In words, with the name of the node.
    pub fn message(&self, graph: &Graph) -> String {
        format!("{} {}", name(graph, self.node), self.reason)
    }
}

/// A node as a reader of the file finds it.
pub(super) fn name(graph: &Graph, node: NodeId) -> String {
    let found = &graph.nodes[node];
    match &found.kind {
        NodeKind::Array(_) => format!("array {}", found.name),
        NodeKind::Input(_) => format!("input {}", found.name),
        NodeKind::Output(_) => format!("output {}", found.name),
        NodeKind::Instruction(instruction) if found.name.is_empty() => {
            format!("a nested {}", instruction.operation)
        }
        NodeKind::Instruction(instruction) => format!("{} ({})", found.name, instruction.operation),
        NodeKind::Composite(composite) => format!("{} ({})", found.name, composite.name),
    }
}
