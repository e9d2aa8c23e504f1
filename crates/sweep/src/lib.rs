//! Sweeps: many runs by a plan, one row for each.
//!
//! A [`Plan`] is a text that names programs, figures of the machine and options. Its runs are numbered: programs outermost, then figures in the
//! order of the plan, then options. A [`Shard`] is every Nth run. [`run`] does the runs of a shard on as many threads as there are, keeps a
//! journal so that a killed sweep goes on where it was, and gives [`Results`]; [`Results::merge`] makes one of all shards. The same plan over
//! the same files gives the same bytes, whoever did which run in which order.
//!
//! docs/sweeps.md is the contract for other engines.

mod journal;
mod pareto;
mod plan;
mod reading;
mod results;
mod row;
mod run;
mod runs;
mod sample;
mod shard;
mod source;
pub mod tune;

pub use journal::forget;
pub use pareto::{Front, pareto};
pub use plan::Plan;
pub use results::Results;
pub use run::{carry, run};
pub use runs::{Progress, Request};
pub use shard::Shard;
pub use source::Carried;
