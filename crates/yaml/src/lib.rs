//! YAML as PyYAML's safe loader understands it, with the place of every node.
//!
//! IOSpecs are written and read by Python programs, so plain scalars resolve by YAML 1.1: `on` is a boolean, `010` is
//! eight, `1e-5` is text. The events come from `granit-parser`; this module makes them a tree, resolves scalars, expands
//! aliases and merge keys within a budget, and prints a tree again.
//!
//! A tree owns its text. [`Node`]s know line and column (from 1) and the byte range that they take in the source.

mod comments;
mod read;
mod scalar;
mod write;

pub use comments::Comments;
pub use read::{Budget, Error, Tree, read};
pub use write::{write, write_with};

use chipless_model::Place;
use std::fmt;

/// Where something stands in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Line, from 1; 0 where there is no text (a document that was made, not read).
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

impl Span {
    /// As a place of a finding.
    pub fn place(self) -> Place {
        if self.line == 0 {
            return Place::file();
        }
        Place {
            position: Some((self.line, self.column)),
            ..Place::bytes(self.offset, self.size)
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A value and its place. Two nodes are equal when their values are, wherever they stand.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

/// What a node is, after resolution by YAML 1.1.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~`, nothing.
    Null,
    /// `true`, `on`, `yes` and their opposites.
    Bool(bool),
    /// Decimal, octal (`010`), hexadecimal, binary, base 60 (`1:30`).
    Integer(i128),
    /// With a point; `.inf`, `.nan`.
    Float(f64),
    /// Everything else, and whatever is quoted.
    Text(String),
    /// What no IOSpec makes use of: a `timestamp` or `binary` data, by the name of its tag, and its text.
    Opaque(&'static str, String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in the order of the file. Keys differ: of equal ones the last counts, at the place of the first.
    Map(Vec<(Node, Node)>),
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl Value {
    /// What people call it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing (null)",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a real number",
            Value::Text(_) => "text",
            Value::Opaque(..) => "a date or binary data",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// Its text, for text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Node {
        Node {
            value,
            span: Span::default(),
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Node {
        Value::Text(text.to_owned()).into()
    }
}

impl From<i64> for Node {
    fn from(value: i64) -> Node {
        Value::Integer(value.into()).into()
    }
}

impl Node {
    /// A mapping with text keys.
    pub fn map<'k>(entries: impl IntoIterator<Item = (&'k str, Node)>) -> Node {
        Value::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
        .into()
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Node>) -> Node {
        Value::List(items.into_iter().collect()).into()
    }

    /// The value of a text key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        entries
            .iter()
            .find(|(k, _)| k.value.text() == Some(key))
            .map(|(_, value)| value)
    }

    /// What it is, with a scalar's value: for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("text \"{}\"", shortened(text)),
            Value::Integer(_) | Value::Float(_) | Value::Bool(_) => {
                format!("{} ({})", self.value.kind(), self.label())
            }
            other => other.kind().to_owned(),
        }
    }

    /// A scalar as text, as it would be printed without quotes; collections by their kind.
    pub fn label(&self) -> String {
        match &self.value {
            Value::Text(text) | Value::Opaque(_, text) => text.clone(),
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => scalar::print_float(*value),
            Value::Bool(value) => value.to_string(),
            Value::Null => "null".to_owned(),
            other => other.kind().to_owned(),
        }
    }
}

/// The beginning of a text, for messages.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() <= SHOWN {
        text.to_owned()
    } else {
        text.chars().take(SHOWN).chain(['…']).collect()
    }
}
