//! Schedules of the ancestor dialects as ones of the spec's.
//!
//! What the ancestors do not have is made as plainly as possible: one tile for each workload, one ring region, no weight
//! buffer, addresses first-come first-fit where there are none. Data stay packed (`align` 1): the ancestors count neither
//! aligned channels nor parameters beside the weights, and bytes on the way must not change.

use crate::names::Name;
use crate::network::Network;
use crate::schedule::{Bounds, Core, Dialect, Peer, Schedule, Tensor, TensorKind, Tile, TransferIds, Workload};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of L2 of a core that the schedulers of this family take where the user does not say (1 MiB); also the step above.
const BUFFER_STEP: u64 = 1 << 20;
/// Bits of all data of the ancestors.
const BITS: u8 = 8;

/// What makes two entries of snapshots of one core the same tensor.
type Identity = (TensorKind, Option<Name>, Bounds, TransferIds);

impl Schedule {
    /// The same schedule in the spec's dialect. The network, where it is given, says the shape of weights, of which the ancestors
    /// have only the output channels and the bytes.
    #[must_use]
    pub fn convert(mut self, network: Option<&Network>) -> Schedule {
        if self.dialect == Dialect::Spec {
            return self;
        }
        let order: Vec<(usize, usize)> = {
            let mut order: Vec<(u32, usize, usize)> = Vec::new();
            for (core_index, core) in self.cores.iter().enumerate() {
                order.extend(core.workloads.iter().enumerate().map(|(index, workload)| (workload.id, core_index, index)));
            }
            order.sort_unstable();
            order.into_iter().map(|(_, core, index)| (core, index)).collect()
        };
        self.renumber();
        self.dram(network);
        for &(core, index) in &order {
            if let Some(workload) = self.cores.get_mut(core).and_then(|core| core.workloads.get_mut(index)) {
                fill(workload);
            }
        }
        self.weights(network);
        let end = self.cores.iter_mut().map(|core| place(core, self.dialect.has_addresses())).max().unwrap_or(0);
        let bytes = end.next_multiple_of(BUFFER_STEP).max(BUFFER_STEP);
        self.buffer_size = Some(bytes);
        self.queue(&order);
        for workload in self.cores.iter_mut().flat_map(|core| &mut core.workloads) {
            workload.ring = Some(Box::new([[0, bytes]]));
        }
        for id in 0..self.mesh[0].saturating_mul(self.mesh[1]).min(1 << 16) {
            if !self.cores.iter().any(|core| core.id == id) {
                self.cores.push(Core { id, workloads: Vec::new(), at: crate::schedule::At::default() });
            }
        }
        self.cores.sort_by_key(|core| core.id);
        self.dialect = Dialect::Spec;
        self.dram_ports.clear();
        self.unknown.clear();
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
        let renumber = |core: u32, id: &mut u32| *id = rank.get(&(core, *id)).copied().unwrap_or(*id);
        let pieces = self.cores.iter_mut().flat_map(|core| &mut core.workloads).flat_map(|w| &mut w.ofmaps);
        let destinations = pieces.flat_map(|piece| &mut piece.destinations);
        for destination in destinations.chain(self.dram_out.iter_mut().flat_map(|entry| &mut entry.destinations)) {
            if let (Peer::Core(core), Some(id)) = (destination.peer, destination.workload.as_mut()) {
                renumber(core, id);
            }
        }
        for entry in &mut self.dram_in {
            renumber(entry.core, &mut entry.workload);
        }
    }

    /// DRAM entries name layers where the spec's dialect does.
    fn dram(&mut self, network: Option<&Network>) {
        let layers: HashMap<u32, Vec<Name>> =
            self.cores.iter().map(|core| (core.id, core.workloads.iter().map(|w| w.layer).collect())).collect();
        let layer = |core: u32, workload: u32| layers.get(&core).and_then(|list| list.get(workload as usize)).copied();
        for entry in &mut self.dram_in {
            entry.layer = layer(entry.core, entry.workload);
            entry.groups = 0;
        }
        for entry in &mut self.dram_out {
            let own = entry.layer.take();
            entry.groups = 0;
            entry.priority = None;
            for destination in &mut entry.destinations {
                if let (Peer::Core(core), Some(workload)) = (destination.peer, destination.workload) {
                    destination.layer = layer(core, workload).or(own);
                }
            }
            if entry.weight {
                let name = own.or_else(|| entry.destinations.first()?.layer);
                entry.bounds = weight_box(entry.bounds, entry.size, name.map(|name| self.names.get(name)), network);
            }
        }
    }

    /// Weights get all four dimensions.
    fn weights(&mut self, network: Option<&Network>) {
        let boxes: HashMap<u32, (Bounds, u64)> =
            self.dram_out.iter().filter(|entry| entry.weight).map(|entry| (entry.transfer, (entry.bounds, entry.size))).collect();
        let names = &self.names;
        for workload in self.cores.iter_mut().flat_map(|core| &mut core.workloads) {
            if let Some(weight) = workload.weight.as_mut().filter(|weight| !weight.from_ofmap)
                && let Some((bounds, bytes)) = weight.transfers.first().and_then(|id| boxes.get(id))
            {
                let part = Bounds { lower: weight.bounds.lower, upper: weight.bounds.upper };
                let share = bytes / bounds.shape()[1].max(1) * part.shape()[1];
                weight.bounds =
                    Bounds { lower: with_channels(bounds.lower, part.lower[1]), upper: with_channels(bounds.upper, part.upper[1]) };
                weight.size = Some(share);
            }
            for tensor in workload.buffer.iter_mut().filter(|tensor| tensor.kind == TensorKind::Weight) {
                let bytes = tensor.sources.iter().filter_map(|source| source.size).fold(0, u64::saturating_add);
                let scalar = tensor.sources.iter().all(|source| matches!(source.peer, Peer::Dram(_)) && source.bounds.upper[2] == 0);
                if scalar && bytes > 0 {
                    let name = tensor.layer.map(|name| names.get(name));
                    tensor.bounds = weight_box(tensor.bounds, bytes, name, network);
                    for source in &mut tensor.sources {
                        source.bounds = weight_box(source.bounds, source.size.unwrap_or(0), name, network);
                    }
                    tensor.size = bytes;
                }
            }
        }
    }

    /// Numbers tensors and the DRAM queue, in the order of first use over all cores.
    fn queue(&mut self, order: &[(usize, usize)]) {
        let stored: HashSet<u32> = self.dram_in.iter().map(|entry| entry.transfer).collect();
        let mut places: HashMap<u32, u32> = HashMap::new();
        let mut visit = |transfer: u32| {
            let next = places.len() as u32;
            *places.entry(transfer).or_insert(next)
        };
        let mut keys: Vec<Vec<Option<u32>>> = Vec::with_capacity(order.len());
        for &(core, index) in order {
            let Some(workload) = self.cores.get(core).and_then(|core| core.workloads.get(index)) else { continue };
            let key = |tensor: &Tensor| match tensor.kind {
                TensorKind::Ofmap => workload.ofmaps.iter().map(|piece| piece.transfer).find(|id| stored.contains(id)),
                _ => tensor.sources.iter().find(|source| matches!(source.peer, Peer::Dram(_))).map(|source| source.transfer),
            };
            let of_workload: Vec<Option<u32>> = workload.buffer.iter().map(key).collect();
            of_workload.iter().flatten().for_each(|id| {
                visit(*id);
            });
            keys.push(of_workload);
        }
        let count = places.len() as u32;
        for (&(core, index), keys) in order.iter().zip(keys) {
            let Some(workload) = self.cores.get_mut(core).and_then(|core| core.workloads.get_mut(index)) else { continue };
            for (tensor, key) in workload.buffer.iter_mut().zip(keys) {
                tensor.tensor_order = Some(key.and_then(|id| places.get(&id).copied()).unwrap_or(count));
            }
        }
    }
}

fn with_channels(corner: [u32; 4], channel: u32) -> [u32; 4] {
    [corner[0], channel, corner[2], corner[3]]
}

/// The box of weights of which the output channels and the bytes are known. Without the network all that belongs to an output
/// channel counts as input channels.
fn weight_box(bounds: Bounds, bytes: u64, layer: Option<&str>, network: Option<&Network>) -> Bounds {
    let per_channel = bytes / bounds.shape()[1].max(1);
    let known = layer.and_then(|name| network?.layers.get(name)?.input_shape.get(1)).and_then(|shape| match shape.as_slice() {
        [_, c, kernel @ ..] => Some((*c, kernel.iter().copied().fold(1, u64::saturating_mul))),
        _ => None,
    });
    let (c, kernel) = known.filter(|(c, kernel)| c.saturating_mul(*kernel) == per_channel).unwrap_or((per_channel, 1));
    let last = |n: u64| u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX);
    Bounds { lower: [0, bounds.lower[1], 0, 0], upper: [0, bounds.upper[1], last(c), last(kernel)] }
}

/// What a workload of the spec's dialect has besides.
fn fill(workload: &mut Workload) {
    workload.layer_type = workload.layer_type.unit();
    workload.padding = Some([0; 4]);
    workload.weight_buffer = None;
    for ifmap in &mut workload.ifmaps {
        ifmap.align = Some(1);
        ifmap.bitwidth = Some(BITS);
        ifmap.size = Some(ifmap.bounds.elements());
        ifmap.last_producer = None;
    }
    if let Some(weight) = &mut workload.weight {
        weight.last_producer = None;
        weight.size = weight.size.or(Some(weight.bounds.elements()));
    }
    let ifmap = workload.ifmaps.first().map(|ifmap| ifmap.bounds);
    let time = Some(workload.time as f64);
    let at = workload.at;
    workload.tiles = Box::new([Tile { number: 0, ofmap: workload.bounds, ifmap, ifmap2: None, padding: Some([0; 4]), time, pe: None, at }]);
    let read: Vec<u32> = workload.ifmaps.iter().flat_map(|ifmap| ifmap.transfers.iter().copied()).collect();
    for tensor in &mut workload.buffer {
        tensor.align = Some(1);
        tensor.bitwidth = Some(BITS);
        tensor.priority = None;
        tensor.workload = None;
        tensor.phase = crate::schedule::Phase::default();
        tensor.current = tensor.kind == TensorKind::Ifmap && tensor.transfers.iter().any(|id| read.contains(id));
        tensor.start_send = tensor.kind == TensorKind::Ofmap;
    }
}

/// Gives the tensors of a core their numbers, marks and, where they have none, addresses; the end of the last one.
fn place(core: &mut Core, addressed: bool) -> u64 {
    let mut numbers: HashMap<Identity, u32> = HashMap::new();
    let mut resident: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut end = 0;
    for workload in &mut core.workloads {
        // Two tensors of one snapshot are two, however alike.
        let mut repeats: HashMap<Identity, u32> = HashMap::new();
        let ids: Vec<u32> = workload
            .buffer
            .iter()
            .map(|tensor| {
                let identity = (tensor.kind, tensor.layer, tensor.bounds, tensor.transfers.clone());
                let repeat = repeats.entry(identity.clone()).and_modify(|n| *n += 1).or_insert(0);
                let mut key = identity;
                key.3.extend(std::iter::repeat_n(u32::MAX, *repeat as usize));
                let next = numbers.len() as u32;
                *numbers.entry(key).or_insert(next)
            })
            .collect();
        let mut spans: BTreeMap<u32, (u64, u64)> =
            resident.iter().filter(|(id, _)| ids.contains(id)).map(|(id, span)| (*id, *span)).collect();
        for (tensor, id) in workload.buffer.iter_mut().zip(ids) {
            tensor.tensor_id = Some(id);
            tensor.newly_added = (tensor.kind != TensorKind::Ofmap).then(|| !resident.contains_key(&id));
            let span = match (spans.get(&id), tensor.address.filter(|_| addressed)) {
                (Some(span), None) => *span,
                (_, Some(address)) => (u64::from(address), u64::from(address) + tensor.size),
                (None, None) => first_fit(&spans, tensor.size),
            };
            spans.insert(id, span);
            tensor.address = Some(u32::try_from(span.0).unwrap_or(u32::MAX));
            end = end.max(span.1);
            // A block is the tensor rounded up; of what is streamed to DRAM only the block is there.
            if tensor.kind == TensorKind::Ifmap {
                tensor.size = tensor.bounds.elements();
                tensor.layer = None;
            }
        }
        resident = spans;
    }
    end
}

/// The lowest free bytes.
fn first_fit(spans: &BTreeMap<u32, (u64, u64)>, size: u64) -> (u64, u64) {
    let mut taken: Vec<(u64, u64)> = spans.values().copied().collect();
    taken.sort_unstable();
    let mut at = 0;
    for (first, last) in taken {
        if at + size <= first {
            break;
        }
        at = at.max(last);
    }
    (at, at + size)
}
