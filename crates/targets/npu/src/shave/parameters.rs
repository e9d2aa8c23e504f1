//! The scalars of an argument block: packed without alignment after the tensor references, in the order in which they are
//! read here; integers have 64 bits and floats 32 unless said otherwise.

use super::arguments::{ArgumentError, Invocation, Reader};
use super::boxes::{NonMaxSuppression, PositionSensitiveRoiPooling, RoiPooling};
use super::color::Color;
use super::dynamic::StridedSlice;
use super::elementwise::{self, Activation};
use super::embedding::EmbeddingBag;
use super::fourier::Fourier;
use super::index::{GatherElements, GatherNd, OneHot, ReverseSequence, ScatterElements, TopK};
use super::interpolate::Interpolate;
use super::movement::{Gather, ImagePatches, Pad, Permute, ScatterUpdate, SpaceBatch};
use super::normalize::{Lrn, Mvn1, Mvn6, NormalizeL2, RmsNorm, Softmax};
use super::operation::Operation;
use super::pool::{Pool, TilePosition};
use super::product::{Attention, Convolution};
use super::quantize::{Dequantize, FakeQuantize};
use super::recurrent::{GruSequence, LstmSequence};
use super::reduce::{CumulativeSum, Reduce};
use super::sample::{GridSample, RoiAlign};
use super::scalars;
use super::yolo::{RegionYolo, ReorgYolo};

/// The scalars of an invocation.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// The operation has none.
    None,
    /// Clamp, ELU, hard sigmoid, leaky `ReLU`, round, SELU, swish.
    Activation(Activation),
    /// Scaled dot product attention.
    Attention(Attention),
    /// Bucketize: intervals hold their right bound.
    Bucketize(bool),
    /// Convolution.
    Convolution(Convolution),
    /// NV12 and I420.
    Color(Color),
    /// CTC greedy decoder: repeats are merged.
    CtcGreedyDecoder(bool),
    /// Cumulative sum.
    CumulativeSum(CumulativeSum),
    /// Dequantize.
    Dequantize(Dequantize),
    /// Embedding bag.
    EmbeddingBag(EmbeddingBag),
    /// Fake quantize.
    FakeQuantize(FakeQuantize),
    /// Gather.
    Gather(Gather),
    /// Every Fourier transform.
    Fourier(Fourier),
    /// Gather elements.
    GatherElements(GatherElements),
    /// Gather ND.
    GatherNd(GatherNd),
    /// Grid sample.
    GridSample(GridSample),
    /// GRU sequence.
    GruSequence(GruSequence),
    /// Image patches.
    ImagePatches(ImagePatches),
    /// Interpolate.
    Interpolate(Interpolate),
    /// LRN.
    Lrn(Lrn),
    /// LSTM sequence.
    LstmSequence(LstmSequence),
    /// MVN1.
    Mvn1(Mvn1),
    /// MVN6.
    Mvn6(Mvn6),
    /// Non-max suppression.
    NonMaxSuppression(NonMaxSuppression),
    /// Normalize L2.
    NormalizeL2(NormalizeL2),
    /// One-hot.
    OneHot(OneHot),
    /// Pad.
    Pad(Pad),
    /// Permute.
    Permute(Permute),
    /// Average and max pools.
    Pool(Pool),
    /// Max pool with indices.
    PoolIndices(Pool, TilePosition),
    /// Position-sensitive ROI pooling.
    PositionSensitiveRoiPooling(PositionSensitiveRoiPooling),
    /// Every reduction.
    Reduce(Reduce),
    /// Region of YOLO.
    RegionYolo(RegionYolo),
    /// Reorg of YOLO.
    ReorgYolo(ReorgYolo),
    /// Reverse sequence.
    ReverseSequence(ReverseSequence),
    /// RMS norm.
    RmsNorm(RmsNorm),
    /// ROI align.
    RoiAlign(RoiAlign),
    /// ROI pooling.
    RoiPooling(RoiPooling),
    /// Scatter elements.
    ScatterElements(ScatterElements),
    /// Scatter update.
    ScatterUpdate(ScatterUpdate),
    /// Softmax and log softmax.
    Softmax(Softmax),
    /// Space to batch, and batch to space.
    SpaceBatch(SpaceBatch),
    /// Strided slice.
    StridedSlice(StridedSlice),
    /// Top-k.
    TopK(TopK),
}

/// Sizes, steps and pads of windows, at most.
pub(super) const MAX_WINDOW: i64 = 1 << 16;
/// Sizes and offsets of tensors, at most.
pub(super) const MAX_SIZE: i64 = u32::MAX as i64;

impl Parameters {
    /// Reads the scalars after the tensors of `invocation`; `present` is the mask of optional tensors.
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
