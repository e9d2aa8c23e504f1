//! What kernels are written with, and what becomes of it: operators of KLR and calls of NKI by opcode.

use super::Opcode;
use std::fmt::Write;

/// Operator of KLR (`KLR/Core/Operators.lean` of leanprover/KLR), call of NKI (`nki.isa`), opcode; empty where there is none, or none is public.
/// What an operator becomes is read off its fields and the opcode's; KLR itself names no opcodes.
const OPERATORS: &[(&str, &str, &str)] = &[
    ("Activate", "activation, activation_reduce", "ACTIVATE"),
    (
        "AffineSelect",
        "affine_select",
        "TENSOR_SCALAR_AFFINE_SELECT",
    ),
    ("BatchNormAggregate", "bn_aggr", "BATCH_NORM_AGGREGATE"),
    ("BatchNormStats", "bn_stats", "BATCH_NORM_STATS2"),
    ("Copy", "tensor_copy", "COPY"),
    (
        "CopyPredicated",
        "tensor_copy_predicated",
        "COPY_PREDICATED",
    ),
    (
        "DmaCopy, DmaHbmLoad, DmaHbmStore",
        "dma_copy",
        "PSEUDO_DMA_DIRECT2D",
    ),
    (
        "",
        "dma_copy with indices (oob_mode error or skip)",
        "DMA_INDIRECT",
    ),
    ("", "dma_compute", "PSEUDO_DMA_TRIGGER"),
    ("DmaTranspose", "dma_transpose", "DMA_TRANSPOSE"),
    ("", "dma_transpose with indices", "DMA_GATHER_TRANSPOSE"),
    ("Dropout", "dropout", "DROPOUT"),
    ("FindIndex8", "nc_find_index8", "FIND_INDEX8"),
    ("Iota", "iota", "IOTA"),
    ("LoadMaskRegister", "nc_stream_shuffle", "LOAD_MASK_SELECT"),
    ("LoadStationary", "nc_matmul", "LDWEIGHTS"),
    ("LocalGather", "local_gather", "GATHER"),
    ("MatMul", "nc_matmul", "MATMUL"),
    ("MatchReplace8", "nc_match_replace8", "MATCH_REPLACE8"),
    (
        "MatchValueLoad",
        "nc_find_index8, nc_match_replace8",
        "MATCH_VALUE_LOAD",
    ),
    ("Max8", "max8", "MAX8"),
    ("MemSet", "memset", "MEMSET"),
    ("RangeSelect", "range_select", "RANGE_SELECT"),
    ("Reciprocal", "reciprocal", "RECIPROCAL"),
    (
        "ScalarTensorTensor",
        "scalar_tensor_tensor",
        "SCALAR_TENSOR_TENSOR",
    ),
    ("Shuffle", "nc_stream_shuffle", "STREAM_SHUFFLE"),
    ("TensorReduce", "tensor_reduce", "TENSOR_REDUCE"),
    ("TensorScalar", "tensor_scalar", "TENSOR_SCALAR"),
    ("TensorTensor", "tensor_tensor", "TENSOR_TENSOR"),
    (
        "TensorTensorScan",
        "tensor_tensor_scan",
        "TENSOR_TENSOR_SCAN",
    ),
    ("Transpose", "nc_transpose on VectorE", "STREAM_TRANSPOSE"),
    ("", "nonzero_with_count", "NONZERO_WITH_COUNT"),
    ("", "nc_n_gather", ""),
    ("", "tensor_partition_reduce", "CROSS_LANE_REDUCE"),
    ("", "quantize_mx", "QUANTIZE_MX"),
    ("", "nc_matmul_mx", "MATMUL_MX"),
    ("", "sendrecv", "PSEUDO_SEND_RECV"),
    ("", "core_barrier", "PSEUDO_CORE_BARRIER"),
    ("", "dynamic loops and branches", "COMPARE_BRANCH"),
];

/// The section of the page about them.
pub(super) fn section(page: &mut String) {
    page.push_str(
        "\n## Operators of KLR and calls of NKI\n\nWhich instructions kernels become, and whether Chipless executes them. Of instructions that are listed, we found \
         no public source of the whole byte layout and the meaning (searched until November 2026); a functional run refuses them by name. Of `nc_n_gather` we found no opcode either.\n\n\
         | KLR operator | NKI call | opcode | Chipless | evidence |\n|---|---|---|---|---|\n",
    );
    for (operator, call, name) in OPERATORS {
        let operator = if operator.is_empty() { "–" } else { operator };
        let (opcode, support, evidence) = match Opcode::named(name) {
            Some(opcode) => (
                format!("`{name}` (`{:02x}`)", opcode.byte),
                opcode.support.name(),
                opcode.evidence.name(),
            ),
            None => ("–".to_owned(), "not known", "–"),
        };
        writeln!(
            page,
            "| {operator} | {call} | {opcode} | {support} | {evidence} |"
        )
        .expect("a string takes everything that is written to it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_that_is_named_exists() {
        for (operator, call, name) in OPERATORS {
            assert!(
                name.is_empty() || Opcode::named(name).is_some(),
                "{operator} {call}: {name}"
            );
        }
    }
}
