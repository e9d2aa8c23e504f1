//! `chipless list`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::options::TargetOptions;
use crate::output::{Format, OutputOptions};
use crate::terminal;
use chipless::{Document, suggest};
use chipless_model::{Program, QueueId, Task, TaskId};
use chipless_report::list::{Lister, TaskReport};
use chipless_report::registers::{self, Descriptor};
use chipless_report::why::ModelNode;
use chipless_report::{Carries, SCHEMA_VERSION, listed};
use chipless_sim::TimingOnly;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Disassemble: tasks by queue, with waits and accesses.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Queues, tasks, operations or layers to list. Default: all.
    ///
    /// Examples: `dpu0`, `dpu0[3]`, `'dpu*'`, `'dpu0[1..3]'` (both ends included), `conv` (tasks whose operation begins with that word), `Conv_44` (all
    /// tasks of that layer, by the names of `run`), `spill` (transfers of that kind, by the names of `run`). The parts of
    /// a queue's name before a dot may be left out where that leaves one queue: `pe[0]` for `sg00.pe[0]`.
    #[arg(value_name = "NAME")]
    tasks: Vec<String>,
    #[command(flatten)]
    answer: OutputOptions,
    /// Show each descriptor field: bits, value, meaning (npu).
    #[arg(long)]
    registers: bool,
    /// Print all as assembler text that `pack` turns back (neuron).
    #[arg(long, conflicts_with_all = ["names", "format", "tasks"])]
    asm: bool,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless list model.blob | less
  chipless list model.blob dpu0 'dma0.ddr[12]'   one queue, one task of another
  chipless list --format json model.blob | jq '.tasks[].name'
  chipless list model.blob 'dpu0[3]' --registers
  chipless list model.blob 'depthwise conv'      tasks of one operation
  chipless list model.blob spill reload          transfers by what they carry
  chipless list --asm model.neff > model.asm && chipless pack model.asm -o again.neff

A task is its name, its operation, the compiler's label and its place in the file; then
  wait barrier 3 (use 7)              what must hold before it starts
  r cmx0+0x18000  4×64 B stride 512   reads: buffer, offset, runs of bytes
  w y+0x0  4096 B                     bytes that it writes
  produce barrier 4 (use 9)           what it signals, in this order
  asm 118: pe_conv after LD           line 118 of the assembly (gemini)
  node conv_3 (Conv)                  the node of the model, with --model (npu)
  0x060 [29:27] odu_cfg.permutation … a field of a descriptor, with --registers (npu)

Exit status: 0 done, 1 the file is not a program that can run, 2 it cannot be read or is not supported.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let opened = Opened::open(&arguments.file)?;
    opened.with_document(&options, |document| {
        if arguments.asm {
            return terminal::print(&document.capabilities().disassembles()?.assembler()?)
                .map(|()| Exit::Done);
        }
        let lowered = document.listed()?;
        // What an option could not do, `--model` without names; a list has no use for notes on times and values.
        for note in lowered.notes.iter().filter(|note| note.starts_with("--")) {
            terminal::complain(&format!("{}: note: {note}\n", opened.path));
        }
        let beside = Beside {
            assembly: match document.capabilities().lists_assembly {
                Some(assembly) => assembly.beside()?,
                None => HashMap::new(),
            },
            registers: arguments.registers,
            document: &**document,
        };
        list(arguments, &opened, &lowered.program, &beside)?;
        Ok(Exit::Done)
    })
}

fn list(
    arguments: &Arguments,
    opened: &Opened,
    program: &Program<'_>,
    beside: &Beside<'_>,
) -> Result<(), Failure> {
    // A run tells which uses of the barriers the tasks meet, as far as it comes.
    let timeline =
        chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly).timeline;
    let lister = Lister::new(program, Some(&timeline), terminal::out());
    let selected = select(opened, program, &lister, &arguments.tasks)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match arguments.answer.format() {
        Format::Human => text(&mut out, program, &lister, &selected, beside),
        Format::Json => json(&mut out, program, &lister, &selected, beside),
    }?;
    out.flush().map_err(|error| Failure::output(&error))
}

/// What stands beside the tasks.
struct Beside<'d> {
    /// Instructions of another file.
    assembly: HashMap<TaskId, Vec<String>>,
    /// Whether to show registers.
    registers: bool,
    document: &'d dyn Document,
}

impl Beside<'_> {
    fn registers(
        &self,
        program: &Program<'_>,
        task: TaskId,
    ) -> Result<Option<Vec<Descriptor>>, Failure> {
        if !self.registers {
            return Ok(None);
        }
        let shown = self.document.capabilities().shows_registers()?;
        Ok(Some(shown.registers(program, task)?))
    }

    /// Name and operation of the model's node that a layer comes from.
    fn node(&self, layer: Option<&str>) -> Option<ModelNode<'_>> {
        let (name, operation) = self.document.capabilities().names_nodes?.node(layer?)?;
        Some(ModelNode { name, operation })
    }
}

fn text(
    out: &mut impl Write,
    program: &Program<'_>,
    lister: &Lister<'_, '_>,
    selected: &[TaskId],
    beside: &Beside<'_>,
) -> Result<(), Failure> {
    let mut queue = None;
    let mut text = String::new();
    for task in selected {
        let here = program.tasks[*task].queue;
        if queue != Some(here) {
            text.push_str(if queue.is_some() { "\n" } else { "" });
            text.push_str(&lister.queue(here));
            queue = Some(here);
        }
        lister.text(&mut text, *task);
        if let Some(node) = beside.node(lister.layer(*task).map(|(layer, _)| layer)) {
            let _ = writeln!(text, "      {node}");
        }
        for line in beside.assembly.get(task).into_iter().flatten() {
            text.push_str("      asm ");
            text.push_str(line);
            text.push('\n');
        }
        if let Some(registers) = beside.registers(program, *task)? {
            text.push_str(&registers::text(&registers));
        }
        out.write_all(text.as_bytes())
            .map_err(|error| Failure::output(&error))?;
        text.clear();
    }
    Ok(())
}

/// A task with its instructions.
#[derive(JsonSchema, Serialize)]
pub(super) struct Listed<'t> {
    #[serde(flatten)]
    report: TaskReport<'t>,
    /// Lines of assembler text, with `--asm`.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    assembly: &'t [String],
    /// The node of the model that its layer comes from, with `--model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<ModelNode<'t>>,
    /// Its descriptors field by field, with `--registers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<Vec<Descriptor>>,
}

fn json(
    out: &mut impl Write,
    program: &Program<'_>,
    lister: &Lister<'_, '_>,
    selected: &[TaskId],
    beside: &Beside<'_>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::output(&error);
    write!(out, "{{\"schema_version\": {SCHEMA_VERSION}, \"tasks\": [").map_err(failed)?;
    for (i, task) in selected.iter().enumerate() {
        let start = if i == 0 { b"\n" as &[u8] } else { b",\n" };
        out.write_all(start).map_err(failed)?;
        let node = beside.node(lister.layer(*task).map(|(layer, _)| layer));
        let listed = Listed {
            report: lister.report(*task),
            assembly: beside.assembly.get(task).map_or(&[], Vec::as_slice),
            node,
            registers: beside.registers(program, *task)?,
        };
        serde_json::to_writer(&mut *out, &listed).map_err(|error| failed(error.into()))?;
    }
    out.write_all(b"\n]}\n").map_err(failed)
}

/// The tasks of these names in the program's order, queue by queue.
fn select(
    opened: &Opened,
    program: &Program<'_>,
    lister: &Lister<'_, '_>,
    names: &[String],
) -> Result<Vec<TaskId>, Failure> {
    let chosen = names
        .iter()
        .map(|name| Chosen::of(opened, program, lister, name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut selected: Vec<TaskId> = program
        .tasks
        .iter_enumerated()
        .filter(|(id, task)| {
            chosen.is_empty()
                || chosen
                    .iter()
                    .any(|chosen| chosen.has(program, lister, *id, task))
        })
        .map(|(id, _)| id)
        .collect();
    selected.sort_by_key(|id| (program.tasks[*id].queue, program.tasks[*id].index));
    Ok(selected)
}

/// What names can be, where they have to be a task at last.
const NAMES: &str = "a queue, an operation, a layer, what transfers carry (spill), or a task";

/// The tasks of a name.
enum Chosen<'n> {
    /// Of some queues, those with some numbers.
    Queues(Vec<QueueId>, RangeInclusive<u32>),
    /// Those whose operation begins with these words.
    Operation(&'n str),
    /// Those of a layer.
    Layer(&'n str),
    /// Transfers that carry one thing, such as `spill`.
    Carried(Carries),
}

impl<'n> Chosen<'n> {
    fn has(&self, program: &Program<'_>, lister: &Lister<'_, '_>, id: TaskId, task: &Task) -> bool {
        match self {
            Chosen::Queues(queues, indices) => {
                queues.contains(&task.queue) && indices.contains(&task.index)
            }
            Chosen::Operation(words) => begins(&program.kernel(id).operation(), words),
            Chosen::Layer(name) => layer_of(lister, id) == Some(*name),
            Chosen::Carried(kind) => Carries::of(program, id) == Some(*kind),
        }
    }

    /// `queue`, `queue[n]` or `queue[a..b]`; `*` and `?` stand for any characters of a queue's name. Or the words that an operation begins with,
    /// a layer, or what transfers carry.
    fn of(
        opened: &Opened,
        program: &Program<'_>,
        lister: &Lister<'_, '_>,
        name: &'n str,
    ) -> Result<Chosen<'n>, Failure> {
        let every = 0..=u32::MAX;
        if let Some(queue) = program.queue_named(name) {
            return Ok(Chosen::Queues(vec![queue], every));
        }
        let mut tasks = program.tasks.indices();
        if tasks
            .clone()
            .any(|task| layer_of(lister, task) == Some(name))
        {
            return Ok(Chosen::Layer(name));
        }
        if tasks.any(|task| begins(&program.kernel(task).operation(), name)) {
            return Ok(Chosen::Operation(name));
        }
        let mut carried = (program.tasks.indices()).filter_map(|task| Carries::of(program, task));
        if let Some(kind) = carried.find(|kind| kind.name() == name) {
            return Ok(Chosen::Carried(kind));
        }
        let indexed = indexed(name);
        let is_pattern = |text: &str| text.contains(['*', '?']);
        let is_range = indexed.is_some() && name.contains("..");
        if !is_pattern(name) && !is_range {
            let task = &program.tasks[task_named(opened, program, name, NAMES)?];
            return Ok(Chosen::Queues(vec![task.queue], task.index..=task.index));
        }
        let (queue, indices) = indexed.unwrap_or((name, every));
        let chosen = queues_like(program, queue)
            .map_err(|error| Failure::misuse(&opened.path, format_args!("\"{name}\": {error}")))?;
        if chosen.is_empty() {
            let queues: Vec<&str> = program.queues.iter().map(|q| &*q.name).collect();
            let text = format!(
                "expected a pattern that fits a queue, found \"{name}\"; the queues are {}",
                listed(&queues)
            );
            return Err(Failure::misuse(&opened.path, text));
        }
        Ok(Chosen::Queues(chosen, indices))
    }
}

/// The layer of a task, as `run` has it.
fn layer_of<'l>(lister: &'l Lister<'_, '_>, task: TaskId) -> Option<&'l str> {
    lister.layer(task).map(|(layer, _)| layer)
}

/// Whether an operation begins with these words, in whichever case.
pub(super) fn begins(operation: &str, words: &str) -> bool {
    let start = operation.get(..words.len());
    let rest = operation.get(words.len()..).unwrap_or_default();
    !words.is_empty()
        && start.is_some_and(|start| start.eq_ignore_ascii_case(words))
        && (rest.is_empty() || rest.starts_with(' '))
}

/// The queues and the numbers of `queue[n]` or `queue[a..b]`; `*` and `?` stand for any characters of a queue's name.
pub(super) fn numbered(
    program: &Program<'_>,
    name: &str,
) -> Option<(Vec<QueueId>, RangeInclusive<u32>)> {
    let (queue, indices) = indexed(name)?;
    Some((queues_like(program, queue).ok()?, indices))
}

/// The queue of a name, or those that a pattern fits, with or without what stands before a dot.
pub(super) fn queues_like(
    program: &Program<'_>,
    name: &str,
) -> Result<Vec<QueueId>, glob::PatternError> {
    if let Some(queue) = program.queue_named(name) {
        return Ok(vec![queue]);
    }
    // Names of queues have brackets of their own.
    let pattern = glob::Pattern::new(&name.replace('[', "[[]"))?;
    let fits = |whole: &str| {
        let ends = whole.match_indices('.').map(|(at, _)| &whole[at + 1..]);
        pattern.matches(whole) || ends.into_iter().any(|end| pattern.matches(end))
    };
    let queues = program.queues.iter_enumerated();
    let fitting = queues.filter(|(_, queue)| fits(&queue.name));
    Ok(fitting.map(|(id, _)| id).collect())
}

/// The parts of `queue[n]` or `queue[a..b]`.
fn indexed(name: &str) -> Option<(&str, RangeInclusive<u32>)> {
    let (queue, index) = name.strip_suffix(']')?.rsplit_once('[')?;
    Some((queue, range(index)?))
}

/// `3` or `1..3`, both ends included.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    match text.split_once("..") {
        Some((first, last)) => Some(first.parse().ok()?..=last.parse().ok()?),
        None => text.parse().ok().map(|n| n..=n),
    }
}

/// The task of a name that the user gave, where that is what was `expected`: "a task".
pub(super) fn task_named(
    opened: &Opened,
    program: &Program<'_>,
    name: &str,
    expected: &str,
) -> Result<TaskId, Failure> {
    program.task_named(name).ok_or_else(|| {
        let queue = name.split('[').next().unwrap_or(name);
        let tasks = |id| program.tasks.iter().filter(|t| t.queue == id).count();
        let text = if let Some(id) = program.queue_named(queue) {
            let queue = &program.queues[id].name;
            format!("expected a task {queue}[0] to {queue}[{}], found \"{name}\"", tasks(id).saturating_sub(1))
        } else {
            let queues: Vec<&str> = program.queues.iter().map(|q| &*q.name).collect();
            let hint = suggest::hint(queue, queues.iter().copied());
            let example = queues.first().unwrap_or(&"dma");
            let then = if hint.is_empty() { "; the" } else { " The" };
            format!("expected {expected} such as {example}[0], found \"{name}\"{hint}{then} queues are {}", listed(&queues))
        };
        Failure::misuse(&opened.path, text)
    })
}
