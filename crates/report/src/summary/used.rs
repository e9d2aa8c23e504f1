//! What was busy and what was carried: a line with a bar for each, and one line for many of a kind.

use super::{Run, tasks_of_queues, utilization};
use crate::bars::{bar, cut, widest};
use crate::lanes::{joint, pieces};
use crate::style::{Paint, bytes, count, rate};
use chipless_model::{Program, Time};
use chipless_sim::{State, Timeline};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Characters of a bar.
const BAR: usize = 40;
const SHORTEST_BAR: usize = 8;
/// Characters of a name that are shown in any case.
const SHORTEST_NAME: usize = 12;
/// So many of a kind have a line each even where they differ.
const APART: usize = 8;

/// A queue or a resource.
struct Used<'r> {
    name: &'r str,
    /// What it did of what it could have done, from 0 to 1.
    share: f64,
    /// Picoseconds or bytes.
    amount: u64,
    tasks: usize,
    /// Servers or capacity: only what has the same is of a kind.
    size: u64,
    /// Whether its units never work at once.
    takes_turns: bool,
}

/// One of them, or all of a kind.
struct Line<'r>(Vec<Used<'r>>);

impl Run<'_, '_> {
    pub(super) fn busy_text(&self, out: &mut String, paint: Paint, width: usize) {
        let (program, timeline) = (self.program, self.timeline);
        let (busy, tasks) = (timeline.busy(program), tasks_of_queues(program));
        let takes_turns = take_turns(program, timeline);
        let mut is_busy = vec![false; program.queues.len()];
        for task in program.tasks.indices() {
            is_busy[program.tasks[task].queue.index()] |= !program.kernel(task).is_latency();
        }
        let worked = program
            .queues
            .iter_enumerated()
            .filter(|(id, _)| is_busy[id.index()]);
        let queues = worked.map(|(id, queue)| Used {
            name: &queue.name,
            share: utilization(timeline, queue.servers, busy[id]),
            // The mean of its units, as the share is.
            amount: busy[id].0 / u64::from(queue.servers.max(1)),
            tasks: tasks[id.index()],
            size: u64::from(queue.servers),
            takes_turns: takes_turns[id.index()],
        });
        let _ = writeln!(
            out,
            "\n{}  {}",
            paint.strong("busy"),
            paint.dim("estimated")
        );
        let rest = |line: &Line<'_>| {
            let units = match line.0[0].size {
                0 | 1 => String::new(),
                units if line.0.iter().all(|queue| queue.takes_turns) => {
                    format!(", mean of {units} units that take turns")
                }
                units => format!(", mean of {units} units"),
            };
            let time = Time(line.amount()).to_string();
            let head = format!("{:>5.1} %  {time:>9}", line.share() * 100.0);
            (head, format!("{}{units}", line.tasks()))
        };
        lines_text(out, paint, width, &folded(queues), rest);
    }

    pub(super) fn carried_text(&self, out: &mut String, paint: Paint, width: usize) {
        let (program, timeline) = (self.program, self.timeline);
        if program.resources.is_empty() || timeline.end == Time::ZERO {
            return;
        }
        let seconds = timeline.end.ns() * 1e-9;
        let carried = program.resources.iter().zip(timeline.carried(program));
        let resources = carried.map(|(resource, carried)| Used {
            name: &resource.name,
            share: carried as f64 / seconds / resource.capacity,
            amount: carried,
            tasks: 0,
            size: resource.capacity.to_bits(),
            takes_turns: false,
        });
        let (title, note) = (
            paint.strong("carried"),
            paint.dim("bytes of transfers (a copy counts once), rates estimated"),
        );
        let _ = writeln!(out, "\n{title}  {note}");
        let rest = |line: &Line<'_>| {
            let head = format!(
                "{:>5.1} %  {:>9}  {} of {}",
                line.share() * 100.0,
                bytes(line.amount()),
                rate(line.amount() as f64 / seconds),
                rate(f64::from_bits(line.0[0].size))
            );
            (head, line.spread().unwrap_or_default())
        };
        lines_text(out, paint, width, &folded(resources), rest);
    }
}

/// By queue, whether it has several units of which one works at a time.
fn take_turns(program: &Program<'_>, timeline: &Timeline) -> Vec<bool> {
    let mut runs = vec![Vec::new(); program.queues.len()];
    for (task, record) in timeline.tasks.iter_enumerated() {
        let queue = program.tasks[task].queue;
        if program.queues[queue].servers > 1 && record.state == State::Done {
            runs[queue.index()].push((record.start, record.end));
        }
    }
    let apart = |mut runs: Vec<(Time, Time)>| {
        runs.sort_unstable();
        runs.len() > 1 && runs.windows(2).all(|pair| pair[0].1 <= pair[1].0)
    };
    runs.into_iter().map(apart).collect()
}

impl Line<'_> {
    fn name(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|one| one.name).collect();
        joint(&names)
    }

    fn share(&self) -> f64 {
        self.0.iter().map(|one| one.share).sum::<f64>() / self.0.len() as f64
    }

    fn amount(&self) -> u64 {
        let sum: u128 = self.0.iter().map(|one| u128::from(one.amount)).sum();
        (sum / self.0.len() as u128) as u64
    }

    /// What the one line does not say of several.
    fn spread(&self) -> Option<String> {
        let (first, shares) = (&self.0[0], self.0.iter().map(|one| one.share * 100.0));
        if self.0.len() == 1 {
            return None;
        }
        if self.0.iter().all(|one| one.is_like(first)) {
            return Some(format!("each of {}", self.0.len()));
        }
        let (least, most) = (
            shares.clone().fold(f64::INFINITY, f64::min),
            shares.fold(0.0, f64::max),
        );
        let number = self.0.len();
        Some(format!("mean of {number}: {least:.1} to {most:.1} %"))
    }

    fn tasks(&self) -> String {
        let tasks = self.0.iter().map(|one| one.tasks);
        let (least, most) = (
            tasks.clone().min().unwrap_or_default(),
            tasks.max().unwrap_or_default(),
        );
        let tasks = if least == most {
            count(most, "task")
        } else {
            format!("{least} to {}", count(most, "task"))
        };
        match self.spread() {
            Some(spread) => format!("{tasks}, {spread}"),
            None => tasks,
        }
    }
}

impl Used<'_> {
    fn is_like(&self, other: &Used<'_>) -> bool {
        (self.amount, self.tasks) == (other.amount, other.tasks)
    }
}

/// Joins those of a kind, whose names differ in numbers alone: where all are alike, and where they are many. A number behind × is a size
/// and tells kinds apart.
fn folded<'r>(rows: impl Iterator<Item = Used<'r>>) -> Vec<Line<'r>> {
    let mut lines: Vec<Line<'r>> = Vec::new();
    let mut places = FxHashMap::default();
    for row in rows {
        let kind = |(text, digits): (&'r str, &'r str)| {
            (text, if text.ends_with('×') { digits } else { "" })
        };
        let pieces = pieces(row.name).into_iter().map(kind);
        let place = *places
            .entry((pieces.collect::<Vec<_>>(), row.size))
            .or_insert(lines.len());
        match lines.get_mut(place) {
            Some(line) => line.0.push(row),
            None => lines.push(Line(vec![row])),
        }
    }
    let apart = |line: Line<'r>| {
        let is_one = line.0.len() > APART || line.0.iter().all(|one| one.is_like(&line.0[0]));
        if is_one {
            vec![line]
        } else {
            line.0.into_iter().map(|one| Line(vec![one])).collect()
        }
    };
    lines.into_iter().flat_map(apart).collect()
}

/// The lines, with bars as long as the width leaves room for. `rest` gives what stands behind the bar, and what ends the line.
fn lines_text(
    out: &mut String,
    paint: Paint,
    width: usize,
    lines: &[Line<'_>],
    rest: impl Fn(&Line<'_>) -> (String, String),
) {
    let rows: Vec<(String, f64, (String, String))> = lines
        .iter()
        .map(|line| (line.name(), line.share(), rest(line)))
        .collect();
    let heads = widest(rows.iter().map(|(.., (head, _))| &**head));
    let tails = widest(rows.iter().map(|(.., (_, tail))| &**tail));
    // Gaps of two characters stand between.
    let room = width.saturating_sub(heads + tails + 8);
    let names = widest(rows.iter().map(|(name, ..)| &**name))
        .min(room.saturating_sub(SHORTEST_BAR).max(SHORTEST_NAME));
    let length = room.saturating_sub(names).clamp(SHORTEST_BAR, BAR);
    for (name, share, (head, tail)) in &rows {
        let bar = paint.operation(bar(*share, length));
        let line = format!("  {:names$}  {bar}  {head}", cut(name, names));
        let _ = if tail.is_empty() {
            writeln!(out, "{line}")
        } else {
            writeln!(out, "{line}  {}", paint.dim(tail))
        };
    }
}
