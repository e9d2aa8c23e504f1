//! What L2 holds over time, as the snapshots have it.

use super::{Tiles, span};
use crate::schedule::Schedule;
use chipless_model::Time;
use chipless_sim::Timeline;

/// Bytes in the L2 of a core while a snapshot holds: from the end of the workload before to the end of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Sizes of the snapshot's tensors together.
    pub bytes: u64,
}

/// The levels of each core, in the order of the schedule's cores.
pub fn occupancy(schedule: &Schedule, tiles: Tiles<'_>, timeline: &Timeline) -> Vec<Vec<Level>> {
    let mut tiles = tiles.iter();
    let level = |core: &crate::schedule::Core| {
        let mut start = Time::ZERO;
        core.workloads
            .iter()
            .zip(&mut tiles)
            .map(|(workload, tiles)| {
                let (_, end) = span(timeline, *tiles);
                let bytes = workload
                    .buffer
                    .iter()
                    .map(|t| t.size)
                    .fold(0, u64::saturating_add);
                let level = Level {
                    start,
                    end: end.max(start),
                    bytes,
                };
                start = level.end;
                level
            })
            .collect()
    };
    schedule.cores.iter().map(level).collect()
}

/// Mean over time.
pub(super) fn mean(levels: &[Level]) -> u64 {
    let time: u128 = levels.iter().map(|l| u128::from((l.end - l.start).0)).sum();
    let area: u128 = levels
        .iter()
        .map(|l| u128::from((l.end - l.start).0).saturating_mul(u128::from(l.bytes)))
        .fold(0, u128::saturating_add);
    u64::try_from(area.checked_div(time).unwrap_or(0)).unwrap_or(u64::MAX)
}
