//! Remnants: what is left of a tensor when another one has been put in its place.
//!
//! The *life* of a byte under its writer ends when the byte, having been read, is overwritten by somebody else, who *ends* that
//! writer's tensor. Bytes that are overwritten before anybody read them belong to the same life: rows that two tiles write, a fill before the
//! data. A read that takes bytes of one writer and bytes of another one that ended the first takes half an old tensor and
//! half a new one; a concatenation never looks like that, since its parts do not overwrite each other.

use crate::cells::{Cells, State};
use crate::footprint::{Accesses, Footprint, Use};
use crate::marks::Marks;
use crate::window::Window;
use chipless_model::{
    Buffer, BufferId, Certainty, Direction, IndexVec, Program, Role, TaskId, Tensors,
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
    buffers: IndexVec<BufferId, Option<Cells>>,
    /// Writers that each writer ended.
    ended: FxHashMap<u32, FxHashSet<u32>>,
    /// Writers whose bytes were read.
    read: FxHashMap<Reading, SmallVec<[u32; 6]>>,
}

impl<'t> Lives<'t> {
    /// At the start; `None` for programs that update tensors in place.
    pub(crate) fn new(program: &'t Program<'_>, accesses: &Accesses) -> Option<Lives<'t>> {
        let tensors = program.tensors.as_ref()?;
        let cells = |(id, buffer): (BufferId, &Buffer<'_>)| {
            (is_followed(buffer) && accesses.is_written(id)).then(|| Cells::new(buffer.size))
        };
        Some(Lives {
            tensors,
            buffers: program.buffers.iter_enumerated().map(cells).collect(),
            ended: FxHashMap::default(),
            read: FxHashMap::default(),
        })
    }

    /// The writers of all that a task and those of its group have read so far.
    pub(crate) fn sources(&self, task: TaskId) -> Vec<u32> {
        let mut writers: Vec<u32> = (0..=TENSORS)
            .filter_map(|tensor| self.read.get(&reading(self.tensors, task, tensor)))
            .flatten()
            .copied()
            .collect();
        writers.sort_unstable();
        writers.dedup();
        writers
    }

    /// A task's accesses to a buffer.
    pub(crate) fn task(&mut self, accesses: &Accesses, entry: &Use, footprint: &Footprint) {
        let Some(cells) = self.buffers[footprint.buffer].as_mut() else {
            return;
        };
        let is_exact = entry.certainty == Certainty::Exact;
        if entry.direction == Direction::Read {
            if !is_exact {
                return;
            }
            for (tensor, pattern) in accesses.tensors(footprint) {
                let reading = reading(self.tensors, entry.task, tensor);
                let writers = self.read.entry(reading).or_default();
                let mut last = u32::MAX;
                for (low, high) in pattern.runs() {
                    cells.read(low, high, |state| {
                        let writer = state.writer();
                        if writer != last {
                            last = writer;
                            if !writers.contains(&writer) {
                                writers.push(writer);
                            }
                        }
                    });
                }
            }
            return;
        }
        let writer = writer(self.tensors, entry);
        let ended = &mut self.ended;
        let mut last = u32::MAX;
        for pattern in accesses.fitting(footprint) {
            for (low, high) in pattern.runs() {
                cells.write(low, high, State::written_by(writer), |old| {
                    let other = old.writer();
                    if old.is_read() && other != last && other != writer && writer != ANYBODY {
                        last = other;
                        if other != 0 && other != ANYBODY {
                            ended.entry(writer).or_default().insert(other);
                        }
                    }
                });
            }
        }
    }

    /// What readings of remnants there were.
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

/// Where remnants lie, once it is known whose bytes they are: the last writer of each byte, if it is one of these.
pub(crate) struct Remains<'r> {
    program: &'r Program<'r>,
    tensors: &'r Tensors,
    remnants: &'r Remnants,
    /// Whose bytes are remnants to some reading.
    old: FxHashSet<u32>,
    writers: Marks<u32>,
}

impl<'r> Remains<'r> {
    /// At the start; `None` where there are no remnants.
    pub(crate) fn new(program: &'r Program<'r>, remnants: &'r Remnants) -> Option<Remains<'r>> {
        let tensors = program.tensors.as_ref().filter(|_| !remnants.is_empty())?;
        Some(Remains {
            program,
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

    /// Notes what an access writes.
    pub(crate) fn overwrite(
        &mut self,
        entry: &Use,
        buffer: BufferId,
        runs: impl Iterator<Item = (u64, u64)>,
    ) {
        let writer = writer(self.tensors, entry);
        if self.old.contains(&writer) {
            if is_followed(&self.program.buffers[buffer]) {
                runs.for_each(|(low, high)| self.writers.set(buffer, low..high, writer));
            }
        } else if self.writers.has(buffer) {
            runs.for_each(|(low, high)| self.writers.clear(buffer, low..high));
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
        let mut at = bytes.start;
        while let Some(found) = self.writers.first(buffer, at..bytes.end) {
            let is_old = |byte: &u64| writers.contains(&self.at(buffer, *byte));
            if let Some(start) = found.clone().find(is_old) {
                let end = (start..found.end).find(|byte| !is_old(byte));
                return Some(start..end.unwrap_or(found.end));
            }
            at = found.end;
        }
        None
    }
}
