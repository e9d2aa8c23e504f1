//! SHAVE kernels: operations that NPU4 programs leave to prebuilt code for a vector processor.
//!
//! That code is never executed here. A kernel is identified by its code ([`KernelTable`]), its argument block is decoded
//! ([`Section::decode`]) and its operation is computed by an implementation of our own ([`evaluate`]). The facts come from
//! programs made by the vendor's compiler and the results that they must give; nothing was measured on a chip, and how
//! the chip approximates an exponential, for example, cannot be seen in a program.

mod activation;
mod arguments;
mod boxes;
mod color;
mod decode;
mod dependence;
mod dynamic;
mod elementwise;
mod embedding;
mod evaluate;
mod exponential;
mod fourier;
mod halves;
mod import;
mod index;
mod interpolate;
mod invocation;
mod movement;
mod names;
mod normalize;
mod operation;
mod parameters;
mod pool;
mod product;
mod quantize;
mod recurrent;
mod reduce;
mod sample;
mod scalars;
mod table;
mod tensor;
#[cfg(test)]
mod tests;
mod volume;
mod yolo;

pub use activation::Activation;
pub use arguments::{ArgumentError, Section};
pub use boxes::{NonMaxSuppression, PositionSensitiveRoiPooling, RoiPooling};
pub use color::Color;
pub use dependence::dependent_elements;
pub use dynamic::StridedSlice;
pub use embedding::EmbeddingBag;
pub use evaluate::evaluate;
pub use fourier::Fourier;
pub(crate) use halves::HalfFunction;
pub use import::{LibraryKernel, import, table_text};
pub use index::{
    GatherElements, GatherNd, OneHot, Reduction, ReverseSequence, ScatterElements, TopK, TopKOrder,
};
pub use interpolate::{CoordinateMode, Interpolate, InterpolateMode, NearestMode};
pub use invocation::{Invocation, TensorRef};
pub use movement::{
    Gather, ImagePatches, Pad, PadMode, PatchPadding, Permute, ScatterUpdate, SpaceBatch,
};
pub use names::operation_of;
pub use normalize::{EpsilonPlace, Lrn, Mvn1, Mvn6, NormalizeL2, RmsNorm, Softmax};
pub use operation::{Operation, TensorRole, UnknownOperation};
pub use parameters::Parameters;
pub use pool::{Pool, TilePosition};
pub use product::{Attention, Convolution};
pub use quantize::{Dequantize, FakeQuantize};
pub use recurrent::{GruSequence, LstmSequence};
pub use reduce::{CumulativeSum, Reduce};
pub use sample::{GridSample, Padding, RegionAlignment, RoiAlign, SampleMode};
pub use table::{CodeHash, Identity, KernelTable, TableError};
pub use tensor::{Shape, Tensor, Values};
pub use yolo::{RegionYolo, ReorgYolo};
