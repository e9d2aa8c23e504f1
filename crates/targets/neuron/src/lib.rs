//! AWS NEFF programs for Trainium and Inferentia.
//!
//! A NEFF is a 1024-byte header and a tarball. The tarball holds a tree of files that name each other:
//!
//! ```text
//! neff.json ──▶ kelf-0.json ──▶ sg00/def.json ─┬▶ PE.json, Activation.json, DVE.json, Pool.json, SP.json ─▶ tables
//!  inputs,       target,         queue sets,   ├▶ PE.bin, … (64-byte instruction slots), debug files
//!  outputs       subgraphs       variables     └▶ constants (.npy or raw)
//! ```
//!
//! Reading happens in two steps: [`Container::open`] takes the file apart into members, [`Neff::read`] follows the
//! names and gives the typed document, borrowed from the members' bytes. Nothing is judged then but what cannot be read
//! at all; a member that is named but missing leaves a `None`, and [`lint`] tells what breaks the format's rules.

mod constant;
mod container;
mod def;
mod disassemble;
mod engine;
pub mod features;
mod graph;
mod header;
mod info;
mod json;
mod kernels;
mod lint;
mod lower;
pub mod machine;
pub mod memory;
pub mod pack;
pub mod profile;
mod raw;
mod read;
pub mod rules;
mod runtime;
mod semaphores;
mod sets;
pub mod stream;
mod tables;
mod triggers;
mod write;

pub use constant::{Array, Constant};
pub use container::{Container, Member, Packing};
pub use def::{
    Definition, DynamicDma, EngineNames, FabricPath, Owner, QueueSet, QueueType,
    StateBufferReservation, Variable, VariableType,
};
pub use disassemble::disassemble;
pub use engine::{
    AccessPattern, ConstantType, DataType, Descriptor, DmaEntry, EngineFile, MAX_DIMENSIONS,
    Operation,
};
pub use graph::{
    Architecture, Engine, Graph, GraphAttributes, GraphNode, Interface, Kelf, KelfGraph,
    NodeAttributes, Tensor,
};
pub use header::{HEADER_BYTES, HashState, Header};

/// Whether a file looks like a NEFF, by its header or by what follows it.
pub fn recognize(bytes: &[u8]) -> bool {
    Header::looks_like(bytes)
}

pub use info::info;
pub use json::{Error, Name, Source};
pub use lint::lint;
pub use lower::{Lowered, attach_labels, lower, lower_for_listing};
pub use memory::MemoryPlan;
pub use raw::raw;
pub use read::{EngineRoom, Neff, Subgraph, Table};
pub use runtime::Runtime;
pub use tables::{DraftFunction, DraftFunctions};
pub use write::{Draft, DraftEngine, DraftSubgraph};
