//! What bounds a run: its critical path and layers, the roofline of each operation, and runs with other figures of the machine.

use crate::attribution::{Attribution, Row};
use crate::transfers::{Carries, REPEATED};
use chipless_model::{IndexVec, KernelId, Program, QueueId, TaskId, Time};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;

/// A layer's part of a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Layer<'r> {
    /// Its name.
    pub layer: &'r str,
    /// Its tasks that ran.
    pub tasks: usize,
    /// Time that they took, added up.
    pub busy_ns: f64,
    /// Of that, on the critical path.
    pub critical_ns: f64,
    /// The node of the model that it comes from; absent where no model was given, or the model has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<ModelNode<'r>>,
}

/// A node of the model that a program was compiled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ModelNode<'r> {
    /// The model's name for it.
    pub name: &'r str,
    /// Its operator.
    pub operation: &'r str,
}

impl fmt::Display for ModelNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ({})", self.name, self.operation)
    }
}

/// What is of the run and of none of its tasks: waits for signals that take their time.
pub const BETWEEN: &str = "between tasks";
/// What the machine takes before the first task.
pub const START: &str = "start of the inference";

/// The critical path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Critical<'r> {
    /// Its tasks from the first to the last.
    #[schemars(with = "Vec<String>")]
    pub tasks: Names<'r>,
    /// Its parts by queue, the longest first.
    pub by_queue: Vec<QueueTime<'r>>,
    /// Its parts by kind of engine, the longest first: queues that differ in numbers alone are one. What no task of the path covers is `start of the inference`
    /// before the first of the program and `between tasks` otherwise.
    pub by_engine: Vec<EngineTime>,
    /// What its tasks do, in all queues together, that with the most time first.
    pub by_operation: Vec<OperationTime>,
}

/// A kind of engine's part of the critical path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct EngineTime {
    /// Its queues' name without numbers: `dma.ddr`, `dpu`; that of its queue where it has one only.
    pub engine: String,
    /// Time of its tasks on the path.
    pub ns: f64,
    /// Of the run, from 0 to 1. At most 1 / (1 - share) is to be won by a faster engine alone.
    pub share: f64,
}

/// Tasks as names, which are made when they are written: a critical path may have as many tasks as the program.
#[derive(Clone, Copy, Debug)]
pub struct Names<'r> {
    program: &'r Program<'r>,
    tasks: &'r [TaskId],
}

impl Names<'_> {
    /// How many.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }
}

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.tasks.iter().map(|task| self.program.task_name(*task)))
    }
}

/// A queue's part of the critical path.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct QueueTime<'r> {
    /// Its name.
    pub queue: &'r str,
    /// Time of its tasks on the path.
    pub ns: f64,
    /// What these tasks do, that with the most time first.
    pub operations: Vec<OperationTime>,
}

/// An operation's part of the critical path.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct OperationTime {
    /// The operation, as lists show it.
    pub operation: String,
    /// What its tasks carry; absent where they are no transfers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carries>,
    /// Its tasks on the path.
    pub tasks: usize,
    /// Time that they took.
    pub ns: f64,
}

impl OperationTime {
    /// What tells its tasks from others: what they carry to or from the chip, or their operation.
    pub fn name(&self) -> &str {
        match self.carries {
            Some(carries) if carries != Carries::OnChipCopy => carries.name(),
            _ => &self.operation,
        }
    }
}

/// What bounds the tasks of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Bytes that shared resources carry.
    Memory,
    /// What a task costs however little it does.
    Latency,
}

impl Bound {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Compute => "compute",
            Bound::Memory => "memory",
            Bound::Latency => "latency",
        }
    }
}

/// The tasks of an operation: what they compute, what they move, and how fast.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Roof {
    /// The operation, as lists show it.
    pub operation: String,
    /// Its tasks that ran.
    pub tasks: usize,
    /// Arithmetic operations; 0 where a task only moves bytes, or where their number is not known.
    pub ops: u64,
    /// Bytes that its accesses read and write.
    pub bytes: u64,
    /// Arithmetic operations for each byte; 0 where no byte is touched.
    pub ops_per_byte: f64,
    /// Arithmetic operations for each second that the tasks ran.
    pub ops_per_second: f64,
    /// What takes the most of their time.
    pub bound: Bound,
}

/// A run with one change of the machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WhatIf {
    /// As it was asked for: `dma.latency=0.5x`.
    pub change: String,
    /// Of a parameter, its value without the change, with its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Of a compilation, what to ask of the compiler to get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Its latency.
    pub latency_ns: f64,
    /// Latency without the change over latency with it.
    pub speedup: f64,
}

impl WhatIf {
    /// What it stands for where it leaves something out. Nobody can make a layer cost nothing; who compiles without it also gets other layers around
    /// it.
    pub(crate) fn bound(&self) -> Option<&'static str> {
        match self.change.matches("without=").count() {
            0 => None,
            1 if self.change.ends_with(REPEATED) => {
                Some("if constants stayed where they were brought, and all else as it is")
            }
            1 => Some("if it cost nothing and all else stayed"),
            _ => Some("if they cost nothing and all else stayed"),
        }
    }
}

/// `1.250 times as fast`, or `slower: 1.250 times as long`.
pub(crate) fn speed(ratio: f64) -> String {
    if ratio < 1.0 {
        format!("slower: {:.3} times as long", 1.0 / ratio)
    } else {
        format!("{ratio:.3} times as fast")
    }
}

/// What a run would take if a figure of the machine were twice as good.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Ranked {
    /// Which figure.
    pub figure: String,
    /// `2x`, `0.5x`.
    pub change: String,
    /// Latency of the run with the change.
    pub latency_ns: f64,
    /// Latency without the change over latency with it.
    pub gain: f64,
}

/// Tasks that belong to no layer, by the part of the run that they are in.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Outside {
    /// `profiling` where the program measures itself; else `start-up` before the first task of a layer, `drain` after the last, `between layers`
    /// otherwise.
    pub part: &'static str,
    /// Its tasks that ran.
    pub tasks: usize,
    /// Time that they took, added up.
    pub busy_ns: f64,
    /// Of that, on the critical path.
    pub critical_ns: f64,
}

/// What belongs to no layer, of a run with layers.
pub fn outside(program: &Program<'_>, attribution: &Attribution) -> Vec<Outside> {
    let of_layers = || {
        let rows = attribution.rows.iter();
        rows.filter(|row| attribution.layer(program, row.task).is_some())
    };
    let (Some(first), Some(last)) = (
        of_layers().map(|row| row.start).min(),
        of_layers().map(|row| row.end).max(),
    ) else {
        return Vec::new();
    };
    let mut parts = ["start-up", "between layers", "drain", "profiling"].map(|part| Outside {
        part,
        tasks: 0,
        busy_ns: 0.0,
        critical_ns: 0.0,
    });
    for row in &attribution.rows {
        if attribution.layer(program, row.task).is_some() {
            continue;
        }
        let part = match row.start {
            _ if Carries::of(program, row.task) == Some(Carries::Profiling) => 3,
            start if start < first => 0,
            start if start >= last => 2,
            _ => 1,
        };
        let (part, took) = (&mut parts[part], (row.end - row.start).ns());
        part.tasks += 1;
        part.busy_ns += took;
        part.critical_ns += if row.critical { took } else { 0.0 };
    }
    parts.into_iter().filter(|part| part.tasks > 0).collect()
}

/// The layers of a run, in order of their first task; none where no task names one. Tasks without a name belong to the layer that data flow
/// gives them to.
pub fn layers<'r>(program: &'r Program<'_>, attribution: &Attribution) -> Vec<Layer<'r>> {
    let mut rows: Vec<Layer<'r>> = Vec::new();
    let mut place: FxHashMap<&str, usize> = FxHashMap::default();
    for row in &attribution.rows {
        let Some(layer) = attribution.layer(program, row.task) else {
            continue;
        };
        let at = *place.entry(layer).or_insert_with(|| {
            rows.push(Layer {
                layer,
                tasks: 0,
                busy_ns: 0.0,
                critical_ns: 0.0,
                node: None,
            });
            rows.len() - 1
        });
        let took = (row.end - row.start).ns();
        rows[at].tasks += 1;
        rows[at].busy_ns += took;
        rows[at].critical_ns += if row.critical { took } else { 0.0 };
    }
    rows
}

/// Tasks and their time by queue, operation and what they carry.
type Operations<'k> = FxHashMap<(QueueId, Cow<'k, str>, Option<Carries>), (usize, Time)>;

/// The same in all queues together.
type AllOperations<'k> = FxHashMap<(Cow<'k, str>, Option<Carries>), (usize, Time)>;

/// The critical path, by name and by queue.
pub fn critical<'r>(
    program: &'r Program<'_>,
    attribution: &'r Attribution,
    end: Time,
) -> Critical<'r> {
    let mut sums: IndexVec<QueueId, Time> = program.queues.iter().map(|_| Time::ZERO).collect();
    let (mut operations, mut all) = (Operations::default(), AllOperations::default());
    let path = attribution.critical.iter();
    for row in path.filter_map(|task| attribution.row(*task)) {
        let (queue, took) = (program.tasks[row.task].queue, row.end - row.start);
        sums[queue] += took;
        let operation = program.kernel(row.task).operation();
        let carries = Carries::of(program, row.task);
        let of_all = all.entry((operation.clone(), carries)).or_default();
        let of_queue = operations.entry((queue, operation, carries)).or_default();
        for (tasks, time) in [of_all, of_queue] {
            *tasks += 1;
            *time += took;
        }
    }
    let found = sums.iter_enumerated().filter(|(_, sum)| **sum > Time::ZERO);
    let mut by_queue: Vec<QueueTime<'r>> = found
        .map(|(queue, sum)| QueueTime {
            queue: &program.queues[queue].name,
            ns: sum.ns(),
            operations: of_queue(&operations, queue),
        })
        .collect();
    by_queue.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    let by_engine = by_engine(program, &sums, end);
    let by_operation = longest_first((all.into_iter()).map(
        |((operation, carries), (tasks, time))| OperationTime {
            operation: operation.into_owned(),
            carries,
            tasks,
            ns: time.ns(),
        },
    ));
    Critical {
        tasks: Names {
            program,
            tasks: &attribution.critical,
        },
        by_queue,
        by_engine,
        by_operation,
    }
}

/// What the tasks of a queue do, that with the most time first.
fn of_queue(operations: &Operations<'_>, queue: QueueId) -> Vec<OperationTime> {
    let own = operations.iter().filter(|((of, ..), _)| *of == queue);
    longest_first(
        own.map(|((_, operation, carries), (tasks, time))| OperationTime {
            operation: operation.to_string(),
            carries: *carries,
            tasks: *tasks,
            ns: time.ns(),
        }),
    )
}

fn longest_first(operations: impl Iterator<Item = OperationTime>) -> Vec<OperationTime> {
    let mut operations: Vec<OperationTime> = operations.collect();
    operations.sort_by(|a, b| {
        let longer = b.ns.total_cmp(&a.ns);
        longer.then_with(|| (&a.operation, a.carries).cmp(&(&b.operation, b.carries)))
    });
    operations
}

/// The parts of the path by kind of engine, and what is between them.
fn by_engine(program: &Program<'_>, sums: &IndexVec<QueueId, Time>, end: Time) -> Vec<EngineTime> {
    let engines = Engines::of([program]);
    let of_queues = sums
        .iter_enumerated()
        .map(|(queue, sum)| (engines.name(&program.queues[queue].name), *sum));
    let covered = sums.iter().fold(Time::ZERO, |all, sum| all + *sum);
    let start = program.start.min(end);
    let between = end.saturating_sub(covered).saturating_sub(start);
    let no_task = [(START, start), (BETWEEN, between)].map(|(part, time)| (part.to_owned(), time));
    let mut engines: Vec<(String, Time)> = Vec::new();
    for (engine, time) in of_queues.chain(no_task) {
        match engines.iter_mut().find(|(known, _)| *known == engine) {
            Some((_, known)) => *known += time,
            None => engines.push((engine, time)),
        }
    }
    engines.retain(|(_, time)| *time > Time::ZERO);
    engines.sort_by_key(|(_, time)| Reverse(*time));
    let share = |time: Time| {
        if end == Time::ZERO {
            0.0
        } else {
            time.ns() / end.ns()
        }
    };
    let shown = engines.into_iter().map(|(engine, time)| EngineTime {
        engine,
        ns: time.ns(),
        share: share(time),
    });
    shown.collect()
}

/// The kinds of engines behind the queues of programs.
pub(crate) struct Engines<'p>(FxHashMap<String, Option<&'p str>>);

impl<'p> Engines<'p> {
    pub(crate) fn of(programs: impl IntoIterator<Item = &'p Program<'p>>) -> Engines<'p> {
        let mut only = FxHashMap::default();
        let queues = programs.into_iter().flat_map(|program| &program.queues);
        for queue in queues {
            let known = only.entry(kind(&queue.name)).or_insert(Some(&*queue.name));
            *known = known.filter(|name| *name == queue.name);
        }
        Engines(only)
    }

    /// The kind of a queue: its name without numbers, or its name where no other queue is of its kind.
    pub(crate) fn name(&self, queue: &str) -> String {
        let kind = kind(queue);
        match self.0.get(&kind) {
            Some(Some(only)) => (*only).to_owned(),
            _ => kind,
        }
    }
}

fn kind(queue: &str) -> String {
    queue.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Sums over the tasks of an operation.
#[derive(Default)]
struct Sums {
    tasks: usize,
    ops: u64,
    bytes: u64,
    time: Time,
    /// The arithmetic and the time of its first task, and whether another one does more or less.
    first: Option<(u64, Time)>,
    varies: bool,
    /// Whether another one takes more or less time.
    is_uneven: bool,
    /// Time of tasks that compute, that move bytes, and that do neither.
    compute: Time,
    memory: Time,
    latency: Time,
}

/// How long a task's engine stood still while a transfer brought what the task waited for: the transfer's latency, and the rest.
fn waited_for_bytes(program: &Program<'_>, attribution: &Attribution, row: &Row) -> (Time, Time) {
    let bringing = row.waits.last().and_then(|wait| {
        let by = wait.by.filter(|by| !program.demands(*by).is_empty())?;
        Some((wait, attribution.row(by)?))
    });
    let Some((wait, transfer)) = bringing else {
        return (Time::ZERO, Time::ZERO);
    };
    let first_byte = transfer.start + program.tasks[transfer.task].fixed;
    let shared = |from: Time, to: Time| to.min(wait.end).saturating_sub(from.max(wait.start));
    (
        shared(transfer.start, first_byte.min(transfer.end)),
        shared(first_byte, transfer.end),
    )
}

/// What bounds each operation, that with the most time first. A transfer's time is latency until its bytes move. A task without transfers
/// computes where its kernel says so; memory bounds it where its engine stood still for longer than that, waiting for the bytes.
pub fn roofline(program: &Program<'_>, attribution: &Attribution) -> Vec<Roof> {
    // Of each kernel the place of its operation in `sums`, its arithmetic, and the bytes that it touches.
    let mut of_kernel: IndexVec<KernelId, Option<(usize, u64, u64)>> =
        program.kernels.iter().map(|_| None).collect();
    let mut places: FxHashMap<Cow<'static, str>, usize> = FxHashMap::default();
    let mut sums: Vec<Sums> = Vec::new();
    for row in &attribution.rows {
        let (task, kernel) = (&program.tasks[row.task], program.kernel(row.task));
        let (place, ops, bytes) = *of_kernel[task.kernel].get_or_insert_with(|| {
            let place = *places.entry(kernel.operation()).or_insert_with(|| {
                sums.push(Sums::default());
                sums.len() - 1
            });
            let (read, written) = kernel.traffic();
            (place, kernel.arithmetic(), read.saturating_add(written))
        });
        let sum = &mut sums[place];
        let took = row.end - row.start;
        sum.tasks += 1;
        sum.ops = sum.ops.saturating_add(ops);
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.time += took;
        let (first_ops, first_took) = *sum.first.get_or_insert((ops, took));
        sum.varies |= ops != first_ops;
        sum.is_uneven |= took != first_took;
        if program.demands(row.task).is_empty() {
            if ops == 0 {
                sum.latency += took;
                continue;
            }
            sum.compute += took;
            let (latency, memory) = waited_for_bytes(program, attribution, row);
            sum.latency += latency;
            sum.memory += memory;
        } else {
            let latency = task.fixed.min(took);
            sum.latency += latency;
            sum.memory += took - latency;
        }
    }
    let mut sums: Vec<_> = places
        .into_iter()
        .map(|(operation, place)| (operation, &sums[place]))
        .collect();
    sums.sort_by(|(a, x), (b, y)| y.time.cmp(&x.time).then_with(|| a.cmp(b)));
    let per = |ops: u64, of: f64| if of > 0.0 { ops as f64 / of } else { 0.0 };
    let roofs = sums.into_iter().map(|(operation, sum)| {
        // Tasks that take the same time whatever they compute have a time that is fixed.
        let is_fixed = sum.varies && !sum.is_uneven;
        Roof {
            operation: operation.into_owned(),
            tasks: sum.tasks,
            ops: sum.ops,
            bytes: sum.bytes,
            ops_per_byte: per(sum.ops, sum.bytes as f64),
            ops_per_second: per(sum.ops, sum.time.ns() * 1e-9),
            bound: if is_fixed {
                Bound::Latency
            } else if sum.compute >= sum.memory && sum.compute >= sum.latency && sum.ops > 0 {
                Bound::Compute
            } else if sum.memory > sum.latency {
                Bound::Memory
            } else {
                Bound::Latency
            },
        }
    });
    roofs.collect()
}
