//! Reads plans and spaces from YAML: what varies, how it is sampled. Every error names the line.

use crate::sample::{Range, Sample, Value, Values};
use chipless::spu::yaml::{self, Budget, Node, Span};
use chipless::{Failure, suggest};

/// A figure or an option that varies.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) values: Values,
    /// The line of the plan.
    pub(crate) line: u32,
}

/// Where errors are.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'n> {
    pub(crate) name: &'n str,
}

impl Reader<'_> {
    /// The root of a document that has the version 1.
    pub(crate) fn document(self, text: &str, what: &str) -> Result<Node, Failure> {
        let tree = yaml::read(text, Budget::default())
            .map_err(|(span, message)| self.wrong(span, message))?;
        let Some(root) = tree.root else {
            let text = format!("expected {what}, found nothing");
            return Err(Failure::unreadable(self.name, text));
        };
        if let Some((key, _, again)) = tree.duplicates.first() {
            return Err(self.wrong(*again, format_args!("\"{key}\" stands twice")));
        }
        let entries = self.map(&root, what)?;
        match entries.iter().find(|(key, _)| *key == "version") {
            Some((_, node)) => match self.count(node, "a version")? {
                1 => Ok(root),
                other => {
                    let text = format!("expected version 1, found {other}");
                    Err(self.wrong(node.span, text))
                }
            },
            None => Err(self.wrong(root.span, "expected `version: 1`, found none")),
        }
    }

    pub(crate) fn wrong(self, at: Span, text: impl std::fmt::Display) -> Failure {
        Failure::unreadable(format_args!("{}:{}", self.name, at.line), text)
    }

    pub(crate) fn expected(self, node: &Node, what: &str) -> Failure {
        let text = format!("expected {what}, found {}", node.value.kind());
        self.wrong(node.span, text)
    }

    pub(crate) fn map<'t>(
        self,
        node: &'t Node,
        what: &str,
    ) -> Result<Vec<(&'t str, &'t Node)>, Failure> {
        let yaml::Value::Map(entries) = &node.value else {
            return Err(self.expected(node, what));
        };
        let each = entries.iter().map(|(key, value)| match key.value.text() {
            Some(text) => Ok((text, value)),
            None => Err(self.expected(key, "a name")),
        });
        each.collect()
    }

    pub(crate) fn text<'t>(self, node: &'t Node, what: &str) -> Result<&'t str, Failure> {
        node.value.text().ok_or_else(|| self.expected(node, what))
    }

    pub(crate) fn count(self, node: &Node, what: &str) -> Result<u64, Failure> {
        match &node.value {
            yaml::Value::Integer(n) => u64::try_from(*n).map_err(|_| self.expected(node, what)),
            _ => Err(self.expected(node, what)),
        }
    }

    pub(crate) fn one_of(self, at: Span, what: &str, found: &str, known: &[&str]) -> Failure {
        let hint = suggest::hint(found, known.iter().copied());
        let text = format!(
            "expected {what} ({}), found \"{found}\"{hint}",
            known.join(", ")
        );
        self.wrong(at, text)
    }
}

/// Figures of a machine, each with a list of values, or a range. `one` reads a value.
pub(crate) fn figures(
    reader: Reader<'_>,
    node: &Node,
    one: &dyn Fn(&Node) -> Result<Value, Failure>,
) -> Result<Vec<Dimension>, Failure> {
    let each = reader.map(node, "a mapping of figures")?.into_iter();
    each.map(|(name, node)| {
        let values = match &node.value {
            yaml::Value::Map(_) => Values::Range(range(reader, node)?),
            _ => Values::List(alike(list(reader, node, one)?)),
        };
        Ok(Dimension {
            name: name.to_owned(),
            values,
            line: node.span.line,
        })
    })
    .collect()
}

/// A list, or one value.
pub(crate) fn list(
    reader: Reader<'_>,
    node: &Node,
    one: &dyn Fn(&Node) -> Result<Value, Failure>,
) -> Result<Vec<Value>, Failure> {
    match &node.value {
        yaml::Value::List(items) if items.is_empty() => {
            Err(reader.wrong(node.span, "expected a value, found an empty list"))
        }
        yaml::Value::List(items) => items.iter().map(one).collect(),
        _ => Ok(vec![one(node)?]),
    }
}

/// A column has one type: numbers among whole ones make all of them numbers, text among numbers makes all of them text.
fn alike(values: Vec<Value>) -> Vec<Value> {
    let has = |test: fn(&Value) -> bool| values.iter().any(test);
    let (text, number) = (
        has(|v| matches!(v, Value::Text(_))),
        has(|v| matches!(v, Value::Number(_))),
    );
    let (flag, whole) = (
        has(|v| matches!(v, Value::Flag(_))),
        has(|v| matches!(v, Value::Whole(_))),
    );
    let mixed = flag && (whole || number);
    let one = |value: Value| match value {
        value if text || mixed => Value::Text(value.text()),
        Value::Whole(n) if number => Value::Number(n as f64),
        value => value,
    };
    values.into_iter().map(one).collect()
}

/// The value of a figure: a number, or text as `--set` takes it (`2x`).
pub(crate) fn figure(reader: Reader<'_>, node: &Node) -> Result<Value, Failure> {
    match &node.value {
        yaml::Value::Integer(_) | yaml::Value::Float(_) => number(reader, node),
        // As YAML 1.1 has it, 10e9 is a text.
        yaml::Value::Text(text) => Ok(text
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .map_or_else(|| Value::Text(text.clone()), Value::Number)),
        _ => Err(reader.expected(node, "a number")),
    }
}

pub(crate) fn number(reader: Reader<'_>, node: &Node) -> Result<Value, Failure> {
    match &node.value {
        yaml::Value::Integer(n) => i64::try_from(*n).map(Value::Whole).map_err(|_| {
            reader.wrong(
                node.span,
                "expected a number below 2^63, found a larger one",
            )
        }),
        yaml::Value::Float(n) if n.is_finite() => Ok(Value::Number(*n)),
        yaml::Value::Text(text) if text.parse().is_ok_and(|n: f64| n.is_finite()) => {
            Ok(Value::Number(text.parse().unwrap_or_default()))
        }
        _ => Err(reader.expected(node, "a number")),
    }
}

fn range(reader: Reader<'_>, node: &Node) -> Result<Range, Failure> {
    let (mut from, mut to, mut steps, mut is_log) = (None, None, 0, false);
    for (key, value) in reader.map(node, "a range")? {
        let real = || match number(reader, value)? {
            Value::Whole(n) => Ok(n as f64),
            Value::Number(n) => Ok(n),
            _ => Err(reader.expected(value, "a number")),
        };
        match key {
            "from" => from = Some(real()?),
            "to" => to = Some(real()?),
            "steps" => {
                steps = reader.count(value, "a number of steps")?;
                if steps == 0 {
                    return Err(reader.wrong(value.span, "expected one step at least, found 0"));
                }
            }
            "scale" => {
                let scale = reader.text(value, "`linear` or `log`")?;
                is_log = match scale {
                    "linear" => false,
                    "log" => true,
                    _ => {
                        let known = ["linear", "log"];
                        return Err(reader.one_of(value.span, "a scale", scale, &known));
                    }
                };
            }
            _ => {
                let known = ["from", "to", "steps", "scale"];
                return Err(reader.one_of(value.span, "a key of a range", key, &known));
            }
        }
    }
    let (Some(from), Some(to)) = (from, to) else {
        return Err(reader.wrong(node.span, "expected `from` and `to`, found less"));
    };
    if is_log && (from <= 0.0 || to <= 0.0) {
        return Err(reader.wrong(node.span, "expected numbers above 0 for a log scale"));
    }
    Ok(Range {
        from,
        to,
        steps,
        is_log,
        is_whole: false,
    })
}

pub(crate) fn sample(reader: Reader<'_>, node: &Node) -> Result<Sample, Failure> {
    let (mut method, mut count, mut seed) = (("grid", node.span), None, 0);
    for (key, value) in reader.map(node, "a sample")? {
        match key {
            "method" => method = (reader.text(value, "a method")?, value.span),
            "count" => count = Some(reader.count(value, "a number of runs")?),
            "seed" => seed = reader.count(value, "a whole number")?,
            _ => {
                let known = ["method", "count", "seed"];
                return Err(reader.one_of(value.span, "a key of a sample", key, &known));
            }
        }
    }
    let count = || match count {
        Some(count) if count > 0 => Ok(count),
        _ => Err(reader.wrong(
            node.span,
            "expected `count`, the number of runs of each program",
        )),
    };
    match method.0 {
        "grid" => Ok(Sample::Grid),
        "random" => Ok(Sample::Random {
            count: count()?,
            seed,
        }),
        "latin_hypercube" => Ok(Sample::LatinHypercube {
            count: count()?,
            seed,
        }),
        other => {
            let known = ["grid", "random", "latin_hypercube"];
            Err(reader.one_of(method.1, "a method", other, &known))
        }
    }
}

/// Refuses ranges of which a grid does not know how many values it takes.
pub(crate) fn closed<'d>(
    reader: Reader<'_>,
    sample: Sample,
    dimensions: impl IntoIterator<Item = &'d Dimension>,
) -> Result<(), Failure> {
    let is_open = |d: &&Dimension| matches!(&d.values, Values::Range(r) if r.steps == 0);
    match (sample, dimensions.into_iter().find(is_open)) {
        (Sample::Grid, Some(open)) => {
            let text = format!(
                "expected `steps` in the range of {} for a grid, found none",
                open.name
            );
            let at = format_args!("{}:{}", reader.name, open.line);
            Err(Failure::unreadable(at, text))
        }
        _ => Ok(()),
    }
}
