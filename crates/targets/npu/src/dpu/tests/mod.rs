//! Hand-built descriptors against the definition and against known numbers.

mod build;
mod random;
mod reference;
