//! What a target knows of a run besides what all targets do: named values and groups of them.

use crate::info::{ValueReport, tree};
use crate::style::Paint;
use chipless_model::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

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
        for line in tree(&numbered(fact), paint).lines() {
            out.push_str("  ");
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Value;

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
        assert!(lines.contains("[0]") && lines.contains("[1]"), "{lines}");
        assert_eq!(
            json,
            r#"{"cycles":12,"traffic":{"bytes":7},"cores":[{"core":0},{"core":1}]}"#
        );
    }
}
