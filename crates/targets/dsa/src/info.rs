//! What a DFG is, at a glance and as a tree.

use crate::document::Document;
use crate::graph::{
    Actions, Control, Era, Graph, Node as GraphNode, NodeKind, Operand, Port, Role, Source,
};
use crate::operations;
use chipless_model::{ElementType, Info, Node, TensorInfo, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

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
        target: "dsa",
        platform: "spatial accelerators of DSAGEN and OverGen".to_owned(),
        format_version: graph.era.name().to_owned(),
        name: String::new(),
        inputs: graph
            .inputs()
            .map(|(_, node, port)| tensor(node, port))
            .collect(),
        outputs: graph
            .outputs()
            .map(|(_, node, port)| tensor(node, port))
            .collect(),
        counts: all,
        facts: facts(graph),
    }
}

fn tensor(node: &GraphNode, port: &Port) -> TensorInfo {
    let element = match port.width {
        8 => ElementType::UInt8,
        16 => ElementType::UInt16,
        32 => ElementType::UInt32,
        _ => ElementType::UInt64,
    };
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

/// The statements of the file and the graph that they make, as a tree.
pub fn raw(document: &Document<'_>) -> Node {
    let statements = document.file.statements.iter().map(|statement| {
        let span = statement.span;
        let text = document
            .bytes
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default();
        let line = document.lines.position(span.start).0;
        let words: Vec<String> = String::from_utf8_lossy(text)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        Node {
            name: format!("line {line}"),
            offset: Some(span.start.into()),
            ..Node::from(words.join(" "))
        }
    });
    let graph = &document.graph;
    let nodes = graph.nodes.iter_enumerated().map(|(id, node)| {
        let children = node
            .operands
            .iter()
            .enumerate()
            .map(|(index, operand)| Node {
                name: format!("operand {index}"),
                ..Node::from(operand_text(graph, operand))
            });
        Node {
            name: format!("node {}", id.raw()),
            offset: Some(node.span.start.into()),
            children: children.collect(),
            ..Node::from(node_text(node))
        }
    });
    let part = |name: &str, children: Vec<Node>| Node {
        name: name.to_owned(),
        children,
        ..Node::default()
    };
    let parts = vec![
        part("statements", statements.collect()),
        part("graph", nodes.collect()),
    ];
    Node {
        children: parts,
        ..part("dfg", Vec::new())
    }
}

fn node_text(node: &GraphNode) -> String {
    let values = node
        .values
        .iter()
        .filter(|value| !value.name.is_empty())
        .map(|value| format!("{}: {}", value.name, value.width));
    let values = values.collect::<Vec<_>>().join(", ");
    match &node.kind {
        NodeKind::Array(array) => format!(
            "array {}, {} bytes, {}",
            node.name,
            array.size,
            array.kind.name()
        ),
        NodeKind::Input(port) => format!(
            "input {}{}, values {values}",
            node.name,
            if port.stated { ", stated" } else { "" }
        ),
        NodeKind::Output(port) => format!(
            "output {}, {} lanes of {} bits",
            node.name, port.lanes, port.width
        ),
        NodeKind::Composite(composite) => format!("composite {}, values {values}", composite.name),
        NodeKind::Instruction(instruction) => {
            let mut text = format!("{}, values {values}", instruction.operation);
            for (name, control) in [
                ("ctrl", &instruction.control),
                ("self", &instruction.self_control),
            ] {
                if let Some(control) = control {
                    let _ = write!(text, ", {name} {}", control_text(control));
                }
            }
            text
        }
    }
}

fn control_text(control: &Control) -> String {
    let entries = control.table.iter().map(|(key, actions)| {
        let letters: Vec<&str> = Actions::LETTERS
            .iter()
            .filter(|(action, _)| actions.has(*action))
            .map(|(_, letter)| *letter)
            .collect();
        format!("{key}: {}", letters.join("|"))
    });
    format!(
        "& {}{{{}}}",
        control.mask,
        entries.collect::<Vec<_>>().join(", ")
    )
}

fn operand_text(graph: &Graph, operand: &Operand) -> String {
    let source = match &operand.source {
        Source::Constant(value) => format!("constant {value:#x}"),
        Source::Register(register) => format!("register {register}"),
        Source::Edges(edges) => {
            let parts = edges.iter().map(|id| {
                let edge = &graph.edges[*id];
                format!(
                    "node {} value {} bits {} to {} (edge {})",
                    edge.source.raw(),
                    edge.value,
                    edge.low,
                    edge.high,
                    id.raw()
                )
            });
            parts.collect::<Vec<_>>().join(", ")
        }
    };
    match operand.role {
        Role::Data => source,
        Role::Control => format!("ctrl {source}"),
        Role::Predicate => format!("pred {source}"),
        Role::InversePredicate => format!("inv_pred {source}"),
        Role::State => format!("state {source}"),
    }
}
