//! Which bytes of all buffers have been written, followed from task to task.

use crate::access::{Strided, join};
use crate::filled::Filled;
use crate::footprint::{Accesses, Footprint, Use};
use crate::window::Window;
use crate::written::Written;
use chipless_model::{Buffer, BufferId, IndexVec, Program, Role};
use std::ops::Range;

/// Runs that are looked at one by one, in the whole program. Beyond, strided accesses are taken for their extent.
pub(crate) const RUNS: u64 = 1 << 26;

/// The written bytes at some point of a program.
pub(crate) struct Writes<'m> {
    program: &'m Program<'m>,
    accesses: &'m Accesses,
    written: IndexVec<BufferId, Filled>,
    /// What is looked at; `None` if all is.
    followed: Option<IndexVec<BufferId, Followed>>,
    /// The place of the present task in the reference order, where not all is looked at.
    place: usize,
    /// By footprint.
    known: Vec<Known>,
    /// Runs that may still be looked at.
    runs: u64,
}

/// What is looked at of a buffer.
#[derive(Clone, Debug, Default)]
struct Followed {
    /// Bytes, as ranges in order that do not touch.
    spans: Vec<(u64, u64)>,
    /// One past the place of the last task that asks for them. What is written later is of no account, and no later task meets a gap.
    until: usize,
}

/// What is known of a footprint. Bytes that have been written stay written.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// All of it has been written: it may be read.
    readable: bool,
    /// It is among the written bytes.
    written: bool,
}

/// An access has more runs than may still be looked at.
#[derive(Debug)]
pub(crate) struct TooManyRuns;

impl<'m> Writes<'m> {
    /// Before the first task: what the host gives and what the file holds.
    pub(crate) fn new(program: &'m Program<'m>, accesses: &'m Accesses) -> Writes<'m> {
        let written = |buffer: &Buffer<'_>| {
            let known = if buffer.role == Role::Input {
                buffer.size
            } else {
                buffer.initial.len() as u64
            };
            let mut written = Written::default();
            written.insert(0, known.min(buffer.size));
            Filled::new(written)
        };
        Writes {
            program,
            accesses,
            written: program.buffers.iter().map(written).collect(),
            followed: None,
            place: 0,
            known: vec![Known::default(); accesses.footprints()],
            runs: RUNS,
        }
    }

    /// Looks at the bytes of these footprints alone, each until the task at this place has read them: the others have no gaps.
    pub(crate) fn follow_only<'f>(
        &mut self,
        footprints: impl Iterator<Item = (usize, &'f Footprint)>,
    ) {
        let buffers = self.program.buffers.iter();
        let mut followed: IndexVec<BufferId, Followed> =
            buffers.map(|_| Followed::default()).collect();
        for (place, footprint) in footprints {
            let Followed { spans, until } = &mut followed[footprint.buffer];
            spans.push(footprint.span);
            *until = place.saturating_add(1).max(*until);
        }
        for (buffer, Followed { spans, .. }) in followed.iter_mut_enumerated() {
            join(spans);
            let mut at = 0;
            for (low, high) in spans {
                self.written[buffer].insert(at, *low);
                at = *high;
            }
            self.written[buffer].insert(at, self.program.buffers[buffer].size.max(at));
        }
        self.followed = Some(followed);
    }

    /// Goes on to the task at a place.
    pub(crate) fn go_to(&mut self, place: usize) {
        self.place = place;
    }

    /// The place of the present task.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Whether any of some bytes is looked at.
    fn follows(&self, buffer: BufferId, (low, high): (u64, u64)) -> bool {
        self.followed.as_ref().is_none_or(|followed| {
            let Followed { spans, until } = &followed[buffer];
            let next = spans.partition_point(|span| span.1 <= low);
            self.place < *until && spans.get(next).is_some_and(|span| span.0 < high)
        })
    }

    /// Whether a read finds bytes that nobody has written. Constants and states hold values from the beginning.
    pub(crate) fn lacks(
        &mut self,
        entry: &Use,
        footprint: &Footprint,
    ) -> Result<bool, TooManyRuns> {
        let buffer = &self.program.buffers[footprint.buffer];
        let known = &mut self.known[entry.footprint as usize];
        if known.readable || matches!(buffer.role, Role::Constant | Role::State) {
            return Ok(false);
        }
        let written = &mut self.written[footprint.buffer];
        let pitch = self.accesses.pitch(footprint.buffer);
        let mut extents = footprint.extents.iter();
        known.readable = extents.all(|extent| written.covers(*extent, pitch));
        if known.readable {
            return Ok(false);
        }
        let patterns = self.accesses.fitting(footprint);
        self.runs = left(self.runs, patterns.clone())?;
        let written = written.bytes(pitch);
        let is_missing = |(low, high)| written.first_missing(low, high).is_some();
        known.readable = !patterns.flat_map(|p| p.runs()).any(is_missing);
        Ok(!known.readable)
    }

    /// Notes what an access writes.
    pub(crate) fn add(&mut self, entry: &Use, footprint: &Footprint) -> Result<(), TooManyRuns> {
        let known = &mut self.known[entry.footprint as usize];
        if std::mem::replace(&mut known.written, true) {
            return Ok(());
        }
        known.readable = true;
        if !self.follows(footprint.buffer, footprint.span) {
            return Ok(());
        }
        let written = &mut self.written[footprint.buffer];
        let pitch = self.accesses.pitch(footprint.buffer);
        let extents = footprint.extents.iter();
        if extents.clone().all(|extent| extent.whole) {
            extents.for_each(|extent| written.fill(*extent, pitch));
            return Ok(());
        }
        let patterns = self.accesses.fitting(footprint);
        let total = left(self.runs, patterns.clone());
        if total.is_err() {
            extents.for_each(|extent| written.fill(*extent, pitch));
        }
        self.runs = total?;
        written.extend(patterns.flat_map(|p| p.runs()));
        Ok(())
    }

    /// The written bytes of a buffer, one by one.
    pub(crate) fn bytes(&mut self, buffer: BufferId) -> &Written {
        self.written[buffer].bytes(self.accesses.pitch(buffer))
    }

    /// The first bytes of a range that nobody has written, in a buffer that was [looked at](Writes::bytes) since it was written last.
    pub(crate) fn first_gap(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        if !self.may_have_gaps(buffer) {
            return None;
        }
        let written = self.written[buffer].settled();
        let low = written.first_missing(bytes.start, bytes.end)?;
        Some(low..written.gap_end(low, bytes.end))
    }
}

impl Writes<'_> {
    /// Constants and states hold values from the beginning.
    fn may_have_gaps(&self, buffer: BufferId) -> bool {
        let role = self.program.buffers[buffer].role;
        let followed = self.followed.as_ref();
        let is_followed = followed.is_none_or(|followed| self.place < followed[buffer].until);
        is_followed && !matches!(role, Role::Constant | Role::State)
    }

    /// Adds those bytes of a window that nobody has written, as far as [`first_gap`](Writes::first_gap) tells them.
    pub(crate) fn add_gaps_to(&self, window: &mut Window, buffer: BufferId, start: u64) {
        if self.may_have_gaps(buffer) {
            self.written[buffer].settled().add_missing_to(window, start);
        }
    }
}

/// What is left of a number of runs after those of these patterns.
pub(crate) fn left<'p>(
    runs: u64,
    mut patterns: impl Iterator<Item = Strided<'p>>,
) -> Result<u64, TooManyRuns> {
    let left = patterns.try_fold(runs, |runs, p| runs.checked_sub(p.runs().total));
    left.ok_or(TooManyRuns)
}
