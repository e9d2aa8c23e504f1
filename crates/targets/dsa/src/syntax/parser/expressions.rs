//! Right-hand sides: terms, calls, their arguments, and control tables.

use super::{MAX_NESTING, Parsed, Parser, Unreadable, rules};
use crate::syntax::ast::{Argument, Call, Entry, Expression, Name, Term};
use crate::syntax::lexer::Token;
use smallvec::SmallVec;

impl<'a> Parser<'a, '_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression<'a>> {
        let mut terms = SmallVec::new();
        loop {
            let span = self.span;
            let Some(room) = self.room.checked_sub(1) else {
                self.report(
                    &rules::LIMIT,
                    span,
                    "the file has more operands than the limit transfers allows",
                );
                return Err(Unreadable);
            };
            self.room = room;
            match self.token {
                Token::Word(text) => {
                    let name = Name { text, span };
                    self.advance();
                    if matches!(self.token, Token::Sign(b'(' | b'<')) {
                        if let Some(term) = terms.first() {
                            let place = Term::span(term);
                            self.report(
                                &rules::SYNTAX,
                                place,
                                format!("a call of `{text}` cannot be part of a concatenation; name its result first"),
                            );
                            return Err(Unreadable);
                        }
                        return self.call(name).map(|call| Expression::Call(Box::new(call)));
                    }
                    terms.push(if self.token == Token::Sign(b':') {
                        self.slice(name)?
                    } else {
                        Term::Name(name)
                    });
                }
                Token::Integer(value) => {
                    self.advance();
                    terms.push(Term::Integer(value, span));
                }
                Token::Float(value) => {
                    self.advance();
                    terms.push(Term::Float(value, self.source(span), span));
                }
                _ if terms.is_empty() => {
                    return self.unexpected("a value, a constant or an operation");
                }
                Token::Stray(_) => return self.unexpected("the end of the statement"),
                _ => return Ok(Expression::Terms(terms)),
            }
        }
    }

    pub(super) fn slice(&mut self, name: Name<'a>) -> Parsed<Term<'a>> {
        self.expect(b':')?;
        let low = self.integer("the lowest bit")?;
        self.expect(b':')?;
        let high = self.integer("the highest bit")?;
        Ok(Term::Slice(name, low, high, name.span.to(self.last)))
    }

    pub(super) fn call(&mut self, operation: Name<'a>) -> Parsed<Call<'a>> {
        if self.depth >= MAX_NESTING {
            self.report(
                &rules::NESTING,
                operation.span,
                format!("calls are nested more than {MAX_NESTING} deep"),
            );
            return Err(Unreadable);
        }
        let mut units = Vec::new();
        if self.sign(b'<') {
            loop {
                let name = self.word("an operation")?;
                self.expect(b':')?;
                units.push((name, self.count("a number of units")?));
                if !self.sign(b',') {
                    break;
                }
            }
            self.expect(b'>')?;
        }
        self.expect(b'(')?;
        self.depth += 1;
        let arguments = self.arguments();
        self.depth -= 1;
        let arguments = arguments?;
        Ok(Call {
            operation,
            units,
            arguments,
            span: operation.span.to(self.last),
        })
    }

    pub(super) fn arguments(&mut self) -> Parsed<Vec<Argument<'a>>> {
        let mut arguments = Vec::new();
        if self.sign(b')') {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument()?);
            if !self.sign(b',') {
                break;
            }
        }
        if self.sign(b')') {
            Ok(arguments)
        } else {
            self.unexpected("`,` or `)`")
        }
    }

    pub(super) fn argument(&mut self) -> Parsed<Argument<'a>> {
        let start = self.span;
        let mut argument = Argument {
            qualifier: None,
            value: None,
            mask: None,
            table: None,
            span: start,
        };
        let value = if matches!(self.token, Token::Sign(b'{' | b'&')) {
            None
        } else {
            Some(self.expression()?)
        };
        argument.value = match value {
            Some(Expression::Terms(terms)) if self.token == Token::Sign(b'=') => {
                let [Term::Name(name)] = terms[..] else {
                    return self.unexpected("`,` or `)`");
                };
                argument.qualifier = Some(name);
                self.advance();
                if matches!(self.token, Token::Sign(b'{' | b'&')) {
                    None
                } else {
                    Some(self.expression()?)
                }
            }
            value => value,
        };
        if self.sign(b'&') {
            let span = self.span;
            argument.mask = Some((self.integer("a mask")?, span));
        }
        if self.sign(b'{') {
            argument.table = Some(self.table()?);
        }
        argument.span = start.to(self.last);
        Ok(argument)
    }

    pub(super) fn table(&mut self) -> Parsed<Vec<Entry<'a>>> {
        let mut entries = Vec::new();
        if self.sign(b'}') {
            return Ok(entries);
        }
        loop {
            let start = self.span;
            let key = self.integer("a control value")?;
            self.expect(b':')?;
            let mut actions = vec![self.word("an action")?];
            while self.sign(b'|') {
                actions.push(self.word("an action")?);
            }
            entries.push(Entry {
                key,
                actions,
                span: start.to(self.last),
            });
            if !self.sign(b',') {
                break;
            }
        }
        if self.sign(b'}') {
            Ok(entries)
        } else {
            self.unexpected("`,`, `|` or `}`")
        }
    }
}
