//! What passed the shared part of the memory path until each of some instants, for pictures of a run.

/// What had passed until an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// When, in picoseconds.
    pub at_ps: u64,
    /// Bytes of transfers that had ended, over network, cache and memory.
    pub bytes: [u64; 3],
    /// Bytes that each other agent on the chip had moved, in the order of the workload.
    pub agents: Vec<u64>,
}

/// Instants so far. They lie farther apart the longer a simulation is.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    pub(crate) every: u64,
    pub(crate) next: u64,
    pub(crate) kept: Vec<Passed>,
}
