//! What lies where in each memory, and when: from the first write of a range of bytes to its last read before it is written again.

use crate::extents::Extents;
use chipless_model::{BufferId, Direction, IndexVec, MemoryId, Program, Role, TaskId, Time};
use chipless_sim::Timeline;
use std::collections::BTreeMap;
use std::ops::Range;

/// A range of bytes of a buffer while it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Of which buffer.
    pub buffer: BufferId,
    /// From its first byte to its last, as offsets of the buffer.
    pub bytes: Range<u64>,
    /// How many bytes of that range it is: fewer where rows lie apart.
    pub size: u64,
    /// Who wrote it; `None` for what is there from the start.
    pub writer: Option<TaskId>,
    /// From here.
    pub start: Time,
    /// Until here, at most until somebody begins to write over it.
    pub end: Time,
}

/// The lives of all memories. Of an access of more than 1024 runs, those that lie nearest count with what is between them.
#[derive(Debug)]
pub struct Lives {
    /// By start.
    pub of: IndexVec<MemoryId, Vec<Live>>,
}

/// Runs of one access that are followed one by one.
const RUNS: u64 = 1024;

/// Bytes that were written together: the writer, and their life so far.
#[derive(Clone, Copy)]
struct Cell {
    writer: Option<TaskId>,
    start: Time,
    read: Time,
}

/// The lives of a run.
pub fn lives(program: &Program<'_>, timeline: &Timeline) -> Lives {
    let mut found: IndexVec<MemoryId, Vec<Live>> =
        program.memories.iter().map(|_| Vec::new()).collect();
    let mut cells: IndexVec<BufferId, Extents<Cell>> = program
        .buffers
        .iter()
        .map(|buffer| {
            let mut cells = Extents::default();
            let there = matches!(buffer.role, Role::Input | Role::Constant | Role::State);
            if there && buffer.size > 0 {
                let whole = Cell {
                    writer: None,
                    start: Time::ZERO,
                    read: Time::ZERO,
                };
                cells.put(0..buffer.size, whole, |_, _| {});
            }
            cells
        })
        .collect();
    for &task in &timeline.order {
        let record = &timeline.tasks[task];
        let mut written = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            // Bytes beyond the buffer are the verifier's matter.
            let size = program.buffers[access.buffer].size;
            for piece in access.pattern.ranges(size, RUNS) {
                match access.direction {
                    Direction::Read => {
                        for (_, cell) in cells[access.buffer].meeting(piece) {
                            cell.read = cell.read.max(record.end);
                        }
                    }
                    Direction::Write => written.push((access.buffer, piece)),
                }
            }
        });
        for (buffer, extent) in written {
            let cell = Cell {
                writer: Some(task),
                start: record.start,
                read: record.end,
            };
            let over = &mut found[program.buffers[buffer].memory];
            cells[buffer].put(extent, cell, |bytes, mut cell| {
                // Who writes over what it reads puts the new bytes into the place of the old ones.
                cell.read = cell.read.min(record.start);
                over.push(live(buffer, bytes, cell));
            });
        }
    }
    for (buffer, cells) in cells.iter_enumerated() {
        let stays = program.buffers[buffer].role.outlives_run();
        for (bytes, cell) in cells.iter() {
            let mut cell = *cell;
            if stays {
                cell.read = cell.read.max(timeline.end);
            }
            let over = &mut found[program.buffers[buffer].memory];
            over.push(live(buffer, bytes, cell));
        }
    }
    for lives in &mut found {
        lives.retain(|live| live.start < live.end);
        join(lives);
        lives.sort_by_key(|live| (live.start, live.buffer, live.bytes.start));
    }
    Lives { of: found }
}

/// Makes one of the rows that a task wrote together and that live equally long.
fn join(lives: &mut Vec<Live>) {
    let whose = |live: &Live| (live.buffer, live.writer, live.start, live.end);
    lives.sort_by_key(|live| (whose(live), live.bytes.start));
    lives.dedup_by(|row, first| {
        let same = whose(row) == whose(first);
        if same {
            first.bytes.end = first.bytes.end.max(row.bytes.end);
            first.size += row.size;
        }
        same
    });
}

fn live(buffer: BufferId, bytes: Range<u64>, cell: Cell) -> Live {
    Live {
        buffer,
        size: bytes.end - bytes.start,
        bytes,
        writer: cell.writer,
        start: cell.start,
        end: cell.read,
    }
}

impl Lives {
    /// Live bytes of each memory from each instant on: a row at 0, and one for each change.
    pub fn levels(&self) -> IndexVec<MemoryId, Vec<(Time, u64)>> {
        self.of
            .iter()
            .map(|lives| {
                let mut changes: BTreeMap<Time, i128> = BTreeMap::from([(Time::ZERO, 0)]);
                for live in lives {
                    let size = i128::from(live.size);
                    *changes.entry(live.start).or_default() += size;
                    *changes.entry(live.end).or_default() -= size;
                }
                let mut level = 0i128;
                let mut levels: Vec<(Time, u64)> = Vec::new();
                for (at, change) in changes {
                    level += change;
                    let bytes = u64::try_from(level).unwrap_or(0);
                    if levels.last().is_none_or(|(_, last)| *last != bytes) {
                        levels.push((at, bytes));
                    }
                }
                levels
            })
            .collect()
    }

    /// Live bytes of each memory where it is fullest.
    pub fn peaks(&self) -> IndexVec<MemoryId, u64> {
        let levels = self.levels();
        let peaks = levels
            .iter()
            .map(|levels| levels.iter().map(|(_, bytes)| *bytes).max());
        peaks.map(Option::unwrap_or_default).collect()
    }
}
