//! Files without tasks, entry by entry: contracts, fabrics, containers.

use super::Difference;
use crate::info::value_text;
use chipless_model::Node;
use std::collections::BTreeMap;

impl Difference {
    /// Two texts in YAML, as contracts are written.
    pub fn of_texts(a: &str, b: &str) -> Difference {
        Difference::of_entries(&entries_of_text(a), &entries_of_text(b))
    }

    /// Two trees of a file's structures; where they stand in the file does not count.
    pub fn of_nodes(a: &Node, b: &Node) -> Difference {
        let entries = |node: &Node| {
            let mut entries = BTreeMap::new();
            entries_of_node("", node, &mut entries);
            entries
        };
        Difference::of_entries(&entries(a), &entries(b))
    }

    fn of_entries(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Difference {
        let mut interface = Vec::new();
        for (path, value) in a {
            match b.get(path) {
                // An empty part that is not empty there: what it has is new.
                None if is_above(path, b) => {}
                None => interface.push(format!("{} is gone", whole(path, b))),
                Some(other) if other != value => {
                    interface.push(format!("{path}: {other}, was {value}"));
                }
                Some(_) => {}
            }
        }
        let is_new = |path: &str| !a.contains_key(path) && !is_above(path, a);
        let new = b.iter().filter(|(path, _)| is_new(path));
        interface.extend(new.map(|(path, value)| match whole(path, a) {
            part if part == path => format!("{path} is new: {value}"),
            part => format!("{part} is new"),
        }));
        interface.dedup();
        Difference {
            schema_version: crate::SCHEMA_VERSION,
            equal: interface.is_empty(),
            interface,
            ..Difference::default()
        }
    }
}

/// The largest part of a file that an entry belongs to and that the other file has nothing of.
fn whole<'p>(path: &'p str, other: &BTreeMap<String, String>) -> &'p str {
    let is_there = |part: &str| other.contains_key(part) || is_above(part, other);
    let ends = path.match_indices(['.', '[']).map(|(at, _)| &path[..at]);
    ends.filter(|part| !part.is_empty())
        .find(|part| !is_there(part))
        .unwrap_or(path)
}

/// Whether a part has others in it.
fn is_above(part: &str, entries: &BTreeMap<String, String>) -> bool {
    [".", "["].iter().any(|separator| {
        let first = format!("{part}{separator}");
        let mut from = entries.range(first.clone()..);
        from.next()
            .is_some_and(|(path, _)| path.starts_with(&first))
    })
}

/// Values by the names that lead to them. Of several of one path, each has its number.
fn put(entries: &mut BTreeMap<String, String>, path: &str, value: String) {
    let mut free = path.to_owned();
    let mut number = 1;
    while entries.contains_key(&free) {
        number += 1;
        free = format!("{path} ({number})");
    }
    entries.insert(free, value);
}

fn entries_of_node(above: &str, node: &Node, entries: &mut BTreeMap<String, String>) {
    let path = match (above, &*node.name) {
        ("", name) => name.to_owned(),
        (above, name) => format!("{above}.{name}"),
    };
    if let Some(value) = &node.value {
        put(entries, &path, value_text(value));
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for child in &node.children {
        let number = seen.entry(&child.name).or_default();
        *number += 1;
        let above = if *number > 1 {
            format!("{path}.{number}")
        } else {
            path.clone()
        };
        entries_of_node(&above, child, entries);
    }
}

/// The entries of block YAML: what is indented further belongs to the entry above it.
fn entries_of_text(text: &str) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    // Indentation and path of the entries around a line; of a list also the number of its items.
    let mut around: Vec<(usize, String, usize)> = Vec::new();
    for line in text.lines() {
        let mut content = line.trim_start();
        let mut indent = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') || content == "---" {
            continue;
        }
        while let Some(item) = content.strip_prefix("- ") {
            // Items may stand as deep as the name of their list.
            while around.last().is_some_and(|(depth, ..)| *depth > indent) {
                around.pop();
            }
            let (path, number) = match around.last_mut() {
                Some((_, path, number)) => (path.clone(), number),
                None => break,
            };
            let item_path = format!("{path}[{number}]");
            *number += 1;
            let deeper = item.trim_start();
            indent += content.len() - deeper.len();
            content = deeper;
            around.push((indent - 1, item_path, 0));
        }
        while around.last().is_some_and(|(depth, ..)| *depth >= indent) {
            around.pop();
        }
        let above = around.last().map_or("", |(_, path, _)| path);
        let (name, value) = content
            .split_once(": ")
            .or_else(|| content.strip_suffix(':').map(|name| (name, "")))
            .unwrap_or(("", content));
        let path = match (above, name) {
            ("", name) => name.to_owned(),
            (above, "") => above.to_owned(),
            (above, name) => format!("{above}.{name}"),
        };
        if !value.trim().is_empty() {
            put(&mut entries, &path, value.trim().to_owned());
        }
        around.push((indent, path, 0));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_differ_by_entries() {
        let text = "inputs:\n  x:\n    precision: 16\n    length: 4\nsequences:\n- kind: send\n  of: [x]\n- kind: receive\n";
        let other = text
            .replace("precision: 16", "precision: 8")
            .replace("- kind: receive\n", "");
        let difference = Difference::of_texts(text, &other);
        assert_eq!(
            difference.interface,
            ["inputs.x.precision: 8, was 16", "sequences[1] is gone"]
        );
        assert!(!difference.equal);
        // What is new as a whole is said once.
        let other = text
            .replace("  x:\n", "  x2:\n")
            .replace("length: 4", "length: 4\n    scale: 1");
        assert_eq!(
            Difference::of_texts(text, &other).interface,
            ["inputs.x is gone", "inputs.x2 is new"]
        );
        let swapped = "# a comment\ninputs:\n  x:\n    length: 4\n    precision: 16\nsequences:\n  - kind: send\n    of: [x]\n  - kind: receive\n";
        assert_eq!(
            Difference::of_texts(text, swapped).interface,
            [] as [&str; 0]
        );
    }
}
