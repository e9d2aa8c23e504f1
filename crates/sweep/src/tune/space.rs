//! Spaces: which machines, and how networks are scheduled on them, read from YAML. Every error names the line.

use crate::reading::{self, Dimension, Reader, closed, figures, number};
use crate::sample::{Sample, Value, Values};
use chipless::spu::yaml::{self, Node};
use chipless::{Failure, FailureKind, suggest};
use chipless_schedule::import::Shapes;
use chipless_schedule::mesh::FIELDS;
use chipless_schedule::model::Objective;
use chipless_schedule::onnx::{Constants, Fixed};
use chipless_schedule::price::{Memory, Process};
use chipless_schedule::reading::{Precision, Reading};
use std::path::{Path, PathBuf};

/// Machines of a space at most: each is scheduled for.
const MOST_MACHINES: u64 = 1_000_000;
/// Images of a batch, at most.
const LARGEST_BATCH: u64 = 1 << 16;
/// Trees that are evaluated for a schedule where the space does not say it.
const TREES: u64 = 2000;
/// Keys of a space.
const KEYS: [&str; 7] = [
    "version", "base", "machine", "sample", "schedule", "price", "front",
];
/// Numbers of a row.
pub(super) const COLUMNS: [&str; 5] = ["latency_ns", "energy_pj", "edp", "area_mm2", "cost_usd"];

/// Machines, and how networks are scheduled on them.
#[derive(Clone, Debug)]
pub struct Space {
    /// As messages call it.
    pub(super) name: String,
    pub(super) text: String,
    /// The machine that the others are variants of.
    pub(super) base: PathBuf,
    pub(super) base_line: u32,
    pub(super) figures: Vec<Dimension>,
    pub(super) sample: Sample,
    pub(super) objective: Objective,
    pub(super) trees: u64,
    pub(super) seed: u64,
    pub(super) reading: Reading,
    /// Inputs of networks that are constants.
    pub(super) constants: Constants,
    pub(super) process: Process,
    pub(super) memory: Memory,
    /// Columns of which the front is made.
    pub(super) front: Vec<String>,
}

impl Space {
    /// Reads a space; the base is relative to the folder of `name`.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn read(name: &str, text: &str) -> Result<Space, Failure> {
        let reader = Reader { name };
        let what = "a space: a mapping of version, base, machine, …";
        let root = reader.document(text, what)?;
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let mut base = None;
        let mut space = Space {
            name: name.to_owned(),
            text: text.to_owned(),
            base: PathBuf::new(),
            base_line: root.span.line,
            figures: Vec::new(),
            sample: Sample::Grid,
            objective: Objective::Edp,
            trees: TREES,
            seed: 1,
            reading: Reading {
                batch: 1,
                precision: None,
                shapes: Shapes::new(),
            },
            constants: Constants::new(),
            process: Process::default(),
            memory: Memory::default(),
            front: vec!["latency_ns".to_owned(), "energy_pj".to_owned()],
        };
        for (key, node) in reader.map(&root, what)? {
            match key {
                "version" => {}
                "base" => {
                    base = Some(folder.join(reader.text(node, "the name of a machine file")?));
                    space.base_line = node.span.line;
                }
                "machine" => space.figures = figures(reader, node, &|node| figure(reader, node))?,
                "sample" => space.sample = reading::sample(reader, node)?,
                "schedule" => space.schedule(reader, node)?,
                "price" => space.price(reader, node)?,
                "front" => space.front = front(reader, node)?,
                _ => return Err(reader.one_of(node.span, "a key of a space", key, &KEYS)),
            }
        }
        space.base = base.ok_or_else(|| {
            let text = "expected `base`, the machine file that others are variants of, found none";
            reader.wrong(root.span, text)
        })?;
        closed(reader, space.sample, &space.figures)?;
        if space
            .machines()
            .is_none_or(|machines| machines > MOST_MACHINES)
        {
            let text = format!("expected at most {MOST_MACHINES} machines, found more");
            return Err(Failure::new(FailureKind::Limit, name, text));
        }
        Ok(space)
    }

    fn schedule(&mut self, reader: Reader<'_>, node: &Node) -> Result<(), Failure> {
        for (key, value) in reader.map(node, "a mapping of options of `chipless schedule`")? {
            let count = |least: u64, most: u64| match reader.count(value, "a whole number")? {
                n if (least..=most).contains(&n) => Ok(n),
                n => {
                    let text = format!("expected a number from {least} to {most}, found {n}");
                    Err(reader.wrong(value.span, text))
                }
            };
            match key {
                "objective" => {
                    let all = [Objective::Edp, Objective::Delay, Objective::Energy];
                    self.objective = choice(reader, value, "an objective", &all, Objective::name)?;
                }
                "precision" => {
                    let all = [Precision::Half, Precision::Int8];
                    let chosen = choice(reader, value, "a precision", &all, Precision::name)?;
                    self.reading.precision = Some(chosen);
                }
                "trees" => self.trees = count(1, u64::from(u32::MAX))?,
                "seed" => self.seed = count(0, u64::MAX)?,
                "batch" => self.reading.batch = count(1, LARGEST_BATCH)?.cast_signed(),
                "shapes" => self.reading.shapes = shapes(reader, value)?,
                "constants" => self.constants = constants(reader, value)?,
                _ => {
                    let known = [
                        "objective",
                        "precision",
                        "trees",
                        "seed",
                        "batch",
                        "shapes",
                        "constants",
                    ];
                    return Err(reader.one_of(value.span, "an option", key, &known));
                }
            }
        }
        Ok(())
    }

    fn price(&mut self, reader: Reader<'_>, node: &Node) -> Result<(), Failure> {
        for (key, value) in reader.map(node, "a mapping of process and memory")? {
            match key {
                "process" => {
                    let all = &Process::ALL;
                    self.process = choice(reader, value, "a process", all, Process::name)?;
                }
                "memory" => {
                    self.memory = choice(reader, value, "DRAM", &Memory::ALL, Memory::name)?;
                }
                _ => {
                    let known = ["process", "memory"];
                    return Err(reader.one_of(value.span, "a key", key, &known));
                }
            }
        }
        Ok(())
    }

    /// Columns of which the front is made, at least two. Less is better.
    pub fn front(&self) -> &[String] {
        &self.front
    }

    /// How many machines it has; `None` beyond 2^64. Each network is scheduled for each.
    pub fn machines(&self) -> Option<u64> {
        let figures = self.figures.iter();
        let values: Vec<Values> = figures.map(|figure| figure.values.clone()).collect();
        self.sample.count(&values)
    }

    /// Where a line is, for messages.
    pub(super) fn at(&self, line: u32) -> String {
        format!("{}:{line}", self.name)
    }
}

/// A value of a figure of the machine: a number, a pair of whole numbers, or text.
fn figure(reader: Reader<'_>, node: &Node) -> Result<Value, Failure> {
    match &node.value {
        yaml::Value::List(items) => match items.as_slice() {
            [a, b] => {
                let each = |node| reader.count(node, "a whole number");
                Ok(Value::Text(format!("{}x{}", each(a)?, each(b)?)))
            }
            _ => Err(reader.expected(node, "two whole numbers, such as 4x4")),
        },
        yaml::Value::Text(text) if text.parse::<f64>().is_err() => Ok(Value::Text(text.clone())),
        _ => number(reader, node),
    }
}

fn choice<T: Copy>(
    reader: Reader<'_>,
    node: &Node,
    what: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, Failure> {
    let text = reader.text(node, what)?;
    let known: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    let found = all.iter().find(|one| name(**one) == text);
    found
        .copied()
        .ok_or_else(|| reader.one_of(node.span, what, text, &known))
}

fn shapes(reader: Reader<'_>, node: &Node) -> Result<Shapes, Failure> {
    let each = reader.map(node, "a mapping of inputs and shapes")?;
    let shape = |(name, node): (&str, &Node)| {
        let yaml::Value::List(items) = &node.value else {
            return Err(reader.expected(node, "a shape, such as [1, 3, 224, 224]"));
        };
        let extents = items.iter().map(|item| {
            let extent = reader.count(item, "an extent")?;
            i64::try_from(extent).map_err(|_| reader.expected(item, "an extent"))
        });
        Ok((name.to_owned(), extents.collect::<Result<_, Failure>>()?))
    };
    each.into_iter().map(shape).collect()
}

fn constants(reader: Reader<'_>, node: &Node) -> Result<Constants, Failure> {
    let each = reader.map(node, "a mapping of inputs and numbers")?;
    let constant = |(name, node): (&str, &Node)| match number(reader, node)? {
        Value::Number(number) => Ok((name.to_owned(), Fixed::Number(number))),
        Value::Whole(number) => Ok((name.to_owned(), Fixed::Number(number as f64))),
        _ => Err(reader.expected(node, "a number")),
    };
    each.into_iter().map(constant).collect()
}

fn front(reader: Reader<'_>, node: &Node) -> Result<Vec<String>, Failure> {
    let yaml::Value::List(items) = &node.value else {
        return Err(reader.expected(node, "a list of columns"));
    };
    let mut names = Vec::new();
    for item in items {
        let name = reader.text(item, "a column")?;
        if !COLUMNS.contains(&name) {
            return Err(reader.one_of(item.span, "a column", name, &COLUMNS));
        }
        names.push(name.to_owned());
    }
    if names.len() < 2 {
        return Err(reader.wrong(node.span, "expected two columns at least"));
    }
    Ok(names)
}

/// Refuses a figure that a machine file does not have.
pub(super) fn unknown(space: &Space, figure: &Dimension) -> Failure {
    let hint = suggest::hint(&figure.name, FIELDS.iter().map(|field| field.key));
    let text = format!(
        "expected a key of the machine file (docs/scheduling.md), such as dram.bytes_per_cycle, found \"{}\"{hint}",
        figure.name
    );
    Failure::unreadable(space.at(figure.line), text)
}
