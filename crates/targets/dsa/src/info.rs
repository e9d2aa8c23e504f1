//! What a DFG is, at a glance and as a tree.

use crate::graph::{Era, Graph, Node as GraphNode, NodeKind, Port};
use crate::inputs::{given_by, unsigned};
use crate::operations;
use crate::read::Document;
use chipless_model::{ElementType, Info, TensorInfo, Value};
use std::collections::BTreeMap;

/// Operations that are listed by name.
const LISTED: usize = 12;

/// A file at a glance. Ports are arrays with a row for each firing; their shape here is one row.
pub fn info(document: &Document<'_>) -> Info {
    let graph = &document.graph;
    let counts = graph.counts();
    let number = |name: &str, count: usize| (name.to_owned(), count as u64);
    let mut all = vec![
        number("nodes", counts.nodes),
        number("edges", counts.edges),
        number("instructions", counts.instructions),
        number("input_ports", counts.input_ports),
        number("output_ports", counts.output_ports),
        number("arrays", counts.arrays),
        number("groups", counts.groups),
    ];
    if counts.composites > 0 {
        all.push(number("composites", counts.composites));
    }
    if !graph.tasks.is_empty() {
        all.push(number("task_statements", graph.tasks.len()));
    }
    Info {
        labels: Vec::new(),
        target: "dsa",
        platform: "spatial accelerators of DSAGEN and OverGen".to_owned(),
        format_version: graph.era.name().to_owned(),
        name: String::new(),
        inputs: graph
            .inputs()
            .map(|(_, node, port)| tensor(node, port, unsigned(port.width)))
            .collect(),
        outputs: graph
            .outputs()
            .map(|(_, node, port)| tensor(node, port, given_by(graph, node, port)))
            .collect(),
        counts: all,
        facts: facts(graph),
    }
}

fn tensor(node: &GraphNode, port: &Port, element: ElementType) -> TensorInfo {
    TensorInfo {
        name: node.name.clone(),
        element,
        dtype: element.name().to_owned(),
        shape: vec![port.lanes.into()],
        facts: Vec::new(),
    }
}

fn facts(graph: &Graph) -> Vec<(String, Value)> {
    let mut facts = Vec::new();
    let mut text = |name: String, text: String| facts.push((name, Value::Text(text)));
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, _, instruction) in graph.instructions() {
        *used.entry(&instruction.operation).or_default() += 1;
    }
    let mut used: Vec<(&str, usize)> = used.into_iter().collect();
    used.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    if !used.is_empty() {
        let mut list: Vec<String> = used
            .iter()
            .take(LISTED)
            .map(|(name, count)| format!("{name} ×{count}"))
            .collect();
        if used.len() > LISTED {
            list.push(format!("and {} more", used.len() - LISTED));
        }
        text("operations".to_owned(), list.join(", "));
        let unknown: Vec<&str> = used
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| operations::lookup(name).is_none())
            .take(LISTED)
            .collect();
        if !unknown.is_empty() {
            text(
                "operations that no table knows".to_owned(),
                unknown.join(", "),
            );
        }
    }
    let names = |wanted: &dyn Fn(&GraphNode) -> bool| -> Vec<&str> {
        graph
            .nodes
            .iter()
            .filter(|node| wanted(node))
            .map(|node| &*node.name)
            .take(LISTED)
            .collect()
    };
    let stated = names(&|node| matches!(&node.kind, NodeKind::Input(port) if port.stated));
    if !stated.is_empty() {
        text("stated ports".to_owned(), stated.join(", "));
    }
    for node in graph
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Array(_)))
        .take(LISTED)
    {
        if let NodeKind::Array(array) = node.kind {
            text(
                format!("array {}", node.name),
                format!("{}, {} bytes", array.kind.name(), array.size),
            );
        }
    }
    let said = |index: usize| {
        let group = &graph.groups[index];
        let temporal = if group.temporal { ", temporal" } else { "" };
        format!(
            "frequency {}, unroll {}{temporal}",
            group.frequency, group.unroll
        )
    };
    let plain = graph
        .groups
        .iter()
        .all(|group| group.frequency == 1 && group.unroll == 1 && !group.temporal);
    if !plain {
        for index in 0..graph.groups.len().min(LISTED) {
            text(format!("sub-graph {index}"), said(index));
        }
    }
    if graph.era != Era::Modern {
        text(
            "note".to_owned(),
            "`chipless format` writes the modern form".to_owned(),
        );
    }
    facts
}
