//! Number crunching shared by the targets of Chipless.
//!
//! | module | does |
//! |---|---|
//! | [`cast`] | bytes of any [`ElementType`](chipless_model::ElementType) to numbers and back, with one rounding |
//! | [`strided`] | moves bytes between two [`Pattern`](chipless_model::Pattern)s |
//! | [`matrix`] | dense matrix products, floats and exact integers, of operands that are decoded on the way, too |
//! | [`window`] | convolution and pooling over images stored row by row, channels innermost |
//! | [`room`] | buffers that one task after the other uses |
//! | [`map`] | a file as a slice of bytes |
//! | [`npy`] | headers of numpy's files |
//!
//! # Results
//!
//! Moves, casts and integers are bit-identical everywhere. Sums of floats are formed in an order that the shapes alone
//! fix, never split over threads or vector lanes: they are bit-identical from run to run and for any number of threads.
//! The same numbers come out on all CPUs with fused multiply-add (x86-64 since 2013, every `AArch64`); elsewhere the last
//! place of a matrix product or a convolution may differ.
//!
//! # Safety
//!
//! This is the only crate of Chipless with `unsafe` code: vector loads and stores, strided moves whose bounds were
//! checked once for all of their runs, bytes seen as `f16`, fetching ahead, and the memory map. Every function of the interface is safe and checks its
//! arguments; none panics on any of them.

pub mod cast;
pub mod map;
pub mod matrix;
pub mod npy;
pub mod room;
pub mod strided;
pub mod window;

mod error;
mod number;
mod prefetch;
mod transpose;
mod wide;

pub use error::Error;
pub use number::{Number, Update};
pub use wide::{Body, wide};
