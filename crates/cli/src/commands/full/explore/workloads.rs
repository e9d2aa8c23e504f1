//! The kernels of an exploration.

use super::read_text;
use crate::failure::Failure;
use crate::files;
use chipless::dsa::Document;
use chipless::dsa_explore::{Kernel, Variant};
use chipless_model::Limits;
use chipless_yaml::{self as yaml, Node, Value};
use std::path::Path;

/// Kernels and variants, at most: each choice of variants is looked at.
const MOST: usize = 256;

/// Reads `workloads: [{name, weight, variants: [FILE.dfg, …]}]` and the graphs beside it.
pub(super) fn read(path: &Path, limits: &Limits) -> Result<Vec<Kernel>, Failure> {
    let text = read_text(path)?;
    let tree = yaml::read(&text, yaml::Budget::default()).map_err(|(span, error)| {
        Failure::unreadable(path.display(), format!("line {}: {error}", span.line))
    })?;
    let wrong = |text: String| Failure::unreadable(path.display(), text);
    let entries = tree
        .root
        .as_ref()
        .and_then(|root| list(root.get("workloads")));
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
        return Err(wrong(
            "expected `workloads`, a list of kernels, found none".to_owned(),
        ));
    };
    if entries.len() > MOST {
        return Err(wrong(format!(
            "expected at most {MOST} kernels, found {}",
            entries.len()
        )));
    }
    let mut kernels: Vec<Kernel> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let name = entry.get("name").map(Node::label);
        let name =
            name.ok_or_else(|| wrong(format!("kernel {index}: expected a `name`, found none")))?;
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "_-.".contains(c))
            && !name.starts_with('.');
        if !plain || kernels.iter().any(|kernel| kernel.name == name) {
            return Err(wrong(format!(
                "kernel {index}: expected a name of its own of letters, digits, `_`, `-` and `.`, found \"{name}\""
            )));
        }
        let weight = match entry.get("weight").map(|node| &node.value) {
            None => 1.0,
            Some(Value::Integer(weight)) => *weight as f64,
            Some(Value::Float(weight)) => *weight,
            Some(other) => {
                return Err(wrong(format!(
                    "{name}: expected a weight, found {}",
                    other.kind()
                )));
            }
        };
        if !(weight.is_finite() && weight > 0.0) {
            return Err(wrong(format!(
                "{name}: expected a weight above 0, found {weight}"
            )));
        }
        let files =
            list(entry.get("variants")).filter(|files| !files.is_empty() && files.len() <= MOST);
        let files = files.ok_or_else(|| {
            wrong(format!(
                "{name}: expected 1 to {MOST} `variants`, found none or more"
            ))
        })?;
        let mut variants = Vec::new();
        for file in files {
            variants.push(variant(path, &file.label(), limits)?);
        }
        kernels.push(Kernel {
            name,
            weight,
            variants,
        });
    }
    Ok(kernels)
}

fn list(node: Option<&Node>) -> Option<&[Node]> {
    match &node?.value {
        Value::List(items) => Some(items),
        _ => None,
    }
}

fn variant(workloads: &Path, name: &str, limits: &Limits) -> Result<Variant, Failure> {
    let path = workloads.parent().unwrap_or(Path::new("")).join(name);
    let bytes = files::open(&path).map_err(|error| Failure::unreadable(path.display(), error))?;
    let document = Document::read(&bytes, limits);
    if let Some(error) = document.findings.iter().find(|finding| finding.is_error()) {
        return Err(Failure::unreadable(path.display(), error));
    }
    Ok(Variant {
        name: name.to_owned(),
        graph: document.graph,
    })
}
