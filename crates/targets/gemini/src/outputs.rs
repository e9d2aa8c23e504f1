//! Which results the host gets.

use crate::names::Name;
use crate::network::Network;
use crate::schedule::Schedule;
use std::collections::{HashMap, HashSet};

/// The results that the host gets. Those that a front-end file declares. Of another front-end file, which has no names of a model, all that
/// reach DRAM: who writes one looks at them layer by layer. By the schedule alone those that reach DRAM and are not read again.
pub(crate) struct Outputs<'n> {
    network: Option<&'n Network>,
    /// Layers with a part that is stored and not read again: nobody but the host can want it.
    kept: HashSet<Name>,
}

impl<'n> Outputs<'n> {
    pub(crate) fn of(schedule: &Schedule, network: Option<&'n Network>) -> Outputs<'n> {
        let made: HashMap<u32, Name> = schedule
            .workloads()
            .flat_map(|(_, w)| w.ofmaps.iter().map(|piece| (piece.transfer, w.layer)))
            .collect();
        let again: HashSet<u32> = schedule
            .dram_out
            .iter()
            .flat_map(|entry| entry.related.iter().flatten().copied())
            .collect();
        let kept = schedule
            .dram_in
            .iter()
            .filter(|entry| !again.contains(&entry.transfer))
            .filter_map(|entry| entry.layer.or_else(|| made.get(&entry.transfer).copied()))
            .collect();
        Outputs { network, kept }
    }

    /// Whether the host gets the result of a layer that reaches DRAM.
    pub(crate) fn include(&self, layer: Name, name: &str) -> bool {
        match self.network {
            Some(network) => network.declares_output(name).unwrap_or(true),
            None => self.kept.contains(&layer),
        }
    }
}
