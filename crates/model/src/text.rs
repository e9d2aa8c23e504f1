//! Lines and columns of a text.

use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of a line beyond which its columns are counted in bytes: no editor shows such lines, and counting characters would take long.
const LONG: usize = 8 << 10;

/// A count with its noun: `1 task`, `2 tasks`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// A text as it stands in HTML or SVG, between tags or in an attribute: control characters, which XML does not have, are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push(c),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// A text and where its lines begin.
#[derive(Clone, Debug, Default)]
pub struct Text<'a> {
    text: &'a str,
    /// Found when they are asked for: a text that is in order is never asked.
    starts: OnceLock<Vec<usize>>,
}

impl<'a> Text<'a> {
    /// A text.
    pub fn new(text: &'a str) -> Text<'a> {
        Text {
            text,
            starts: OnceLock::new(),
        }
    }

    fn starts(&self) -> &[usize] {
        self.starts.get_or_init(|| {
            std::iter::once(0)
                .chain(self.text.match_indices('\n').map(|(at, _)| at + 1))
                .collect()
        })
    }

    /// The text.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// The last character boundary up to a byte; the end of the text for what lies behind it.
    pub fn boundary(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at)
    }

    /// Line and column of a byte, both counted from 1; columns in characters. What lies behind the end is the end.
    pub fn position(&self, at: usize) -> (usize, usize) {
        let at = self.boundary(at);
        let line = self
            .starts()
            .partition_point(|start| *start <= at)
            .saturating_sub(1);
        let start = self.starts().get(line).copied().unwrap_or(0);
        let column = if at - start > LONG {
            at - start
        } else {
            self.text[start..at].chars().count()
        };
        (line + 1, column + 1)
    }

    /// The bytes of a line, counted from 0, without its end.
    pub fn line(&self, index: usize) -> Option<Range<usize>> {
        let start = *self.starts().get(index)?;
        let end = self
            .starts()
            .get(index + 1)
            .map_or(self.text.len(), |next| next - 1);
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_lines_and_columns() {
        let text = Text::new("ä: 1\nb: ö\n\n");
        let at = |what: &str| text.position(text.as_str().find(what).expect("there"));
        assert_eq!(
            (at("ä"), at(":"), at("b"), at("ö")),
            ((1, 1), (1, 2), (2, 1), (2, 4))
        );
        assert_eq!(text.position(1), (1, 1), "inside a character");
        assert_eq!((text.position(12), text.position(99)), ((3, 1), (4, 1)));
        assert_eq!(
            (text.line(1), text.line(3), text.line(4)),
            (Some(6..11), Some(13..13), None)
        );
        assert_eq!(Text::default().position(3), (1, 1));
    }

    #[test]
    fn columns_of_long_lines_are_bytes() {
        let long = "ä".repeat(LONG);
        assert_eq!(Text::new(&long).position(LONG), (1, LONG / 2 + 1));
        assert_eq!(Text::new(&long).position(LONG + 2), (1, LONG + 3));
    }
}
