//! Slack: one pass back over the run's graph in order of time, all orders as they ran.

use super::Row;
use crate::uses::Uses;
use chipless_model::{Action, Condition, ConfigurationId, Moment, Program, SyncId, TaskId, Time};
use chipless_sim::Timeline;
use rustc_hash::FxHashMap;

/// What tasks wait for: a counter, or one use of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Awaited {
    Counter(SyncId),
    Use(ConfigurationId),
}

pub(super) fn fill(
    program: &Program<'_>,
    timeline: &Timeline,
    rows: &mut [Row],
    place: &FxHashMap<TaskId, usize>,
) {
    let uses = Uses::of(program, Some(timeline));
    let followers = followers(rows, place);
    let after = after(rows, place);
    // The latest start of the tasks that wait for a thing and start later than the instant that the pass has come to.
    let mut held: FxHashMap<Awaited, Time> = FxHashMap::default();
    let mut latest: Vec<Time> = vec![timeline.end; rows.len()];
    for event in backwards(timeline, rows, place) {
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
        let next = after[i].iter().chain(&followers[i]);
        for &follower in next.filter(|f| rows[**f].start >= rows[i].end) {
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
        rows[i].slack = latest[i] - rows[i].end;
    }
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

/// The rows of the tasks whose wait each row's task ended.
fn followers(rows: &[Row], place: &FxHashMap<TaskId, usize>) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); rows.len()];
    for (i, row) in rows.iter().enumerate() {
        for by in row.waits.iter().filter_map(|wait| wait.by) {
            if let Some(by) = place.get(&by) {
                followers[*by].push(i);
            }
        }
    }
    followers
}

/// The row of the task after each on its server.
fn after(rows: &[Row], place: &FxHashMap<TaskId, usize>) -> Vec<Option<usize>> {
    let mut after = vec![None; rows.len()];
    for (i, row) in rows.iter().enumerate() {
        if let Some(before) = row.before {
            after[place[&before]] = Some(i);
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
/// completion, a start comes after the latest end that let it start.
fn backwards(
    timeline: &Timeline,
    rows: &[Row],
    place: &FxHashMap<TaskId, usize>,
) -> impl Iterator<Item = Event> + use<> {
    let mut rank = vec![0u64; rows.len()];
    for (n, task) in timeline.order.iter().enumerate() {
        if let Some(i) = place.get(task) {
            rank[*i] = 2 * (n as u64 + 1);
        }
    }
    let mut events = Vec::with_capacity(2 * rows.len());
    for (i, row) in rows.iter().enumerate() {
        events.push((row.end, rank[i], i, false));
        let causes = row
            .waits
            .iter()
            .filter_map(|wait| wait.by)
            .chain(row.before);
        let causes = causes.filter_map(|task| place.get(&task));
        let caused = causes
            .filter(|c| rows[**c].end == row.start)
            .map(|c| rank[*c]);
        events.push((row.start, caused.max().unwrap_or(0) + 1, i, true));
    }
    events.sort_unstable_by(|a, b| b.cmp(a));
    events
        .into_iter()
        .map(|(_, _, row, is_start)| Event { row, is_start })
}
