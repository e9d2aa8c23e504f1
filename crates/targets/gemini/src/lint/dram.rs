//! DRAM: which reads take what which stores put there, and the queue of all accesses.

use super::index::{Maker, at};
use super::{Findings, Lint, cover};
use crate::names::Name;
use crate::rules::memory as rules;
use crate::schedule::{
    At, Bounds, DramIn, DramOut, Ofmap, Peer, Tensor, TensorKind, WeightSource, Workload,
};
use std::collections::{HashMap, HashSet};

pub(super) fn check(lint: Lint<'_>, findings: &mut Findings) {
    let extents = extents(lint);
    let outs: HashMap<u32, &DramOut> = lint
        .schedule
        .dram_out
        .iter()
        .map(|entry| (entry.transfer, entry))
        .collect();
    for entry in &lint.schedule.dram_in {
        for id in entry.related.iter().flatten() {
            match outs.get(id) {
                None => findings.report(&rules::RELATED, entry.at, || {
                    format!(
                        "expected related_ofmap to name an `out` entry, found {id}, which is none"
                    )
                }),
                Some(out)
                    if !out
                        .related
                        .iter()
                        .flatten()
                        .any(|back| *back == entry.transfer) =>
                {
                    let message = || {
                        format!(
                            "expected transfer {id} to name transfer {} in related_ifmap, found it does not",
                            entry.transfer
                        )
                    };
                    findings.report_with(
                        &rules::RELATED_ONE_SIDED,
                        entry.at,
                        message,
                        Some((out.at, "the read")),
                    );
                }
                Some(_) => {}
            }
        }
    }
    for out in &lint.schedule.dram_out {
        read(lint, out, &extents, findings);
    }
    if lint.spec {
        queue(lint, findings);
    }
}

/// The layer that makes what an `in` entry stores.
fn stored_layer(lint: Lint<'_>, entry: &DramIn) -> Option<Name> {
    lint.index
        .makers(entry.transfer)
        .iter()
        .find_map(|(_, maker)| match maker {
            Maker::Workload(position, _) => at(lint.schedule, *position).map(|(_, w)| w.layer),
            Maker::Dram(_) => None,
        })
}

/// The last index that each layer makes, in each dimension.
fn extents(lint: Lint<'_>) -> HashMap<Name, [u32; 4]> {
    let mut extents: HashMap<Name, [u32; 4]> = HashMap::new();
    for (_, workload) in lint.schedule.workloads() {
        let upper = extents.entry(workload.layer).or_default();
        *upper = std::array::from_fn(|d| upper[d].max(workload.bounds.upper[d]));
    }
    extents
}

/// A read and the stores that it is linked to.
fn read(lint: Lint<'_>, out: &DramOut, extents: &HashMap<Name, [u32; 4]>, findings: &mut Findings) {
    let mut stores: Vec<(&DramIn, Option<Name>)> = Vec::new();
    for id in out.related.iter().flatten() {
        let Some(entry) = lint
            .index
            .stores(*id)
            .first()
            .and_then(|(_, index)| lint.schedule.dram_in.get(*index as usize))
        else {
            findings.report(&rules::RELATED, out.at, || {
                format!("expected related_ifmap to name an `in` entry, found {id}, which is none")
            });
            continue;
        };
        if !entry
            .related
            .iter()
            .flatten()
            .any(|back| *back == out.transfer)
            && entry.related.is_some()
        {
            let message = || {
                format!(
                    "expected transfer {id} to name transfer {} in related_ofmap, found it does not",
                    out.transfer
                )
            };
            findings.report_with(
                &rules::RELATED_ONE_SIDED,
                out.at,
                message,
                Some((entry.at, "the store")),
            );
        }
        stores.push((entry, stored_layer(lint, entry)));
    }
    if out.weight {
        return;
    }
    if stores.is_empty() {
        if out
            .related
            .as_ref()
            .is_none_or(smallvec::SmallVec::is_empty)
        {
            unlinked(lint, out, findings);
        }
        return;
    }
    // Boxes of reads count channels in the input of the reader, which is that of the one layer that makes it unless
    // several are concatenated or the input is reshaped.
    let Some(layer) = stores[0].1 else { return };
    let one_layer = stores.iter().all(|(_, l)| *l == Some(layer));
    let same_frame = extents
        .get(&layer)
        .is_some_and(|upper| (0..4).all(|d| out.bounds.upper[d] <= upper[d]));
    if !one_layer || !same_frame {
        return;
    }
    for (entry, _) in &stores {
        if entry.bounds.intersection(&out.bounds).is_none() {
            let message = || {
                format!(
                    "expected transfer {} to store a part of {}, found {}",
                    entry.transfer, out.bounds, entry.bounds
                )
            };
            findings.report_with(
                &rules::RELATED_DISJOINT,
                out.at,
                message,
                Some((entry.at, "the store")),
            );
        }
    }
    let parts: Vec<Bounds> = stores.iter().map(|(entry, _)| entry.bounds).collect();
    if let Some(hole) = cover::hole(&out.bounds, &parts) {
        let message = || {
            format!(
                "expected related_ifmap to name the stores that write all of {}, found none for {hole}",
                out.bounds
            )
        };
        findings.report(&rules::UNWRITTEN, out.at, message);
    }
}

/// A read that is linked to no store takes what was there before the start: no layer of the program may make it.
fn unlinked(lint: Lint<'_>, out: &DramOut, findings: &mut Findings) {
    let readers = lint
        .index
        .readers(out.transfer)
        .iter()
        .filter_map(|(_, position)| at(lint.schedule, *position));
    let Some(layer) = readers
        .flat_map(|(_, workload)| &workload.buffer)
        .flat_map(|tensor| &tensor.sources)
        .find(|source| source.transfer == out.transfer)
        .and_then(|source| source.layer)
    else {
        return;
    };
    if !lint
        .schedule
        .workloads()
        .any(|(_, workload)| workload.layer == layer)
    {
        return;
    }
    let name = lint.layer(Some(layer));
    if let Some(entry) = lint
        .schedule
        .dram_in
        .iter()
        .find(|entry| stored_layer(lint, entry) == Some(layer))
    {
        let message = || {
            format!(
                "expected related_ifmap to name the stores of {name}, which this program makes, found none"
            )
        };
        // In the spec's dialect the queue may order what no link does.
        let rule = if lint.spec {
            &rules::UNLINKED
        } else {
            &rules::UNWRITTEN
        };
        findings.report_with(
            rule,
            out.at,
            message,
            Some((entry.at, "a store of the layer")),
        );
    } else {
        let message =
            || format!("expected a store of {name}, which this program makes, found none");
        findings.report(&rules::UNSTORED, out.at, message);
    }
}

/// What takes a place in the DRAM queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Access {
    Load(u32),
    Store(u32),
}

/// `tensor_order` numbers the accesses of DRAM.
fn queue(lint: Lint<'_>, findings: &mut Findings) {
    let mut places = crossings(lint, findings);
    places.sort_unstable();
    // The parts of a converted tensor share its place.
    if !lint.packed {
        one_place_each(&places, findings);
        without_gaps(&places, findings);
    }
}

/// Reports transfers that have one place in the queue together.
fn one_place_each(places: &[(u32, Access, At)], findings: &mut Findings) {
    for pair in places.windows(2) {
        if let [a, b] = pair
            && a.0 == b.0
        {
            let name = |access| match access {
                Access::Load(id) => format!("the load of transfer {id}"),
                Access::Store(id) => format!("the store of transfer {id}"),
            };
            let message = || {
                format!(
                    "expected a place in the DRAM queue for each transfer, found {} for both {} and {}",
                    a.0,
                    name(a.1),
                    name(b.1)
                )
            };
            findings.report_with(
                &rules::QUEUE,
                b.2,
                message,
                Some((a.2, "the other transfer")),
            );
        }
    }
}

/// Reports places that no transfer has.
fn without_gaps(places: &[(u32, Access, At)], findings: &mut Findings) {
    let last = places.last().map_or(0, |place| place.0 as usize + 1);
    let mut distinct: Vec<u32> = places.iter().map(|place| place.0).collect();
    distinct.dedup();
    if let Some(place) = places.last()
        && last != distinct.len()
    {
        let message = || {
            format!(
                "expected the DRAM queue numbered from 0 without gaps, found {} places up to {}",
                distinct.len(),
                place.0
            )
        };
        findings.report(&rules::QUEUE_GAP, place.2, message);
    }
}

/// Places of the queue and who has them: loads and stores, and tensors that should have none.
fn crossings(lint: Lint<'_>, findings: &mut Findings) -> Vec<(u32, Access, At)> {
    let total = lint.schedule.dram_in.len() + lint.schedule.dram_out.len();
    let mut places: Vec<(u32, Access, At)> = Vec::with_capacity(total);
    let mut known: HashSet<(u32, Access)> = HashSet::with_capacity(total);
    let mut place = |order: Option<u32>, access: Access, at: At, findings: &mut Findings| {
        match order {
            None => {
                findings.report(&rules::QUEUE, at, || "expected tensor_order of a tensor that crosses the edge to DRAM, found none".to_owned());
            }
            Some(order) => {
                if known.insert((order, access)) {
                    places.push((order, access, at));
                }
            }
        }
    };
    let mut before: (u32, HashSet<u32>) = (u32::MAX, HashSet::new());
    for (core, workload) in lint.schedule.workloads() {
        if before.0 != core.id {
            before = (core.id, HashSet::new());
        }
        // A result stays in the snapshots until the queue has come to it: it is one where it is new.
        let ids = workload.buffer.iter().filter_map(|tensor| tensor.tensor_id);
        let earlier = std::mem::replace(&mut before.1, ids.collect());
        for tensor in &workload.buffer {
            let is_new = tensor.tensor_id.is_none_or(|id| !earlier.contains(&id));
            let dram = tensor
                .sources
                .iter()
                .find(|source| matches!(source.peer, Peer::Dram(_)));
            match (tensor.kind, dram) {
                (TensorKind::Ofmap, _) => {
                    if let Some(piece) = stored(lint, workload, tensor).filter(|_| is_new) {
                        place(
                            tensor.tensor_order,
                            Access::Store(piece.transfer),
                            tensor.at,
                            findings,
                        );
                    }
                }
                (_, Some(source)) => place(
                    tensor.tensor_order,
                    Access::Load(source.transfer),
                    tensor.at,
                    findings,
                ),
                (_, None) if tensor.tensor_order != u32::try_from(total).ok() && !lint.packed => {
                    let found = tensor
                        .tensor_order
                        .map_or_else(|| "none".to_owned(), |order| order.to_string());
                    let message = || {
                        format!(
                            "expected {total}, the number of DRAM transfers, for a tensor that stays on the chip, found {found}"
                        )
                    };
                    findings.report(&rules::QUEUE_GAP, tensor.at, message);
                }
                (_, None) => {}
            }
        }
        for entry in workload
            .weight_buffer
            .iter()
            .flatten()
            .filter(|entry| entry.source == WeightSource::Dram)
        {
            for id in &entry.transfers {
                place(entry.tensor_order, Access::Load(*id), entry.at, findings);
            }
        }
    }
    places
}

/// The piece that an ofmap tensor holds on its way to DRAM.
fn stored<'w>(lint: Lint<'_>, workload: &'w Workload, tensor: &Tensor) -> Option<&'w Ofmap> {
    if tensor.layer != Some(workload.layer) {
        return None;
    }
    let to_dram = |piece: &&Ofmap| {
        piece
            .destinations
            .iter()
            .any(|d| matches!(d.peer, Peer::Dram(_)))
    };
    let as_written = |piece: &Ofmap| piece.bounds == tensor.bounds;
    let from_layer = |piece: &Ofmap| lint.frames.piece(workload, piece) == tensor.bounds;
    let same = |piece: &Ofmap| as_written(piece) || from_layer(piece);
    // A piece that goes to a core as well may have a tensor of its own for that.
    let on_chip = (lint.schedule.dram_in.len() + lint.schedule.dram_out.len()) as u64;
    let elsewhere = workload
        .ofmaps
        .iter()
        .filter(|piece| !to_dram(piece))
        .any(&same);
    if elsewhere
        && tensor
            .tensor_order
            .is_none_or(|order| u64::from(order) >= on_chip)
    {
        None
    } else {
        let stored = || workload.ofmaps.iter().filter(to_dram);
        let found = stored().find(|piece| as_written(piece));
        found.or_else(|| stored().find(|piece| from_layer(piece)))
    }
}
