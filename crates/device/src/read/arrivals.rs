//! When jobs come, as workload files say it.

use super::{Fields, Read, SECONDS, integer, text, time, wrong};
use crate::quantity;
use crate::rules;
use crate::workload::{ArrivalKind, Arrivals, Stream};
use chipless_model::Place;
use chipless_yaml::{Node, Span, Value};

/// When the jobs of a stream come.
pub(super) fn arrivals(
    node: &Node,
    names: &[String],
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Arrivals> {
    const KINDS: [&str; 5] = ["every", "poisson", "in_flight", "at", "after"];
    let known = [
        "every",
        "poisson",
        "in_flight",
        "at",
        "after",
        "turns",
        "jitter",
        "offset",
        "count",
    ];
    let fields = Fields::of(node, "arrivals", &known)?;
    let senseless = |span: Span, text: String| wrong(&rules::ARRIVALS, span, text);
    let (kind, value) = fields.one_of(&KINDS, &rules::ARRIVALS)?;
    if let (Some(jitter), true) = (fields.get("jitter"), kind != "every") {
        return senseless(
            jitter.span,
            format!("expected `jitter` beside `every`, found it beside `{kind}`"),
        );
    }
    for (key, fits) in [("turns", kind == "after"), ("offset", kind != "after")] {
        if let (Some(node), false) = (fields.get(key), fits) {
            let text = match key {
                "turns" => format!("expected `turns` beside `after`, found it beside `{kind}`"),
                _ => format!("expected no `{key}` beside `after`, found one"),
            };
            return senseless(node.span, text);
        }
    }
    let kind = match kind {
        "after" => after(value, fields.get("turns"), names)?,
        "every" => ArrivalKind::Every {
            period: match time(value, "every")? {
                0 => {
                    return senseless(
                        value.span,
                        "expected a period above zero, found 0".to_owned(),
                    );
                }
                period => period,
            },
            jitter: match fields.get("jitter") {
                Some(node) => time(node, "jitter")?,
                None => 0,
            },
        },
        "poisson" => match value.value.text().map(quantity::rate) {
            Some(Some(rate)) if rate > 0.0 => ArrivalKind::Poisson(rate),
            Some(Some(rate)) => {
                return senseless(
                    value.span,
                    format!("expected a rate above zero, found {rate}/s"),
                );
            }
            _ => {
                let text = format!("expected a rate (40/s), found {}", value.describe());
                return wrong(&rules::TYPE, value.span, text);
            }
        },
        "in_flight" => match value.value {
            Value::Integer(n @ 1..=1_000_000) => ArrivalKind::InFlight(n as u64),
            Value::Integer(n) => {
                return senseless(
                    value.span,
                    format!("expected 1 to 1000000 jobs in flight, found {n}"),
                );
            }
            _ => {
                let text = format!("expected a number of jobs, found {}", value.describe());
                return wrong(&rules::TYPE, value.span, text);
            }
        },
        _ => ArrivalKind::At(recorded(value, open)?),
    };
    let count = match fields.get("count") {
        Some(node) => match node.value {
            Value::Integer(0) => {
                return senseless(
                    node.span,
                    "expected a job at least, found a count of 0".to_owned(),
                );
            }
            _ => Some(integer(node, 1, u64::MAX.into(), "a number of jobs")? as u64),
        },
        None => None,
    };
    Ok(Arrivals {
        kind,
        offset: match fields.get("offset") {
            Some(node) => time(node, "offset")?,
            None => 0,
        },
        count,
    })
}

/// Whether a stream's jobs are followed by jobs of its own again, with nothing that counts them on the way.
pub(super) fn follows_itself(streams: &[Stream], stream: &Stream) -> bool {
    let mut known = vec![false; streams.len()];
    let mut left = vec![stream];
    while let Some(next) = left.pop() {
        let ArrivalKind::After {
            streams: before,
            turns: None,
        } = &next.arrivals.kind
        else {
            continue;
        };
        for at in before
            .iter()
            .copied()
            .filter(|_| next.arrivals.count.is_none())
        {
            if !std::mem::replace(&mut known[at], true) {
                left.push(&streams[at]);
            }
        }
    }
    streams
        .iter()
        .zip(known)
        .any(|(of, known)| known && of.name == stream.name)
}

/// The streams whose jobs are followed: a name, or a list of names.
fn after(node: &Node, turns: Option<&Node>, names: &[String]) -> Read<ArrivalKind> {
    let one = std::slice::from_ref(node);
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => one,
    };
    if items.is_empty() {
        let text = "expected a stream at least, found none";
        return wrong(&rules::ARRIVALS, node.span, text);
    }
    let number = |item: &Node| {
        let given = item.label();
        let known = names.iter().position(|name| *name == given);
        known.map_or_else(
            || {
                let text = format!("expected one of `streams`, found \"{given}\"");
                wrong(&rules::ARRIVALS, item.span, text)
            },
            Ok,
        )
    };
    let mut streams = items.iter().map(number).collect::<Read<Vec<usize>>>()?;
    streams.sort_unstable();
    streams.dedup();
    let turns = match turns {
        Some(node) => Some(integer(node, 1, u64::MAX.into(), "a number of turns")? as u64),
        None => None,
    };
    Ok(ArrivalKind::After { streams, turns })
}

/// The instants of a file: one on each line, seconds where there is no unit, `#` starts a comment.
fn recorded(node: &Node, open: &mut impl FnMut(&str) -> Result<String, String>) -> Read<Vec<u64>> {
    let path = text(node, "the name of a file")?;
    let content = match open(path) {
        Ok(content) => content,
        Err(error) => return wrong(&rules::ARRIVALS, node.span, format!("{path} {error}")),
    };
    let mut times = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let line = line.trim().trim_end_matches(',').trim_end();
        if line.is_empty() {
            continue;
        }
        let Some(time) = quantity::time(line, Some(SECONDS)) else {
            let text = format!(
                "expected a time on line {} of {path}, found \"{line}\"",
                number + 1
            );
            let place = Place::line(number as u32 + 1, 1).in_part(path.to_owned());
            let finding = rules::ARRIVALS.at(node.span.place(), text);
            return Err(Box::new(finding.with(place, "the time")));
        };
        times.push(time);
    }
    times.sort_unstable();
    Ok(times)
}
