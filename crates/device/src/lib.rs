//! The device: many programs and contexts on one accelerator.
//!
//! ```text
//! stream ──▶ ring ──▶ doorbell ──▶ scheduler ──▶ place ──▶ firmware, tasks, firmware ──▶ host
//! ```
//!
//! A [`Workload`] has streams of jobs in contexts. [`simulate`] runs them on a device with these [`Figures`]: each job waits for its
//! place, holds it while its tasks run, and gives it up when the scheduler asks for it. Programs of files take as long as on an idle
//! machine while nothing shares with them, and run in a [`World`](chipless_sim::World) where something does; [synthetic](Synthetic)
//! programs compute, move bytes over resources that are shared max-min fairly, and see page tables and the memory's cache.
//!
//! Simulated time is a whole number of picoseconds. Nothing depends on the order of a hash table or on the number of threads. Memory
//! follows the jobs that are live.

mod agents;
mod arrivals;
mod cache;
mod device;
mod engine;
mod fields;
mod fifos;
pub mod figures;
mod job;
mod layers;
mod memory;
mod mmu;
mod network;
mod owner;
mod policy;
mod power;
mod programs;
pub mod quantity;
mod read;
mod rests;
pub mod result;
pub mod rules;
mod setup;
mod states;
mod statistics;
mod substreams;
mod synthetic;
mod totals;
mod touches;
mod traffic;
mod workload;
mod worst;
mod yields;

pub use agents::{Agent, AgentReport, Traffic};
pub use cache::CacheCounts;
pub use device::{Compute, simulate};
pub use engine::Engine;
pub use fifos::{Block, FifoCounts, FifoName, FifoReport, Writer};
pub use figures::{Change, Figures, Machine, Mistake, Resolved};
pub use job::{Breakdown, Preemption, Record, Status};
pub use layers::{Layer, layers};
pub use mmu::{Map, TlbCounts};
pub use power::{CLOCKS, Energy, Governor, PowerFigures};
pub use programs::{FileProgram, Route, Work};
pub use read::read;
pub use result::Report;
pub use setup::{Program, Setup, StreamSetup};
pub use substreams::MapCounts;
pub use synthetic::Synthetic;
pub use totals::Simulated;
pub use touches::Touches;
pub use traffic::Passed;
pub use workload::{ArrivalKind, Arrivals, Context, Source, Stream, Workload};
pub use worst::{WorstCase, worst_cases};
pub use yields::{Point, Yields, drained, yields};
