//! The scalars of an argument block: packed without alignment after the tensor references, in the order in which they are
//! read here; integers have 64 bits and floats 32 unless said otherwise.

use super::arguments::{ArgumentError, Reader, Section};
use super::color::Color;
use super::elementwise;
use super::embedding::EmbeddingBag;
use super::fourier::Fourier;
use super::index::{GatherElements, ReverseSequence};
use super::invocation::Invocation;
use super::movement::{Permute, ScatterUpdate};
use super::normalize::RmsNorm;
use super::operation::Operation;
use super::operation::TensorRole;
use super::parameters::{MAX_SIZE, Parameters};
use super::product::Attention;
use super::quantize::FakeQuantize;
use super::recurrent::LstmSequence;
use super::reduce::Reduce;
use super::scalars;
use super::yolo::ReorgYolo;
use chipless_model::Pattern;

impl Section<'_> {
    /// Decodes the block at an offset as that of an operation.
    pub fn decode(&self, operation: Operation, offset: u64) -> Result<Invocation, ArgumentError> {
        let mut reader = self.reader(offset);
        let mut invocation = Invocation {
            operation,
            inputs: Vec::new(),
            outputs: Vec::new(),
            scratch: Vec::new(),
            parameters: Parameters::None,
        };
        let (tensors, present) = reader.tensors(operation)?;
        let roles = roles(operation, tensors.len());
        for (role, tensor) in roles.into_iter().zip(tensors) {
            match role {
                TensorRole::Input => invocation.inputs.push(tensor),
                TensorRole::Output => invocation.outputs.push(tensor),
                TensorRole::Scratch => invocation.scratch.push(tensor),
            }
        }
        if elementwise::is_linear(operation) {
            for tensor in invocation.inputs.iter_mut().chain(&mut invocation.outputs) {
                let bits = tensor.shape.elements() * tensor.shape.element.bits();
                tensor.pattern = Pattern::contiguous(0, bits.div_ceil(8));
            }
        }
        invocation.parameters = Parameters::decode(&mut reader, &invocation, present)?;
        Ok(invocation)
    }
}

/// The roles of the tensors of a block that has this many.
fn roles(operation: Operation, count: usize) -> Vec<TensorRole> {
    let roles = operation.roles();
    match operation {
        // Inputs come and go; there is one output, the last.
        Operation::EmbeddingBagPacked
        | Operation::FullyConnected
        | Operation::Interpolate
        | Operation::Mvn6
        | Operation::StridedSlice => (1..=count)
            .map(|number| {
                if number < count {
                    TensorRole::Input
                } else {
                    TensorRole::Output
                }
            })
            .collect(),
        // The scratch stands there twice, around the output.
        Operation::ScaledDotProductAttention => {
            let inputs = count.saturating_sub(3);
            [&vec![TensorRole::Input; inputs][..], &roles[3..]].concat()
        }
        // Lengths of sequences, or thresholds of overlap and score, are inputs among the others.
        Operation::LstmSequence | Operation::LstmSequenceDpu | Operation::NonMaxSuppression => {
            let (inputs, rest) = roles.split_at(2);
            let more = count.saturating_sub(roles.len());
            [inputs, &vec![TensorRole::Input; more], rest].concat()
        }
        _ => roles.to_vec(),
    }
}

impl Parameters {
    /// Reads the scalars after the tensors of `invocation`; `present` is the mask of optional tensors.
    #[expect(clippy::too_many_lines, reason = "a table: one arm for each operation")]
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        invocation: &Invocation,
        present: u64,
    ) -> Result<Parameters, ArgumentError> {
        let rank = invocation
            .inputs
            .first()
            .map_or(0, |tensor| tensor.shape.dims.len());
        let output = invocation.outputs.first().map(|tensor| &tensor.shape);
        let operation = invocation.operation;
        Ok(match operation {
            _ if elementwise::has_figures(operation) => scalars::activation(reader, operation)?,
            Operation::BatchToSpace | Operation::SpaceToBatch => {
                scalars::space_batch(reader, rank)?
            }
            Operation::Bucketize => Parameters::Bucketize(reader.flag("with right bound")?),
            Operation::Convolution => scalars::convolution(reader)?,
            Operation::EmbeddingBagOffsets => Parameters::EmbeddingBag(EmbeddingBag {
                default: reader.i64("default index")?,
            }),
            Operation::FakeQuantize => Parameters::FakeQuantize(FakeQuantize {
                levels: reader.between("levels", 2, MAX_SIZE)? as u32,
            }),
            Operation::Gather => scalars::gather(reader, rank)?,
            Operation::GruSequence | Operation::GruSequenceLastPart => {
                scalars::gru_sequence(reader, operation)?
            }
            Operation::ImagePatches => scalars::image_patches(reader)?,
            Operation::NonMaxSuppression => scalars::non_max_suppression(reader, invocation)?,
            Operation::Pad => scalars::pad(reader, rank)?,
            Operation::Permute => Parameters::Permute(Permute {
                from: (0..rank)
                    .map(|_| reader.axis("permutation", rank))
                    .collect::<Result<_, _>>()?,
            }),
            Operation::RoiPooling => scalars::roi_pooling(reader)?,
            Operation::ScatterUpdate => Parameters::ScatterUpdate(ScatterUpdate {
                axis: reader.axis("axis", rank)?,
            }),
            Operation::CtcGreedyDecoder => {
                Parameters::CtcGreedyDecoder(reader.flag("merging of repeats")?)
            }
            Operation::CumulativeSum => scalars::cumulative_sum(reader, rank)?,
            Operation::Dequantize => scalars::dequantize(reader, invocation, rank)?,
            Operation::Fourier
            | Operation::InverseFourier
            | Operation::InverseRealFourier
            | Operation::RealFourier => Parameters::Fourier(Fourier {
                axes: reader.axes(rank)?,
            }),
            Operation::GatherElements => Parameters::GatherElements(GatherElements {
                axis: reader.axis("axis", rank)?,
            }),
            Operation::I420ToRgb | Operation::Nv12ToRgb => Parameters::Color(Color {
                blue_first: reader.choice("order of the channels", &[false, true])?,
            }),
            Operation::GatherNd => scalars::gather_nd(reader)?,
            Operation::GridSample => scalars::grid_sample(reader)?,
            Operation::Interpolate => scalars::interpolate(reader)?,
            Operation::Lrn => scalars::lrn(reader, rank)?,
            // From release 2026.1.0 on sixteen bytes of ones follow; their meaning is not known.
            Operation::LstmSequence | Operation::LstmSequenceDpu => {
                Parameters::LstmSequence(LstmSequence {
                    lengths: invocation.inputs.len() > 5,
                    by_gate: operation == Operation::LstmSequenceDpu,
                    reverse: reader.choice("direction", &[false, true])?,
                })
            }
            Operation::Mvn1 => scalars::mvn1(reader)?,
            Operation::Mvn6 => scalars::mvn6(reader, rank, present)?,
            Operation::NormalizeL2 => scalars::normalize_l2(reader, rank)?,
            Operation::OneHot => scalars::one_hot(reader, output)?,
            Operation::AveragePool | Operation::AveragePoolDilated | Operation::MaxPool => {
                Parameters::Pool(scalars::pool(reader, operation)?)
            }
            Operation::MaxPoolIndices => scalars::max_pool_indices(reader, operation)?,
            Operation::ReduceAnd
            | Operation::ReduceL1
            | Operation::ReduceL2
            | Operation::ReduceMax
            | Operation::ReduceMean
            | Operation::ReduceMin
            | Operation::ReduceOr
            | Operation::ReduceProd
            | Operation::ReduceSum => {
                // The output keeps the dims whatever this says.
                reader.flag("keep dims")?;
                Parameters::Reduce(Reduce {
                    axes: reader.axes(rank)?,
                })
            }
            Operation::PositionSensitiveRoiPooling => scalars::position_sensitive(reader)?,
            Operation::RegionYolo => scalars::region_yolo(reader)?,
            Operation::ReorgYolo => Parameters::ReorgYolo(ReorgYolo {
                stride: reader.between("stride", 1, MAX_SIZE)? as u32,
            }),
            Operation::ReverseSequence => Parameters::ReverseSequence(ReverseSequence {
                batch_axis: reader.axis("batch axis", rank)?,
                sequence_axis: reader.axis("sequence axis", rank)?,
            }),
            Operation::RmsNorm => Parameters::RmsNorm(RmsNorm {
                epsilon: reader.f32("epsilon")?,
            }),
            Operation::RoiAlign => scalars::roi_align(reader)?,
            // The mode once more: releases number the modes unlike, the kernel says what is computed.
            Operation::RotaryEmbedding
            | Operation::RotaryEmbeddingHalf
            | Operation::RotaryEmbeddingHalfInterleaved
            | Operation::RotaryEmbeddingInterleaved => {
                reader.between("mode", 0, 3)?;
                Parameters::None
            }
            Operation::ScaledDotProductAttention => {
                reader.between("flag", 0, 1)?;
                Parameters::Attention(Attention {
                    mask: present & 1 << 3 != 0,
                    scale: present & 1 << 4 != 0,
                })
            }
            Operation::ScatterElements => scalars::scatter_elements(reader, rank)?,
            Operation::Softmax | Operation::LogSoftmax | Operation::ExpStabilized => {
                scalars::softmax(reader, invocation)?
            }
            // Whether elements stay where they are in memory of the upper bounds: at these it is all the same.
            Operation::DynamicReshape => {
                reader.choice("only the shape", &[false, true])?;
                Parameters::None
            }
            Operation::StridedSlice => scalars::strided_slice(reader, invocation)?,
            Operation::TopK => scalars::top_k(reader, rank)?,
            _ => Parameters::None,
        })
    }
}
