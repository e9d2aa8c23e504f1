//! What a text says, as far as an editor wants to know it: names, where they stand, and what belongs together.

use crate::text::Edit;
use std::collections::HashSet;
use std::ops::Range;

/// What a name stands for, in the protocol's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A place in a memory.
    Array,
    /// What comes in or goes out.
    Port,
    /// A value.
    Variable,
    /// Something that is done.
    Function,
    /// A part of the file.
    Section,
    /// A key of a mapping.
    Key,
    /// Something that happens: a sequence, a semaphore.
    Event,
}

/// A name and what it stands for.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub kind: SymbolKind,
    /// In a few words: `Input64, 4 lanes`.
    pub detail: String,
    /// More about it, in Markdown.
    pub about: String,
    /// Where the name is defined.
    pub word: Range<usize>,
    /// All that is said about it there.
    pub range: Range<usize>,
    /// The symbol that it is a part of: the port of a lane.
    pub part_of: Option<usize>,
    /// The symbol below which an outline shows it.
    pub below: Option<usize>,
    /// Whether an outline shows it.
    pub listed: bool,
    /// Whether it can have another name.
    pub renamable: bool,
}

/// A place where a name stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The word.
    pub word: Range<usize>,
    /// What it stands for.
    pub symbol: usize,
    /// Whether it is declared there.
    pub defines: bool,
}

/// What a word is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word of the language.
    Keyword,
    /// A type.
    Type,
    /// A value.
    Variable,
    /// A port.
    Parameter,
    /// An operation.
    Function,
    /// A number.
    Number,
    /// A text.
    String,
    /// A remark.
    Comment,
    /// A key.
    Property,
    /// One of several possible values.
    EnumMember,
    /// A pragma.
    Macro,
    /// A part of the file.
    Namespace,
}

impl TokenKind {
    /// All of them with the protocol's names, in the order of their numbers.
    pub const ALL: [(TokenKind, &'static str); 12] = [
        (TokenKind::Keyword, "keyword"),
        (TokenKind::Type, "type"),
        (TokenKind::Variable, "variable"),
        (TokenKind::Parameter, "parameter"),
        (TokenKind::Function, "function"),
        (TokenKind::Number, "number"),
        (TokenKind::String, "string"),
        (TokenKind::Comment, "comment"),
        (TokenKind::Property, "property"),
        (TokenKind::EnumMember, "enumMember"),
        (TokenKind::Macro, "macro"),
        (TokenKind::Namespace, "namespace"),
    ];
}

/// What a text says.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Names, in the order of their definitions.
    pub symbols: Vec<Symbol>,
    /// Where they stand, sorted once all are there.
    pub occurrences: Vec<Occurrence>,
    /// Coloured words, sorted once all are there.
    pub tokens: Vec<(Range<usize>, TokenKind)>,
    /// Ranges that can be folded.
    pub folds: Vec<Range<usize>>,
    /// Remarks that an editor shows behind a byte.
    pub hints: Vec<(usize, String)>,
    /// Symbols that must be renamed together, each pointing to another one of its set or to itself.
    together: Vec<usize>,
}

impl Analysis {
    /// Adds a symbol.
    pub fn add(&mut self, symbol: Symbol) -> usize {
        self.together.push(self.symbols.len());
        self.symbols.push(symbol);
        self.symbols.len() - 1
    }

    /// Adds a place where a symbol stands.
    pub fn occurs(&mut self, symbol: usize, word: Range<usize>, defines: bool) {
        self.occurrences.push(Occurrence {
            word,
            symbol,
            defines,
        });
    }

    /// Adds a coloured word.
    pub fn token(&mut self, range: Range<usize>, kind: TokenKind) {
        self.tokens.push((range, kind));
    }

    /// Brings everything into the order of the text.
    pub fn sort(&mut self) {
        self.occurrences.sort_by_key(|o| (o.word.start, o.word.end));
        self.tokens
            .sort_by_key(|(range, _)| (range.start, range.end));
        self.folds.sort_by_key(|range| (range.start, range.end));
        self.hints.sort_by_key(|(at, _)| *at);
        let mut end = 0;
        self.tokens.retain(|(range, _)| {
            let good = range.start >= end && range.end > range.start;
            end = if good { range.end } else { end };
            good
        });
    }

    fn set(&self, mut symbol: usize) -> usize {
        while self.together[symbol] != symbol {
            symbol = self.together[symbol];
        }
        symbol
    }

    /// Makes two symbols have their names together.
    pub fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.set(one), self.set(other));
        let (first, last) = (one.min(other), one.max(other));
        self.together[last] = first;
    }

    /// The occurrence that a byte is in, or behind.
    pub fn at(&self, offset: usize) -> Option<&Occurrence> {
        let behind = self.occurrences.partition_point(|o| o.word.start <= offset);
        let before = self.occurrences.get(..behind)?;
        let near = before.iter().rev().take(8);
        let found = near.clone().find(|o| o.word.contains(&offset));
        found.or_else(|| near.clone().find(|o| o.word.end == offset))
    }

    /// The coloured word that a byte is in, or behind.
    pub fn token_at(&self, offset: usize) -> Option<(Range<usize>, TokenKind)> {
        let behind = self
            .tokens
            .partition_point(|(range, _)| range.start <= offset);
        let (range, kind) = self.tokens.get(behind.checked_sub(1)?)?;
        (offset <= range.end).then(|| (range.clone(), *kind))
    }

    /// Every place of a symbol; of a port those of its lanes as well. A place that declares comes first on its line.
    pub fn references(&self, symbol: usize) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().filter(move |o| {
            o.symbol == symbol
                || self
                    .symbols
                    .get(o.symbol)
                    .is_some_and(|s| s.part_of == Some(symbol))
        })
    }

    /// Where a symbol is defined.
    pub fn definition(&self, symbol: usize) -> Option<Range<usize>> {
        let symbol = self.symbols.get(symbol)?;
        let owner = symbol.part_of.and_then(|owner| self.symbols.get(owner));
        Some(owner.unwrap_or(symbol).word.clone())
    }

    /// The part of the names that symbols which are renamed together share, and the ranges of that part at every place; `None` where there
    /// is a place that does not bear it.
    pub fn stem(&self, text: &str, symbol: usize) -> Option<(String, Vec<Range<usize>>)> {
        let set = self.set(symbol);
        let members: HashSet<usize> = (0..self.symbols.len())
            .filter(|s| self.set(*s) == set)
            .collect();
        let own = self
            .symbols
            .iter()
            .enumerate()
            .filter(|(s, _)| members.contains(s));
        if own.clone().any(|(_, symbol)| !symbol.renamable) {
            return None;
        }
        let stem = own
            .map(|(_, symbol)| &symbol.name)
            .min_by_key(|name| name.len())?;
        let mut ranges = Vec::new();
        for place in self
            .occurrences
            .iter()
            .filter(|o| members.contains(&o.symbol))
        {
            let word = text.get(place.word.clone())?;
            let start = place.word.start + word.find(stem.as_str())?;
            ranges.push(start..start + stem.len());
        }
        ranges.sort_by_key(|range| range.start);
        ranges.dedup();
        Some((stem.clone(), ranges))
    }

    /// The edits that give a symbol, and what must keep pace with it, another name.
    pub fn rename(&self, text: &str, symbol: usize, name: &str) -> Option<Vec<Edit>> {
        let (_, ranges) = self.stem(text, symbol)?;
        Some(
            ranges
                .into_iter()
                .map(|range| Edit::replace(range, name))
                .collect(),
        )
    }
}
