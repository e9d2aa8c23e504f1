//! Fabrics changed and compared without a text editor.

use super::Adg;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A change of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A link from one element to another, behind the links that both have.
    AddLink(String, String),
    /// An element, with its links.
    Remove(String),
    /// A field of an element, named as in the file.
    Set(String, String, String),
}

/// Applies changes, in their order, to a fabric in the generator's form.
///
/// # Errors
/// The change that names what is not there.
pub fn apply(file: &mut Value, changes: &[Change]) -> Result<(), String> {
    for change in changes {
        match change {
            Change::AddLink(from, to) => {
                for name in [from, to] {
                    element(file, name)?;
                }
                let edges = edges(file)?;
                let count = |edges: &[Value], side: &str, name: &str| {
                    edges.iter().filter(|edge| end(edge, side) == *name).count()
                };
                let (out, into) = (count(edges, "Source", from), count(edges, "Sink", to));
                let mut edge = Map::new();
                for (side, name, index) in [("Source", from, out), ("Sink", to, into)] {
                    let (kind, number) = name.rsplit_once('.').unwrap_or((name, "0"));
                    edge.insert(format!("{side}NodeType"), kind.into());
                    edge.insert(
                        format!("{side}NodeId"),
                        number.parse::<u32>().unwrap_or(0).into(),
                    );
                    edge.insert(format!("{side}Index"), index.into());
                }
                edges.push(Value::Object(edge));
            }
            Change::Remove(name) => {
                element(file, name)?;
                let edges = edges(file)?;
                edges.retain(|edge| end(edge, "Source") != *name && end(edge, "Sink") != *name);
                number(edges);
                if let Some(nodes) = file["DSAGenNodes"].as_object_mut() {
                    nodes.remove(name);
                }
            }
            Change::Set(name, key, value) => {
                let node = element(file, name)?;
                let fields = node.values_mut().filter_map(Value::as_object_mut);
                let field = fields.into_iter().find_map(|section| section.get_mut(key));
                let Some(field) = field else {
                    return Err(format!("{name} has no field {key}"));
                };
                *field = parse(value, field).map_err(|expected| {
                    format!("{name}.{key}: expected {expected}, found \"{value}\"")
                })?;
            }
        }
    }
    Ok(())
}

/// A value of the type that the field has.
fn parse(text: &str, old: &Value) -> Result<Value, &'static str> {
    Ok(match old {
        Value::Array(_) => {
            let items = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            Value::Array(items.map(Value::from).collect())
        }
        Value::String(_) => text.into(),
        Value::Bool(_) => match text {
            "true" | "1" => true.into(),
            "false" | "0" => false.into(),
            _ => return Err("true or false"),
        },
        Value::Number(_) => text.parse::<u64>().map_err(|_| "a whole number")?.into(),
        Value::Null | Value::Object(_) => return Err("a field with a value of its own"),
    })
}

fn edges(file: &mut Value) -> Result<&mut Vec<Value>, String> {
    file["DSAGenEdges"]
        .as_array_mut()
        .ok_or_else(|| "the fabric has no DSAGenEdges".to_owned())
}

fn element<'f>(file: &'f mut Value, name: &str) -> Result<&'f mut Map<String, Value>, String> {
    file["DSAGenNodes"]
        .as_object_mut()
        .and_then(|nodes| nodes.get_mut(name))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| format!("the fabric has no {name}"))
}

fn end(edge: &Value, side: &str) -> String {
    let kind = edge[format!("{side}NodeType")].as_str().unwrap_or_default();
    format!("{kind}.{}", edge[format!("{side}NodeId")])
}

/// Numbers the links of each side of each element from 0, in the order that they have.
fn number(edges: &mut [Value]) {
    for side in ["Source", "Sink"] {
        let index = format!("{side}Index");
        let mut order: Vec<(String, u64, usize)> = edges
            .iter()
            .enumerate()
            .map(|(n, edge)| (end(edge, side), edge[&index].as_u64().unwrap_or(0), n))
            .collect();
        order.sort();
        let mut next = 0;
        for place in 0..order.len() {
            next = if place > 0 && order[place].0 == order[place - 1].0 {
                next + 1
            } else {
                0
            };
            edges[order[place].2][&index] = next.into();
        }
    }
}

/// A field that two fabrics have with different values.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub struct Changed {
    /// The element, or `SystemParameters`.
    pub element: String,
    /// The field.
    pub key: String,
    /// Its value in the first; null where it has none.
    pub from: Value,
    /// Its value in the second.
    pub to: Value,
}

/// What distinguishes two fabrics.
#[derive(Clone, Debug, Default, JsonSchema, PartialEq, Serialize)]
pub struct Difference {
    /// Elements that only the second has.
    pub added: Vec<String>,
    /// Elements that only the first has.
    pub removed: Vec<String>,
    /// Links that only the second has, between elements that both have.
    pub links_added: Vec<String>,
    /// Links that only the first has, between elements that both have.
    pub links_removed: Vec<String>,
    /// Fields of elements that both have.
    pub changed: Vec<Changed>,
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Difference::default()
    }
}

/// Compares two fabrics. Links of an element that only one of them has are not listed.
pub fn diff(first: &Adg, second: &Adg) -> Difference {
    let names =
        |adg: &Adg| -> BTreeSet<String> { adg.elements.iter().map(ToString::to_string).collect() };
    let (before, after) = (names(first), names(second));
    let mut found = Difference {
        added: after.difference(&before).cloned().collect(),
        removed: before.difference(&after).cloned().collect(),
        ..Difference::default()
    };
    // Several links between the same two elements are told apart by their number.
    let links = |adg: &Adg| -> BTreeSet<(String, usize)> {
        let mut all = BTreeSet::new();
        for id in adg.links.indices() {
            let (from, to) = (adg.source(id).to_string(), adg.sink(id).to_string());
            let both = |name: &String| before.contains(name) && after.contains(name);
            if both(&from) && both(&to) {
                let name = format!("{from}:{to}");
                let mut copy = 0;
                while all.contains(&(name.clone(), copy)) {
                    copy += 1;
                }
                all.insert((name, copy));
            }
        }
        all
    };
    let (old, new) = (links(first), links(second));
    found.links_added = new.difference(&old).map(|(name, _)| name.clone()).collect();
    found.links_removed = old.difference(&new).map(|(name, _)| name.clone()).collect();
    let (one, other) = (first.to_json(), second.to_json());
    let (one_nodes, other_nodes) = (&one["DSAGenNodes"], &other["DSAGenNodes"]);
    for name in before.intersection(&after) {
        let (one, other) = (fields(&one_nodes[name]), fields(&other_nodes[name]));
        compare(name, &one, &other, &mut found.changed);
    }
    let system = |file: &Value| file["SystemParameters"].as_object().cloned();
    compare(
        "SystemParameters",
        &system(&one).unwrap_or_default(),
        &system(&other).unwrap_or_default(),
        &mut found.changed,
    );
    found
}

/// The fields of all sections of a node.
fn fields(node: &Value) -> Map<String, Value> {
    let sections = node.as_object().into_iter().flat_map(Map::values);
    sections
        .filter_map(Value::as_object)
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn compare(
    element: &str,
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    changed: &mut Vec<Changed>,
) {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for key in keys {
        let of = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or(Value::Null);
        let (from, to) = (of(one), of(other));
        if from != to {
            changed.push(Changed {
                element: element.to_owned(),
                key: key.clone(),
                from,
                to,
            });
        }
    }
}
