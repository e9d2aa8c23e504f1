//! Dataflow graphs for spatial accelerators: the DFG text of DSAGEN and OverGen, and of the tools before them.
//!
//! [`Document::read`] takes a text to its tree of statements ([`syntax`]) and resolves the names to the [`Graph`] that everything else
//! works on.

pub mod adg;
mod document;
pub mod graph;
pub mod judge;
pub mod mapping;
pub mod operations;
mod resolve;
mod rules;
pub mod syntax;

pub use document::Document;
pub use graph::Graph;
pub use rules::all as rules;
