//! A run beside the times of somebody else: the schedule that a vendor's compiler planned, or the profile of a run on hardware.

use crate::bars::widest;
use crate::style::{Paint, clean, count};
use chipless_model::{Program, TaskId, Time};
use chipless_sim::{State, Timeline};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// Operations that the text shows.
const OPERATIONS: usize = 16;

/// What a compiler planned, or a profiler measured.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Which of them.
    pub origin: Origin,
    /// How long it takes, in nanoseconds.
    pub latency_ns: f64,
    /// Slices by the name of the queue of ours that they belong to, in order of time.
    pub queues: Vec<(String, Vec<Slice>)>,
}

/// Where times come from that a run is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A compiler planned them.
    #[default]
    Planned,
    /// A profiler measured them on hardware.
    Measured,
}

/// A planned or measured task.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// The compiler's name for it.
    pub name: String,
    /// Where the file has the task, as its [`Location`](chipless_model::Location) says, where the trace tells.
    pub at: Option<u64>,
    /// The line of the source that it comes from; empty where the trace does not say.
    pub source: String,
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
    /// Where the other times come from.
    pub origin: Origin,
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
    /// Times by operation, that with the greatest difference first.
    pub operations: Vec<OperationTimes>,
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

/// An operation's times, of the tasks that have a slice.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct OperationTimes {
    /// The operation, as lists name it.
    pub operation: String,
    /// The queue that does it.
    pub queue: String,
    /// Tasks.
    pub tasks: usize,
    /// In the run, all together.
    pub busy_ns: f64,
    /// In the schedule, all together.
    pub trace_busy_ns: f64,
    /// Median of the tasks' relative errors: |run / schedule - 1|; null where the schedule gives none of them any time.
    pub median_error: Option<f64>,
}

/// A task's times.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Times {
    /// Its name; of several that were planned as one, the first.
    pub task: String,
    /// What it does.
    pub operation: String,
    /// The line of the source that it comes from; empty where nothing says so.
    pub source: String,
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
    fn of(program: &Program<'_>, timeline: &Timeline, tasks: &[TaskId], slice: &Slice) -> Times {
        let (first, last) = (tasks[0], tasks[tasks.len() - 1]);
        let (start, end) = (timeline.tasks[first].start, timeline.tasks[last].end);
        Times {
            task: program.task_name(first),
            operation: program.kernel(first).operation().into_owned(),
            source: slice.source.clone(),
            start_ns: start.ns(),
            trace_start_ns: slice.start_ns,
            duration_ns: end.saturating_sub(start).ns(),
            trace_duration_ns: slice.duration_ns,
        }
    }

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

impl OperationTimes {
    /// Of durations in the run and in the schedule.
    fn of(operation: String, queue: String, times: &[(f64, f64)]) -> OperationTimes {
        let timed = times.iter().filter(|(_, theirs)| *theirs > 0.0);
        let mut errors: Vec<f64> = timed
            .map(|(ours, theirs)| (ours / theirs - 1.0).abs())
            .collect();
        errors.sort_by(f64::total_cmp);
        OperationTimes {
            operation,
            queue,
            tasks: times.len(),
            busy_ns: times.iter().map(|(ours, _)| ours).sum(),
            trace_busy_ns: times.iter().map(|(_, theirs)| theirs).sum(),
            median_error: errors.get(errors.len() / 2).copied(),
        }
    }

    fn difference(&self) -> f64 {
        (self.busy_ns - self.trace_busy_ns).abs()
    }
}

impl Compared {
    /// A run beside a schedule. Tasks are matched by their place in the file where the schedule knows it (the same place again is the next
    /// time round), by name where the program names them, and by order on queues that have as many tasks as were planned.
    pub fn of(program: &Program<'_>, timeline: &Timeline, schedule: &Schedule) -> Compared {
        let mut of_queue: FxHashMap<&str, Vec<TaskId>> = FxHashMap::default();
        for (task, t) in program.tasks.iter_enumerated() {
            if timeline.tasks[task].state == State::Done {
                let queue = &*program.queues[t.queue].name;
                of_queue.entry(queue).or_default().push(task);
            }
        }
        let (mut worst, mut unmatched, mut queues) = (Vec::new(), 0, Vec::new());
        let mut by_operation: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
        let busy = timeline.busy(program);
        for (id, queue) in program.queues.iter_enumerated() {
            let tasks = of_queue.remove(&*queue.name).unwrap_or_default();
            let planned = schedule.queues.iter().find(|(name, _)| *name == queue.name);
            let slices = planned.map_or(&[][..], |(_, slices)| slices);
            // A profile that has nothing of a queue does not record it.
            let is_recorded = planned.is_some() || schedule.origin == Origin::Planned;
            if tasks.is_empty() && slices.is_empty() || !is_recorded {
                continue;
            }
            let pairs = pairs(program, &tasks, slices);
            let taken: usize = pairs.iter().map(|(tasks, _)| tasks.len()).sum();
            unmatched += tasks.len() - taken + slices.len() - pairs.len();
            for (tasks, slice) in &pairs {
                let times = Times::of(program, timeline, tasks, slice);
                by_operation
                    .entry((times.operation.clone(), queue.name.clone()))
                    .or_default()
                    .push((times.duration_ns, times.trace_duration_ns));
                worst.push(times);
            }
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
        let mut operations: Vec<OperationTimes> = by_operation
            .into_iter()
            .map(|((operation, queue), times)| OperationTimes::of(operation, queue, &times))
            .collect();
        operations.sort_by(|a, b| b.difference().total_cmp(&a.difference()));
        Compared {
            origin: schedule.origin,
            matched: worst.len(),
            unmatched,
            latency_ns: timeline.end.ns(),
            trace_latency_ns: schedule.latency_ns,
            queues,
            operations,
            worst,
        }
    }

    pub(crate) fn text(&self, out: &mut String, paint: Paint) {
        let title = match self.origin {
            Origin::Planned => "beside the compiler's schedule",
            Origin::Measured => "beside the measured profile",
        };
        let _ = writeln!(out, "\n{}", paint.strong(title));
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
        if self.origin == Origin::Measured {
            self.operations_text(out, paint);
        }
        self.worst_text(out);
    }

    /// Times by operation.
    fn operations_text(&self, out: &mut String, paint: Paint) {
        let names = widest(self.operations.iter().map(|o| &*o.operation));
        let queues = widest(self.operations.iter().map(|o| &*o.queue));
        for o in self.operations.iter().take(OPERATIONS) {
            let error = o.median_error.map_or_else(String::new, |error| {
                format!("  median error {:.1} %", error * 100.0)
            });
            let _ = writeln!(
                out,
                "  {:names$}  {:queues$}  {:>9} here, {:>9} there{}{}",
                clean(&o.operation),
                clean(&o.queue),
                Time::from_ns(o.busy_ns),
                Time::from_ns(o.trace_busy_ns),
                ratio(o.busy_ns, o.trace_busy_ns),
                paint.dim(format_args!("{error}, {}", count(o.tasks, "task")))
            );
        }
        let rest = self.operations.len().saturating_sub(OPERATIONS);
        if rest > 0 {
            let text = format!("{} not shown: --json has all", count(rest, "operation"));
            let _ = writeln!(out, "  {}", paint.dim(text));
        }
    }

    /// The tasks that differ most.
    fn worst_text(&self, out: &mut String) {
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
                "  {name:names$} starts at {:>9} here, {:>9} there; takes {:>9} here, {:>9} there{}",
                Time::from_ns(times.start_ns),
                Time::from_ns(times.trace_start_ns),
                Time::from_ns(times.duration_ns),
                Time::from_ns(times.trace_duration_ns),
                match &*times.source {
                    "" => String::new(),
                    source => format!("  {}", clean(source)),
                }
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
    if slices.iter().any(|slice| slice.at.is_some()) {
        let mut placed: FxHashMap<u64, VecDeque<&Slice>> = FxHashMap::default();
        for slice in slices {
            if let Some(at) = slice.at {
                placed.entry(at).or_default().push_back(slice);
            }
        }
        let beside = |task: &TaskId| {
            let at = program.tasks[*task].location.offset;
            Some((vec![*task], placed.get_mut(&at)?.pop_front()?))
        };
        return tasks.iter().filter_map(beside).collect();
    }
    let mut named: FxHashMap<&str, VecDeque<usize>> = FxHashMap::default();
    for (place, slice) in slices.iter().enumerate() {
        named.entry(&slice.name).or_default().push_back(place);
    }
    let mut by_name = Vec::new();
    let mut places = Vec::new();
    let mut nameless = Vec::new();
    for &task in tasks {
        let label = program.tasks[task].label.as_deref();
        match label.and_then(|label| named.get_mut(label)?.pop_front()) {
            Some(place) => {
                by_name.push((vec![task], &slices[place]));
                places.push(place);
            }
            None => nameless.push(task),
        }
    }
    let all: Vec<&Slice> = slices.iter().collect();
    if 2 * by_name.len() <= tasks.len()
        && let Some(pairs) = in_order(tasks, &all)
    {
        return pairs;
    }
    // What has no name, as fetches of descriptors, is planned in the order in which it runs.
    places.sort_unstable();
    let is_left = |place: &usize| places.binary_search(place).is_err();
    let left: Vec<&Slice> = (0..slices.len())
        .filter(is_left)
        .map(|n| &slices[n])
        .collect();
    by_name.extend(in_order(&nameless, &left).unwrap_or_default());
    by_name
}

/// Each slice with the next of the tasks, where there are as many as were planned.
fn in_order<'s>(tasks: &[TaskId], slices: &[&'s Slice]) -> Option<Vec<(Vec<TaskId>, &'s Slice)>> {
    let planned: usize = slices.iter().map(|slice| slice.tasks).sum();
    if planned != tasks.len() {
        return None;
    }
    let mut rest = tasks;
    let pairs = slices.iter().map(|slice| {
        let (these, others) = rest.split_at(slice.tasks);
        rest = others;
        (these.to_vec(), *slice)
    });
    Some(pairs.collect())
}
