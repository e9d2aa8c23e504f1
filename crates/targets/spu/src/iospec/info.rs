//! What an IOSpec is at a glance, and its tree.

use super::document::{Document, SequenceKind, Vector};
use crate::yaml;
use chipless_model::{Info, Node, TensorInfo, Value};

/// The file at a glance.
pub fn info(document: &Document) -> Info {
    let text = |name: &str, value: String| (name.to_owned(), Value::Text(value));
    let complex = document
        .sequences
        .iter()
        .filter(|s| s.kind == SequenceKind::Complex)
        .count();
    let unlatched = document.unlatched();
    let latched: Vec<&str> = document
        .inputs
        .iter()
        .filter(|v| !unlatched.contains(&*v.key))
        .map(|v| &*v.varname)
        .collect();
    let mut facts = vec![text("stage", document.stage().name().to_owned())];
    for (id, sequence) in document.sequences.iter().enumerate() {
        let members = |members: &[super::Member]| {
            let one = |m: &super::Member| {
                if (m.count - 1.0).abs() < f64::EPSILON {
                    m.key.clone()
                } else {
                    format!("{} × {}", m.key, m.count)
                }
            };
            members.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let name = match sequence.kind {
            SequenceKind::Simple => format!("sequence {id}"),
            SequenceKind::Complex => "complex sequence".to_owned(),
        };
        facts.push((
            name,
            Value::Text(format!(
                "{}: ({}) → ({})",
                sequence.name,
                members(&sequence.inputs),
                members(&sequence.outputs)
            )),
        ));
    }
    if !latched.is_empty() {
        facts.push(text("latched", latched.join(", ")));
    }
    Info {
        labels: Vec::new(),
        target: "spu",
        platform: "Femtosense SPU".to_owned(),
        format_version: "IOSpec".to_owned(),
        name: String::new(),
        inputs: document.inputs.iter().map(tensor).collect(),
        outputs: document.outputs.iter().map(tensor).collect(),
        counts: vec![
            ("inputs".to_owned(), document.inputs.len() as u64),
            ("outputs".to_owned(), document.outputs.len() as u64),
            ("sequences".to_owned(), document.sequences.len() as u64),
            ("complex_sequences".to_owned(), complex as u64),
            ("latched_inputs".to_owned(), latched.len() as u64),
        ],
        facts,
    }
}

fn tensor(vector: &Vector) -> TensorInfo {
    let integers = [
        ("padded_length", vector.padded_length),
        ("length_64b_words", vector.words),
        ("core_id", vector.core_id),
        ("pc", vector.pc),
        ("mailbox_id", vector.mailbox_id),
    ];
    let mut facts: Vec<(String, Value)> = integers
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::Integer(value?.into()))))
        .collect();
    if let Some(quantization) = vector.quantization {
        let quantities = [
            ("scale", quantization.scale),
            ("zero_pt", quantization.zero_point),
        ];
        facts.extend(quantities.map(|(name, value)| (name.to_owned(), Value::Number(value))));
    }
    TensorInfo {
        name: vector.varname.clone(),
        element: vector.element(),
        dtype: format!("int{}", vector.precision),
        shape: vec![u64::try_from(vector.length).unwrap_or_default()],
        facts,
    }
}

/// Everything that the file says.
pub fn raw(document: &Document) -> Node {
    tree("iospec".to_owned(), &document.root)
}

/// The reader has bounded the depth.
fn tree(name: String, node: &yaml::Node) -> Node {
    let offset = (node.span.line > 0).then_some(node.span.offset);
    let value = match &node.value {
        yaml::Value::Map(_) | yaml::Value::List(_) => None,
        yaml::Value::Integer(value) => Some(Value::Integer(*value)),
        yaml::Value::Float(value) => Some(Value::Number(*value)),
        _ => Some(Value::Text(node.label())),
    };
    let children = match &node.value {
        yaml::Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| tree(key.label(), value))
            .collect(),
        yaml::Value::List(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| tree(index.to_string(), item))
            .collect(),
        _ => Vec::new(),
    };
    Node {
        name,
        value,
        offset,
        children,
    }
}
