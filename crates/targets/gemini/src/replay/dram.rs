//! How the queue of DRAM spends a run.

use chipless_model::{Demand, Direction, MemoryKind, Program, Role, Time};
use chipless_sim::Timeline;

/// The transfers of DRAM, which has one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramQueue {
    /// Bytes from and to DRAM.
    pub bytes: u64,
    /// How many of them are results that are written and read again on the chip.
    pub result_bytes: u64,
    /// How many of them are outputs.
    pub output_bytes: u64,
    /// Time of the bytes at the bandwidth of DRAM.
    pub at_bandwidth: Time,
    /// Time in which a transfer runs.
    pub busy: Time,
    /// Bytes of the transfers that a link on their way slows down.
    pub slowed_bytes: u64,
    /// How long these run.
    pub slowed: Time,
}

impl DramQueue {
    /// Of a run.
    pub fn of(program: &Program<'_>, timeline: &Timeline) -> DramQueue {
        let mut queue = DramQueue::default();
        let mut seconds = 0.0;
        let mut spans = Vec::new();
        for (task, record) in timeline.tasks.iter_enumerated() {
            let demands = program.demands(task);
            let time =
                |demand: &Demand| demand.bytes as f64 / program.resources[demand.resource].capacity;
            let is_dram = |demand: &&Demand| program.resources[demand.resource].off_chip;
            let Some(dram) = demands.iter().find(is_dram) else {
                continue;
            };
            queue.bytes = queue.bytes.saturating_add(dram.bytes);
            seconds += time(dram);
            spans.push((record.start, record.end));
            if demands.iter().any(|demand| time(demand) > time(dram)) {
                queue.slowed_bytes = queue.slowed_bytes.saturating_add(dram.bytes);
                queue.slowed += record.end.saturating_sub(record.start);
            }
            let (mut is_result, mut is_output) = (false, false);
            program.kernel(task).accesses(&mut |access| {
                let buffer = &program.buffers[access.buffer];
                let kind = program.memories[buffer.memory].kind;
                let is_off_chip = matches!(kind, MemoryKind::Dram | MemoryKind::Hbm);
                let is_own = match access.direction {
                    Direction::Read => matches!(buffer.role, Role::Input | Role::Constant),
                    Direction::Write => buffer.role == Role::Output,
                };
                is_result |= is_off_chip && !is_own;
                is_output |= is_off_chip
                    && access.direction == Direction::Write
                    && buffer.role == Role::Output;
            });
            if is_output {
                queue.output_bytes = queue.output_bytes.saturating_add(dram.bytes);
            }
            if is_result {
                queue.result_bytes = queue.result_bytes.saturating_add(dram.bytes);
            }
        }
        queue.at_bandwidth = Time::from_ns(seconds * 1e9);
        spans.sort_unstable();
        let mut until = Time::ZERO;
        for (start, end) in spans {
            queue.busy += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        queue
    }
}
