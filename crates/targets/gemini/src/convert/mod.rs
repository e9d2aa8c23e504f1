//! Schedules of the ancestor dialects as ones of the spec's.
//!
//! What the ancestors do not have is made as plainly as possible: one tile for each workload, one ring region, no weight
//! buffer, addresses first-come first-fit where there are none. Data stay packed (`align` 1): the ancestors count neither
//! aligned channels nor parameters beside the weights, and bytes on the way must not change.

mod queue;
mod snapshots;

use crate::lower::pack::Operations;
use crate::names::Name;
use crate::network::Network;
use crate::schedule::{Bounds, Core, Dialect, Peer, Schedule, TensorKind};
use std::collections::HashMap;

/// Bytes of L2 of a core that the schedulers of this family take where the user does not say (1 MiB); also the step above.
const BUFFER_STEP: u64 = 1 << 20;
/// Bits of all data of the ancestors.
const BITS: u8 = 8;

impl Schedule {
    /// The same schedule in the spec's dialect. The network, where it is given, says the shape of weights, of which the ancestors
    /// have only the output channels and the bytes.
    #[must_use]
    pub fn convert(mut self, network: Option<&Network>) -> Schedule {
        if self.dialect == Dialect::Spec {
            return self;
        }
        self.renumber();
        if self.dialect.is_tiling() {
            self.relate();
        }
        self.dram(network);
        self.weights(network);
        let end = self.snapshots();
        let mut operations = Operations::default();
        let names = &self.names;
        for workload in self.cores.iter_mut().flat_map(|core| &mut core.workloads) {
            let padding = network.and_then(|network| {
                let name = names.get(workload.layer);
                let layer = network.layers.get(name)?;
                let has_window = layer.kernel_size.or(layer.pool_size).is_some();
                let operation = operations.of(network, name);
                let operation = operation.as_ref().as_ref().ok().filter(|_| has_window);
                Some(operation.map_or([0; 4], |operation| operation.edges(&workload.bounds)))
            });
            snapshots::fill(workload, padding);
        }
        let bytes = end.next_multiple_of(BUFFER_STEP).max(BUFFER_STEP);
        self.buffer_size = Some(bytes);
        for workload in self.cores.iter_mut().flat_map(|core| &mut core.workloads) {
            workload.ring = Some(Box::new([[0, bytes]]));
        }
        for id in 0..self.mesh[0].saturating_mul(self.mesh[1]).min(1 << 16) {
            if !self.cores.iter().any(|core| core.id == id) {
                self.cores.push(Core {
                    id,
                    workloads: Vec::new(),
                    at: crate::schedule::At::default(),
                });
            }
        }
        self.cores.sort_by_key(|core| core.id);
        self.dialect = Dialect::Spec;
        self.dram_ports.clear();
        self.unknown.clear();
        self.queue();
        self
    }

    /// Ids of workloads count on each core instead of over all.
    fn renumber(&mut self) {
        let mut rank: HashMap<(u32, u32), u32> = HashMap::new();
        for core in &mut self.cores {
            core.workloads.sort_by_key(|workload| workload.id);
            for (index, workload) in core.workloads.iter_mut().enumerate() {
                rank.insert((core.id, workload.id), index as u32);
                workload.id = index as u32;
            }
        }
        let renumber =
            |core: u32, id: &mut u32| *id = rank.get(&(core, *id)).copied().unwrap_or(*id);
        let pieces = self
            .cores
            .iter_mut()
            .flat_map(|core| &mut core.workloads)
            .flat_map(|w| &mut w.ofmaps);
        let destinations = pieces.flat_map(|piece| &mut piece.destinations);
        for destination in destinations.chain(
            self.dram_out
                .iter_mut()
                .flat_map(|entry| &mut entry.destinations),
        ) {
            if let (Peer::Core(core), Some(id)) = (destination.peer, destination.workload.as_mut())
            {
                renumber(core, id);
            }
        }
        for entry in &mut self.dram_in {
            renumber(entry.core, &mut entry.workload);
        }
    }

    /// IR-tiling stores a box once for each of its readers and relates each read to its own. In the spec's dialect all stores of
    /// a box write the same bytes, and a read comes after all of them.
    fn relate(&mut self) {
        let makers = self
            .cores
            .iter()
            .flat_map(|core| &core.workloads)
            .flat_map(|w| w.ofmaps.iter().map(|piece| (piece.transfer, w.layer)));
        let layers: HashMap<u32, Name> = makers.collect();
        let mut alike: HashMap<(Name, Bounds), Vec<u32>> = HashMap::new();
        let mut boxes: HashMap<u32, (Name, Bounds)> = HashMap::new();
        for entry in &self.dram_in {
            if let Some(layer) = layers.get(&entry.transfer) {
                alike
                    .entry((*layer, entry.bounds))
                    .or_default()
                    .push(entry.transfer);
                boxes.insert(entry.transfer, (*layer, entry.bounds));
            }
        }
        let mut back: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in &mut self.dram_out {
            let Some(related) = &mut entry.related else {
                continue;
            };
            let mut all: Vec<u32> = related.to_vec();
            all.extend(
                related
                    .iter()
                    .filter_map(|id| alike.get(boxes.get(id)?))
                    .flatten(),
            );
            all.sort_unstable();
            all.dedup();
            for id in &all {
                back.entry(*id).or_default().push(entry.transfer);
            }
            *related = all.into_iter().collect();
        }
        for entry in &mut self.dram_in {
            if let Some(reads) = back.remove(&entry.transfer) {
                entry.related = Some(reads.into_iter().collect());
            }
        }
    }

    /// DRAM entries name layers where the spec's dialect does.
    fn dram(&mut self, network: Option<&Network>) {
        let layers: HashMap<u32, Vec<Name>> = self
            .cores
            .iter()
            .map(|core| (core.id, core.workloads.iter().map(|w| w.layer).collect()))
            .collect();
        let layer = |core: u32, workload: u32| {
            layers
                .get(&core)
                .and_then(|list| list.get(workload as usize))
                .copied()
        };
        for entry in &mut self.dram_in {
            entry.layer = layer(entry.core, entry.workload);
            entry.groups = 0;
        }
        for entry in &mut self.dram_out {
            let own = entry.layer.take();
            entry.groups = 0;
            entry.priority = None;
            for destination in &mut entry.destinations {
                if let (Peer::Core(core), Some(workload)) = (destination.peer, destination.workload)
                {
                    destination.layer = layer(core, workload).or(own);
                }
            }
            if entry.weight {
                let name = own.or_else(|| entry.destinations.first()?.layer);
                entry.bounds = weight_box(
                    entry.bounds,
                    entry.size,
                    name.map(|name| self.names.get(name)),
                    network,
                );
            }
        }
    }

    /// Weights get all four dimensions.
    fn weights(&mut self, network: Option<&Network>) {
        let boxes: HashMap<u32, (Bounds, u64)> = self
            .dram_out
            .iter()
            .filter(|entry| entry.weight)
            .map(|entry| (entry.transfer, (entry.bounds, entry.size)))
            .collect();
        let names = &self.names;
        for workload in self.cores.iter_mut().flat_map(|core| &mut core.workloads) {
            if let Some(weight) = workload.weight.as_mut().filter(|weight| !weight.from_ofmap)
                && let Some((bounds, bytes)) = weight.transfers.first().and_then(|id| boxes.get(id))
            {
                let part = Bounds {
                    lower: weight.bounds.lower,
                    upper: weight.bounds.upper,
                };
                let share = bytes / bounds.shape()[1].max(1) * part.shape()[1];
                weight.bounds = Bounds {
                    lower: with_channels(bounds.lower, part.lower[1]),
                    upper: with_channels(bounds.upper, part.upper[1]),
                };
                weight.size = Some(share);
            }
            for tensor in workload
                .buffer
                .iter_mut()
                .filter(|tensor| tensor.kind == TensorKind::Weight)
            {
                let bytes = tensor
                    .sources
                    .iter()
                    .filter_map(|source| source.size)
                    .fold(0, u64::saturating_add);
                let scalar = tensor.sources.iter().all(|source| {
                    matches!(source.peer, Peer::Dram(_)) && source.bounds.upper[2] == 0
                });
                let block = tensor.size;
                if scalar && bytes > 0 {
                    let name = tensor.layer.map(|name| names.get(name));
                    tensor.bounds = weight_box(tensor.bounds, bytes, name, network);
                    for source in &mut tensor.sources {
                        source.bounds =
                            weight_box(source.bounds, source.size.unwrap_or(0), name, network);
                    }
                    tensor.size = bytes;
                } else {
                    snapshots::behind_each_other(tensor);
                    tensor.size = tensor.bounds.elements();
                }
                snapshots::fit(tensor, block);
            }
        }
    }
}

fn with_channels(corner: [u32; 4], channel: u32) -> [u32; 4] {
    [corner[0], channel, corner[2], corner[3]]
}

/// The box of weights of which the output channels and the bytes are known. Without the network all that belongs to an output
/// channel counts as input channels.
fn weight_box(
    bounds: Bounds,
    bytes: u64,
    layer: Option<&str>,
    network: Option<&Network>,
) -> Bounds {
    let per_channel = bytes / bounds.shape()[1].max(1);
    let known = layer
        .and_then(|name| network?.layers.get(name)?.input_shape.get(1))
        .and_then(|shape| match shape.as_slice() {
            [_, c, kernel @ ..] => Some((*c, kernel.iter().copied().fold(1, u64::saturating_mul))),
            _ => None,
        });
    let (c, kernel) = known
        .filter(|(c, kernel)| c.saturating_mul(*kernel) == per_channel)
        .unwrap_or((per_channel, 1));
    let last = |n: u64| u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX);
    Bounds {
        lower: [0, bounds.lower[1], 0, 0],
        upper: [0, bounds.upper[1], last(c), last(kernel)],
    }
}
