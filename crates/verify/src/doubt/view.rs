//! What is known of all bytes at some point of a program, and which of them are doubtful to a task, as its kernel asks.

use crate::marks::Marks;
use crate::remnants::Remains;
use crate::window::{WINDOW, Window};
use crate::writes::Writes;
use chipless_model::{BufferId, Doubt, Program, Role, Series, SeriesBuilder, Zero};
use std::cell::RefCell;
use std::ops::Range;

/// What is known of the bytes of all buffers at some point.
pub(super) struct State<'m> {
    pub(super) program: &'m Program<'m>,
    pub(super) writes: Writes<'m>,
    pub(super) remains: Option<Remains<'m>>,
    /// Causes of doubt by byte.
    pub(super) marks: Marks,
    /// Where they are followed.
    pub(super) zeros: Option<Zeros<'m>>,
}

/// Bytes that are zero whatever the data are.
pub(super) struct Zeros<'m> {
    pub(super) program: &'m Program<'m>,
    pub(super) marks: Marks,
}

impl<'m> Zeros<'m> {
    pub(super) fn new(program: &'m Program<'m>) -> Zeros<'m> {
        Zeros {
            program,
            marks: Marks::default(),
        }
    }
}

impl Zero for Zeros<'_> {
    fn first_other(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let known = self.program.buffers.get(buffer);
        let Some(constant) = known.filter(|b| b.role == Role::Constant) else {
            return self.marks.first_without(buffer, bytes);
        };
        let Some(held) = constant
            .initial
            .get(bytes.start as usize..bytes.end as usize)
        else {
            return Some(bytes);
        };
        let low = held.iter().position(|byte| *byte != 0)?;
        let count = held[low..].iter().take_while(|byte| **byte != 0).count();
        let low = bytes.start + low as u64;
        Some(low..low + count as u64)
    }
}

/// The bytes that are doubtful to one task.
pub(super) struct View<'s, 'm> {
    state: &'s State<'m>,
    /// Numbers of the old writers whose bytes are remnants to it.
    old: &'s [u32],
    /// What was looked at before, each window in the place that its number says: kernels ask for one element after the other, and
    /// those that change the order of dimensions come back to each window.
    seen: RefCell<Vec<Option<Seen>>>,
}

/// Windows that are remembered.
const SEEN: usize = 64;

/// What is known of some bytes of a buffer.
pub(super) struct Seen {
    buffer: BufferId,
    /// The first of them.
    start: u64,
    /// Those that are doubtful.
    doubtful: Window,
}

impl<'s, 'm> View<'s, 'm> {
    pub(super) fn new(state: &'s State<'m>, old: &'s [u32]) -> View<'s, 'm> {
        View {
            state,
            old,
            seen: RefCell::default(),
        }
    }

    /// Where the first doubtful byte of a range is.
    fn find(&self, buffer: BufferId, bytes: &Range<u64>) -> Option<u64> {
        let state = self.state;
        let mark = state.marks.first(buffer, bytes.clone());
        let gap = state.writes.first_gap(buffer, bytes.clone());
        let remnant = state.remnant(buffer, bytes.clone(), self.old);
        let runs = [mark, gap, remnant].into_iter().flatten();
        runs.map(|run| run.start).min()
    }

    /// What is doubtful in the window that starts at a byte.
    fn look(&self, buffer: BufferId, start: u64) -> Seen {
        let mut doubtful = Window::default();
        let marks = &self.state.marks;
        marks.add_to(&mut doubtful, buffer, start, |_| true);
        self.state.writes.add_gaps_to(&mut doubtful, buffer, start);
        if let Some(remains) = self.state.remains.as_ref().filter(|_| !self.old.is_empty()) {
            remains.add_to(&mut doubtful, buffer, start, self.old);
        }
        Seen {
            buffer,
            start,
            doubtful,
        }
    }
}

impl Doubt for View<'_, '_> {
    fn first(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let size = self.state.program.buffers.get(buffer)?.size;
        let Range { mut start, end } = bytes.start.min(size)..bytes.end.min(size);
        let mut seen = self.seen.borrow_mut();
        if seen.is_empty() {
            seen.resize_with(SEEN, || None);
        }
        while start < end {
            let is_known = |seen: &[Option<Seen>], window: u64| {
                let place = (window / WINDOW) as usize % SEEN;
                let known = seen[place].as_ref();
                (
                    place,
                    known.is_some_and(|s| (s.buffer, s.start) == (buffer, window)),
                )
            };
            let mut window = start / WINDOW * WINDOW;
            let (mut place, mut known) = is_known(&seen, window);
            if !known && end - start > WINDOW {
                start = self.find(buffer, &(start..end))?;
                window = start / WINDOW * WINDOW;
                (place, known) = is_known(&seen, window);
            }
            if !known {
                seen[place] = Some(self.look(buffer, window));
            }
            let doubtful = &seen[place].as_ref()?.doubtful;
            let within = start - window..(end - window).min(WINDOW);
            if let Some(found) = doubtful.first(within) {
                return Some(window + found.start..window + found.end);
            }
            start = window.saturating_add(WINDOW);
        }
        None
    }

    fn each(&self, buffer: BufferId, bytes: Range<u64>, visit: &mut dyn FnMut(Series)) {
        let size = self.state.program.buffers.get(buffer).map_or(0, |b| b.size);
        let (mut start, end) = (bytes.start, bytes.end.min(size));
        let mut runs = SeriesBuilder::default();
        while let Some(found) = self.first(buffer, start..end) {
            // The window of what was found has been looked at: all else in it is told at once.
            let window = found.start / WINDOW * WINDOW;
            let until = end.min(window.saturating_add(WINDOW));
            let place = (window / WINDOW) as usize % SEEN;
            let seen = self.seen.borrow()[place]
                .as_ref()
                .map(|s| s.doubtful.clone());
            if let Some(seen) = seen {
                let rest = found.start - window..until - window;
                seen.add_to(rest, window, &mut runs, visit);
            }
            start = until;
        }
        runs.take().into_iter().for_each(visit);
    }

    fn zero(&self) -> Option<&dyn Zero> {
        let zeros = self.state.zeros.as_ref()?;
        Some(zeros)
    }
}

impl State<'_> {
    /// The first bytes of a range that one of these writers wrote last.
    pub(super) fn remnant(
        &self,
        buffer: BufferId,
        bytes: Range<u64>,
        old: &[u32],
    ) -> Option<Range<u64>> {
        let remains = self.remains.as_ref().filter(|_| !old.is_empty())?;
        remains.first(buffer, bytes, old)
    }
}
