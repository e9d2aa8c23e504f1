//! What could stand at a place of a DFG.

use super::{ACTIONS, ARRAYS, typed};
use crate::analysis::{Analysis, SymbolKind};
use crate::language::{Suggestion, SuggestionKind};
use chipless::dsa::operations;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Suggestions of one kind, at most: an editor asks again when more is typed.
const MOST: usize = 500;

/// Names of operations, sorted: they are many, and made of tables.
pub(crate) fn operation_names() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names: Vec<String> = operations::names().collect();
        names.sort();
        names
    })
}

fn of(list: &[(&str, &str)], kind: SuggestionKind) -> Vec<Suggestion> {
    list.iter()
        .map(|(word, said)| {
            let first = said.split_once(". ").map_or(*said, |(first, _)| first);
            Suggestion::new(*word, kind, first.replace('`', ""))
        })
        .collect()
}

fn all(words: &[&str], kind: SuggestionKind, detail: &str) -> Vec<Suggestion> {
    words
        .iter()
        .map(|word| Suggestion::new(*word, kind, detail))
        .collect()
}

pub(super) fn complete(text: &str, analysis: &Analysis, offset: usize) -> Vec<Suggestion> {
    let (word, prefix) = typed(text, offset);
    let start = text[..word.start].rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..word.start).unwrap_or_default();
    let (head, before) = (line.trim_start(), line.trim_end());
    if head.starts_with("#pragma") {
        return pragma(head);
    }
    if before.ends_with("source=") || before.ends_with("destination=") {
        return names(analysis, word.start, prefix, |kind| {
            kind == SymbolKind::Array
        });
    }
    if before.ends_with("state=") || before.ends_with("stated=") {
        return names(analysis, word.start, prefix, |kind| {
            kind == SymbolKind::Port
        });
    }
    let is_port = ["Input", "Output", "Indirect"]
        .iter()
        .any(|port| head.starts_with(port));
    if is_port && head.contains(':') {
        let options = ["stated", "source=", "destination=", "state="];
        return all(&options, SuggestionKind::Property, "option of a port");
    }
    if head.starts_with("Array") {
        return of(ARRAYS, SuggestionKind::Value);
    }
    if line.rfind('{').is_some_and(|at| !line[at..].contains('}')) {
        return of(ACTIONS, SuggestionKind::Value);
    }
    if head.contains('=') {
        let value = |kind| !matches!(kind, SymbolKind::Array | SymbolKind::Section);
        let mut found = names(analysis, word.start, prefix, value);
        let names = operation_names();
        let first = names.partition_point(|name| name.as_str() < prefix);
        let fitting = names
            .iter()
            .skip(first)
            .take_while(|name| name.starts_with(prefix));
        found.extend(
            fitting
                .take(MOST)
                .map(|name| Suggestion::new(name.clone(), SuggestionKind::Function, "operation")),
        );
        if line.contains('(') {
            let qualifiers = ["ctrl=", "self", "pred=", "inv_pred="];
            found.extend(all(
                &qualifiers,
                SuggestionKind::Keyword,
                "qualifier of an argument",
            ));
        }
        return found;
    }
    statements()
}

fn statements() -> Vec<Suggestion> {
    let mut found = Vec::new();
    for direction in ["Input", "Output", "Indirect"] {
        for width in [8, 16, 32, 64] {
            let label = format!("{direction}{width}: ");
            let detail = format!("port of {width} bits a lane");
            found.push(Suggestion::new(label, SuggestionKind::Keyword, detail));
        }
    }
    for (label, detail) in [
        ("Array: ", "array in a memory"),
        ("#pragma ", "describes a sub-graph, a port or a register"),
        ("----", "begins another sub-graph"),
    ] {
        found.push(Suggestion::new(label, SuggestionKind::Keyword, detail));
    }
    found
}

fn pragma(head: &str) -> Vec<Suggestion> {
    let rest = head.trim_start_matches("#pragma").trim_start();
    if rest.starts_with("group") {
        let keys = ["frequency", "unroll", "temporal"];
        return all(&keys, SuggestionKind::Property, "of the sub-graph");
    }
    let mut found = vec![Suggestion::new(
        "group ",
        SuggestionKind::Keyword,
        "describes the sub-graph",
    )];
    let keys = ["cmd=", "repeat=", "reuse=", "conc=", "src=", "dest=", "op="];
    found.extend(all(&keys, SuggestionKind::Property, "of the next port"));
    found.extend((0..8).map(|n| {
        Suggestion::new(
            format!("$Reg{n} "),
            SuggestionKind::Variable,
            "takes the result of this name",
        )
    }));
    found
}

/// Names that are defined above a byte and begin with a prefix, the last definitions first.
fn names(
    analysis: &Analysis,
    at: usize,
    prefix: &str,
    wanted: impl Fn(SymbolKind) -> bool,
) -> Vec<Suggestion> {
    let mut seen = BTreeSet::new();
    let above = analysis.symbols.iter().rev();
    above
        .filter(|s| s.word.end <= at && wanted(s.kind) && s.name.starts_with(prefix))
        .filter(|s| seen.insert(&s.name))
        .take(MOST)
        .map(|s| Suggestion::new(s.name.clone(), SuggestionKind::Variable, s.detail.clone()))
        .collect()
}
