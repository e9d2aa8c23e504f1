//! Snapshots of the L2 buffer: what they hold, where, and since when.

use super::index::Maker;
use super::{Findings, Lint};
use crate::rules::memory as rules;
use crate::rules::schedule as schedule_rules;
use crate::schedule::{At, Bounds, Core, Dialect, Tensor, TensorKind, Workload};
use std::collections::HashMap;

/// Bytes of the unit in which instructions address L2.
const ADDRESS_ALIGNMENT: u64 = 8;

pub(super) fn check(
    lint: Lint<'_>,
    workload: &Workload,
    before: Option<&Workload>,
    findings: &mut Findings,
) {
    if lint.spec {
        regions(lint, workload, findings);
        residents(lint, workload, before, findings);
        current(workload, findings);
        for tensor in workload
            .buffer
            .iter()
            .filter(|tensor| tensor.kind == TensorKind::Ofmap)
        {
            staged(lint, workload, tensor, findings);
        }
    }
    if lint.schedule.dialect.has_addresses() {
        addresses(lint, workload, findings);
    }
    inputs(lint, workload, findings);
}

/// No tensor is gone and comes back.
pub(super) fn check_core(core: &Core, findings: &mut Findings) {
    let mut last: HashMap<u32, (usize, &Tensor)> = HashMap::new();
    for (index, workload) in core.workloads.iter().enumerate() {
        for tensor in workload
            .buffer
            .iter()
            .filter(|tensor| tensor.kind != TensorKind::Ofmap)
        {
            let Some(id) = tensor.tensor_id else { continue };
            let Some((seen, old)) = last.insert(id, (index, tensor)) else {
                continue;
            };
            if seen + 1 < index {
                let message = || {
                    format!(
                        "expected tensor {id} in every snapshot up to workload {}, found it missing from workload {} on",
                        workload.id,
                        core.workloads.get(seen + 1).map_or(0, |w| w.id)
                    )
                };
                findings.report_with(
                    &rules::BACK,
                    tensor.at,
                    message,
                    Some((old.at, "where it was last")),
                );
            }
        }
    }
}

/// Ring regions are whole, inside the buffer, and apart.
fn regions(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    let Some(ring) = &workload.ring else {
        findings.report(&rules::RING, workload.at, || {
            "expected ring_buffer_info, found none".to_owned()
        });
        return;
    };
    if ring.is_empty() {
        findings.report(&rules::RING, workload.at, || {
            "expected at least one ring region, found none".to_owned()
        });
    }
    let end = lint.schedule.buffer_size.unwrap_or(u64::MAX);
    for [first, last] in ring
        .iter()
        .filter(|[first, last]| first >= last || *last > end)
    {
        findings.report(&rules::RING, workload.at, || {
            format!(
                "expected a region inside the {end} bytes of the buffer, found [{first}, {last})"
            )
        });
    }
    let mut sorted: Vec<[u64; 2]> = ring.to_vec();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        if let [a, b] = pair
            && a[1] > b[0]
        {
            let message = || {
                format!(
                    "expected regions that do not overlap, found [{}, {}) and [{}, {})",
                    a[0], a[1], b[0], b[1]
                )
            };
            findings.report(&rules::RING, workload.at, message);
        }
    }
}

/// Tensors lie in their regions and apart from each other.
fn addresses(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    let end = lint.schedule.buffer_size.unwrap_or(u64::MAX);
    let whole = [[0, end]];
    let ring = workload
        .ring
        .as_deref()
        .filter(|ring| !ring.is_empty())
        .unwrap_or(&whole);
    // Bytes as [first, behind the last), a tensor that wraps as two.
    let mut spans: Vec<(u64, u64, usize)> = Vec::with_capacity(workload.buffer.len());
    for (index, tensor) in workload.buffer.iter().enumerate() {
        let Some(first) = tensor.address.map(u64::from) else {
            continue;
        };
        if lint.spec && !lint.packed && first % ADDRESS_ALIGNMENT != 0 {
            let message = || {
                format!(
                    "expected an address that is a multiple of {ADDRESS_ALIGNMENT}, found {first}"
                )
            };
            findings.report(&rules::L2_ALIGN, tensor.at, message);
        }
        let last = first.saturating_add(tensor.size);
        let Some(&[low, high]) = ring
            .iter()
            .find(|region| region[0] <= first && first < region[1])
        else {
            let message =
                || format!("expected an address inside the ring regions {ring:?}, found {first}");
            findings.report(&rules::L2_BOUNDS, tensor.at, message);
            continue;
        };
        if tensor.size > high - low {
            let message = || {
                format!(
                    "expected at most {} bytes, those of the region [{low}, {high}), found {}",
                    high - low,
                    tensor.size
                )
            };
            findings.report(&rules::RING_WRAP, tensor.at, message);
        } else if last > high {
            spans.push((first, high, index));
            spans.push((low, low + (last - high), index));
        } else {
            spans.push((first, last, index));
        }
        if high > end {
            findings.report(&rules::L2_BOUNDS, tensor.at, || {
                format!("expected an end of at most {end}, the size of the buffer, found {last}")
            });
        }
    }
    spans.retain(|(first, last, _)| first < last);
    spans.sort_unstable();
    let rule = if lint.schedule.dialect == Dialect::IrTilingAddress {
        &rules::BLOCK_OVERLAP
    } else {
        &rules::L2_OVERLAP
    };
    let mut furthest: Option<(u64, u64, usize)> = None;
    for span in spans {
        if let Some(other) = furthest
            && span.0 < other.1
            && let (Some(a), Some(b)) = (workload.buffer.get(other.2), workload.buffer.get(span.2))
        {
            let message = || {
                format!(
                    "expected tensors apart, found bytes [{}, {}) and [{}, {})",
                    other.0, other.1, span.0, span.1
                )
            };
            findings.report_with(rule, b.at, message, Some((a.at, "the other tensor")));
        }
        if furthest.is_none_or(|f| f.1 < span.1) {
            furthest = Some(span);
        }
    }
}

/// Marks and changes from one snapshot to the next.
fn residents(
    lint: Lint<'_>,
    workload: &Workload,
    before: Option<&Workload>,
    findings: &mut Findings,
) {
    let mut known: HashMap<u32, &Tensor> = HashMap::new();
    for tensor in before.into_iter().flat_map(|before| &before.buffer) {
        if let Some(id) = tensor.tensor_id {
            known.insert(id, tensor);
        }
    }
    let mut seen: HashMap<u32, At> = HashMap::with_capacity(workload.buffer.len());
    for tensor in &workload.buffer {
        let Some(id) = tensor.tensor_id else { continue };
        if let Some(first) = seen.insert(id, tensor.at) {
            let message = || format!("expected one tensor {id} in the snapshot, found a second");
            findings.report_with(
                &rules::TENSOR_TWICE,
                tensor.at,
                message,
                Some((first, "the first")),
            );
        }
        let resident = known.get(&id);
        if let Some(new) = tensor.newly_added
            && new == resident.is_some()
        {
            let (what, why) = if new {
                ("false", "has")
            } else {
                ("true", "does not have")
            };
            let message = || {
                format!(
                    "expected newly_added {what} of tensor {id}, which the snapshot before {why}, found {new}"
                )
            };
            findings.report(&rules::NEWLY_ADDED, tensor.at, message);
        }
        if tensor.newly_added.is_none() && tensor.kind != TensorKind::Ofmap {
            findings.report(&rules::NEWLY_ADDED, tensor.at, || {
                format!("expected newly_added of tensor {id}, found none")
            });
        }
        if let Some(old) = resident {
            let mut changed = |what: &str, old_value: String, value: String| {
                let message = || {
                    format!("expected tensor {id} to keep its {what} {old_value}, found {value}")
                };
                findings.report_with(
                    &rules::MOVED,
                    tensor.at,
                    message,
                    Some((old.at, "in the snapshot before")),
                );
            };
            if old.address != tensor.address {
                changed(
                    "address",
                    format!("{}", old.address.unwrap_or(0)),
                    format!("{}", tensor.address.unwrap_or(0)),
                );
            } else if old.size != tensor.size {
                changed("size", old.size.to_string(), tensor.size.to_string());
            } else if old.transfers != tensor.transfers
                || old.bounds != tensor.bounds
                || old.kind != tensor.kind
            {
                changed(
                    "contents",
                    format!("{} {:?}", old.bounds, &old.transfers[..]),
                    format!("{} {:?}", tensor.bounds, &tensor.transfers[..]),
                );
            }
        }
        late(lint, workload, tensor, findings);
    }
}

/// A result on its way to DRAM is one of the workload of the snapshot, or all of it.
fn staged(lint: Lint<'_>, workload: &Workload, tensor: &Tensor, findings: &mut Findings) {
    if let Some(named) = tensor.layer.filter(|layer| *layer != workload.layer) {
        let (named, own) = (
            lint.schedule.name(named),
            lint.schedule.name(workload.layer),
        );
        findings.report(&rules::TENSOR_LAYER, tensor.at, || {
            format!("expected the layer that makes the ofmap, {own}, found {named}")
        });
    }
    let same = |bounds: &Bounds| {
        *bounds == tensor.bounds || bounds.moved_by(workload.bounds.lower) == tensor.bounds
    };
    let piece = workload.ofmaps.iter().find(|piece| same(&piece.bounds));
    if piece.is_none() && tensor.bounds.shape() != workload.bounds.shape() {
        let message = || {
            format!(
                "expected the box of a piece of the workload's ofmap, found {}",
                tensor.bounds
            )
        };
        findings.report_with(
            &rules::STAGED,
            tensor.at,
            message,
            Some((workload.at, "the workload")),
        );
    } else if let Some(size) = piece
        .and_then(|piece| piece.size)
        .filter(|size| *size != tensor.size)
    {
        let message = || {
            format!(
                "expected {size} bytes, those of the piece, found {}",
                tensor.size
            )
        };
        findings.report_with(
            &rules::STAGED,
            tensor.at,
            message,
            Some((workload.at, "the workload")),
        );
    }
    if !tensor.start_send {
        findings.report(&rules::START_SEND, tensor.at, || {
            "expected start_send true of what this workload makes, found false".to_owned()
        });
    }
}

/// A result that stays on its core has its space from the workload on that makes it.
fn late(lint: Lint<'_>, workload: &Workload, tensor: &Tensor, findings: &mut Findings) {
    if tensor.newly_added != Some(true) || tensor.kind != TensorKind::Ifmap {
        return;
    }
    for source in &tensor.sources {
        let Some(&(_, Maker::Workload(position, _))) = lint.index.makers(source.transfer).first()
        else {
            continue;
        };
        let Some(core) = lint.schedule.cores.get(position.0 as usize) else {
            continue;
        };
        let Some(maker) = core.workloads.get(position.1 as usize) else {
            continue;
        };
        // Both are in one list exactly if the workload is found there.
        let here = core
            .position(workload.id)
            .and_then(|i| core.workloads.get(i))
            .is_some_and(|w| w.at == workload.at);
        if here && maker.id < workload.id {
            let message = || {
                format!(
                    "expected the tensor in the snapshots from workload {} on, which makes transfer {}, found it new in workload {}",
                    maker.id, source.transfer, workload.id
                )
            };
            findings.report_with(
                &rules::LATE,
                tensor.at,
                message,
                Some((maker.at, "where it is made")),
            );
        }
    }
}

/// `cur_wl_ifmap` marks what the ifmap list names.
fn current(workload: &Workload, findings: &mut Findings) {
    let read = |tensor: &Tensor| {
        workload.ifmaps.iter().any(|ifmap| {
            ifmap
                .transfers
                .iter()
                .any(|id| tensor.transfers.contains(id))
        })
    };
    for tensor in workload
        .buffer
        .iter()
        .filter(|tensor| tensor.kind == TensorKind::Ifmap)
    {
        let reads = read(tensor);
        if reads != tensor.current {
            let (want, why) = if reads {
                ("the mark", "reads")
            } else {
                ("no mark", "does not read")
            };
            let message = || {
                format!(
                    "expected {want} on transfers {:?}, which the workload {why}",
                    &tensor.transfers[..]
                )
            };
            findings.report(&schedule_rules::CURRENT, tensor.at, message);
        }
    }
}

/// What the workload reads is in its snapshot.
fn inputs(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    for ifmap in &workload.ifmaps {
        let holding = |id: u32| {
            workload
                .buffer
                .iter()
                .find(move |t| t.kind != TensorKind::Weight && t.transfers.contains(&id))
        };
        for &id in &ifmap.transfers {
            match holding(id) {
                None => {
                    let message = || {
                        format!(
                            "expected a tensor with transfer {id} in the snapshot of workload {}, which reads it, found none",
                            workload.id
                        )
                    };
                    findings.report(&schedule_rules::IFMAP_TENSOR, ifmap.at, message);
                }
                Some(tensor) if lint.spec && !same_frame(tensor, ifmap) => {
                    let message = || {
                        format!(
                            "expected the tensor of transfer {id} to hold {}, found {}",
                            ifmap.bounds, tensor.bounds
                        )
                    };
                    findings.report_with(
                        &schedule_rules::IFMAP_TENSOR,
                        ifmap.at,
                        message,
                        Some((tensor.at, "the tensor")),
                    );
                }
                Some(tensor)
                    if lint.spec
                        && (tensor.bitwidth, tensor.align) != (ifmap.bitwidth, ifmap.align) =>
                {
                    let message = || {
                        format!(
                            "expected the bit width and alignment of the tensor, {:?} and {:?}, found {:?} and {:?}",
                            tensor.bitwidth, tensor.align, ifmap.bitwidth, ifmap.align
                        )
                    };
                    findings.report_with(
                        &schedule_rules::IFMAP_TENSOR,
                        ifmap.at,
                        message,
                        Some((tensor.at, "the tensor")),
                    );
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether the tensor holds what the ifmap needs; images are counted from the tensor or from the layer.
fn same_frame(tensor: &Tensor, ifmap: &crate::schedule::Ifmap) -> bool {
    let inside = (1..4).all(|d| {
        tensor.bounds.lower[d] <= ifmap.bounds.lower[d]
            && ifmap.bounds.upper[d] <= tensor.bounds.upper[d]
    });
    inside && ifmap.bounds.shape()[0] <= tensor.bounds.shape()[0]
}
