//! Transfers: one source each, the right readers, and tensors that their sources fill.

use super::index::{Maker, at, peer, read_by};
use super::{Findings, Lint, cover, groups, size};
use crate::rules::memory::IN_SOURCE;
use crate::rules::schedule as rules;
use crate::schedule::{
    At, Bounds, Core, Destination, DramIn, Ofmap, Peer, Source, Tensor, TensorKind, TransferIds,
    Workload,
};
use std::collections::{HashMap, HashSet};

/// What concerns all cores: makers, stores, destinations.
pub(super) fn check(lint: Lint<'_>, findings: &mut Findings) {
    makers(lint, findings);
    for entry in &lint.schedule.dram_out {
        groups::check(lint, entry.transfer, entry.groups, entry.at, findings);
        destinations(
            lint,
            entry.transfer,
            &entry.destinations,
            entry.at,
            entry.weight,
            findings,
        );
        if lint.spec && entry.weight {
            size::weights(lint, &entry.bounds, None, entry.size, entry.at, findings);
        }
    }
    for (core, workload) in lint.schedule.workloads() {
        for piece in &workload.ofmaps {
            destinations(
                lint,
                piece.transfer,
                &piece.destinations,
                piece.at,
                false,
                findings,
            );
            stored(lint, core, workload, piece, findings);
        }
    }
    for stores in lint.index.stores_by_transfer() {
        let mut entries = stores
            .iter()
            .filter_map(|(_, index)| lint.schedule.dram_in.get(*index as usize));
        let Some(entry) = entries.next() else {
            continue;
        };
        groups::check(lint, entry.transfer, entry.groups, entry.at, findings);
        if let Some(second) = entries.next() {
            let message = || {
                format!(
                    "expected one `in` entry of transfer {}, found {}",
                    entry.transfer,
                    stores.len()
                )
            };
            findings.report_with(
                &IN_SOURCE,
                second.at,
                message,
                Some((entry.at, "the first entry")),
            );
        }
        store_and_maker(lint, entry, findings);
    }
}

/// Each transfer has one maker, and somebody who takes it.
fn makers(lint: Lint<'_>, findings: &mut Findings) {
    for makers in lint.index.by_transfer() {
        let Some(&(transfer, first)) = makers.first() else {
            continue;
        };
        if let Some(&(_, second)) = makers.get(1) {
            let (one, two) = (place(lint, first), place(lint, second));
            findings.report_with(
                &rules::TWO_SOURCES,
                two,
                || {
                    format!(
                        "expected one source of transfer {transfer}, found {}",
                        makers.len()
                    )
                },
                Some((one, "the first source")),
            );
        }
        let stored = !lint.index.stores(transfer).is_empty();
        if lint.index.readers(transfer).is_empty() && !stored {
            findings.report(&rules::NO_READER, place(lint, first), || {
                format!("expected a workload that reads transfer {transfer}, found none")
            });
        }
    }
    for &transfer in &lint.schedule.unnamed {
        let maker = lint.index.makers(transfer).first();
        let at = maker.map_or(At(0), |(_, maker)| place(lint, *maker));
        findings.report(&rules::UNNAMED, at, || {
            format!("expected transfer {transfer} in a list of destinations, found it in none: its maker was found by layer and box")
        });
    }
}

/// What an `in` entry says of a transfer, and what the workload says that makes it.
fn store_and_maker(lint: Lint<'_>, entry: &DramIn, findings: &mut Findings) {
    let maker = lint
        .index
        .makers(entry.transfer)
        .iter()
        .find_map(|(_, maker)| match maker {
            Maker::Workload(position, piece) => at(lint.schedule, *position)
                .map(|(core, w)| (core, w, w.ofmaps.get(*piece as usize))),
            Maker::Dram(_) => None,
        });
    let Some((core, workload, Some(piece))) = maker else {
        findings.report(&IN_SOURCE, entry.at, || {
            format!(
                "expected an ofmap that sends transfer {} to DRAM, found none",
                entry.transfer
            )
        });
        return;
    };
    if !piece
        .destinations
        .iter()
        .any(|d| matches!(d.peer, Peer::Dram(_)))
    {
        let message = || {
            format!(
                "expected DRAM among the destinations of transfer {}, found none",
                entry.transfer
            )
        };
        findings.report_with(&IN_SOURCE, entry.at, message, Some((piece.at, "the ofmap")));
    }
    if core != entry.core {
        let (named, made) = (
            lint.schedule.file_core(entry.core),
            lint.schedule.file_core(core),
        );
        findings.report(&IN_SOURCE, entry.at, || {
            format!(
                "expected core {made}, which makes transfer {}, found {named}",
                entry.transfer
            )
        });
    } else if workload.id != entry.workload {
        let message = || {
            format!(
                "expected workload {}, which makes transfer {}, found {}",
                workload.id, entry.transfer, entry.workload
            )
        };
        findings.report(&rules::DESTINATION, entry.at, message);
    }
    if let Some(named) = entry.layer.filter(|named| *named != workload.layer) {
        let (made, named) = (
            lint.schedule.name(workload.layer),
            lint.schedule.name(named),
        );
        let message = || {
            format!(
                "expected the layer {made}, which makes transfer {}, found {named}",
                entry.transfer
            )
        };
        findings.report(&rules::SOURCE_LAYER, entry.at, message);
    }
    if entry.bounds.shape() != piece.bounds.shape() {
        let message = || {
            format!(
                "expected a box of the shape {:?}, that of the ofmap, found {:?}",
                piece.bounds.shape(),
                entry.bounds.shape()
            )
        };
        findings.report_with(&IN_SOURCE, entry.at, message, Some((piece.at, "the ofmap")));
    } else if lint.spec && !workload.bounds.contains(&entry.bounds) {
        findings.report(&IN_SOURCE, entry.at, || {
            format!(
                "expected a box inside that of the workload, {}, found {}",
                workload.bounds, entry.bounds
            )
        });
    }
}

fn place(lint: Lint<'_>, maker: Maker) -> At {
    match maker {
        Maker::Dram(index) => lint
            .schedule
            .dram_out
            .get(index as usize)
            .map_or(At(0), |entry| entry.at),
        Maker::Workload(position, piece) => at(lint.schedule, position)
            .and_then(|(_, w)| w.ofmaps.get(piece as usize))
            .map_or(At(0), |p| p.at),
    }
}

/// Destinations and readers name each other.
fn destinations(
    lint: Lint<'_>,
    transfer: u32,
    destinations: &[Destination],
    piece: At,
    weight: bool,
    findings: &mut Findings,
) {
    let schedule = lint.schedule;
    let reader = |core: u32, workload: u32| {
        let readers = lint.index.readers(transfer).iter();
        readers
            .filter_map(|(_, position)| at(schedule, *position))
            .any(|(id, w)| id == core && w.id == workload)
    };
    for (index, destination) in destinations.iter().enumerate() {
        if destinations
            .get(..index)
            .is_some_and(|before| before.contains(destination))
        {
            findings.report(&rules::DESTINATION, piece, || {
                format!("expected each destination of transfer {transfer} once, found one twice")
            });
        }
        let (Peer::Core(core), Some(workload)) = (destination.peer, destination.workload) else {
            continue;
        };
        let file_core = schedule.file_core(core);
        let Some(found) = schedule
            .core(core)
            .and_then(|c| c.workloads.get(c.position(workload)?))
        else {
            findings.report(&rules::NO_DESTINATION, piece, || {
                format!("expected workload {workload} on core {file_core}, found no such workload")
            });
            continue;
        };
        if let Some(named) = destination
            .layer
            .filter(|named| lint.spec && *named != found.layer)
        {
            let message = || {
                format!(
                    "expected the layer {} of workload {workload}, found {}",
                    schedule.name(found.layer),
                    schedule.name(named)
                )
            };
            findings.report_with(
                &rules::DESTINATION,
                piece,
                message,
                Some((found.at, "the destination")),
            );
        }
        if !reader(core, workload) {
            let message = || {
                format!(
                    "expected workload {workload} of core {file_core} to read transfer {transfer}, found it does not"
                )
            };
            findings.report_with(
                &rules::DESTINATION,
                piece,
                message,
                Some((found.at, "the destination")),
            );
        }
    }
    readers_are_named(lint, transfer, destinations, piece, weight, findings);
}

/// Each reader of a transfer is among its destinations.
fn readers_are_named(
    lint: Lint<'_>,
    transfer: u32,
    destinations: &[Destination],
    piece: At,
    weight: bool,
    findings: &mut Findings,
) {
    let schedule = lint.schedule;
    // Weights that stay are used by later workloads, too: the first of each core counts.
    let mut first: HashMap<u32, u32> = HashMap::new();
    for (core, workload) in lint
        .index
        .readers(transfer)
        .iter()
        .filter_map(|(_, position)| at(schedule, *position))
    {
        let id = first.entry(core).or_insert(workload.id);
        *id = workload.id.min(*id);
    }
    for &(_, position) in lint.index.readers(transfer) {
        let Some((core, workload)) = at(schedule, position) else {
            continue;
        };
        let later = weight && first.get(&core) != Some(&workload.id);
        let named = destinations
            .iter()
            .any(|d| d.peer == Peer::Core(core) && (later || d.workload == Some(workload.id)));
        if !named {
            let message = || {
                format!(
                    "expected {} among the destinations of transfer {transfer}, found it is not",
                    lint.label(core, workload)
                )
            };
            findings.report_with(
                &rules::DESTINATION,
                piece,
                message,
                Some((workload.at, "the reader")),
            );
        }
    }
}

/// A piece that goes to DRAM has an `in` entry.
fn stored(
    lint: Lint<'_>,
    core: &Core,
    workload: &Workload,
    piece: &Ofmap,
    findings: &mut Findings,
) {
    let to_dram = piece
        .destinations
        .iter()
        .any(|d| matches!(d.peer, Peer::Dram(_)));
    if to_dram && lint.index.stores(piece.transfer).is_empty() {
        let message = || {
            format!(
                "expected an `in` entry of transfer {}, which {} sends to DRAM, found none",
                piece.transfer,
                lint.label(core.id, workload)
            )
        };
        findings.report(&IN_SOURCE, piece.at, message);
    }
}

/// What concerns one workload.
pub(super) fn check_workload(
    lint: Lint<'_>,
    core: &Core,
    workload: &Workload,
    findings: &mut Findings,
) {
    for transfer in read_by(workload) {
        if lint.index.makers(transfer).is_empty() {
            let message = || {
                format!(
                    "expected a source of transfer {transfer}, which {} reads, found none",
                    lint.label(core.id, workload)
                )
            };
            findings.report(&rules::NO_SOURCE, workload.at, message);
        }
    }
    for piece in &workload.ofmaps {
        let made = lint.frames.piece(workload, piece);
        if !workload.bounds.contains(&made) {
            let message = || {
                format!(
                    "expected a piece inside the workload's box, {}, found {made}",
                    workload.bounds
                )
            };
            findings.report(&rules::OFMAP_BOX, piece.at, message);
        }
    }
    for tensor in &workload.buffer {
        sources(lint, tensor, findings);
    }
    if lint.spec {
        results(lint, core, workload, findings);
    }
}

/// The dimensions along which windows move.
const ROWS_AND_COLUMNS: [usize; 2] = [2, 3];

/// What the workload makes has its space, and all of it goes somewhere.
fn results(lint: Lint<'_>, core: &Core, workload: &Workload, findings: &mut Findings) {
    for piece in &workload.ofmaps {
        let stays = piece
            .destinations
            .iter()
            .any(|d| d.peer == Peer::Core(core.id));
        let leaves = piece
            .destinations
            .iter()
            .any(|d| d.peer != Peer::Core(core.id));
        let held = workload
            .buffer
            .iter()
            .any(|tensor| tensor.transfers.contains(&piece.transfer));
        let staged = workload.buffer.iter().any(|t| {
            t.kind == TensorKind::Ofmap && t.layer.is_none_or(|layer| layer == workload.layer)
        });
        if (stays && !held) || (leaves && !staged && !held) {
            let message = || {
                format!(
                    "expected a tensor for transfer {} in the snapshot of workload {}, which makes it, found none",
                    piece.transfer, workload.id
                )
            };
            findings.report(&rules::NO_SPACE, piece.at, message);
        }
    }
    let pieces = workload.ofmaps.iter();
    let made: Vec<Bounds> = pieces.map(|o| lint.frames.piece(workload, o)).collect();
    let mut whole = workload.bounds;
    // Readers cut off rows and columns, and those whose stride is longer than their window skip the last: a schedule alone says neither.
    for d in ROWS_AND_COLUMNS {
        let (starts, ends) = (
            made.iter().map(|part| part.lower[d]),
            made.iter().map(|part| part.upper[d]),
        );
        if let (Some(start), Some(end)) = (starts.min(), ends.max()) {
            whole.lower[d] = whole.lower[d].max(start);
            whole.upper[d] = whole.upper[d].min(end);
        }
    }
    if let Some(hole) = cover::hole(&whole, &made) {
        findings.report(&rules::UNUSED, workload.at, || {
            format!(
                "expected pieces that make up {}, found none for {hole}",
                workload.bounds
            )
        });
    }
}

/// The sources of a tensor: where they come from, and that they fill it.
fn sources(lint: Lint<'_>, tensor: &Tensor, findings: &mut Findings) {
    for source in &tensor.sources {
        one_source(lint, tensor, source, findings);
    }
    if tensor.sources.is_empty() {
        if lint.spec
            && tensor.kind != TensorKind::Ofmap
            && !(lint.packed && tensor.transfers.is_empty())
        {
            let message = || {
                format!(
                    "expected the sources of the transfers {:?}, found none",
                    &tensor.transfers[..]
                )
            };
            findings.report(&rules::SOURCE_IDS, tensor.at, message);
        }
        return;
    }
    let named: TransferIds = tensor.sources.iter().map(|s| s.transfer).collect();
    if named.iter().any(|id| !tensor.transfers.contains(id))
        || tensor.transfers.iter().any(|id| !named.contains(id))
    {
        let message = || {
            format!(
                "expected the transfers of the sources, {:?}, found {:?}",
                &named[..],
                &tensor.transfers[..]
            )
        };
        findings.report(&rules::SOURCE_IDS, tensor.at, message);
    }
    let mut parts: Vec<Bounds> = Vec::new();
    for source in &tensor.sources {
        if tensor.bounds.contains(&source.bounds) {
            parts.push(source.bounds);
        } else if lint.spec {
            let message = || {
                format!(
                    "expected a source inside its tensor, {}, found {}",
                    tensor.bounds, source.bounds
                )
            };
            findings.report(&rules::SOURCE_OUTSIDE, tensor.at, message);
            return;
        } else {
            parts.extend(tensor.bounds.intersection(&source.bounds));
        }
    }
    if lint.spec && cover::overlap(&parts).is_some() {
        let message =
            || "expected sources that only touch, found two that fill the same elements".to_owned();
        findings.report(&rules::SOURCES_OVERLAP, tensor.at, message);
    }
    if let Some(hole) = cover::hole(&tensor.bounds, &parts) {
        let message = || {
            format!(
                "expected the sources to fill {}, found nothing for {hole}",
                tensor.bounds
            )
        };
        findings.report(&rules::PARTLY, tensor.at, message);
    }
}

/// Cores that sources name, each with the core that makes the transfer instead.
fn misnamed(lint: Lint<'_>) -> HashSet<[u32; 2]> {
    let tensors = lint.schedule.workloads().flat_map(|(_, w)| &w.buffer);
    let pairs = tensors
        .flat_map(|tensor| &tensor.sources)
        .filter_map(|source| {
            let &(_, maker) = lint.index.makers(source.transfer).first()?;
            match (source.peer, peer(lint.schedule, maker)) {
                (Peer::Core(named), Peer::Core(made)) if named != made => Some([named, made]),
                _ => None,
            }
        });
    pairs.collect()
}

fn one_source(lint: Lint<'_>, tensor: &Tensor, source: &Source, findings: &mut Findings) {
    let schedule = lint.schedule;
    let Some(&(_, maker)) = lint.index.makers(source.transfer).first() else {
        findings.report(&rules::NO_SOURCE, tensor.at, || {
            format!(
                "expected a source of transfer {}, found none",
                source.transfer
            )
        });
        return;
    };
    if !names_maker(lint, tensor, source, maker, findings) {
        return;
    }
    let (bounds, size, layer) = match maker {
        Maker::Dram(index) => schedule
            .dram_out
            .get(index as usize)
            .map(|entry| (entry.bounds, Some(entry.size), None)),
        Maker::Workload(position, piece) => at(schedule, position)
            .and_then(|(_, w)| Some((w, w.ofmaps.get(piece as usize)?)))
            .map(|(w, p)| (p.bounds, p.size, Some(w.layer))),
    }
    .unwrap_or_default();
    if let (Some(made), Some(named)) = (layer, source.layer)
        && made != named
    {
        let message = || {
            format!(
                "expected the layer {}, which makes transfer {}, found {}",
                schedule.name(made),
                source.transfer,
                schedule.name(named)
            )
        };
        findings.report(&rules::SOURCE_LAYER, tensor.at, message);
    }
    if let (Some(sent), Some(named)) = (size, source.size)
        && sent != named
    {
        let message = || {
            format!(
                "expected {sent} bytes, as transfer {} sends, found {named}",
                source.transfer
            )
        };
        findings.report_with(
            &rules::SIZE_DIFFERS,
            tensor.at,
            message,
            Some((place(lint, maker), "where it is made")),
        );
    }
    if lint.spec && bounds.shape() != source.bounds.shape() {
        let message = || {
            format!(
                "expected the shape of what is sent, {:?}, found {:?}",
                bounds.shape(),
                source.bounds.shape()
            )
        };
        findings.report_with(
            &rules::SOURCE_OUTSIDE,
            tensor.at,
            message,
            Some((place(lint, maker), "where it is made")),
        );
    } else if lint.spec {
        loaded(lint, tensor, source, maker, findings);
    }
}

/// Whether a source names who makes its transfer, or whom the file names in its place throughout.
fn names_maker(
    lint: Lint<'_>,
    tensor: &Tensor,
    source: &Source,
    maker: Maker,
    findings: &mut Findings,
) -> bool {
    let schedule = lint.schedule;
    let from = peer(schedule, maker);
    let same = match (from, source.peer) {
        (Peer::Dram(_), Peer::Dram(_)) => true,
        (from, named) => from == named,
    };
    if same {
        return true;
    }
    let name = |peer| match peer {
        Peer::Dram(_) => "DRAM".to_owned(),
        Peer::Core(core) => format!("core {}", schedule.file_core(core)),
    };
    let message = || {
        format!(
            "expected {} as the source of transfer {}, found {}",
            name(from),
            source.transfer,
            name(source.peer)
        )
    };
    let is_exchanged = match (from, source.peer) {
        (Peer::Core(made), Peer::Core(named)) if lint.spec => {
            let misnamed = lint.misnamed.get_or_init(|| misnamed(lint));
            misnamed.contains(&[made, named])
        }
        _ => false,
    };
    let rule = if is_exchanged {
        &rules::SOURCES_EXCHANGED
    } else {
        &rules::SOURCE
    };
    let made = Some((place(lint, maker), "where it is made"));
    findings.report_with(rule, tensor.at, message, made);
    is_exchanged
}

/// What is loaded is what the tensor says: weights or a feature map, and of which layer.
fn loaded(lint: Lint<'_>, tensor: &Tensor, source: &Source, maker: Maker, findings: &mut Findings) {
    let Maker::Dram(index) = maker else { return };
    let Some(entry) = lint.schedule.dram_out.get(index as usize) else {
        return;
    };
    // Converted activations may be weights.
    if entry.weight != (tensor.kind == TensorKind::Weight) && !lint.packed {
        let (sent, kept) = if entry.weight {
            ("weights", "ifmap")
        } else {
            ("a feature map", "weights")
        };
        let message = || {
            format!(
                "expected the type of transfer {}, {sent}, found {kept}",
                source.transfer
            )
        };
        findings.report_with(
            &rules::DRAM_TYPE,
            tensor.at,
            message,
            Some((entry.at, "the DRAM tensor")),
        );
    }
    let stored = entry
        .related
        .iter()
        .flatten()
        .flat_map(|id| lint.index.makers(*id))
        .find_map(|(_, maker)| match maker {
            Maker::Workload(position, _) => {
                at(lint.schedule, *position).map(|(_, workload)| workload.layer)
            }
            Maker::Dram(_) => None,
        });
    if let (Some(made), Some(named)) = (stored, source.layer)
        && made != named
    {
        let (made, named) = (lint.schedule.name(made), lint.schedule.name(named));
        let message = || {
            format!(
                "expected the layer {made}, whose stores transfer {} reads, found {named}",
                source.transfer
            )
        };
        findings.report(&rules::SOURCE_LAYER, tensor.at, message);
    }
}
