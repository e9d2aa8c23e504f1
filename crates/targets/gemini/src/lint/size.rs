//! Sizes follow from shapes.

use super::{Findings, Lint};
use crate::bytes;
use crate::rules::schedule as rules;
use crate::schedule::{At, Bounds, TensorKind, Workload};

pub(super) fn check(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    if lint.spec { spec(workload, findings) } else { ancestor(workload, findings) }
}

/// 8-bit data without alignment.
fn ancestor(workload: &Workload, findings: &mut Findings) {
    let plain = |bounds: &Bounds, size: Option<u64>, what: &str, at: At, findings: &mut Findings| {
        let want = bounds.elements();
        if let Some(found) = size.filter(|found| *found != want) {
            findings.report(&rules::SIZE, at, || {
                format!("expected {} bits of {what} of shape {:?}, found {}", want * 8, bounds.shape(), found * 8)
            });
        }
    };
    plain(&workload.bounds, workload.ofmap_size, "the ofmap", workload.at, findings);
    for piece in &workload.ofmaps {
        plain(&piece.bounds, piece.size, "a piece of the ofmap", piece.at, findings);
    }
    for tensor in &workload.buffer {
        if tensor.kind == TensorKind::Ifmap {
            for source in &tensor.sources {
                plain(&source.bounds, source.size, "a source", tensor.at, findings);
            }
        }
    }
}

fn spec(workload: &Workload, findings: &mut Findings) {
    // The type of the output is not said, only its size: it must be that of 8 or of 16 bits.
    let fits =
        |bounds: &Bounds, size: u64| [8, 16].into_iter().find(|bits| bytes::feature_map(bounds, bytes::usual_align(*bits), *bits) == size);
    let width = workload.ofmap_size.and_then(|size| fits(&workload.bounds, size));
    if let (None, Some(size)) = (width, workload.ofmap_size) {
        let [one, two] = [8, 16].map(|bits| bytes::feature_map(&workload.bounds, bytes::usual_align(bits), bits));
        let message = || format!("expected an ofmap of {one} bytes (8 bits) or {two} (16 bits), found {size}");
        findings.report(&rules::SIZE, workload.at, message);
    }
    for piece in &workload.ofmaps {
        let Some(size) = piece.size else { continue };
        let bits = width.or_else(|| fits(&piece.bounds, size)).unwrap_or(8);
        feature_map(&piece.bounds, Some(bytes::usual_align(bits)), Some(bits), size, "a piece of the ofmap", piece.at, findings);
    }
    for ifmap in &workload.ifmaps {
        if let Some(size) = ifmap.size {
            feature_map(&ifmap.bounds, ifmap.align, ifmap.bitwidth, size, "the ifmap", ifmap.at, findings);
        }
    }
    if let Some(weight) = &workload.weight
        && let Some(size) = weight.size
    {
        weights(&weight.bounds, size, weight.at, findings);
    }
    for tensor in &workload.buffer {
        if tensor.kind == TensorKind::Weight {
            weights(&tensor.bounds, tensor.size, tensor.at, findings);
        } else {
            feature_map(&tensor.bounds, tensor.align, tensor.bitwidth, tensor.size, "the tensor", tensor.at, findings);
        }
    }
}

pub(super) fn weights(bounds: &Bounds, size: u64, at: At, findings: &mut Findings) {
    let want = bytes::weights(bounds);
    if want != size {
        findings.report(&rules::SIZE, at, || format!("expected {want} bytes of weights of shape {:?}, found {size}", bounds.shape()));
    }
}

fn feature_map(bounds: &Bounds, align: Option<u16>, bitwidth: Option<u8>, size: u64, what: &str, at: At, findings: &mut Findings) {
    let bits = bitwidth.unwrap_or(8);
    if ![8, 16].contains(&bits) {
        findings.report(&rules::BITWIDTH, at, || format!("expected a bit width of 8 or 16, found {bits}"));
        return;
    }
    let align = align.unwrap_or_else(|| bytes::usual_align(bits));
    if align == 0 {
        findings.report(&rules::BITWIDTH, at, || "expected channels aligned to at least 1, found 0".to_owned());
        return;
    }
    if align != bytes::usual_align(bits) {
        findings.report(&rules::ALIGN, at, || format!("expected {} channels of {bits} bits, found {align}", bytes::usual_align(bits)));
    }
    let want = bytes::feature_map(bounds, align, bits);
    if want != size {
        let message = || {
            format!(
                "expected {want} bytes for {what} of shape {:?}, {bits} bits, channels aligned to {align}, found {size}",
                bounds.shape()
            )
        };
        findings.report(&rules::SIZE, at, message);
    }
}
