//! FQIR: the quantised integer program behind an IOSpec.
//!
//! The vendor's toolchain writes it as a *plan* (JSON, version 1): a graph with the subgraphs `INIT` (state at the start)
//! and `ARITH` (one time step), integers throughout. [`Plan::read`] reads one, [`lower`] makes it a
//! [`Program`](chipless_model::Program) whose tasks are the nodes, and [`Runner`] executes step after step.

mod info;
pub(crate) mod plan;
pub mod rules;
mod runner;
mod saved;
pub(crate) mod tensor;
mod write;

pub use crate::kernels::{Distances, Health, NodeHealth};
pub use crate::lower::OPERATIONS;
pub use crate::lower::{Lowered, Watching, lower, lower_watched};
pub use crate::machine::{MACHINE, Machine};
pub use info::{info, raw};
pub use plan::{Array, Declared, Graph, Node, Numbers, Origin, Plan, Tensor};
pub use runner::Runner;

/// Whether a text looks like a plan.
pub fn recognize(bytes: &[u8]) -> bool {
    let start = bytes
        .iter()
        .position(|b| !b.is_ascii_whitespace())
        .unwrap_or(bytes.len());
    if bytes.get(start) != Some(&b'{') {
        return false;
    }
    let head = &bytes[start..bytes.len().min(start + 4096)];
    let has = |name: &[u8]| head.windows(name.len()).any(|window| window == name);
    has(b"\"unbind_dim\"") || (has(b"\"subgraphs\"") && has(b"\"nodes\"")) || has(b"\"op_name\"")
}
