//! What a target knows of a run besides what all targets do: named values and groups of them.

use crate::bars::widest;
use crate::info::{ValueReport, tree, value_text};
use crate::style::{Paint, clean, count};
use chipless_model::{Node, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Write;

/// Facts as JSON: a name with a value is an entry, a name with parts an object, and where the parts have no names an array.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a>(pub &'a [Node]);

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for node in self.0 {
            map.serialize_entry(&node.name, &Fact(node))?;
        }
        map.end()
    }
}

impl JsonSchema for Facts<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Facts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": true })
    }
}

struct Fact<'a>(&'a Node);

impl Serialize for Fact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.value {
            Some(value) => ValueReport(value).serialize(serializer),
            None if self.0.children.first().is_some_and(|c| c.name.is_empty()) => {
                serializer.collect_seq(self.0.children.iter().map(Fact))
            }
            None => Facts(&self.0.children).serialize(serializer),
        }
    }
}

/// The same with numbers for parts that have no names.
fn numbered(node: &Node) -> Node {
    let name = |index: usize, part: Node| {
        if part.name.is_empty() {
            Node {
                name: format!("[{index}]"),
                ..part
            }
        } else {
            part
        }
    };
    let children = node
        .children
        .iter()
        .map(numbered)
        .enumerate()
        .map(|(index, part)| name(index, part))
        .collect();
    Node {
        name: node.name.clone(),
        value: node.value.clone(),
        offset: node.offset,
        children,
    }
}

/// Facts as lines of text.
pub(crate) fn text(facts: &[Node], paint: Paint) -> String {
    let mut out = String::new();
    for fact in facts {
        let lines = match columns(fact) {
            Some(columns) => table(fact, &columns, paint),
            None => tree(&numbered(fact), paint),
        };
        for line in lines.lines() {
            out.push_str("  ");
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Rows of a table that are shown.
const ROWS: usize = 16;

/// The names of a table's columns: parts without names that have the same values each.
fn columns(fact: &Node) -> Option<Vec<&str>> {
    let names = |row: &'_ Node| -> Vec<String> {
        row.children
            .iter()
            .map(|value| value.name.clone())
            .collect()
    };
    let first = fact.children.first().filter(|_| fact.children.len() > 1)?;
    let expected = names(first);
    let is_row = |row: &Node| {
        row.name.is_empty()
            && names(row) == expected
            && row.children.iter().all(|value| value.value.is_some())
    };
    let is_table = !expected.is_empty() && fact.children.iter().all(is_row);
    is_table.then(|| first.children.iter().map(|value| &*value.name).collect())
}

/// The rows of a table in the order in which people read them: where each is a name with whole numbers, those with the largest sum first, and none
/// of zeros.
fn sorted(fact: &Node) -> Vec<&Node> {
    let sum = |row: &Node| -> Option<i128> {
        let (name, numbers) = row.children.split_first()?;
        let numbers = numbers.iter().map(|number| match number.value {
            Some(Value::Integer(number)) => Some(number),
            _ => None,
        });
        matches!(name.value, Some(Value::Text(_)))
            .then(|| numbers.sum())
            .flatten()
    };
    let sums: Option<Vec<(i128, &Node)>> = (fact.children.iter())
        .map(|row| Some((sum(row)?, row)))
        .collect();
    let Some(mut rows) = sums else {
        return fact.children.iter().collect();
    };
    rows.retain(|(sum, _)| *sum != 0);
    rows.sort_by_key(|(sum, _)| std::cmp::Reverse(*sum));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// A row in a line.
fn table(fact: &Node, columns: &[&str], paint: Paint) -> String {
    let cell = |node: &Node| node.value.as_ref().map_or_else(String::new, value_text);
    let all = sorted(fact);
    let shown = &all[..all.len().min(ROWS)];
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| row.children.iter().map(cell).collect())
        .collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| &*row[at]);
        widest(cells.chain([columns[at]]))
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    // Numbers stand under each other; a text in the first column is a name.
    let line = |cells: Vec<&str>| {
        let padded = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, width))| {
                if at == 0 {
                    format!("{:width$}", clean(cell))
                } else {
                    format!("{:>width$}", clean(cell))
                }
            });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut out = format!("{}\n", paint.strong(clean(&fact.name)));
    let _ = writeln!(out, "  {}", paint.dim(line(columns.to_vec())));
    for row in &rows {
        let _ = writeln!(out, "  {}", line(row.iter().map(String::as_str).collect()));
    }
    let rest = all.len() - shown.len();
    if rest > 0 {
        let text = format!("{} not shown: --json has all", count(rest, "more row"));
        let _ = writeln!(out, "  {}", paint.dim(text));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_entries_and_lists_arrays() {
        let leaf = |name: &str, n| Node {
            name: name.into(),
            value: Some(Value::Integer(n)),
            ..Node::default()
        };
        let group = |name: &str, children| Node {
            name: name.into(),
            children,
            ..Node::default()
        };
        let facts = [
            leaf("cycles", 12),
            group("traffic", vec![leaf("bytes", 7)]),
            group(
                "cores",
                vec![
                    group("", vec![leaf("core", 0)]),
                    group("", vec![leaf("core", 1)]),
                ],
            ),
        ];
        let json = serde_json::to_string(&Facts(&facts)).expect("plain values");
        let lines = text(&facts[2..], Paint::PLAIN);
        assert_eq!(lines, "  cores\n    core\n    0\n    1\n");
        assert_eq!(
            json,
            r#"{"cycles":12,"traffic":{"bytes":7},"cores":[{"core":0},{"core":1}]}"#
        );
        let named = |name: &str, n| {
            let name_of = Node {
                name: "layer".into(),
                value: Some(Value::Text(name.into())),
                ..Node::default()
            };
            group("", vec![name_of, leaf("late", n)])
        };
        let rows = vec![named("a", 0), named("b", 3), named("c", 40)];
        let lines = text(&[group("stalls", rows)], Paint::PLAIN);
        assert_eq!(
            lines,
            "  stalls\n    layer  late\n    c        40\n    b         3\n"
        );
    }
}
