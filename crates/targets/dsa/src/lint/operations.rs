//! Operations: whether they are known, and get what they take.

use super::{Lint, data, named, rules};
use crate::graph::{GroupId, Instruction, Node, NodeKind, Source};
use crate::operations::{self, Operation};
use crate::rules::closest;
use std::collections::HashSet;

/// Registers that are written, by sub-graph.
type Written = HashSet<(GroupId, u8)>;

pub(super) fn check(lint: &mut Lint<'_>) {
    let mut unknown = HashSet::new();
    let registers = |node: &Node| {
        node.values
            .iter()
            .flat_map(|value| &value.registers)
            .map(|register| (node.group, *register))
            .collect::<Vec<_>>()
    };
    let written: Written = lint.nodes().flat_map(|(_, node)| registers(node)).collect();
    for (_, node) in lint.nodes() {
        match &node.kind {
            NodeKind::Instruction(instruction) => {
                match operations::lookup(&instruction.operation) {
                    Some(operation) => {
                        known(lint, node, instruction, &operation, &written);
                        narrow_inputs(lint, node, &operation);
                    }
                    None => report_unknown(lint, node, &instruction.operation, &mut unknown),
                }
            }
            NodeKind::Composite(composite) => {
                for (name, _) in composite
                    .units
                    .iter()
                    .filter(|(name, _)| operations::lookup(name).is_none())
                {
                    report_unknown(lint, node, name, &mut unknown);
                }
            }
            _ => continue,
        }
        if node
            .values
            .iter()
            .all(|value| value.uses.is_empty() && value.registers.is_empty())
        {
            lint.report(
                &rules::UNUSED_RESULT,
                node,
                format!("nothing uses the result of {}", named(node)),
            );
        }
    }
}

/// The operation that an unknown name was probably meant for. A type at its end that is right says nothing about the rest.
fn meant<'n>(name: &str, names: &'n [String]) -> Option<&'n str> {
    let Some((stem, kind)) = name.rsplit_once('_') else {
        return closest(name, names.iter().map(String::as_str));
    };
    let known = || {
        names
            .iter()
            .filter_map(|name| Some((name.as_str(), name.rsplit_once('_')?)))
    };
    let stems = closest(
        stem,
        known()
            .filter(|(_, (_, other))| *other == kind)
            .map(|(_, (stem, _))| stem),
    )
    .map(|stem| (stem, kind));
    let kinds = || {
        closest(
            kind,
            known()
                .filter(|(_, (other, _))| *other == stem)
                .map(|(_, (_, kind))| kind),
        )
        .map(|kind| (stem, kind))
    };
    let found = stems.or_else(kinds)?;
    known()
        .find(|(_, parts)| *parts == found)
        .map(|(name, _)| name)
}

/// Reports an unknown operation, each name once.
fn report_unknown<'d>(
    lint: &mut Lint<'_>,
    node: &Node,
    name: &'d str,
    unknown: &mut HashSet<&'d str>,
) {
    if !unknown.insert(name) || lint.findings.full() {
        return;
    }
    let names: Vec<String> = operations::names().collect();
    let hint = meant(name, &names).map(|found| format!("; did you mean `{found}`?"));
    lint.report(
        &rules::UNKNOWN_OPERATION,
        node,
        format!(
            "no table has an operation `{}`{}",
            crate::rules::clip(name, 60),
            hint.unwrap_or_default()
        ),
    );
}

/// The whole value that an operand is, if it is one: the node that makes it and its bits.
fn whole<'d>(lint: &Lint<'d>, source: &Source) -> Option<(&'d Node, u32)> {
    let Source::Edges(edges) = source else {
        return None;
    };
    let [edge] = edges.as_slice() else {
        return None;
    };
    let edge = &lint.graph.edges[*edge];
    let node = &lint.graph.nodes[edge.source];
    let width = node.values.get(edge.value as usize)?.width;
    (edge.low == 0 && edge.width() == width).then_some((node, width))
}

/// Lanes that are narrower than the operation that takes them.
fn narrow_inputs(lint: &mut Lint<'_>, node: &Node, operation: &Operation) {
    for operand in data(node) {
        if let Some((port, width)) = whole(lint, &operand.source)
            && matches!(port.kind, NodeKind::Input(_))
            && width < operation.width
        {
            let message = format!(
                "{} takes operands of {} bits, input `{}` has lanes of {width}",
                named(node),
                operation.width,
                port.name
            );
            return lint.report(&rules::NARROW_PORT, node, message);
        }
    }
}

/// Lanes of an output that are narrower than the result that they are given.
pub(super) fn narrow_output(lint: &mut Lint<'_>, node: &Node, port: u32) {
    for operand in data(node) {
        if let Some((source, width)) = whole(lint, &operand.source)
            && matches!(source.kind, NodeKind::Instruction(_))
            && width > port
        {
            let message = format!(
                "output `{}` has lanes of {port} bits, {} gives {width}",
                node.name,
                named(source)
            );
            return lint.report(&rules::NARROW_PORT, node, message);
        }
    }
}

fn known(
    lint: &mut Lint<'_>,
    node: &Node,
    instruction: &Instruction,
    operation: &Operation,
    written: &Written,
) {
    let (count, arity) = (data(node).count(), operation.arity());
    // A control may stand for the operand that resets (`Acc64(a, ctrl=last{1: r})`).
    let controls = usize::from(instruction.control.is_some());
    let takes = if arity.start() == arity.end() {
        arity.start().to_string()
    } else {
        format!("{} to {}", arity.start(), arity.end())
    };
    if count + controls < *arity.start() {
        lint.report(
            &rules::ARITY,
            node,
            format!("{} has {} of {takes}", named(node), plural(count)),
        );
    } else if count > *arity.end() {
        lint.report(
            &rules::EXTRA_OPERAND,
            node,
            format!(
                "{} has {} where it takes {takes}",
                named(node),
                plural(count)
            ),
        );
    }
    let results = operation.results as usize;
    if node.values.len() != results && !node.name.is_empty() {
        let message = format!(
            "{} results are named, `{}` has {results}",
            node.values.len(),
            instruction.operation
        );
        lint.report(&rules::RESULTS, node, message);
    }
    let wide = data(node).enumerate().find_map(|(index, operand)| {
        let width = lint.width(operand)?;
        (width > operation.width).then_some((index + 1, width))
    });
    if let Some((index, width)) = wide {
        let message = format!(
            "operand {index} of {} has {width} bits, the operation {}",
            named(node),
            operation.width
        );
        lint.report(&rules::OPERAND_WIDTH, node, message);
    }
    let register = data(node).find_map(|operand| match operand.source {
        Source::Register(register) => Some(register),
        _ => None,
    });
    if let Some(register) = register.filter(|register| !written.contains(&(node.group, *register)))
    {
        lint.report(
            &rules::REGISTER_UNWRITTEN,
            node,
            format!(
                "{} reads `$Reg{register}`, which nothing writes",
                named(node)
            ),
        );
    }
}

fn plural(operands: usize) -> String {
    format!("{operands} operand{}", if operands == 1 { "" } else { "s" })
}
