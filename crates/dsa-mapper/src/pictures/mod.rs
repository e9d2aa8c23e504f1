//! Pictures: a graph, a fabric, and a mapping drawn over it, as SVG and as plain text.

mod graph;
mod layout;
mod svg;
mod text;

pub use graph::{DRAWN, graph_svg, graph_text};
pub use svg::svg;
pub use text::text;

use crate::Mapping;
use chipless_dsa::adg::Adg;
use chipless_dsa::graph::{Graph, NodeKind};
use index_vec::IndexVec;

/// A graph and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Where it is.
    pub mapping: &'a Mapping,
}

/// What stands on each element: operations and names.
fn tenants(
    adg: &Adg,
    mapped: Option<Mapped<'_>>,
) -> IndexVec<chipless_dsa::adg::ElementId, Vec<(String, String)>> {
    let mut tenants: IndexVec<_, Vec<(String, String)>> =
        adg.elements.iter().map(|_| Vec::new()).collect();
    let Some(mapped) = mapped else { return tenants };
    for (node, body) in mapped.graph.nodes.iter_enumerated() {
        let Some(location) = mapped.mapping.nodes.get(node).copied().flatten() else {
            continue;
        };
        let what = match &body.kind {
            NodeKind::Instruction(instruction) => instruction.operation.clone(),
            NodeKind::Composite(composite) => composite.name.clone(),
            _ => String::new(),
        };
        if let Some(at) = tenants.get_mut(location.element) {
            at.push((what, body.name.clone()));
        }
    }
    tenants
}
