//! From an invocation and its input tensors to its output tensors.

use super::interpolate::{CoordinateMode, InterpolateMode, NearestMode};
use super::invocation::Invocation;
use super::operation::Operation;
use super::parameters::Parameters;
use super::sample::RegionAlignment;
use super::tensor::{Call, Shape, Tensor, Values};
use super::{
    dynamic, elementwise, embedding, index, movement, normalize, pool, product, quantize, recurrent,
};
use chipless_model::Fault;

/// Computes the outputs of an invocation, in their order.
///
/// `inputs` are the tensors that [`Invocation::inputs`] name, with their shapes. Floating-point operations are computed in
/// binary32 (sums in binary64 where the operation says so); values of floating-point outputs are to be rounded once, to
/// their element type, by whoever stores them. Values of integer outputs are within the range of their type.
///
/// # Errors
///
/// A [`Fault`] of the program where tensors or data do not fit the operation; an unsupported one for operations and
/// options that Chipless does not execute.
pub fn evaluate(invocation: &Invocation, inputs: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let outputs: Vec<&Shape> = invocation
        .outputs
        .iter()
        .map(|tensor| &tensor.shape)
        .collect();
    let call = Call {
        operation: invocation.operation,
        inputs,
        outputs: &outputs,
    };
    if inputs.len() != invocation.inputs.len() {
        return Err(call.fault(format_args!(
            "expected {} inputs, found {}",
            invocation.inputs.len(),
            inputs.len()
        )));
    }
    for (number, (tensor, input)) in invocation.inputs.iter().zip(inputs).enumerate() {
        if tensor.shape != input.shape {
            return Err(call.fault(format_args!(
                "input {number}: expected {}, found {}",
                tensor.shape, input.shape
            )));
        }
        Tensor::check(&input.shape, &input.values)?;
    }
    let results = results(call, &invocation.parameters)?;
    if results.len() != outputs.len() {
        return Err(call.fault(format_args!(
            "expected {} outputs, found {}",
            results.len(),
            outputs.len()
        )));
    }
    let stored = outputs.iter().zip(results).map(|(shape, values)| {
        let values = match values {
            Values::Integer(values) => Values::Integer(
                values
                    .into_iter()
                    .map(|value| quantize::wrap(shape.element, value))
                    .collect(),
            ),
            floats @ Values::Float(_) => floats,
        };
        Tensor::new((*shape).clone(), values).map_err(|fault| call.fault(fault))
    });
    stored.collect()
}

fn results(call: Call<'_>, parameters: &Parameters) -> Result<Vec<Values>, Fault> {
    match parameters {
        Parameters::Activation(activation) => activation.evaluate(call),
        Parameters::Attention(attention) => attention.evaluate(call),
        Parameters::Bucketize(right) => embedding::bucketize(call, *right),
        Parameters::Convolution(convolution) => convolution.evaluate(call),
        Parameters::CtcGreedyDecoder(merge) => index::ctc_greedy_decoder(call, *merge),
        Parameters::CumulativeSum(sum) => sum.evaluate(call),
        Parameters::Dequantize(dequantize) => dequantize.evaluate(call),
        Parameters::EmbeddingBag(bag) => bag.evaluate(call),
        Parameters::FakeQuantize(quantize) => quantize.evaluate(call),
        Parameters::Gather(gather) => gather.evaluate(call),
        Parameters::Color(color) => color.evaluate(call),
        Parameters::Fourier(fourier) => fourier.evaluate(call),
        Parameters::GatherElements(gather) => gather.evaluate(call),
        Parameters::GatherNd(gather) => gather.evaluate(call),
        Parameters::GridSample(sample) => sample.evaluate(call),
        Parameters::GruSequence(gru) => return gru.evaluate(call),
        Parameters::ImagePatches(patches) => patches.evaluate(call),
        Parameters::Interpolate(interpolate) => interpolate.evaluate(call),
        Parameters::Lrn(lrn) => lrn.evaluate(call),
        Parameters::LstmSequence(lstm) => return lstm.evaluate(call),
        Parameters::Mvn1(mvn) => mvn.evaluate(call),
        Parameters::Mvn6(mvn) => mvn.evaluate(call),
        Parameters::NonMaxSuppression(suppression) => return suppression.evaluate(call),
        Parameters::NormalizeL2(normalize) => normalize.evaluate(call),
        Parameters::OneHot(one_hot) => one_hot.evaluate(call),
        Parameters::Pad(pad) => pad.evaluate(call),
        Parameters::Permute(permute) => permute.evaluate(call),
        Parameters::Pool(pool) => pool.evaluate(call),
        Parameters::PoolIndices(pool, tile) => return pool.with_indices(call, tile),
        Parameters::PositionSensitiveRoiPooling(pooling) => pooling.evaluate(call),
        Parameters::Reduce(reduce) => reduce.evaluate(call),
        Parameters::RegionYolo(region) => region.evaluate(call),
        Parameters::ReorgYolo(reorg) => reorg.evaluate(call),
        Parameters::ReverseSequence(reverse) => reverse.evaluate(call),
        Parameters::RmsNorm(norm) => norm.evaluate(call),
        Parameters::RoiAlign(align) => align.evaluate(call),
        Parameters::RoiPooling(pooling) => pooling.evaluate(call),
        Parameters::ScatterElements(scatter) => scatter.evaluate(call),
        Parameters::ScatterUpdate(scatter) => scatter.evaluate(call),
        Parameters::Softmax(softmax) => softmax.evaluate(call),
        Parameters::SpaceBatch(blocks) => {
            blocks.evaluate(call, call.operation == Operation::SpaceToBatch)
        }
        Parameters::StridedSlice(slice) => slice.evaluate(call),
        Parameters::TopK(top_k) => return top_k.evaluate(call),
        Parameters::None => match call.operation {
            Operation::AdaptiveAveragePool | Operation::AdaptiveMaxPool => {
                return pool::adaptive(call);
            }
            Operation::Convert => quantize::convert(call),
            Operation::DynamicExpand => dynamic::expand(call),
            Operation::DynamicReshape => dynamic::reshape(call),
            Operation::Roll => movement::roll(call),
            Operation::ShapeOf => dynamic::shape_of(call),
            Operation::DynamicQuantize => return quantize::dynamic_quantize(call),
            Operation::EmbeddingBagPacked => embedding::packed(call),
            Operation::GruGates => recurrent::gru_gates(call),
            Operation::FullyConnected => product::fully_connected(call),
            Operation::LstmGates => return recurrent::lstm_gates(call),
            Operation::RotaryEmbedding
            | Operation::RotaryEmbeddingHalf
            | Operation::RotaryEmbeddingHalfInterleaved
            | Operation::RotaryEmbeddingInterleaved => normalize::rotary_embedding(call),
            Operation::ScatterNd => index::scatter_nd(call),
            Operation::Select => elementwise::select(call),
            Operation::Tile => movement::tile(call),
            _ => elementwise::evaluate(call),
        },
    }
    .map(|values| vec![values])
}

impl Invocation {
    /// The option of this invocation whose meaning no compiled program has proven; `None` where all are.
    pub fn unproven(&self) -> Option<&'static str> {
        use super::index::Reduction;
        match &self.parameters {
            Parameters::Activation(super::Activation::Round { half_away: true }) => {
                Some("rounding of halves away from zero")
            }
            Parameters::Interpolate(interpolate) => match (
                interpolate.mode,
                interpolate.coordinate_mode,
                interpolate.nearest_mode,
            ) {
                (_, CoordinateMode::TfHalfPixelForNearest, _) => {
                    Some("coordinates of tf_half_pixel_for_nn")
                }
                (InterpolateMode::Nearest, _, NearestMode::Simple) => Some("nearest mode simple"),
                _ => None,
            },
            Parameters::Lrn(lrn) if lrn.axes.len() > 1 => Some("local response over several axes"),
            Parameters::Mvn1(mvn) if mvn.across_channels => {
                Some("mean and variance across channels")
            }
            Parameters::Mvn1(mvn) if !mvn.normalize_variance => {
                Some("normalisation of the mean alone")
            }
            Parameters::Mvn6(mvn) if !mvn.normalize_variance => {
                Some("normalisation of the mean alone")
            }
            Parameters::Mvn6(mvn) if mvn.scale || mvn.bias => {
                Some("scale and bias of mean and variance normalisation")
            }
            Parameters::NormalizeL2(normalize) if normalize.epsilon_is_minimum => {
                Some("epsilon as the least norm")
            }
            Parameters::RoiAlign(align) if align.maximum => Some("maximum of region samples"),
            Parameters::RoiAlign(align)
                if align.alignment != RegionAlignment::HalfPixelForNearest =>
            {
                Some("alignment of regions")
            }
            Parameters::ScatterElements(scatter)
                if !matches!(scatter.reduction, Reduction::None | Reduction::Sum) =>
            {
                Some("reduction of scattered elements")
            }
            _ => None,
        }
    }
}
