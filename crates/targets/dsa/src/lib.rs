//! Dataflow graphs for spatial accelerators: the DFG text of DSAGEN and OverGen, and of the tools before them.

pub mod graph;
pub mod operations;
mod resolve;
mod rules;
pub mod syntax;

pub use graph::Graph;
