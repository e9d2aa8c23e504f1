//! Which form of the language a file is written in.

use crate::graph::Era;
use crate::syntax::ast::{Expression, File, Lanes, StatementKind, Term};

/// Calls a function with every expression of a file, nested ones included, until it returns `true`.
fn any_expression<'f, 'a>(
    file: &'f File<'a>,
    found: &mut dyn FnMut(&'f Expression<'a>) -> bool,
) -> bool {
    let mut stack: Vec<&Expression<'a>> = Vec::new();
    for statement in &file.statements {
        if let StatementKind::Assignment(assignment) = &statement.kind {
            stack.push(&assignment.value);
        }
        while let Some(expression) = stack.pop() {
            if found(expression) {
                return true;
            }
            if let Expression::Call(call) = expression {
                stack.extend(
                    call.arguments
                        .iter()
                        .filter_map(|argument| argument.value.as_ref()),
                );
            }
        }
    }
    false
}

pub(super) fn any_slice(file: &File<'_>, found: impl Fn(u64, u64) -> bool) -> bool {
    any_expression(file, &mut |expression| match expression {
        Expression::Terms(terms) => terms
            .iter()
            .any(|term| matches!(term, Term::Slice(_, first, second, _) if found(*first, *second))),
        Expression::Call(_) => false,
    })
}

pub(super) fn slices_by_width(file: &File<'_>) -> bool {
    any_slice(file, |first, second| first > second)
}

pub(super) fn era(file: &File<'_>) -> Era {
    let lists = file.statements.iter().any(
        |s| matches!(&s.kind, StatementKind::Port(port) if matches!(port.lanes, Lanes::List(_))),
    );
    if lists {
        return Era::LaneLists;
    }
    let legacy = |expression: &Expression<'_>| match expression {
        Expression::Terms(terms) => terms
            .iter()
            .any(|term| matches!(term, Term::Slice(_, first, second, _) if first > second)),
        Expression::Call(call) => {
            let control = call.arguments.iter().any(|a| {
                a.qualifier
                    .is_some_and(|qualifier| qualifier.text == "control")
            });
            control || call.units.is_empty() && !super::operands::is_modern(call.operation.text)
        }
    };
    if any_expression(file, &mut |expression| legacy(expression)) {
        Era::Legacy
    } else {
        Era::Modern
    }
}
