//! The top level, the lists and the boxes.

use super::{Findings, Lint};
use crate::rules::schedule as rules;
use crate::schedule::{At, Bounds, Dialect, LayerType, Peer, Schedule, Workload};
use std::collections::{HashMap, HashSet};

pub(super) fn check(schedule: &Schedule, findings: &mut Findings) {
    let places = schedule.places;
    let [columns, rows] = schedule.mesh;
    let cores = u64::from(columns) * u64::from(rows);
    if cores == 0 {
        findings.report(
            &rules::MESH,
            if columns == 0 {
                places.columns
            } else {
                places.rows
            },
            || format!("expected xlen and ylen of at least 1, found {columns} and {rows}"),
        );
    }
    if schedule.top_batch_cut == 0 {
        findings.report(&rules::BATCH_CUT, places.top_batch_cut, || {
            "expected top_batch_cut of at least 1, found 0".to_owned()
        });
    }
    if schedule.dialect == Dialect::Spec && schedule.buffer_size.unwrap_or(0) == 0 {
        let found = schedule.buffer_size.map_or("none", |_| "0");
        findings.report(&rules::BUFFER_SIZE, places.buffer_size, || {
            format!("expected the bytes of the L2 buffer as `buffersize`, found {found}")
        });
    }
    let outside = |core: u32| u64::from(core) >= cores;
    let mut report = |core: u32, at: At| {
        if cores > 0 && outside(core) {
            findings.report(&rules::CORE, at, || {
                format!(
                    "expected a core of the {columns} x {rows} mesh, 0 to {}, found {core}",
                    cores - 1
                )
            });
        }
    };
    for core in &schedule.cores {
        report(core.id, core.at);
        for workload in &core.workloads {
            let peers = workload
                .ofmaps
                .iter()
                .flat_map(|piece| piece.destinations.iter().map(|d| (d.peer, piece.at)));
            let sources = workload
                .buffer
                .iter()
                .flat_map(|tensor| tensor.sources.iter().map(|s| (s.peer, tensor.at)));
            for (peer, at) in peers.chain(sources) {
                if let Peer::Core(core) = peer {
                    report(core, at);
                }
            }
        }
    }
    for entry in &schedule.dram_out {
        for destination in &entry.destinations {
            if let Peer::Core(core) = destination.peer {
                report(core, entry.at);
            }
        }
    }
    for entry in &schedule.dram_in {
        report(entry.core, entry.at);
    }
    let known = schedule
        .cores
        .iter()
        .filter(|core| !outside(core.id))
        .count() as u64;
    if known < cores {
        findings.report(&rules::IDLE, places.columns, || {
            format!(
                "expected lists of the {cores} cores of the {columns} x {rows} mesh, found {known}"
            )
        });
    }
    for unknown in &schedule.unknown {
        findings.report(&rules::UNKNOWN_KEY, unknown.owner, || {
            let key: String = unknown.key.chars().take(60).collect();
            let place = unknown.nested.map_or_else(String::new, |index| {
                format!(" in number {index} of its list")
            });
            format!("expected keys that the format knows, found `{key}`{place}")
        });
    }
    ids(schedule, findings);
    boxes(schedule, findings);
}

/// What the entries of one workload say about its unit: how many inputs it has, and how long it takes.
pub(super) fn check_workload(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    if !lint.spec {
        return;
    }
    let lists = workload
        .ifmaps
        .iter()
        .map(|ifmap| (&ifmap.transfers, ifmap.at));
    let tensors = workload
        .buffer
        .iter()
        .map(|tensor| (&tensor.transfers, tensor.at));
    let weights = workload
        .weight_buffer
        .iter()
        .flatten()
        .map(|entry| (&entry.transfers, entry.at));
    for (ids, at) in lists.chain(tensors).chain(weights) {
        if let Some(id) = repeated(ids) {
            findings.report(&rules::TRANSFER_TWICE, at, || {
                format!("expected transfer {id} once in its list, found it twice")
            });
        }
    }
    let silent =
        workload.padding.is_none() || workload.tiles.iter().any(|tile| tile.padding.is_none());
    if silent && workload.layer_type.unit() == LayerType::Pe && !lint.packed {
        findings.report(&rules::PADDING_MISSING, workload.at, || {
            "expected tile_padding_tblr of the workload and its tiles, found none".to_owned()
        });
    }
    let found = workload.ifmaps.len();
    let (legal, want) = match workload.layer_type.unit() {
        LayerType::Pe => (
            (1..=2).contains(&found),
            "one or two ifmaps of processing elements",
        ),
        LayerType::Vp => (
            (1..=2).contains(&found),
            "one or two ifmaps of the vector processor",
        ),
        _ => (found > 0, "an ifmap"),
    };
    // What was converted has the inputs that the ancestors have.
    if !legal && !lint.packed {
        findings.report(&rules::INPUTS, workload.at, || {
            format!("expected {want}, found {found}")
        });
    }
    if workload.time == 0 && !lint.packed {
        findings.report(&rules::TIME, workload.at, || {
            "expected a time above 0, found 0".to_owned()
        });
    }
    let predicted = workload
        .tiles
        .iter()
        .filter_map(|tile| tile.time)
        .fold(0.0, f64::max);
    let time = workload.time as f64;
    let differs = if workload.layer_type.unit() == LayerType::Vp {
        (predicted - time).abs() > 1.0
    } else {
        predicted > time + 1.0
    };
    if differs && predicted > 0.0 {
        findings.report(&rules::TIME, workload.at, || {
            format!(
                "expected a time that goes with single_tile_time_pred, {predicted}, found {time}"
            )
        });
    }
}

/// Workload ids ascend on each core; in the ancestors they count over all cores.
fn ids(schedule: &Schedule, findings: &mut Findings) {
    for core in &schedule.cores {
        let spec = schedule.dialect == Dialect::Spec;
        for (index, workload) in core.workloads.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|i| core.workloads.get(i));
            match before {
                Some(before) if before.id >= workload.id => findings.report_with(
                    &rules::ORDER,
                    workload.at,
                    || {
                        format!(
                            "expected an id above {}, that of the workload before, found {}",
                            before.id, workload.id
                        )
                    },
                    Some((before.at, "the workload before")),
                ),
                _ if spec
                    && workload.id as usize != index
                    && before.is_none_or(|b| b.id + 1 != workload.id) =>
                {
                    findings.report(&rules::ID_GAP, workload.at, || {
                        format!("expected the id {index}, found {}", workload.id)
                    });
                }
                _ => {}
            }
        }
    }
    if schedule.dialect != Dialect::Spec {
        let mut known: HashMap<u32, (u32, At)> = HashMap::new();
        for (core, workload) in schedule.workloads() {
            match known.insert(workload.id, (core.id, workload.at)) {
                Some((other, at)) if other != core.id => findings.report_with(
                    &rules::ID_SHARED,
                    workload.at,
                    || {
                        format!(
                            "expected an id that no other core has, found {}",
                            workload.id
                        )
                    },
                    Some((at, "the other workload")),
                ),
                _ => {}
            }
        }
    }
}

/// Every box has its corners in order.
fn boxes(schedule: &Schedule, findings: &mut Findings) {
    let mut check = |bounds: &Bounds, at: At, what: &str| {
        if bounds.is_empty() {
            findings.report(&rules::BOX, at, || {
                format!(
                    "expected lower at most upper in each dimension of the {what}, found {bounds}"
                )
            });
        }
    };
    for entry in &schedule.dram_in {
        check(&entry.bounds, entry.at, "DRAM tensor");
    }
    for entry in &schedule.dram_out {
        check(&entry.bounds, entry.at, "DRAM tensor");
    }
    for (_, workload) in schedule.workloads() {
        check(&workload.bounds, workload.at, "workload");
        for ifmap in &workload.ifmaps {
            check(&ifmap.bounds, ifmap.at, "ifmap");
        }
        if let Some(weight) = &workload.weight {
            check(&weight.bounds, weight.at, "weight");
        }
        for piece in &workload.ofmaps {
            check(&piece.bounds, piece.at, "ofmap");
        }
        for tensor in &workload.buffer {
            check(&tensor.bounds, tensor.at, "tensor");
            for source in &tensor.sources {
                check(&source.bounds, tensor.at, "source");
            }
        }
        for tensor in workload.weight_buffer.iter().flatten() {
            if let Some(bounds) = &tensor.bounds {
                check(bounds, tensor.at, "weights");
            }
        }
        for tile in &workload.tiles {
            check(&tile.ofmap, tile.at, "tile's output");
            for bounds in tile.ifmap.iter().chain(tile.ifmap2.as_deref()) {
                check(bounds, tile.at, "tile's input");
            }
        }
    }
}

/// The first id that a list has twice.
fn repeated(ids: &[u32]) -> Option<u32> {
    let mut known = HashSet::new();
    ids.iter().copied().find(|id| !known.insert(*id))
}
