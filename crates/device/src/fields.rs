//! Mappings, lists and scalars of a workload file, each mistake with its place.

use crate::quantity;
use crate::rules;
use chipless_model::{Finding, Rule};
use chipless_yaml::{Node, Span, Value};
use std::fmt::Display;

/// What reading ends with: the first mistake.
pub(crate) type Read<T> = Result<T, Box<Finding>>;

pub(crate) fn wrong<T>(rule: &'static Rule, span: Span, message: impl Into<String>) -> Read<T> {
    Err(Box::new(rule.at(span.place(), message)))
}

/// A mapping all of whose keys are known.
pub(crate) struct Fields<'n> {
    pub(crate) span: Span,
    pub(crate) entries: Vec<(&'n str, Span, &'n Node)>,
}

impl<'n> Fields<'n> {
    pub(crate) fn of(node: &'n Node, what: &str, known: &[&str]) -> Read<Fields<'n>> {
        let fields = Fields::any(node, what)?;
        for (key, span, _) in &fields.entries {
            if !known.contains(key) {
                let closest = known
                    .iter()
                    .map(|known| (strsim::osa_distance(key, known), known))
                    .filter(|(distance, _)| *distance <= key.chars().count().max(3) / 2)
                    .min();
                let hint = closest.map_or_else(
                    || format!(" (known: {})", known.join(", ")),
                    |(_, known)| format!("; did you mean \"{known}\"?"),
                );
                let text = format!("expected a field of {what}, found \"{key}\"{hint}");
                return wrong(&rules::FIELD, *span, text);
            }
        }
        Ok(fields)
    }

    /// A mapping with any keys.
    pub(crate) fn any(node: &'n Node, what: &str) -> Read<Fields<'n>> {
        let Value::Map(entries) = &node.value else {
            return other(node, format_args!("a mapping ({what})"));
        };
        let mut found = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = key.value.text() else {
                return other(key, "a name");
            };
            found.push((name, key.span, value));
        }
        Ok(Fields {
            span: node.span,
            entries: found,
        })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        let entry = self.entries.iter().find(|(name, ..)| *name == key)?;
        Some(entry.2)
    }

    /// The one field of several that must be there alone.
    pub(crate) fn one_of<'k>(
        &self,
        kinds: &[&'k str],
        rule: &'static Rule,
    ) -> Read<(&'k str, &'n Node)> {
        let given: Vec<(&str, &Node)> = kinds
            .iter()
            .filter_map(|kind| Some((*kind, self.get(kind)?)))
            .collect();
        if let [one] = given.as_slice() {
            return Ok(*one);
        }
        let found = if given.is_empty() {
            "none".to_owned()
        } else {
            let names: Vec<&str> = given.iter().map(|(kind, _)| *kind).collect();
            names.join(" and ")
        };
        let text = format!(
            "expected exactly one of {}, found {found}",
            kinds.join(", ")
        );
        wrong(rule, self.span, text)
    }

    pub(crate) fn needs(&self, key: &str, what: &str) -> Read<&'n Node> {
        match self.get(key) {
            Some(node) => Ok(node),
            None => wrong(
                &rules::MISSING,
                self.span,
                format!("expected `{key}` in {what}, found none"),
            ),
        }
    }
}

/// What to say where something of another kind stands.
fn other<T>(node: &Node, expected: impl Display) -> Read<T> {
    let text = format!("expected {expected}, found {}", node.describe());
    wrong(&rules::TYPE, node.span, text)
}

pub(crate) fn text<'n>(node: &'n Node, what: &str) -> Read<&'n str> {
    node.value.text().map_or_else(|| other(node, what), Ok)
}

pub(crate) fn list<'n>(node: &'n Node, what: &str) -> Read<&'n [Node]> {
    match &node.value {
        Value::List(items) => Ok(items),
        _ => other(node, format_args!("a list of {what}")),
    }
}

pub(crate) fn integer(node: &Node, low: i128, high: i128, what: &str) -> Read<i128> {
    match node.value {
        Value::Integer(value) if (low..=high).contains(&value) => Ok(value),
        _ => other(node, what),
    }
}

pub(crate) fn flag(node: &Node, what: &str) -> Read<bool> {
    match node.value {
        Value::Bool(value) => Ok(value),
        _ => other(node, format_args!("true or false for {what}")),
    }
}

pub(crate) fn time(node: &Node, what: &str) -> Read<u64> {
    let text = node.value.text();
    let value = text.and_then(|text| quantity::time(text, None));
    let expected = format_args!("a time for {what} (a number with ps, ns, us, ms or s)");
    value.map_or_else(|| other(node, expected), Ok)
}

pub(crate) fn size(node: &Node, what: &str) -> Read<u64> {
    let value = match &node.value {
        Value::Integer(value) => u64::try_from(*value).ok(),
        Value::Text(text) => quantity::size(text),
        _ => None,
    };
    let units = "bytes, or a number with B, KiB, MiB, GiB, kB, MB or GB";
    let expected = format_args!("a size for {what} ({units})");
    value.map_or_else(|| other(node, expected), Ok)
}

/// Bytes a second, none of them as well.
pub(crate) fn rate(node: &Node) -> Read<f64> {
    let label = node.label();
    match quantity::real(&label, quantity::BANDWIDTHS) {
        Some(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => other(node, "a bandwidth (40GB/s)"),
    }
}

/// A scalar as it would stand behind `KEY=`.
pub(crate) fn scalar(node: &Node) -> Read<String> {
    match &node.value {
        Value::List(_) | Value::Map(_) | Value::Null => wrong(
            &rules::FIGURE,
            node.span,
            format!("expected a value, found {}", node.describe()),
        ),
        _ => Ok(node.label()),
    }
}
