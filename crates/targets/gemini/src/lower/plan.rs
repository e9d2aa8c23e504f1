//! What happens before what: workloads, transfers and the space that they need.
//!
//! A schedule says this by its snapshots. A tensor may come into L2 (or the weight buffer) when the workload before its first
//! snapshot has ended; a workload starts when the one before it on its core has ended and its transfers have arrived; a result
//! leaves when its workload has ended; and where a tensor takes the place of a result that was still on its way out, it
//! waits for that.

mod order;
mod space;

use super::frames::Frames;
use super::residents::{Resident, Residents};
use crate::names::Name;
use crate::schedule::{
    Bounds, Dialect, DramOut, Ofmap, Peer, Schedule, TensorKind, WeightSource, Workload,
};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

pub(crate) use order::Predecessors;

/// Something that takes part in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// The control instructions at the start of a core.
    Begin(u32),
    /// A workload, counted over all cores.
    Workload(u32),
    /// A transfer from DRAM: an index of [`Plan::loads`].
    Load(u32),
    /// A transfer to DRAM: an index of [`Plan::stores`].
    Store(u32),
    /// A transfer to other cores: an index of [`Plan::sends`].
    Send(u32),
    /// The control instruction at the end of a core.
    End(u32),
}

/// Where a transfer from DRAM ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// In L2: an index of [`Residents::all`].
    Resident(u32),
    /// In a weight buffer: an index of [`Residents::held`].
    Held(u32),
}

/// A transfer from DRAM.
#[derive(Debug)]
pub(crate) struct Load {
    /// Index of the schedule's `dram_out`.
    pub(crate) out: u32,
    pub(crate) sinks: Vec<Sink>,
    pub(crate) order: Option<u32>,
}

/// A piece of a workload's output that leaves its core.
#[derive(Debug)]
pub(crate) struct Departure {
    /// Which workload, counted over all cores, and which of its ofmaps.
    pub(crate) workload: u32,
    pub(crate) ofmap: u32,
    /// The tensor of the snapshot that it waits in, if there is one.
    pub(crate) staged: Option<u32>,
    /// Residents that it ends in (sends), or the entry of `dram_in` (stores).
    pub(crate) sinks: Vec<u32>,
    pub(crate) order: Option<u32>,
}

/// Nodes and what comes before what.
#[derive(Debug)]
pub(crate) struct Plan<'s> {
    pub(crate) schedule: &'s Schedule,
    /// First workload of each core, and one past the last of all.
    pub(crate) first_of_core: Vec<u32>,
    pub(crate) loads: Vec<Load>,
    pub(crate) stores: Vec<Departure>,
    pub(crate) sends: Vec<Departure>,
    /// Whether every transfer from and to DRAM has its place in one queue.
    pub(crate) is_ordered: bool,
    /// Transfers from and to DRAM in their queue's order, where they have one.
    pub(crate) dram_queue: Vec<Node>,
    edges: Vec<(u32, u32)>,
    /// Transfers that bring the weights of a workload into L2, from where its tiles load them.
    pub(crate) weight_loads: HashMap<u32, Vec<u32>>,
    /// The transfer that fills each entry of a weight buffer.
    pub(crate) load_of_held: HashMap<u32, u32>,
    /// Where transfers end, by their number.
    pub(crate) sinks: HashMap<u32, Vec<Sink>>,
    /// Pieces of results by their transfer: workload and ofmap.
    pub(crate) pieces: HashMap<u32, (u32, u32)>,
    /// Loads by their transfer: index of `dram_out`.
    pub(crate) outs: HashMap<u32, usize>,
    /// Tensors in which results wait to leave their core.
    is_staged: HashSet<u32>,
    /// Who brings what.
    pub(crate) arrivals: Arrivals,
}

impl<'s> Plan<'s> {
    pub(crate) fn new(
        schedule: &'s Schedule,
        residents: &Residents<'s>,
        frames: Frames,
    ) -> Plan<'s> {
        let mut first_of_core = vec![0u32];
        for core in &schedule.cores {
            first_of_core
                .push(first_of_core[first_of_core.len() - 1] + core.workloads.len() as u32);
        }
        let mut plan = Plan {
            schedule,
            first_of_core,
            loads: Vec::new(),
            stores: Vec::new(),
            sends: Vec::new(),
            is_ordered: false,
            dram_queue: Vec::new(),
            edges: Vec::new(),
            weight_loads: HashMap::new(),
            load_of_held: HashMap::new(),
            sinks: HashMap::new(),
            pieces: HashMap::new(),
            outs: schedule
                .dram_out
                .iter()
                .enumerate()
                .map(|(index, out)| (out.transfer, index))
                .collect(),
            is_staged: HashSet::new(),
            arrivals: Arrivals::default(),
        };
        for index in 0..plan.workloads() {
            for (number, ofmap) in plan.workload(index).2.ofmaps.iter().enumerate() {
                plan.pieces
                    .entry(ofmap.transfer)
                    .or_insert((index, number as u32));
            }
        }
        plan.sinks = sinks(schedule, residents, &plan.pieces);
        plan.loads(residents);
        plan.departures(residents, frames);
        let departures = plan.stores.iter().chain(&plan.sends);
        plan.is_staged = departures.filter_map(|d| d.staged).collect();
        plan.queue();
        plan.connect(residents);
        plan
    }

    pub(crate) fn workload(&self, index: u32) -> (usize, usize, &'s Workload) {
        let core = self.first_of_core.partition_point(|first| *first <= index) - 1;
        let position = (index - self.first_of_core[core]) as usize;
        (
            core,
            position,
            &self.schedule.cores[core].workloads[position],
        )
    }

    pub(crate) fn workloads(&self) -> u32 {
        self.first_of_core.last().copied().unwrap_or(0)
    }

    /// Number of a node, in the order: begins, workloads, loads, stores, sends, ends.
    pub(crate) fn number(&self, node: Node) -> u32 {
        let cores = self.schedule.cores.len() as u32;
        let workloads = cores + self.workloads();
        let loads = workloads + self.loads.len() as u32;
        let stores = loads + self.stores.len() as u32;
        let sends = stores + self.sends.len() as u32;
        match node {
            Node::Begin(core) => core,
            Node::Workload(index) => cores + index,
            Node::Load(index) => workloads + index,
            Node::Store(index) => loads + index,
            Node::Send(index) => stores + index,
            Node::End(core) => sends + core,
        }
    }

    /// The node of a number.
    pub(crate) fn node(&self, number: u32) -> Node {
        let from = |first: Node| number - self.number(first);
        if number < self.number(Node::Workload(0)) {
            Node::Begin(number)
        } else if number < self.number(Node::Load(0)) {
            Node::Workload(from(Node::Workload(0)))
        } else if number < self.number(Node::Store(0)) {
            Node::Load(from(Node::Load(0)))
        } else if number < self.number(Node::Send(0)) {
            Node::Store(from(Node::Store(0)))
        } else if number < self.number(Node::End(0)) {
            Node::Send(from(Node::Send(0)))
        } else {
            Node::End(from(Node::End(0)))
        }
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.number(Node::End(self.schedule.cores.len() as u32)) as usize
    }

    fn edge(&mut self, from: Node, to: Node) {
        self.edges.push((self.number(from), self.number(to)));
    }

    /// What happens before what, each pair once, by the second node.
    pub(crate) fn into_order(mut self) -> (Plan<'s>, Predecessors) {
        let mut edges = std::mem::take(&mut self.edges);
        edges.sort_unstable_by_key(|(from, to)| (*to, *from));
        edges.dedup();
        let predecessors = Predecessors::new(self.nodes(), &edges);
        (self, predecessors)
    }

    fn loads(&mut self, residents: &Residents<'_>) {
        for (out_index, out) in self.schedule.dram_out.iter().enumerate() {
            let found = self.sinks.get(&out.transfer).map_or(&[][..], Vec::as_slice);
            // In the ancestors, the second time that a core takes the same data is another transfer.
            let mut times: HashMap<usize, usize> = HashMap::new();
            let mut rounds: Vec<Vec<Sink>> = vec![Vec::new()];
            for sink in found {
                let core = match sink {
                    Sink::Resident(r) => residents.all[*r as usize].core,
                    Sink::Held(h) => residents.held[*h as usize].core,
                };
                let time = times.entry(core).or_insert(0);
                if rounds.len() <= *time {
                    rounds.push(Vec::new());
                }
                rounds[*time].push(*sink);
                *time += usize::from(self.schedule.dialect != Dialect::Spec);
            }
            for sinks in rounds {
                let order = |sink: &Sink| match sink {
                    Sink::Resident(r) => residents.all[*r as usize].tensor.tensor_order,
                    Sink::Held(h) => residents.held[*h as usize].tensor.tensor_order,
                };
                let order = sinks.iter().filter_map(order).min();
                self.loads.push(Load {
                    out: out_index as u32,
                    sinks,
                    order,
                });
            }
        }
    }

    fn departures(&mut self, residents: &Residents<'_>, frames: Frames) {
        let dram_in: HashMap<u32, u32> = self
            .schedule
            .dram_in
            .iter()
            .enumerate()
            .map(|(i, d)| (d.transfer, i as u32))
            .collect();
        for index in 0..self.workloads() {
            let (core, _, workload) = self.workload(index);
            let own = self.schedule.cores[core].id;
            let mut taken: Vec<u32> = Vec::new();
            for (number, ofmap) in workload.ofmaps.iter().enumerate() {
                let to_dram = ofmap
                    .destinations
                    .iter()
                    .any(|d| matches!(d.peer, Peer::Dram(_)));
                let away = ofmap
                    .destinations
                    .iter()
                    .any(|d| matches!(d.peer, Peer::Core(id) if id != own));
                if !to_dram && !away {
                    continue;
                }
                let piece = frames.piece(workload, ofmap);
                let staged = self.staged(residents, index, ofmap, piece, to_dram, &taken);
                taken.extend(staged);
                let order = staged.and_then(|r| residents.all[r as usize].tensor.tensor_order);
                let departure = |sinks| Departure {
                    workload: index,
                    ofmap: number as u32,
                    staged,
                    sinks,
                    order,
                };
                if to_dram {
                    self.stores.push(departure(
                        dram_in.get(&ofmap.transfer).copied().into_iter().collect(),
                    ));
                }
                if away {
                    let mut ends: Vec<u32> = Vec::new();
                    for sink in self.sinks.get(&ofmap.transfer).into_iter().flatten() {
                        let Sink::Resident(r) = sink else { continue };
                        let to = residents.all[*r as usize].core;
                        let named = if self.schedule.dialect == Dialect::Spec {
                            let id = self.schedule.cores[to].id;
                            ofmap.destinations.iter().any(|d| d.peer == Peer::Core(id))
                        } else {
                            ends.iter()
                                .all(|end| residents.all[*end as usize].core != to)
                        };
                        if to != core && named {
                            ends.push(*r);
                        }
                    }
                    self.sends.push(departure(ends));
                }
            }
        }
    }

    /// The tensor of the snapshot in which a piece waits to leave its core: one of type ofmap that is new there and has the
    /// box of the piece. Where a piece for DRAM and one for a core have the same box, that for DRAM has a place in the queue.
    fn staged(
        &self,
        residents: &Residents<'_>,
        index: u32,
        ofmap: &Ofmap,
        piece: Bounds,
        to_dram: bool,
        taken: &[u32],
    ) -> Option<u32> {
        if self.schedule.dialect != Dialect::Spec {
            return None;
        }
        let (_, position, workload) = self.workload(index);
        let on_chip = (self.schedule.dram_in.len() + self.schedule.dram_out.len()) as u64;
        let fits = |r: u32| {
            let resident = &residents.all[r as usize];
            let tensor = resident.tensor;
            tensor.kind == TensorKind::Ofmap
                && tensor.address.is_some()
                && resident.first == position
                && tensor.layer.is_none_or(|layer| layer == workload.layer)
        };
        let is_queued = |r: u32| {
            let order = residents.all[r as usize].tensor.tensor_order;
            order.is_some_and(|order| u64::from(order) < on_chip)
        };
        let snapshot = residents.of(index as usize);
        let candidates = || snapshot.iter().copied().filter(|r| fits(*r));
        let free = |r: &u32| !taken.contains(r);
        let of = |bounds: Bounds| {
            candidates().filter(move |r| residents.all[*r as usize].tensor.bounds == bounds)
        };
        // The box is written as that of the ofmap; some count it from the layer all the same.
        let written = [ofmap.bounds, piece];
        let queued = |bounds| of(bounds).filter(free).find(|r| is_queued(*r) == to_dram);
        let mut found = written.into_iter().find_map(queued);
        found = found.or_else(|| written.into_iter().find_map(|bounds| of(bounds).find(free)));
        found
            .or_else(|| of(ofmap.bounds).next())
            .or_else(|| of(piece).next())
            // Converted ancestors count boxes in other frames.
            .or_else(|| {
                candidates().filter(free).find(|r| {
                    let tensor = residents.all[*r as usize].tensor;
                    tensor.align == Some(1) && tensor.bounds.shape() == piece.shape()
                })
            })
    }

    /// The one queue of DRAM, of everything that has its place in it.
    fn queue(&mut self) {
        let loads = self
            .loads
            .iter()
            .enumerate()
            .map(|(i, load)| (load.order, 0, Node::Load(i as u32)));
        let stores = self
            .stores
            .iter()
            .enumerate()
            .map(|(i, store)| (store.order, 1, Node::Store(i as u32)));
        let mut all: Vec<(Option<u32>, u8, Node)> = loads.chain(stores).collect();
        if self.schedule.dialect != Dialect::Spec {
            return;
        }
        self.is_ordered = all.iter().all(|(order, ..)| order.is_some());
        // The parts of a converted tensor share its place: a part of such a queue says nothing.
        if !self.is_ordered && self.schedule.is_packed() {
            return;
        }
        all.retain(|(order, ..)| order.is_some());
        all.sort_by_key(|(order, kind, _)| (*order, *kind));
        self.dram_queue = all.into_iter().map(|(_, _, node)| node).collect();
    }

    fn connect(&mut self, residents: &Residents<'s>) {
        let arrivals = self.arrivals(residents);
        self.cores(residents);
        let awaited = self.needs(residents, &arrivals);
        self.space(residents, &arrivals, &awaited);
        self.arrivals = arrivals;
        self.through_dram();
        for pair in 1..self.dram_queue.len() {
            self.edge(self.dram_queue[pair - 1], self.dram_queue[pair]);
        }
    }

    /// Who brings what: nodes by transfer and sink.
    fn arrivals(&mut self, residents: &Residents<'_>) -> Arrivals {
        let mut arrivals = Arrivals {
            residents: vec![SmallVec::new(); residents.all.len()],
            held: vec![None; residents.held.len()],
        };
        for (index, load) in self.loads.iter().enumerate() {
            let transfer = self.schedule.dram_out[load.out as usize].transfer;
            for sink in &load.sinks {
                match sink {
                    Sink::Resident(r) => {
                        arrivals.residents[*r as usize].push((transfer, Node::Load(index as u32)));
                    }
                    Sink::Held(h) => {
                        arrivals.held[*h as usize] = Some(Node::Load(index as u32));
                        self.load_of_held.insert(*h, index as u32);
                    }
                }
            }
        }
        for (index, send) in self.sends.iter().enumerate() {
            let transfer = self.workload(send.workload).2.ofmaps[send.ofmap as usize].transfer;
            for r in &send.sinks {
                arrivals.residents[*r as usize].push((transfer, Node::Send(index as u32)));
            }
        }
        arrivals
    }

    /// The order of each core.
    fn cores(&mut self, residents: &Residents<'_>) {
        for core in 0..self.schedule.cores.len() as u32 {
            let (first, last) = (
                self.first_of_core[core as usize],
                self.first_of_core[core as usize + 1],
            );
            let mut before = Node::Begin(core);
            for index in first..last {
                self.edge(before, Node::Workload(index));
                before = Node::Workload(index);
            }
            self.edge(before, Node::End(core));
        }
        for index in 0..self.stores.len() {
            let workload = self.stores[index].workload;
            let (core, position, _) = self.workload(workload);
            let staged = self.stores[index].staged;
            // A result stays in the snapshots until the queue has come to it.
            if let Some(send_at) = staged.and_then(|r| residents.all[r as usize].send_at)
                && send_at > position
            {
                let before = self.gate(core, send_at);
                self.edge(before, Node::Store(index as u32));
            }
            let core = core as u32;
            self.edge(Node::Workload(workload), Node::Store(index as u32));
            self.edge(Node::Store(index as u32), Node::End(core));
        }
        for index in 0..self.sends.len() {
            let workload = self.sends[index].workload;
            let core = self.workload(workload).0 as u32;
            self.edge(Node::Workload(workload), Node::Send(index as u32));
            self.edge(Node::Send(index as u32), Node::End(core));
        }
    }

    /// What must have ended before the snapshot of this workload holds: the workload before it.
    fn gate(&self, core: usize, position: usize) -> Node {
        match position.checked_sub(1) {
            Some(before) => Node::Workload(self.first_of_core[core] + before as u32),
            None => Node::Begin(core as u32),
        }
    }

    /// What a tensor holds, as its first source has it: whose elements, and how far from their places in its frame to those in
    /// the whole.
    pub(crate) fn contents(
        &self,
        frames: Frames,
        resident: &Resident<'_>,
    ) -> Option<(Name, [i64; 4])> {
        let source = resident.tensor.sources.first()?;
        let (name, whole) = match source.peer {
            Peer::Dram(_) => {
                let out = &self.schedule.dram_out[*self.outs.get(&source.transfer)?];
                let mut stores = out.related.iter().flatten();
                let store = stores.find_map(|id| self.pieces.get(id));
                let made = store.map(|(workload, _)| self.workload(*workload).2.layer);
                (made.or(source.layer)?, out.bounds)
            }
            Peer::Core(_) => {
                let (workload, ofmap) = *self.pieces.get(&source.transfer)?;
                let workload = self.workload(workload).2;
                let piece = frames.piece(workload, &workload.ofmaps[ofmap as usize]);
                (workload.layer, piece)
            }
        };
        let shift =
            std::array::from_fn(|d| i64::from(whole.lower[d]) - i64::from(source.bounds.lower[d]));
        Some((name, shift))
    }

    /// A workload waits for what it reads. Gives the tensors and the nodes that bring them for which somebody waits.
    fn needs(&mut self, residents: &Residents<'_>, arrivals: &Arrivals) -> HashSet<(u32, u32)> {
        let mut awaited = HashSet::new();
        for index in 0..self.workloads() {
            let workload = self.workload(index).2;
            let snapshot = residents.of(index as usize);
            let mut wanted: Vec<u32> = workload
                .ifmaps
                .iter()
                .flat_map(|i| i.transfers.iter().copied())
                .collect();
            let weights = workload
                .weight
                .as_ref()
                .map_or(&[][..], |w| w.transfers.as_slice());
            let held = residents.held_of(index as usize).iter().find(|h| {
                let tensor = residents.held[**h as usize].tensor;
                tensor.transfers.iter().any(|t| weights.contains(t))
            });
            let source = held.map(|h| residents.held[*h as usize].tensor.source);
            match (source, held) {
                (Some(WeightSource::Dram), Some(h)) => {
                    if let Some(node) = arrivals.held[*h as usize] {
                        self.edge(node, Node::Workload(index));
                    }
                }
                _ => wanted.extend(weights),
            }
            wanted.sort_unstable();
            for r in snapshot {
                for (transfer, node) in &arrivals.residents[*r as usize] {
                    if wanted.binary_search(transfer).is_err() {
                        continue;
                    }
                    self.edge(*node, Node::Workload(index));
                    awaited.insert((*r, self.number(*node)));
                    if let (Some(WeightSource::L2), Node::Load(load)) = (source, node)
                        && weights.contains(transfer)
                    {
                        let node = self.number(Node::Load(*load));
                        self.weight_loads.entry(index).or_default().push(node);
                    }
                }
            }
        }
        // Transfers that no snapshot shows still come before those that read them.
        for index in 0..self.loads.len() {
            if !self.loads[index].sinks.is_empty() {
                continue;
            }
            for destination in self.schedule.dram_out[self.loads[index].out as usize]
                .destinations
                .clone()
            {
                if let Some((core, position)) = self.find(destination.peer, destination.workload) {
                    let gate = self.gate(core, position);
                    self.edge(gate, Node::Load(index as u32));
                    self.edge(
                        Node::Load(index as u32),
                        Node::Workload(self.first_of_core[core] + position as u32),
                    );
                }
            }
        }
        awaited
    }

    fn find(&self, peer: Peer, workload: Option<u32>) -> Option<(usize, usize)> {
        let Peer::Core(id) = peer else { return None };
        let core = self.schedule.cores.iter().position(|c| c.id == id)?;
        Some((core, self.schedule.cores[core].position(workload?)?))
    }

    /// What comes back from DRAM was written before.
    fn through_dram(&mut self) {
        let mut written: HashMap<u32, Node> = HashMap::new();
        let mut read: HashMap<u32, Vec<Node>> = HashMap::new();
        for (index, store) in self.stores.iter().enumerate() {
            let transfer = self.workload(store.workload).2.ofmaps[store.ofmap as usize].transfer;
            written.entry(transfer).or_insert(Node::Store(index as u32));
        }
        for (index, load) in self.loads.iter().enumerate() {
            read.entry(self.schedule.dram_out[load.out as usize].transfer)
                .or_default()
                .push(Node::Load(index as u32));
        }
        let schedule = self.schedule;
        for out in &schedule.dram_out {
            for store in out
                .related
                .iter()
                .flatten()
                .filter_map(|t| written.get(t).copied())
            {
                for load in &read[&out.transfer] {
                    self.edge(store, *load);
                }
            }
        }
        if schedule.dialect == Dialect::Spec {
            return;
        }
        for stored in &schedule.dram_in {
            let Some(store) = written.get(&stored.transfer).copied() else {
                continue;
            };
            for load in stored
                .related
                .iter()
                .flatten()
                .filter_map(|t| read.get(t))
                .flatten()
            {
                self.edge(store, *load);
            }
        }
    }
}

/// Where transfers end, by their number.
fn sinks(
    schedule: &Schedule,
    residents: &Residents<'_>,
    pieces: &HashMap<u32, (u32, u32)>,
) -> HashMap<u32, Vec<Sink>> {
    let mut of: HashMap<u32, Vec<Sink>> = HashMap::with_capacity(schedule.dram_out.len() * 2);
    let is_spec = schedule.dialect == Dialect::Spec;
    let outs: HashMap<u32, &DramOut> = schedule
        .dram_out
        .iter()
        .map(|out| (out.transfer, out))
        .collect();
    // Cores in the list of destinations are binding.
    let goes_to = |transfer: u32, core: usize| {
        let id = schedule.cores[core].id;
        outs.get(&transfer)
            .is_some_and(|out| out.destinations.iter().any(|d| d.peer == Peer::Core(id)))
    };
    for (number, resident) in residents.all.iter().enumerate() {
        let sink = Sink::Resident(number as u32);
        if !is_spec {
            for transfer in &resident.tensor.transfers {
                of.entry(*transfer).or_default().push(sink);
            }
            continue;
        }
        if !resident.is_filled || resident.tensor.kind == TensorKind::Ofmap {
            continue;
        }
        for source in &resident.tensor.sources {
            let arrives = match source.peer {
                Peer::Dram(_) => goes_to(source.transfer, resident.core),
                Peer::Core(_) => pieces.contains_key(&source.transfer),
            };
            if arrives {
                of.entry(source.transfer).or_default().push(sink);
            }
        }
    }
    for (number, held) in residents
        .held
        .iter()
        .enumerate()
        .filter(|(_, h)| h.tensor.source == WeightSource::Dram && h.is_filled)
    {
        for transfer in &held.tensor.transfers {
            if !is_spec || goes_to(*transfer, held.core) {
                of.entry(*transfer)
                    .or_default()
                    .push(Sink::Held(number as u32));
            }
        }
    }
    of
}

/// Who brings what.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Transfers and their nodes, by resident.
    pub(crate) residents: Vec<SmallVec<[(u32, Node); 2]>>,
    pub(crate) held: Vec<Option<Node>>,
}
