//! Weights: where they are, and what they fit.

use super::index::{self, Maker};
use super::{Findings, Lint};
use crate::bytes;
use crate::names::Name;
use crate::rules::memory as rules;
use crate::rules::schedule as schedule_rules;
use crate::schedule::{
    At, Core, LayerType, TensorKind, TransferIds, WeightSource, WeightTensor, Workload,
};
use std::collections::HashMap;

/// Bytes of each bank beyond which an address is a mistake; the capacity is not published, the largest end seen is 18816.
const LIKELY_BANK_BYTES: u64 = 65536;
/// Bytes of a row of a bank.
const BANK_ALIGNMENT: u64 = 32;
/// Parts of its size that an entry from L2 may have.
const PARTS: [u64; 4] = [1, 2, 4, 8];

pub(super) fn check(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    if !lint.spec {
        return;
    }
    used(lint, workload, findings);
    for tensor in workload
        .buffer
        .iter()
        .filter(|tensor| tensor.kind == TensorKind::Weight)
    {
        layer(lint, tensor.layer, &tensor.transfers, tensor.at, findings);
    }
    let Some(entries) = &workload.weight_buffer else {
        return;
    };
    let mut spans: Vec<(u64, u64, &WeightTensor)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let first = u64::from(entry.address);
        let last = first.saturating_add(entry.size);
        spans.push((first, last, entry));
        if last > LIKELY_BANK_BYTES {
            findings.report(&rules::WL_BOUNDS, entry.at, || {
                format!("expected an end of at most {LIKELY_BANK_BYTES}, found {last}")
            });
        }
        if first % BANK_ALIGNMENT != 0 {
            let message = || {
                format!("expected an address that is a multiple of {BANK_ALIGNMENT}, found {first}")
            };
            findings.report(&rules::WL_ALIGN, entry.at, message);
        }
        layer(lint, entry.layer, &entry.transfers, entry.at, findings);
        one(lint, workload, entry, findings);
    }
    spans.sort_unstable_by_key(|(first, last, entry)| (*first, *last, entry.at));
    for pair in spans.windows(2) {
        if let [a, b] = pair
            && b.0 < a.1
            && b.0 < b.1
        {
            let message = || {
                format!(
                    "expected tensors apart, found bytes [{}, {}) and [{}, {})",
                    a.0, a.1, b.0, b.1
                )
            };
            findings.report_with(
                &rules::WL_OVERLAP,
                b.2.at,
                message,
                Some((a.2.at, "the other tensor")),
            );
        }
    }
}

/// No weights from DRAM are gone and come back.
pub(super) fn check_core(core: &Core, findings: &mut Findings) {
    let mut last: HashMap<&[u32], (usize, At)> = HashMap::new();
    // Workloads that say nothing of the weight buffer leave it as it is.
    let snapshots: Vec<_> = core
        .workloads
        .iter()
        .filter_map(|workload| Some((workload, workload.weight_buffer.as_ref()?)))
        .collect();
    for (index, (workload, entries)) in snapshots.iter().enumerate() {
        for entry in entries
            .iter()
            .filter(|entry| entry.source == WeightSource::Dram && !entry.transfers.is_empty())
        {
            let Some((seen, at)) = last.insert(&entry.transfers, (index, entry.at)) else {
                continue;
            };
            if seen + 1 < index {
                let message = || {
                    format!(
                        "expected transfer {} in every snapshot of the weight buffer up to workload {}, found it missing from workload {} on",
                        entry.transfers[0],
                        workload.id,
                        snapshots.get(seen + 1).map_or(0, |(w, _)| w.id)
                    )
                };
                findings.report_with(
                    &rules::WL_BACK,
                    entry.at,
                    message,
                    Some((at, "where it was last")),
                );
            }
        }
    }
}

/// The weights that the workload uses are there and have its channels.
fn used(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    let Some(weight) = &workload.weight else {
        return;
    };
    let in_bank = |id: &u32| {
        workload
            .weight_buffer
            .iter()
            .flatten()
            .any(|entry| entry.transfers.contains(id))
    };
    let in_l2 = |id: &u32| {
        workload
            .buffer
            .iter()
            .any(|tensor| tensor.transfers.contains(id))
    };
    if let Some(id) = weight
        .transfers
        .iter()
        .find(|id| !in_bank(id) && !in_l2(id))
    {
        let message = || {
            format!(
                "expected transfer {id} in the weight buffer or in L2 of workload {}, which uses it, found it in neither",
                workload.id
            )
        };
        findings.report(&schedule_rules::WEIGHT_MISSING, weight.at, message);
    }
    if weight.from_ofmap {
        return;
    }
    // A file that shows weight buffers shows what a workload computes with.
    if workload.layer_type.unit() == LayerType::Pe && workload.weight_buffer.is_some() {
        for id in weight.transfers.iter().filter(|id| !in_bank(id)) {
            let message = || {
                format!(
                    "expected transfer {id} in the weight buffer of workload {}, which uses it, found none",
                    workload.id
                )
            };
            findings.report(&rules::WL_ABSENT, weight.at, message);
        }
    }
    for id in &weight.transfers {
        let entries = lint
            .index
            .makers(*id)
            .iter()
            .filter_map(|(_, maker)| match maker {
                Maker::Dram(index) => lint.schedule.dram_out.get(*index as usize),
                Maker::Workload(..) => None,
            });
        for entry in entries.filter(|entry| !entry.weight) {
            let message = || format!("expected weights as transfer {id}, found a feature map");
            findings.report_with(
                &schedule_rules::DRAM_TYPE,
                weight.at,
                message,
                Some((entry.at, "the DRAM tensor")),
            );
        }
    }
    let (channels, made) = (
        (weight.bounds.lower[1], weight.bounds.upper[1]),
        (workload.bounds.lower[1], workload.bounds.upper[1]),
    );
    if channels != made {
        let message = || {
            format!(
                "expected output channels {} to {}, those of the workload, found {} to {}",
                made.0, made.1, channels.0, channels.1
            )
        };
        findings.report(&schedule_rules::WEIGHT_BOX, weight.at, message);
    }
    let inputs = weight.bounds.shape()[2];
    if let Some(ifmap) = workload.ifmaps.first()
        && inputs > 0
        && ifmap.bounds.shape()[1] % inputs != 0
        // Without a network, converted weights have all that belongs to an output channel as input channels.
        && !(lint.packed && inputs.is_multiple_of(ifmap.bounds.shape()[1].max(1)))
    {
        let message = || {
            format!(
                "expected {} input channels, those of the ifmap, or an even part of them, found {inputs}",
                ifmap.bounds.shape()[1]
            )
        };
        findings.report(&schedule_rules::WEIGHT_BOX, weight.at, message);
    }
    for tensor in workload
        .buffer
        .iter()
        .filter(|t| t.kind == TensorKind::Weight)
    {
        let same = tensor
            .transfers
            .iter()
            .any(|id| weight.transfers.contains(id));
        if same && !tensor.bounds.contains(&weight.bounds) {
            let message = || {
                format!(
                    "expected the tensor in L2 to hold {}, found {}",
                    weight.bounds, tensor.bounds
                )
            };
            findings.report_with(
                &schedule_rules::WEIGHT_BOX,
                weight.at,
                message,
                Some((tensor.at, "the tensor")),
            );
        }
    }
}

/// Weights name the layer of a workload that uses them.
fn layer(
    lint: Lint<'_>,
    named: Option<Name>,
    transfers: &TransferIds,
    at: At,
    findings: &mut Findings,
) {
    let mut users = transfers
        .iter()
        .flat_map(|id| lint.index.readers(*id))
        .filter_map(|(_, position)| index::at(lint.schedule, *position));
    let Some(named) = named else { return };
    let Some((_, first)) = users.next() else {
        return;
    };
    if first.layer != named && !users.any(|(_, workload)| workload.layer == named) {
        let (user, named) = (lint.schedule.name(first.layer), lint.schedule.name(named));
        findings.report(&rules::TENSOR_LAYER, at, || {
            format!("expected the layer that uses the weights, {user}, found {named}")
        });
    }
}

/// An entry of the weight buffer: its source and its size.
fn one(lint: Lint<'_>, workload: &Workload, entry: &WeightTensor, findings: &mut Findings) {
    let mut whole = entry.bounds;
    for &id in &entry.transfers {
        let Some(&(_, maker)) = lint.index.makers(id).first() else {
            let message = || format!("expected a source of transfer {id}, found none");
            findings.report(&schedule_rules::NO_SOURCE, entry.at, message);
            continue;
        };
        if let Maker::Dram(index) = maker
            && let Some(out) = lint.schedule.dram_out.get(index as usize)
        {
            whole = whole.or(Some(out.bounds));
            if entry.source == WeightSource::Dram
                && entry.bounds.is_some_and(|bounds| bounds != out.bounds)
            {
                let message = || {
                    format!(
                        "expected {}, the box of transfer {id}, found {}",
                        out.bounds,
                        entry.bounds.unwrap_or_default()
                    )
                };
                findings.report_with(
                    &schedule_rules::SOURCE_OUTSIDE,
                    entry.at,
                    message,
                    Some((out.at, "where it comes from")),
                );
            }
        } else if entry.source == WeightSource::Dram {
            let message =
                || format!("expected transfer {id} from DRAM, found it made by a workload");
            findings.report(&schedule_rules::SOURCE, entry.at, message);
        }
        if entry.source == WeightSource::L2
            && !workload
                .buffer
                .iter()
                .any(|tensor| tensor.transfers.contains(&id))
        {
            let message = || {
                format!(
                    "expected transfer {id} in the L2 snapshot of workload {}, found no tensor with it",
                    workload.id
                )
            };
            findings.report(&rules::WL_SOURCE, entry.at, message);
        }
    }
    if entry.source == WeightSource::L2 && entry.tensor_order.is_some() {
        let message = || {
            format!(
                "expected tensor_order null of weights from L2, found {}",
                entry.tensor_order.unwrap_or(0)
            )
        };
        findings.report(&rules::QUEUE_GAP, entry.at, message);
    }
    let Some(whole) = whole else { return };
    let want = bytes::weights_per_bank(&whole);
    let parts: &[u64] = if entry.source == WeightSource::Dram {
        &PARTS[..1]
    } else {
        &PARTS
    };
    if !parts
        .iter()
        .any(|part| want.is_multiple_of(*part) && want / part == entry.size)
    {
        let or_part = if parts.len() > 1 {
            " or a half, a quarter or an eighth of it"
        } else {
            ""
        };
        let message = || {
            format!(
                "expected {want} bytes in each bank for weights of shape {:?}{or_part}, found {}",
                whole.shape(),
                entry.size
            )
        };
        findings.report(&rules::WL_SIZE, entry.at, message);
    }
}
