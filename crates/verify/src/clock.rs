//! Vector clocks: how far into each thread everything before a point reaches.
//!
//! The points of a thread are numbered: the task at position `i` (from 0) takes its sources at point `2i + 1` and
//! completes at point `2i + 2`. A clock names, for each thread, the last point that comes before; missing entries are 0.

/// A point in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) thread: u32,
    pub(crate) epoch: u32,
}

/// What comes before a point, thread by thread.
pub(crate) type Clock = Vec<u32>;

/// Adds everything before `from` to what is before `into`.
pub(crate) fn join(into: &mut Clock, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}

/// Adds one point of a thread.
pub(crate) fn raise(into: &mut Clock, point: Point) {
    let thread = point.thread as usize;
    if into.len() <= thread {
        into.resize(thread + 1, 0);
    }
    into[thread] = into[thread].max(point.epoch);
}

/// Whether everything before `inner` is before `outer` too.
pub(crate) fn covers(outer: &[u32], inner: &[u32]) -> bool {
    let (common, rest) = inner.split_at(inner.len().min(outer.len()));
    common
        .iter()
        .zip(outer)
        .all(|(inner, outer)| inner <= outer)
        && rest.iter().all(|epoch| *epoch == 0)
}

/// Whether a point is before a clock.
pub(crate) fn reaches(clock: &[u32], point: Point) -> bool {
    clock
        .get(point.thread as usize)
        .is_some_and(|epoch| *epoch >= point.epoch)
}
