//! x
pub mod dpu;
