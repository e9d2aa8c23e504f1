//! The schedule against the front-end file.

use super::{Findings, Lint, cover};
use crate::bytes;
use crate::network::{Layer, Network};
use crate::rules::memory as rules;
use crate::rules::schedule::{INPUTS, PADDING, SOURCE_LAYER};
use crate::schedule::{At, Bounds, LayerType, TensorKind, Tile, Workload};
use indexmap::IndexMap;

/// What the dimensions of a box are called.
const DIMENSIONS: [&str; 4] = ["images", "channels", "rows", "columns"];

pub(super) fn check(lint: Lint<'_>, network: &Network, findings: &mut Findings) {
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
        cover(name, layer, workloads, findings);
        for workload in workloads {
            one(lint, network, layer, workload, findings);
        }
    }
    for (name, layer) in network.scheduled() {
        if layer.device == "npu" && !by_layer.contains_key(name) {
            findings.report(&rules::LAYER_COVER, At(0), || {
                format!("expected workloads of the layer {name}, found none")
            });
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

fn cover(name: &str, layer: &Layer, workloads: &[&Workload], findings: &mut Findings) {
    let Some(output) = layer.output_shape.first().and_then(|shape| whole(shape)) else {
        return;
    };
    let boxes: Vec<Bounds> = workloads.iter().map(|w| w.bounds).collect();
    for workload in workloads.iter().filter(|w| !output.contains(&w.bounds)) {
        let message = || {
            format!(
                "expected a box inside the output of {name}, {output}, found {}",
                workload.bounds
            )
        };
        findings.report(&rules::LAYER_BOX, workload.at, message);
    }
    if let Some(hole) = cover::hole(&output, &boxes) {
        let at = workloads.first().map_or(At(0), |w| w.at);
        findings.report(&rules::LAYER_COVER, at, || {
            format!("expected workloads for all of {name}, {output}, found none for {hole}")
        });
    }
}

fn one(
    lint: Lint<'_>,
    network: &Network,
    layer: &Layer,
    workload: &Workload,
    findings: &mut Findings,
) {
    let unit = workload.layer_type.unit();
    let matrix = is_matrix(layer);
    if (unit == LayerType::Pe) != matrix {
        let want = if matrix { "pe" } else { "vp or dt" };
        findings.report(&rules::LAYER_UNIT, workload.at, || {
            format!(
                "expected {want} for the operation {}, found {}",
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
            && !all.contains(&weight.bounds)
        {
            findings.report(&rules::LAYER_WEIGHT, weight.at, || {
                format!("expected weights inside {all}, found {}", weight.bounds)
            });
        }
    }
    input(lint, layer, workload, findings);
    if lint.spec {
        padding(layer, workload, findings);
        tiles(layer, workload, findings);
        ports(lint, network, workload, findings);
        types(layer, workload, findings);
    }
}

fn is_matrix(layer: &Layer) -> bool {
    layer.operation.starts_with("conv") || layer.operation == "dense"
}

fn is_elementwise(layer: &Layer) -> bool {
    layer.operation.starts_with("element_wise") || layer.operation == "quantize"
}

/// The rows or columns of the input that a range of the output needs.
fn window(lower: u32, upper: u32, kernel: u32, stride: u32, pad: u32, size: u64) -> (u64, u64) {
    let first = (u64::from(lower) * u64::from(stride)).saturating_sub(u64::from(pad));
    let last = (u64::from(upper) * u64::from(stride) + u64::from(kernel))
        .saturating_sub(u64::from(pad) + 1);
    (first, last.min(size.saturating_sub(1)))
}

/// The padding that is really used at the edges of a range of the output: before and after.
fn edges(lower: u32, upper: u32, kernel: u32, stride: u32, pad: u32, size: u64) -> [u32; 2] {
    let before = u64::from(pad).saturating_sub(u64::from(lower) * u64::from(stride));
    let end = u64::from(upper) * u64::from(stride) + u64::from(kernel);
    let after = end.saturating_sub(u64::from(pad) + size);
    [before as u32, u32::try_from(after).unwrap_or(u32::MAX)]
}

/// The padding follows from the layer.
fn padding(layer: &Layer, workload: &Workload, findings: &mut Findings) {
    let (Some([rows, columns]), Some(found)) =
        (layer.kernel_size.or(layer.pool_size), workload.padding)
    else {
        return;
    };
    let Some([_, _, height, width]) = layer.input_shape.first().map(Vec::as_slice) else {
        return;
    };
    let ([down, right], [top, _, left, _]) = (
        layer.stride.unwrap_or([1, 1]),
        layer.padding.unwrap_or_default(),
    );
    let (lower, upper) = (workload.bounds.lower, workload.bounds.upper);
    let [above, below] = edges(lower[2], upper[2], rows, down, top, *height);
    let [before, after] = edges(lower[3], upper[3], columns, right, left, *width);
    let want = [above, below, before, after];
    if found != want {
        findings.report(&PADDING, workload.at, || {
            format!("expected padding {want:?} at top, bottom, left and right, found {found:?}")
        });
    }
}

/// The channels of its first input that a range of a layer's output channels needs; `None` where the operation does not say.
fn channels(layer: &Layer, lower: u32, upper: u32) -> Option<(u64, u64)> {
    let shape = layer.input_shape.first()?;
    let inputs = shape.get(1).copied().unwrap_or(1);
    if is_matrix(layer) {
        let outputs = layer
            .output_shape
            .first()
            .and_then(|shape| shape.get(1))
            .copied()?;
        let groups = u64::from(layer.group.unwrap_or(1).max(1));
        let (of_group, from_group) = (inputs / groups, outputs / groups);
        let group = |channel: u32| u64::from(channel).checked_div(from_group);
        return Some((
            group(lower)? * of_group,
            ((group(upper)? + 1) * of_group).saturating_sub(1),
        ));
    }
    let keeps = layer.operation.ends_with("pool2d") || is_elementwise(layer);
    keeps.then(|| {
        if inputs == 1 {
            (0, 0)
        } else {
            (u64::from(lower), u64::from(upper))
        }
    })
}

/// Tiles read what their output needs, and are padded as their place in the layer says.
fn tiles(layer: &Layer, workload: &Workload, findings: &mut Findings) {
    if layer.other.contains_key("dilation") {
        return;
    }
    let elementwise = is_elementwise(layer);
    for tile in &workload.tiles {
        if let Some(read) = tile.ifmap.filter(|_| !elementwise)
            && let Some(range) = channels(layer, tile.ofmap.lower[1], tile.ofmap.upper[1])
        {
            reads(tile, &read, 1, range, findings);
        }
        let operands = [tile.ifmap.as_ref(), tile.ifmap2.as_deref()]
            .into_iter()
            .zip(&workload.ifmaps);
        for (read, ifmap) in operands
            .filter_map(|(read, ifmap)| Some((read?, ifmap)))
            .filter(|_| elementwise)
        {
            for d in 1..4 {
                // What has one row or column for all is broadcast.
                let whole = ifmap.bounds.shape()[d] == 1;
                let range = if whole {
                    (ifmap.bounds.lower[d], ifmap.bounds.lower[d])
                } else {
                    (tile.ofmap.lower[d], tile.ofmap.upper[d])
                };
                reads(tile, read, d, (range.0.into(), range.1.into()), findings);
            }
        }
    }
    let Some([rows, columns]) = layer.kernel_size.or(layer.pool_size) else {
        return;
    };
    let Some([_, _, height, width]) = layer.input_shape.first().map(Vec::as_slice) else {
        return;
    };
    let ([down, right], [top, _, left, _]) = (
        layer.stride.unwrap_or([1, 1]),
        layer.padding.unwrap_or_default(),
    );
    for tile in &workload.tiles {
        let (lower, upper) = (tile.ofmap.lower, tile.ofmap.upper);
        if let Some(read) = tile.ifmap {
            reads(
                tile,
                &read,
                2,
                window(lower[2], upper[2], rows, down, top, *height),
                findings,
            );
            reads(
                tile,
                &read,
                3,
                window(lower[3], upper[3], columns, right, left, *width),
                findings,
            );
        }
        let [above, below] = edges(lower[2], upper[2], rows, down, top, *height);
        let [before, after] = edges(lower[3], upper[3], columns, right, left, *width);
        let want = [above, below, before, after];
        if let Some(found) = tile.padding.filter(|found| *found != want) {
            let message = || {
                format!(
                    "expected padding {want:?} at top, bottom, left and right of the tile, found {found:?}"
                )
            };
            findings.report(&PADDING, tile.at, message);
        }
    }
}

/// A tile reads at least this range of its input along a dimension.
fn reads(
    tile: &Tile,
    read: &Bounds,
    dimension: usize,
    (first, last): (u64, u64),
    findings: &mut Findings,
) {
    let (from, to) = (
        u64::from(read.lower[dimension]),
        u64::from(read.upper[dimension]),
    );
    if from > first || to < last {
        let what = DIMENSIONS[dimension];
        let message = || {
            format!("expected a tile that reads the {what} {first} to {last}, found {from} to {to}")
        };
        findings.report(&rules::TILE_INPUT, tile.at, message);
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

/// What is read is what the layer needs.
fn input(lint: Lint<'_>, layer: &Layer, workload: &Workload, findings: &mut Findings) {
    let elementwise = is_elementwise(layer);
    let kernel = layer.kernel_size.or(layer.pool_size);
    let windowed = (layer.operation.starts_with("conv") || layer.operation.ends_with("pool2d"))
        && !layer.other.contains_key("dilation");
    if elementwise || layer.operation.ends_with("pool2d") {
        let (want, found) = (layer.activations(), workload.ifmaps.len());
        if want > 0 && found != want {
            findings.report(&INPUTS, workload.at, || {
                format!(
                    "expected {want} ifmaps of the operation {}, found {found}",
                    layer.operation
                )
            });
        }
    }
    for (index, ifmap) in workload.ifmaps.iter().enumerate() {
        let Some(shape) = layer.input_shape.get(if elementwise { index } else { 0 }) else {
            continue;
        };
        let Some(all) = whole(shape) else { continue };
        if !all.contains(&ifmap.bounds) {
            findings.report(&rules::LAYER_INPUT, ifmap.at, || {
                format!(
                    "expected a box inside the layer's input, {all}, found {}",
                    ifmap.bounds
                )
            });
            continue;
        }
        // What has one row or column for all is broadcast.
        let plain = |d: usize| {
            let (lower, upper) = (
                u64::from(workload.bounds.lower[d]),
                u64::from(workload.bounds.upper[d]),
            );
            if all.upper[d] == 0 {
                (0, 0)
            } else {
                (lower, upper)
            }
        };
        // The ancestors count channels of what is concatenated in the layer that makes them.
        let exact = lint.spec && !lint.packed;
        let of_channels = match index {
            _ if !exact => None,
            0 => channels(layer, workload.bounds.lower[1], workload.bounds.upper[1]),
            _ => elementwise.then(|| plain(1)),
        };
        let needed = if let (true, Some([rows, columns]), [_, _, height, width]) =
            (windowed, kernel, shape.as_slice())
        {
            let ([down, right], [top, _, left, _]) = (
                layer.stride.unwrap_or([1, 1]),
                layer.padding.unwrap_or_default(),
            );
            let (lower, upper) = (workload.bounds.lower, workload.bounds.upper);
            [
                of_channels,
                Some(window(lower[2], upper[2], rows, down, top, *height)),
                Some(window(lower[3], upper[3], columns, right, left, *width)),
            ]
        } else if elementwise {
            [of_channels, Some(plain(2)), Some(plain(3))]
        } else {
            [of_channels, None, None]
        };
        for (d, needed) in (1..4).zip(needed) {
            let Some((first, last)) = needed else {
                continue;
            };
            if u64::from(ifmap.bounds.lower[d]) > first || u64::from(ifmap.bounds.upper[d]) < last {
                let what = DIMENSIONS[d];
                let message = || {
                    format!(
                        "expected {what} {first} to {last}, which the output needs, found {} to {}",
                        ifmap.bounds.lower[d], ifmap.bounds.upper[d]
                    )
                };
                findings.report(&rules::LAYER_INPUT, ifmap.at, message);
            }
        }
        // Images may be counted from the workload or from the layer.
        let (images, wanted) = (ifmap.bounds.shape()[0], workload.bounds.shape()[0]);
        if exact && (windowed || elementwise) && images < wanted && all.upper[0] > 0 {
            findings.report(&rules::LAYER_INPUT, ifmap.at, || {
                format!("expected {wanted} images, which the output needs, found {images}")
            });
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
fn types(layer: &Layer, workload: &Workload, findings: &mut Findings) {
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
    let want = bytes::feature_map(&workload.bounds, bytes::usual_align(width), width);
    if want != size {
        let message = || format!("expected an ofmap of {want} bytes of {dtype}, found {size}");
        findings.report(&rules::LAYER_TYPE, workload.at, message);
    }
}
