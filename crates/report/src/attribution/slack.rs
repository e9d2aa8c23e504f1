//! Slack: one pass back over the run's graph in order of time, all orders as they ran.

use super::{Places, Row};
use crate::uses::Uses;
use chipless_model::{Action, Condition, ConfigurationId, Moment, Program, SyncId, TaskId, Time};
use chipless_sim::Timeline;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What tasks wait for: a counter, or one use of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Awaited {
    Counter(SyncId),
    Use(ConfigurationId),
}

pub(super) fn of(
    program: &Program<'_>,
    timeline: &Timeline,
    rows: &[Row],
    places: &Places,
) -> Vec<Time> {
    let uses = Uses::of(program, Some(timeline));
    let followers = Followers::of(rows, places);
    let after = after(rows, places);
    // The latest start of the tasks that wait for a thing and start later than the instant that the pass has come to.
    let mut held: FxHashMap<Awaited, Time> = FxHashMap::default();
    let mut latest: Vec<Time> = vec![timeline.end; rows.len()];
    for event in backwards(timeline, rows, places) {
        let i = event.row;
        let duration = rows[i].end - rows[i].start;
        if event.is_start {
            let start = latest[i].saturating_sub(duration).max(rows[i].start);
            for awaited in awaited(program, &uses, rows[i].task) {
                let bound = held.entry(awaited).or_insert(start);
                *bound = (*bound).min(start);
            }
            continue;
        }
        let mut bound = timeline.end;
        let next = after[i].into_iter().chain(followers.of_row(i));
        for follower in next.filter(|f| rows[*f].start >= rows[i].end) {
            let duration = rows[follower].end - rows[follower].start;
            bound = bound.min(latest[follower].saturating_sub(duration));
        }
        for (n, signal) in program.signals(rows[i].task).iter().enumerate() {
            let first = program.tasks[rows[i].task].signals.start as usize;
            let awaited = match (signal.moment, signal.action) {
                (Moment::Completion, Action::Add(sync, n)) if n > 0 => Some(Awaited::Counter(sync)),
                (Moment::Completion, Action::Produce(_)) => {
                    uses.signal(first + n).map(Awaited::Use)
                }
                _ => None,
            };
            if let Some(start) = awaited.and_then(|awaited| held.get(&awaited)) {
                bound = bound.min(*start);
            }
        }
        latest[i] = bound.max(rows[i].end);
    }
    let slack = |(row, latest): (&Row, Time)| {
        if row.critical {
            Time::ZERO
        } else {
            latest - row.end
        }
    };
    rows.iter().zip(latest).map(slack).collect()
}

/// What a task waits for before it starts.
fn awaited<'p>(
    program: &'p Program<'_>,
    uses: &'p Uses,
    task: TaskId,
) -> impl Iterator<Item = Awaited> + use<'p> {
    program
        .waits(task)
        .iter()
        .filter_map(move |wait| match wait.condition {
            Condition::Lit => uses.wait(program, task, wait.sync).map(Awaited::Use),
            _ => Some(Awaited::Counter(wait.sync)),
        })
}

/// The rows of the tasks whose wait each row's task ended: those of row `i` are `rows[first[i]..first[i + 1]]`.
struct Followers {
    first: Vec<u32>,
    rows: Vec<u32>,
}

impl Followers {
    fn of(rows: &[Row], places: &Places) -> Followers {
        let enders = |row: &Row| -> SmallVec<[usize; 2]> {
            let by = row.waits.iter().filter_map(|wait| wait.by);
            by.filter_map(|by| places.get(by)).collect()
        };
        let mut first = vec![0; rows.len() + 1];
        for by in rows.iter().flat_map(enders) {
            first[by + 1] += 1;
        }
        for i in 0..rows.len() {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut followers = vec![0; first[rows.len()] as usize];
        for (follower, row) in (0..).zip(rows) {
            for by in enders(row) {
                followers[next[by] as usize] = follower;
                next[by] += 1;
            }
        }
        Followers {
            first,
            rows: followers,
        }
    }

    fn of_row(&self, row: usize) -> impl Iterator<Item = usize> {
        let range = self.first[row] as usize..self.first[row + 1] as usize;
        self.rows[range].iter().map(|follower| *follower as usize)
    }
}

/// The row of the task after each on its server.
fn after(rows: &[Row], places: &Places) -> Vec<Option<usize>> {
    let mut after = vec![None; rows.len()];
    for (i, row) in rows.iter().enumerate() {
        if let Some(before) = row.before.and_then(|before| places.get(before)) {
            after[before] = Some(i);
        }
    }
    after
}

/// A start or an end of a task.
struct Event {
    row: usize,
    is_start: bool,
}

/// All starts and ends, latest first. Of one instant, what was caused comes before its cause: ends have even ranks by the order of
/// completion. A start comes before its own end; where that is at a later instant, nothing of this one can wait for it, and it comes
/// after every end.
fn backwards(
    timeline: &Timeline,
    rows: &[Row],
    places: &Places,
) -> impl Iterator<Item = Event> + use<> {
    let mut rank = vec![0u64; rows.len()];
    for (n, task) in timeline.order.iter().enumerate() {
        if let Some(i) = places.get(*task) {
            rank[i] = 2 * (n as u64 + 1);
        }
    }
    let mut events = Vec::with_capacity(2 * rows.len());
    for (i, row) in rows.iter().enumerate() {
        events.push((row.end, rank[i], i, false));
        let start = if row.start == row.end {
            rank[i].saturating_sub(1)
        } else {
            u64::MAX
        };
        events.push((row.start, start, i, true));
    }
    events.sort_unstable_by(|a, b| b.cmp(a));
    events
        .into_iter()
        .map(|(_, _, row, is_start)| Event { row, is_start })
}
