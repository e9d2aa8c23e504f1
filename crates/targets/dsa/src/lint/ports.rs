//! Ports, arrays, and what flows between sub-graphs.

use super::{Lint, named, rules};
use crate::graph::{ArrayKind, Node, NodeKind, Port, Role};

pub(super) fn check(lint: &mut Lint<'_>) {
    let mut leaking = None;
    for (_, node) in lint.nodes() {
        match &node.kind {
            NodeKind::Array(array) => ends(lint, node, array.kind),
            NodeKind::Input(port) => {
                used(lint, node, port);
                pragmas(lint, node, port, &mut leaking);
            }
            NodeKind::Output(port) => {
                lanes(lint, node, port);
                super::operations::narrow_output(lint, node, port.width);
                pragmas(lint, node, port, &mut leaking);
            }
            NodeKind::Instruction(_) | NodeKind::Composite(_) => {}
        }
        across(lint, node);
    }
}

fn used(lint: &mut Lint<'_>, node: &Node, port: &Port) {
    let lanes = &node.values[usize::from(port.stated).min(node.values.len())..];
    let unused: Vec<&str> = lanes
        .iter()
        .filter(|lane| lane.uses.is_empty())
        .map(|lane| &*lane.name)
        .collect();
    if unused.len() == lanes.len() {
        if node.values.iter().all(|value| value.uses.is_empty()) {
            lint.report(
                &rules::UNUSED_INPUT,
                node,
                format!("nothing uses input `{}`", node.name),
            );
        }
    } else if !unused.is_empty() {
        let shown = unused
            .iter()
            .take(8)
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let more = if unused.len() > 8 {
            format!(" and {} more", unused.len() - 8)
        } else {
            String::new()
        };
        lint.report(
            &rules::UNUSED_LANE,
            node,
            format!("nothing uses {shown}{more} of input `{}`", node.name),
        );
    }
}

fn lanes(lint: &mut Lint<'_>, node: &Node, port: &Port) {
    let odd = node
        .operands
        .iter()
        .enumerate()
        .filter(|(_, operand)| operand.role == Role::Data)
        .find_map(|(lane, operand)| {
            let width = lint.width(operand)?;
            (width != port.width).then_some((lane, width))
        });
    if let Some((lane, width)) = odd {
        lint.report(
            &rules::LANE_WIDTH,
            node,
            format!(
                "lane {lane} of output `{}` has {width} bits, the port {}",
                node.name, port.width
            ),
        );
    }
}

fn pragmas(lint: &mut Lint<'_>, node: &Node, port: &Port, leaking: &mut Option<f64>) {
    let pragmas = &port.pragmas;
    let is_one = |value: f64| (value - 1.0).abs() < f64::EPSILON;
    if !is_one(pragmas.cmd) {
        lint.report(
            &rules::PRAGMA_IGNORED,
            node,
            format!(
                "cmd is {} for `{}`; no tool uses it",
                pragmas.cmd, node.name
            ),
        );
    }
    if !is_one(pragmas.repeat) && matches!(node.kind, NodeKind::Input(_)) {
        lint.report(
            &rules::PRAGMA_IGNORED,
            node,
            format!(
                "repeat is {} for input `{}`; tools use it for outputs only",
                pragmas.repeat, node.name
            ),
        );
    }
    if pragmas.reuse > 1.0 {
        lint.report(
            &rules::REUSE_RANGE,
            node,
            format!("reuse is {} for `{}`", pragmas.reuse, node.name),
        );
    }
    if pragmas.reuse > 0.0 {
        *leaking = Some(pragmas.reuse);
    } else if let Some(reuse) = leaking.take() {
        lint.report(
            &rules::REUSE_LEAKS,
            node,
            format!(
                "the real parser gives `{}`, and ports behind it, a reuse of {reuse}",
                node.name
            ),
        );
    }
    let recurrence = port
        .array
        .is_some_and(|array| matches!(&lint.graph.nodes[array].kind, NodeKind::Array(array) if array.kind == ArrayKind::Recurrence));
    if recurrence && pragmas.conc == 0.0 {
        lint.report(
            &rules::CONCURRENCY,
            node,
            format!("`{}` takes part in a recurrence and has no conc", node.name),
        );
    }
}

fn ends(lint: &mut Lint<'_>, node: &Node, kind: ArrayKind) {
    let (written, read) = (
        !node.operands.is_empty(),
        node.values.iter().any(|value| !value.uses.is_empty()),
    );
    let missing = match (kind, written, read) {
        (_, false, false) => {
            return lint.report(
                &rules::UNUSED_ARRAY,
                node,
                format!("no port uses array `{}`", node.name),
            );
        }
        (ArrayKind::Recurrence, false, true) => "a recurrence that is read and never written",
        (ArrayKind::Recurrence, true, false) => "a recurrence that is written and never read",
        (ArrayKind::Register, _, true) => "a register array that is read",
        _ => return,
    };
    lint.report(
        &rules::ARRAY_ENDS,
        node,
        format!("`{}` is {missing}", node.name),
    );
}

fn across(lint: &mut Lint<'_>, node: &Node) {
    if matches!(node.kind, NodeKind::Array(_)) {
        return;
    }
    let foreign = lint.edges(node).find_map(|edge| {
        let source = &lint.graph.nodes[edge.source];
        (source.group != node.group && !matches!(source.kind, NodeKind::Array(_)))
            .then_some((source, edge.value))
    });
    if let Some((source, value)) = foreign {
        let value = source
            .values
            .get(value as usize)
            .map_or("", |value| &*value.name);
        let message = format!(
            "{} in sub-graph {} uses `{value}` of sub-graph {}",
            named(node),
            node.group.raw(),
            source.group.raw()
        );
        lint.report(&rules::ACROSS_GROUPS, node, message);
    }
}
