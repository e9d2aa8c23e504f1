//! What a node gives: each operation by its name.

use super::Reader;
use super::array::{Array, elements, types};
use super::constants::{constant_of, counted};
use super::node::Node;
use super::value::Value;

impl<'g> Reader<'g> {
    /// What a node gives.
    pub(super) fn results(&mut self, node: &Node<'g>) -> Result<Vec<Value>, String> {
        match node.kind {
            "Split" => Self::split(node),
            "LSTM" | "GRU" | "RNN" => self.recurrent(node),
            "DynamicQuantizeLSTM" => self.quantised_lstm(node),
            "DynamicQuantizeLinear" => self.quantise_by_range(node),
            "Dropout" if node.outputs.len() > 1 => {
                let x = node.input(0)?.clone();
                let all = vec![1.0; usize::try_from(elements(&x.shape())).unwrap_or(0)];
                let kept = Array::new(x.shape(), types::BOOL, all);
                Ok(vec![x, Value::Array(kept)])
            }
            "LayerNormalization" if node.outputs.len() > 1 => self.layer_norm_with_statistics(node),
            "If" => self.branch(node),
            "Loop" => self.unrolled(node),
            _ => self.result(node).map(|value| vec![value]),
        }
    }

    fn result(&mut self, node: &Node<'g>) -> Result<Value, String> {
        let kind = node.kind;
        match kind {
            "Constant" => constant_of(node),
            "Shape" | "Size" | "Range" | "ConstantOfShape" | "EyeLike" => counted(node),
            "Identity" | "Dropout" => node.input(0).cloned(),
            "Cast" => {
                let x = node.input(0)?.clone();
                self.cast(&x, node.int("to", 1) as i32)
            }
            "CastLike" => {
                let (x, like) = (node.input(0)?.clone(), node.input(1)?.kind());
                self.cast(&x, like)
            }
            "Reshape" => self.reshape(node),
            "Flatten" => self.flatten(node),
            "Squeeze" => Self::squeeze(node),
            "Unsqueeze" => Self::unsqueeze(node),
            "Transpose" => Self::transpose(node),
            "Expand" => Self::expand(node),
            "Tile" => self.tile(node),
            "Slice" => Self::slice(node),
            "Concat" => self.concat(node),
            "Pad" => self.pad(node),
            "Gather" => self.gather(node),
            "GatherElements" => self.gather_elements(node),
            "GatherND" => self.gather_nd(node),
            "ScatterND" | "ScatterElements" | "Scatter" => self.scatter(node),
            "DepthToSpace" | "SpaceToDepth" => self.depth_to_space(node),
            "Trilu" => self.trilu(node),
            "OneHot" => self.hot(node),
            "ReverseSequence" => self.reverse_sequence(node),
            "Conv" => self.convolution(node),
            "ConvTranspose" => self.transposed_convolution(node),
            "MaxPool" | "AveragePool" | "LpPool" => self.pool(node),
            "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => self.global_pool(node),
            "LRN" => self.local_response(node),
            "MatMul" => self.matmul(node),
            "Gemm" => self.gemm(node),
            "Einsum" => self.einsum(node),
            "Softmax" | "LogSoftmax" | "Hardmax" => self.softmax(node),
            "LayerNormalization" | "RMSNormalization" => self.layer_norm(node),
            "InstanceNormalization" | "GroupNormalization" | "MeanVarianceNormalization" => {
                self.map_norm(node)
            }
            "BatchNormalization" => self.batch_norm(node),
            "LpNormalization" => self.lp_norm(node),
            "ArgMax" | "ArgMin" => self.arg(node),
            "Resize" | "Upsample" => self.resize(node),
            "CumSum" => self.running_sum(node),
            "QuantizeLinear" => self.quantise(node),
            "DequantizeLinear" => self.dequantise(node),
            "MatMulInteger" | "ConvInteger" => self.integer_product(node),
            "QLinearMatMul" | "QLinearConv" => self.quantised_product(node),
            "DynamicQuantizeMatMul" | "MatMulIntegerToFloat" => self.product_of_stored(node),
            "FusedMatMul" => self.fused_product(node),
            "SkipLayerNormalization" => self.skip_layer_norm(node),
            _ if kind.starts_with("Reduce") => self.reduce(node),
            _ => self.of_elements(node),
        }
    }
}
