//! Dataflow graphs for spatial accelerators: the DFG text of DSAGEN and OverGen, and of the tools before them.
//!
//! [`Document::read`] takes a text to its tree of statements ([`syntax`]) and resolves the names to the [`Graph`] that everything else
//! works on.

pub mod adg;
mod document;
pub mod graph;
mod info;
pub mod judge;
mod lint;
pub mod mapping;
pub mod operations;
pub mod performance;
pub mod pictures;
mod recognize;
mod resolve;
mod rules;
pub mod syntax;

pub use document::Document;
pub use graph::Graph;
pub use info::{info, raw};
pub use lint::lint;
pub use recognize::recognize;
pub use rules::all as rules;
