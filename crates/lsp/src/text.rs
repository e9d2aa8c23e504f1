//! A text, its lines, and positions as editors count them.

use std::ops::Range;

/// How the client counts within a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Code units of 16 bits, the protocol's default.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// How much of a line this text is.
    fn length(self, text: &str) -> usize {
        match self {
            Encoding::Utf8 => text.len(),
            Encoding::Utf16 => text.chars().map(char::len_utf16).sum(),
            Encoding::Utf32 => text.chars().count(),
        }
    }
}

/// Line and column, both counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in units of an [`Encoding`].
    pub column: u32,
}

/// A text and where its lines begin.
#[derive(Clone, Debug, Default)]
pub struct Text {
    string: String,
    starts: Vec<usize>,
}

impl Text {
    /// Finds the lines of a text: they end with a newline, a carriage return or both.
    pub fn new(string: String) -> Text {
        let bytes = string.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(at, byte)| {
            **byte == b'\n' || **byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')
        });
        let starts = std::iter::once(0)
            .chain(ends.map(|(at, _)| at + 1))
            .collect();
        Text { string, starts }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.string
    }

    /// The bytes of a line, counted from 0, without its end; that of the last line for what lies behind it.
    pub fn line(&self, index: usize) -> Range<usize> {
        let last = self.starts.len().saturating_sub(1);
        let start = self.starts.get(index.min(last)).copied().unwrap_or(0);
        let end = self.starts.get(index.min(last) + 1).copied();
        let end = end.unwrap_or(self.string.len());
        let line = self.string.get(start..end).unwrap_or_default();
        start..start + line.trim_end_matches(['\n', '\r']).len()
    }

    /// The line that a byte is in, from 0.
    pub fn line_of(&self, at: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= at)
            .saturating_sub(1)
    }

    /// Lines of the text: one more than it has line ends.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }

    /// Where a byte is. Inside of a character is its start; behind the end is the end.
    pub fn position(&self, at: usize, encoding: Encoding) -> Position {
        let at = self.string.floor_char_boundary(at);
        let line = self.line_of(at);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = self.string.get(start..at).unwrap_or_default();
        Position {
            line: line as u32,
            column: encoding.length(before) as u32,
        }
    }

    /// The byte of a position. Behind the end of a line is its end; behind the last line is the end of the text.
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        if line >= self.starts.len() {
            return self.string.len();
        }
        let Range { start, end } = self.line(line);
        let text = self.string.get(start..end).unwrap_or_default();
        let mut column = 0;
        for (at, character) in text.char_indices() {
            if column >= position.column as usize {
                return start + at;
            }
            column += encoding.length(character.encode_utf8(&mut [0; 4]));
        }
        end
    }

    /// The text with a range of it replaced.
    #[must_use]
    pub fn replaced(&self, range: Range<usize>, with: &str) -> Text {
        let start = self.string.floor_char_boundary(range.start);
        let end = self.string.floor_char_boundary(range.end).max(start);
        let mut string = String::with_capacity(self.string.len() + with.len());
        string.push_str(&self.string[..start]);
        string.push_str(with);
        string.push_str(&self.string[end..]);
        Text::new(string)
    }
}

/// A range of bytes of a text and what stands there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go.
    pub range: Range<usize>,
    /// What comes.
    pub text: String,
}

impl Edit {
    /// Replaces a range.
    pub fn replace(range: Range<usize>, text: impl Into<String>) -> Edit {
        Edit {
            range,
            text: text.into(),
        }
    }

    /// Puts a text in front of a byte.
    pub fn insert(at: usize, text: impl Into<String>) -> Edit {
        Edit::replace(at..at, text)
    }

    /// Takes a range away.
    pub fn delete(range: Range<usize>) -> Edit {
        Edit::replace(range, "")
    }
}

/// A text with edits made; `None` where two of them touch the same bytes or one is outside of the text.
pub fn edited(text: &str, edits: &[Edit]) -> Option<String> {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
    sorted.dedup();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in sorted {
        if edit.range.start < at || edit.range.end < edit.range.start {
            return None;
        }
        out.push_str(text.get(at..edit.range.start)?);
        text.get(edit.range.clone())?;
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// The one edit that makes `new` of `old`: what both begin and end with stays.
pub fn difference(old: &str, new: &str) -> Option<Edit> {
    if old == new {
        return None;
    }
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let start = old
        .floor_char_boundary(same)
        .min(new.floor_char_boundary(same));
    let (rest, other) = (&old[start..], &new[start..]);
    let same = rest
        .bytes()
        .rev()
        .zip(other.bytes().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let mut end = same;
    while !(rest.is_char_boundary(rest.len() - end) && other.is_char_boundary(other.len() - end)) {
        end -= 1;
    }
    Some(Edit::replace(
        start..old.len() - end,
        &other[..other.len() - end],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_as_the_client_does() {
        let text = Text::new("a\u{1D11E}é\r\nb\rc".to_owned());
        let at = |offset, encoding| {
            let position = text.position(offset, encoding);
            (position.line, position.column)
        };
        assert_eq!(at(7, Encoding::Utf16), (0, 4));
        assert_eq!(at(7, Encoding::Utf8), (0, 7));
        assert_eq!(at(7, Encoding::Utf32), (0, 3));
        assert_eq!(at(3, Encoding::Utf16), (0, 1), "inside a character");
        assert_eq!(at(9, Encoding::Utf16), (1, 0));
        assert_eq!(
            at(11, Encoding::Utf16),
            (2, 0),
            "a carriage return ends a line"
        );
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for offset in [0, 1, 5, 7, 9, 10, 11, 12] {
                let position = text.position(offset, encoding);
                assert_eq!(text.offset(position, encoding), offset);
            }
        }
        let far = Position {
            line: 0,
            column: 99,
        };
        assert_eq!(text.offset(far, Encoding::Utf16), 7);
        assert_eq!(
            text.offset(Position { line: 9, column: 0 }, Encoding::Utf16),
            12
        );
    }

    #[test]
    fn edits_are_made_together_or_not_at_all() {
        let make = |edits: &[Edit]| edited("abcdef", edits);
        let edits = [
            Edit::replace(4..5, "E"),
            Edit::delete(0..2),
            Edit::insert(4, "-"),
        ];
        assert_eq!(make(&edits).as_deref(), Some("cd-Ef"));
        assert_eq!(make(&[Edit::delete(0..3), Edit::delete(2..4)]), None);
        assert_eq!(make(&[Edit::delete(4..9)]), None);
    }

    #[test]
    fn a_difference_is_small() {
        for (old, new) in [
            ("abc", "abXc"),
            ("", "x"),
            ("aé", "aè"),
            ("aa", "aaa"),
            ("x", ""),
        ] {
            let edit = difference(old, new).expect("they differ");
            assert_eq!(
                edited(old, std::slice::from_ref(&edit)).as_deref(),
                Some(new)
            );
        }
        assert_eq!(difference("abc", "abXc"), Some(Edit::insert(2, "X")));
        assert_eq!(difference("same", "same"), None);
    }
}
