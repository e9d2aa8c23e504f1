//! Assembly of one core, and traces of its execution.
//!
//! One instruction a line: `[op, {map}, {parameters}]`; a trace has `{'inst_idx': …, 'time': [start, end]}` before the
//! parameters. `map` says the layer, workload and tile that the instruction is for. Each op belongs to one of nine units, which
//! work through their instructions in order. An instruction needs a token of each unit in `Prev_Insts` and gives one to each
//! unit in `Next_Insts` when it ends.

mod against;
mod literal;
mod lower;

pub use literal::Literal;

use crate::read::{Error, text};
use crate::replay::{Span, Trace};
use crate::rules::assembly as rules;
use crate::schedule::Schedule;
use chipless_model::{Finding, Info, Limits, Node, Place, TaskId, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A unit of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Control.
    Ct,
    /// Loads from DRAM to L2.
    Ld,
    /// Loads into the weight buffer.
    Lw,
    /// Processing elements.
    Pe,
    /// Vector processor.
    Vp,
    /// Changes of layout in L2.
    Dt,
    /// Stores to DRAM.
    St,
    /// Receives from other cores.
    Si,
    /// Sends to other cores.
    So,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Unit; 9] = [
        Unit::Ct,
        Unit::Ld,
        Unit::Lw,
        Unit::Pe,
        Unit::Vp,
        Unit::Dt,
        Unit::St,
        Unit::Si,
        Unit::So,
    ];

    /// As files name it.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Ct => "CT",
            Unit::Ld => "LD",
            Unit::Lw => "LW",
            Unit::Pe => "PE",
            Unit::Vp => "VP",
            Unit::Dt => "DT",
            Unit::St => "ST",
            Unit::Si => "SI",
            Unit::So => "SO",
        }
    }

    fn named(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// The unit of an op: `pe_conv` is for PE, `lda_mov` and `ldw_mov` for LD.
    fn of(op: &str) -> Option<Unit> {
        let prefix = op.split('_').next()?;
        match prefix {
            "lda" | "ldw" => Some(Unit::Ld),
            "sta" | "stw" => Some(Unit::St),
            other => Unit::named(&other.to_ascii_uppercase()),
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// `pe_conv`, `lda_mov`, …
    pub op: String,
    /// The unit that executes it.
    pub unit: Unit,
    /// The layer for which it is scheduled, by its index in the front-end file.
    pub layer: Option<i64>,
    /// The workload.
    pub workload: Option<i64>,
    /// The tile; -1 for none.
    pub tile: Option<i64>,
    /// Start and end in cycles, in traces.
    pub time: Option<[u64; 2]>,
    /// Units of which it needs a token.
    pub previous: Vec<Unit>,
    /// Units that it gives a token.
    pub next: Vec<Unit>,
    /// All parameters.
    pub parameters: Literal,
    /// Byte offset and length of its line.
    pub place: (u64, u32),
    /// Its line, from 1.
    pub line: u64,
}

impl Instruction {
    /// Whether it only sets parameters of later ones.
    pub fn is_configuration(&self) -> bool {
        self.op.contains("_cfg")
    }

    /// A list of numbers among the parameters.
    fn numbers(&self, key: &str) -> Vec<u64> {
        let items = self
            .parameters
            .get(key)
            .map(Literal::items)
            .unwrap_or_default();
        items
            .iter()
            .filter_map(|item| u64::try_from(item.integer()?).ok())
            .collect()
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.op)?;
        for (word, units) in [("after", &self.previous), ("before", &self.next)] {
            if !units.is_empty() {
                let names: Vec<&str> = units.iter().map(|unit| unit.name()).collect();
                write!(f, " {word} {}", names.join(", "))?;
            }
        }
        match self.time {
            Some([start, end]) => write!(f, ", cycles {start} to {end}"),
            None => Ok(()),
        }
    }
}

/// The instructions of a core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembly {
    /// In the file's order, which is that of each unit.
    pub instructions: Vec<Instruction>,
}

impl Assembly {
    /// Whether bytes look like assembly: the first line is a list that begins with an op and a map.
    pub fn recognize(bytes: &[u8]) -> bool {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
        let Some(rest) = start.trim_start().strip_prefix('[') else {
            return false;
        };
        rest.split_once(',').is_some_and(|(op, rest)| {
            Unit::of(op).is_some() && op.contains('_') && rest.trim_start().starts_with('{')
        })
    }

    /// Reads assembly or a trace.
    ///
    /// # Errors
    /// A line that is no instruction, or more instructions than the limit `tasks`.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Assembly, Error> {
        let text = text(bytes, limits)?;
        let mut instructions = Vec::new();
        let mut offset = 0u64;
        for (index, line) in text.split('\n').enumerate() {
            let place = (offset, line.len().min(u32::MAX as usize) as u32);
            offset += line.len() as u64 + 1;
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |column: usize, message: String| {
                let [line, column] =
                    [index + 1, column].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
                Box::new(rules::INSTRUCTION.at(Place::line(line, column), message))
            };
            if instructions.len() as u64 >= limits.tasks {
                return Err(wrong(
                    1,
                    format!("more than {} instructions, the limit `tasks`", limits.tasks),
                ));
            }
            let literal =
                literal::parse(line.trim_end_matches('\r')).map_err(|(column, what)| {
                    let found: String = line.chars().skip(column - 1).take(30).collect();
                    let found = if found.is_empty() {
                        "the end of the line".to_owned()
                    } else {
                        format!("`{found}`")
                    };
                    wrong(column, format!("expected {what}, found {found}"))
                })?;
            instructions.push(
                instruction(literal, place, index as u64 + 1)
                    .map_err(|message| wrong(1, message))?,
            );
        }
        Ok(Assembly { instructions })
    }

    /// Whether it is a trace: every instruction has its times.
    pub fn is_trace(&self) -> bool {
        !self.instructions.is_empty() && self.instructions.iter().all(|i| i.time.is_some())
    }

    /// The end of the last instruction of a trace.
    pub fn end(&self) -> Option<u64> {
        self.instructions
            .iter()
            .filter_map(|i| i.time)
            .map(|[_, end]| end)
            .max()
    }

    /// When each workload computes, and the end of it all; `None` for assembly without times.
    pub fn trace(&self) -> Option<Trace> {
        let mut spans: HashMap<u32, Span> = HashMap::new();
        for instruction in self
            .instructions
            .iter()
            .filter(|i| matches!(i.unit, Unit::Pe | Unit::Vp) && !i.is_configuration())
        {
            let (Some([start, end]), Some(Ok(workload))) =
                (instruction.time, instruction.workload.map(u32::try_from))
            else {
                continue;
            };
            let span = spans.entry(workload).or_insert(Span { start, end });
            span.start = span.start.min(start);
            span.end = span.end.max(end);
        }
        Some(Trace {
            end: self.end().filter(|_| self.is_trace())?,
            spans,
        })
    }

    /// The instructions of each task of a schedule's program, a line each: compute instructions with their tiles, all others
    /// with the first tile of their workload. `tiles` are the first and last tile of each workload, as
    /// [`Lowered`](crate::Lowered) has them. Assembly is of one core, the first of the schedule.
    pub fn by_task(
        &self,
        schedule: &Schedule,
        tiles: &[[TaskId; 2]],
    ) -> HashMap<TaskId, Vec<String>> {
        let core = schedule.cores.first();
        let mut by_task: HashMap<TaskId, Vec<String>> = HashMap::new();
        for instruction in &self.instructions {
            let workload = instruction.workload.and_then(|id| u32::try_from(id).ok());
            let Some([first, last]) = workload.and_then(|id| tiles.get(core?.position(id)?)) else {
                continue;
            };
            let tile = instruction
                .tile
                .filter(|_| !instruction.is_configuration())
                .and_then(|tile| u32::try_from(tile).ok());
            let task = TaskId::from_raw(
                first
                    .raw()
                    .saturating_add(tile.unwrap_or(0))
                    .min(last.raw()),
            );
            by_task
                .entry(task)
                .or_default()
                .push(instruction.to_string());
        }
        by_task
    }

    /// The file at a glance.
    pub fn info(&self) -> Info {
        let mut counts = vec![("instructions".to_owned(), self.instructions.len() as u64)];
        let mut by_op: BTreeMap<&str, u64> = BTreeMap::new();
        for instruction in &self.instructions {
            *by_op.entry(&instruction.op).or_default() += 1;
        }
        counts.extend(by_op.into_iter().map(|(op, count)| (op.to_owned(), count)));
        let kind = if self.is_trace() { "trace" } else { "assembly" };
        let end = self
            .end()
            .map(|end| ("last cycle".to_owned(), Value::Integer(end.into())));
        Info {
            target: "gemini",
            platform: "Gemini accelerators".to_owned(),
            format_version: kind.to_owned(),
            counts,
            facts: [("dialect".to_owned(), Value::Text(kind.to_owned()))]
                .into_iter()
                .chain(end)
                .collect(),
            ..Info::default()
        }
    }

    /// The instructions as a tree.
    pub fn raw(&self) -> Node {
        let children = self.instructions.iter().map(|instruction| {
            let mut node = tree(&instruction.op, &instruction.parameters);
            node.offset = Some(instruction.place.0);
            node
        });
        Node {
            name: "assembly".to_owned(),
            children: children.collect(),
            ..Node::default()
        }
    }

    /// Checks that tokens given and taken balance.
    pub fn findings(&self) -> Vec<Finding> {
        let mut tokens: BTreeMap<(Unit, Unit), (u64, u64, u64)> = BTreeMap::new();
        for instruction in &self.instructions {
            for unit in &instruction.next {
                let entry = tokens.entry((instruction.unit, *unit)).or_default();
                *entry = (entry.0 + 1, entry.1, instruction.line);
            }
            for unit in &instruction.previous {
                let entry = tokens.entry((*unit, instruction.unit)).or_default();
                *entry = (entry.0, entry.1 + 1, instruction.line);
            }
        }
        let unbalanced = tokens
            .into_iter()
            .filter(|(_, (given, taken, _))| given != taken);
        unbalanced
            .map(|((from, to), (given, taken, line))| {
                let rule = if taken > given { &rules::TOKEN_MISSING } else { &rules::TOKEN_LEFT };
                let message = format!(
                    "expected as many tokens taken as given from {} to {}, found {given} given and {taken} taken",
                    from.name(),
                    to.name()
                );
                rule.at(Place::line(u32::try_from(line).unwrap_or(u32::MAX), 1), message)
            })
            .collect()
    }
}

fn tree(name: &str, literal: &Literal) -> Node {
    let mut node = Node {
        name: name.to_owned(),
        ..Node::default()
    };
    match literal {
        Literal::Integer(value) => node.value = Some(Value::Integer((*value).into())),
        Literal::Number(value) => node.value = Some(Value::Number(*value)),
        Literal::Text(text) => node.value = Some(Value::Text(text.clone())),
        Literal::List(items) => {
            node.children = items
                .iter()
                .enumerate()
                .map(|(i, item)| tree(&i.to_string(), item))
                .collect();
        }
        Literal::Map(entries) => {
            node.children = entries
                .iter()
                .map(|(key, value)| tree(key, value))
                .collect();
        }
    }
    node
}

/// An instruction of the literal of its line.
fn instruction(literal: Literal, place: (u64, u32), line: u64) -> Result<Instruction, String> {
    let Literal::List(parts) = literal else {
        return Err("expected an instruction [op, {…}, {…}], found another value".to_owned());
    };
    let [first, map, .., parameters] = parts.as_slice() else {
        return Err(format!(
            "expected an instruction [op, {{…}}, {{…}}], found a list of {}",
            parts.len()
        ));
    };
    let op = first.text().ok_or("expected an op, found another value")?;
    let unit = Unit::of(op).ok_or_else(|| {
        format!("expected an op of one of the units CT, LD, LW, PE, VP, DT, ST, SI, SO, found {op}")
    })?;
    let times = parts
        .get(2)
        .and_then(|part| part.get("time"))
        .map(Literal::items);
    let time = match times {
        None => None,
        Some([start, end]) => {
            let cycle = |value: &Literal| value.integer().and_then(|v| u64::try_from(v).ok());
            match (cycle(start), cycle(end)) {
                (Some(start), Some(end)) if start <= end => Some([start, end]),
                _ => {
                    return Err(
                        "expected `time` as start and end in cycles, in this order".to_owned()
                    );
                }
            }
        }
        Some(_) => return Err("expected `time` as start and end in cycles".to_owned()),
    };
    let units = |key: &str| {
        let names = parameters.get(key).map(Literal::items).unwrap_or_default();
        let unit = |name: &Literal| {
            name.text()
                .and_then(Unit::named)
                .ok_or_else(|| format!("expected names of units in {key}"))
        };
        names
            .iter()
            .map(unit)
            .collect::<Result<Vec<Unit>, String>>()
    };
    let number = |key: &str| map.get(key).and_then(Literal::integer);
    Ok(Instruction {
        op: op.to_owned(),
        unit,
        layer: number("slyr"),
        workload: number("wkl"),
        tile: number("tile"),
        time,
        previous: units("Prev_Insts")?,
        next: units("Next_Insts")?,
        parameters: parameters.clone(),
        place,
        line,
    })
}
