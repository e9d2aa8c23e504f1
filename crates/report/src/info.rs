//! What a file is: `chipless info`, for people and as JSON, and the tree of its own structures.

use crate::SCHEMA_VERSION;
use crate::bars::widest;
use crate::statistics::number;
use crate::style::{Paint, bytes, clean, shape};
use chipless_model::{Info, Node, TensorInfo, Time, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A file at a glance, for people.
pub fn text(file: &str, size: u64, info: &Info, paint: Paint) -> String {
    let mut out = String::new();
    let name = if info.name.is_empty() {
        String::new()
    } else {
        format!(" {}", clean(&info.name))
    };
    let _ = writeln!(
        out,
        "{}: {} program{name}, {}",
        paint.strong(file),
        info.target,
        bytes(size)
    );
    let facts = [
        ("platform", &info.platform),
        ("format version", &info.format_version),
    ];
    let rows: Vec<(&str, String)> = facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, clean(value).into_owned()))
        .chain(
            info.facts
                .iter()
                .map(|(name, value)| (name.as_str(), value_text(value))),
        )
        .collect();
    columns(&mut out, &rows);
    for (title, tensors) in [("inputs", &info.inputs), ("outputs", &info.outputs)] {
        if tensors.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", paint.strong(title));
        let names = widest(tensors.iter().map(|t| &*t.name));
        let types = widest(tensors.iter().map(|t| &*t.dtype));
        for TensorInfo {
            name,
            dtype,
            shape: dimensions,
            facts,
            ..
        } in tensors
        {
            let _ = write!(
                out,
                "  {:names$}  {:types$}  {}",
                clean(name),
                clean(dtype),
                shape(dimensions)
            );
            for (i, (name, value)) in facts.iter().enumerate() {
                let gap = if i == 0 { "  " } else { ", " };
                // Scales are exact: rounded, they would be other ones.
                let value = match value {
                    Value::Number(n) => n.to_string(),
                    other => value_text(other),
                };
                let _ = write!(out, "{gap}{name} {value}");
            }
            out.push('\n');
        }
    }
    if !info.counts.is_empty() {
        let _ = writeln!(out, "\n{}", paint.strong("counts"));
        let digits = info
            .counts
            .iter()
            .map(|(_, n)| n.to_string().len())
            .max()
            .unwrap_or(0);
        let rows: Vec<(&str, String)> = info
            .counts
            .iter()
            .map(|(name, n)| {
                let label = info.labels.iter().find(|(known, _)| known == name);
                let label = label.map_or(name.as_str(), |(_, label)| label);
                (label, format!("{n:>digits$}"))
            })
            .collect();
        columns(&mut out, &rows);
    }
    out
}

fn columns(out: &mut String, rows: &[(&str, String)]) {
    let width = widest(rows.iter().map(|(name, _)| *name));
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:width$}  {value}");
    }
}

/// The file's own structures as a tree, one line each: name, value, offset in the file.
pub fn tree(root: &Node, paint: Paint) -> String {
    let mut out = String::new();
    line(&mut out, root, paint);
    branches(&mut out, root, paint, &mut String::new());
    out
}

fn branches(out: &mut String, node: &Node, paint: Paint, indent: &mut String) {
    let width = widest(
        node.children
            .iter()
            .filter(|c| c.value.is_some())
            .map(label),
    );
    for (i, child) in node.children.iter().enumerate() {
        let last = i + 1 == node.children.len();
        let _ = write!(
            out,
            "{}",
            paint.dim(format_args!("{indent}{}", if last { "└─ " } else { "├─ " }))
        );
        line_padded(out, child, paint, width);
        let length = indent.len();
        indent.push_str(if last { "   " } else { "│  " });
        branches(out, child, paint, indent);
        indent.truncate(length);
    }
}

/// The name of a part. A time has its unit beside it, so that its name needs none.
fn label(node: &Node) -> &str {
    match node.value {
        Some(Value::Number(_)) => node.name.strip_suffix("_ns").unwrap_or(&node.name),
        _ => &node.name,
    }
}

fn line(out: &mut String, node: &Node, paint: Paint) {
    line_padded(out, node, paint, 0);
}

fn line_padded(out: &mut String, node: &Node, paint: Paint, width: usize) {
    match &node.value {
        Some(value) => {
            let text = match value {
                Value::Number(ns) if node.name.ends_with("_ns") => Time::from_ns(*ns).to_string(),
                value => value_text(value),
            };
            let _ = write!(out, "{:width$}  {text}", clean(label(node)));
        }
        None => {
            let _ = write!(out, "{}", paint.strong(clean(&node.name)));
        }
    }
    if let Some(offset) = node.offset {
        let _ = write!(out, "  {}", paint.dim(format_args!("@{offset:#x}")));
    }
    out.push('\n');
}

pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Text(text) => clean(text).into_owned(),
        Value::Integer(n) => n.to_string(),
        Value::Bits(bits) => format!("{bits:#x}"),
        Value::Number(n) => number(*n),
    }
}

/// The answer to `info --format json` for one file.
#[derive(Debug, JsonSchema, Serialize)]
pub struct InfoReport<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The file as the user named it.
    pub file: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// Name of the target.
    pub target: &'a str,
    /// The hardware that the program is for.
    pub platform: &'a str,
    /// Version of the file format.
    pub format_version: &'a str,
    /// The program's own name for itself; empty where it has none.
    pub name: &'a str,
    /// What the host gives.
    pub inputs: Vec<TensorReport<'a>>,
    /// What the host gets.
    pub outputs: Vec<TensorReport<'a>>,
    /// An object: how many of what.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub counts: Pairs<'a, u64>,
    /// An object: everything else, as strings and numbers.
    #[schemars(with = "BTreeMap<String, ValueReport<'_>>")]
    pub facts: Pairs<'a, Value>,
    /// The file's own structures, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<NodeReport<'a>>,
}

impl<'a> InfoReport<'a> {
    /// The report about one file.
    pub fn new(file: &'a str, size: u64, info: &'a Info, raw: Option<&'a Node>) -> InfoReport<'a> {
        InfoReport {
            schema_version: SCHEMA_VERSION,
            file,
            size,
            target: info.target,
            platform: &info.platform,
            format_version: &info.format_version,
            name: &info.name,
            inputs: info.inputs.iter().map(TensorReport::from).collect(),
            outputs: info.outputs.iter().map(TensorReport::from).collect(),
            counts: Pairs(&info.counts),
            facts: Pairs(&info.facts),
            raw: raw.map(NodeReport::from),
        }
    }
}

/// A tensor of the interface.
#[derive(Debug, JsonSchema, Serialize)]
pub struct TensorReport<'a> {
    /// Its name, as `--input NAME=FILE` takes it.
    pub name: &'a str,
    /// Its element type, as the target names it.
    pub dtype: &'a str,
    /// Dimensions, outermost first.
    pub shape: &'a [u64],
    /// What else the file says of it, entries beside the others.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, ValueReport<'_>>")]
    pub facts: Pairs<'a, Value>,
}

impl<'a> From<&'a TensorInfo> for TensorReport<'a> {
    fn from(tensor: &'a TensorInfo) -> TensorReport<'a> {
        TensorReport {
            name: &tensor.name,
            dtype: &tensor.dtype,
            shape: &tensor.shape,
            facts: Pairs(&tensor.facts),
        }
    }
}

/// Names with values, as an object in their order.
#[derive(Debug)]
pub struct Pairs<'a, T>(&'a [(String, T)]);

impl Serialize for Pairs<'_, u64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, n)| (name, n)))
    }
}

impl Serialize for Pairs<'_, Value> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|(name, value)| (name, ValueReport(value))),
        )
    }
}

/// Text is a string; integers, bits and quantities are numbers.
#[derive(Debug)]
pub(crate) struct ValueReport<'a>(pub(crate) &'a Value);

impl Serialize for ValueReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Integer(n) => serializer.serialize_i128(*n),
            Value::Bits(bits) => serializer.serialize_u64(*bits),
            Value::Number(n) => serializer.serialize_f64(*n),
        }
    }
}

impl JsonSchema for ValueReport<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A structure of the file.
#[derive(Debug, JsonSchema, Serialize)]
pub struct NodeReport<'a> {
    /// The format's name for it.
    name: &'a str,
    /// Its value, where it has no parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<ValueReport<'a>>,
    /// Its place in the file, where it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// Its parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<NodeReport<'a>>,
}

impl<'a> From<&'a Node> for NodeReport<'a> {
    fn from(node: &'a Node) -> NodeReport<'a> {
        NodeReport {
            name: &node.name,
            value: node.value.as_ref().map(ValueReport),
            offset: node.offset,
            children: node.children.iter().map(NodeReport::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::ElementType;

    fn info() -> Info {
        let tensor = |name: &str, element: ElementType, shape: &[u64]| TensorInfo {
            name: name.into(),
            element,
            dtype: element.name().into(),
            shape: shape.to_vec(),
            facts: Vec::new(),
        };
        Info {
            labels: Vec::new(),
            target: "npu",
            platform: "NPU4000".into(),
            format_version: "11.4.10".into(),
            name: "conv1x1".into(),
            inputs: vec![
                tensor("x", ElementType::Float16, &[1, 16, 16, 16]),
                tensor("scale", ElementType::Int32, &[]),
            ],
            outputs: vec![tensor("conv_1", ElementType::BFloat16, &[1, 32, 16, 16])],
            counts: vec![("barriers".into(), 5), ("dma".into(), 121)],
            facts: vec![
                ("compiler".into(), Value::Text("8.4\u{1b}[2J".into())),
                ("scratch bytes".into(), Value::Integer(-1)),
                ("flags".into(), Value::Bits(0x1f)),
                ("estimate µs".into(), Value::Number(9.68)),
            ],
        }
    }

    fn raw() -> Node {
        let leaf = |name: &str, value, offset| Node {
            name: name.into(),
            value: Some(value),
            offset,
            ..Node::default()
        };
        Node {
            name: "file".into(),
            children: vec![
                Node {
                    name: "task.dma.0.0".into(),
                    offset: Some(0x8200),
                    children: vec![
                        leaf("link_address", Value::Bits(0), Some(0x8200)),
                        leaf("len", Value::Integer(64), None),
                    ],
                    ..Node::default()
                },
                Node {
                    name: "trailer".into(),
                    ..Node::default()
                },
            ],
            ..Node::default()
        }
    }

    #[test]
    fn a_file_at_a_glance() {
        insta::assert_snapshot!(text("model.blob", 45185, &info(), Paint::PLAIN));
    }

    #[test]
    fn raw_structures_are_a_tree() {
        insta::assert_snapshot!(tree(&raw(), Paint::PLAIN));
    }

    #[test]
    fn json_keeps_order_and_types() {
        let (info, raw) = (info(), raw());
        insta::assert_snapshot!(
            serde_json::to_string_pretty(&InfoReport::new("model.blob", 45185, &info, Some(&raw)))
                .unwrap()
        );
    }
}
