//! The scalars of an invocation, by operation.

use super::activation::Activation;
use super::boxes::{NonMaxSuppression, PositionSensitiveRoiPooling, RoiPooling};
use super::color::Color;
use super::dynamic::StridedSlice;
use super::embedding::EmbeddingBag;
use super::fourier::Fourier;
use super::index::{GatherElements, GatherNd, OneHot, ReverseSequence, ScatterElements, TopK};
use super::interpolate::Interpolate;
use super::movement::{Gather, ImagePatches, Pad, Permute, ScatterUpdate, SpaceBatch};
use super::normalize::{Lrn, Mvn1, Mvn6, NormalizeL2, RmsNorm, Softmax};
use super::pool::{Pool, TilePosition};
use super::product::{Attention, Convolution};
use super::quantize::{Dequantize, FakeQuantize};
use super::recurrent::{GruSequence, LstmSequence};
use super::reduce::{CumulativeSum, Reduce};
use super::sample::{GridSample, RoiAlign};
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
