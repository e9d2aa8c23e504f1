//! Plans: what to run, read from YAML. Every error names the line.

use crate::sample::{Range, Sample, Value, Values};
use chipless::spu::yaml::{self, Budget, Node, Span};
use chipless::{Failure, Figure, OptionKind, suggest};
use std::path::{Path, PathBuf};

/// Runs of a plan at most: what a row takes is kept in memory.
const MOST_RUNS: u64 = 100_000_000;
/// Keys of a plan.
const KEYS: [&str; 6] = [
    "version", "programs", "machine", "options", "sample", "columns",
];

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As messages call it.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) programs: Vec<Program>,
    pub(crate) figures: Vec<Dimension>,
    pub(crate) options: Vec<Dimension>,
    /// Options that are the same for every run.
    pub(crate) fixed: Vec<(String, Value)>,
    pub(crate) sample: Sample,
    pub(crate) columns: Vec<String>,
}

/// A program of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// As the plan names it.
    pub(crate) shown: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// `network` and `weights`.
    pub(crate) options: Vec<(&'static str, String)>,
    /// The line of the plan.
    pub(crate) line: u32,
}

/// A figure or an option that varies.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) values: Values,
    /// The line of the plan.
    pub(crate) line: u32,
}

/// Every Nth run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub index: u64,
    /// Of how many.
    pub count: u64,
}

impl Shard {
    /// All runs.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// Whether a run is in it.
    pub const fn has(self, run: u64) -> bool {
        run % self.count == self.index - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = || {
            let (index, count) = text.split_once('/')?;
            Some((index.parse().ok()?, count.parse().ok()?))
        };
        match numbers() {
            Some((index, count)) if 1 <= index && index <= count => Ok(Shard { index, count }),
            _ => Err("expected I/N with I from 1 to N, such as 3/16".to_owned()),
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// Where errors are.
#[derive(Clone, Copy)]
struct Reader<'n> {
    name: &'n str,
}

impl Reader<'_> {
    fn wrong(self, at: Span, text: impl std::fmt::Display) -> Failure {
        Failure::unreadable(format_args!("{}:{}", self.name, at.line), text)
    }

    fn expected(self, node: &Node, what: &str) -> Failure {
        let text = format!("expected {what}, found {}", node.value.kind());
        self.wrong(node.span, text)
    }

    fn map<'t>(self, node: &'t Node, what: &str) -> Result<Vec<(&'t str, &'t Node)>, Failure> {
        let yaml::Value::Map(entries) = &node.value else {
            return Err(self.expected(node, what));
        };
        let each = entries.iter().map(|(key, value)| match key.value.text() {
            Some(text) => Ok((text, value)),
            None => Err(self.expected(key, "a name")),
        });
        each.collect()
    }

    fn text<'t>(self, node: &'t Node, what: &str) -> Result<&'t str, Failure> {
        node.value.text().ok_or_else(|| self.expected(node, what))
    }

    fn count(self, node: &Node, what: &str) -> Result<u64, Failure> {
        match &node.value {
            yaml::Value::Integer(n) => u64::try_from(*n).map_err(|_| self.expected(node, what)),
            _ => Err(self.expected(node, what)),
        }
    }

    fn one_of(self, at: Span, what: &str, found: &str, known: &[&str]) -> Failure {
        let hint = suggest::hint(found, known.iter().copied());
        let text = format!(
            "expected {what} ({}), found \"{found}\"{hint}",
            known.join(", ")
        );
        self.wrong(at, text)
    }
}

impl Plan {
    /// Reads a plan. `files` gives the names that a pattern fits, sorted; programs are relative to the folder of `name`.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn read(
        name: &str,
        text: &str,
        files: &dyn Fn(&Path) -> Result<Vec<PathBuf>, String>,
    ) -> Result<Plan, Failure> {
        let reader = Reader { name };
        let tree = yaml::read(text, Budget::default())
            .map_err(|(span, message)| reader.wrong(span, message))?;
        let Some(root) = tree.root else {
            return Err(Failure::unreadable(name, "expected a plan, found nothing"));
        };
        if let Some((key, _, again)) = tree.duplicates.first() {
            return Err(reader.wrong(*again, format_args!("\"{key}\" stands twice")));
        }
        let mut plan = Plan {
            name: name.to_owned(),
            text: text.to_owned(),
            programs: Vec::new(),
            figures: Vec::new(),
            options: Vec::new(),
            fixed: Vec::new(),
            sample: Sample::Grid,
            columns: vec!["latency_ns".to_owned()],
        };
        let mut version = None;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for (key, node) in reader.map(&root, "a plan: a mapping of version, programs, …")? {
            match key {
                "version" => version = Some(reader.count(node, "a version")?),
                "programs" => plan.programs = programs(reader, node, folder, files)?,
                "machine" => plan.figures = figures(reader, node)?,
                "options" => (plan.options, plan.fixed) = options(reader, node)?,
                "sample" => plan.sample = sample(reader, node)?,
                "columns" => plan.columns = columns(reader, node)?,
                _ => return Err(reader.one_of(node.span, "a key of a plan", key, &KEYS)),
            }
        }
        match version {
            Some(1) => {}
            Some(other) => {
                let text = format!("expected version 1, found {other}");
                return Err(reader.wrong(root.span, text));
            }
            None => return Err(reader.wrong(root.span, "expected `version: 1`, found none")),
        }
        if plan.programs.is_empty() {
            return Err(reader.wrong(root.span, "expected `programs`, found none"));
        }
        let ranges = plan.dimensions();
        let is_open = |d: &&&Dimension| matches!(&d.values, Values::Range(r) if r.steps == 0);
        if let (Sample::Grid, Some(open)) = (plan.sample, ranges.iter().find(is_open)) {
            let text = format!(
                "expected `steps` in the range of {} for a grid, found none",
                open.name
            );
            return Err(Failure::unreadable(
                format_args!("{name}:{}", open.line),
                text,
            ));
        }
        if plan.runs().is_none_or(|runs| runs > MOST_RUNS) {
            let text = format!("expected at most {MOST_RUNS} runs, found more");
            return Err(Failure::new(chipless::FailureKind::Limit, name, text));
        }
        Ok(plan)
    }

    /// How many runs it has; `None` beyond 2^64.
    pub fn runs(&self) -> Option<u64> {
        self.points()?.checked_mul(self.programs.len() as u64)
    }

    /// How many runs each program has.
    fn points(&self) -> Option<u64> {
        let values: Vec<Values> = self.dimensions().iter().map(|d| d.values.clone()).collect();
        self.sample.count(&values)
    }

    /// Everything that varies, figures first.
    pub(crate) fn dimensions(&self) -> Vec<&Dimension> {
        self.figures.iter().chain(&self.options).collect()
    }

    /// The runs that a shard has, in order.
    pub(crate) fn shard(&self, shard: Shard) -> impl Iterator<Item = u64> + use<> {
        (0..self.runs().unwrap_or_default()).filter(move |run| shard.has(*run))
    }

    /// The program of a run, and the values of everything that varies.
    pub(crate) fn point(&self, values: &[Values], run: u64) -> (usize, Vec<Value>) {
        let points = self.points().unwrap_or(1).max(1);
        let program = (run / points) as usize;
        (program, self.sample.point(values, run % points))
    }

    /// Where a line is, for messages.
    pub(crate) fn at(&self, line: u32) -> String {
        format!("{}:{line}", self.name)
    }

    /// Refuses columns that the results will not have.
    ///
    /// # Errors
    /// The first of them.
    pub fn has_columns(&self, option: &str, names: &[&str]) -> Result<(), Failure> {
        let dimensions = self.dimensions().into_iter().map(|d| d.name.as_str());
        let known: Vec<&str> = self
            .columns
            .iter()
            .map(String::as_str)
            .chain(dimensions)
            .collect();
        for name in names {
            if !known.contains(name) {
                let hint = suggest::hint(name, known.iter().copied());
                let text = format!(
                    "expected columns of the plan ({}), found \"{name}\"{hint}",
                    known.join(", ")
                );
                return Err(Failure::misuse(option, text));
            }
        }
        Ok(())
    }

    /// Refuses figures that a target does not have.
    pub(crate) fn fit(&self, target: &str, known: &[Figure]) -> Result<(), Failure> {
        for figure in &self.figures {
            if !known.iter().any(|k| k.key == figure.name) {
                let hint = suggest::hint(&figure.name, known.iter().map(|k| k.key.as_str()));
                let text = format!(
                    "expected a figure of {target} (`chipless machine {target}` lists them), found \"{}\"{hint}",
                    figure.name
                );
                return Err(Failure::unreadable(self.at(figure.line), text));
            }
        }
        Ok(())
    }
}

fn programs(
    reader: Reader<'_>,
    node: &Node,
    folder: &Path,
    files: &dyn Fn(&Path) -> Result<Vec<PathBuf>, String>,
) -> Result<Vec<Program>, Failure> {
    let yaml::Value::List(items) = &node.value else {
        return Err(reader.expected(node, "a list of programs"));
    };
    let mut programs = Vec::new();
    for item in items {
        let mut options = Vec::new();
        let shown = match &item.value {
            yaml::Value::Map(_) => {
                let mut file = None;
                for (key, value) in reader.map(item, "a program")? {
                    let text = reader.text(value, "the name of a file")?;
                    let path = || folder.join(text).to_string_lossy().into_owned();
                    match key {
                        "file" => file = Some(text),
                        "network" => options.push(("network", path())),
                        "weights" => options.push(("weights", path())),
                        _ => {
                            let known = ["file", "network", "weights"];
                            return Err(reader.one_of(value.span, "a key", key, &known));
                        }
                    }
                }
                file.ok_or_else(|| reader.wrong(item.span, "expected `file`, found none"))?
            }
            _ => reader.text(item, "the name of a program")?,
        };
        let line = item.span.line;
        let one = |shown: String, path: PathBuf| Program {
            shown,
            path,
            options: options.clone(),
            line,
        };
        if !shown.contains(['*', '?', '[']) {
            programs.push(one(shown.to_owned(), folder.join(shown)));
            continue;
        }
        let found = files(&folder.join(shown)).map_err(|why| reader.wrong(item.span, why))?;
        if found.is_empty() {
            let text = format!("expected a file that fits \"{shown}\", found none");
            return Err(reader.wrong(item.span, text));
        }
        for path in found {
            let relative = path.strip_prefix(folder).unwrap_or(&path);
            let relative = relative.to_string_lossy().replace('\\', "/");
            programs.push(one(relative, path));
        }
    }
    Ok(programs)
}

fn figures(reader: Reader<'_>, node: &Node) -> Result<Vec<Dimension>, Failure> {
    let each = reader.map(node, "a mapping of figures")?.into_iter();
    each.map(|(name, node)| {
        let values = match &node.value {
            yaml::Value::Map(_) => Values::Range(range(reader, node)?),
            _ => Values::List(alike(list(reader, node, &|node| figure(reader, node))?)),
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
fn list(
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
fn figure(reader: Reader<'_>, node: &Node) -> Result<Value, Failure> {
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

fn number(reader: Reader<'_>, node: &Node) -> Result<Value, Failure> {
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

type Options = (Vec<Dimension>, Vec<(String, Value)>);

fn options(reader: Reader<'_>, node: &Node) -> Result<Options, Failure> {
    let (mut varied, mut fixed) = (Vec::new(), Vec::new());
    let of_targets = chipless::options();
    // Figures stand under `machine`; files would have to be carried from machine to machine.
    let is_plain = |kind| {
        matches!(
            kind,
            OptionKind::Text | OptionKind::Count | OptionKind::Choice(_)
        )
    };
    let mut known = vec!["timing_only", "seed", "verify"];
    let more = of_targets.iter().map(|(spec, _)| spec);
    known.extend(
        more.filter(|spec| {
            spec.commands.contains(&"run") && is_plain(spec.kind) && spec.name != "set"
        })
        .map(|spec| spec.name),
    );
    for (name, node) in reader.map(node, "a mapping of options")? {
        if !known.contains(&name) {
            return Err(reader.one_of(node.span, "an option", name, &known));
        }
        let one = |node: &Node| match (name, &node.value) {
            ("timing_only" | "verify", yaml::Value::Bool(flag)) => Ok(Value::Flag(*flag)),
            ("timing_only" | "verify", _) => Err(reader.expected(node, "true or false")),
            ("seed", yaml::Value::Integer(n)) if *n >= 0 => number(reader, node),
            ("seed", _) => Err(reader.expected(node, "a whole number from 0 on")),
            (_, yaml::Value::Text(text)) => Ok(Value::Text(text.clone())),
            (_, yaml::Value::Integer(n)) => Ok(Value::Text(n.to_string())),
            _ => Err(reader.expected(node, "text or a whole number")),
        };
        match &node.value {
            yaml::Value::List(_) => varied.push(Dimension {
                name: name.to_owned(),
                values: Values::List(list(reader, node, &one)?),
                line: node.span.line,
            }),
            _ => fixed.push((name.to_owned(), one(node)?)),
        }
    }
    Ok((varied, fixed))
}

fn sample(reader: Reader<'_>, node: &Node) -> Result<Sample, Failure> {
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

fn columns(reader: Reader<'_>, node: &Node) -> Result<Vec<String>, Failure> {
    let yaml::Value::List(items) = &node.value else {
        return Err(reader.expected(node, "a list of numbers of `run --json`"));
    };
    let each = items.iter();
    each.map(|item| Ok(reader.text(item, "a path such as latency_ns")?.to_owned()))
        .collect()
}
