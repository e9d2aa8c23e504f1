//! A DFG as a tree: the statements of the file, and the nodes that they make.

use crate::graph::{Actions, Control, Graph, Node as GraphNode, NodeKind, Operand, Role, Source};
use crate::read::Document;
use chipless_model::Node;
use std::fmt::Write;

/// The statements of the file and the graph that they make, as a tree.
pub fn raw(document: &Document<'_>) -> Node {
    let tree = document.tree();
    let statements = tree.statements.iter().map(|statement| {
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
