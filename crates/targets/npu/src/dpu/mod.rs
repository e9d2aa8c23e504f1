//! The DPU, the convolution engine of a tile.
//!
//! A task is a *variant* of an *invariant*: the invariant (352 bytes) says what a layer does on a tile, the variant
//! (224 bytes) which box of the output it computes. [`Workload::decode`] resolves both into one thing to do. It can say
//! which bytes it touches ([`Workload::accesses`]), do it ([`Workload::compute`], [`Workload::write`]), describe it
//! ([`Workload::operation`], [`Workload::details`]) and estimate its time ([`Workload::cycles`]).
//!
//! All addresses are offsets into the tile's own 2 MiB of address space; only the output stage reaches other tiles, by
//! halo regions. Facts come from Intel's open sources (register tables, NNRT headers, compiler) and from programs of the
//! vendor's compiler: what is marked unproven rests on the sources alone.

mod access;
mod activations;
mod compute;
mod cost;
mod dependence;
mod execute;
mod figures;
mod formats;
mod geometry;
mod grid;
mod kept;
mod lookup;
mod npu3720;
mod operation;
mod output;
mod post;
mod ranges;
mod region;
mod registers;
mod stencil;
mod weights;
mod workload;
mod zeros;

#[cfg(test)]
mod tests;

pub use execute::{Made, Partial};
pub use figures::{Cost, DpuFigures, Model, Multipliers, Stencil};
pub(crate) use ranges::physical;
pub use region::{Operand, Region, TILE_BYTES, TileMemory};
pub use registers::DecodeError;
pub use registers::{Register, register};
pub(crate) use workload::ACCUMULATORS;
pub use workload::{OutputBox, Workload};
