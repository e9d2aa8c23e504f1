//! Mends of dataflow graphs.

use super::{Mend, meant, whole_lines};
use crate::analysis::{Analysis, TokenKind};
use crate::language::Language;
use crate::languages::dfg::{Dfg, undefined};
use crate::text::Edit;
use chipless::dsa::Document;
use chipless::dsa::graph::{Graph, Node, NodeKind, Role, Source};
use chipless::dsa::syntax::Span;
use chipless::dsa::syntax::ast::{Expression, File, Statement, StatementKind, Term};
use chipless_model::{Finding, Limits};
use std::ops::Range;

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// The first thing that a message puts in backticks, and the second.
fn quoted(message: &str) -> (Option<&str>, Option<&str>) {
    let mut parts = message.split('`').skip(1).step_by(2);
    (parts.next(), parts.next())
}

fn document(text: &str) -> Document<'_> {
    Document::read(text.as_bytes(), &Limits::default())
}

/// The statement that a byte is in.
fn statement<'f, 'a>(tree: &'f File<'a>, at: usize) -> Option<&'f Statement<'a>> {
    tree.statements
        .iter()
        .find(|statement| range(statement.span).contains(&at))
}

pub(super) fn mend(
    code: &str,
    text: &str,
    finding: &Finding,
    place: &Range<usize>,
) -> Option<Mend> {
    let here = text.get(place.clone())?;
    let message = finding.message.as_str();
    match code {
        "dfg-final-newline" => Mend::one("End the last line", Edit::insert(text.len(), "\n")),
        "dfg-carriage-return" => {
            let all = text.match_indices('\r');
            Mend::new(
                "End lines with newlines only",
                all.map(|(at, _)| Edit::delete(at..at + 1)).collect(),
            )
        }
        "dfg-byte-order-mark" => text
            .starts_with('\u{feff}')
            .then(|| Mend::one("Remove the byte order mark", Edit::delete(0..3)))?,
        "dfg-spelling" => spelling(text, message, place),
        "dfg-older-form" => older(text, message, place),
        "dfg-undefined" => {
            let (wrong, right) = meant(message)?;
            let all = undefined(text)
                .into_iter()
                .filter(|(name, _)| name == wrong);
            let edits = all.map(|(_, range)| Edit::replace(range, right)).collect();
            Mend::new(format!("Write `{right}`"), edits)
        }
        "dfg-unknown-operation" => {
            let (wrong, right) = meant(message)?;
            let edits = words(text, &Dfg.analyse(text), wrong, |kind| {
                kind == TokenKind::Function
            });
            let edits = edits
                .into_iter()
                .map(|range| Edit::replace(range, right))
                .collect();
            Mend::new(format!("Write `{right}`"), edits)
        }
        "dfg-unused-name" | "dfg-unused-array" | "dfg-pragma-lost" => {
            let document = document(text);
            let tree = document.tree();
            let whole = range(statement(&tree, place.start)?.span);
            Mend::one(
                "Remove what nothing uses",
                Edit::delete(whole_lines(text, &whole)),
            )
        }
        "dfg-unused-result" => unused_result(text, place),
        "dfg-pragma-form" => {
            let start = text.get(..place.end)?.rfind("#pragma")?;
            Mend::one("Make it a comment", Edit::insert(start + 1, " "))
        }
        "dfg-character" if here.starts_with("//") => Mend::one(
            "Begin the comment with `#`",
            Edit::replace(place.start..place.start + 2, "#"),
        ),
        "dfg-array-side" => {
            let right = match here {
                "source" => "destination",
                "destination" => "source",
                _ => return None,
            };
            Mend::one(
                format!("Write `{right}`"),
                Edit::replace(place.clone(), right),
            )
        }
        "dfg-output-stated" => {
            let before = text.get(..place.start)?.trim_end_matches([' ', '\t']).len();
            Mend::one(
                "Remove `stated`, which does nothing here",
                Edit::delete(before..place.end),
            )
        }
        "dfg-reuse-leaks" => {
            let start = text.get(..place.start)?.rfind('\n').map_or(0, |at| at + 1);
            let indent = text
                .get(start..place.start)
                .filter(|head| head.trim().is_empty())?;
            Mend::one(
                "Say that the port has no reuse",
                Edit::insert(place.start, format!("#pragma reuse=0\n{indent}")),
            )
        }
        "dfg-constant-name" => constant(text, place),
        "dfg-redefined" => redefined(text, place),
        _ => None,
    }
}

/// Coloured words of this text.
fn words(
    text: &str,
    analysis: &Analysis,
    word: &str,
    wanted: impl Fn(TokenKind) -> bool,
) -> Vec<Range<usize>> {
    let all = analysis.tokens.iter().filter(|(_, kind)| wanted(*kind));
    let all = all.filter(|(range, _)| text.get(range.clone()) == Some(word));
    all.map(|(range, _)| range.clone()).collect()
}

/// Forms of the specification that the real parser rejects.
fn spelling(text: &str, message: &str, place: &Range<usize>) -> Option<Mend> {
    let here = text.get(place.clone())?;
    if message.contains("has no colon") {
        return Mend::one(
            "Put a colon behind the keyword",
            Edit::insert(place.end, ":"),
        );
    }
    if message.contains("`Array: name") {
        let document = document(text);
        let tree = document.tree();
        let statement = statement(&tree, place.start)?;
        let StatementKind::Array(array) = &statement.kind else {
            return None;
        };
        let size = array.size.unwrap_or(64);
        let new = format!("Array: {} {size} {here}", array.name.text);
        return Mend::one(
            "Write `Array: name size type`",
            Edit::replace(range(statement.span), new),
        );
    }
    if message.contains("=VALUE") {
        let rest = text.get(place.end..)?;
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let edit = Edit::replace(place.end..place.end + gap, "=");
        return (gap > 0).then(|| Mend::one("Put `=` behind the key", edit))?;
    }
    if message.contains("lanes behind the name") {
        // `[2]: name` or `[2] name`.
        let rest = text.get(place.end..)?;
        let name = rest.find(|c: char| !": \t".contains(c))?;
        let size = rest[name..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len() - name);
        let open = text.get(..place.end)?.rfind('[')?;
        let lanes = text.get(open..place.end)?.to_owned();
        let behind = place.end + name + size;
        return Mend::new(
            "Put the lanes behind the name",
            vec![Edit::delete(open..place.end), Edit::insert(behind, lanes)],
        );
    }
    let (Some(wrong), Some(right)) = quoted(message) else {
        return None;
    };
    let analysis = Dfg.analyse(text);
    let names = |kind| matches!(kind, TokenKind::Variable | TokenKind::Parameter);
    let edits = words(text, &analysis, wrong, names);
    let edits = edits
        .into_iter()
        .map(|range| Edit::replace(range, right))
        .collect();
    Mend::new(format!("Write `{right}`"), edits)
}

/// Older forms of the language.
fn older(text: &str, message: &str, place: &Range<usize>) -> Option<Mend> {
    let (_, today) = message.split_once("today's form is ")?;
    let today = today.trim_matches('`');
    if !message.starts_with("a slice") {
        let size = if message.contains("control=") {
            "control".len()
        } else {
            place.len()
        };
        let new = today.trim_end_matches('=');
        return Mend::one(
            format!("Write `{new}`"),
            Edit::replace(place.start..place.start + size, new),
        );
    }
    // All slices of a file are of one form: they change together or not at all.
    let document = document(text);
    let mut edits = Vec::new();
    for finding in document
        .findings
        .iter()
        .filter(|f| f.rule.code == "dfg-older-form")
    {
        let said = finding
            .message
            .strip_prefix("a slice")
            .and_then(|m| m.split_once("today's form is "));
        let (Some((_, today)), Some(offset)) = (said, finding.place.offset) else {
            continue;
        };
        let start = offset as usize;
        let end = start + finding.place.size as usize;
        edits.push(Edit::replace(start..end, today.trim_matches('`')));
    }
    Mend::new("Write all slices as ranges of bits", edits)
}

/// A result that nothing uses goes where its instruction neither holds operands back nor writes registers.
fn unused_result(text: &str, place: &Range<usize>) -> Option<Mend> {
    let document = document(text);
    let tree = document.tree();
    let statement = statement(&tree, place.start)?;
    let StatementKind::Assignment(assignment) = &statement.kind else {
        return None;
    };
    let Expression::Call(call) = &assignment.value else {
        return None;
    };
    let plain = call.arguments.iter().all(|argument| {
        argument.qualifier.is_none() && matches!(argument.value, Some(Expression::Terms(_)))
    });
    if !plain || assignment.names.len() > 1 || !call.units.is_empty() {
        return None;
    }
    let whole = range(statement.span);
    let title = format!(
        "Remove `{}`, which nothing uses",
        assignment.names.first()?.text
    );
    Mend::one(title, Edit::delete(whole_lines(text, &whole)))
}

/// A name for a constant: the constant stands where the name is used.
fn constant(text: &str, place: &Range<usize>) -> Option<Mend> {
    let document = document(text);
    let tree = document.tree();
    let statement = statement(&tree, place.start)?;
    let StatementKind::Assignment(assignment) = &statement.kind else {
        return None;
    };
    let Expression::Terms(terms) = &assignment.value else {
        return None;
    };
    let first = terms.first()?.span();
    let last = terms.last()?.span();
    let constants = terms
        .iter()
        .all(|term| matches!(term, Term::Integer(..) | Term::Float(..)));
    let value = text
        .get(first.start as usize..last.end as usize)
        .filter(|_| constants)?;
    let analysis = Dfg.analyse(text);
    let name = assignment.names.first()?;
    let symbol = analysis.at(name.span.start as usize)?.symbol;
    let uses = analysis.references(symbol).filter(|place| !place.defines);
    let mut edits: Vec<Edit> = uses
        .map(|place| Edit::replace(place.word.clone(), value))
        .collect();
    edits.push(Edit::delete(whole_lines(text, &range(statement.span))));
    Mend::new(
        format!("Write {value} where `{}` is used", name.text),
        edits,
    )
}

/// A result that takes the name of an earlier one: the earlier one gets a name of its own.
fn redefined(text: &str, place: &Range<usize>) -> Option<Mend> {
    let analysis = Dfg.analyse(text);
    let name = text.get(place.clone())?;
    let earlier = analysis.symbols.iter().rposition(|symbol| {
        symbol.name == name && symbol.word.start < place.start && symbol.part_of.is_none()
    })?;
    let fresh = (1..100)
        .map(|n| format!("{name}_{n}x"))
        .find(|fresh| !text.contains(fresh.as_str()))?;
    let places = analysis.references(earlier);
    let edits = places.map(|place| Edit::replace(place.word.clone(), fresh.clone()));
    Mend::new(format!("Call the earlier one `{fresh}`"), edits.collect())
}

/// Whether a node does something: what nothing uses does not, but for instructions with a control, which hold operands back.
fn is_used(node: &Node) -> bool {
    let has_reader = node.values.iter().any(|value| !value.uses.is_empty());
    match &node.kind {
        NodeKind::Instruction(instruction) => {
            let plain = instruction.control.is_none()
                && instruction.self_control.is_none()
                && node
                    .operands
                    .iter()
                    .all(|operand| operand.role == Role::Data);
            !plain || has_reader || node.values.iter().any(|value| !value.registers.is_empty())
        }
        NodeKind::Array(_) => has_reader || !node.operands.is_empty(),
        _ => true,
    }
}

/// What a graph does, without names and places, and without what does nothing.
fn shape(graph: &Graph) -> String {
    let mut count = 0;
    let numbers: Vec<usize> = graph
        .nodes
        .iter()
        .map(|node| {
            let number = count;
            count += usize::from(is_used(node));
            number
        })
        .collect();
    let mut said = format!("{:?}", graph.groups);
    for node in graph.nodes.iter().filter(|node| is_used(node)) {
        let kind = match &node.kind {
            NodeKind::Input(port) | NodeKind::Output(port) => format!(
                "{} {} {} {} {:?}",
                port.width, port.lanes, port.stated, port.indirect, port.pragmas
            ),
            other => format!("{other:?}"),
        };
        let direction = std::mem::discriminant(&node.kind);
        said.push_str(&format!("\n{:?} {direction:?} {kind}", node.group));
        for operand in &node.operands {
            said.push_str(&format!(" {:?}", operand.role));
            match &operand.source {
                Source::Edges(edges) => {
                    for edge in edges {
                        let edge = &graph.edges[*edge];
                        let source = numbers.get(edge.source.index());
                        let bits = (edge.value, edge.low, edge.high);
                        said.push_str(&format!(" {source:?} {bits:?}"));
                    }
                }
                other => said.push_str(&format!(" {other:?}")),
            }
        }
        for value in &node.values {
            said.push_str(&format!(" ={} {:?}", value.width, value.registers));
        }
    }
    said
}

/// Whether two valid texts are the same graph, but for names and what nothing uses.
pub(super) fn same_meaning(before: &str, after: &str) -> bool {
    let graph = |text| shape(&Document::read(str::as_bytes(text), &Limits::default()).graph);
    graph(before) == graph(after)
}
