//! Who makes and who reads each transfer.

use crate::schedule::{Peer, Schedule, Workload};
use std::ops::Range;

/// Position of a workload: index of its core, index in the core's list.
pub(super) type Position = (u32, u32);

/// Who makes a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Maker {
    /// The `out` entry of this index.
    Dram(u32),
    /// The piece of this index of a workload's ofmap.
    Workload(Position, u32),
}

/// Makers, readers and stores of all transfers, each sorted by transfer.
pub(super) struct Index {
    makers: Vec<(u32, Maker)>,
    readers: Vec<(u32, Position)>,
    /// `in` entries by transfer.
    stores: Vec<(u32, u32)>,
}

impl Index {
    pub(super) fn new(schedule: &Schedule) -> Index {
        let mut makers: Vec<(u32, Maker)> = schedule
            .dram_out
            .iter()
            .enumerate()
            .map(|(index, entry)| (entry.transfer, Maker::Dram(index as u32)))
            .collect();
        let mut readers = Vec::new();
        for (core_index, core) in schedule.cores.iter().enumerate() {
            for (index, workload) in core.workloads.iter().enumerate() {
                let position = (core_index as u32, index as u32);
                makers.extend(
                    workload
                        .ofmaps
                        .iter()
                        .enumerate()
                        .map(|(i, piece)| (piece.transfer, Maker::Workload(position, i as u32))),
                );
                readers.extend(read_by(workload).map(|transfer| (transfer, position)));
            }
        }
        let mut stores: Vec<(u32, u32)> = schedule
            .dram_in
            .iter()
            .enumerate()
            .map(|(index, entry)| (entry.transfer, index as u32))
            .collect();
        makers.sort_unstable();
        readers.sort_unstable();
        readers.dedup();
        stores.sort_unstable();
        Index {
            makers,
            readers,
            stores,
        }
    }

    pub(super) fn makers(&self, transfer: u32) -> &[(u32, Maker)] {
        &self.makers[range(&self.makers, transfer)]
    }

    pub(super) fn readers(&self, transfer: u32) -> &[(u32, Position)] {
        &self.readers[range(&self.readers, transfer)]
    }

    pub(super) fn stores(&self, transfer: u32) -> &[(u32, u32)] {
        &self.stores[range(&self.stores, transfer)]
    }

    /// Every transfer that is made, with its makers.
    pub(super) fn by_transfer(&self) -> impl Iterator<Item = &[(u32, Maker)]> {
        self.makers.chunk_by(|a, b| a.0 == b.0)
    }

    /// Every `in` entry's transfer, with the entries.
    pub(super) fn stores_by_transfer(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        self.stores.chunk_by(|a, b| a.0 == b.0)
    }
}

/// Transfers that a workload reads.
pub(super) fn read_by(workload: &Workload) -> impl Iterator<Item = u32> {
    let of_weight = workload.weight.iter().flat_map(|weight| &weight.transfers);
    workload
        .ifmaps
        .iter()
        .flat_map(|ifmap| &ifmap.transfers)
        .chain(of_weight)
        .copied()
}

fn range<T>(table: &[(u32, T)], transfer: u32) -> Range<usize> {
    table.partition_point(|entry| entry.0 < transfer)
        ..table.partition_point(|entry| entry.0 <= transfer)
}

/// The workload at a position.
pub(super) fn at(schedule: &Schedule, position: Position) -> Option<(u32, &Workload)> {
    let core = schedule.cores.get(position.0 as usize)?;
    Some((core.id, core.workloads.get(position.1 as usize)?))
}

/// Where a maker is.
pub(super) fn peer(schedule: &Schedule, maker: Maker) -> Peer {
    match maker {
        Maker::Dram(_) => Peer::Dram(0),
        Maker::Workload((core, _), _) => {
            Peer::Core(schedule.cores.get(core as usize).map_or(0, |core| core.id))
        }
    }
}
