//! Remnants: what is left of a tensor when another one has been put in its place.
//!
//! The *life* of a byte under its writer ends when the byte, having been read, is overwritten by somebody else, who *ends* that
//! writer's tensor. Bytes that are overwritten before anybody read them belong to the same life: rows that two tiles write, a fill before the
//! data. A read that takes bytes of one writer and bytes of another one that ended the first takes half an old tensor and
//! half a new one; a concatenation never looks like that, since its parts do not overwrite each other.

use crate::access::Strided;
use crate::cells::Cells;
use crate::footprint::{Accesses, Use};
use crate::marks::Marks;
use crate::pending::{Entry, Pending, What};
use crate::window::Window;
use crate::writes::{RUNS, TooManyRuns, left};
use chipless_model::{
    Buffer, BufferId, Certainty, Direction, IndexVec, Program, Role, Series, TaskId, Tensors,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of a buffer that are followed, at most.
const MOST: u64 = 1 << 32;

/// Who writes where the program does not fix the bytes: nobody's remnants.
const ANYBODY: u32 = (1 << 30) - 1;

/// The highest number of a tensor that is looked for.
const TENSORS: u8 = 16;

/// What is known of a byte: its last writer, 0 where there is none, and whether it has been read since.
struct State(u32);

impl State {
    fn written_by(writer: u32) -> State {
        State((writer & ANYBODY) << 1)
    }

    fn writer(&self) -> u32 {
        self.0 >> 1
    }

    fn is_read(&self) -> bool {
        self.0 & 1 != 0
    }

    fn read(state: u32) -> u32 {
        state | 1
    }
}

/// A tensor as a group of tasks reads it: the number of the group, and of the tensor among those of the task.
type Reading = (u32, u8);

/// For each reading, the writers whose bytes in it are remnants, with one that ended them.
pub(crate) type Remnants = FxHashMap<Reading, SmallVec<[(u32, u32); 2]>>;

/// Whether bytes of a buffer may be remnants.
fn is_followed(buffer: &Buffer<'_>) -> bool {
    buffer.role == Role::Scratch && buffer.size <= MOST
}

/// The reading of one of a task's tensors.
fn reading(tensors: &Tensors, task: TaskId, tensor: u8) -> Reading {
    (
        tensors.readers.get(task).copied().unwrap_or(u32::MAX),
        tensor,
    )
}

/// The number of who writes by an access.
fn writer(tensors: &Tensors, entry: &Use) -> u32 {
    let number = tensors.writers.get(entry.task);
    let number = number.filter(|_| entry.certainty == Certainty::Exact);
    number.map_or(ANYBODY, |number| number + 1)
}

/// The last writer of every byte, followed from task to task.
#[derive(Debug)]
pub(crate) struct Lives<'t> {
    tensors: &'t Tensors,
    accesses: &'t Accesses,
    buffers: IndexVec<BufferId, Option<Followed<'t>>>,
    /// Writers that each writer ended.
    ended: FxHashMap<u32, FxHashSet<u32>>,
    /// Writers whose bytes were read.
    read: FxHashMap<Reading, SmallVec<[u32; 6]>>,
    /// Uses that read bytes which nobody had written.
    lacking: FxHashSet<u32>,
    /// Runs that may still be looked at.
    runs: u64,
}

/// The bytes of a buffer, and what has not been done to them yet.
#[derive(Debug)]
struct Followed<'t> {
    cells: Cells,
    pending: Pending<'t>,
}

impl<'t> Lives<'t> {
    /// At the start; `None` for programs that update tensors in place.
    pub(crate) fn new(program: &'t Program<'_>, accesses: &'t Accesses) -> Option<Lives<'t>> {
        let tensors = program.tensors.as_ref()?;
        let followed = |(id, buffer): (BufferId, &Buffer<'_>)| {
            (is_followed(buffer) && accesses.is_written(id)).then(|| {
                let mut cells = Cells::default();
                let known = (buffer.initial.len() as u64).min(buffer.size);
                cells.set([Series::from(0..known)], State::written_by(ANYBODY).0);
                Followed {
                    cells,
                    pending: Pending::default(),
                }
            })
        };
        Some(Lives {
            tensors,
            accesses,
            buffers: program.buffers.iter_enumerated().map(followed).collect(),
            ended: FxHashMap::default(),
            read: FxHashMap::default(),
            lacking: FxHashSet::default(),
            runs: RUNS,
        })
    }

    /// The writers of all that a task and those of its group have read so far.
    pub(crate) fn sources(&mut self, task: TaskId) -> Vec<u32> {
        let (group, _) = reading(self.tensors, task, 0);
        self.settle(|what| matches!(what, What::Read((other, _)) if other == group));
        let mut writers: Vec<u32> = (0..=TENSORS)
            .filter_map(|tensor| self.read.get(&(group, tensor)))
            .flatten()
            .copied()
            .collect();
        writers.sort_unstable();
        writers.dedup();
        writers
    }

    /// Whether the bytes of a buffer are followed.
    pub(crate) fn follows(&self, buffer: BufferId) -> bool {
        self.buffers[buffer].is_some()
    }

    /// Notes what a task reads: the use of this number.
    pub(crate) fn read(&mut self, index: u32) -> Result<(), TooManyRuns> {
        let accesses = self.accesses;
        let entry = accesses.entry(index);
        let footprint = accesses.footprint_of(entry);
        self.runs = left(self.runs, accesses.fitting(footprint))?;
        for (tensor, pattern) in accesses.tensors(footprint) {
            let what = What::Read(reading(self.tensors, entry.task, tensor));
            self.put_off(footprint.buffer, what, pattern, index);
        }
        Ok(())
    }

    /// Notes what a task writes, or may write: the use of this number.
    pub(crate) fn write(&mut self, index: u32) -> Result<(), TooManyRuns> {
        let accesses = self.accesses;
        let entry = accesses.entry(index);
        let footprint = accesses.footprint_of(entry);
        self.runs = left(self.runs, accesses.fitting(footprint))?;
        let what = What::Write(writer(self.tensors, entry));
        for pattern in accesses.fitting(footprint) {
            self.put_off(footprint.buffer, what, pattern, index);
        }
        Ok(())
    }

    fn put_off(&mut self, buffer: BufferId, what: What, bytes: Strided<'t>, index: u32) {
        let Some(mut followed) = self.buffers[buffer].take() else {
            return;
        };
        let Followed { cells, pending } = &mut followed;
        pending.add(what, bytes, index, |entry| self.apply(cells, &entry));
        self.buffers[buffer] = Some(followed);
    }

    /// Does what has been put off and counts.
    fn settle(&mut self, counts: impl Fn(What) -> bool) {
        for buffer in self.buffers.indices() {
            if let Some(mut followed) = self.buffers[buffer].take() {
                let Followed { cells, pending } = &mut followed;
                pending.settle(&counts, |entry| self.apply(cells, &entry));
                self.buffers[buffer] = Some(followed);
            }
        }
    }

    fn apply(&mut self, cells: &mut Cells, entry: &Entry<'t>) {
        let series = entry.parts.iter().flat_map(Strided::series);
        let mut last = u32::MAX;
        match entry.what {
            What::Read(reading) => {
                let writers = self.read.entry(reading).or_default();
                let mut is_missing = false;
                cells.change(series, State::read, |state| {
                    let writer = State(state).writer();
                    if writer != last {
                        last = writer;
                        is_missing |= writer == 0;
                        if !writers.contains(&writer) {
                            writers.push(writer);
                        }
                    }
                });
                if is_missing {
                    let lacks = |index: &u32| lacks(self.accesses, cells, *index);
                    self.lacking
                        .extend(entry.uses.iter().copied().filter(lacks));
                }
            }
            What::Write(writer) => {
                let ended = &mut self.ended;
                let note = |old| {
                    let (is_read, other) = (State(old).is_read(), State(old).writer());
                    if is_read && other != last && other != writer && writer != ANYBODY {
                        last = other;
                        if other != 0 && other != ANYBODY {
                            ended.entry(writer).or_default().insert(other);
                        }
                    }
                };
                cells.change(series, |_| State::written_by(writer).0, note);
            }
        }
    }

    /// Does all that has been put off. The uses that read bytes which nobody had written.
    pub(crate) fn finish(&mut self) -> FxHashSet<u32> {
        self.settle(|_| true);
        std::mem::take(&mut self.lacking)
    }

    /// The first bytes of a range of a buffer that nobody has written, when all is [done](Lives::finish).
    pub(crate) fn first_missing(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let followed = self.buffers[buffer].as_ref()?;
        let is_missing = |state| State(state).writer() == 0;
        followed.cells.first(bytes, is_missing)
    }

    /// What readings of remnants there were, when all is [done](Lives::finish).
    #[expect(
        clippy::iter_over_hash_type,
        reason = "each reading fills an entry of its own, so that the order does not show"
    )]
    pub(crate) fn remnants(&self) -> Remnants {
        let mut found = Remnants::default();
        for (reading, writers) in &self.read {
            if writers.len() < 2 {
                continue;
            }
            for writer in writers {
                let Some(ended) = self.ended.get(writer) else {
                    continue;
                };
                for other in writers.iter().filter(|other| ended.contains(other)) {
                    let list = found.entry(*reading).or_default();
                    if !list.iter().any(|(old, _)| old == other) {
                        list.push((*other, *writer));
                    }
                }
            }
        }
        found
    }
}

/// Whether a use reads bytes that nobody has written.
fn lacks(accesses: &Accesses, cells: &Cells, index: u32) -> bool {
    let footprint = accesses.footprint_of(accesses.entry(index));
    let mut runs = accesses.fitting(footprint).flat_map(|p| p.runs());
    runs.any(|(low, high)| {
        let missing = cells.first(low..high, |state| State(state).writer() == 0);
        missing.is_some()
    })
}

/// Where remnants lie, once it is known whose bytes they are: the last writer of each byte, if it is one of these.
pub(crate) struct Remains<'r> {
    /// Where they are looked for, and one past the place of the last task that reads any: nobody asks later.
    buffers: FxHashSet<BufferId>,
    until: usize,
    tensors: &'r Tensors,
    remnants: &'r Remnants,
    /// Whose bytes are remnants to some reading.
    old: FxHashSet<u32>,
    writers: Marks,
}

impl<'r> Remains<'r> {
    /// At the start; `None` where there are no remnants.
    pub(crate) fn new(
        program: &'r Program<'r>,
        accesses: &Accesses,
        remnants: &'r Remnants,
        places: &IndexVec<TaskId, usize>,
    ) -> Option<Remains<'r>> {
        let tensors = program.tensors.as_ref().filter(|_| !remnants.is_empty())?;
        // Elsewhere nobody reads any.
        let readers: FxHashSet<u32> = remnants.keys().map(|(reader, _)| *reader).collect();
        let (mut buffers, mut until) = (FxHashSet::default(), 0);
        for entry in accesses.iter().filter(|e| e.direction == Direction::Read) {
            let buffer = accesses.footprint_of(entry).buffer;
            if readers.contains(&reading(tensors, entry.task, 0).0)
                && is_followed(&program.buffers[buffer])
            {
                buffers.insert(buffer);
                until = until.max(places[entry.task].saturating_add(1));
            }
        }
        Some(Remains {
            buffers,
            until,
            tensors,
            remnants,
            old: remnants.values().flatten().map(|(old, _)| *old).collect(),
            writers: Marks::default(),
        })
    }

    /// The writers whose bytes are remnants in a tensor that a task reads, each with one that ended it.
    pub(crate) fn of(&self, task: TaskId, tensor: u8) -> Option<&[(u32, u32)]> {
        let found = self.remnants.get(&reading(self.tensors, task, tensor))?;
        Some(found)
    }

    /// Notes what an access of the task at a place writes: these bytes, which lie in a span.
    pub(crate) fn overwrite(
        &mut self,
        place: usize,
        entry: &Use,
        buffer: BufferId,
        span: &Range<u64>,
        series: impl Iterator<Item = Series>,
    ) {
        if place >= self.until || !self.buffers.contains(&buffer) {
            return;
        }
        let writer = writer(self.tensors, entry);
        if self.old.contains(&writer) {
            self.writers.set(buffer, series, writer);
        } else {
            self.writers.clear(buffer, span, series);
        }
    }

    /// The last writer of a byte, if its bytes are remnants to anybody; 0 otherwise.
    pub(crate) fn at(&self, buffer: BufferId, byte: u64) -> u32 {
        self.writers.at(buffer, byte)
    }

    /// Adds those bytes of a window from `start` on that one of these writers wrote last.
    pub(crate) fn add_to(
        &self,
        window: &mut Window,
        buffer: BufferId,
        start: u64,
        writers: &[u32],
    ) {
        let is_old = |writer| writers.contains(&writer);
        self.writers.add_to(window, buffer, start, is_old);
    }

    /// The first bytes of a range that one of these writers wrote last.
    pub(crate) fn first(
        &self,
        buffer: BufferId,
        bytes: Range<u64>,
        writers: &[u32],
    ) -> Option<Range<u64>> {
        let cells = self.writers.of(buffer)?;
        cells.first(bytes, |writer| writers.contains(&writer))
    }
}
