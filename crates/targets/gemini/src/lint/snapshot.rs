//! Snapshots of the L2 buffer: what they hold, where, and since when.

use super::{Findings, Lint};
use crate::rules::memory as rules;
use crate::rules::schedule as schedule_rules;
use crate::schedule::{At, Dialect, Tensor, TensorKind, Workload};
use std::collections::HashMap;

/// More than any core of the family has.
const MOST_BYTES: u64 = 100_000 << 10;
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
        residents(workload, before, findings);
        current(workload, findings);
    }
    if lint.schedule.dialect.has_addresses() {
        addresses(lint, workload, findings);
    }
    if !lint.spec {
        blocks(workload, findings);
        moved(workload, before, findings);
    }
    inputs(lint, workload, findings);
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
    // Whether it does harm in the spec's dialect is a question of who reads what when.
    let rule = if lint.schedule.dialect == Dialect::SetAddress {
        &rules::L2_OVERLAP
    } else {
        &rules::BLOCK_OVERLAP
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
fn residents(workload: &Workload, before: Option<&Workload>, findings: &mut Findings) {
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
    }
}

/// No block is larger than the memory of any core.
fn blocks(workload: &Workload, findings: &mut Findings) {
    for tensor in workload.buffer.iter().filter(|t| t.size >= MOST_BYTES) {
        findings.report(&rules::BLOCK, tensor.at, || {
            let [most, found] = [MOST_BYTES, tensor.size].map(|bytes| bytes >> 10);
            format!("expected a block of less than {most} KiB, found {found}")
        });
    }
}

/// Nothing moves inside L2: what stands in two snapshots with the same contents stands in the same place.
fn moved(workload: &Workload, before: Option<&Workload>, findings: &mut Findings) {
    let Some(before) = before else { return };
    for tensor in workload
        .buffer
        .iter()
        .filter(|tensor| tensor.kind != TensorKind::Ofmap && !tensor.transfers.is_empty())
    {
        let is_it = |old: &&Tensor| {
            (old.kind, old.layer, old.bounds) == (tensor.kind, tensor.layer, tensor.bounds)
                && old.transfers == tensor.transfers
        };
        let mut old = before.buffer.iter().filter(is_it).peekable();
        let Some(first) = old.peek().copied() else {
            continue;
        };
        if old.all(|old| old.address != tensor.address) {
            let message = || {
                let [was, is] = [first, tensor].map(|t| t.address.unwrap_or(0));
                format!("expected the tensor to keep its address {was}, found {is}")
            };
            findings.report_with(
                &rules::MOVED,
                tensor.at,
                message,
                Some((first.at, "in the snapshot before")),
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

/// What the workload reads is in its snapshot, as wide as it says.
fn inputs(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    for ifmap in &workload.ifmaps {
        for &id in &ifmap.transfers {
            let tensor = workload
                .buffer
                .iter()
                .find(|t| t.kind != TensorKind::Weight && t.transfers.contains(&id));
            match tensor {
                None if !lint.spec || lint.packed => {
                    let message = || {
                        format!(
                            "expected a tensor with transfer {id} in the snapshot of workload {}, which reads it, found none",
                            workload.id
                        )
                    };
                    findings.report(&schedule_rules::IFMAP_TENSOR, ifmap.at, message);
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
                _ => {}
            }
        }
    }
}
