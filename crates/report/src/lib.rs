//! What Chipless says: findings, summaries, disassembly, deadlocks and traces.
//!
//! Every report is a pure function of what it is given, so the same run gives the same text, the same JSON and the same
//! trace, byte for byte. Nothing here reads a file or prints; the command line does. The JSON types are
//! [`serde::Serialize`]; their field docs are the contract, and fields are added but never change their meaning.

/// Version of all JSON outputs: it grows when a field changes its meaning or goes away, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

mod bars;
mod compare;
mod extents;
mod facts;
mod hexdump;
mod lanes;
mod pointer;
mod protobuf;
mod statistics;
mod style;
mod text;
mod timed_by;
mod transfers;
mod uses;

pub mod attribution;
pub mod card;
pub mod chrome;
pub mod deadlock;
pub mod device;
pub mod diff;
pub mod explain;
pub mod findings;
pub mod github;
pub mod gitlab;
pub mod info;
pub mod instant;
#[cfg(feature = "junit")]
pub mod junit;
pub mod list;
pub mod page;
pub mod perfetto;
pub mod registers;
pub mod sarif;
pub mod schedule_trace;
pub mod summary;
pub mod tables;
pub mod why;

#[cfg(test)]
mod example;

pub use bars::widest;
pub use compare::{
    Clipped, Comparison, FirstNan, NanSearch, Reference, Searched, SliceError, Tolerance,
    difference,
};
pub use facts::Facts;
pub use lanes::{joint, listed};
pub use statistics::{Statistics, number};
pub use style::{Paint, clean, quantity, wait};
pub use timed_by::TimedBy;
pub use transfers::{Carries, REPEATED, Transfers, repeated, transfers};
