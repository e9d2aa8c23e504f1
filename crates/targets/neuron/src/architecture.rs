//! What the hardware generations have in common and where they differ, as far as a file's rules need it.

use crate::graph::Architecture;
use chipless_model::Pattern;

/// Partitions of the state buffer and of the partial sum buffer (all generations).
pub const PARTITIONS: u64 = 128;
/// Addresses from one partition of the state buffer to the next (measured on trn2 programs; taken for the others).
pub const PARTITION_STRIDE: u64 = 0x40000;
/// Semaphores of a core, and events of a core (driver, address maps of v2 and v3).
pub const SEMAPHORES: u64 = 256;
/// Queues of a queue set, at most (NEFF specification, `num_queues`).
pub const MAX_QUEUES: u64 = 16;
/// Sources of a compute operation, at most (NEFF specification, `from_arr`).
pub const MAX_SOURCES: usize = 16;
/// Hardware descriptors of a ring, at most (driver, ring limits).
pub const MAX_RING_DESCRIPTORS: u64 = (1 << 24) - 16;
/// Bytes of an instruction (measured).
pub const SLOT_BYTES: usize = 64;

impl Architecture {
    /// Bytes of a state buffer partition (architecture guides: 24, 28 and 32 MiB in 128 partitions). For hardware
    /// without a public figure the distance between partitions.
    pub const fn partition_bytes(self) -> u64 {
        match self {
            Architecture::Trn1 => 192 << 10,
            Architecture::Trn2 => 224 << 10,
            _ => PARTITION_STRIDE,
        }
    }

    /// Bytes of HBM of a chip (architecture guides: 32, 96, 144 GiB), `None` without a public figure. Inferentia has 8 GiB of DRAM.
    pub const fn device_bytes(self) -> Option<u64> {
        match self {
            Architecture::Inf1 => Some(8 << 30),
            Architecture::Trn1 => Some(32 << 30),
            Architecture::Trn2 => Some(96 << 30),
            Architecture::Trn3 => Some(144 << 30),
            Architecture::Any | Architecture::Unknown => None,
        }
    }

    /// Whether cores signal each other's semaphores (trn2 and later).
    pub const fn has_remote_semaphores(self) -> bool {
        !matches!(self, Architecture::Inf1 | Architecture::Trn1)
    }
}

/// Why a pattern of state buffer addresses is no part of the state buffer; `None` where it is.
///
/// Steps that are multiples of the partition distance choose partitions, the rest moves within a partition; a pattern
/// that reaches beyond the end of its partition would run into the hole behind it.
pub fn state_buffer_fault(pattern: &Pattern, partition_bytes: u64) -> Option<String> {
    if pattern.extent().is_empty() {
        return None;
    }
    let stride = PARTITION_STRIDE as i128;
    let (mut first, mut last) = (i128::from(pattern.offset / PARTITION_STRIDE), i128::from(pattern.offset / PARTITION_STRIDE));
    let start = i128::from(pattern.offset % PARTITION_STRIDE);
    let (mut low, mut high) = (start, start + i128::from(pattern.run));
    for l in &pattern.loops {
        let step = i128::from(l.stride);
        let partitions = (step + stride / 2).div_euclid(stride);
        let times = i128::from(l.count) - 1;
        let (across, within) = (partitions * times, (step - partitions * stride) * times);
        first += across.min(0);
        last += across.max(0);
        low += within.min(0);
        high += within.max(0);
    }
    if first < 0 || last >= i128::from(PARTITIONS) {
        return Some(format!("partitions {first} to {last} of {PARTITIONS}"));
    }
    if low < 0 || high > i128::from(partition_bytes) {
        return Some(format!("bytes {low} to {high} of a partition of {partition_bytes} bytes"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Loop;

    #[test]
    fn partitions_and_bytes_are_told_apart() {
        let rows = |offset, run, count, stride| Pattern::new(offset, run, [Loop { count, stride }]);
        assert_eq!(state_buffer_fault(&rows(16384, 256, 128, 0x40000), 0x38000), None);
        assert!(state_buffer_fault(&rows(0x40000, 256, 128, 0x40000), 0x38000).is_some_and(|m| m.contains("partitions 1 to 128")));
        assert!(state_buffer_fault(&rows(0x38000 - 128, 256, 4, 0x40000), 0x38000).is_some_and(|m| m.contains("229504")));
        assert!(state_buffer_fault(&rows(0, 64, 4096, 256), 0x38000).is_some());
        assert_eq!(state_buffer_fault(&rows(127 * 0x40000 + 512, 64, 128, -0x40000), 0x38000), None);
        assert_eq!(state_buffer_fault(&rows(u64::MAX, 64, 0, i64::MIN), 0x38000), None);
        assert!(state_buffer_fault(&rows(u64::MAX, u64::MAX, u64::MAX, i64::MIN), 0x38000).is_some());
    }
}
