//! The text of a DFG: tokens, the tree of statements, and back to text.
//!
//! Everything borrows from the file and knows its place in it. Reading never fails: what is wrong becomes a finding, the statement is
//! skipped, and the next line gets its chance.

pub mod ast;
mod lexer;
mod parser;
mod print;

pub use parser::parse;
pub(crate) use print::print;

use chipless_model::Place;

/// A range of bytes of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    /// From the start of this one to the end of the other.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end.max(self.start),
        }
    }
}

/// Where the lines of a file begin.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a [u8],
    starts: Vec<u32>,
}

impl<'a> Lines<'a> {
    /// Finds the lines of a text.
    pub fn new(text: &'a [u8]) -> Lines<'a> {
        let breaks = text
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at as u32 + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// Line and column of a byte, from 1; columns count characters.
    pub fn position(&self, offset: u32) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied()
            .unwrap_or(0);
        let before = self
            .text
            .get(start as usize..offset as usize)
            .unwrap_or_default();
        (
            line,
            before.iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1,
        )
    }

    /// The place of a span, for a finding.
    pub fn place(&self, span: Span) -> Place {
        let (line, column) = self.position(span.start);
        let bytes = Place::bytes(
            span.start.into(),
            span.end.saturating_sub(span.start).into(),
        );
        Place {
            position: Some((line as u32, column as u32)),
            ..bytes
        }
    }
}
