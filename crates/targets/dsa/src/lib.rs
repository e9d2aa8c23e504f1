//! Dataflow graphs for spatial accelerators: the DFG text of DSAGEN and `OverGen`, and of the tools before them.
//!
//! [`Document::read`] takes a text to its tree of statements ([`syntax`]) and resolves the names to the [`Graph`] that everything else
//! works on.

mod document;
pub mod graph;
mod info;
mod lint;
pub mod operations;
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
