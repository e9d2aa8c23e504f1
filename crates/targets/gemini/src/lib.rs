//! Gemini scheduler IR: schedules of single- and multi-core accelerators for neural networks.
//!
//! A compiler's chain is model, front-end IR ([`Network`]), schedule ([`Schedule`]), assembly, trace. A schedule says for each
//! core which box of which layer it computes when ([`schedule::Workload`]), what its buffers hold at that moment, and what moves
//! between cores and DRAM. Several schedulers of one family write it, each in its own dialect; all are read into one type.

pub mod assembly;
pub mod bytes;
mod convert;
mod document;
pub mod energy;
mod filename;
mod function;
mod info;
mod json;
mod kernels;
mod lint;
pub mod lower;
pub mod machine;
mod names;
mod needs;
mod network;
mod operation;
mod outputs;
pub mod pictures;
mod place;
mod raw;
mod read;
pub mod replay;
pub mod rules;
pub mod schedule;
pub mod strided;
mod times;
pub mod traffic;
mod unzip;
mod write;

pub use assembly::Assembly;
pub use document::{Document, FileKind};
pub use filename::NameFacts;
pub use function::{OfOne, OfTwo, of_one, of_two};
pub use lint::{Given, lint};
pub use lower::{Array, Arrays, Data, Lowered, WeightData, lower};
pub use machine::{MACHINES, Machine};
pub use names::{Name, Names};
pub use network::{Layer, Network, QuantInfo};
pub use read::Error;
pub use schedule::{Dialect, Schedule};
pub use unzip::unzip;
