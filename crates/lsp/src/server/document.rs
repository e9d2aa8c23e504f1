//! An open document in one of its versions.

use crate::analysis::Analysis;
use crate::check::check_as;
use crate::language::Language;
use crate::languages::language;
use crate::text::{Encoding, Position, Text};
use chipless::{Checked, Options};
use lsp_types::{DidChangeTextDocumentParams, TextDocumentItem, Uri};
use std::ops::Range;
use std::sync::OnceLock;

/// A document in one version. What is found in it is found once.
pub(super) struct Document {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: Text,
    pub(super) language: &'static dyn Language,
    /// The language as the editor calls it.
    id: String,
    /// Its path, or what comes nearest to one.
    pub(super) name: String,
    analysis: OnceLock<Analysis>,
    checked: OnceLock<Checked>,
}

impl Document {
    pub(super) fn open(item: TextDocumentItem) -> Document {
        let name = path(item.uri.as_str());
        Document::new(
            item.uri,
            item.version,
            item.language_id,
            name,
            Text::new(item.text),
        )
    }

    fn new(uri: Uri, version: i32, id: String, name: String, text: Text) -> Document {
        let language = language(&id, &name, text.as_str());
        Document {
            uri,
            version,
            text,
            language,
            id,
            name,
            analysis: OnceLock::new(),
            checked: OnceLock::new(),
        }
    }

    /// The next version: changes are made one after the other.
    pub(super) fn changed(
        &self,
        params: DidChangeTextDocumentParams,
        encoding: Encoding,
    ) -> Document {
        let mut text: Option<Text> = None;
        for change in params.content_changes {
            text = Some(match change.range {
                None => Text::new(change.text),
                Some(range) => {
                    let old = text.as_ref().unwrap_or(&self.text);
                    let range = bytes(old, range, encoding);
                    old.replaced(range, &change.text)
                }
            });
        }
        let text = text.unwrap_or_else(|| self.text.clone());
        let version = params.text_document.version;
        Document::new(
            self.uri.clone(),
            version,
            self.id.clone(),
            self.name.clone(),
            text,
        )
    }

    pub(super) fn analysis(&self) -> &Analysis {
        self.analysis
            .get_or_init(|| self.language.analyse(self.text.as_str()))
    }

    /// What is wrong with it.
    pub(super) fn checked(&self, options: &Options) -> &Checked {
        self.checked.get_or_init(|| {
            check_as(self.language, &self.name, self.text.as_str(), options).unwrap_or_default()
        })
    }

    /// The byte of a position.
    pub(super) fn offset(&self, position: lsp_types::Position, encoding: Encoding) -> usize {
        offset(&self.text, position, encoding)
    }

    /// A range of bytes as the client counts it.
    pub(super) fn range(&self, range: &Range<usize>, encoding: Encoding) -> lsp_types::Range {
        let position = |at| {
            let Position { line, column } = self.text.position(at, encoding);
            lsp_types::Position::new(line, column)
        };
        lsp_types::Range::new(position(range.start), position(range.end))
    }
}

fn offset(text: &Text, position: lsp_types::Position, encoding: Encoding) -> usize {
    let position = Position {
        line: position.line,
        column: position.character,
    };
    text.offset(position, encoding)
}

pub(super) fn bytes(text: &Text, range: lsp_types::Range, encoding: Encoding) -> Range<usize> {
    let start = offset(text, range.start, encoding);
    start..offset(text, range.end, encoding).max(start)
}

/// The path of a `file:` address; other addresses as they are.
fn path(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else {
        return uri.to_owned();
    };
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let [byte, others @ ..] = left {
        let hex = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        match (byte, others) {
            (b'%', [high, low, behind @ ..]) if hex(&[*high, *low]).is_some() => {
                bytes.extend(hex(&[*high, *low]));
                left = behind;
            }
            _ => {
                bytes.push(*byte);
                left = others;
            }
        }
    }
    let path = String::from_utf8_lossy(&bytes).into_owned();
    // `/C:/folder` on Windows.
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path[1..].to_owned(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_become_paths() {
        assert_eq!(super::path("file:///a/b%20c%C3%A9.dfg"), "/a/b cé.dfg");
        assert_eq!(super::path("file:///C%3A/x.dfg"), "C:/x.dfg");
        assert_eq!(super::path("file:///100%"), "/100%");
        assert_eq!(super::path("untitled:Untitled-1"), "untitled:Untitled-1");
    }
}
