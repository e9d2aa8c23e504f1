//! The canonical form: one statement on a line, one way to write each.
//!
//! What only means the same is written the same: the modern keyword for the older one, `ctrl=` for `control=`, bit ranges for slices as
//! width and index, the real parser's names for the specification's. Comments stay where they are, blank lines too, at most one in a row.

use super::Span;
use super::ast::{
    Argument, Array, Call, Comment, Direction, Entry, Expression, File, Lanes, Name, Port, Pragma,
    Statement, StatementKind, Term,
};
use crate::resolve::Spelling;
use std::fmt::Write;

/// Writes a file in the canonical form. `text` is what it was read from.
pub(crate) fn print(file: &File<'_>, text: &[u8], spelling: &Spelling<'_>) -> String {
    let mut printer = Printer {
        text,
        spelling,
        out: String::new(),
    };
    let mut statements = file.statements.iter().peekable();
    let mut comments = file.comments.iter().peekable();
    let mut previous: Option<Item> = None;
    loop {
        let comment_first = match (statements.peek(), comments.peek()) {
            (None, None) => break,
            (Some(statement), Some(comment)) => comment.span.start < statement.span.start,
            (statement, _) => statement.is_none(),
        };
        let item = if comment_first {
            let Some(comment) = comments.next() else {
                break;
            };
            printer.comment(comment, previous)
        } else {
            let Some(statement) = statements.next() else {
                break;
            };
            printer.blank_line(previous, statement.span);
            printer.statement(statement);
            Item {
                end: statement.span.end,
                attached: true,
            }
        };
        previous = Some(match previous {
            Some(before) => Item {
                end: item.end.max(before.end),
                ..item
            },
            None => item,
        });
    }
    printer.out
}

/// What was printed last.
#[derive(Clone, Copy)]
struct Item {
    /// Where it ends in the text.
    end: u32,
    /// Whether a comment behind it stays on its line.
    attached: bool,
}

struct Printer<'a, 's> {
    text: &'a [u8],
    spelling: &'s Spelling<'s>,
    out: String,
}

impl Printer<'_, '_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn source(&self, span: Span) -> &str {
        std::str::from_utf8(
            self.text
                .get(span.start as usize..span.end as usize)
                .unwrap_or_default(),
        )
        .unwrap_or_default()
    }

    /// Line ends between what was printed last and what comes.
    fn newlines(&self, previous: Item, next: Span) -> usize {
        let gap = self
            .text
            .get(previous.end as usize..next.start as usize)
            .unwrap_or_default();
        gap.iter().filter(|byte| **byte == b'\n').take(2).count()
    }

    fn blank_line(&mut self, previous: Option<Item>, next: Span) {
        if previous.is_some_and(|previous| self.newlines(previous, next) > 1) {
            self.put("\n");
        }
    }

    fn comment(&mut self, comment: &Comment<'_>, previous: Option<Item>) -> Item {
        let text = comment.text().replace("\r\n", "\n");
        let attached = previous.is_some_and(|previous| {
            previous.attached && self.newlines(previous, comment.span) == 0
        });
        if attached {
            self.out.truncate(self.out.trim_end_matches('\n').len());
            self.put("  ");
        } else {
            self.blank_line(previous, comment.span);
        }
        self.put(&text);
        self.put("\n");
        Item {
            end: comment.span.end,
            attached,
        }
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        match &statement.kind {
            StatementKind::Array(array) => self.array(array),
            StatementKind::Port(port) => self.port(port),
            StatementKind::Assignment(assignment) => {
                for (index, name) in assignment.names.iter().enumerate() {
                    self.put(if index > 0 { ", " } else { "" });
                    self.name(*name);
                }
                self.put(" = ");
                self.expression(&assignment.value);
            }
            StatementKind::Separator(text) => {
                self.put(if text.is_empty() { "----" } else { "---- " });
                self.put(text);
            }
            StatementKind::Pragma(pragma) => self.pragma(*pragma),
            StatementKind::Task(task) => {
                let _ = write!(
                    self.out,
                    "{}[{}]: ({})",
                    task.keyword.text, task.head, task.body
                );
            }
        }
        self.put("\n");
    }

    fn name(&mut self, name: Name<'_>) {
        let spelling = self.spelling;
        self.put(
            spelling
                .names
                .get(name.text)
                .map_or(name.text, String::as_str),
        );
    }

    fn array(&mut self, array: &Array<'_>) {
        let size = array.size.unwrap_or(crate::resolve::ARRAY_BYTES);
        let kind = array.kind.map_or("dma", |kind| kind.text);
        let _ = write!(self.out, "Array: {} {size} {kind}", array.name.text);
    }

    fn port(&mut self, port: &Port<'_>) {
        let _ = write!(
            self.out,
            "{}{}: {}",
            port.direction.keyword(),
            port.width,
            port.name.text
        );
        if let Lanes::Count(lanes) | Lanes::List(lanes) = port.lanes {
            let _ = write!(self.out, "[{lanes}]");
        }
        // The real parser takes the state of an output before its destination only.
        let mut options = port.options.clone();
        options.sort_by_key(|option| matches!(option.key.text, "source" | "destination"));
        for option in options {
            let key = match (port.direction, option.key.text, option.value, port.lanes) {
                (Direction::Output, "state" | "stated", Some(_), Lanes::Plain) => "state",
                (Direction::Output, "state" | "stated", Some(_), _) => "stated",
                (_, key, _, _) => key,
            };
            let _ = write!(self.out, " {key}");
            if let Some(value) = option.value {
                let _ = write!(self.out, "={}", value.text);
            }
        }
    }

    fn pragma(&mut self, pragma: Pragma<'_>) {
        let _ = match pragma {
            Pragma::Group(key, Some(value)) => {
                write!(self.out, "#pragma group {} {value}", key.text)
            }
            Pragma::Group(key, None) => write!(self.out, "#pragma group {}", key.text),
            Pragma::Port(key, value) => write!(self.out, "#pragma {}={}", key.text, value.text),
            Pragma::Register(register, name) => {
                let _ = write!(self.out, "#pragma {} ", register.text);
                self.name(name);
                Ok(())
            }
            Pragma::Other(text) => {
                self.put("#pragma");
                for word in text.split_ascii_whitespace() {
                    self.put(" ");
                    self.put(word);
                }
                Ok(())
            }
        };
    }

    fn expression(&mut self, expression: &Expression<'_>) {
        match expression {
            Expression::Terms(terms) => {
                for (index, term) in terms.iter().enumerate() {
                    self.put(if index > 0 { " " } else { "" });
                    self.term(term);
                }
            }
            Expression::Call(call) => self.call(call),
        }
    }

    fn term(&mut self, term: &Term<'_>) {
        match *term {
            Term::Name(name) => self.name(name),
            Term::Slice(name, first, second, _) => {
                self.name(name);
                let bits = self.spelling.slice(first, second);
                let (low, high) = bits
                    .filter(|_| !self.spelling.slices_stay)
                    .unwrap_or((first, second));
                let _ = write!(self.out, ":{low}:{high}");
            }
            Term::Integer(_, span) | Term::Float(_, _, span) => {
                let text = self.source(span).to_owned();
                self.put(&text);
            }
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        self.put(call.operation.text);
        if !call.units.is_empty() {
            self.put("<");
            for (index, (name, count)) in call.units.iter().enumerate() {
                let _ = write!(
                    self.out,
                    "{}{}:{count}",
                    if index > 0 { ", " } else { "" },
                    name.text
                );
            }
            self.put(">");
        }
        self.put("(");
        for (index, argument) in call.arguments.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            self.argument(argument);
        }
        self.put(")");
    }

    fn argument(&mut self, argument: &Argument<'_>) {
        if let Some(qualifier) = argument.qualifier {
            self.put(if qualifier.text == "control" {
                "ctrl"
            } else {
                qualifier.text
            });
            self.put("=");
        }
        if let Some(value) = &argument.value {
            self.expression(value);
        }
        if let Some((_, span)) = argument.mask {
            let mask = self.source(span).to_owned();
            let space = if argument.value.is_some() { " " } else { "" };
            let _ = write!(self.out, "{space}& {mask}");
        }
        if let Some(table) = &argument.table {
            self.put("{");
            for (index, entry) in table.iter().enumerate() {
                self.put(if index > 0 { ", " } else { "" });
                self.entry(entry);
            }
            self.put("}");
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        let _ = write!(self.out, "{}: ", entry.key);
        for (index, action) in entry.actions.iter().enumerate() {
            self.put(if index > 0 { "|" } else { "" });
            self.put(action.text);
        }
    }
}
