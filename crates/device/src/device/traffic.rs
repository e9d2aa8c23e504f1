//! Keeps what has passed the memory path, for pictures.

use super::Device;
use crate::figures::{CACHE, DDR, NETWORK};
use crate::traffic::Passed;

/// Instants that are kept at most.
const KEPT: usize = 2048;

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
