//! Hand-built descriptors against the definition and against known numbers.

mod build;
mod cases;
mod random;
mod reference;
