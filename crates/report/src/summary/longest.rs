//! The longest tasks and the longest waits, each a line for all that are alike.

use super::Run;
use crate::bars::{cut, widest};
use crate::lanes::pieces;
use crate::style::{Paint, clean, share};
use crate::transfers::Carries;
use crate::uses::Uses;
use chipless_model::{ConfigurationId, IndexVec, Program, QueueId, SyncId, TaskId, Time};
use chipless_sim::State;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of each.
pub(super) const LONGEST: usize = 8;
/// Waits of engines that have less than one part in so many of the run on the critical path are not marked.
const LEAST_ON_PATH: u64 = 100;
/// Characters of a label at most.
const LABEL: usize = 48;

/// Tasks that take the same time for the same, and the label of the first.
struct Alike<'r> {
    time: Time,
    first: TaskId,
    number: usize,
    operation: Cow<'r, str>,
    /// What they carry, where they are transfers.
    carries: Option<Carries>,
    label: &'r str,
    /// How many of them lie on the critical path.
    critical: usize,
}

impl Alike<'_> {
    /// `*` where all lie on the critical path; `2*` where two of several do.
    fn mark(&self) -> String {
        match self.critical {
            0 => String::new(),
            all if all == self.number => "*".to_owned(),
            some => format!("{some}*"),
        }
    }
}

/// Time that queues spent waiting for one sync; queues that waited alike stand together.
struct Waited {
    queues: Vec<QueueId>,
    sync: SyncId,
    /// Which use of it, where lists count them.
    used: Option<ConfigurationId>,
    /// The mean of the queue's servers.
    total: Time,
    times: usize,
    /// The longest of these waits, and who ended it.
    longest: Time,
    by: Option<TaskId>,
    /// Whether it costs time: a task of the critical path is among those that waited, on an engine that the path spends some time on.
    is_critical: bool,
}

impl<'r> Run<'r, '_> {
    /// The longest first; of equal ones that with the first task.
    fn longest(&self) -> Vec<Alike<'r>> {
        let (program, timeline) = (self.program, self.timeline);
        let done = || {
            let records = timeline.tasks.iter_enumerated();
            records
                .filter(|(_, record)| record.state == State::Done)
                .map(|(task, record)| (record.end - record.start, task))
        };
        // Each of the longest times has a line at least, so shorter ones have none.
        let mut times: Vec<Time> = Vec::with_capacity(LONGEST + 1);
        for (time, _) in done() {
            let place = times.partition_point(|other| *other > time);
            if place < LONGEST && times.get(place) != Some(&time) {
                times.insert(place, time);
                times.truncate(LONGEST);
            }
        }
        let least = times.last().copied().unwrap_or(Time::ZERO);
        let mut alike = FxHashMap::default();
        for (time, task) in done().filter(|(time, _)| *time >= least) {
            let label = program.tasks[task].label.as_deref().unwrap_or("");
            // Of one layer, or with labels that differ in numbers alone.
            let of = match program.layer(task) {
                Some(layer) => vec![layer],
                None => pieces(label).iter().map(|(text, _)| *text).collect(),
            };
            let carries = Carries::of(program, task);
            let what = (time, program.kernel(task).operation(), carries, of);
            let alike = alike.entry(what).or_insert_with(|| Alike {
                carries,
                time,
                first: task,
                number: 0,
                operation: program.kernel(task).operation(),
                label,
                critical: 0,
            });
            alike.number += 1;
            let row = self.attribution.row(task);
            alike.critical += usize::from(row.is_some_and(|row| row.critical));
        }
        let mut found: Vec<Alike<'r>> = alike.into_values().collect();
        found.sort_by_key(|alike| (std::cmp::Reverse(alike.time), alike.first));
        found.truncate(LONGEST);
        found
    }

    pub(super) fn longest_text(&self, out: &mut String, paint: Paint, width: usize) {
        let longest = self.longest();
        if longest.is_empty() {
            return;
        }
        let marks: Vec<String> = longest.iter().map(Alike::mark).collect();
        let is_counted = marks.iter().any(|mark| mark.len() > 1);
        let note = if is_counted {
            "estimated; * is on the critical path, a number before it says how many of the row"
        } else {
            "estimated; * is on the critical path"
        };
        let mark_column = widest(marks.iter().map(String::as_str)).max(1);
        let (title, note) = (paint.strong("longest tasks"), paint.dim(note));
        let _ = writeln!(out, "\n{title}  {note}");
        let name = |alike: &Alike<'_>| match alike.number {
            1 => self.program.task_name(alike.first),
            number => format!(
                "{} and {} like it",
                self.program.task_name(alike.first),
                number - 1
            ),
        };
        let names: Vec<String> = longest.iter().map(name).collect();
        let column = widest(names.iter().map(String::as_str));
        // Two gaps of two, the time and the share stand between.
        let room = width.saturating_sub(column + 24) / 2;
        let label = room.clamp(LABEL / 4, LABEL);
        let operations: Vec<String> = longest
            .iter()
            .map(|alike| cut(&clean(&self.doing(alike)), label))
            .collect();
        let is_labelled = longest.iter().any(|alike| !alike.label.is_empty());
        let operation_column = if is_labelled {
            widest(operations.iter().map(String::as_str))
        } else {
            0
        };
        let rows = longest.iter().zip(marks).zip(names).zip(operations);
        for (((alike, mark), name), operation) in rows {
            let operation = paint.operation(format!("{operation:operation_column$}"));
            let line = format!(
                "{mark:>mark_column$} {name:column$}  {:>9}  {:>7}  {operation}  {}",
                alike.time,
                share(alike.time, self.timeline.end),
                cut(&clean(alike.label), label)
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    /// What such tasks do: what a transfer carries, and whether its bytes count for more than they are.
    fn doing(&self, alike: &Alike<'_>) -> String {
        let Some(carries) = alike.carries else {
            return alike.operation.clone().into_owned();
        };
        let mut text = match carries.name() {
            _ if carries == Carries::OnChipCopy => alike.operation.clone().into_owned(),
            name if name == alike.operation => name.to_owned(),
            name => format!("{} {name}", alike.operation),
        };
        let times = self.program.times_counted(alike.first);
        if let Some(times) = times.filter(|times| *times > 1) {
            let _ = write!(text, ", timed as {times} times its bytes");
        }
        text
    }

    /// Queues that the critical path spends a part of the run on. What an engine waits for that has next to nothing to do costs nothing.
    fn on_path(&self) -> IndexVec<QueueId, bool> {
        let program = self.program;
        let mut times: IndexVec<QueueId, Time> =
            program.queues.iter().map(|_| Time::ZERO).collect();
        let path = self.attribution.critical.iter();
        for row in path.filter_map(|task| self.attribution.row(*task)) {
            times[program.tasks[row.task].queue] += row.end - row.start;
        }
        let least = Time(self.timeline.end.0 / LEAST_ON_PATH);
        times.into_iter().map(|time| time >= least).collect()
    }

    fn waited(&self) -> Vec<Waited> {
        let Run {
            program, timeline, ..
        } = *self;
        // A barrier is used again and again, for other tasks each time.
        let mut waits: BTreeMap<(QueueId, SyncId, Option<ConfigurationId>), Waited> =
            BTreeMap::new();
        let uses = (!program.configurations.is_empty()).then(|| Uses::of(program, Some(timeline)));
        let on_path = self.on_path();
        for (task, record) in timeline
            .tasks
            .iter_enumerated()
            .filter(|(_, record)| record.state != State::Waiting)
        {
            let time = record.start.saturating_sub(record.ready);
            let Some(stall) = record.stall.filter(|_| time > Time::ZERO) else {
                continue;
            };
            let queue = program.tasks[task].queue;
            let used = uses
                .as_ref()
                .and_then(|uses| uses.wait(program, task, stall.sync));
            let none = || Waited {
                queues: vec![queue],
                sync: stall.sync,
                used,
                total: Time::ZERO,
                times: 0,
                longest: Time::ZERO,
                by: None,
                is_critical: false,
            };
            let waited = waits.entry((queue, stall.sync, used)).or_insert_with(none);
            waited.total += time;
            waited.times += 1;
            let row = self.attribution.row(task);
            waited.is_critical |= on_path[queue] && row.is_some_and(|row| row.critical);
            // Of equal ones the last.
            if time >= waited.longest {
                (waited.longest, waited.by) = (time, stall.by);
            }
        }
        // Units that work side by side wait side by side: the mean of them is a part of the run.
        let mean = |w: Waited| Waited {
            total: Time(w.total.0 / u64::from(units(program, w.queues[0]))),
            ..w
        };
        let mut waited: Vec<Waited> = waits.into_values().map(mean).collect();
        let alike = |w: &Waited| {
            let (longer, what) = (std::cmp::Reverse(w.total), (w.sync, w.used));
            (longer, what, w.by, w.times, w.longest)
        };
        waited.sort_by_key(alike);
        waited.dedup_by(|next, kept| {
            let same = alike(next) == alike(kept);
            if same {
                kept.queues.append(&mut next.queues);
                kept.is_critical |= next.is_critical;
            }
            same
        });
        // What idle engines wait for costs nothing.
        waited.sort_by_key(|w| !w.is_critical);
        waited.truncate(LONGEST);
        waited
    }

    pub(super) fn waited_text(&self, out: &mut String, paint: Paint) {
        let Run {
            program, timeline, ..
        } = *self;
        let waited = self.waited();
        if waited.is_empty() {
            return;
        }
        let is_mean = waited.iter().any(|w| units(program, w.queues[0]) > 1);
        let mean = if is_mean {
            ", of several units the mean"
        } else {
            ""
        };
        let note = format!(
            "estimated{mean}; (*) ends with a task of the critical path, others cost nothing"
        );
        let (title, note) = (paint.strong("longest waits"), paint.dim(note));
        let _ = writeln!(out, "\n{title}  {note}");
        let queues: Vec<String> = waited
            .iter()
            .map(|w| {
                cut(
                    &w.queues
                        .iter()
                        .map(|q| &*program.queues[*q].name)
                        .collect::<Vec<_>>()
                        .join(", "),
                    LABEL,
                )
            })
            .collect();
        let names = widest(queues.iter().map(String::as_str));
        let syncs = widest(waited.iter().map(|w| &*program.syncs[w.sync].name));
        for (w, queues) in waited.iter().zip(&queues) {
            let sync = &program.syncs[w.sync].name;
            let _ = write!(
                out,
                "{} {queues:names$}  {:>9}  {:>7}  for {sync:syncs$}",
                if w.is_critical { "*" } else { " " },
                w.total,
                share(w.total, timeline.end)
            );
            let used = w
                .used
                .map(|used| format!(" (use {})", program.configurations[used].number));
            let used = used.unwrap_or_default();
            let detail = match (w.times, units(program, w.queues[0])) {
                (0 | 1, 1) => used,
                (0 | 1, units) => format!("{used}  one of {units} units, {}", w.longest),
                (times, 1) => format!("  {times} times, longest {}{used}", w.longest),
                (times, units) => format!(
                    "  {times} waits of {units} units, longest {}{used}",
                    w.longest
                ),
            };
            out.push_str(&detail);
            if let Some(by) = w.by {
                let _ = write!(out, "  signalled by {}", program.task_name(by));
                if let Some(layer) = self.attribution.layer(program, by) {
                    let _ = write!(out, " ({})", cut(&clean(layer), LABEL));
                }
            }
            out.push('\n');
        }
    }
}

/// How many tasks of a queue run at a time.
fn units(program: &Program<'_>, queue: QueueId) -> u32 {
    program.queues[queue].servers.max(1)
}
