//! Weight tables: the DPU takes addresses from them.

use super::Subject;
use crate::address;
use crate::dma::Operation;
use crate::schedule::Description;
use chipless_model::{BufferId, Certainty, Direction, Finding, Place, Role};

chipless_model::rules! {
    COMPUTED Fault Error Proof "npu-weight-table-computed" "a weight table holds results of a DPU, or numbers that a transfer has converted"
        "Each entry of a weight table begins with the addresses of weights and sparsity map. What a DPU writes, or a transfer that converts numbers, are elements of tensors, never addresses: where one of them was the last to write bytes of a table, or what another transfer copied there, the workload takes numbers for addresses, and reads weights from anywhere, perhaps from beyond the memory."
        "Look for the transfer that should bring the table: it is missing, comes too early, goes elsewhere or is too short. Or something overwrites the table."
        "NPU4 DPU: weight table; what the program writes there";
}

/// Copies that are followed back, one after the other.
const MOST_COPIES: usize = 8;
/// Bytes of a table that are looked at together where rows with gaps lie over it: those of an entry.
const STEP: usize = 16;

/// Looks for bytes of the table of the workload at a position of the walk that are computed, which addresses are not.
pub(super) fn check(
    subject: &Subject<'_, '_, '_>,
    walked: usize,
    tile: u8,
    ranges: impl Iterator<Item = (u64, u64)>,
    place: &dyn Fn() -> Place,
) -> Option<Finding> {
    let constants = subject.constants.get()?;
    let own = subject.cmx.buffer(tile)?;
    let computed = |writer: usize, at: u64| Some((writer, origin(subject, writer, (own, at))?, at));
    let mut sources = ranges
        .flat_map(|(low, size)| constants.sources(tile, walked, low, low.saturating_add(size)));
    let (writer, computed, at) = sources.find_map(|(writer, bytes)| match writer {
        Some(writer) => computed(writer, bytes.start),
        // Rows with gaps: which bytes are whose, the accesses tell.
        None => bytes
            .step_by(STEP)
            .find_map(|at| computed(last_writer(subject, walked, (own, at))?, at)),
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

/// The task that computed a byte of a buffer which the task at a position wrote, by itself or by copying it from elsewhere: a DPU, or a
/// transfer that converts.
fn origin(
    subject: &Subject<'_, '_, '_>,
    mut writer: usize,
    mut byte: (BufferId, u64),
) -> Option<usize> {
    for _ in 0..MOST_COPIES {
        match &subject.schedule.tasks.get(writer)?.description {
            Description::Dpu { .. } => return Some(writer),
            Description::Dma { descriptor, .. } => {
                if let Operation::Move { conversion, .. } = &descriptor.operation
                    && conversion.is_some()
                {
                    return Some(writer);
                }
            }
            Description::Shave { .. } => return None,
        }
        let task = subject.tasks.get(writer).copied().flatten()?;
        byte = subject.program.kernel(task).source_of(byte.0, byte.1)?;
        writer = last_writer(subject, writer, byte)?;
    }
    None
}

/// The last task before a position of the walk that may write a byte of a buffer, if it surely does.
fn last_writer(
    subject: &Subject<'_, '_, '_>,
    before: usize,
    (buffer, at): (BufferId, u64),
) -> Option<usize> {
    let program = subject.program;
    let certainty = |position: usize| {
        let mut found = None;
        program
            .kernel(subject.tasks[position]?)
            .accesses(&mut |access| {
                if (access.direction, access.buffer) == (Direction::Write, buffer)
                    && found != Some(Certainty::Exact)
                    && access.pattern.position(at).is_some()
                {
                    found = Some(access.certainty);
                }
            });
        Some((position, found?))
    };
    let is_on_chip = |tile: &u8| subject.cmx.buffer(*tile) == Some(buffer);
    let (writer, certainty) = match (0..address::TILES).find(is_on_chip) {
        Some(tile) => {
            let mut writers = subject.constants.get()?.writers(tile, before, at);
            writers.find_map(certainty)
        }
        // Spilled to the scratch memory off the chip.
        None if program.buffers[buffer].role == Role::Scratch => {
            (0..before).rev().find_map(certainty)
        }
        None => None,
    }?;
    (certainty == Certainty::Exact).then_some(writer)
}
