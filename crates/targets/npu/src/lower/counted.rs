//! What constants tell of times: what the bytes of transfers count as, where that is not what they are, and how many weights are there.

use super::Lowering;
use chipless_model::Time;
use std::collections::BTreeMap;

/// Elements that are of another size than 8 or 16 bits, in bytes of `each` for every one of them; others as they are. An `each` of 0 takes
/// all as they are.
pub(super) fn of_two_bytes(bytes: u64, bits: u64, each: f64) -> u64 {
    if matches!(bits, 0 | 8 | 16) || each == 0.0 {
        return bytes;
    }
    (bytes as f64 * 8.0 * each / bits as f64).round() as u64
}

impl Lowering<'_, '_> {
    /// Transfers that bring nothing but tables, maps or narrow weights count by the elements of those. What a transfer brings, the workloads
    /// tell that read it.
    pub(super) fn counted(&mut self) {
        let constants = &self.constants;
        // Bits of an element of what a transfer brings, 0 where it brings several things; and how far into its bytes the first of them stands.
        let mut brought: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for (position, workload) in constants.workloads() {
            let tile = workload.tile();
            let known = |offset, size| constants.brought(tile, *position, offset, size);
            workload.constants(&known, &mut |bits, offset| {
                if let Some((by, first)) = constants.brought_by(tile, *position, offset) {
                    let of = brought.entry(by).or_insert((bits, u64::MAX));
                    if of.0 != bits {
                        of.0 = 0;
                    }
                    of.1 = of.1.min(offset - first);
                }
            });
        }
        let each = self.options.machine.dma.odd_element;
        let program = &mut self.build.program;
        for (position, (bits, before)) in brought {
            // What stands before them is something else, such as the end of weights whose start another transfer brings.
            if before > 0 {
                continue;
            }
            let Some(task) = self.ids[position] else {
                continue;
            };
            let demand = program.tasks[task].demands.start as usize;
            if !program.demands(task).is_empty()
                && let Some(counted) = program.counted.get_mut(demand)
            {
                let bytes = of_two_bytes(*counted, bits, each);
                if bytes != *counted {
                    self.rests.on(["dma.odd_element"]);
                }
                *counted = bytes;
            }
        }
    }
    /// Convolutions with sparse weights take the time of those that are there.
    pub(super) fn sparse(&mut self) {
        let (constants, machine) = (&self.constants, &self.options.machine);
        for (position, workload) in constants.workloads() {
            if !workload.is_sparse() {
                continue;
            }
            let known = |offset, size| constants.brought(workload.tile(), *position, offset, size);
            if let (Some(task), Some(present)) = (self.ids[*position], workload.present(&known)) {
                let cycles = workload.cycles(&machine.dpu, present);
                self.build.program.tasks[task].fixed =
                    Time::from_cycles(cycles, machine.clock.dpu());
            }
        }
    }
}
