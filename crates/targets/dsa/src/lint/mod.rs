//! What the language allows and nobody means.

mod control;
mod operations;
mod ports;
pub(crate) mod rules;

use crate::graph::{Edge, Graph, Node, NodeId, Operand, Role, Source};
use crate::read::Document;
use crate::rules::Findings;
use crate::syntax::{Lines, Span};
use chipless_model::{Finding, Limits, Rule};

/// Everything that was found in a file: while reading, and by the rules about what the graph means, in the order of the file.
pub fn lint(document: &Document<'_>, limits: &Limits) -> Vec<Finding> {
    // What follows from an error elsewhere is not worth a finding.
    if !document.is_complete() {
        return document.findings.clone();
    }
    let mut lint = Lint {
        graph: &document.graph,
        lines: &document.lines,
        findings: Findings::new(limits.findings),
    };
    ports::check(&mut lint);
    operations::check(&mut lint);
    control::check(&mut lint);
    lint.file(document);
    let mut findings = document.findings.clone();
    findings.extend(lint.findings.done(&crate::rules::syntax::MORE_FINDINGS));
    findings.sort_by_key(|finding| finding.place.offset.unwrap_or(u64::MAX));
    findings
}

struct Lint<'d> {
    graph: &'d Graph,
    lines: &'d Lines<'d>,
    findings: Findings,
}

impl<'d> Lint<'d> {
    fn report(&mut self, rule: &'static Rule, node: &Node, message: impl AsRef<str>) {
        let lines = self.lines;
        self.findings
            .report(rule, || lines.place(node.span), message.as_ref());
    }

    /// What concerns the file as a whole, or statements that make no node.
    fn file(&mut self, document: &Document<'_>) {
        let lines = self.lines;
        if document.bytes.starts_with(b"\xEF\xBB\xBF") {
            let span = Span { start: 0, end: 3 };
            let message = "expected the first statement, found a byte order mark";
            self.findings
                .report(&rules::BYTE_ORDER_MARK, || lines.place(span), message);
        }
        for (number, group) in self.graph.groups.iter().enumerate() {
            let first = self
                .graph
                .nodes
                .iter()
                .find(|node| node.group.index() == number);
            if let (0, Some(first)) = (group.frequency, first) {
                let message = format!("sub-graph {number} has frequency 0");
                self.report(&rules::FREQUENCY, first, message);
            }
        }
        for task in &self.graph.tasks {
            let message = format!("`{}` is kept and not executed", task.keyword);
            let span = task.span;
            self.findings
                .report(&rules::TASKS, || lines.place(span), &message);
        }
    }

    fn nodes(&self) -> impl Iterator<Item = (NodeId, &'d Node)> + use<'d> {
        self.graph.nodes.iter_enumerated()
    }

    /// Bits of an operand from values.
    fn width(&self, operand: &Operand) -> Option<u32> {
        let Source::Edges(edges) = &operand.source else {
            return None;
        };
        Some(
            edges
                .iter()
                .map(|edge| self.graph.edges[*edge].width())
                .sum(),
        )
    }

    fn edges(&self, node: &'d Node) -> impl Iterator<Item = &'d Edge> + use<'d> {
        let graph = self.graph;
        let edges = node
            .operands
            .iter()
            .filter_map(|operand| match &operand.source {
                Source::Edges(edges) => Some(edges),
                _ => None,
            });
        edges.flatten().map(move |edge| &graph.edges[*edge])
    }
}

fn data(node: &Node) -> impl Iterator<Item = &Operand> {
    node.operands
        .iter()
        .filter(|operand| operand.role == Role::Data)
}

/// The name of a node for a message.
fn named(node: &Node) -> String {
    match &node.kind {
        crate::graph::NodeKind::Instruction(instruction) if node.name.is_empty() => {
            format!("`{}`", instruction.operation)
        }
        crate::graph::NodeKind::Instruction(instruction) => {
            format!("`{}` of `{}`", instruction.operation, node.name)
        }
        _ => format!("`{}`", node.name),
    }
}
