//! Which operation a kernel computes, by the name that the vendor's library gives its code.
//!
//! Names with an operation are those whose argument block and result a compiled program has proven, or that the compiler's
//! source describes like a proven one. Others stay without: the name alone does not say what the arguments are.

use super::operation::Operation::{self, *};

/// Sorted by name.
const NAMES: &[(&str, Operation)] = &[
    ("activation_abs", Abs),
    ("activation_acos", Acos),
    ("activation_acosh", Acosh),
    ("activation_asin", Asin),
    ("activation_asinh", Asinh),
    ("activation_atan", Atan),
    ("activation_atanh", Atanh),
    ("activation_ceil", Ceil),
    ("activation_clamp", Clamp),
    ("activation_cos", Cos),
    ("activation_cosh", Cosh),
    ("activation_elu", Elu),
    ("activation_erf", Erf),
    ("activation_exp", Exp),
    ("activation_floor", Floor),
    ("activation_gelu", Gelu),
    ("activation_hardsigmoid", HardSigmoid),
    ("activation_hswish", HardSwish),
    ("activation_log", Log),
    ("activation_mish", Mish),
    ("activation_negative", Negative),
    ("activation_relu", Relu),
    ("activation_selu", Selu),
    ("activation_sigmoid", Sigmoid),
    ("activation_sign", Sign),
    ("activation_sin", Sin),
    ("activation_sinh", Sinh),
    ("activation_softplus", Softplus),
    ("activation_softsign", Softsign),
    ("activation_sqrt", Sqrt),
    ("activation_swish", Swish),
    ("activation_tan", Tan),
    ("activation_tanh", Tanh),
    ("adaptive_max_pool", AdaptiveMaxPool),
    ("adaptive_pool", AdaptiveAveragePool),
    ("avg_pool", AveragePool),
    ("avg_pool16", AveragePoolDilated),
    ("batch_to_space", BatchToSpace),
    ("bucketize", Bucketize),
    ("convert", Convert),
    ("convert_p00", Convert),
    ("convert_p01", Convert),
    ("convert_p02", Convert),
    ("convert_p03", Convert),
    ("convolution", Convolution),
    ("cum_sum", CumulativeSum),
    ("dequantize", Dequantize),
    ("dynamic_quantize", DynamicQuantize),
    ("eltwise_add", Add),
    ("eltwise_and", LogicalAnd),
    ("eltwise_bitwise_and", BitwiseAnd),
    ("eltwise_bitwise_left_shift", ShiftLeft),
    ("eltwise_bitwise_not", BitwiseNot),
    ("eltwise_bitwise_or", BitwiseOr),
    ("eltwise_bitwise_right_shift", ShiftRight),
    ("eltwise_bitwise_xor", BitwiseXor),
    ("eltwise_div", Divide),
    ("eltwise_equal", Equal),
    ("eltwise_floor_mod", FloorMod),
    ("eltwise_greater", Greater),
    ("eltwise_greater_equal", GreaterOrEqual),
    ("eltwise_less", Less),
    ("eltwise_less_equal", LessOrEqual),
    ("eltwise_logical_not", LogicalNot),
    ("eltwise_logical_or", LogicalOr),
    ("eltwise_logical_xor", LogicalXor),
    ("eltwise_max", Maximum),
    ("eltwise_min", Minimum),
    ("eltwise_mod", TruncatedMod),
    ("eltwise_mul", Multiply),
    ("eltwise_not_equal", NotEqual),
    ("eltwise_power", Power),
    ("eltwise_select", Select),
    ("eltwise_select_p00", Select),
    ("eltwise_select_p01", Select),
    ("eltwise_squared_difference", SquaredDifference),
    ("eltwise_sub", Subtract),
    ("embedding_bag_offsets_sum", EmbeddingBagOffsets),
    ("extract_image_patches", ImagePatches),
    ("fake_quantize", FakeQuantize),
    ("fully_connected", FullyConnected),
    ("gather", Gather),
    ("gatherND", GatherNd),
    ("gather_elements", GatherElements),
    ("grid_sample", GridSample),
    ("gru_gates", GruGates),
    ("gru_sequence", GruSequence),
    ("interpolate", Interpolate),
    ("leaky_relu_fp16", LeakyRelu),
    ("log_softmax", LogSoftmax),
    ("lrn", Lrn),
    ("lstm_gates", LstmGates),
    ("lstm_sequence", LstmSequence),
    ("max_pool", MaxPool),
    ("max_pool8", MaxPoolIndices),
    ("mvn1", Mvn1),
    ("mvn1_p00", Mvn1),
    ("mvn6", Mvn6),
    ("nms", NonMaxSuppression),
    ("normalize_l2", NormalizeL2),
    ("onehot", OneHot),
    ("pad", Pad),
    ("prelu_fp16", Prelu),
    ("reduce_l1", ReduceL1),
    ("reduce_l2", ReduceL2),
    ("reduce_max", ReduceMax),
    ("reduce_mean", ReduceMean),
    ("reduce_min", ReduceMin),
    ("reduce_prod", ReduceProd),
    ("reduce_sum", ReduceSum),
    ("reorder", Permute),
    ("reverse_sequence", ReverseSequence),
    ("rms_norm", RmsNorm),
    ("rms_norm_p00", RmsNorm),
    ("roi_align", RoiAlign),
    ("roi_pooling", RoiPooling),
    ("rope", RotaryEmbedding),
    ("rope_ilv", RotaryEmbedding),
    ("round_fp16", Round),
    ("scatter_elements_update", ScatterElements),
    ("scatter_nd_update", ScatterNd),
    ("scatter_update", ScatterUpdate),
    ("softmax", Softmax),
    ("space_to_batch", SpaceToBatch),
    ("topk", TopK),
];

/// The operation of a kernel with this name.
pub fn operation_of(name: &str) -> Option<Operation> {
    let found = NAMES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(NAMES[found].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_every_operation_has_one() {
        for (name, operation) in NAMES {
            assert_eq!(operation_of(name), Some(*operation), "{name}");
        }
        for operation in Operation::ALL {
            assert!(NAMES.iter().any(|(_, o)| o == operation), "{operation}");
        }
        assert_eq!(operation_of("unheard_of"), None);
    }
}
