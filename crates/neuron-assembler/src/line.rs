//! One line of assembler text, read from left to right.

use crate::AssembleError;
use std::str::FromStr;

pub(crate) struct Line<'a> {
    text: &'a str,
    number: usize,
    at: usize,
    /// Where the word that was taken last starts.
    word_at: usize,
}

impl<'a> Line<'a> {
    /// A line without its comment, which starts at a semicolon.
    pub(crate) fn new(text: &'a str, number: usize) -> Line<'a> {
        let text = text
            .split_once(';')
            .map_or(text, |(code, _)| code)
            .trim_end();
        let mut line = Line {
            text,
            number,
            at: 0,
            word_at: 0,
        };
        line.skip();
        line
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Its number, from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Where the next word starts, for [`back_to`](Line::back_to).
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    pub(crate) fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    pub(crate) fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    fn skip(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The error that something else was expected here.
    pub(crate) fn expected(&self, what: &str) -> AssembleError {
        let rest = self.rest();
        let is_mark = |c: char| chipless_neuron::stream::MARKS.contains(c);
        // A word, or the marks that stand in its place.
        let starts_with_mark = rest.starts_with(is_mark);
        let size = rest.find(|c: char| c.is_whitespace() || is_mark(c) != starts_with_mark);
        let found: String = rest[..size.unwrap_or(rest.len())]
            .chars()
            .take(40)
            .collect();
        if found.is_empty() {
            return self.error(format!("expected {what}, found the end of the line"));
        }
        self.error(format!("expected {what}, found `{found}`"))
    }

    /// An error at the word that was taken last.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> AssembleError {
        AssembleError {
            column: self.word_at + 1,
            ..self.error(message)
        }
    }

    /// An error at this place.
    pub(crate) fn error(&self, message: impl Into<String>) -> AssembleError {
        AssembleError {
            line: self.number,
            column: self.at + 1,
            message: message.into(),
        }
    }

    /// Takes this text if it stands here.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let here = self.rest().starts_with(text);
        if here {
            self.at += text.len();
            self.skip();
        }
        here
    }

    pub(crate) fn expect(&mut self, text: &str) -> Result<(), AssembleError> {
        if self.eat(text) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{text}`")))
        }
    }

    pub(crate) fn end(&self) -> Result<(), AssembleError> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.expected("the end of the line"))
        }
    }

    /// Letters, digits and whatever else is no mark.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a str, AssembleError> {
        let rest = self.rest();
        let size = rest
            .find(|c: char| c.is_whitespace() || chipless_neuron::stream::MARKS.contains(c))
            .unwrap_or(rest.len());
        if size == 0 {
            return Err(self.expected(what));
        }
        self.word_at = self.at;
        self.at += size;
        self.skip();
        Ok(&rest[..size])
    }

    /// The path of a member: everything up to a space.
    pub(crate) fn path(&mut self, what: &str) -> Result<&'a str, AssembleError> {
        let rest = self.rest();
        let size = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if size == 0 {
            return Err(self.expected(what));
        }
        self.word_at = self.at;
        self.at += size;
        self.skip();
        Ok(&rest[..size])
    }

    /// A whole number, decimal or hexadecimal, perhaps negative.
    pub(crate) fn integer<T: TryFrom<i128>>(&mut self, what: &str) -> Result<T, AssembleError> {
        let start = self.at;
        let word = self.word(what)?;
        let (negative, digits) = word
            .strip_prefix('-')
            .map_or((false, word), |digits| (true, digits));
        let value = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let value = value
            .ok()
            .filter(|_| !digits.starts_with(['+', '-']) && !digits.starts_with("0x-"));
        let value = value
            .map(|v| if negative { -v } else { v })
            .and_then(|v| T::try_from(v).ok());
        value.ok_or_else(|| {
            self.at = start;
            self.expected(what)
        })
    }

    /// Anything that can be parsed from a word.
    pub(crate) fn parse<T: FromStr>(&mut self, what: &str) -> Result<T, AssembleError> {
        let start = self.at;
        // A float may hold a sign in its exponent, which is a mark elsewhere.
        let rest = self.rest();
        let size = rest
            .find(|c: char| c.is_whitespace() || ",]".contains(c))
            .unwrap_or(rest.len());
        self.at += size;
        self.skip();
        rest[..size].parse().map_err(|_| {
            self.at = start;
            self.expected(what)
        })
    }

    /// `[a, b, c]`.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, AssembleError>,
    ) -> Result<Vec<T>, AssembleError> {
        self.expect("[")?;
        let mut items = Vec::new();
        if self.eat("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(",") {
                self.expect("]")?;
                return Ok(items);
            }
        }
    }

    /// `a,b,c` without brackets.
    pub(crate) fn series<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, AssembleError>,
    ) -> Result<Vec<T>, AssembleError> {
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }
}
