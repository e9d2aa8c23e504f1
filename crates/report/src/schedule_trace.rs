//! A run beside the schedule that a vendor's compiler planned: tasks whose start or duration differ most.

use crate::bars::widest;
use crate::style::{Paint, clean, count};
use chipless_model::{Program, TaskId, Time};
use chipless_sim::{State, Timeline};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt::Write;

/// What a compiler planned.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// How long it takes, in nanoseconds.
    pub latency_ns: f64,
    /// Slices by the name of the queue of ours that they belong to, in order of time.
    pub queues: Vec<(String, Vec<Slice>)>,
}

/// A planned task.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// The compiler's name for it.
    pub name: String,
    /// Start in nanoseconds.
    pub start_ns: f64,
    /// Duration in nanoseconds.
    pub duration_ns: f64,
    /// How many tasks of ours it is; 1 but for what the compiler plans as one.
    pub tasks: usize,
}

/// A run beside it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Compared {
    /// Slices that have their tasks.
    pub matched: usize,
    /// Slices and tasks that have nothing beside them.
    pub unmatched: usize,
    /// Of the run.
    pub latency_ns: f64,
    /// Of the schedule.
    pub trace_latency_ns: f64,
    /// Busy times.
    pub queues: Vec<QueueTimes>,
    /// All that matched, the greatest difference of start and of duration together first.
    pub worst: Vec<Times>,
}

/// A queue's busy times.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct QueueTimes {
    /// Its name.
    pub queue: String,
    /// In the run.
    pub busy_ns: f64,
    /// In the schedule.
    pub trace_busy_ns: f64,
}

/// A task's times.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Times {
    /// Its name; of several that were planned as one, the first.
    pub task: String,
    /// In the run.
    pub start_ns: f64,
    /// In the schedule.
    pub trace_start_ns: f64,
    /// In the run.
    pub duration_ns: f64,
    /// In the schedule.
    pub trace_duration_ns: f64,
}

impl Times {
    fn difference(&self) -> f64 {
        (self.start_ns - self.trace_start_ns).abs()
            + (self.duration_ns - self.trace_duration_ns).abs()
    }

    /// Whether people read the same of both.
    fn is_like(&self, other: &Times) -> bool {
        let times = |t: &Times| {
            [
                t.start_ns,
                t.trace_start_ns,
                t.duration_ns,
                t.trace_duration_ns,
            ]
        };
        let shown = |t: &Times| times(t).map(|ns| Time::from_ns(ns).to_string());
        shown(self) == shown(other)
    }
}

impl Compared {
    /// A run beside a schedule. Tasks are matched by name where the program names them, and by order on queues that have as many tasks as
    /// were planned.
    pub fn of(program: &Program<'_>, timeline: &Timeline, schedule: &Schedule) -> Compared {
        let mut of_queue: FxHashMap<&str, Vec<TaskId>> = FxHashMap::default();
        for (task, t) in program.tasks.iter_enumerated() {
            if timeline.tasks[task].state == State::Done {
                let queue = &*program.queues[t.queue].name;
                of_queue.entry(queue).or_default().push(task);
            }
        }
        let (mut worst, mut unmatched, mut queues) = (Vec::new(), 0, Vec::new());
        let busy = timeline.busy(program);
        for (id, queue) in program.queues.iter_enumerated() {
            let tasks = of_queue.remove(&*queue.name).unwrap_or_default();
            let planned = schedule.queues.iter().find(|(name, _)| *name == queue.name);
            let slices = planned.map_or(&[][..], |(_, slices)| slices);
            if tasks.is_empty() && slices.is_empty() {
                continue;
            }
            let pairs = pairs(program, &tasks, slices);
            let taken: usize = pairs.iter().map(|(tasks, _)| tasks.len()).sum();
            unmatched += tasks.len() - taken + slices.len() - pairs.len();
            worst.extend(pairs.iter().filter_map(|(tasks, slice)| {
                let first = timeline.tasks[*tasks.first()?];
                let last = timeline.tasks[*tasks.last()?];
                Some(Times {
                    task: program.task_name(tasks[0]),
                    start_ns: first.start.ns(),
                    trace_start_ns: slice.start_ns,
                    duration_ns: last.end.saturating_sub(first.start).ns(),
                    trace_duration_ns: slice.duration_ns,
                })
            }));
            queues.push(QueueTimes {
                queue: queue.name.clone(),
                busy_ns: busy[id].ns(),
                trace_busy_ns: slices.iter().map(|slice| slice.duration_ns).sum(),
            });
        }
        let known = |name: &String| program.queues.iter().any(|queue| queue.name == *name);
        for (name, slices) in schedule.queues.iter().filter(|(name, _)| !known(name)) {
            unmatched += slices.len();
            queues.push(QueueTimes {
                queue: name.clone(),
                busy_ns: 0.0,
                trace_busy_ns: slices.iter().map(|slice| slice.duration_ns).sum(),
            });
        }
        worst.sort_by(|a, b| b.difference().total_cmp(&a.difference()));
        Compared {
            matched: worst.len(),
            unmatched,
            latency_ns: timeline.end.ns(),
            trace_latency_ns: schedule.latency_ns,
            queues,
            worst,
        }
    }

    pub(crate) fn text(&self, out: &mut String, paint: Paint) {
        let _ = writeln!(out, "\n{}", paint.strong("beside the compiler's schedule"));
        let (ours, theirs) = (self.latency_ns, self.trace_latency_ns);
        let _ = writeln!(
            out,
            "  {} here, {} there{}; {} matched, {} not",
            Time::from_ns(ours),
            Time::from_ns(theirs),
            ratio(ours, theirs),
            count(self.matched, "task"),
            self.unmatched
        );
        for queue in &self.queues {
            let _ = writeln!(
                out,
                "  {:10} busy {:>9} here, {:>9} there{}",
                clean(&queue.queue),
                Time::from_ns(queue.busy_ns),
                Time::from_ns(queue.trace_busy_ns),
                ratio(queue.busy_ns, queue.trace_busy_ns)
            );
        }
        // Equal ones stand together, as they differ as much.
        let worst: Vec<&Times> = self
            .worst
            .iter()
            .filter(|t| t.difference() >= 0.5)
            .collect();
        let alike = worst.chunk_by(|a, b| a.is_like(b)).take(8);
        let named: Vec<(String, &Times)> = alike
            .map(|alike| match alike {
                [one] => (one.task.clone(), *one),
                alike => {
                    let (first, more) = (alike[0], alike.len() - 1);
                    (format!("{} and {more} like it", first.task), first)
                }
            })
            .collect();
        let names = widest(named.iter().map(|(name, _)| &**name)).max(10);
        for (name, times) in &named {
            let _ = writeln!(
                out,
                "  {name:names$} starts at {:>9} here, {:>9} there; takes {:>9} here, {:>9} there",
                Time::from_ns(times.start_ns),
                Time::from_ns(times.trace_start_ns),
                Time::from_ns(times.duration_ns),
                Time::from_ns(times.trace_duration_ns)
            );
        }
    }
}

fn ratio(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 {
        format!(" ({:+.1} %)", (ours / theirs - 1.0) * 100.0)
    } else {
        String::new()
    }
}

/// The tasks of each slice of a queue.
fn pairs<'s>(
    program: &Program<'_>,
    tasks: &[TaskId],
    slices: &'s [Slice],
) -> Vec<(Vec<TaskId>, &'s Slice)> {
    let mut named: FxHashMap<&str, VecDeque<&Slice>> = FxHashMap::default();
    for slice in slices {
        named.entry(&slice.name).or_default().push_back(slice);
    }
    let mut by_name = Vec::new();
    for &task in tasks {
        let label = program.tasks[task].label.as_deref();
        let slice = label.and_then(|label| named.get_mut(label)?.pop_front());
        by_name.extend(slice.map(|slice| (vec![task], slice)));
    }
    let planned: usize = slices.iter().map(|slice| slice.tasks).sum();
    if planned != tasks.len() || 2 * by_name.len() > tasks.len() {
        return by_name;
    }
    let mut rest = tasks;
    slices
        .iter()
        .map(|slice| {
            let (these, others) = rest.split_at(slice.tasks);
            rest = others;
            (these.to_vec(), slice)
        })
        .collect()
}
