//! What an editor's language is here: a kind of text, and what can be said about one.

use crate::analysis::Analysis;
use chipless::{Checked, Options};
use chipless_model::Finding;
use std::ops::Range;

/// A suggestion for what is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The text.
    pub label: String,
    /// What it is, for its picture.
    pub kind: SuggestionKind,
    /// In a few words.
    pub detail: String,
}

/// What a suggestion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuggestionKind {
    /// A word of the language.
    Keyword,
    /// A name that the text defines.
    Variable,
    /// An operation.
    Function,
    /// A key.
    Property,
    /// One of several values.
    Value,
}

impl Suggestion {
    /// A suggestion.
    pub fn new(
        label: impl Into<String>,
        kind: SuggestionKind,
        detail: impl Into<String>,
    ) -> Suggestion {
        Suggestion {
            label: label.into(),
            kind,
            detail: detail.into(),
        }
    }
}

/// A kind of text.
pub trait Language: Sync {
    /// Its name, as editors call it.
    fn id(&self) -> &'static str;

    /// What people call it.
    fn name(&self) -> &'static str;

    /// Endings of its files. Several languages may share one: then the content decides.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a text looks like it.
    fn recognize(&self, text: &str) -> bool;

    /// What is wrong with a text that no target reads; `None` leaves it to the targets.
    fn check(&self, _name: &str, _text: &str, _options: &Options) -> Option<Checked> {
        None
    }

    /// What a text says.
    fn analyse(&self, text: &str) -> Analysis;

    /// What there is to say about a word that is no name of the text, in Markdown.
    fn explain(
        &self,
        _text: &str,
        _analysis: &Analysis,
        _offset: usize,
    ) -> Option<(Range<usize>, String)> {
        None
    }

    /// What could stand at a place.
    fn complete(&self, _text: &str, _analysis: &Analysis, _offset: usize) -> Vec<Suggestion> {
        Vec::new()
    }

    /// The text in its canonical form; `None` where it cannot be read, or has none.
    fn format(&self, _text: &str) -> Option<String> {
        None
    }

    /// What is wrong with a name that somebody wants to give.
    fn refuse_name(&self, _symbol: &str, name: &str) -> Option<String> {
        let mut characters = name.chars();
        let good = characters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        (!good).then(|| {
            format!("expected a name of letters, digits and underscores, found \"{name}\"")
        })
    }
}

/// The word that a byte is in, or behind: letters, digits and the given signs.
pub fn word_at<'t>(text: &'t str, offset: usize, signs: &str) -> (Range<usize>, &'t str) {
    let offset = text.floor_char_boundary(offset);
    let inside = |c: char| c.is_alphanumeric() || signs.contains(c);
    let (before, behind) = text.split_at(offset);
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| inside(*c))
        .last()
        .map_or(offset, |(at, _)| at);
    let end = offset + behind.find(|c: char| !inside(c)).unwrap_or(behind.len());
    (start..end, &text[start..end])
}

/// The result for a text that no target reads.
pub(crate) fn checked(findings: Vec<Finding>) -> Checked {
    Checked {
        is_readable: !findings.iter().any(Finding::is_error),
        findings,
        ..Checked::default()
    }
}
