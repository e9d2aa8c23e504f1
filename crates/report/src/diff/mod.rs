//! What changed between two programs of one target, by meaning: tasks are matched by what they do and where their data come from, not
//! by address or order.
//!
//! Names of builds, dates, addresses that only moved and numbers of semaphores do not count. A task that reads what another task wrote
//! is the same as its match when it reads the same part of what the other's match wrote.

mod documents;
mod flow;
mod meaning;
mod pairs;
mod syncs;
mod text;
mod time;

use crate::compare::Comparison;
use chipless_model::{Access, BufferId, Port, Program, TaskId};
use chipless_sim::Timeline;
use flow::{Flow, Maker, Source};
use pairs::{Described, Pairs};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use syncs::Syncs;

pub use time::{Contribution, MachineFigure, ProgramFact, TimeDifference, changed, facts, time};

/// One of two programs, and a run of it.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s, 'a> {
    /// The program.
    pub program: &'s Program<'a>,
    /// Its run.
    pub timeline: &'s Timeline,
    /// Its tasks in the order in which data flow is followed. Where several write the same bytes and nothing orders them, the last one counts.
    pub order: &'s [TaskId],
}

/// What differs.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Difference {
    /// Version of all JSON outputs.
    pub schema_version: u32,
    /// Whether the two mean the same.
    pub equal: bool,
    /// Inputs and outputs that differ, a line each; of contracts, whatever differs.
    pub interface: Vec<String>,
    /// Tasks.
    pub tasks: Tasks,
    /// Constants that matched tasks read and that hold other bytes.
    pub constants: Vec<Constant>,
    /// Peaks of live bytes.
    pub memory: Vec<Peak>,
    /// Why the one takes longer, where somebody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeDifference>,
    /// Where the numbers first differ, where somebody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

/// Tasks that were matched, and those that were not.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Tasks {
    /// Pairs.
    pub matched: usize,
    /// Pairs that differ in address, queue or order only.
    pub moved: usize,
    /// Names in the second program.
    pub added: Vec<String>,
    /// Names in the first one.
    pub removed: Vec<String>,
    /// Pairs that do not mean the same.
    pub changed: Vec<Changed>,
}

/// A pair of tasks that do not mean the same.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Changed {
    /// Name in the first program.
    pub a: String,
    /// Name in the second one.
    pub b: String,
    /// Operation in the first program.
    pub operation: String,
    /// `operation`, `parameters`, `shape`, `access`, `waits`, `signals`, `constant`.
    pub what: Vec<&'static str>,
    /// How waits and signals differ, a sentence each with names and values of both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub syncs: Vec<String>,
    /// How the data differ that it reads (`access`): whose they are, and whose they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<String>,
}

/// A constant with other bytes.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Constant {
    /// Buffer in the first program.
    pub a: String,
    /// Buffer in the second one.
    pub b: String,
    /// How many bytes differ, of those that the tasks read.
    pub bytes_changed: u64,
}

/// Most live bytes of a memory at a time.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Peak {
    /// Its name.
    pub memory: String,
    /// In the first program; null where it has no such memory.
    pub peak_a: Option<u64>,
    /// In the second one.
    pub peak_b: Option<u64>,
}

/// Where two runs on the same inputs first write other numbers.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Values {
    /// The first pair of tasks that do; null where none does.
    pub first: Option<FirstDifference>,
    /// The outputs that both programs have, the second program's beside the first one's.
    pub outputs: Vec<Comparison>,
    /// Which of the two has errors, so that its numbers depend on the order in which its tasks run: a sentence each.
    pub notes: Vec<String>,
}

/// The first pair of tasks that write other numbers.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FirstDifference {
    /// Name in the first program.
    pub task_a: String,
    /// Name in the second one.
    pub task_b: String,
    /// The buffer that the first program's task writes.
    pub buffer: String,
    /// The greatest difference of two elements; infinite, which JSON has as null, where one is a NaN or an infinity.
    pub max_abs: f64,
}

/// Compares two programs. Also the pairs of tasks that are each other's, in the first program's order.
pub fn diff(a: Side<'_, '_>, b: Side<'_, '_>) -> (Difference, Vec<(TaskId, TaskId)>) {
    let (of_a, of_b) = (Described::of(a), Described::of(b));
    let pairs = Pairs::of(&of_a, &of_b);
    let syncs = Syncs::of(a, b, &pairs.matched);
    let mut constants: FxHashMap<(BufferId, BufferId), u64> = FxHashMap::default();
    let elsewhere = elsewhere(&of_a, &of_b, &pairs);
    let (mut changed, mut moved) = (Vec::new(), 0);
    for (&(x, y), elsewhere) in pairs.matched.iter().zip(elsewhere) {
        let mut what = of_a.meanings[x].differences(&of_b.meanings[y]);
        let mut flow = Vec::new();
        if !same_sources(&of_a, x, &of_b, y, &pairs) {
            what.push("access");
            flow = other_sources(
                (a.program, &of_a.flow, x),
                (b.program, &of_b.flow, y),
                &pairs,
            );
        }
        let (mut waits, signals) = (syncs.other_waits(x, y), syncs.other_signals(x, y));
        if !waits.is_empty() {
            what.push("waits");
        }
        if !signals.is_empty() {
            what.push("signals");
        }
        waits.extend(signals);
        let other = if of_a.flow.describes(x) && of_b.flow.describes(y) {
            Vec::new()
        } else {
            other_constants(a.program, x, b.program, y)
        };
        if !other.is_empty() {
            what.push("constant");
        }
        for (buffers, bytes) in other {
            let sum = constants.entry(buffers).or_default();
            *sum = sum.saturating_add(bytes);
        }
        if what.is_empty() {
            moved += usize::from(elsewhere);
        } else {
            changed.push(Changed {
                a: a.program.task_name(x),
                b: b.program.task_name(y),
                operation: a.program.kernel(x).operation().into_owned(),
                what,
                syncs: waits,
                flow,
            });
        }
    }
    let interface = interface(a.program, b.program);
    let names = |program: &Program<'_>, tasks: &[TaskId]| {
        let names = tasks.iter().map(|task| program.task_name(*task));
        names.collect::<Vec<_>>()
    };
    let tasks = Tasks {
        matched: pairs.matched.len(),
        moved,
        added: names(b.program, &pairs.added),
        removed: names(a.program, &pairs.removed),
        changed,
    };
    let mut constants: Vec<_> = constants.into_iter().collect();
    constants.sort_unstable();
    let found = [&tasks.added, &tasks.removed, &interface];
    let difference = Difference {
        schema_version: crate::SCHEMA_VERSION,
        equal: found.iter().all(|found| found.is_empty()) && tasks.changed.is_empty(),
        interface,
        tasks,
        constants: constants
            .into_iter()
            .map(|((x, y), bytes_changed)| Constant {
                a: a.program.buffers[x].name.clone(),
                b: b.program.buffers[y].name.clone(),
                bytes_changed,
            })
            .collect(),
        memory: peaks(a, b),
        time: None,
        values: None,
    };
    (difference, pairs.matched)
}

/// Whether two matched tasks read the same parts of what matched tasks wrote, and write the same parts of what the host gets.
fn same_sources(
    a: &Described<'_, '_>,
    x: TaskId,
    b: &Described<'_, '_>,
    y: TaskId,
    pairs: &Pairs,
) -> bool {
    let (from_a, from_b) = (a.flow.sources(x), b.flow.sources(y));
    from_a.len() == from_b.len()
        && a.flow.given(x) == b.flow.given(y)
        && from_a
            .iter()
            .zip(from_b)
            .all(|(s, t)| same_maker(s, t, pairs) && s.places == t.places)
}

fn same_maker(s: &Source, t: &Source, pairs: &Pairs) -> bool {
    match (s.maker, t.maker) {
        (Maker::Task(s), Maker::Task(t)) => pairs.partner[s] == Some(t),
        (s, t) => s == t,
    }
}

/// Whose data the second of two matched tasks reads, and whose the first one read, in words.
fn other_sources(
    (a, of_a, x): (&Program<'_>, &Flow, TaskId),
    (b, of_b, y): (&Program<'_>, &Flow, TaskId),
    pairs: &Pairs,
) -> Vec<String> {
    let (before, after) = (of_a.sources(x), of_b.sources(y));
    let same = |s: &Source, t: &Source| same_maker(s, t, pairs);
    let new = after.iter().filter(|t| !before.iter().any(|s| same(s, t)));
    let gone = before.iter().filter(|s| !after.iter().any(|t| same(s, t)));
    let new: Vec<String> = new.map(|source| flow::named(b, source.maker)).collect();
    let gone: Vec<String> = gone.map(|source| flow::named(a, source.maker)).collect();
    let (new, gone) = (new.join(", "), gone.join(", "));
    let shared = before.iter().filter_map(|s| {
        let t = after.iter().find(|t| same(s, t))?;
        (s.places != t.places).then_some(t.maker)
    });
    let shared: Vec<String> = shared.map(|maker| flow::named(b, maker)).collect();
    // What no task wrote and nobody gave has its initial values.
    let said = |text: String| {
        if text.is_empty() {
            "initial values".to_owned()
        } else {
            text
        }
    };
    let mut texts = Vec::new();
    match (new.is_empty() && gone.is_empty(), shared.is_empty()) {
        (false, true) => texts.push(format!("reads {}, was: {}", said(new), said(gone))),
        (false, false) => {
            if !new.is_empty() {
                texts.push(format!("also reads {new}"));
            }
            if !gone.is_empty() {
                texts.push(format!("no longer reads {gone}"));
            }
        }
        (true, _) => {}
    }
    if !shared.is_empty() {
        texts.push(format!("reads other bytes of {}", shared.join(", ")));
    }
    if of_a.given(x) != of_b.given(y) {
        texts.push("writes other bytes of an output".to_owned());
    }
    texts
}

/// Constants that two matched tasks read and that hold other bytes, with how many bytes differ. Where they read another number of bytes, their
/// shapes differ, which says more.
fn other_constants(
    a: &Program<'_>,
    x: TaskId,
    b: &Program<'_>,
    y: TaskId,
) -> Vec<((BufferId, BufferId), u64)> {
    let pairs = flow::constants(a, x)
        .into_iter()
        .zip(flow::constants(b, y))
        .filter(|((_, x), (_, y))| x.len() == y.len() && x != y);
    pairs
        .map(|((from, x), (to, y))| {
            let differing = x.iter().zip(&y).filter(|(x, y)| x != y).count();
            ((from, to), differing as u64)
        })
        .collect()
}

/// Of each pair, whether the two stand elsewhere: at other addresses, on another queue, or in another order on it.
fn elsewhere(a: &Described<'_, '_>, b: &Described<'_, '_>, pairs: &Pairs) -> Vec<bool> {
    let places = |program: &Program<'_>, task: TaskId| {
        let mut places = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            if access.tensor != Access::DESCRIPTION {
                let address = program.buffers[access.buffer].address.unwrap_or(0);
                places.push(address.wrapping_add(access.pattern.offset));
            }
        });
        places
    };
    let mut last: FxHashMap<&str, u32> = FxHashMap::default();
    let mut order = pairs.matched.clone();
    order.sort_by_key(|(x, _)| {
        let t = &a.program.tasks[*x];
        (t.queue, t.index)
    });
    let mut overtaken: FxHashMap<TaskId, bool> = FxHashMap::default();
    for (x, y) in order {
        let (t, u) = (&a.program.tasks[x], &b.program.tasks[y]);
        let queue = &*a.program.queues[t.queue].name;
        let behind = last.entry(queue).or_insert(0);
        let elsewhere = b.program.queues[u.queue].name != queue || u.index < *behind;
        *behind = u.index.max(*behind);
        overtaken.insert(x, elsewhere);
    }
    let elsewhere = pairs.matched.iter();
    elsewhere
        .map(|(x, y)| overtaken[x] || places(a.program, *x) != places(b.program, *y))
        .collect()
}

fn interface(a: &Program<'_>, b: &Program<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let ports = [
        ("input", &a.interface.inputs, &b.interface.inputs),
        ("output", &a.interface.outputs, &b.interface.outputs),
    ];
    for (kind, a, b) in ports {
        for port in a {
            match b.iter().find(|other| other.name == port.name) {
                None => lines.push(format!("{kind} {} is gone", port.name)),
                Some(other) if said(other) != said(port) => lines.push(format!(
                    "{kind} {}: {}, was {}",
                    port.name,
                    said(other),
                    said(port)
                )),
                Some(_) => {}
            }
        }
        let new = b
            .iter()
            .filter(|port| !a.iter().any(|old| old.name == port.name));
        lines.extend(new.map(|port| format!("{kind} {} is new", port.name)));
    }
    lines
}

fn said(port: &Port) -> String {
    let shape: Vec<String> = port.shape.iter().map(u64::to_string).collect();
    format!("{} [{}]", port.element.name(), shape.join(", "))
}

fn peaks(a: Side<'_, '_>, b: Side<'_, '_>) -> Vec<Peak> {
    let peaks = |side: Side<'_, '_>| {
        let peaks = crate::attribution::lives(side.program, side.timeline).peaks();
        let named = peaks
            .iter_enumerated()
            .map(|(memory, peak)| (side.program.memories[memory].name.clone(), *peak));
        named.collect::<Vec<_>>()
    };
    let (mut rows, b) = (Vec::new(), peaks(b));
    for (memory, peak) in peaks(a) {
        let other = b.iter().find(|(name, _)| *name == memory);
        rows.push(Peak {
            memory,
            peak_a: Some(peak),
            peak_b: other.map(|(_, peak)| *peak),
        });
    }
    for (memory, peak) in b {
        if !rows.iter().any(|row: &Peak| row.memory == memory) {
            rows.push(Peak {
                memory,
                peak_a: None,
                peak_b: Some(peak),
            });
        }
    }
    rows
}
