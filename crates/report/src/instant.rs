//! What stands at an address of a memory at an instant of a run.

use crate::attribution::Lives;
use crate::page::places;
use chipless_model::{BufferId, Direction, MemoryId, Program, Role, Storage, TaskId, Time};
use chipless_sim::Timeline;
use serde::Serialize;
use std::fmt::Write;

/// Bytes that are shown, and what their first one's offset is a multiple of.
const SHOWN: u64 = 256;
const ROW: u64 = 16;

/// Bytes of a buffer at an instant.
#[derive(Debug, Serialize)]
pub struct Instant<'p> {
    /// The memory.
    pub memory: &'p str,
    /// The buffer, as the file names it.
    pub buffer: &'p str,
    /// What the buffer is for.
    pub role: &'static str,
    /// Bytes of the buffer.
    pub size: u64,
    /// Where in the buffer the byte is that was asked for.
    pub offset: u64,
    /// The address of the first byte that is shown.
    pub address: u64,
    /// The instant.
    pub ps: u64,
    /// Bytes in hexadecimal.
    pub bytes: String,
    /// Who wrote the byte that was asked for, and when; null where nobody has by then.
    pub writer: Option<String>,
    /// When that was; null where nobody has by then.
    pub written_ps: Option<u64>,
    /// Whether its bytes are undefined on the device, and zero here.
    pub is_undefined: bool,
    /// Whatever the reader should know of the numbers.
    pub notes: Vec<String>,
}

/// The buffer that lies at an address, and the offset in it: of several that share the address the one that is needed at the instant.
pub fn place(
    program: &Program<'_>,
    lives: &Lives,
    memory: MemoryId,
    address: u64,
    at: Time,
) -> Option<(BufferId, u64)> {
    let places = places(program);
    let offset = |buffer: BufferId| {
        let offset = address.checked_sub(places[buffer])?;
        (offset < program.buffers[buffer].size).then_some(offset)
    };
    let needed = lives.of.get(memory)?.iter().find(|live| {
        (live.start..=live.end).contains(&at)
            && offset(live.buffer).is_some_and(|offset| live.bytes.contains(&offset))
    });
    let all = program.buffers.iter_enumerated();
    let of_memory = all
        .filter(|(_, buffer)| buffer.memory == memory)
        .map(|(id, _)| id);
    let mut buffers = needed.map(|live| live.buffer).into_iter().chain(of_memory);
    buffers.find_map(|buffer| Some((buffer, offset(buffer)?)))
}

impl<'p> Instant<'p> {
    /// The bytes around an offset of a buffer, as a run left them that was executed up to the instant.
    pub fn of(
        program: &'p Program<'_>,
        timeline: &Timeline,
        storage: &Storage<'_>,
        (buffer, offset): (BufferId, u64),
        at: Time,
        notes: Vec<String>,
    ) -> Instant<'p> {
        let shown = &program.buffers[buffer];
        let first = offset - offset % ROW;
        let bytes = storage.bytes(buffer).iter().skip(first as usize);
        let bytes = bytes
            .take(SHOWN as usize)
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
        let writer = writer(program, timeline, (buffer, offset), at);
        let is_there = matches!(shown.role, Role::Input | Role::Constant | Role::State)
            || !shown.initial.is_empty();
        Instant {
            memory: &program.memories[shown.memory].name,
            buffer: &shown.name,
            role: shown.role.name(),
            size: shown.size,
            offset,
            address: places(program)[buffer].saturating_add(first),
            ps: at.0,
            bytes,
            writer: writer.map(|task| program.task_name(task)),
            written_ps: writer.map(|task| timeline.tasks[task].end.0),
            is_undefined: writer.is_none() && !is_there,
            notes,
        }
    }
}

/// Tasks whose effects have happened by an instant, in the order of their effects.
pub fn done_by(timeline: &Timeline, at: Time) -> impl DoubleEndedIterator<Item = TaskId> {
    let tasks = timeline.order.iter().copied();
    tasks.filter(move |task| timeline.tasks[*task].end <= at)
}

fn writer(
    program: &Program<'_>,
    timeline: &Timeline,
    (buffer, offset): (BufferId, u64),
    at: Time,
) -> Option<TaskId> {
    done_by(timeline, at).rev().find(|task| {
        let mut found = false;
        program.kernel(*task).accesses(&mut |access| {
            found |= access.direction == Direction::Write
                && access.buffer == buffer
                && access.pattern.position(offset).is_some();
        });
        found
    })
}
