//! Dataflow graphs for spatial accelerators: the DFG text of DSAGEN and `OverGen`, and of the tools before them.
//!
//! [`Document::read`] takes a text to its tree of statements ([`syntax`]) and resolves the names to the [`Graph`] that everything else
//! works on.

pub mod adg;
pub mod evaluate;
pub mod graph;
mod info;
mod inputs;
mod kernels;
mod lint;
mod lower;
mod machine;
pub mod operations;
mod raw;
mod read;
mod recognize;
mod resolve;
mod rules;
pub mod syntax;
mod timing;

pub use graph::Graph;
pub use info::info;
pub use inputs::{DEFAULT_ROWS, Given, Input, Origin, course, inputs, unsigned};
pub use lint::lint;
pub use lower::lower;
pub use machine::{MACHINES, Machine};
pub use raw::raw;
pub use read::Document;
pub use recognize::recognize;
pub use rules::all as rules;
pub use timing::Mapped;
