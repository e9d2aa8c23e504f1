//! JSON: front-end networks, schedules and architecture graphs. The outline, folds and colours are of any JSON, broken or not.

use crate::analysis::{Analysis, Symbol, SymbolKind, TokenKind};
use crate::language::{Language, word_at};
use std::ops::Range;

/// The language.
pub(super) struct Json;

/// Levels of the outline.
const DEPTH: usize = 3;

/// Symbols of the outline, at most: schedules have millions of keys.
const MOST: usize = 20_000;

/// Keys of architecture graphs, networks and schedules, and what they mean.
const KEYS: &[(&str, &str)] = &[
    (
        "layers",
        "The layers of the network, in an order in which each comes behind those that it needs.",
    ),
    (
        "ifmap",
        "The input feature map of a layer: its channels and where they come from.",
    ),
    ("ofmap", "The output feature map of a layer."),
    ("weight", "The weights of a layer, or of a workload."),
    ("batch", "Samples that are computed together."),
    (
        "workload_id",
        "The number of the workload, by which others wait for it.",
    ),
    (
        "granularity",
        "Bits of the smallest word that the element handles. Unit: bits.",
    ),
    ("width", "Bits of a word. Unit: bits."),
    (
        "instructions",
        "The operations that a processing element executes.",
    ),
    ("links", "What is connected to what."),
    ("nodes", "The elements of the fabric."),
    (
        "max_delay",
        "Cycles by which a processing element can delay an operand. Unit: cycles.",
    ),
    (
        "static",
        "Whether the element keeps one operation for the whole program.",
    ),
    ("outputs", "What leaves."),
    ("inputs", "What comes in."),
];

impl Language for Json {
    fn id(&self) -> &'static str {
        "json"
    }

    fn name(&self) -> &'static str {
        "JSON"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonc"]
    }

    fn recognize(&self, text: &str) -> bool {
        text.trim_start().starts_with(['{', '['])
    }

    fn analyse(&self, text: &str) -> Analysis {
        let mut analysis = Analysis::default();
        let mut open: Vec<Open> = Vec::new();
        let mut key: Option<(String, Range<usize>, usize)> = None;
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            match bytes[at] {
                b'"' => {
                    at = string_end(bytes, at);
                    let behind = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                    if behind == Some(&b':') {
                        analysis.token(start..at, TokenKind::Property);
                        let name = text
                            .get(start + 1..at.saturating_sub(1).max(start + 1))
                            .unwrap_or_default();
                        let below = open.last().and_then(|open| open.symbol);
                        let shown = open.len() <= DEPTH && analysis.symbols.len() < MOST;
                        let symbol = shown.then(|| symbol(&mut analysis, name, start..at, below));
                        key = symbol.map(|symbol| (name.to_owned(), start..at, symbol));
                    } else {
                        analysis.token(start..at, TokenKind::String);
                        end(&mut analysis, &mut key, at);
                    }
                    continue;
                }
                b'{' | b'[' => {
                    let symbol = key.take().map(|(_, _, symbol)| symbol);
                    open.push(Open { start, symbol });
                }
                b'}' | b']' => {
                    if let Some(Open { start, symbol }) = open.pop() {
                        analysis.folds.push(start..at + 1);
                        if let Some(symbol) = symbol {
                            analysis.symbols[symbol].range.end = at + 1;
                        }
                    }
                }
                b'-' | b'0'..=b'9' => {
                    at = word_end(bytes, at);
                    analysis.token(start..at, TokenKind::Number);
                    end(&mut analysis, &mut key, at);
                    continue;
                }
                b'a'..=b'z' => {
                    at = word_end(bytes, at);
                    analysis.token(start..at, TokenKind::EnumMember);
                    end(&mut analysis, &mut key, at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        analysis.sort();
        analysis
    }

    fn explain(
        &self,
        text: &str,
        analysis: &Analysis,
        offset: usize,
    ) -> Option<(Range<usize>, String)> {
        let (range, kind) = analysis.token_at(offset)?;
        let (_, word) = word_at(text, offset, "_-");
        let (_, said) = KEYS
            .iter()
            .find(|(key, _)| *key == word)
            .filter(|_| kind == TokenKind::Property)?;
        Some((range, format!("**`{word}`**: {said}")))
    }
}

/// A bracket that is open, and the symbol whose value it begins.
struct Open {
    start: usize,
    symbol: Option<usize>,
}

fn symbol(analysis: &mut Analysis, name: &str, word: Range<usize>, below: Option<usize>) -> usize {
    analysis.add(Symbol {
        name: name.to_owned(),
        kind: SymbolKind::Key,
        detail: String::new(),
        about: String::new(),
        word: word.clone(),
        range: word,
        part_of: None,
        below,
        listed: true,
        renamable: false,
    })
}

/// The value of a key ends.
fn end(analysis: &mut Analysis, key: &mut Option<(String, Range<usize>, usize)>, at: usize) {
    if let Some((_, _, symbol)) = key.take() {
        analysis.symbols[symbol].range.end = at;
    }
}

/// Behind a string that begins at a byte: its quote, the end of its line, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' if bytes.get(at + 1).is_some_and(|next| *next != b'\n') => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    let size = bytes[start..]
        .iter()
        .take_while(|byte| inside(byte))
        .count();
    start + size.max(1)
}
