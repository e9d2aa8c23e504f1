//! Hand-built descriptors against the definition and against known numbers.

// Results are compared to the last bit.
#![allow(clippy::float_cmp)]

mod build;
mod cases;
mod limits;
mod random;
mod reference;
mod stencil;
mod zeros;
