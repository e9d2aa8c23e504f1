//! Reads workload files. Every mistake has its line and column.

mod agents;
mod arrivals;

use crate::engine::engine;
use crate::fields::{Fields, Read, integer, list, scalar, text, time, wrong};
use crate::figures::{BANDS, Change};
use crate::rules;
use crate::synthetic;
use crate::workload::{ArrivalKind, Context, Source, Stream, Workload};
use agents::agents;
use arrivals::{arrivals, follows_itself};
use chipless_model::Finding;
use chipless_yaml::{Budget, Node, Span, Value};

/// Nodes of a workload file: programs and lists of times may be long.
const NODES: u64 = 32_000_000;
/// Address spaces have 20 bits on the bus.
const PROCESSES: i128 = 1 << 20;
/// Times of recorded arrivals in seconds, where they have no unit.
const SECONDS: f64 = 1e12;

/// Reads a workload file. `open` gives the text of a file that it names, or says why not.
///
/// # Errors
/// The first mistake, with its place.
pub fn read(
    source: &str,
    mut open: impl FnMut(&str) -> Result<String, String>,
) -> Result<Workload, Box<Finding>> {
    let budget = Budget {
        nodes: NODES,
        ..Budget::default()
    };
    let tree = chipless_yaml::read(source, budget)
        .map_err(|(span, message)| Box::new(rules::SYNTAX.at(span.place(), message)))?;
    if let Some((key, first, again)) = tree.duplicates.first() {
        let text = format!("expected `{key}` once, found it again");
        let finding = rules::DUPLICATE.at(again.place(), text);
        return Err(Box::new(finding.with(first.place(), "first here")));
    }
    let Some(root) = tree.root else {
        return wrong(
            &rules::MISSING,
            Span {
                line: 1,
                column: 1,
                ..Span::default()
            },
            "expected a workload, found an empty file",
        );
    };
    let fields = [
        "machine", "duration", "seed", "contexts", "streams", "agents", "set", "what_if",
    ];
    let top = Fields::of(&root, "a workload", &fields)?;
    let machine = top.needs("machine", "a workload")?;
    let contexts = contexts(top.needs("contexts", "a workload")?)?;
    let items = list(top.needs("streams", "a workload")?, "streams")?;
    if items.is_empty() {
        return wrong(
            &rules::MISSING,
            top.span,
            "expected a stream at least, found none",
        );
    }
    let names = items.iter().map(|item| {
        let fields = Fields::any(item, "a stream")?;
        Ok(fields.get("name").map(Node::label).unwrap_or_default())
    });
    let names: Vec<String> = names.collect::<Read<_>>()?;
    let mut streams: Vec<Stream> = Vec::with_capacity(items.len());
    for item in items {
        let (stream, name) = stream(item, &contexts, &names, &mut open)?;
        if streams.iter().any(|known| known.name == stream.name) {
            let text = format!(
                "expected streams of different names, found a second \"{}\"",
                stream.name
            );
            return wrong(&rules::DUPLICATE, name, text);
        }
        streams.push(stream);
    }
    let duration = match top.get("duration") {
        Some(node) => Some(time(node, "duration")?),
        None => None,
    };
    let endless = |stream: &&Stream| match &stream.arrivals.kind {
        _ if stream.arrivals.count.is_some() => false,
        ArrivalKind::At(_) => false,
        ArrivalKind::After { .. } => follows_itself(&streams, stream),
        _ => true,
    };
    if let (None, Some(stream)) = (duration, streams.iter().find(endless)) {
        let text = format!(
            "expected `duration`, or a `count` in the arrivals of \"{}\", found neither",
            stream.name
        );
        return wrong(&rules::MISSING, top.span, text);
    }
    Ok(Workload {
        machine: (
            text(machine, "the name of a machine")?.to_owned(),
            machine.span,
        ),
        duration,
        seed: match top.get("seed") {
            Some(node) => integer(node, 0, u64::MAX.into(), "a seed from 0 on")? as u64,
            None => 0,
        },
        contexts,
        streams,
        agents: match top.get("agents") {
            Some(node) => agents(node, &mut open)?,
            None => Vec::new(),
        },
        set: match top.get("set") {
            Some(node) => changes(node)?,
            None => Vec::new(),
        },
        what_if: match top.get("what_if") {
            Some(node) => what_ifs(node)?,
            None => Vec::new(),
        },
    })
}

fn changes(node: &Node) -> Read<Vec<(Change, Span)>> {
    let fields = Fields::any(node, "figures")?;
    let change = |(key, span, value): &(&str, Span, &Node)| {
        Ok((
            Change {
                key: (*key).to_owned(),
                value: scalar(value)?,
            },
            *span,
        ))
    };
    fields.entries.iter().map(change).collect()
}

fn what_ifs(node: &Node) -> Read<Vec<(String, Change, Span)>> {
    let items = list(node, "KEY=VALUE")?;
    let mut changes = Vec::new();
    for item in items {
        let given = text(item, "KEY=VALUE")?;
        let Some(all) = Change::all(given) else {
            return wrong(
                &rules::FIGURE,
                item.span,
                format!("expected KEY=VALUE, found \"{given}\""),
            );
        };
        changes.extend(
            all.into_iter()
                .map(|(text, change)| (text, change, item.span)),
        );
    }
    Ok(changes)
}

fn contexts(node: &Node) -> Read<Vec<Context>> {
    let all = Fields::any(node, "contexts")?;
    let mut contexts = Vec::with_capacity(all.entries.len());
    for (name, _, node) in &all.entries {
        let fields = Fields::of(
            node,
            "a context",
            &[
                "process",
                "band",
                "priority",
                "percentage",
                "granted",
                "revoked",
            ],
        )?;
        let process = fields.needs("process", "a context")?;
        let band = match fields.get("band") {
            None => 1,
            Some(node) => {
                let given = node.label();
                let Some(band) = BANDS.iter().position(|band| *band == given) else {
                    let text = format!("expected {}, found \"{given}\"", BANDS.join(", "));
                    return wrong(&rules::BAND, node.span, text);
                };
                band as u8
            }
        };
        let priority = match fields.get("priority") {
            None => 0,
            Some(node) => {
                let Value::Integer(value @ -7..=7) = node.value else {
                    let text = format!(
                        "expected a priority from -7 to 7, found {}",
                        node.describe()
                    );
                    return wrong(&rules::BAND, node.span, text);
                };
                value as i8
            }
        };
        let percentage = match fields.get("percentage") {
            None => None,
            Some(node) => Some(percentage(node, band)?),
        };
        let instant = |key: &str| match fields.get(key) {
            Some(node) => time(node, key).map(Some),
            None => Ok(None),
        };
        let (granted, revoked) = (instant("granted")?, instant("revoked")?);
        if let (Some(node), true) = (
            fields.get("revoked"),
            revoked <= granted && granted.is_some(),
        ) {
            let text = format!(
                "expected a time behind `granted`, found {}",
                node.describe()
            );
            return wrong(&rules::DOORBELL_TIMES, node.span, text);
        }
        contexts.push(Context {
            name: (*name).to_owned(),
            process: integer(
                process,
                0,
                PROCESSES - 1,
                "the number of a process, from 0 to 2^20 - 1",
            )? as u32,
            band,
            priority,
            percentage,
            granted,
            revoked,
        });
    }
    Ok(contexts)
}

/// What the normal band has at least; only its own contexts say so.
fn percentage(node: &Node, band: u8) -> Read<f64> {
    if band != 1 {
        let text = format!(
            "expected `percentage` in a context of the normal band, found it in one of band {}",
            BANDS[band as usize]
        );
        return wrong(&rules::BAND, node.span, text);
    }
    let value = match node.value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        _ => f64::NAN,
    };
    if (0.0..=100.0).contains(&value) {
        return Ok(value);
    }
    let text = format!("expected 0 to 100 percent, found {}", node.describe());
    wrong(&rules::TYPE, node.span, text)
}

fn stream(
    node: &Node,
    contexts: &[Context],
    names: &[String],
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<(Stream, Span)> {
    let known = [
        "name", "context", "program", "arrivals", "deadline", "engine",
    ];
    let fields = Fields::of(node, "a stream", &known)?;
    let name = fields.needs("name", "a stream")?;
    let named = fields.needs("context", "a stream")?;
    let given = named.label();
    let Some(context) = contexts.iter().position(|c| c.name == given) else {
        let text = format!("expected one of `contexts`, found \"{given}\"");
        return wrong(&rules::CONTEXT, named.span, text);
    };
    let engine = match fields.get("engine") {
        Some(node) => Some(engine(node)?),
        None => None,
    };
    let program = fields.needs("program", "a stream")?;
    let source = match &program.value {
        Value::Text(path) => Source::File(path.clone()),
        _ => Source::Synthetic(Box::new(synthetic::read(program, engine)?)),
    };
    let deadline = match fields.get("deadline") {
        Some(node) => Some(time(node, "deadline")?),
        None => None,
    };
    let stream = Stream {
        name: match &name.value {
            Value::Text(_) | Value::Integer(_) => name.label(),
            _ => text(name, "the name of a stream")?.to_owned(),
        },
        context,
        program: source,
        span: program.span,
        arrivals: arrivals(fields.needs("arrivals", "a stream")?, names, open)?,
        deadline,
        engine,
    };
    Ok((stream, name.span))
}
