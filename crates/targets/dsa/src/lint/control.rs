//! Control tables, and accumulators.

use super::{Lint, data, named, rules};
use crate::graph::{Actions, Control, Instruction, Node, NodeKind, Role, Source};

/// Bits that a mask may have (dsagen2, `MetaControl`).
const MASK_BITS: u32 = 3;

pub(super) fn check(lint: &mut Lint<'_>) {
    for (_, node) in lint.nodes() {
        let NodeKind::Instruction(instruction) = &node.kind else {
            continue;
        };
        if let Some(control) = &instruction.control {
            let width = node
                .operands
                .iter()
                .find(|operand| operand.role == Role::Control)
                .and_then(|operand| lint.width(operand));
            table(lint, node, control, width.unwrap_or(64));
        }
        if let Some(control) = &instruction.self_control {
            let width = node.values.first().map_or(64, |value| value.width);
            table(lint, node, control, width);
        }
        accumulator(lint, node, instruction);
    }
}

fn table(lint: &mut Lint<'_>, node: &Node, control: &Control, width: u32) {
    if control.table.is_empty() {
        return lint.report(
            &rules::CONTROL_EMPTY,
            node,
            format!("the control of {} has no entry", named(node)),
        );
    }
    let bits = if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    };
    let lost: Vec<String> = control
        .table
        .iter()
        .filter(|(key, _)| key & !(control.mask & bits) != 0)
        .map(|(key, _)| key.to_string())
        .collect();
    if !lost.is_empty() {
        let message = format!(
            "{} of {} never match: the mask is {}, the control value has {width} bits",
            entries(&lost),
            named(node),
            control.mask
        );
        lint.report(&rules::CONTROL_KEY, node, message);
    }
    if control.mask.count_ones() > MASK_BITS {
        let message = format!(
            "mask {} of {} has {} bits, possible are {MASK_BITS}",
            control.mask,
            named(node),
            control.mask.count_ones()
        );
        lint.report(&rules::CONTROL_MASK, node, message);
    }
    if control
        .table
        .iter()
        .any(|(_, actions)| actions.has(Actions::ABSTAIN))
    {
        let message = format!("{} abstains", named(node));
        lint.report(&rules::ABSTAIN, node, message);
    }
    let count = data(node).count();
    let holds = |actions: Actions| {
        (actions.has(Actions::HOLD_FIRST) && count < 1)
            || (actions.has(Actions::HOLD_SECOND) && count < 2)
    };
    if control.table.iter().any(|(_, actions)| holds(*actions)) {
        lint.report(
            &rules::HOLD,
            node,
            format!("{} has {count} operands and holds another", named(node)),
        );
    }
}

fn entries(keys: &[String]) -> String {
    let shown = keys
        .iter()
        .take(8)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if keys.len() == 1 {
        format!("entry {shown}")
    } else {
        format!("entries {shown}")
    }
}

/// Accumulators keep a sum: in a register that they read and write, or, the older ones, by their nature.
fn accumulator(lint: &mut Lint<'_>, node: &Node, instruction: &Instruction) {
    let written = |register: &u8| {
        node.values
            .iter()
            .any(|value| value.registers.contains(register))
    };
    let by_register = data(node)
        .any(|operand| matches!(&operand.source, Source::Register(register) if written(register)));
    let name = instruction
        .operation
        .trim_start_matches('F')
        .trim_start_matches('x');
    let by_nature = name.starts_with("Acc")
        && match data(node).nth(1).map(|operand| &operand.source) {
            None => true,
            Some(Source::Constant(value)) => *value == 0,
            Some(_) => false,
        };
    let resets = |control: &Option<Box<Control>>| {
        control.as_ref().is_some_and(|control| {
            control
                .table
                .iter()
                .any(|(_, actions)| actions.has(Actions::RESET))
        })
    };
    if (by_register || by_nature)
        && !resets(&instruction.control)
        && !resets(&instruction.self_control)
    {
        lint.report(
            &rules::NEVER_RESET,
            node,
            format!("{} adds up and is never reset", named(node)),
        );
    }
}
