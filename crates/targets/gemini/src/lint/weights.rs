//! Weights: where they are, and what they fit.

use super::index::{self, Maker};
use super::{Findings, Lint};
use crate::bytes;
use crate::names::Name;
use crate::rules::memory as rules;
use crate::rules::schedule as schedule_rules;
use crate::schedule::{
    At, LayerType, TensorKind, TransferIds, WeightSource, WeightTensor, Workload,
};

/// Bytes of each bank beyond which an address is a mistake; the capacity is not published, the largest end seen is 18816.
const LIKELY_BANK_BYTES: u64 = 65536;
/// Bytes of a row of a bank.
const BANK_ALIGNMENT: u64 = 32;
/// Parts of its size that an entry from L2 may have.
const PARTS: [u64; 4] = [1, 2, 4, 8];

pub(super) fn check(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    if !lint.spec {
        channels(workload, findings);
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
    for entry in entries {
        let first = u64::from(entry.address);
        let last = first.saturating_add(entry.size);
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
        one(lint, entry, findings);
    }
}

/// In the ancestors weights say their output channels: those of the workload.
fn channels(workload: &Workload, findings: &mut Findings) {
    let Some(weight) = &workload.weight else {
        return;
    };
    let is_matrix = matches!(workload.layer_type, LayerType::Conv2d | LayerType::Fc);
    if !is_matrix || weight.from_ofmap || weight.transfers.is_empty() {
        return;
    }
    let [found, want] =
        [&weight.bounds, &workload.bounds].map(|bounds| [bounds.lower[1], bounds.upper[1]]);
    if found != want {
        findings.report(&schedule_rules::WEIGHT_BOX, weight.at, || {
            format!(
                "expected output channels {} to {}, those of the workload, found {} to {}",
                want[0], want[1], found[0], found[1]
            )
        });
    }
}

/// The weights that the workload names are weights and fit its input.
fn used(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    let Some(weight) = &workload.weight else {
        return;
    };
    if weight.from_ofmap {
        return;
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
fn one(lint: Lint<'_>, entry: &WeightTensor, findings: &mut Findings) {
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
    let want = bytes::weights_per_bank(&whole, entry.bitwidth.unwrap_or(8));
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
