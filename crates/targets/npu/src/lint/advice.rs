//! What a compiler should not have done, though the program runs: reported beside the program, never instead of it.

use crate::bytes::Record;
use crate::dma::Operation;
use crate::dpu::Workload;
use crate::image::Image;
use crate::inference::Inference;
use crate::lint::Subject;
use crate::schedule::{Description, Task as Scheduled};
use crate::structures::{MappedInference, TILES, TaskKind, TaskStorage};
use chipless_model::{
    Access, Action, Certainty, Direction, Finding, IndexVec, Pattern, Place, Program, Signal,
    TaskId,
};
use std::collections::VecDeque;
use std::mem::offset_of;

chipless_model::rules! {
    OVERTAKEN Departure Warning Writers "npu-dma-overtakes" "a DMA may overtake one before it that touches the same bytes"
        "A descriptor whose bit `ord` is clear may start while the one or two before it on its list are still moving. The compiler clears the bit only where it sees no common bytes; it looks for reads after writes and not for the other two kinds of conflict. Chipless runs transfers of a list one after the other, so it does not show what the hardware would do. A descriptor that waits for a barrier, or comes after one that does, is taken to be ordered."
        "Set bit 28 (ord) of the configuration word of the later descriptor, or let it wait for a barrier that the earlier one posts."
        "NPU4 DMA descriptor, offset 16, bit 28; DMA scheduling in the NPU compiler";
    SCHEDULE_HINT Fault Warning Hardware "npu-schedule-hint" "a scheduling field names a barrier that the program does not have"
        "start_after is one more than the highest virtual barrier that must be loaded before the task may be enqueued, clean_after the barrier after which its descriptor may go. A number beyond the barriers of the program lets firmware that uses these fields wait for ever. Chipless and the firmware of the compiler releases at hand do not need them: both are 0 there."
        "Set both fields to 0, or to barriers of the program."
        "NPU4 DMA descriptor, offset 192; DPU invariant, offset 0x148; SHAVE invocation, offset 0x48";
    NOT_EXECUTED Unsupported Note Chipless "npu-not-executed" "a task that is known by its layout only"
        "The DMA compresses, decompresses or scatters, the DPU workload writes a sparsity map, or the task does something else whose meaning is not public. It is listed field by field and timed; a functional run that reaches it stops there, and what it would have written counts as written."
        "Run with `--timing-only`, or compile the model without it (sparse activations, compression) to compute values."
        "NPU4 DMA descriptor, offset 16; DPU invariant, offset 0x60";
    WEIGHT_COUNT Departure Warning Writers "npu-weight-count" "a workload counts weight sets that are no multiple of 16"
        "weight_num counts the entries of the weight table that the workload uses, and the DPU takes them by 16. Chipless takes the output box instead."
        "Set it to the output channels, rounded up to 16."
        "NPU4 DPU variant, offset 0xb8; NPU compiler, compiled programs";
    TASK_STORAGE Departure Warning Writers "npu-task-storage" "descriptors have no slots in the tile, or more than there are"
        "The mapped inference says how many descriptors of each kind the CMX of a tile holds at a time: for those that the program has at least one, of invariants at most 64, of variants at most 128. Firmware lays out the tile by these numbers; Chipless takes descriptors from where the program's own DMAs put them."
        "Use the numbers of the compiler: 64 invariants, 128 variants."
        "NPU4 mapped inference, offset 24; descriptor buffers in the NPU compiler";
    FINAL_CONSUMERS Departure Warning Writers "npu-final-consumers" "the barrier that ends the inference expects consumers that do not exist"
        "Counts of consumers are exact in every program seen, and nobody but tasks consumes a barrier: the firmware only looks whether the last one is lit. The inference ends all the same, but a barrier that never retires is left to the next one. In programs that configure their barriers themselves one consumer stands for the firmware."
        "Set the consumer count to the number of tasks that consume it."
        "NPU4 barriers; compiled programs";
    SEVERAL_WAITS Departure Note Writers "npu-several-waits" "a task waits for several barriers"
        "The compiler tries to let each task wait for one barrier, because physical barriers are few. Tasks with two occur in sound programs, and the times of `run` count nothing for a wait."
        "Nothing has to change. To save barriers, merge their producers, or let one barrier count them all."
        "NPU compiler, one wait for each task; compiled programs";
}

/// Slots of a tile for invariants and for variants, at most.
const INVARIANTS: u32 = 64;
const VARIANTS: u32 = 128;
/// Transfers that the next one may overtake.
const UNDER_WAY: usize = 2;
/// Runs of an access that are compared one by one. What has more is not judged.
const RUNS: u64 = 1 << 12;

/// Looks at the tasks of each queue, one after the other.
pub(crate) fn queues(subject: &Subject<'_, '_, '_>, findings: &mut Vec<Finding>) {
    let (program, barriers) = (subject.program, subject.control.barriers.len());
    let mut scheduled: IndexVec<TaskId, Option<&Scheduled>> =
        program.tasks.iter().map(|_| None).collect();
    for (task, id) in subject.schedule.tasks.iter().zip(&subject.tasks) {
        if let Some(id) = id {
            scheduled[*id] = Some(task);
        }
    }
    // Transfers of the current list that may still be under way.
    let mut under_way: VecDeque<TaskId> = VecDeque::new();
    let mut queue = None;
    for (task, scheduled) in scheduled.iter_enumerated() {
        let Some(scheduled) = scheduled else { continue };
        if queue.replace(program.tasks[task].queue) != Some(program.tasks[task].queue) {
            under_way.clear();
        }
        let place = || program.place(task);
        let record = subject.bytes(scheduled.description.bytes());
        let waits = scheduled.waits.count_ones();
        if waits > 1 {
            findings.push(SEVERAL_WAITS.at(place(), format!("waits for {waits} barriers")));
        }
        match &scheduled.description {
            Description::Dma { descriptor, .. } => {
                findings.extend(hint(record, 0xc0, barriers, place));
                if let Operation::Unsupported { what, .. } = descriptor.operation {
                    let message = format!("{what}: it is listed, not executed");
                    findings.push(NOT_EXECUTED.at(place(), message));
                }
                // A barrier that this one or one between waits for mostly comes after the earlier transfers.
                if scheduled.waits != 0 || descriptor.in_order {
                    under_way.clear();
                }
                let earlier = under_way.iter();
                findings.extend(earlier.filter_map(|earlier| overtakes(program, *earlier, task)));
                if under_way.len() == UNDER_WAY {
                    under_way.pop_front();
                }
                under_way.push_back(task);
            }
            Description::Shave { .. } => findings.extend(hint(record, 0x48, barriers, place)),
            Description::Dpu { .. } => {}
        }
    }
}

/// Looks at what a workload asks for.
pub(crate) fn not_executed(workload: &Workload, place: &dyn Fn() -> Place) -> Option<Finding> {
    let what = workload.unsupported()?;
    let message = format!("{what}: it is listed, not executed");
    Some(NOT_EXECUTED.at(place(), message))
}

/// Looks at the number of weight sets of a workload.
pub(crate) fn weight_count(variant: &[u8], place: &dyn Fn() -> Place) -> Option<Finding> {
    let count = Record(variant).u32(0xb8);
    (!count.is_multiple_of(16)).then(|| {
        WEIGHT_COUNT.at(
            place(),
            format!("weight_num: expected a multiple of 16, found {count}"),
        )
    })
}

/// Looks at `start_after` and `clean_after` of a record, which stand at `offset`, in a program of so many virtual barriers.
pub(crate) fn hint(
    record: &[u8],
    offset: usize,
    barriers: usize,
    place: impl Fn() -> Place,
) -> Option<Finding> {
    let fields = [
        ("start_after", offset, barriers),
        ("clean_after", offset + 4, barriers.saturating_sub(1)),
    ];
    fields.into_iter().find_map(|(name, at, most)| {
        let found = Record(record).u32(at);
        (found as usize > most).then(|| {
            let message = format!(
                "{name}: expected at most {most}, for a program of {barriers} barriers, found {found}"
            );
            SCHEDULE_HINT.at(place(), message)
        })
    })
}

/// What is wrong with the slots for descriptors in each tile.
pub(crate) fn task_storage<'i>(
    inference: &'i Inference<'_>,
    image: &'i Image<'_>,
) -> impl Iterator<Item = Finding> {
    let storage = &inference.mapped.task_storage;
    let counts = [
        ("dma_ddr", TaskKind::DmaDdr, storage.dma_ddr, u32::MAX),
        ("dma_cmx", TaskKind::DmaCmx, storage.dma_cmx, u32::MAX),
        (
            "invariants",
            TaskKind::Invariant,
            storage.invariants,
            INVARIANTS,
        ),
        ("variants", TaskKind::Variant, storage.variants, VARIANTS),
        ("ranges", TaskKind::Range, storage.ranges, u32::MAX),
        (
            "invocations",
            TaskKind::Invocation,
            storage.invocations,
            u32::MAX,
        ),
    ];
    let (section, offset) = inference.entry;
    let start = offset
        + offset_of!(MappedInference, task_storage) as u64
        + offset_of!(TaskStorage, dma_ddr) as u64;
    counts
        .into_iter()
        .enumerate()
        .filter_map(move |(index, (name, kind, found, most))| {
            let found = found.get();
            let used = (0..TILES).any(|unit| inference.tasks(kind, unit).count() != 0);
            let message = match found {
                0 if used => format!("{name}: found 0, the program has such tasks"),
                _ if found > most => format!("{name}: expected at most {most}, found {found}"),
                _ => return None,
            };
            let place = image
                .place(section, start + index as u64 * 4, 4)
                .at(format!("task_storage.{name}"));
            Some(TASK_STORAGE.at(place, message))
        })
}

/// Consumers that the last barrier waits for, and that no task is.
pub(crate) fn final_consumers(program: &Program<'_>, managed_by_program: bool) -> Option<Finding> {
    let last = &program.configurations[program.completion?];
    let uses = program
        .configurations
        .iter()
        .filter(|c| c.barrier == last.barrier);
    let expected: u64 = uses.map(|c| u64::from(c.consumers)).sum();
    let consumes = |signal: &&Signal| matches!(signal.action, Action::Consume(barrier) if barrier == last.barrier);
    let found =
        program.signals.iter().filter(consumes).count() as u64 + u64::from(managed_by_program);
    let missing = expected
        .checked_sub(found)
        .filter(|missing| *missing > 0)?
        .min(last.consumers.into());
    let name = &program.syncs[last.barrier].name;
    let message = format!(
        "{name} (use {}) expects {} consumers, {missing} of them do not exist",
        last.number, last.consumers
    );
    Some(FINAL_CONSUMERS.at(last.place.clone(), message))
}

/// What is wrong if a transfer does not wait for the end of an earlier one.
fn overtakes(program: &Program<'_>, earlier: TaskId, later: TaskId) -> Option<Finding> {
    let accesses = |task| {
        let mut list: Vec<Access> = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            list.extend(Some(access).filter(|a| a.certainty == Certainty::Exact));
        });
        list
    };
    let before = accesses(earlier);
    for new in accesses(later) {
        for old in before.iter().filter(|old| {
            old.buffer == new.buffer
                && (old.direction, new.direction) != (Direction::Read, Direction::Read)
        }) {
            let Some((low, high)) = common(&old.pattern, &new.pattern) else {
                continue;
            };
            let verb = |direction| {
                if direction == Direction::Read {
                    "reads"
                } else {
                    "writes"
                }
            };
            let (one, two) = (program.task_name(earlier), program.task_name(later));
            let message = format!(
                "{two} {} {} {low:#x}..{high:#x}, which {one} {}, and its bit `ord` lets it start before {one} has ended",
                verb(new.direction),
                program.buffers[new.buffer].name,
                verb(old.direction),
            );
            return Some(
                OVERTAKEN
                    .at(program.place(later), message)
                    .with(program.place(earlier), "the transfer before"),
            );
        }
    }
    None
}

/// Bytes that two patterns both touch, if there are any and they are easy to find.
fn common(a: &Pattern, b: &Pattern) -> Option<(u64, u64)> {
    let (one, two) = (a.extent(), b.extent());
    if one.start.max(two.start) >= one.end.min(two.end) || one.start.min(two.start) < 0 {
        return None;
    }
    let runs = |pattern: &Pattern| {
        let count = pattern.bytes()?.checked_div(pattern.run)?;
        let mut runs: Vec<(u64, u64)> =
            (count <= RUNS).then(|| pattern.runs().map(|at| (at, at + pattern.run)).collect())?;
        runs.sort_unstable();
        Some(runs)
    };
    let (a, b) = (runs(a)?, runs(b)?);
    let (mut i, mut j) = (0, 0);
    while let (Some(one), Some(two)) = (a.get(i), b.get(j)) {
        let (low, high) = (one.0.max(two.0), one.1.min(two.1));
        if low < high {
            return Some((low, high));
        }
        if one.1 <= two.1 { i += 1 } else { j += 1 }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Loop;

    #[test]
    fn rows_that_interleave_have_no_common_bytes() {
        let rows = |at| {
            Pattern::new(
                at,
                16,
                [Loop {
                    count: 8,
                    stride: 64,
                }],
            )
        };
        assert_eq!(common(&rows(0), &rows(16)), None);
        assert_eq!(common(&rows(0), &rows(136)), Some((136, 144)));
    }

    #[test]
    fn scheduling_fields_name_barriers_of_the_program() {
        let mut record = [0; 8];
        (record[0], record[4]) = (7, 7);
        let finding = hint(&record, 0, 7, Place::file).expect("a finding");
        assert_eq!(
            (finding.rule.code, finding.message.as_str()),
            (
                "npu-schedule-hint",
                "clean_after: expected at most 6, for a program of 7 barriers, found 7"
            )
        );
    }
}
