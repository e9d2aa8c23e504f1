//! Exploration of fabrics: what a spatial accelerator costs on an FPGA or as silicon, and the search for the one on which a set of kernels
//! runs best within a budget.
//!
//! ```text
//! Workloads ─▶ map onto the start ─▶ Design ─▶ moves ─▶ mappings repaired, judged ─▶ objective on the best system ─▶ keep or drop
//!                                      ▲                                                                               │
//!                                      └───────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! `docs/dsa-exploration.md` has the objective, the models with their errors, and the moves.

mod asic;
mod design;
mod models;
mod moves;
mod objective;
pub mod resources;
mod search;

pub use objective::{Budget, Kernel, KernelScore, Score, Variant};
pub use resources::{FIELDS, Parts, Usage, parts};
pub use search::{Explorer, Freeze, Move, Options, Point};
