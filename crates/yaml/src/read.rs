//! From text to a tree.

use super::scalar::{self, Unresolved};
use super::{Node, Span, Value, shortened};
use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use std::collections::HashMap;

/// What a text may make of memory and stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Nodes of the tree, those that aliases stand for counted each time.
    pub nodes: u64,
    /// Collections within collections.
    pub depth: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            nodes: 1_000_000,
            depth: 64,
        }
    }
}

/// A document and what its keys were.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The root; `None` for an empty text.
    pub root: Option<Node>,
    /// Keys that stood twice in one mapping: which, where first, where again.
    pub duplicates: Vec<(String, Span, Span)>,
}

/// Why a text is no tree: where and what.
pub type Error = (Span, String);

/// Reads a text of one document.
///
/// # Errors
/// What is wrong and where: the syntax, a second document, an unknown alias or tag, a key that is a collection, or more
/// nodes or depth than the budget.
pub fn read(source: &str, budget: Budget) -> Result<Tree, Error> {
    let mut builder = Builder {
        budget,
        left: budget.nodes,
        open: Vec::new(),
        anchors: HashMap::new(),
        duplicates: Vec::new(),
        root: None,
    };
    let options = granit_parser::options! { flow_nesting_limit: budget.depth + 1, block_nesting_limit: budget.depth + 1 };
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(source, options) {
        let (event, span) = match event {
            Ok((event, span)) => (event, of_markers(span.start, span.end)),
            Err(error) => {
                let at = *error.marker();
                return Err((
                    of_markers(at, at),
                    format!("expected YAML: {}", error.info()),
                ));
            }
        };
        match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err((span, "expected one document, found a second one".to_owned()));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let span = trimmed(span, source);
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let merges = plain && text == "<<" && builder.awaits_key();
                // As keys, the marks of YAML 1.1 for merging and for a default are what they look like.
                let value = if merges || plain && text == "=" && builder.awaits_key() {
                    Value::Text(text.into_owned())
                } else {
                    scalar_value(&text, style, tag.as_deref()).map_err(|message| (span, message))?
                };
                builder.node(Node { value, span }, anchor, merges)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                builder.open(Value::List(Vec::new()), span, anchor, tag.as_deref(), "seq")?;
            }
            Event::MappingStart(_, anchor, tag) => {
                builder.open(Value::Map(Vec::new()), span, anchor, tag.as_deref(), "map")?;
            }
            Event::SequenceEnd | Event::MappingEnd => builder.close(span)?,
            Event::Alias(anchor) => builder.alias(anchor, span)?,
            _ => {}
        }
    }
    Ok(Tree {
        root: builder.root,
        duplicates: builder.duplicates,
    })
}

/// A scalar's span without the white space that follows it.
fn trimmed(span: Span, source: &str) -> Span {
    let range = span.offset as usize..(span.offset + span.size) as usize;
    let size = source
        .get(range)
        .map_or(span.size, |text| text.trim_end().len() as u64);
    Span { size, ..span }
}

fn of_markers(start: Marker, end: Marker) -> Span {
    let offset = start.byte_offset().unwrap_or(start.index()) as u64;
    let until = end.byte_offset().unwrap_or(end.index()) as u64;
    Span {
        line: start.line() as u32,
        column: start.col() as u32 + 1,
        offset,
        size: until.saturating_sub(offset),
    }
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let mismatch = |name: &str| {
        format!(
            "expected a value of the tag !!{name}, found \"{}\"",
            shortened(text)
        )
    };
    let unresolved =
        |why: Unresolved| format!("expected {}, found {}", why.expected(), shortened(text));
    let resolved = || scalar::resolve(text).map_err(unresolved);
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain {
            resolved()
        } else {
            Ok(Value::Text(text.to_owned()))
        };
    };
    match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
        Some("str") => Ok(Value::Text(text.to_owned())),
        Some("int") => scalar::integer(text)
            .ok_or_else(|| mismatch("int"))?
            .map(Value::Integer)
            .map_err(unresolved),
        Some("binary") => Ok(Value::Opaque("binary", text.to_owned())),
        Some("timestamp") => match scalar::resolve(text) {
            Ok(value @ Value::Opaque("timestamp", _)) => Ok(value),
            _ => Err(mismatch("timestamp")),
        },
        Some("float") => {
            let whole = || scalar::integer(text).and_then(Result::ok).map(|v| v as f64);
            scalar::float(text)
                .or_else(whole)
                .map(Value::Float)
                .ok_or_else(|| mismatch("float"))
        }
        Some(name @ ("bool" | "null")) => match resolved()? {
            value @ Value::Bool(_) if name == "bool" => Ok(value),
            value @ Value::Null if name == "null" => Ok(value),
            _ => Err(mismatch(name)),
        },
        _ if tag.handle().is_empty() && tag.suffix() == "!" => Ok(Value::Text(text.to_owned())),
        _ => Err(format!(
            "expected plain data, found the tag {}",
            tag.original()
        )),
    }
}

/// A collection whose end has not come.
struct Open {
    node: Node,
    anchor: usize,
    /// A key that waits for its value.
    key: Option<Node>,
    /// Whether that key is a merge key.
    merges: bool,
    /// What merge keys bring: later ones count, and whatever the mapping says itself counts more.
    merged: Vec<(Node, Node)>,
    /// Where each key of a mapping stands in it.
    keys: HashMap<String, usize>,
    /// Collections at the deepest place inside.
    height: usize,
    /// Nodes inside, itself counted.
    nodes: u64,
}

/// A node that aliases may repeat.
struct Anchored {
    node: Node,
    height: usize,
    nodes: u64,
}

struct Builder {
    budget: Budget,
    left: u64,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    duplicates: Vec<(String, Span, Span)>,
    root: Option<Node>,
}

impl Builder {
    fn spend(&mut self, nodes: u64, span: Span) -> Result<(), Error> {
        self.left = self.left.checked_sub(nodes).ok_or_else(|| {
            (
                span,
                format!(
                    "expected at most {} values, aliases counted each time, found more",
                    self.budget.nodes
                ),
            )
        })?;
        Ok(())
    }

    fn node(&mut self, node: Node, anchor: usize, merges: bool) -> Result<(), Error> {
        self.spend(1, node.span)?;
        if let Some(open) = self.open.last_mut().filter(|open| open.key.is_none()) {
            open.merges = merges;
        }
        if anchor != 0 {
            self.anchors.insert(
                anchor,
                Anchored {
                    node: node.clone(),
                    height: 0,
                    nodes: 1,
                },
            );
        }
        self.add(node, 0, 1)
    }

    /// Whether the next node is a key of a mapping.
    fn awaits_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.key.is_none() && matches!(open.node.value, Value::Map(_)))
    }

    fn open(
        &mut self,
        value: Value,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        natural: &str,
    ) -> Result<(), Error> {
        self.spend(1, span)?;
        if let Some(tag) = tag.filter(|t| t.core_suffix() != Some(natural)) {
            return Err((
                span,
                format!("expected plain data, found the tag {}", tag.original()),
            ));
        }
        self.check_depth(self.open.len() + 1, span)?;
        self.open.push(Open {
            node: Node { value, span },
            anchor,
            key: None,
            merges: false,
            merged: Vec::new(),
            keys: HashMap::new(),
            height: 0,
            nodes: 1,
        });
        Ok(())
    }

    fn check_depth(&self, depth: usize, span: Span) -> Result<(), Error> {
        if depth > self.budget.depth {
            return Err((
                span,
                format!(
                    "expected collections at most {} deep, found deeper ones",
                    self.budget.depth
                ),
            ));
        }
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), Error> {
        let Some(mut open) = self.open.pop() else {
            return Ok(());
        };
        if let (false, Value::Map(own)) = (open.merged.is_empty(), &mut open.node.value) {
            let said = std::mem::take(own);
            *own = overlaid(std::mem::take(&mut open.merged).into_iter().chain(said));
        }
        open.node.span.size = (end.offset + end.size).saturating_sub(open.node.span.offset);
        let height = open.height + 1;
        if open.anchor != 0 {
            // A copy for the aliases to come: paid for, so that anchors around anchors cannot multiply it.
            self.spend(open.nodes, open.node.span)?;
            self.anchors.insert(
                open.anchor,
                Anchored {
                    node: open.node.clone(),
                    height,
                    nodes: open.nodes,
                },
            );
        }
        self.add(open.node, height, open.nodes)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Error> {
        let Some((nodes, height)) = self.anchors.get(&anchor).map(|a| (a.nodes, a.height)) else {
            return Err((
                span,
                "expected an anchor that has ended before its alias".to_owned(),
            ));
        };
        self.check_depth(self.open.len() + height, span)?;
        self.spend(nodes, span)?;
        let Some(node) = self.anchors.get(&anchor).map(|a| Node {
            value: a.node.value.clone(),
            span,
        }) else {
            return Ok(());
        };
        self.add(node, height, nodes)
    }

    /// Puts a finished node where it belongs.
    fn add(&mut self, node: Node, height: usize, nodes: u64) -> Result<(), Error> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.height = open.height.max(height);
        open.nodes += nodes;
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                None if matches!(node.value, Value::List(_) | Value::Map(_)) => {
                    return Err((
                        node.span,
                        format!("expected a scalar as key, found {}", node.value.kind()),
                    ));
                }
                None => open.key = Some(node),
                Some(_) if open.merges => merge(&mut open.merged, node)?,
                Some(key) => {
                    // Keys are equal when they are written equally: 1 and "1" differ.
                    let name = format!("{:?}", key.value);
                    if let Some(first) = open
                        .keys
                        .get(&name)
                        .and_then(|index| entries.get_mut(*index))
                    {
                        self.duplicates.push((key.label(), first.0.span, key.span));
                        *first = (key, node);
                    } else {
                        open.keys.insert(name, entries.len());
                        entries.push((key, node));
                    }
                }
            },
            _ => {}
        }
        Ok(())
    }
}

/// A merge key: the entries of another mapping, or of several, of which the first counts most.
fn merge(merged: &mut Vec<(Node, Node)>, node: Node) -> Result<(), Error> {
    let sources = match node.value {
        Value::Map(_) => vec![node],
        Value::List(items) => items,
        ref other => {
            return Err((
                node.span,
                format!("expected a mapping to merge, found {}", other.kind()),
            ));
        }
    };
    for source in sources.into_iter().rev() {
        match source.value {
            Value::Map(entries) => merged.extend(entries),
            other => {
                return Err((
                    source.span,
                    format!("expected a mapping to merge, found {}", other.kind()),
                ));
            }
        }
    }
    Ok(())
}

/// Entries of which later ones count, at the place of the first of their key.
fn overlaid(entries: impl Iterator<Item = (Node, Node)>) -> Vec<(Node, Node)> {
    let mut all: indexmap::IndexMap<String, (Node, Node)> = indexmap::IndexMap::new();
    for (key, value) in entries {
        all.insert(format!("{:?}", key.value), (key, value));
    }
    all.into_values().collect()
}
