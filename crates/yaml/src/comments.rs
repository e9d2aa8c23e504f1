//! Remarks of a text (`# …`), kept beside its tree so that they can be printed again where they stood.

use super::{Node, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Remarks, by the entries of mappings that they belong to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comments {
    /// On lines of their own before an entry, by the offset of its key.
    pub(super) before: HashMap<u64, Vec<String>>,
    /// Behind an entry, on its line.
    pub(super) behind: HashMap<u64, Vec<String>>,
    /// Behind everything.
    pub(super) last: Vec<String>,
}

impl Comments {
    /// The remarks of a text that was read as this tree.
    pub fn of(source: &str, root: Option<&Node>) -> Comments {
        let (mut keys, mut scalars) = (BTreeSet::new(), BTreeMap::new());
        if let Some(root) = root {
            collect(root, true, &mut keys, &mut scalars);
        }
        let mut comments = Comments::default();
        let mut start = 0;
        for line in source.split_inclusive('\n') {
            if let Some(at) = remark(line, start, &scalars) {
                let text = line[at - start..].trim_end().to_owned();
                let key = keys.range(start as u64..at as u64).next_back();
                let next = keys.range(at as u64..).next();
                match (key, next) {
                    (Some(key), _) => comments.behind.entry(*key).or_default().push(text),
                    (None, Some(key)) => comments.before.entry(*key).or_default().push(text),
                    (None, None) => comments.last.push(text),
                }
            }
            start += line.len();
        }
        comments
    }
}

/// Offsets of the keys that are printed on lines of their own, and of all scalars with their ends.
fn collect(node: &Node, printed: bool, keys: &mut BTreeSet<u64>, scalars: &mut BTreeMap<u64, u64>) {
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                if printed && key.span.line > 0 {
                    keys.insert(key.span.offset);
                }
                collect(key, false, keys, scalars);
                collect(value, printed, keys, scalars);
            }
        }
        Value::List(items) => items
            .iter()
            .for_each(|item| collect(item, false, keys, scalars)),
        _ => {
            let end = scalars.entry(node.span.offset).or_default();
            *end = (*end).max(node.span.offset + node.span.size);
        }
    }
}

/// Where a remark starts in a line of the text: at a `#` at its start or behind a blank that lies in no scalar.
fn remark(line: &str, start: usize, scalars: &BTreeMap<u64, u64>) -> Option<usize> {
    let bytes = line.as_bytes();
    (0..bytes.len())
        .filter(|at| bytes[*at] == b'#' && (*at == 0 || matches!(bytes[at - 1], b' ' | b'\t')))
        .map(|at| start + at)
        .find(|at| {
            let around = scalars.range(..=*at as u64).next_back();
            around.is_none_or(|(_, end)| *end <= *at as u64)
        })
}
