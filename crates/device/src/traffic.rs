//! What passed the shared part of the memory path until each of some instants, for pictures of a run.

use crate::device::Device;
use crate::figures::{CACHE, DDR, NETWORK};

/// Instants that are kept at most.
const KEPT: usize = 2048;

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
    every: u64,
    next: u64,
    pub(crate) kept: Vec<Passed>,
}

impl Device<'_, '_, '_> {
    /// Keeps what has passed until now, where pictures are wanted. It reads what is counted anyway, so no result depends on it.
    pub(crate) fn sample(&mut self) {
        let at = self.memory.network.updated();
        let sampler = &self.sampler;
        if !self.setup.with_traffic || at < sampler.next {
            return;
        }
        if sampler.kept.last().is_some_and(|last| last.at_ps >= at) {
            return;
        }
        let carried = &self.memory.network.carried;
        let bytes = [NETWORK, CACHE, DDR].map(|resource| carried[usize::from(resource)]);
        let agents = self.agents_moved(at).into_iter().map(|agent| agent.bytes);
        let passed = Passed {
            at_ps: at,
            bytes,
            agents: agents.collect(),
        };
        let sampler = &mut self.sampler;
        sampler.kept.push(passed);
        if sampler.kept.len() >= KEPT {
            let mut number = 0;
            sampler.kept.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            sampler.every = at / (KEPT as u64 / 2);
        }
        sampler.next = at.saturating_add(sampler.every);
    }
}
