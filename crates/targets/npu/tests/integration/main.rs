//! What this crate promises to others, tested through its public door. One binary: building tests is what costs.

mod limits;
mod npu3720;
mod read;
