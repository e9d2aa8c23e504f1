//! The critical path: back from the end, along the edge that was tight.

use super::{Places, Row};
use chipless_model::{Action, Moment, Program, TaskId, Time};
use chipless_sim::Timeline;

pub(super) fn path(
    program: &Program<'_>,
    timeline: &Timeline,
    rows: &[Row],
    places: &Places,
) -> Vec<TaskId> {
    let mut path = Vec::new();
    let mut next = last(program, timeline, rows);
    while let Some((task, place)) = next.and_then(|task| Some((task, places.get(task)?))) {
        path.push(task);
        let row = &rows[place];
        let is_earlier = |by: &TaskId| {
            let place = places.get(*by);
            place.is_some_and(|place| rows[place].start <= row.start)
        };
        next = match row.waits.last() {
            Some(wait) => wait.by.filter(is_earlier),
            None => row.before,
        };
        // Every step back goes to an earlier start, or to an earlier completion at the same instant; a ring cannot run to its end.
        if path.len() > rows.len() {
            break;
        }
    }
    path.reverse();
    path
}

/// The task whose signal, or whose end, was the end of the run.
fn last(program: &Program<'_>, timeline: &Timeline, rows: &[Row]) -> Option<TaskId> {
    let barrier = program
        .completion
        .map(|c| program.configurations[c].barrier);
    let completes = |row: &Row, barrier| {
        let signals = program.signals(row.task).iter();
        signals
            .filter(|signal| signal.action == Action::Produce(barrier))
            .any(|signal| given(row, signal.moment) == timeline.end)
    };
    let producers = barrier
        .into_iter()
        .flat_map(|barrier| rows.iter().filter(move |row| completes(row, barrier)));
    let ends = rows.iter().filter(|row| row.end == timeline.end);
    let smallest = |row: &&Row| row.task;
    producers
        .min_by_key(smallest)
        .or_else(|| ends.min_by_key(smallest))
        .or_else(|| {
            rows.iter()
                .max_by_key(|row| (row.end, std::cmp::Reverse(row.task)))
        })
        .map(|row| row.task)
}

/// When a task gives its signals of a moment.
fn given(row: &Row, moment: Moment) -> Time {
    match moment {
        Moment::Read => row.start,
        Moment::Completion => row.end,
    }
}
