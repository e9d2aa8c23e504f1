//! Weight tables: the DPU takes addresses from them.

use super::Subject;
use crate::address;
use crate::schedule::Description;
use chipless_model::{Certainty, Direction, Finding, Place};

chipless_model::rules! {
    COMPUTED Fault Error Proof "npu-weight-table-computed" "a weight table holds results of a DPU"
        "Each entry of a weight table begins with the addresses of weights and sparsity map. What a DPU writes are elements of tensors, never addresses: where it was the last to write bytes of a table, or what a transfer copied there, the workload takes numbers for addresses, and reads weights from anywhere, perhaps from beyond the memory."
        "Look for the transfer that should bring the table: it is missing, comes too early, goes elsewhere or is too short. Or something overwrites the table."
        "NPU4 DPU: weight table; what the program writes there";
}

/// Copies that are followed back, one after the other.
const MOST_COPIES: usize = 8;

/// Looks for bytes of the table of the workload at a position of the walk that are results of a DPU.
pub(super) fn check(
    subject: &Subject<'_, '_, '_>,
    walked: usize,
    tile: u8,
    ranges: impl Iterator<Item = (u64, u64)>,
    place: &dyn Fn() -> Place,
) -> Option<Finding> {
    let (writer, computed, at) = ranges.into_iter().find_map(|(low, size)| {
        let constants = subject.constants.get()?;
        let mut sources = constants.sources(tile, walked, low, low + size);
        sources.find_map(|(writer, at)| Some((writer, origin(subject, writer, tile, at)?, at)))
    })?;
    let task = |position: usize| subject.tasks.get(position).copied().flatten();
    let (last, first) = (task(writer)?, task(computed)?);
    let name = subject.program.task_name(last);
    let first_name = subject.program.task_name(first);
    let of = if writer == computed {
        String::new()
    } else {
        format!(", which copies what {first_name} computed")
    };
    let message = format!("byte {at:#x} of its weight table was last written by {name}{of}");
    let finding = COMPUTED.at(place(), message);
    let finding = finding.with(subject.program.place(last), format!("{name} writes it"));
    Some(if writer == computed {
        finding
    } else {
        finding.with(
            subject.program.place(first),
            format!("{first_name} computes it"),
        )
    })
}

/// The DPU task whose result a byte is that the task at a position wrote, by itself or by copies inside CMX.
fn origin(
    subject: &Subject<'_, '_, '_>,
    mut writer: usize,
    mut tile: u8,
    mut at: u64,
) -> Option<usize> {
    for _ in 0..MOST_COPIES {
        match subject.schedule.tasks.get(writer)?.description {
            Description::Dpu { .. } => return Some(writer),
            Description::Dma { .. } => {}
            Description::Shave { .. } => return None,
        }
        (tile, at) = copied_from(subject, writer, tile, at)?;
        writer = last_writer(subject, writer, tile, at)?;
    }
    None
}

/// The last task before a position of the walk that surely writes a byte of a tile.
fn last_writer(subject: &Subject<'_, '_, '_>, before: usize, tile: u8, byte: u64) -> Option<usize> {
    let buffer = subject.cmx.buffer(tile);
    let mut writers = subject.constants.get()?.writers(tile, before, byte);
    writers.find(|position| {
        let mut is_writer = false;
        if let Some(task) = subject.tasks[*position] {
            subject.program.kernel(task).accesses(&mut |access| {
                is_writer |= access.direction == Direction::Write
                    && access.certainty == Certainty::Exact
                    && Some(access.buffer) == buffer
                    && access.pattern.position(byte).is_some();
            });
        }
        is_writer
    })
}

/// The byte of CMX that a DMA copies to a byte of a tile.
fn copied_from(subject: &Subject<'_, '_, '_>, dma: usize, tile: u8, at: u64) -> Option<(u8, u64)> {
    let task = subject.tasks.get(dma).copied().flatten()?;
    let tile_of = |buffer| (0..address::TILES).find(|tile| subject.cmx.buffer(*tile) == buffer);
    let (mut reads, mut written) = (Vec::new(), None);
    subject.program.kernel(task).accesses(&mut |access| {
        let Some(found) = tile_of(Some(access.buffer)) else {
            return;
        };
        match access.direction {
            Direction::Write if found == tile => written = Some(access.pattern),
            Direction::Write => {}
            Direction::Read => reads.push((found, access.pattern)),
        }
    });
    let ([(from, source)], Some(written)) = (&reads[..], written) else {
        return None;
    };
    let is_copy = source.bytes() == written.bytes();
    let at = is_copy.then(|| written.counterpart(at, source))??;
    Some((*from, at))
}
