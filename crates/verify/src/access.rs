//! The accesses of all tasks in one flat table.

use chipless_model::{BufferId, Certainty, Direction, Loop, Program, TaskId};
use smallvec::SmallVec;

/// Runs and loops of a pattern, without its owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub(crate) offset: u64,
    pub(crate) run: u64,
    pub(crate) loops: &'a [Loop],
}

impl Strided<'_> {
    #[cfg(test)]
    pub(crate) fn of(pattern: &chipless_model::Pattern) -> Strided<'_> {
        Strided { offset: pattern.offset, run: pattern.run, loops: &pattern.loops }
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.loops.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run == 0 || self.loops.iter().any(|l| l.count == 0)
    }

    /// First byte and one past the last.
    pub(crate) fn extent(&self) -> (i128, i128) {
        let (mut low, mut high) = (i128::from(self.offset), i128::from(self.offset) + i128::from(self.run));
        for l in self.loops {
            let reach = i128::from(l.stride) * (i128::from(l.count) - 1);
            if reach < 0 { low += reach } else { high += reach }
        }
        (low, high)
    }

    /// The same bytes as few long runs, each once where that is easy to see. Runs come in no particular order.
    pub(crate) fn runs(&self) -> Runs {
        let (low, _) = self.extent();
        let mut loops: SmallVec<[(u64, u64); 6]> =
            self.loops.iter().filter(|l| l.stride != 0 && l.count > 1).map(|l| (l.stride.unsigned_abs(), l.count)).collect();
        loops.sort_unstable();
        let mut run = self.run;
        // A step no longer than the run continues it.
        loops.retain(|(stride, count)| {
            let joins = *stride <= run;
            if joins {
                run += *stride * (*count - 1);
            }
            !joins
        });
        let total = loops.iter().fold(1u64, |n, (_, count)| n.saturating_mul(*count));
        Runs {
            index: SmallVec::from_elem(0, loops.len()),
            loops,
            run,
            at: low as u64,
            total,
            left: if self.is_empty() { 0 } else { total },
        }
    }
}

/// The runs of a pattern.
#[derive(Debug)]
pub(crate) struct Runs {
    loops: SmallVec<[(u64, u64); 6]>,
    index: SmallVec<[u64; 6]>,
    /// Bytes of each run.
    run: u64,
    at: u64,
    /// How many there are.
    pub(crate) total: u64,
    left: u64,
}

impl Iterator for Runs {
    /// First byte and one past the last.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        self.left = self.left.checked_sub(1)?;
        let here = (self.at, self.at + self.run);
        for (index, (stride, count)) in self.index.iter_mut().zip(&self.loops) {
            *index += 1;
            if *index < *count {
                self.at += stride;
                break;
            }
            *index = 0;
            self.at -= stride * (count - 1);
        }
        Some(here)
    }
}

/// One access of one task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) task: TaskId,
    pub(crate) buffer: BufferId,
    pub(crate) direction: Direction,
    pub(crate) certainty: Certainty,
    offset: u64,
    run: u64,
    loops: (u32, u32),
    /// Whether it lies inside its buffer, wholly.
    pub(crate) fits: bool,
}

/// Every access of a program, task by task.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    entries: Vec<Entry>,
    loops: Vec<Loop>,
    /// First entry of each task, and one past the last of all.
    first: Vec<u32>,
    /// Whether any task writes a buffer.
    written: Vec<bool>,
}

impl Accesses {
    pub(crate) fn collect(program: &Program<'_>) -> Accesses {
        let mut accesses = Accesses { written: vec![false; program.buffers.len()], ..Accesses::default() };
        accesses.first.reserve(program.tasks.len() + 1);
        for task in program.tasks.indices() {
            accesses.first.push(accesses.entries.len() as u32);
            program.kernel(task).accesses(&mut |access| {
                let Some(buffer) = program.buffers.get(access.buffer) else { return };
                let start = accesses.loops.len() as u32;
                accesses.loops.extend(access.pattern.loops.iter().copied());
                let entry = Entry {
                    task,
                    buffer: access.buffer,
                    direction: access.direction,
                    certainty: access.certainty,
                    offset: access.pattern.offset,
                    run: access.pattern.run,
                    loops: (start, accesses.loops.len() as u32),
                    fits: access.pattern.fits(buffer.size),
                };
                if accesses.pattern(&entry).is_empty() {
                    return;
                }
                accesses.written[access.buffer.index()] |= access.direction == Direction::Write;
                accesses.entries.push(entry);
            });
        }
        accesses.first.push(accesses.entries.len() as u32);
        accesses
    }

    /// Whether any task writes a buffer.
    pub(crate) fn is_written(&self, buffer: BufferId) -> bool {
        self.written[buffer.index()]
    }

    /// Indices of a task's accesses.
    pub(crate) fn of(&self, task: TaskId) -> std::ops::Range<u32> {
        self.first[task.index()]..self.first[task.index() + 1]
    }

    pub(crate) fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn pattern(&self, entry: &Entry) -> Strided<'_> {
        Strided { offset: entry.offset, run: entry.run, loops: &self.loops[entry.loops.0 as usize..entry.loops.1 as usize] }
    }
}

/// Bytes of a buffer, as findings name them.
pub(crate) fn range(low: impl std::fmt::LowerHex, high: impl std::fmt::LowerHex) -> String {
    format!("{low:#x}..{high:#x}")
}
