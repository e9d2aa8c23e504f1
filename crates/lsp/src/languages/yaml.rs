//! What the languages in YAML share: keys by their paths, where a cursor is, and the outline of a tree.

use crate::analysis::{Analysis, Symbol, SymbolKind, TokenKind};
use crate::language::{Suggestion, SuggestionKind};
use chipless_yaml::{Budget, Node, Span, Value};
use std::ops::Range;

/// A key: its path, `*` standing for any name and for the items of lists, and what it means.
pub(super) type Key = (&'static str, &'static str);

/// The bytes of a node, within the text.
pub(crate) fn range(text: &str, span: Span) -> Range<usize> {
    let start = text.floor_char_boundary(usize::try_from(span.offset).unwrap_or(usize::MAX));
    let end = start.saturating_add(usize::try_from(span.size).unwrap_or(0));
    start..text.floor_char_boundary(end)
}

/// The tree of a text; `None` where it cannot be read, or is empty.
pub(crate) fn tree(text: &str) -> Option<Node> {
    chipless_yaml::read(text, Budget::default()).ok()?.root
}

/// The documentation of the key with this path.
fn documented(keys: &[Key], path: &[String]) -> Option<&'static str> {
    let fits = |pattern: &str| {
        let mut parts = pattern.split('.');
        let all = path
            .iter()
            .all(|name| parts.next().is_some_and(|part| part == "*" || part == name));
        all && parts.next().is_none()
    };
    keys.iter()
        .find(|(pattern, _)| fits(pattern))
        .map(|(_, said)| *said)
}

/// Names of the keys that may stand below a path, and what they mean.
fn below(keys: &[Key], path: &[String]) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for (pattern, said) in keys {
        let parts: Vec<&str> = pattern.split('.').collect();
        let Some((last, parents)) = parts.split_last() else {
            continue;
        };
        let fits = parents.len() == path.len()
            && parents
                .iter()
                .zip(path)
                .all(|(part, name)| *part == "*" || part == name);
        if fits && *last != "*" {
            found.push((*last, *said));
        }
    }
    found
}

/// Columns of the dashes that a line begins with, the column of what follows, and the key there, if it is one.
fn parts_of(line: &str) -> (Vec<usize>, usize, Option<&str>) {
    let mut dashes = Vec::new();
    let mut at = 0;
    loop {
        at += line[at..].len() - line[at..].trim_start_matches(' ').len();
        let rest = &line[at..];
        if rest == "-" || rest.starts_with("- ") {
            dashes.push(at);
            at += 1;
        } else {
            break;
        }
    }
    let key = line[at..]
        .split_once(':')
        .map(|(key, _)| key.trim().trim_matches(['"', '\'']));
    let key = key.filter(|key| !key.is_empty() && !key.starts_with(['#', '{', '[']));
    (dashes, at, key)
}

/// What a line above must be to be the parent.
#[derive(Clone, Copy)]
enum Inside {
    /// A key further left than this column.
    Mapping(usize),
    /// A key not further right than this column, where the dash of the item stands.
    Item(usize),
}

/// The keys above a place, from indentation and open braces: works in texts that cannot be read, too.
pub(super) fn path_at(text: &str, offset: usize) -> Vec<String> {
    let offset = text.floor_char_boundary(offset);
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..offset];
    let mut path: Vec<String> = braces(line).into_iter().rev().collect();
    let (dashes, column, key) = parts_of(line);
    if let Some(key) = key.filter(|_| !path.is_empty()) {
        // The braces are the value of the line's own key.
        if path.last().is_some_and(|last| last != key) {
            path.push(key.to_owned());
        }
    }
    let mut inside = Inside::Mapping(column);
    let items = |dashes: &[usize], path: &mut Vec<String>, inside: &mut Inside| {
        for dash in dashes.iter().rev() {
            path.push("*".to_owned());
            *inside = Inside::Item(*dash);
        }
    };
    items(&dashes, &mut path, &mut inside);
    for above in text[..start].lines().rev() {
        if let Inside::Mapping(0) = inside {
            break;
        }
        let (dashes, column, key) = parts_of(above);
        if above.trim().is_empty() || above.trim_start().starts_with('#') {
            continue;
        }
        let is_parent = match inside {
            Inside::Mapping(own) => column < own,
            Inside::Item(own) => column <= own,
        };
        match (inside, key) {
            (_, Some(key)) if is_parent => {
                path.push(key.to_owned());
                inside = Inside::Mapping(column);
                items(&dashes, &mut path, &mut inside);
            }
            // Another key of the item that the line begins.
            (Inside::Mapping(own), _)
                if column == own || dashes.first().is_some_and(|dash| *dash < own) =>
            {
                items(&dashes, &mut path, &mut inside);
            }
            _ => {}
        }
    }
    path.reverse();
    path
}

/// The keys whose braces are open at the end of a line, `*` for a bracket within another.
fn braces(line: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let (mut word, mut last) = (String::new(), String::new());
    for c in line.chars() {
        match c {
            '{' | '[' => {
                open.push(if last.is_empty() {
                    "*".to_owned()
                } else {
                    std::mem::take(&mut last)
                });
                word.clear();
            }
            '}' | ']' => {
                open.pop();
                word.clear();
            }
            ':' => {
                let key = std::mem::take(&mut word);
                key.trim_matches(['"', '\'', '-', ' '])
                    .clone_into(&mut last);
            }
            ',' => {
                word.clear();
                last.clear();
            }
            c => word.push(c),
        }
    }
    // `- {name: a` is the item itself.
    if open.first().is_some_and(|first| first == "*") && line.trim_start().starts_with('-') {
        open.remove(0);
    }
    open
}

/// Suggestions for a key at a place.
pub(super) fn complete(keys: &[Key], text: &str, offset: usize) -> Vec<Suggestion> {
    let path = path_at(text, offset);
    below(keys, &path)
        .into_iter()
        .map(|(name, said)| {
            let first = said.split_once(". ").map_or(said, |(first, _)| first);
            Suggestion::new(
                format!("{name}: "),
                SuggestionKind::Property,
                first.replace('`', ""),
            )
        })
        .collect()
}

/// Is told of the path, the key and the value of each entry, and of the symbol that stands for it.
type Visit<'v> = &'v mut dyn FnMut(&mut Analysis, &[String], &Node, &Node, Option<usize>);

/// Walks a tree: colours, folds and the outline, down to a depth.
pub(super) fn outline(
    text: &str,
    root: &Node,
    analysis: &mut Analysis,
    depth: usize,
    visit: Visit<'_>,
) {
    comments(text, root, analysis);
    let mut path = Vec::new();
    walk(text, root, analysis, &mut path, None, depth, visit);
}

fn walk(
    text: &str,
    node: &Node,
    analysis: &mut Analysis,
    path: &mut Vec<String>,
    below: Option<usize>,
    depth: usize,
    visit: Visit<'_>,
) {
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                let (word, whole) = (range(text, key.span), extent(text, key, value));
                analysis.token(word.clone(), TokenKind::Property);
                if matches!(value.value, Value::Map(_) | Value::List(_)) {
                    analysis.folds.push(whole.clone());
                }
                let detail = match &value.value {
                    Value::Map(_) => String::new(),
                    Value::List(items) => format!("{} items", items.len()),
                    _ => chipless_yaml::shortened(&value.label()),
                };
                let symbol = (path.len() < depth).then(|| {
                    analysis.add(Symbol {
                        name: key.label(),
                        kind: SymbolKind::Key,
                        detail,
                        about: String::new(),
                        word,
                        range: whole,
                        part_of: None,
                        below,
                        listed: true,
                        renamable: false,
                    })
                });
                path.push(key.label());
                visit(analysis, path, key, value, symbol);
                walk(text, value, analysis, path, symbol.or(below), depth, visit);
                path.pop();
            }
        }
        Value::List(items) => {
            path.push("*".to_owned());
            for item in items {
                walk(text, item, analysis, path, below, depth, visit);
            }
            path.pop();
        }
        Value::Integer(_) | Value::Float(_) => {
            analysis.token(range(text, node.span), TokenKind::Number);
        }
        Value::Bool(_) | Value::Null => {
            analysis.token(range(text, node.span), TokenKind::EnumMember);
        }
        Value::Text(_) | Value::Opaque(..) => {
            analysis.token(range(text, node.span), TokenKind::String);
        }
    }
}

/// From a key to the last thing in its value.
pub(crate) fn extent(text: &str, key: &Node, value: &Node) -> Range<usize> {
    let key = range(text, key.span);
    key.start..end(text, value).max(key.end)
}

fn end(text: &str, node: &Node) -> usize {
    let own = range(text, node.span).end;
    let inner = match &node.value {
        Value::Map(entries) => entries.iter().map(|(_, value)| end(text, value)).max(),
        Value::List(items) => items.iter().map(|item| end(text, item)).max(),
        _ => None,
    };
    let end = own.max(inner.unwrap_or(0));
    text.get(..end).map_or(end, |head| head.trim_end().len())
}

/// Remarks: from a `#` at a line's start or behind a blank to its end, outside of scalars.
fn comments(text: &str, root: &Node, analysis: &mut Analysis) {
    let mut scalars = Vec::new();
    collect(text, root, &mut scalars);
    scalars.sort_unstable();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bytes = line.as_bytes();
        let found = (0..bytes.len()).find(|at| {
            let blank = *at == 0 || matches!(bytes.get(at - 1), Some(b' ' | b'\t'));
            let inside = || {
                let index = scalars.partition_point(|(begin, _)| *begin <= start + at);
                index
                    .checked_sub(1)
                    .and_then(|index| scalars.get(index))
                    .is_some_and(|(_, end)| start + at < *end)
            };
            bytes[*at] == b'#' && blank && !inside()
        });
        if let Some(at) = found {
            analysis.token(
                start + at..start + line.trim_end().len(),
                TokenKind::Comment,
            );
        }
        start += line.len();
    }
}

fn collect(text: &str, node: &Node, scalars: &mut Vec<(usize, usize)>) {
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                collect(text, key, scalars);
                collect(text, value, scalars);
            }
        }
        Value::List(items) => items.iter().for_each(|item| collect(text, item, scalars)),
        _ => {
            let range = range(text, node.span);
            scalars.push((range.start, range.end));
        }
    }
}

/// What a key at a place means: in a tree where there is one, else by indentation.
pub(super) fn explain(keys: &[Key], text: &str, offset: usize) -> Option<(Range<usize>, String)> {
    let (word, name) = crate::language::word_at(text, offset, "_.-");
    let behind = text.get(word.end..)?.trim_start_matches(['"', '\'', ' ']);
    if !behind.starts_with(':') || name.is_empty() {
        return None;
    }
    let mut path = path_at(text, word.start);
    path.push(name.to_owned());
    let said = documented(keys, &path)?;
    Some((word, format!("**`{name}`**: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_has_a_path() {
        let text = "inputs:\n  x:\n    type: input\n    quantization: {scale: 1}\nstreams:\n  - name: a\n    arrivals: {every: 1ms, c}\n- b\n";
        let at = |what: &str| path_at(text, text.find(what).expect("there")).join(".");
        assert_eq!(at("inputs"), "");
        assert_eq!(at("x:"), "inputs");
        assert_eq!(at("type"), "inputs.x");
        assert_eq!(at("scale"), "inputs.x.quantization");
        assert_eq!(at("name"), "streams.*");
        assert_eq!(at("arrivals"), "streams.*");
        assert_eq!(at("c}"), "streams.*.arrivals");
        let flow = "contexts:\n  a: {process: 1}\nstreams:\n- {name: a, arrivals: {every: 1}}\n- name: b\n  program:\n    synthetic:\n      tasks:\n        - {queue: q}\n";
        let at = |what: &str| path_at(flow, flow.find(what).expect("there")).join(".");
        assert_eq!(at("process"), "contexts.a");
        assert_eq!(at("arrivals"), "streams.*");
        assert_eq!(at("every"), "streams.*.arrivals");
        assert_eq!(at("program"), "streams.*");
        assert_eq!(at("queue"), "streams.*.program.synthetic.tasks.*");
    }

    #[test]
    fn any_text_has_paths() {
        for text in ["{[}:,", "- - -\n  :", "é: {ö", "a:\n\tb:\n"] {
            for offset in 0..=text.len() + 1 {
                path_at(text, offset.min(text.len()));
            }
        }
    }
}
