//! Why two runs take different times: each run's critical path, layer by layer.

use super::Side;
use crate::attribution::Attribution;
use crate::info::value_text;
use crate::why::{Engines, START};
use chipless_model::Info;
use chipless_model::{Program, TaskId};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

/// The difference of two latencies, in parts that add up to it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TimeDifference {
    /// Of the first run.
    pub latency_a_ns: f64,
    /// Of the second.
    pub latency_b_ns: f64,
    /// The greatest contribution first.
    pub layers: Vec<Contribution>,
    /// What the two files say of themselves and that differs: tiles, versions of the compiler, sizes.
    pub program: Vec<ProgramFact>,
    /// What `run` notes of one of the programs and not of the other, after `A: ` or `B: `.
    pub notes: Vec<String>,
    /// Figures of the two machines that differ; none where both run on the same machine. Costs of the operations whose times change the most come first,
    /// then others that the programs' times rest on, then the rest in the order of the machine file.
    pub machine: Vec<MachineFigure>,
}

/// A fact that two programs do not share, as `chipless info` has it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ProgramFact {
    /// Which fact.
    pub fact: String,
    /// In the first program; null where it does not say.
    pub a: Option<String>,
    /// In the second one.
    pub b: Option<String>,
}

/// A figure that two machines do not share.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct MachineFigure {
    /// Its name, as `--set` takes it.
    pub figure: String,
    /// Its unit; `1` for ratios.
    pub unit: String,
    /// On the first machine; null where it has no such figure.
    pub a: Option<String>,
    /// On the second one.
    pub b: Option<String>,
}

/// A layer's part of the difference.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Contribution {
    /// The layer; where a program names none, the queue and the operation.
    pub layer: String,
    /// Time of the critical path of the first run until a task of this layer ended, waits before it included.
    pub a_ns: f64,
    /// Of the second run.
    pub b_ns: f64,
    /// What makes the difference: its tasks take other times, or more or less of it lies on the critical path.
    pub why: &'static str,
    /// `b_ns` − `a_ns`.
    pub contribution_ns: f64,
}

#[derive(Clone, Copy, Default)]
struct Part {
    /// On the critical path: time until its tasks ended, waits before them included.
    whole: f64,
    /// Of that, time of its tasks.
    work: f64,
    /// Its tasks on the critical path.
    critical: usize,
    /// All its tasks, and the time that they take.
    tasks: usize,
    busy: f64,
}

/// Takes the difference of two runs apart.
pub fn time(a: Side<'_, '_>, b: Side<'_, '_>) -> TimeDifference {
    let has_layers = |side: Side<'_, '_>| {
        side.program
            .tasks
            .indices()
            .any(|task| side.program.layer(task).is_some())
    };
    let layered = has_layers(a) && has_layers(b);
    let engines = Engines::of([a.program, b.program]);
    let engines = (!layered).then_some(&engines);
    let (parts_a, parts_b) = (parts(a, engines), parts(b, engines));
    let mut names: Vec<&String> = parts_a.keys().chain(parts_b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let part =
        |parts: &FxHashMap<String, Part>, name: &str| parts.get(name).copied().unwrap_or_default();
    let mut layers: Vec<Contribution> = names
        .into_iter()
        .map(|name| (name, part(&parts_a, name), part(&parts_b, name)))
        .filter(|(_, p, q)| p.critical + q.critical > 0)
        .map(|(name, p, q)| Contribution {
            layer: name.clone(),
            a_ns: p.whole,
            b_ns: q.whole,
            why: why(p, q),
            contribution_ns: q.whole - p.whole,
        })
        .collect();
    layers.sort_by(|x, y| y.contribution_ns.abs().total_cmp(&x.contribution_ns.abs()));
    TimeDifference {
        latency_a_ns: a.timeline.end.ns(),
        latency_b_ns: b.timeline.end.ns(),
        layers,
        program: Vec::new(),
        notes: Vec::new(),
        machine: Vec::new(),
    }
}

fn why(a: Part, b: Part) -> &'static str {
    let (work, wait) = (b.work - a.work, (b.whole - b.work) - (a.whole - a.work));
    let whole = work + wait;
    // What the tasks themselves take more or less explains their part of the path where it is as much at least; otherwise the path has moved.
    let busy = b.busy - a.busy;
    let is_theirs = busy * work > 0.0 && busy.abs() >= work.abs() / 2.0;
    if a.tasks == 0 {
        "only in the second"
    } else if b.tasks == 0 {
        "only in the first"
    } else if whole.abs() < 1e-3 {
        "as before"
    } else if work.abs() >= wait.abs() && is_theirs {
        if work > 0.0 {
            "works longer"
        } else {
            "works shorter"
        }
    } else if work.abs() >= wait.abs() || a.critical != b.critical {
        if whole > 0.0 {
            "more of it on the critical path"
        } else {
            "less of it on the critical path"
        }
    } else if wait > 0.0 {
        "waits more"
    } else {
        "waits less"
    }
}

/// The critical path from 0 to the latency, cut at the ends of its tasks; each part belongs to the layer of its task.
fn parts(side: Side<'_, '_>, engines: Option<&Engines<'_>>) -> FxHashMap<String, Part> {
    let Side {
        program, timeline, ..
    } = side;
    let attribution = Attribution::of(program, timeline);
    let mut parts: FxHashMap<String, Part> = FxHashMap::default();
    let start = program.start.min(timeline.end).ns();
    if start > 0.0 {
        let part = Part {
            whole: start,
            work: start,
            critical: 1,
            tasks: 1,
            busy: start,
        };
        parts.insert(START.to_owned(), part);
    }
    let mut at = start;
    let path: Vec<TaskId> = attribution.critical.clone();
    for (n, task) in path.iter().enumerate() {
        let Some(row) = attribution.row(*task) else {
            continue;
        };
        // What comes after the last task's end belongs to it too.
        let last = n + 1 == path.len();
        let end = if last {
            timeline.end.ns()
        } else {
            row.end.ns().min(timeline.end.ns())
        };
        let part = parts
            .entry(name(program, &attribution, engines, *task))
            .or_default();
        part.critical += 1;
        if end > at || last {
            part.whole += end - at;
            part.work += end - row.start.ns().max(at).min(end);
            at = end;
        }
    }
    for row in &attribution.rows {
        let name = name(program, &attribution, engines, row.task);
        let part = parts.entry(name).or_default();
        part.tasks += 1;
        part.busy += (row.end - row.start).ns();
    }
    parts
}

/// The part that a task belongs to: its layer where both programs name theirs, its engine and operation otherwise.
fn name(
    program: &Program<'_>,
    attribution: &Attribution,
    engines: Option<&Engines<'_>>,
    task: TaskId,
) -> String {
    let layer = || attribution.layer(program, task).map(str::to_owned);
    let queue = || &program.queues[program.tasks[task].queue].name;
    let operation = || program.kernel(task).operation();
    match engines {
        Some(engines) => format!("{}: {}", engines.name(queue()), operation()),
        None => {
            layer().unwrap_or_else(|| format!("{}: {}", Engines::of([]).name(queue()), operation()))
        }
    }
}

/// The operations of two runs, those first whose tasks take the most time more or less.
pub fn changed(a: Side<'_, '_>, b: Side<'_, '_>) -> Vec<String> {
    let mut busy: FxHashMap<String, f64> = FxHashMap::default();
    for (side, sign) in [(a, -1.0), (b, 1.0)] {
        for (task, record) in side.timeline.tasks.iter_enumerated() {
            let operation = side.program.kernel(task).operation();
            *busy.entry(operation.into_owned()).or_default() +=
                sign * (record.end.saturating_sub(record.start)).ns();
        }
    }
    let mut changed: Vec<(String, f64)> = busy.into_iter().collect();
    changed.sort_by(|x, y| y.1.abs().total_cmp(&x.1.abs()).then_with(|| x.0.cmp(&y.0)));
    changed
        .into_iter()
        .map(|(operation, _)| operation)
        .collect()
}

/// Characters of a fact beyond which it is a hash or a path, which explain no time.
const LONGEST_FACT: usize = 24;

/// What two programs say of themselves and that differs, in the order of `chipless info`.
pub fn facts(a: &Info, b: &Info) -> Vec<ProgramFact> {
    let of = |info: &Info| -> Vec<(String, String)> {
        let platform = ("platform".to_owned(), info.platform.clone());
        let facts = info.facts.iter();
        let facts = facts.map(|(name, value)| (name.clone(), value_text(value)));
        std::iter::once(platform)
            .chain(facts)
            .filter(|(_, value)| value.chars().count() <= LONGEST_FACT)
            .collect()
    };
    let (of_a, of_b) = (of(a), of(b));
    let find = |all: &[(String, String)], fact: &str| {
        let found = all.iter().find(|(name, _)| name == fact);
        found.map(|(_, value)| value.clone())
    };
    let mut names: Vec<&String> = of_a.iter().map(|(name, _)| name).collect();
    for (name, _) in &of_b {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let facts = names.into_iter().map(|fact| ProgramFact {
        fact: fact.clone(),
        a: find(&of_a, fact),
        b: find(&of_b, fact),
    });
    facts.filter(|fact| fact.a != fact.b).collect()
}
