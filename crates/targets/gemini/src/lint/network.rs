//! The schedule against the front-end file.

use super::{Findings, Lint};
use crate::bytes;
use crate::lower::pack::Operations;
use crate::network::{Layer, Network, has_weights};
use crate::operation::{Kind, Operation};
use crate::rules::memory as rules;
use crate::rules::schedule::{PADDING, SOURCE_LAYER};
use crate::schedule::{At, Bounds, LayerType, TensorKind, Tile, Workload};
use indexmap::IndexMap;

/// What the dimensions of a box are called.
const DIMENSIONS: [&str; 4] = ["images", "channels", "rows", "columns"];

pub(super) fn check(lint: Lint<'_>, network: &Network, findings: &mut Findings) {
    let mut operations = Operations::default();
    let mut by_layer: IndexMap<&str, Vec<&Workload>> = IndexMap::new();
    for (_, workload) in lint.schedule.workloads() {
        by_layer
            .entry(lint.schedule.name(workload.layer))
            .or_default()
            .push(workload);
    }
    for (name, workloads) in &by_layer {
        let Some(layer) = network.layers.get(*name) else {
            let at = workloads.first().map_or(At(0), |w| w.at);
            findings.report(&rules::LAYER, at, || {
                format!("expected a layer of the front-end file, found {name}")
            });
            continue;
        };
        inside(name, layer, workloads, findings);
        let operation = operations.of(network, name);
        let operation = operation.as_ref().as_ref().ok();
        for workload in workloads {
            one(lint, network, (layer, operation), workload, findings);
        }
    }
}

/// A shape as a box of four dimensions.
fn whole(shape: &[u64]) -> Option<Bounds> {
    if shape.len() > 4 || shape.contains(&0) {
        return None;
    }
    let upper: [u32; 4] = std::array::from_fn(|d| {
        shape
            .get(d)
            .map_or(0, |n| u32::try_from(*n - 1).unwrap_or(u32::MAX))
    });
    Some(Bounds {
        lower: [0; 4],
        upper,
    })
}

fn inside(name: &str, layer: &Layer, workloads: &[&Workload], findings: &mut Findings) {
    let Some(output) = layer.output_shape.first().and_then(|shape| whole(shape)) else {
        return;
    };
    for workload in workloads.iter().filter(|w| !output.contains(&w.bounds)) {
        let message = || {
            format!(
                "expected a box inside the output of {name}, {output}, found {}",
                workload.bounds
            )
        };
        findings.report(&rules::LAYER_BOX, workload.at, message);
    }
}

fn one(
    lint: Lint<'_>,
    network: &Network,
    (layer, operation): (&Layer, Option<&Operation>),
    workload: &Workload,
    findings: &mut Findings,
) {
    let unit = workload.layer_type.unit();
    let matrix = is_matrix(layer);
    let exact = lint.spec && !lint.packed;
    let want = operation.map(|operation| match operation.kind {
        Kind::Convolution { .. } | Kind::Product { .. } => LayerType::Pe,
        Kind::Vector(_) => LayerType::Vp,
        Kind::Move(_) => LayerType::Dt,
    });
    if let Some(want) = want.filter(|want| exact && *want != unit) {
        findings.report(&rules::LAYER_UNIT, workload.at, || {
            format!(
                "expected {} for the operation {}, found {}",
                want.name(),
                layer.operation,
                unit.name()
            )
        });
    }
    if matrix
        && let Some(weight) = workload
            .weight
            .as_ref()
            .filter(|w| !w.from_ofmap && lint.spec)
    {
        let shape = layer
            .input_shape
            .get(1)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let kernel = shape.iter().skip(2).copied().fold(1, u64::saturating_mul);
        if let [k, c, ..] = *shape
            && let Some(all) = whole(&[1, k, c, kernel])
        {
            let bounds = &weight.bounds;
            // An output channel takes all weights that the layer has for it.
            let is_part = (2..4).any(|axis| {
                [bounds.lower[axis], bounds.upper[axis]] != [all.lower[axis], all.upper[axis]]
            });
            if !all.contains(bounds) {
                findings.report(&rules::LAYER_WEIGHT, weight.at, || {
                    format!("expected weights inside {all}, found {bounds}")
                });
            } else if is_part {
                findings.report(&rules::LAYER_WEIGHT, weight.at, || {
                    format!("expected all input channels and taps of {all}, found {bounds}")
                });
            }
        }
    }
    if let Some(operation) = operation.filter(|_| exact) {
        tiles(operation, workload, findings);
        time(operation, workload, findings);
        cuts(lint, operation, workload, findings);
    }
    let windowed = layer.kernel_size.or(layer.pool_size).is_some();
    if let Some(operation) = operation.filter(|_| lint.spec && windowed) {
        padding(operation, workload, findings);
    }
    if lint.spec {
        ports(lint, network, workload, findings);
        types(lint, layer, workload, findings);
    }
}

fn is_matrix(layer: &Layer) -> bool {
    has_weights(layer)
}

/// The padding follows from the layer.
fn padding(operation: &Operation, workload: &Workload, findings: &mut Findings) {
    let want = operation.edges(&workload.bounds);
    if let Some(found) = workload.padding.filter(|found| *found != want) {
        findings.report(&PADDING, workload.at, || {
            format!("expected padding {want:?} at top, bottom, left and right, found {found:?}")
        });
    }
}

/// Tiles read what their output needs, and are padded as their place in the layer says.
fn tiles(operation: &Operation, workload: &Workload, findings: &mut Findings) {
    let lists_all = operation.operands.len() <= 2;
    let has_window = match &operation.kind {
        Kind::Convolution { .. } => true,
        Kind::Vector(vector) => vector.window.is_some(),
        _ => false,
    };
    for tile in &workload.tiles {
        // Inputs of one shape may be listed in any order.
        for (operand, read) in [tile.ifmap.as_ref(), tile.ifmap2.as_deref()]
            .into_iter()
            .enumerate()
        {
            let needed = operation.needs(operand, &tile.ofmap);
            if let (Some(read), Some(needed)) = (read, needed.filter(|_| lists_all)) {
                reads(workload, tile, read, &needed, findings);
            }
        }
        let want = operation.edges(&tile.ofmap);
        if let Some(found) = tile.padding.filter(|found| has_window && *found != want) {
            let message = || {
                format!(
                    "expected padding {want:?} at top, bottom, left and right of the tile, found {found:?}"
                )
            };
            findings.report(&PADDING, tile.at, message);
        }
    }
}

/// A tile reads at least what it needs. Images may be counted from the workload or from the layer.
fn reads(
    workload: &Workload,
    tile: &Tile,
    read: &Bounds,
    needed: &Bounds,
    findings: &mut Findings,
) {
    let short = (0..4).find(|&d| {
        let within = |first: u32| {
            u64::from(read.lower[d]) + u64::from(first) <= u64::from(needed.lower[d])
                && u64::from(needed.upper[d]) <= u64::from(read.upper[d]) + u64::from(first)
        };
        let relative = d == 0 && within(workload.bounds.lower[0]);
        !within(0) && !relative
    });
    if let Some(d) = short {
        let what = DIMENSIONS[d];
        let message = || {
            format!(
                "expected a tile that reads the {what} {} to {}, found {} to {}",
                needed.lower[d], needed.upper[d], read.lower[d], read.upper[d]
            )
        };
        findings.report(&rules::TILE_INPUT, tile.at, message);
    }
}

/// A time that the processing elements can have.
fn time(operation: &Operation, workload: &Workload, findings: &mut Findings) {
    let Some([least, most]) = crate::times::range(operation, workload) else {
        return;
    };
    let found = workload.time;
    if !(least..=most).contains(&found) {
        findings.report(&rules::LAYER_TIME, workload.at, || {
            format!("expected {least} to {most} cycles, found {found}")
        });
    }
}

/// Input channels are cut into even parts.
fn cuts(lint: Lint<'_>, operation: &Operation, workload: &Workload, findings: &mut Findings) {
    let Kind::Convolution { groups, .. } = &operation.kind else {
        return;
    };
    let channels = operation.operands[0].shape[1] / u64::from((*groups).max(1));
    let count = channels.div_ceil(8);
    for tile in &workload.tiles {
        let Some(pe) = &tile.pe else { continue };
        let parts = u64::from(pe.input_channel_cuts.unwrap_or(1));
        if parts > 0 && !count.is_multiple_of(parts) {
            findings.report(&rules::LAYER_CUT, tile.at, || {
                format!("expected a ci_cut_num that divides {count} groups of 8 input channels, found {parts}")
            });
        }
        let is_shared = pe
            .cut_mode
            .is_some_and(|mode| lint.schedule.name(mode) == "KC");
        if is_shared && !count.is_multiple_of(8) {
            findings.report(&rules::LAYER_CUT, tile.at, || {
                format!("expected cut_mode KC only where groups of 8 input channels are a multiple of 8, found it for {count}")
            });
        }
    }
}

/// Layers that sources name are layers or inputs of the network.
fn ports(lint: Lint<'_>, network: &Network, workload: &Workload, findings: &mut Findings) {
    for tensor in workload
        .buffer
        .iter()
        .filter(|tensor| tensor.newly_added == Some(true) && tensor.kind == TensorKind::Ifmap)
    {
        for name in tensor
            .sources
            .iter()
            .filter_map(|source| source.layer)
            .map(|name| lint.schedule.name(name))
        {
            let reads =
                |layer: &Layer| layer.previous_layer.iter().any(|previous| previous == name);
            if !network.layers.contains_key(name) && !network.layers.values().any(reads) {
                let message =
                    || format!("expected a layer or an input of the front-end file, found {name}");
                findings.report(&SOURCE_LAYER, tensor.at, message);
            }
        }
    }
}

/// Bits of a type of the front end.
fn bits(dtype: &str) -> Option<u8> {
    match dtype {
        "int8" | "uint8" => Some(8),
        "int16" | "float16" => Some(16),
        _ => None,
    }
}

/// The widths of the data are those of their types.
fn types(lint: Lint<'_>, layer: &Layer, workload: &Workload, findings: &mut Findings) {
    let matrix = is_matrix(layer);
    let inputs: Vec<&String> = layer
        .input_dtype
        .iter()
        .take(if matrix { 1 } else { workload.ifmaps.len() })
        .collect();
    for ifmap in &workload.ifmaps {
        let Some(found) = ifmap.bitwidth else {
            continue;
        };
        let known: Option<Vec<u8>> = inputs.iter().map(|dtype| bits(dtype)).collect();
        if let Some(known) = known.filter(|known| !known.is_empty() && !known.contains(&found)) {
            let message = || {
                format!(
                    "expected {} bits, as {} has, found {found}",
                    known[0], inputs[0]
                )
            };
            findings.report(&rules::LAYER_TYPE, ifmap.at, message);
        }
    }
    if let Some((dtype, width)) = layer
        .input_dtype
        .get(1)
        .filter(|_| matrix)
        .and_then(|dtype| Some((dtype, bits(dtype)?)))
    {
        let held = workload
            .weight_buffer
            .iter()
            .flatten()
            .map(|entry| (entry.layer, entry.bitwidth, entry.at));
        let in_l2 = workload
            .buffer
            .iter()
            .filter(|t| t.kind == TensorKind::Weight)
            .map(|t| (t.layer, t.bitwidth, t.at));
        for (_, found, at) in held
            .chain(in_l2)
            .filter(|(owner, ..)| *owner == Some(workload.layer))
        {
            if let Some(found) = found.filter(|found| *found != width) {
                findings.report(&rules::LAYER_TYPE, at, || {
                    format!("expected {width} bits, as weights of {dtype} have, found {found}")
                });
            }
        }
    }
    let (Some(dtype), Some(size)) = (layer.output_dtype.first(), workload.ofmap_size) else {
        return;
    };
    let Some(width) = bits(dtype) else { return };
    let align = if lint.packed {
        1
    } else {
        bytes::usual_align(width)
    };
    let want = bytes::feature_map(&workload.bounds, align, width);
    if want != size {
        let message = || format!("expected an ofmap of {want} bytes of {dtype}, found {size}");
        findings.report(&rules::LAYER_TYPE, workload.at, message);
    }
}
