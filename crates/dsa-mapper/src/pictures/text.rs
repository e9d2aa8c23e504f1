//! A mapping as plain text: what is where, and the way of every edge.

use super::{Mapped, tenants};
use chipless_dsa::adg::{Adg, ElementKind};
use std::fmt::Write as _;

/// Lists the elements that hold something, then the ways.
pub fn text(adg: &Adg, mapped: Option<Mapped<'_>>) -> String {
    let mut out = String::new();
    let tenants = tenants(adg, mapped);
    for (id, element) in adg.elements.iter_enumerated() {
        if tenants[id].is_empty()
            && (mapped.is_some() || matches!(element.kind, ElementKind::Switch(_)))
        {
            continue;
        }
        let what: Vec<String> = tenants[id]
            .iter()
            .map(|(what, name)| format!("{what} {name}").trim().to_owned())
            .collect();
        let _ = writeln!(out, "{:24} {}", element.to_string(), what.join(", "));
    }
    let Some(mapped) = mapped else { return out };
    out.push('\n');
    for (id, edge) in mapped.graph.edges.iter_enumerated() {
        let route = &mapped.mapping.edges[id];
        let name = |node: chipless_dsa::graph::NodeId| {
            let body = &mapped.graph.nodes[node];
            if body.name.is_empty() {
                format!("node {}", node.index())
            } else {
                body.name.clone()
            }
        };
        let value = mapped.graph.nodes[edge.source]
            .values
            .get(edge.value as usize)
            .map(|value| value.name.as_str())
            .unwrap_or_default();
        let value = if value.is_empty() {
            name(edge.source)
        } else {
            value.to_owned()
        };
        let _ = write!(out, "{value} to {}:", name(edge.sink));
        for (index, hop) in route.links.iter().enumerate() {
            if index == 0 {
                let _ = write!(out, " {}", adg.source(hop.link));
            }
            let bit = if hop.bit > 0 {
                format!(" bit {}", hop.bit)
            } else {
                String::new()
            };
            let _ = write!(out, " → {}{bit}", adg.sink(hop.link));
        }
        if let Some(delay) = route.delay.filter(|delay| *delay > 0) {
            let _ = write!(out, ", waits {delay}");
        }
        out.push('\n');
    }
    out
}
