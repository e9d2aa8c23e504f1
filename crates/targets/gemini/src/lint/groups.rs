//! DRAM groups of IR-tiling: an interleaved transfer is listed in each group that holds a part of its data.

use super::{Findings, Lint};
use crate::names::Name;
use crate::rules::schedule::GROUP;
use crate::schedule::{At, DramIn, DramOut, Peer, Schedule};
use std::collections::HashMap;

/// Groups, bit by bit.
type Bits = u32;

/// The groups over which the data of each transfer are interleaved: those that its readers and makers name, those in which what
/// it reads was stored, and those of the other weights of its layer, for which the scheduler takes one choice of groups.
pub(super) fn of(schedule: &Schedule) -> HashMap<u32, Bits> {
    let mut groups: HashMap<u32, Bits> = HashMap::new();
    if !schedule.dialect.is_tiling() {
        return groups;
    }
    for (_, workload) in schedule.workloads() {
        let sources = workload
            .buffer
            .iter()
            .flat_map(|tensor| tensor.sources.iter().map(|s| (s.transfer, s.peer)));
        let destinations = workload
            .ofmaps
            .iter()
            .flat_map(|piece| piece.destinations.iter().map(|d| (piece.transfer, d.peer)));
        for (transfer, peer) in sources.chain(destinations) {
            if let Peer::Dram(named) = peer {
                *groups.entry(transfer).or_default() |= named;
            }
        }
    }
    let weights = |out: &&DramOut| out.weight && out.layer.is_some();
    let mut of_layer: HashMap<Option<Name>, Bits> = HashMap::new();
    for out in schedule.dram_out.iter().filter(weights) {
        *of_layer.entry(out.layer).or_default() |= out.groups;
    }
    for out in schedule.dram_out.iter().filter(weights) {
        *groups.entry(out.transfer).or_default() |= of_layer[&out.layer];
    }
    // A store whose groups nobody names has put the data where they are read.
    let outs: HashMap<u32, Bits> = listed(schedule.dram_out.iter().map(|o| (o.transfer, o.groups)));
    for store in &schedule.dram_in {
        let named = groups.entry(store.transfer).or_default();
        if *named == 0 {
            *named = related(store.related.as_deref(), &outs);
        }
    }
    let stored = |store: &DramIn| (store.transfer, store.groups | groups[&store.transfer]);
    let ins: HashMap<u32, Bits> = listed(schedule.dram_in.iter().map(stored));
    for out in &schedule.dram_out {
        *groups.entry(out.transfer).or_default() |= related(out.related.as_deref(), &ins);
    }
    groups
}

fn listed(all: impl Iterator<Item = (u32, Bits)>) -> HashMap<u32, Bits> {
    let mut listed = HashMap::new();
    for (transfer, groups) in all {
        *listed.entry(transfer).or_default() |= groups;
    }
    listed
}

fn related(transfers: Option<&[u32]>, of: &HashMap<u32, Bits>) -> Bits {
    let groups = transfers.into_iter().flatten().filter_map(|id| of.get(id));
    groups.fold(0, |all, groups| all | groups)
}

/// A transfer is listed in every group that holds a part of its data.
pub(super) fn check(lint: Lint<'_>, transfer: u32, listed: Bits, at: At, findings: &mut Findings) {
    let missing = lint
        .groups
        .get(&transfer)
        .map_or(0, |needed| needed & !listed);
    if missing != 0 {
        findings.report(&GROUP, at, || {
            format!(
                "expected transfer {transfer} in DRAM group {}, where a part of its data lies, found it is not listed there",
                missing.trailing_zeros()
            )
        });
    }
}
