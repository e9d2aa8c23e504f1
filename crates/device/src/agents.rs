//! Other agents on the chip: CPU, GPU and media, as traffic that the NPU shares network, cache and memory with.
//!
//! An agent wants a rate. Steady traffic is a part of the resources that is claimed at all times; it costs no events. Bursts are transfers
//! that touch a working set in the memory-side cache, and so are those of a recorded trace.

use schemars::JsonSchema;
use serde::Serialize;

/// An agent of a workload.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name, which `cache.mask.NAME` and `agent.NAME.rate` use.
    pub name: String,
    /// Numbers of the resources that its traffic passes.
    pub path: Vec<u8>,
    /// What it moves, and when.
    pub traffic: Traffic,
    /// What it wants, before changes.
    pub figures: AgentFigures,
}

/// How the traffic of an agent comes.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Evenly.
    Steady,
    /// So many bytes at a time, from a working set of so many that it reads again and again.
    Bursts(u64, u64),
    /// At these times, in picoseconds: bytes, and where they begin.
    Recorded(Vec<(u64, u64, u64)>),
}

/// What an agent has moved.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Bytes a second that it wanted; null for a recorded trace.
    pub wanted_bytes_per_s: Option<f64>,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Bytes a second, over the whole time.
    pub bytes_per_s: f64,
}

/// What another agent on the chip wants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AgentFigures {
    /// Bytes a second; `None` where a trace says.
    pub rate: Option<f64>,
    /// What it gets of a full resource against one transfer of the NPU.
    pub weight: f64,
}
