//! IOSpecs: contracts between a host and a program.

use super::yaml::{self, Key};
use crate::analysis::{Analysis, Symbol, SymbolKind, TokenKind};
use crate::language::{Language, Suggestion, SuggestionKind};
use chipless::spu::iospec::{Document, RuleSet};
use chipless_yaml::{Node, Value};
use std::collections::HashMap;
use std::ops::Range;

/// The language.
pub(crate) struct IoSpec;

pub(crate) const KEYS: &[Key] = &[
    (
        "inputs",
        "What the host sends: a mapping from names to vectors.",
    ),
    (
        "outputs",
        "What the host receives: a mapping from names to vectors.",
    ),
    (
        "simple_sequences",
        "Sequences that take each of their inputs once and give each of their outputs once.",
    ),
    (
        "complex_sequences",
        "Sequences that take inputs several times for one firing, or give outputs after several.",
    ),
    ("inputs.*.type", "Always `input`."),
    (
        "inputs.*.varname",
        "The variable of the program. Write the key of the vector: tools look it up by either name.",
    ),
    (
        "inputs.*.length",
        "Elements of the vector in the model. Unit: elements.",
    ),
    (
        "inputs.*.precision",
        "Bits of an element: 8 or 16, before compilation also 24. Unit: bits.",
    ),
    (
        "inputs.*.padded_length",
        "Elements on the wire: the length, rounded up to a multiple of 8. Unit: elements. Empty before compilation.",
    ),
    (
        "inputs.*.length_64b_words",
        "Words on the wire: padded_length x precision / 64, rounded up. Unit: words of 64 bits. Set by the compiler.",
    ),
    (
        "inputs.*.core_id",
        "The core that takes the input, from 0. Set by the compiler.",
    ),
    (
        "inputs.*.pc",
        "The program counter that the input starts. Set by the compiler.",
    ),
    (
        "inputs.*.quantization",
        "How integers stand for real numbers: (integer - zero_pt) x scale. Default: none.",
    ),
    (
        "inputs.*.quantization.scale",
        "The real number that one step stands for: a power of two.",
    ),
    (
        "inputs.*.quantization.zero_pt",
        "The integer that stands for 0. Default: 0.",
    ),
    (
        "inputs.*.comments",
        "Hints for tools: `latch: true` marks an input that keeps its value.",
    ),
    (
        "inputs.*.comments.latch",
        "Whether the input keeps its value until it is written again. What counts are the sequences. Default: false.",
    ),
    (
        "inputs.*.comments.latched",
        "As the text of the format calls `latch`; tools read `latch`.",
    ),
    ("outputs.*.type", "Always `output`."),
    (
        "outputs.*.varname",
        "The variable of the program. Write the key of the vector: tools look it up by either name.",
    ),
    (
        "outputs.*.length",
        "Elements of the vector in the model. Unit: elements.",
    ),
    (
        "outputs.*.precision",
        "Bits of an element: 8 or 16, before compilation also 24. Unit: bits.",
    ),
    (
        "outputs.*.padded_length",
        "Elements on the wire: the length, rounded up to a multiple of 8. Unit: elements. Empty before compilation.",
    ),
    (
        "outputs.*.length_64b_words",
        "Words on the wire: padded_length x precision / 64, rounded up. Unit: words of 64 bits. Set by the compiler.",
    ),
    (
        "outputs.*.mailbox_id",
        "The mailbox that the output comes from. Set by the compiler.",
    ),
    (
        "outputs.*.quantization",
        "How integers stand for real numbers: (integer - zero_pt) x scale. Default: none.",
    ),
    (
        "outputs.*.quantization.scale",
        "The real number that one step stands for: a power of two.",
    ),
    (
        "outputs.*.quantization.zero_pt",
        "The integer that stands for 0. Default: 0.",
    ),
    ("outputs.*.comments", "Hints for tools."),
    ("simple_sequences.*.type", "Always `simple_sequence`."),
    (
        "simple_sequences.*.inputs",
        "The inputs that must be written before the outputs come, in this order: a list of names.",
    ),
    (
        "simple_sequences.*.outputs",
        "The outputs that come then, in this order: a list of names. An empty list makes the inputs latched.",
    ),
    ("simple_sequences.*.comments", "Hints for tools."),
    ("complex_sequences.*.type", "Always `complex_sequence`."),
    (
        "complex_sequences.*.inputs",
        "A mapping from inputs to how often each is written for one firing.",
    ),
    (
        "complex_sequences.*.outputs",
        "A mapping from outputs to the number of firings after which each comes.",
    ),
    ("complex_sequences.*.comments", "Hints for tools."),
];

impl Language for IoSpec {
    fn id(&self) -> &'static str {
        "chipless-iospec"
    }

    fn name(&self) -> &'static str {
        "IOSpec"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["yaml", "yml"]
    }

    fn recognize(&self, text: &str) -> bool {
        let sections = [
            "inputs:",
            "outputs:",
            "simple_sequences:",
            "complex_sequences:",
        ];
        text.lines()
            .any(|line| sections.iter().any(|section| line.starts_with(section)))
    }

    fn analyse(&self, text: &str) -> Analysis {
        let mut analysis = Analysis::default();
        let Some(root) = yaml::tree(text) else {
            return analysis;
        };
        yaml::outline(text, &root, &mut analysis, 2, &mut |_, _, _, _, _| {});
        names(text, &root, &mut analysis);
        analysis.sort();
        analysis
    }

    fn explain(&self, text: &str, _: &Analysis, offset: usize) -> Option<(Range<usize>, String)> {
        yaml::explain(KEYS, text, offset)
    }

    fn complete(&self, text: &str, analysis: &Analysis, offset: usize) -> Vec<Suggestion> {
        let path = yaml::path_at(text, offset);
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let side = match parts.as_slice() {
            [section, _, side @ ("inputs" | "outputs"), ..] if section.ends_with("sequences") => {
                *side
            }
            _ => {
                let line = text[..text.floor_char_boundary(offset)]
                    .rsplit('\n')
                    .next()
                    .unwrap_or_default();
                let sequence = parts
                    .first()
                    .is_some_and(|section| section.ends_with("sequences"));
                match line.trim_start().split(':').next() {
                    Some(side @ ("inputs" | "outputs")) if sequence && line.contains(':') => side,
                    _ => return yaml::complete(KEYS, text, offset),
                }
            }
        };
        let wanted = |detail: &str| detail.starts_with(side.trim_end_matches('s'));
        let names = analysis
            .symbols
            .iter()
            .filter(|s| s.kind == SymbolKind::Variable && wanted(&s.detail));
        names
            .map(|s| Suggestion::new(s.name.clone(), SuggestionKind::Variable, s.detail.clone()))
            .collect()
    }

    fn format(&self, text: &str) -> Option<String> {
        // Anchors and aliases would be written out, keys that stand twice lost.
        let tree = chipless_yaml::read(text, chipless_yaml::Budget::default()).ok()?;
        let plain =
            tree.duplicates.is_empty() && !text.contains(['&', '*']) && !text.contains("<<");
        let document = Document::read(text, RuleSet::default())
            .ok()
            .filter(|_| plain)?;
        let new = document.write();
        let again = yaml::tree(&new);
        (again == tree.root).then_some(new)
    }
}

/// The word of a scalar within its quotes.
fn word(text: &str, node: &Node) -> Range<usize> {
    let range = yaml::range(text, node.span);
    let label = node.label();
    match text
        .get(range.clone())
        .and_then(|word| word.find(label.as_str()))
    {
        Some(at) => range.start + at..range.start + at + label.len(),
        None => range,
    }
}

/// Vectors and sequences, and where sequences name them.
fn names(text: &str, root: &Node, analysis: &mut Analysis) {
    let mut known: HashMap<String, usize> = HashMap::new();
    let section = |name: &str| match root.get(name).map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    for side in ["inputs", "outputs"] {
        for (key, object) in section(side) {
            let value = |field: &str| object.get(field).map(Node::label);
            let length = value("length").unwrap_or_else(|| "?".to_owned());
            let bits = value("precision").unwrap_or_else(|| "?".to_owned());
            let detail = format!(
                "{} of {length} elements of {bits} bits",
                side.trim_end_matches('s')
            );
            let symbol = define(text, key, SymbolKind::Variable, detail, analysis);
            known.entry(key.label()).or_insert(symbol);
            if let Some(name) = object.get("varname").filter(|name| name.value == key.value) {
                analysis.occurs(symbol, word(text, name), true);
            }
        }
    }
    for kind in ["simple_sequences", "complex_sequences"] {
        for (key, _) in section(kind) {
            let detail = kind.trim_end_matches('s').replace('_', " ");
            let symbol = define(text, key, SymbolKind::Event, detail, analysis);
            known.entry(key.label()).or_insert(symbol);
        }
    }
    for kind in ["simple_sequences", "complex_sequences"] {
        for (_, object) in section(kind) {
            for side in ["inputs", "outputs"] {
                let members: Vec<&Node> = match object.get(side).map(|node| &node.value) {
                    Some(Value::List(items)) => items.iter().collect(),
                    Some(Value::Map(entries)) => entries.iter().map(|(key, _)| key).collect(),
                    _ => continue,
                };
                for member in members {
                    if let Some(symbol) = known.get(&member.label()) {
                        analysis.token(word(text, member), TokenKind::Variable);
                        analysis.occurs(*symbol, word(text, member), false);
                    }
                }
            }
        }
    }
}

/// Makes the symbol of a key, which the outline has already, one with a name of its own.
fn define(
    text: &str,
    key: &Node,
    kind: SymbolKind,
    detail: String,
    analysis: &mut Analysis,
) -> usize {
    let range = yaml::range(text, key.span);
    let found = analysis
        .symbols
        .iter()
        .position(|symbol| symbol.word == range);
    let symbol = found.unwrap_or_else(|| {
        analysis.add(Symbol {
            name: key.label(),
            kind,
            detail: String::new(),
            about: String::new(),
            word: range.clone(),
            range,
            part_of: None,
            below: None,
            listed: false,
            renamable: false,
        })
    });
    let own = &mut analysis.symbols[symbol];
    own.kind = kind;
    own.detail = detail;
    own.renamable = key.value.text().is_some();
    analysis.occurs(symbol, word(text, key), true);
    symbol
}
