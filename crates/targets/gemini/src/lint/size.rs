//! Sizes follow from shapes.

use super::{Findings, Lint};
use crate::bytes;
use crate::rules::schedule as rules;
use crate::schedule::{At, Bounds, TensorKind, Workload};

pub(super) fn check(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    if lint.spec {
        spec(lint, workload, findings);
    } else {
        ancestor(workload, findings);
    }
}

/// 8-bit data without alignment.
fn ancestor(workload: &Workload, findings: &mut Findings) {
    let plain =
        |bounds: &Bounds, size: Option<u64>, what: &str, at: At, findings: &mut Findings| {
            let want = bounds.elements();
            if let Some(found) = size.filter(|found| *found != want) {
                findings.report(&rules::SIZE, at, || {
                    format!(
                        "expected {} bits of {what} of shape {:?}, found {}",
                        want.saturating_mul(8),
                        bounds.shape(),
                        found.saturating_mul(8)
                    )
                });
            }
        };
    plain(
        &workload.bounds,
        workload.ofmap_size,
        "the ofmap",
        workload.at,
        findings,
    );
    for piece in &workload.ofmaps {
        plain(
            &piece.bounds,
            piece.size,
            "a piece of the ofmap",
            piece.at,
            findings,
        );
    }
    for tensor in &workload.buffer {
        if tensor.kind == TensorKind::Ifmap {
            for source in &tensor.sources {
                plain(&source.bounds, source.size, "a source", tensor.at, findings);
            }
        }
    }
}

fn spec(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    let aligned = |bits| {
        if lint.packed {
            1
        } else {
            bytes::usual_align(bits)
        }
    };
    // The type of the output is not said, only its size: it must be that of 8 or of 16 bits.
    let fits = |bounds: &Bounds, size: u64| {
        [8, 16]
            .into_iter()
            .find(|bits| bytes::feature_map(bounds, aligned(*bits), *bits) == size)
    };
    let width = workload
        .ofmap_size
        .and_then(|size| fits(&workload.bounds, size));
    if let (None, Some(size)) = (width, workload.ofmap_size) {
        let [one, two] =
            [8, 16].map(|bits| bytes::feature_map(&workload.bounds, aligned(bits), bits));
        let message = || {
            format!("expected an ofmap of {one} bytes (8 bits) or {two} (16 bits), found {size}")
        };
        findings.report(&rules::SIZE, workload.at, message);
    }
    for piece in &workload.ofmaps {
        let Some(size) = piece.size else { continue };
        let bits = width.or_else(|| fits(&piece.bounds, size)).unwrap_or(8);
        feature_map(
            lint,
            &piece.bounds,
            (Some(aligned(bits)), Some(bits)),
            size,
            "a piece of the ofmap",
            piece.at,
            findings,
        );
    }
    for ifmap in &workload.ifmaps {
        if let Some(size) = ifmap.size {
            feature_map(
                lint,
                &ifmap.bounds,
                (ifmap.align, ifmap.bitwidth),
                size,
                "the ifmap",
                ifmap.at,
                findings,
            );
        }
    }
    if let Some(weight) = &workload.weight
        && let Some(size) = weight.size
    {
        weights(lint, &weight.bounds, None, size, weight.at, findings);
    }
    for entry in workload.weight_buffer.iter().flatten() {
        legal(lint, (entry.align, entry.bitwidth), entry.at, findings);
    }
    for tensor in &workload.buffer {
        let form = (tensor.align, tensor.bitwidth);
        if tensor.kind == TensorKind::Weight {
            if let Some((_, bits)) = legal(lint, form, tensor.at, findings) {
                let bits = tensor.bitwidth.map(|_| bits);
                weights(lint, &tensor.bounds, bits, tensor.size, tensor.at, findings);
            }
            continue;
        }
        feature_map(
            lint,
            &tensor.bounds,
            form,
            tensor.size,
            "the tensor",
            tensor.at,
            findings,
        );
        let bits = tensor.bitwidth.unwrap_or(8);
        let align = tensor.align.unwrap_or_else(|| bytes::usual_align(bits));
        for source in &tensor.sources {
            let want = bytes::feature_map(&source.bounds, align, bits);
            if let Some(found) = source.size.filter(|found| *found != want) {
                let message = || {
                    format!(
                        "expected {want} bytes from transfer {}, {bits} bits of {:?}, found {found}",
                        source.transfer,
                        source.bounds.shape()
                    )
                };
                findings.report(&rules::SIZE, tensor.at, message);
            }
        }
    }
}

/// Where the width is not said beside them, it is that of 8 or of 16 bits.
pub(super) fn weights(
    lint: Lint<'_>,
    bounds: &Bounds,
    bits: Option<u8>,
    size: u64,
    at: At,
    findings: &mut Findings,
) {
    let of = |bits: u8| {
        if lint.packed {
            bounds.elements()
        } else {
            bytes::weights(bounds, bits)
        }
    };
    let fits = match bits {
        Some(bits) => of(bits) == size,
        None => [8, 16].into_iter().any(|bits| of(bits) == size),
    };
    if !fits {
        let want = of(bits.unwrap_or(8));
        findings.report(&rules::SIZE, at, || {
            format!(
                "expected {want} bytes of weights of shape {:?}, found {size}",
                bounds.shape()
            )
        });
    }
}

/// Alignment and bit width as the file has them.
type Form = (Option<u16>, Option<u8>);

/// Alignment and bit width, if they are such.
fn legal(
    lint: Lint<'_>,
    (align, bitwidth): Form,
    at: At,
    findings: &mut Findings,
) -> Option<(u16, u8)> {
    let bits = bitwidth.unwrap_or(8);
    if ![8, 16].contains(&bits) {
        findings.report(&rules::BITWIDTH, at, || {
            format!("expected a bit width of 8 or 16, found {bits}")
        });
        return None;
    }
    let align = align.unwrap_or_else(|| bytes::usual_align(bits));
    if align == 0 {
        findings.report(&rules::BITWIDTH, at, || {
            "expected channels aligned to at least 1, found 0".to_owned()
        });
        return None;
    }
    if align != bytes::usual_align(bits) && !lint.packed {
        findings.report(&rules::ALIGN, at, || {
            format!(
                "expected {} channels of {bits} bits, found {align}",
                bytes::usual_align(bits)
            )
        });
    }
    Some((align, bits))
}

fn feature_map(
    lint: Lint<'_>,
    bounds: &Bounds,
    form: Form,
    size: u64,
    what: &str,
    at: At,
    findings: &mut Findings,
) {
    let Some((align, bits)) = legal(lint, form, at, findings) else {
        return;
    };
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
