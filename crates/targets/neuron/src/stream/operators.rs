//! What kernels are written with, and what becomes of it: operators of KLR and calls of NKI by opcode.

use super::{Evidence, Opcode, Support};
use std::fmt::Write;

const HEAD: &str = "
## Operators of KLR and calls of NKI

Which instructions kernels become, and whether Chipless executes them. A functional run refuses those that are listed, by name.

| KLR operator | NKI call | opcode | Chipless | evidence |
|---|---|---|---|---|
";

const MISSING: &str = "
The hardware forms `DMA_INDIRECT`, `DMA_TRANSPOSE` and `DMA_GATHER_TRANSPOSE` stay listed: the runtime makes them of `PSEUDO_DMA_DIRECT2D`, files do not have them.
Which instructions the operators `SendRecvCompute`, `RankId` and `DevicePrint` become is not public.

What keeps the others from being executed, after a search of public sources on 28 November 2026 (KLR, the vendor's SDK documentation and driver, and public quotations of the vendor's
instruction headers):

| call | what is missing |
|---|---|
| `dma_transpose` without indices | what the counts of both sides count, elements or tiles of 16 rows, and what the shapes say that two `MOVE_SHAPE` before it load: the header gives a step between rows of a tile of the source, none of the destination |
| `sendrecv` by DMA | how an address names the state buffer of the other core. The barrier that it uses is executed |
| random numbers, `activate2` | not looked for |
| collectives, `Send`, `Recv` | the other chips: Chipless runs one program on one chip |
| loops and branches | which place of the stream a target names. Two readings of the vendor's compiler and runtime agree on every other byte of `COMPARE_BRANCH`; of the target one says that it is a place in the stream, the other that the runtime finds a `PSEUDO_BRANCH_LABEL` by it, and labels of compiled programs hold no number |

Of the 78 files of the vendor's kernel library (aws-neuron/nki-library, d2ad3a5, without tests) that call `nki.isa`, 47 name nothing but calls that are executed. Of the other 31,
17 transpose by DMA, 15 send and receive, 3 have dynamic loops.

Of what is executed, these are weaker than their opcode: in what order `LDWEIGHTS_MX` takes columns and scales is as with `LDWEIGHTS`; `SELECT_REDUCE` puts its number where the
predicate does not hold, as the documentation says, while a reading of the firmware takes those elements to stay.
";

/// Which form of an opcode.
enum Form {
    Any,
    /// Transfers of this kind, of which less may be known than of others.
    Kind(&'static str, Support, Evidence),
    /// That these opcodes are used is documented, not how the other core is addressed.
    Unknown,
}

/// Operator of KLR (`KLR/Core/Operators.lean` of leanprover/KLR), call of NKI (`nki.isa`), opcodes. What an operator becomes is read off its
/// fields and the opcode's, and off public quotations of the vendor's headers; KLR itself names no opcodes.
#[rustfmt::skip]
const OPERATORS: &[(&str, &str, &[&str], Form)] = &[
    ("Activate, NcActivate", "activation, activation_reduce", &["ACTIVATE"], Form::Any),
    ("AffineSelect, NcAffineSelect", "affine_select", &["TENSOR_SCALAR_AFFINE_SELECT"], Form::Any),
    ("BatchNormAggregate", "bn_aggr", &["BATCH_NORM_AGGREGATE"], Form::Any),
    ("BatchNormStats", "bn_stats", &["BATCH_NORM_STATS2"], Form::Any),
    ("Copy, NcCopy", "tensor_copy", &["COPY"], Form::Any),
    ("CopyPredicated", "tensor_copy_predicated", &["COPY_PREDICATED"], Form::Any),
    ("DmaCopy, NcDmaCopy", "dma_copy", &["PSEUDO_DMA_DIRECT2D"], Form::Any),
    ("NcDmaCopy", "dma_copy with indices (oob_mode error or skip)", &["PSEUDO_DMA_DIRECT2D", "PSEUDO_EXTENSION"], Form::Kind("indirect", Support::Executed, Evidence::Assumed)),
    ("DmaCompute", "dma_compute", &["PSEUDO_DMA_TRIGGER"], Form::Any),
    ("DmaTranspose", "dma_transpose", &["PSEUDO_DMA_DIRECT2D", "PSEUDO_EXTENSION"], Form::Kind("transpose", Support::Listed, Evidence::Quoted)),
    ("DmaTranspose", "dma_transpose with indices", &["PSEUDO_DMA_DIRECT2D", "PSEUDO_EXTENSION"], Form::Kind("gather_transpose", Support::Executed, Evidence::Assumed)),
    ("Dropout", "dropout", &["DROPOUT"], Form::Any),
    ("FindIndex8", "nc_find_index8", &["FIND_INDEX8"], Form::Any),
    ("Iota", "iota", &["IOTA"], Form::Any),
    ("LoadMaskRegister", "nc_stream_shuffle", &["LOAD_MASK_SELECT"], Form::Any),
    ("LoadStationary", "nc_matmul", &["LDWEIGHTS"], Form::Any),
    ("LocalGather, NcLocalGather", "local_gather", &["INDIRECT_COPY"], Form::Any),
    ("MatMul, NcMatMul", "nc_matmul", &["MATMUL"], Form::Any),
    ("MatchReplace8", "nc_match_replace8", &["MATCH_REPLACE8"], Form::Any),
    ("MatchValueLoad", "nc_find_index8, nc_match_replace8", &["MATCH_VALUE_LOAD"], Form::Any),
    ("Max8", "max8", &["MAX8"], Form::Any),
    ("MemSet", "memset", &["MEMSET"], Form::Any),
    ("NcNGather", "nc_n_gather", &["POOL_BUFFER_LOAD", "GATHER"], Form::Any),
    ("NonzeroWithCount", "nonzero_with_count", &["NONZERO_WITH_COUNT"], Form::Any),
    ("QuantizeMX", "quantize_mx", &["QUANTIZE_MX"], Form::Any),
    ("MatMulMX", "nc_matmul_mx", &["LDWEIGHTS_MX", "MATMUL_MX"], Form::Any),
    ("RangeSelect, NcRangeSelect", "range_select", &["RANGE_SELECT"], Form::Any),
    ("Reciprocal", "reciprocal", &["RECIPROCAL"], Form::Any),
    ("ScalarTensorTensor, NcScalarTensorTensor", "scalar_tensor_tensor", &["SCALAR_TENSOR_TENSOR"], Form::Any),
    ("SelectReduce", "select_reduce", &["SELECT_REDUCE"], Form::Any),
    ("SequenceBounds", "sequence_bounds", &["GET_SEQUENCE_BOUNDS"], Form::Any),
    ("Shuffle", "nc_stream_shuffle", &["STREAM_SHUFFLE"], Form::Any),
    ("TensorPartitionReduce", "tensor_partition_reduce", &["CROSS_LANE_REDUCE"], Form::Any),
    ("TensorReduce", "tensor_reduce", &["TENSOR_REDUCE"], Form::Any),
    ("TensorScalar", "tensor_scalar", &["TENSOR_SCALAR"], Form::Any),
    ("TensorScalarCumulative", "tensor_scalar_cumulative", &["TENSOR_SCALAR_CACHE_CUMULATIVE"], Form::Any),
    ("TensorScalarReduce", "tensor_scalar_reduce", &["TENSOR_SCALAR_CACHE_REDUCE"], Form::Any),
    ("TensorTensor", "tensor_tensor", &["TENSOR_TENSOR"], Form::Any),
    ("TensorTensorScan", "tensor_tensor_scan", &["TENSOR_TENSOR_SCAN"], Form::Any),
    ("Transpose", "nc_transpose on VectorE", &["STREAM_TRANSPOSE"], Form::Any),
    ("SendRecv", "sendrecv by GpSimd", &["SB2SB_COLLECTIVE"], Form::Any),
    ("SendRecv", "sendrecv by DMA", &["PSEUDO_DMA_DIRECT2D", "PSEUDO_CORE_BARRIER"], Form::Unknown),
    ("CoreBarrier", "core_barrier", &["PSEUDO_CORE_BARRIER"], Form::Any),
    ("TensorLoad, TensorStore", "register_load, register_store", &["PSEUDO_TENSOR_LOAD", "PSEUDO_TENSOR_STORE"], Form::Any),
    ("RegisterMove, RegisterAluOp", "register_move, register arithmetic", &["MOVE", "ALU_OP"], Form::Any),
    ("CmpBranch", "dynamic loops and branches", &["COMPARE_BRANCH"], Form::Any),
    ("Exponential", "exponential", &["EXPONENTIAL"], Form::Any),
    ("Activate2", "activate2", &["ACTIVATE2"], Form::Any),
    ("Rng", "rng", &["RNG"], Form::Any),
    ("Rand2", "rand2", &["RAND2"], Form::Any),
    ("RandGetState", "rand_get_state", &["RAND_GET_STATE"], Form::Any),
    ("RandSetState", "rand_set_state", &["RAND_SET_STATE"], Form::Any),
    ("SetRngSeed", "set_rng_seed", &["PSEUDO_SET_RNG_SEED"], Form::Any),
    ("AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, CollectivePermute and its forms", "collectives of nki", &["PSEUDO_TRIGGER_COLLECTIVE2"], Form::Any),
    ("Send, Recv", "–", &["PSEUDO_SEND_RECV"], Form::Any),
    ("CurrentProcessingRankId", "–", &["PSEUDO_CUR_PROCESSING_RANK_ID"], Form::Any),
    ("ExtendedInst", "–", &["EXTENDED_INST"], Form::Any),
];

/// The section of the page about them.
pub(super) fn section(page: &mut String) {
    page.push_str(HEAD);
    for (operator, call, names, form) in OPERATORS {
        let opcodes: Vec<&Opcode> = names
            .iter()
            .filter_map(|name| Opcode::named(name))
            .collect();
        let least = |all: &dyn Fn(&Opcode) -> bool| opcodes.iter().all(|opcode| all(opcode));
        let is_executed = least(&|opcode| opcode.support == Support::Executed);
        let weakest = opcodes.iter().map(|opcode| opcode.evidence).min();
        let weakest = weakest.unwrap_or(Evidence::Assumed);
        let (of, support, evidence) = match form {
            Form::Kind(kind, support, evidence) => {
                (format!(" of kind `{kind}`"), *support, *evidence)
            }
            Form::Any if is_executed => (String::new(), Support::Executed, weakest),
            Form::Any | Form::Unknown => (String::new(), Support::Listed, weakest),
        };
        let names: Vec<String> = opcodes
            .iter()
            .enumerate()
            .map(|(at, opcode)| {
                let of = if at == 0 { of.as_str() } else { "" };
                format!("`{}` (`{:02x}`){of}", opcode.name, opcode.byte)
            })
            .collect();
        writeln!(
            page,
            "| {operator} | {call} | {} | {} | {} |",
            names.join(", "),
            support.name(),
            evidence.name()
        )
        .expect("a string takes everything that is written to it");
    }
    page.push_str(MISSING);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_that_is_named_exists() {
        for (operator, call, names, _) in OPERATORS {
            for name in *names {
                assert!(Opcode::named(name).is_some(), "{operator} {call}: {name}");
            }
        }
    }
}
