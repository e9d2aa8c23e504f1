//! Bytes to tokens. Newlines are tokens, because they end statements; comments are set aside with their places.

use super::Span;
use super::ast::Comment;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name, with `$` in front or not.
    Word(&'a str),
    /// A whole number.
    Integer(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A sign of the language: one of ``:=,;()[]{}<>|&``.
    Sign(u8),
    /// `#pragma`.
    Pragma,
    /// Three dashes or more, and the rest of the line.
    Separator(&'a str),
    /// The end of a line.
    Newline,
    /// Something that the language does not have.
    Stray(Stray),
    /// The end of the file.
    End,
}

/// What the language does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stray {
    /// `//`, the comment of other languages.
    Slashes,
    /// `/*` without `*/`.
    OpenComment,
    /// `-` in front of a number.
    Minus,
    /// A number that does not fit 64 bits, or has letters in it.
    Number,
    /// Any other byte, or a run of the same.
    Byte(u8),
}

pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    pub(super) comments: Vec<Comment<'a>>,
    /// The first carriage return, if there is one.
    pub(super) carriage_return: Option<Span>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Lexer<'a> {
        // A byte order mark says nothing about UTF-8.
        let at = if text.starts_with(b"\xEF\xBB\xBF") {
            3
        } else {
            0
        };
        Lexer {
            text,
            at,
            comments: Vec::new(),
            carriage_return: None,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest
            .iter()
            .position(|byte| !wanted(*byte))
            .unwrap_or(rest.len());
    }

    fn span(&self, start: usize) -> Span {
        Span {
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn slice(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// What was read since `start`, which is ASCII.
    fn ascii(&self, start: usize) -> &'a str {
        std::str::from_utf8(self.slice(start)).unwrap_or_default()
    }

    /// The rest of the line, up to where it is no UTF-8.
    fn rest_of_line(&mut self, start: usize) -> &'a str {
        self.skip_while(|byte| byte != b'\n');
        let bytes = self.slice(start);
        let text = std::str::from_utf8(bytes).unwrap_or_else(|error| {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        });
        text.trim()
    }

    /// The next token and its place.
    pub(super) fn next(&mut self) -> (Token<'a>, Span) {
        loop {
            let start = self.at;
            if start >= self.text.len() {
                return (Token::End, self.span(start));
            }
            let byte = self.peek(0);
            self.at += 1;
            let token = match byte {
                b' ' | b'\t' | 0x0B | 0x0C => continue,
                b'\r' => {
                    let span = self.span(start);
                    self.carriage_return.get_or_insert(span);
                    continue;
                }
                b'\n' => Token::Newline,
                b'#' if self.text.get(start..).is_some_and(is_pragma) => {
                    self.at = start + b"#pragma".len();
                    Token::Pragma
                }
                b'#' => {
                    self.skip_while(|byte| byte != b'\n');
                    self.comments.push(Comment {
                        bytes: self.slice(start),
                        span: self.span(start),
                    });
                    continue;
                }
                b'/' if self.peek(0) == b'*' => {
                    let rest = self.text.get(self.at + 1..).unwrap_or_default();
                    let Some(length) = rest.windows(2).position(|pair| pair == b"*/") else {
                        self.at = self.text.len();
                        return (
                            Token::Stray(Stray::OpenComment),
                            Span {
                                start: start as u32,
                                end: start as u32 + 2,
                            },
                        );
                    };
                    self.at += 1 + length + 2;
                    self.comments.push(Comment {
                        bytes: self.slice(start),
                        span: self.span(start),
                    });
                    continue;
                }
                b'/' if self.peek(0) == b'/' => {
                    self.skip_while(|byte| byte != b'\n');
                    Token::Stray(Stray::Slashes)
                }
                b'-' | 0xE2 if self.dashes(start) => Token::Separator(self.rest_of_line(self.at)),
                b'-' if self.peek(0).is_ascii_digit() || self.peek(0) == b'.' => {
                    self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
                    Token::Stray(Stray::Minus)
                }
                b':' | b'=' | b',' | b';' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<'
                | b'>' | b'|' | b'&' => Token::Sign(byte),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                    self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                    match self.ascii(start) {
                        "$" => Token::Stray(Stray::Byte(b'$')),
                        word => Token::Word(word),
                    }
                }
                b'0'..=b'9' => self.number(start),
                b'.' if self.peek(0).is_ascii_digit() => self.number(start),
                b'\'' if self.closes_quote() => {
                    character(self.slice(start)).map_or(Token::Stray(Stray::Number), Token::Integer)
                }
                _ => {
                    // A run of the same byte is one thing to complain about; so are the bytes of one character.
                    if byte >= 0x80 {
                        self.skip_while(|other| other >= 0x80);
                    } else {
                        self.skip_while(|other| other == byte);
                    }
                    Token::Stray(Stray::Byte(byte))
                }
            };
            return (token, self.span(start));
        }
    }

    /// Whether three dashes or more begin here; the specification's own `—-` counts. Steps over them.
    fn dashes(&mut self, start: usize) -> bool {
        let mut at = start;
        let mut weight = 0;
        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            if rest.starts_with(b"-") {
                (at, weight) = (at + 1, weight + 1);
            } else if rest.starts_with("—".as_bytes()) || rest.starts_with("–".as_bytes()) {
                (at, weight) = (at + 3, weight + 2);
            } else {
                break;
            }
        }
        if weight < 3 {
            return false;
        }
        self.at = at;
        true
    }

    /// Whether a character constant that has begun ends on this line. Steps over it.
    fn closes_quote(&mut self) -> bool {
        let mut at = self.at;
        loop {
            match self.text.get(at..).unwrap_or_default() {
                [b'\'', ..] => break,
                [b'\\', next, ..] if *next != b'\n' => at += 2,
                [byte, ..] if *byte != b'\n' => at += 1,
                _ => return false,
            }
        }
        self.at = at + 1;
        true
    }

    fn number(&mut self, start: usize) -> Token<'a> {
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let exponent = |text: &str| {
            text.ends_with(['e', 'E']) && !text.starts_with("0x") && !text.starts_with("0X")
        };
        if exponent(self.ascii(start)) && matches!(self.peek(0), b'+' | b'-') {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        }
        let text = self.ascii(start);
        integer(text)
            .map(Token::Integer)
            .or_else(|| float(text).map(Token::Float))
            .unwrap_or(Token::Stray(Stray::Number))
    }
}

fn is_pragma(text: &[u8]) -> bool {
    text.strip_prefix(b"#pragma")
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// The number of a character constant of C, with its quotes: one ASCII character, or an escape for one.
fn character(quoted: &[u8]) -> Option<u64> {
    let inner = quoted.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let code = match inner {
        [byte] => *byte,
        [b'\\', escape] if !escape.is_ascii_digit() => match escape {
            b'a' => 7,
            b'b' => 8,
            b't' => 9,
            b'n' => 10,
            b'v' => 11,
            b'f' => 12,
            b'r' => 13,
            b'\\' | b'\'' | b'"' | b'?' => *escape,
            _ => return None,
        },
        [b'\\', b'x', digits @ ..] if digits.iter().all(u8::is_ascii_hexdigit) => {
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        }
        [b'\\', digits @ ..] if digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) => {
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?
        }
        _ => return None,
    };
    // Whether larger ones are negative depends on the compiler.
    code.is_ascii().then(|| code.into())
}

/// A whole number as C writes it: decimal, hexadecimal or octal, with a suffix or not.
fn integer(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    if let Some(hexadecimal) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        return u64::from_str_radix(hexadecimal, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}

/// A number with a fraction or an exponent as C writes it, with a suffix or not.
fn float(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['f', 'F', 'l', 'L']).unwrap_or(text);
    (digits.contains(['.', 'e', 'E']) && !digits.starts_with("0x"))
        .then(|| digits.parse().ok())
        .flatten()
        .filter(|value: &f64| value.is_finite())
}
