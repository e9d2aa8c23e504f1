//! Plans: what to run, read from YAML. Every error names the line.

use crate::reading::{Dimension, Reader, closed, figure, figures, list, number, sample};
use crate::sample::{Sample, Value, Values};
use chipless::spu::yaml::{self, Node};
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
        let what = "a plan: a mapping of version, programs, …";
        let root = reader.document(text, what)?;
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
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for (key, node) in reader.map(&root, what)? {
            match key {
                "version" => {}
                "programs" => plan.programs = programs(reader, node, folder, files)?,
                "machine" => plan.figures = figures(reader, node, &|node| figure(reader, node))?,
                "options" => (plan.options, plan.fixed) = options(reader, node)?,
                "sample" => plan.sample = sample(reader, node)?,
                "columns" => plan.columns = columns(reader, node)?,
                _ => return Err(reader.one_of(node.span, "a key of a plan", key, &KEYS)),
            }
        }
        if plan.programs.is_empty() {
            return Err(reader.wrong(root.span, "expected `programs`, found none"));
        }
        closed(reader, plan.sample, plan.dimensions())?;
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

fn columns(reader: Reader<'_>, node: &Node) -> Result<Vec<String>, Failure> {
    let yaml::Value::List(items) = &node.value else {
        return Err(reader.expected(node, "a list of numbers of `run --json`"));
    };
    let each = items.iter();
    each.map(|item| Ok(reader.text(item, "a path such as latency_ns")?.to_owned()))
        .collect()
}
