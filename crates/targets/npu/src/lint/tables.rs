//! Weight tables: the DPU takes addresses from them.

use super::Subject;
use crate::schedule::Description;
use chipless_model::{Finding, Place};

chipless_model::rules! {
    COMPUTED Fault Error Proof "npu-weight-table-computed" "a weight table holds results of a DPU"
        "Each entry of a weight table begins with the addresses of weights and sparsity map. What a DPU writes are elements of tensors, never addresses: where it was the last to write bytes of a table, the workload takes numbers for addresses, and reads weights from anywhere, perhaps from beyond the memory."
        "Look for the transfer that should bring the table: it is missing, comes too early, goes elsewhere or is too short. Or something overwrites the table."
        "NPU4 DPU: weight table; what the program writes there";
}

/// Looks for bytes of the table of the workload at a position of the walk that a DPU wrote last.
pub(super) fn check(
    subject: &Subject<'_, '_, '_>,
    walked: usize,
    tile: u8,
    ranges: impl Iterator<Item = (u64, u64)>,
    place: &dyn Fn() -> Place,
) -> Option<Finding> {
    let is_dpu = |position: usize| {
        let task = subject.schedule.tasks.get(position);
        task.is_some_and(|task| matches!(task.description, Description::Dpu { .. }))
    };
    let (writer, at) = ranges.into_iter().find_map(|(low, size)| {
        let constants = subject.constants.get()?;
        let mut sources = constants.sources(tile, walked, low, low + size);
        sources.find(|(position, _)| is_dpu(*position))
    })?;
    let task = subject.tasks.get(writer).copied().flatten()?;
    let name = subject.program.task_name(task);
    let message = format!("byte {at:#x} of its weight table was last written by {name}");
    let finding = COMPUTED.at(place(), message);
    Some(finding.with(subject.program.place(task), format!("{name} writes it")))
}
