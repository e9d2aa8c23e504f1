//! Tokens to statements, by recursive descent. After an error the rest of the line is skipped.

mod expressions;

use super::ast::{
    Array, Assignment, Direction, File, Lanes, Name, Port, PortOption, Pragma, Statement,
    StatementKind, Task,
};
use super::lexer::{Lexer, Stray, Token};
use super::{Lines, Span};
use crate::graph::ArrayKind;
use crate::rules::{Findings, syntax as rules};
use chipless_model::{Finding, Limits, Rule};

/// Calls inside calls, at most: no expression that anybody writes comes near.
const MAX_NESTING: u32 = 200;

/// Bytes that a statement, and a term of one, take in memory, about.
const STATEMENT_BYTES: u64 = 512;
const TERM_BYTES: u64 = 64;

/// Reads a text. Statements that cannot be read are left out of the tree, and findings say why.
pub fn parse<'a>(text: &'a [u8], lines: &Lines<'a>, limits: &Limits) -> (File<'a>, Vec<Finding>) {
    let mut findings = Findings::new(limits.findings);
    let room = u64::from(u32::MAX).min(limits.text_bytes);
    if text.len() as u64 > room {
        let message = format!(
            "the text has {} bytes, the limit text_bytes allows {room}",
            text.len()
        );
        findings.push(rules::LIMIT.at(chipless_model::Place::file(), message));
        return (
            File::default(),
            findings.done(&crate::rules::syntax::MORE_FINDINGS),
        );
    }
    let mut lexer = Lexer::new(text);
    let (token, span) = lexer.next();
    let mut parser = Parser {
        text,
        lines,
        lexer,
        token,
        span,
        last: Span::default(),
        findings,
        depth: 0,
        room: limits.transfers.min(limits.memory_bytes / TERM_BYTES),
    };
    let most = limits
        .declarations
        .min(limits.memory_bytes / STATEMENT_BYTES);
    let mut file = File::default();
    let mut ended = true;
    while parser.token != Token::End {
        if file.statements.len() as u64 >= most {
            let message = format!(
                "the file has more than {most} statements, as many as the limits declarations and memory_bytes allow"
            );
            parser.report(&rules::LIMIT, parser.span, message);
            break;
        }
        let start = parser.span;
        match parser.statement() {
            Ok(Some(kind)) => file.statements.push(Statement {
                kind,
                span: start.to(parser.last),
            }),
            Ok(None) => {}
            Err(Unreadable) => file.unreadable += 1,
        }
        ended = parser.end_of_statement();
    }
    if !ended && !file.statements.is_empty() {
        parser.report(
            &rules::FINAL_NEWLINE,
            parser.span,
            "the last line does not end with a newline",
        );
    }
    if let Some(span) = parser.lexer.carriage_return {
        parser.report(
            &rules::CARRIAGE_RETURN,
            span,
            "the lines end with carriage return and newline",
        );
    }
    if file.statements.is_empty() && !parser.findings.has_errors() {
        parser.report(&rules::EMPTY, Span::default(), "the file has no statement");
    }
    file.comments = parser.lexer.comments;
    (
        file,
        parser.findings.done(&crate::rules::syntax::MORE_FINDINGS),
    )
}

/// The statement cannot be read; a finding says why.
struct Unreadable;

type Parsed<T> = Result<T, Unreadable>;

struct Parser<'a, 'l> {
    text: &'a [u8],
    lines: &'l Lines<'a>,
    lexer: Lexer<'a>,
    token: Token<'a>,
    span: Span,
    /// Where the last token that was taken stands.
    last: Span,
    findings: Findings,
    depth: u32,
    /// Terms that the file may still have.
    room: u64,
}

impl<'a> Parser<'a, '_> {
    fn report(&mut self, rule: &'static Rule, span: Span, message: impl AsRef<str>) {
        let lines = self.lines;
        self.findings
            .report(rule, || lines.place(span), message.as_ref());
    }

    fn advance(&mut self) {
        self.last = self.span;
        (self.token, self.span) = self.lexer.next();
    }

    fn source(&self, span: Span) -> &'a str {
        std::str::from_utf8(
            self.text
                .get(span.start as usize..span.end as usize)
                .unwrap_or_default(),
        )
        .unwrap_or_default()
    }

    /// What stands here, for a message.
    fn found(&self) -> String {
        match self.token {
            Token::End => "the end of the file".to_owned(),
            Token::Newline => "the end of the line".to_owned(),
            _ => format!("`{}`", crate::rules::clip(self.source(self.span), 40)),
        }
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let (rule, message) = match self.token {
            Token::Stray(Stray::Slashes) => (
                &rules::CHARACTER,
                "`//` begins no comment here; `#` does".to_owned(),
            ),
            Token::Stray(Stray::OpenComment) => (
                &rules::CHARACTER,
                "the comment that `/*` begins does not end".to_owned(),
            ),
            Token::Stray(Stray::Minus) => (
                &rules::CHARACTER,
                format!(
                    "{} is negative: the language has no negative numbers; write the bits, 0xFF…",
                    self.found()
                ),
            ),
            Token::Stray(Stray::Number) => (
                &rules::NUMBER,
                format!("{} is no number of 64 bits", self.found()),
            ),
            Token::Stray(Stray::Byte(byte)) => {
                let shown = if byte.is_ascii_graphic() {
                    format!("`{}`", char::from(byte))
                } else {
                    format!("byte {byte:#04x}")
                };
                (
                    &rules::CHARACTER,
                    format!("expected {expected}, found {shown}, which the language does not use"),
                )
            }
            _ => (
                &rules::SYNTAX,
                format!("expected {expected}, found {}", self.found()),
            ),
        };
        self.report(rule, self.span, message);
        Err(Unreadable)
    }

    /// Skips what is left of the statement and what ends it; `false` where the file ends instead.
    fn end_of_statement(&mut self) -> bool {
        let ends = |token: &Token<'_>| {
            matches!(
                token,
                Token::Newline
                    | Token::Sign(b';')
                    | Token::Pragma
                    | Token::Separator(_)
                    | Token::End
            )
        };
        if !ends(&self.token) {
            while !matches!(self.token, Token::Newline | Token::End) {
                self.advance();
            }
        }
        match self.token {
            Token::Newline | Token::Sign(b';') => self.advance(),
            Token::End => return false,
            _ => {}
        }
        true
    }

    /// Checks that nothing of the statement is left.
    fn nothing_left(&mut self) -> Parsed<()> {
        match self.token {
            Token::Newline | Token::End | Token::Sign(b';') | Token::Pragma => Ok(()),
            _ => self.unexpected("the end of the statement"),
        }
    }

    fn sign(&mut self, sign: u8) -> bool {
        let here = self.token == Token::Sign(sign);
        if here {
            self.advance();
        }
        here
    }

    fn expect(&mut self, sign: u8) -> Parsed<()> {
        if self.sign(sign) {
            Ok(())
        } else {
            self.unexpected(&format!("`{}`", char::from(sign)))
        }
    }

    fn word(&mut self, expected: &str) -> Parsed<Name<'a>> {
        let Token::Word(text) = self.token else {
            return self.unexpected(expected);
        };
        let name = Name {
            text,
            span: self.span,
        };
        self.advance();
        Ok(name)
    }

    /// A new name: it must not be a word of the language.
    fn fresh(&mut self, expected: &str) -> Parsed<Name<'a>> {
        let name = self.word(expected)?;
        if keyword(name.text).is_some() || name.text.starts_with('$') {
            let what = if name.text.starts_with('$') {
                "belongs to registers and states"
            } else {
                "is a word of the language"
            };
            self.report(
                &rules::SYNTAX,
                name.span,
                format!("expected {expected}, found `{}`, which {what}", name.text),
            );
            return Err(Unreadable);
        }
        Ok(name)
    }

    fn integer(&mut self, expected: &str) -> Parsed<u64> {
        let Token::Integer(value) = self.token else {
            return self.unexpected(expected);
        };
        self.advance();
        Ok(value)
    }

    /// The colon behind a keyword, which the specification leaves out.
    fn colon(&mut self, what: &str, form: &str) {
        if !self.sign(b':') && matches!(self.token, Token::Word(_)) {
            let span = self.last;
            self.report(
                &rules::SPELLING,
                span,
                format!("the {what} has no colon; the real parser wants `{form}`"),
            );
        }
    }

    /// A count that fits 32 bits.
    fn count(&mut self, expected: &str) -> Parsed<u32> {
        let span = self.span;
        let value = self.integer(expected)?;
        u32::try_from(value).map_err(|_| {
            self.report(
                &rules::NUMBER,
                span,
                format!("expected {expected}, found {value}, which is too large"),
            );
            Unreadable
        })
    }

    fn statement(&mut self) -> Parsed<Option<StatementKind<'a>>> {
        let kind = match self.token {
            Token::Newline | Token::Sign(b';') => return Ok(None),
            Token::Separator(text) => {
                self.advance();
                return Ok(Some(StatementKind::Separator(text)));
            }
            Token::Pragma => StatementKind::Pragma(self.pragma()),
            Token::Word(text) => match keyword(text) {
                Some(Keyword::Array) => {
                    self.advance();
                    self.colon("array", "Array: name size type");
                    StatementKind::Array(self.array()?)
                }
                Some(Keyword::Port(direction, width)) => {
                    StatementKind::Port(self.port(direction, width)?)
                }
                Some(Keyword::Task) => StatementKind::Task(self.task()?),
                None => self.named(text)?,
            },
            _ => return self.unexpected("a declaration, a name or `----`"),
        };
        self.nothing_left()?;
        Ok(Some(kind))
    }

    /// A statement that begins with a name: an assignment, or an array as the specification writes it (`dma name size`).
    fn named(&mut self, text: &'a str) -> Parsed<StatementKind<'a>> {
        let first = self.word("a name")?;
        if ArrayKind::parse(text).is_some() && matches!(self.token, Token::Word(_)) {
            self.report(
                &rules::SPELLING,
                first.span,
                format!("the real parser wants `Array: name size {text}`"),
            );
            let name = self.fresh("the name of an array")?;
            let size = match self.token {
                Token::Integer(size) => {
                    self.advance();
                    Some(size)
                }
                _ => None,
            };
            return Ok(StatementKind::Array(Array {
                name,
                size,
                kind: Some(first),
            }));
        }
        if let Some(width) = odd_port(text)
            && matches!(self.token, Token::Sign(b':' | b'[') | Token::Word(_))
        {
            self.report(
                &rules::PORT_WIDTH,
                first.span,
                format!("`{text}`: ports are 8, 16, 32 or 64 bits wide, not {width}"),
            );
            return Err(Unreadable);
        }
        if text.starts_with('$') {
            self.report(
                &rules::SYNTAX,
                first.span,
                format!("`{text}` cannot be assigned; `#pragma {text} name` writes a register"),
            );
            return Err(Unreadable);
        }
        let mut names = vec![first];
        while self.sign(b',') {
            names.push(self.fresh("a name")?);
        }
        if self.token != Token::Sign(b'=') {
            return self.unexpected(if names.len() == 1 {
                "`=` or `,`"
            } else {
                "`=`"
            });
        }
        self.advance();
        Ok(StatementKind::Assignment(Assignment {
            names,
            value: self.expression()?,
        }))
    }

    fn array(&mut self) -> Parsed<Array<'a>> {
        let name = self.fresh("the name of an array")?;
        let size = match self.token {
            Token::Integer(_) => Some(self.integer("a size")?),
            _ => None,
        };
        let kind = match self.token {
            Token::Word(_) => Some(self.word("a type")?),
            _ => None,
        };
        Ok(Array { name, size, kind })
    }

    fn port(&mut self, direction: Direction, width: u32) -> Parsed<Port<'a>> {
        self.advance();
        // The specification writes the lanes behind the keyword once, and leaves out the colon.
        let before = self.lanes()?;
        if before != Lanes::Plain {
            self.report(
                &rules::SPELLING,
                self.last,
                "the real parser wants the lanes behind the name",
            );
        }
        self.colon("port", &format!("{}{width}: name", direction.keyword()));
        let name = self.fresh("the name of a port")?;
        let lanes = match self.lanes()? {
            Lanes::Plain => before,
            lanes => lanes,
        };
        let mut options = Vec::new();
        while matches!(self.token, Token::Word(_)) {
            let key = self.word("an option")?;
            let value = if self.sign(b'=') {
                Some(self.word("a name")?)
            } else {
                None
            };
            options.push(PortOption { key, value });
        }
        Ok(Port {
            direction,
            width,
            name,
            lanes,
            options,
        })
    }

    fn lanes(&mut self) -> Parsed<Lanes> {
        let start = self.span;
        if !self.sign(b'[') {
            return Ok(Lanes::Plain);
        }
        let first = self.count("a number of lanes")?;
        let mut entries = 1u32;
        // Older lists group lanes with blanks, colons or bars; what counts is how many there are.
        while !matches!(self.token, Token::Sign(b']')) {
            if matches!(self.token, Token::Sign(b',' | b':' | b'|')) {
                self.advance();
            }
            self.count("a lane or `]`")?;
            entries = entries.saturating_add(1);
        }
        self.expect(b']')?;
        Ok(match (entries, first) {
            (1, 0) => Lanes::Plain,
            (1, count) => Lanes::Count(count),
            (entries, _) => {
                self.report(
                    &rules::OLDER_FORM,
                    start.to(self.last),
                    format!("a list of {entries} lanes; today's form is `[{entries}]`"),
                );
                Lanes::List(entries)
            }
        })
    }

    fn pragma(&mut self) -> Pragma<'a> {
        self.advance();
        let start = self.span;
        if let Some(pragma) = self.known_pragma() {
            return pragma;
        }
        // Unknown forms are kept as they are: another tool may know them.
        while !matches!(self.token, Token::Newline | Token::End) {
            self.advance();
        }
        let span = start.to(self.last);
        let text = if span.start < span.end {
            self.source(span)
        } else {
            ""
        };
        self.report(
            &rules::PRAGMA_FORM,
            start,
            format!("expected `group KEY NUMBER`, `KEY=VALUE` or `$RegK NAME`, found `{text}`"),
        );
        Pragma::Other(text)
    }

    fn known_pragma(&mut self) -> Option<Pragma<'a>> {
        let Token::Word(text) = self.token else {
            return None;
        };
        let key = Name {
            text,
            span: self.span,
        };
        self.advance();
        if text.starts_with('$') {
            return self.word_here().map(|name| Pragma::Register(key, name));
        }
        if text == "group"
            && let Some(key) = self.word_here()
        {
            let Token::Integer(value) = self.token else {
                return Some(Pragma::Group(key, None));
            };
            self.advance();
            return Some(Pragma::Group(key, Some(value)));
        }
        let equals = self.sign(b'=');
        if !matches!(
            self.token,
            Token::Word(_) | Token::Integer(_) | Token::Float(_)
        ) {
            return None;
        }
        if !equals {
            self.report(
                &rules::SPELLING,
                key.span,
                format!("the real parser wants `#pragma {text}=VALUE`"),
            );
        }
        let value = Name {
            text: self.source(self.span),
            span: self.span,
        };
        self.advance();
        Some(Pragma::Port(key, value))
    }

    fn word_here(&mut self) -> Option<Name<'a>> {
        let Token::Word(text) = self.token else {
            return None;
        };
        let name = Name {
            text,
            span: self.span,
        };
        self.advance();
        Some(name)
    }

    fn task(&mut self) -> Parsed<Task<'a>> {
        let keyword = self.word("a keyword")?;
        self.expect(b'[')?;
        let head = self.raw(b']')?;
        self.expect(b':')?;
        self.expect(b'(')?;
        let body = self.raw(b')')?;
        Ok(Task {
            keyword,
            head,
            body,
        })
    }

    /// Everything up to a closing sign, blanks made uniform.
    fn raw(&mut self, close: u8) -> Parsed<String> {
        let mut text = String::new();
        while self.token != Token::Sign(close) {
            if matches!(
                self.token,
                Token::Newline | Token::End | Token::Stray(_) | Token::Pragma | Token::Separator(_)
            ) {
                return self.unexpected(&format!("`{}`", char::from(close)));
            }
            if self.token != Token::Sign(b',')
                && (text.ends_with(',')
                    || text.ends_with(|c: char| c.is_alphanumeric())
                        && !matches!(self.token, Token::Sign(_)))
            {
                text.push(' ');
            }
            text.push_str(self.source(self.span));
            self.advance();
        }
        self.advance();
        Ok(text)
    }
}

/// Words that begin a declaration.
enum Keyword {
    Array,
    Port(Direction, u32),
    Task,
}

fn keyword(text: &str) -> Option<Keyword> {
    match text {
        "Array" => return Some(Keyword::Array),
        "TaskDep" | "TaskProp" => return Some(Keyword::Task),
        _ => {}
    }
    let (direction, rest) = port_keyword(text)?;
    let width = match rest {
        "" | "Vec" | "64" => 64,
        "8" => 8,
        "16" => 16,
        "32" => 32,
        _ => return None,
    };
    Some(Keyword::Port(direction, width))
}

fn port_keyword(text: &str) -> Option<(Direction, &str)> {
    let directions = [Direction::Input, Direction::Output, Direction::Indirect];
    directions.into_iter().find_map(|direction| {
        text.strip_prefix(direction.keyword())
            .map(|rest| (direction, rest))
    })
}

/// The width of a port keyword that has one that there is not.
fn odd_port(text: &str) -> Option<&str> {
    port_keyword(text)
        .map(|(_, rest)| rest)
        .filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}
