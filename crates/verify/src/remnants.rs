//! Remnants: what is left of a tensor when another one has been put in its place.
//!
//! The *life* of a byte under its writer ends when the byte, having been read, is overwritten by somebody else, who *ends* that
//! writer's tensor. Bytes that are overwritten before anybody read them belong to the same life: rows that two tiles write, a fill before the
//! data. A read that takes bytes of one writer and bytes of another one that ended the first takes half an old tensor and
//! half a new one; a concatenation never looks like that, since its parts do not overwrite each other.

use crate::cells::{Cells, State};
use crate::footprint::{Accesses, Footprint, Use};
use chipless_model::{BufferId, Certainty, Direction, IndexVec, Program, Role, TaskId, Tensors};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

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
        let is_followed = |id: BufferId| {
            let buffer = &program.buffers[id];
            buffer.role == Role::Scratch && accesses.is_written(id) && buffer.size <= MOST
        };
        let cells = |(id, buffer): (BufferId, &chipless_model::Buffer<'_>)| {
            is_followed(id).then(|| Cells::new(buffer.size))
        };
        Some(Lives {
            tensors,
            buffers: program.buffers.iter_enumerated().map(cells).collect(),
            ended: FxHashMap::default(),
            read: FxHashMap::default(),
        })
    }

    /// The reading of one of a task's tensors.
    pub(crate) fn reading(&self, task: TaskId, tensor: u8) -> Reading {
        let reader = self.tensors.readers.get(task).copied();
        (reader.unwrap_or(u32::MAX), tensor)
    }

    /// The writers of all that a task and those of its group have read so far.
    pub(crate) fn sources(&self, task: TaskId) -> Vec<u32> {
        let mut writers: Vec<u32> = (0..=TENSORS)
            .filter_map(|tensor| self.read.get(&self.reading(task, tensor)))
            .flatten()
            .copied()
            .collect();
        writers.sort_unstable();
        writers.dedup();
        writers
    }

    /// The last writer of a byte; 0 where there is none.
    pub(crate) fn last(&self, buffer: BufferId, byte: u64) -> u32 {
        let cells = self.buffers[buffer].as_ref();
        cells.map_or(ANYBODY, |cells| cells.at(byte).writer())
    }

    /// Bytes from one on that have the same writer.
    pub(crate) fn same_until(&self, buffer: BufferId, byte: u64, high: u64) -> u64 {
        let cells = self.buffers[buffer].as_ref();
        cells.map_or(high, |cells| cells.same_until(byte, high))
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
            let reader = self.tensors.readers.get(entry.task).copied();
            for (tensor, pattern) in accesses.tensors(footprint) {
                let reading = (reader.unwrap_or(u32::MAX), tensor);
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
        let writer = if is_exact {
            self.tensors
                .writers
                .get(entry.task)
                .map_or(ANYBODY, |n| n + 1)
        } else {
            ANYBODY
        };
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
