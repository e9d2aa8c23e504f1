//! Expressions: places as tensors with numpy slices, what is known of them, comparisons, `and`, `or`, `not`, `time`, `effect`.

use crate::place::{Names, Place};
use crate::tensor::{Index, Tensor};
use chipless::suggest;
use chipless_model::{ElementType, Program};
use serde_json::{Value as Json, json};

/// What can be asked of a tensor.
const FUNCTIONS: [&str; 10] = [
    "min", "max", "mean", "std", "nan", "inf", "sum", "shape", "dtype", "crc",
];
/// Short names of element types that a mistyped one may be meant to be.
const SHORT: [&str; 8] = [
    "fp32", "fp16", "bf16", "fp8e3", "fp8e4", "fp8e5", "i8", "u8",
];
/// Words that stand where a tensor could.
pub(crate) const KEYWORDS: [&str; 2] = ["time", "effect"];
/// How deep expressions nest.
const DEPTH: u32 = 64;

/// An expression that has been read.
#[derive(Clone, Debug)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// Simulated time in nanoseconds.
    Time,
    /// The number of the next effect.
    Effect,
    /// A place in memory.
    Place(Place),
    /// Some elements of a tensor.
    Slice(Box<Expression>, Vec<Index>),
    /// A tensor's bytes as another type.
    As(Box<Expression>, ElementType),
    /// What is known of a tensor.
    Apply(&'static str, Box<Expression>),
    /// A comparison.
    Compare(&'static str, Box<Expression>, Box<Expression>),
    /// Both hold.
    And(Box<Expression>, Box<Expression>),
    /// One of them holds.
    Or(Box<Expression>, Box<Expression>),
    /// It does not hold.
    Not(Box<Expression>),
}

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// Dimensions.
    Shape(Vec<u64>),
    /// A tensor.
    Tensor(Tensor),
}

impl Value {
    /// As text: tensors as their summary.
    pub fn text(&self) -> String {
        match self {
            Value::Number(n) => plain(*n),
            Value::Bool(b) => b.to_string(),
            Value::Text(t) => t.clone(),
            Value::Shape(shape) => format!("{shape:?}"),
            Value::Tensor(tensor) => tensor.summary(),
        }
    }

    /// For programs. JSON has no NaN and no infinities: they are texts.
    pub fn json(&self) -> Json {
        match self {
            Value::Number(n) => number(*n),
            Value::Bool(b) => json!(b),
            Value::Text(t) => json!(t),
            Value::Shape(shape) => json!(shape),
            Value::Tensor(tensor) => {
                let s = tensor.statistics();
                json!({
                    "dtype": tensor.element.name(),
                    "shape": tensor.shape,
                    "min": number(s.min),
                    "max": number(s.max),
                    "mean": number(s.mean),
                    "not_finite": s.not_finite,
                    "crc": tensor.crc(),
                })
            }
        }
    }

    /// Whether it holds, where it is a comparison.
    pub(crate) fn holds(&self) -> Result<bool, String> {
        match self {
            Value::Bool(b) => Ok(*b),
            Value::Number(n) => Ok(*n != 0.0),
            other => Err(format!("expected a comparison, found {}", other.text())),
        }
    }
}

fn plain(n: f64) -> String {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        format!("{n:.0}")
    } else {
        format!("{n}")
    }
}

fn number(n: f64) -> Json {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        json!(n as i64)
    } else if n.is_finite() {
        json!(n)
    } else {
        json!(n.to_string().to_lowercase())
    }
}

impl Expression {
    /// Reads an expression; all of the text.
    ///
    /// # Errors
    /// What was expected, and what was found.
    pub(crate) fn parse(
        names: &Names,
        program: &Program<'_>,
        text: &str,
    ) -> Result<Expression, String> {
        let mut parser = Parser {
            names,
            program,
            rest: text.trim(),
            depth: 0,
        };
        let expression = parser.or()?;
        parser.space();
        if parser.rest.is_empty() {
            Ok(expression)
        } else {
            Err(format!(
                "expected the end of the expression, found {}",
                parser.rest
            ))
        }
    }
}

struct Parser<'d, 't, 'a> {
    names: &'d Names,
    program: &'d Program<'a>,
    rest: &'t str,
    depth: u32,
}

impl<'t> Parser<'_, 't, '_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes this text if it comes next.
    fn take(&mut self, text: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The word that comes next.
    fn word(&mut self) -> &'t str {
        self.space();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        &self.rest[..end.unwrap_or(self.rest.len())]
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.word() == word && self.take(word)
    }

    fn or(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("expected at most {DEPTH} nested expressions"));
        }
        let mut left = self.and()?;
        while self.take_word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, String> {
        let mut left = self.not()?;
        while self.take_word("and") {
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, String> {
        let mut count = 0;
        while self.take_word("not") {
            count += 1;
        }
        let inner = self.comparison()?;
        Ok(match count {
            0 => inner,
            n if n % 2 == 1 => Expression::Not(Box::new(inner)),
            _ => Expression::Not(Box::new(Expression::Not(Box::new(inner)))),
        })
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let left = self.postfix()?;
        for operator in ["==", "!=", "<=", ">=", "<", ">"] {
            if self.take(operator) {
                let right = self.postfix()?;
                return Ok(Expression::Compare(
                    operator,
                    Box::new(left),
                    Box::new(right),
                ));
            }
        }
        Ok(left)
    }

    /// A primary with slices, `as TYPE` and names of functions behind it. Slices count elements of the type that follows: `x[0] as int8` is a
    /// part of `x as int8`.
    fn postfix(&mut self) -> Result<Expression, String> {
        let mut inner = self.primary()?;
        let mut slices: Vec<Vec<Index>> = Vec::new();
        let sliced = |inner: Expression, slices: &mut Vec<Vec<Index>>| {
            let slices = slices.drain(..);
            slices.fold(inner, |inner, indices| {
                Expression::Slice(Box::new(inner), indices)
            })
        };
        loop {
            if self.rest.starts_with('[') {
                self.take("[");
                slices.push(self.indices()?);
                continue;
            }
            let dotted = self.rest.strip_prefix('.');
            if let Some(rest) = dotted {
                self.rest = rest;
            }
            let word = self.word();
            if let Some(function) = FUNCTIONS.into_iter().find(|f| *f == word) {
                self.take(word);
                inner = Expression::Apply(function, Box::new(sliced(inner, &mut slices)));
            } else if dotted.is_some() {
                return Err(format!(
                    "expected one of {}, found \"{word}\"",
                    FUNCTIONS.join(", ")
                ));
            } else if word == "as" {
                self.take(word);
                let name = self.word();
                let element = element(name)?;
                self.take(name);
                inner = Expression::As(Box::new(inner), element);
            } else {
                return Ok(sliced(inner, &mut slices));
            }
        }
    }

    /// What stands between the brackets of a slice, and the closing one.
    fn indices(&mut self) -> Result<Vec<Index>, String> {
        let Some((inside, rest)) = self.rest.split_once(']') else {
            return Err(format!("expected a closing ], found {}", self.rest));
        };
        self.rest = rest;
        let bad = |part: &str| format!("expected an index or start:stop:step, found \"{part}\"");
        let each = inside.split(',').map(|part| {
            let number = |text: &str| text.trim().parse::<i64>().map_err(|_| bad(part));
            let optional = |text: &str| match text.trim() {
                "" => Ok(None),
                text => number(text).map(Some),
            };
            let bounds: Vec<&str> = part.split(':').collect();
            match *bounds {
                [at] => number(at).map(Index::At),
                [start, stop] => Ok(Index::Range(optional(start)?, optional(stop)?, 1)),
                [start, stop, step] => Ok(Index::Range(
                    optional(start)?,
                    optional(stop)?,
                    optional(step)?.unwrap_or(1),
                )),
                _ => Err(bad(part)),
            }
        });
        each.collect()
    }

    fn primary(&mut self) -> Result<Expression, String> {
        self.space();
        if self.take("(") {
            let inner = self.or()?;
            return self.close(inner);
        }
        let word = self.word();
        if let Some(function) = FUNCTIONS.into_iter().find(|f| *f == word)
            && self.rest[word.len()..].trim_start().starts_with('(')
        {
            self.take(word);
            self.take("(");
            let inner = self.or()?;
            let applied = Expression::Apply(function, Box::new(inner));
            return self.close(applied);
        }
        if let Some(value) = self.number()? {
            return Ok(Expression::Number(value));
        }
        if let Some((place, rest)) = self.names.place(self.program, self.rest)? {
            self.rest = rest;
            return Ok(Expression::Place(place));
        }
        if let Some((text, rest)) = self.rest.strip_prefix('"').and_then(|t| t.split_once('"')) {
            self.rest = rest;
            return Ok(Expression::Text(text.to_owned()));
        }
        let known = match word {
            "time" => Expression::Time,
            "effect" => Expression::Effect,
            _ if self.rest.is_empty() => {
                return Err("expected an expression, found nothing".to_owned());
            }
            _ => return Err(self.names.unknown(self.program, self.rest)),
        };
        self.take(word);
        Ok(known)
    }

    fn close(&mut self, inner: Expression) -> Result<Expression, String> {
        if self.take(")") {
            Ok(inner)
        } else {
            Err(format!("expected a closing ), found \"{}\"", self.rest))
        }
    }

    /// A number with a sign, a fraction and an exponent, or a hexadecimal one.
    fn number(&mut self) -> Result<Option<f64>, String> {
        let unsigned = self.rest.strip_prefix('-').unwrap_or(self.rest);
        if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let sign = if unsigned.len() < self.rest.len() {
            -1.0
        } else {
            1.0
        };
        let is_part = |(at, c): (usize, char)| {
            let after_exponent = at > 0 && matches!(unsigned.as_bytes()[at - 1], b'e' | b'E');
            c.is_ascii_alphanumeric() || c == '.' || (after_exponent && "+-".contains(c))
        };
        let end = unsigned
            .char_indices()
            .find(|at| !is_part(*at))
            .map_or(unsigned.len(), |(at, _)| at);
        let (digits, rest) = unsigned.split_at(end);
        let value = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as f64),
            None => digits.parse().ok(),
        };
        let value = value.ok_or_else(|| format!("expected a number, found \"{digits}\""))?;
        self.rest = rest;
        Ok(Some(sign * value))
    }
}

/// The element type of a word.
///
/// # Errors
/// It is none; with the nearest one, or with all of them.
pub(crate) fn element(word: &str) -> Result<ElementType, String> {
    ElementType::from_word(word).ok_or_else(|| {
        let names = ElementType::ALL.iter().map(|e| e.name());
        let known = names.clone().chain(SHORT);
        match suggest::closest(word, known) {
            Some(near) => format!("\"{word}\" is no element type; did you mean \"{near}\"?"),
            None => format!(
                "\"{word}\" is no element type; there are {}",
                names.collect::<Vec<_>>().join(", ")
            ),
        }
    })
}
