//! The flat dialect of femtorun 1: one mapping of objects, each of which says by its type what it is.

use super::document::SECTIONS;
use super::rules;
use super::{Document, RuleSet};
use crate::yaml::{self, Budget, Node, Span, Value};
use chipless_model::{Finding, Place};

/// Types of the objects of a flat document, and the sections that they belong to.
const TYPES: [(&str, &str); 4] = [
    ("input", "inputs"),
    ("output", "outputs"),
    ("simple_sequence", "simple_sequences"),
    ("complex_sequence", "complex_sequences"),
];

fn section_of(object: &Node) -> Option<&'static str> {
    let kind = object.get("type")?.value.text()?;
    TYPES
        .iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, section)| *section)
}

/// Whether a tree is a mapping of such objects, and not of sections.
pub(super) fn looks_flat(root: &Node) -> bool {
    let Value::Map(entries) = &root.value else {
        return false;
    };
    let sectioned = entries.iter().any(|(key, value)| {
        key.value.text().is_some_and(|k| SECTIONS.contains(&k)) && section_of(value).is_none()
    });
    !sectioned
        && !entries.is_empty()
        && entries.iter().all(|(_, value)| section_of(value).is_some())
}

/// Rewrites a flat document in the present form: the same objects in their order, each in the section of its type.
///
/// # Errors
/// The text is no flat document, or what becomes of it is not sound.
pub fn convert(text: &str, rules: RuleSet) -> Result<Document, Vec<Finding>> {
    let tree = yaml::read(text, Budget::default())
        .map_err(|(span, message)| vec![rules::SYNTAX.under(rules).at(span.place(), message)])?;
    let comments = yaml::Comments::of(text, tree.root.as_ref());
    let root = tree.root.filter(looks_flat).ok_or_else(|| {
        let message = "expected a document of the flat dialect (objects of type input, output, simple_sequence or complex_sequence side by side), found none";
        vec![rules::FLAT.under(rules).at(Place::file(), message)]
    })?;
    let Value::Map(objects) = root.value else {
        return Err(Vec::new());
    };
    let mut sections = SECTIONS.map(|name| (name, Vec::new()));
    for (key, object) in objects {
        let section = section_of(&object);
        if let Some((_, entries)) = sections.iter_mut().find(|(name, _)| Some(*name) == section) {
            entries.push((key, object));
        }
    }
    let made = |entries| Node {
        value: Value::Map(entries),
        span: Span::default(),
    };
    let converted = Node::map(sections.map(|(name, entries)| (name, made(entries))));
    Document::read(&yaml::write_with(&converted, comments), rules)
}
