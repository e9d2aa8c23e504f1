//! What fuzzers try. Each function takes any bytes, and panics only if Chipless is at fault.
//!
//! `fuzz/` hands these bodies to libFuzzer (`cargo +nightly fuzz run npu_lower`); the smoke tests of this crate run them on the
//! fixtures, on random mutations of these and on random bytes, with any compiler.

mod model;
mod spu;
mod targets;

pub use model::model;
pub use spu::{spu_femto, spu_iospec, spu_plan, spu_saved};
pub use targets::{
    adg_read, dfg_read, gemini_lower, gemini_read, neuron_lower, neuron_read, npu_lower, npu_read,
};
