//! A dataflow graph as SVG and as plain text: nodes in rows by how far they are from the inputs.

use chipless_dsa::graph::{Graph, NodeId, NodeKind};
use chipless_model::escape;
use index_vec::IndexVec;
use std::fmt::Write as _;

/// A graph with more nodes is not drawn: nobody could read it.
pub const DRAWN: usize = 1_000;
const WIDTH: f64 = 96.0;
const HEIGHT: f64 = 26.0;
const GAP: (f64, f64) = (16.0, 34.0);
const MARGIN: f64 = 16.0;

/// Row of each node: behind all whose values it takes. Values that come back (recurrences) do not count.
fn rows(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut row: IndexVec<NodeId, usize> = graph.nodes.iter().map(|_| 0).collect();
    // Nodes stand behind what they take in the order of the file, but for arrays and nested operations: repeat until nothing moves.
    for _ in 0..graph.nodes.len().min(DRAWN) {
        let mut moved = false;
        for edge in graph.edges.iter().filter(|edge| edge.source != edge.sink) {
            let least = row[edge.source] + 1;
            if row[edge.sink] < least && least <= graph.nodes.len() {
                row[edge.sink] = least;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let mut used: Vec<usize> = row.iter().copied().collect();
    used.sort_unstable();
    used.dedup();
    let mut rows = vec![Vec::new(); used.len()];
    for (node, row) in row.iter_enumerated() {
        if let Ok(at) = used.binary_search(row) {
            rows[at].push(node);
        }
    }
    rows
}

/// Centres of the nodes, each row in the order of what its nodes take.
fn places(graph: &Graph) -> (IndexVec<NodeId, (f64, f64)>, (f64, f64)) {
    let mut rows = rows(graph);
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let width = widest * (WIDTH + GAP.0) - GAP.0;
    let mut at: IndexVec<NodeId, (f64, f64)> = graph.nodes.iter().map(|_| (0.0, 0.0)).collect();
    let mut sources: IndexVec<NodeId, Vec<NodeId>> =
        graph.nodes.iter().map(|_| Vec::new()).collect();
    for edge in &graph.edges {
        sources[edge.sink].push(edge.source);
    }
    for (number, row) in rows.iter_mut().enumerate() {
        let middle = |node: &NodeId, at: &IndexVec<NodeId, (f64, f64)>| {
            let of = &sources[*node];
            of.iter().map(|source| at[*source].0).sum::<f64>() / of.len().max(1) as f64
        };
        if number > 0 {
            row.sort_by(|a, b| middle(a, &at).total_cmp(&middle(b, &at)));
        }
        let own = row.len() as f64 * (WIDTH + GAP.0) - GAP.0;
        for (column, node) in row.iter().enumerate() {
            let x = MARGIN + (width - own) / 2.0 + column as f64 * (WIDTH + GAP.0) + WIDTH / 2.0;
            let y = MARGIN + number as f64 * (HEIGHT + GAP.1) + HEIGHT / 2.0;
            at[*node] = (x, y);
        }
    }
    let height = rows.len() as f64 * (HEIGHT + GAP.1) - GAP.1;
    (at, (width + 2.0 * MARGIN, height + 2.0 * MARGIN))
}

/// What a node is, its name, and its colour.
fn label(graph: &Graph, node: NodeId) -> (String, &'static str) {
    let body = &graph.nodes[node];
    let name = &body.name;
    match &body.kind {
        NodeKind::Array(array) => (format!("{} {name}", array.kind.name()), "#cfe3f2"),
        NodeKind::Input(_) => (format!("in {name}"), "#d4ecdf"),
        NodeKind::Output(_) => (format!("out {name}"), "#fbe6c0"),
        NodeKind::Instruction(instruction) if name.is_empty() => {
            (instruction.operation.clone(), "#f2f2f2")
        }
        NodeKind::Instruction(instruction) => {
            (format!("{name} = {}", instruction.operation), "#f2f2f2")
        }
        NodeKind::Composite(composite) => (composite.name.clone(), "#f3dcea"),
    }
}

/// Draws a graph.
pub fn graph_svg(graph: &Graph) -> String {
    let (at, (width, height)) = places(graph);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">"
    );
    out.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<defs><marker id=\"to\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0 6 3 0 6z\" fill=\"#666\"/></marker></defs>\n");
    for edge in &graph.edges {
        let (from, to) = (at[edge.source], at[edge.sink]);
        let (x0, y0, x1, y1) = (from.0, from.1 + HEIGHT / 2.0, to.0, to.1 - HEIGHT / 2.0);
        let bend = ((y1 - y0).abs() / 2.0).max(14.0);
        let _ = writeln!(
            out,
            "<path d=\"M{x0:.0} {y0:.0}C{x0:.0} {:.0} {x1:.0} {:.0} {x1:.0} {y1:.0}\" stroke=\"#666\" fill=\"none\" marker-end=\"url(#to)\"><title>{} bits</title></path>",
            y0 + bend,
            y1 - bend,
            edge.width()
        );
    }
    for (node, (x, y)) in at.iter_enumerated() {
        let (text, fill) = label(graph, node);
        let shown: String = text.chars().take(17).collect();
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect x=\"{:.0}\" y=\"{:.0}\" width=\"{WIDTH:.0}\" height=\"{HEIGHT:.0}\" rx=\"4\" fill=\"{fill}\" stroke=\"#555\"/><text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#111\">{}</text></g>",
            escape(&text),
            x - WIDTH / 2.0,
            y - HEIGHT / 2.0,
            y + 4.0,
            escape(&shown)
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A graph in lines, a row of the picture each.
pub fn graph_text(graph: &Graph) -> String {
    let mut out = String::new();
    for row in rows(graph) {
        let labels: Vec<String> = row.iter().map(|node| label(graph, *node).0).collect();
        let _ = writeln!(out, "{}", labels.join("   "));
    }
    out
}
