//! What fuzzers try. Each function takes any bytes, and panics only if Chipless is at fault.
//!
//! `fuzz/` hands these bodies to libFuzzer (`cargo +nightly fuzz run npu_lower`); the smoke tests of this crate run them on the
//! fixtures, on random mutations of these and on random bytes, with any compiler.

mod differential;
mod files;
mod model;
mod mutate;
mod run;
mod spu;
mod tally;
mod targets;

pub use differential::{brute_force, gemini_network, neuron_round_trip};
pub use files::{
    device_workload, machine_read, neuron_assemble, npy_read, onnx_read, policy_read,
    schedule_tree, sweep_plan, yaml_read,
};
pub use model::model;
pub use mutate::{mutate_in_place, mutate_values};
pub use run::{dsa_run, neuron_run, npu_run, spu_run};
pub use spu::{spu_femto, spu_iospec, spu_plan, spu_saved};
pub use tally::tallied;
pub use targets::{
    adg_read, dfg_read, gemini_lower, gemini_read, neuron_lower, neuron_read, npu_lower, npu_read,
};
