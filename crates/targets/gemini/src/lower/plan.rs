//! What happens before what: workloads, transfers and the space that they need.
//!
//! A schedule says this by its snapshots. A tensor may come into L2 (or the weight buffer) when the workload before its first
//! snapshot has ended; a workload starts when the one before it on its core has ended and its transfers have arrived; a result
//! leaves when its workload has ended; and where a tensor takes the place of a result that was still on its way out, it
//! waits for that.

use super::frames::Frames;
use super::residents::Residents;
use crate::schedule::{Peer, Schedule, TensorKind, WeightSource, Workload};
use std::collections::{BTreeMap, HashMap};

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
            sinks: sinks(schedule, residents),
        };
        plan.loads(residents);
        plan.departures(residents, frames);
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
            // The second time that a core takes the same data is another transfer.
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
                *time += 1;
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
                let staging = |r: &&u32| {
                    let tensor = residents.all[**r as usize].tensor;
                    let kind = tensor.kind == TensorKind::Ofmap
                        && tensor.address.is_some()
                        && !taken.contains(*r);
                    kind && (tensor.bounds == piece || tensor.bounds == ofmap.bounds)
                };
                let same_size = |r: &&u32| {
                    let tensor = residents.all[**r as usize].tensor;
                    let kind = tensor.kind == TensorKind::Ofmap
                        && tensor.address.is_some()
                        && !taken.contains(*r);
                    kind && tensor.bounds.shape() == piece.shape()
                };
                let snapshot = residents.of(index as usize);
                let staged = if self.schedule.dialect == crate::schedule::Dialect::Spec {
                    snapshot
                        .iter()
                        .find(staging)
                        .or_else(|| snapshot.iter().find(same_size))
                        .copied()
                } else {
                    None
                };
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
                    let mut cores = Vec::new();
                    let mut ends = Vec::new();
                    for sink in self.sinks.get(&ofmap.transfer).into_iter().flatten() {
                        if let Sink::Resident(r) = sink
                            && residents.all[*r as usize].core != core
                            && !cores.contains(&residents.all[*r as usize].core)
                        {
                            cores.push(residents.all[*r as usize].core);
                            ends.push(*r);
                        }
                    }
                    self.sends.push(departure(ends));
                }
            }
        }
    }

    /// The one queue of DRAM, if every transfer has its place in it.
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
        self.is_ordered = self.schedule.dialect == crate::schedule::Dialect::Spec
            && all.iter().all(|(order, ..)| order.is_some());
        if self.is_ordered {
            all.sort_by_key(|(order, kind, _)| (*order, *kind));
            self.dram_queue = all.into_iter().map(|(_, _, node)| node).collect();
        }
    }

    fn connect(&mut self, residents: &Residents<'s>) {
        let arrivals = self.arrivals(residents);
        self.cores();
        self.space(residents, &arrivals);
        self.needs(residents, &arrivals);
        self.through_dram();
        for pair in 1..self.dram_queue.len() {
            self.edge(self.dram_queue[pair - 1], self.dram_queue[pair]);
        }
    }

    /// Who brings what: nodes by transfer and sink.
    fn arrivals(&mut self, residents: &Residents<'_>) -> Arrivals {
        let mut arrivals = Arrivals {
            residents: vec![Vec::new(); residents.all.len()],
            held: vec![None; residents.held.len()],
        };
        for (index, load) in self.loads.iter().enumerate() {
            let transfer = self.schedule.dram_out[load.out as usize].transfer;
            for sink in &load.sinks {
                match sink {
                    Sink::Resident(r) => {
                        arrivals.residents[*r as usize].push((transfer, Node::Load(index as u32)))
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
    fn cores(&mut self) {
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
            let core = self.workload(workload).0 as u32;
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

    /// Nothing comes before there is room for it.
    fn space(&mut self, residents: &Residents<'_>, arrivals: &Arrivals) {
        for (number, resident) in residents.all.iter().enumerate() {
            let gate = self.gate(resident.core, resident.first);
            for (_, node) in &arrivals.residents[number] {
                self.edge(gate, *node);
            }
        }
        for (number, held) in residents.held.iter().enumerate() {
            if let Some(node) = arrivals.held[number] {
                let gate = self.gate(held.core, held.first);
                self.edge(gate, node);
            }
        }
        // Results on their way out, by their place.
        let mut leaving: HashMap<u32, Vec<Node>> = HashMap::new();
        for (index, store) in self.stores.iter().enumerate() {
            store.staged.into_iter().for_each(|r| {
                leaving
                    .entry(r)
                    .or_default()
                    .push(Node::Store(index as u32))
            });
        }
        for (index, send) in self.sends.iter().enumerate() {
            send.staged
                .into_iter()
                .for_each(|r| leaving.entry(r).or_default().push(Node::Send(index as u32)));
        }
        if leaving.is_empty() {
            return;
        }
        let mut pending: Vec<Pending> = self
            .schedule
            .cores
            .iter()
            .map(|_| Pending::default())
            .collect();
        for (number, resident) in residents.all.iter().enumerate() {
            let (start, end) = resident.extent();
            let writer = Node::Workload(self.first_of_core[resident.core] + resident.first as u32);
            for node in pending[resident.core].take(start, end) {
                // Results of the same snapshot do not wait for each other.
                if self.departs_from(node) == writer {
                    continue;
                }
                self.edge(node, writer);
                for (_, arrival) in arrivals.residents[number]
                    .iter()
                    .filter(|(_, arrival)| *arrival != node)
                {
                    self.edge(node, *arrival);
                }
            }
            if let Some(nodes) = leaving.get(&(number as u32)) {
                pending[resident.core].put(start, end, nodes);
            }
        }
    }

    fn departs_from(&self, node: Node) -> Node {
        Node::Workload(match node {
            Node::Store(index) => self.stores[index as usize].workload,
            Node::Send(index) => self.sends[index as usize].workload,
            _ => u32::MAX,
        })
    }

    /// A workload waits for what it reads.
    fn needs(&mut self, residents: &Residents<'_>, arrivals: &Arrivals) {
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
fn sinks(schedule: &Schedule, residents: &Residents<'_>) -> HashMap<u32, Vec<Sink>> {
    let mut of: HashMap<u32, Vec<Sink>> = HashMap::with_capacity(schedule.dram_out.len() * 2);
    for (number, resident) in residents.all.iter().enumerate() {
        for transfer in &resident.tensor.transfers {
            of.entry(*transfer)
                .or_default()
                .push(Sink::Resident(number as u32));
        }
    }
    for (number, held) in residents
        .held
        .iter()
        .enumerate()
        .filter(|(_, h)| h.tensor.source == WeightSource::Dram)
    {
        for transfer in &held.tensor.transfers {
            of.entry(*transfer)
                .or_default()
                .push(Sink::Held(number as u32));
        }
    }
    of
}

/// Who brings what.
struct Arrivals {
    residents: Vec<Vec<(u32, Node)>>,
    held: Vec<Option<Node>>,
}

/// Ranges of L2 whose last result is on its way out: start to end and who takes it.
#[derive(Default)]
struct Pending(BTreeMap<u64, (u64, Vec<Node>)>);

impl Pending {
    /// Takes a range out, and gives whatever overlaps it.
    fn take(&mut self, start: u64, end: u64) -> Vec<Node> {
        let mut nodes = Vec::new();
        while let Some((&at, _)) = self
            .0
            .range(..end)
            .next_back()
            .filter(|(_, (last, _))| *last > start)
        {
            if let Some((last, found)) = self.0.remove(&at) {
                // The rest of the result is still on its way.
                if at < start {
                    self.0.insert(at, (start, found.clone()));
                }
                if last > end {
                    self.0.insert(end, (last, found.clone()));
                }
                nodes.extend(found);
            }
        }
        nodes
    }

    fn put(&mut self, start: u64, end: u64, nodes: &[Node]) {
        self.0.insert(start, (end, nodes.to_vec()));
    }
}

/// For each node, those that come before it.
#[derive(Debug)]
pub(crate) struct Predecessors {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Predecessors {
    fn new(count: usize, edges: &[(u32, u32)]) -> Predecessors {
        let mut starts = vec![0u32; count + 1];
        for (_, to) in edges {
            starts[*to as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        Predecessors {
            starts,
            nodes: edges.iter().map(|(from, _)| *from).collect(),
        }
    }

    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.nodes[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// Nodes in an order that respects all of this: the order in which an infinitely fast machine would come to them. Nodes
    /// of a cycle and behind come last.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let count = self.starts.len() - 1;
        let mut missing: Vec<u32> = (0..count).map(|n| self.of(n as u32).len() as u32).collect();
        let mut starts = vec![0u32; count + 1];
        for from in &self.nodes {
            starts[*from as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let mut followers = vec![0u32; self.nodes.len()];
        for to in 0..count as u32 {
            for from in self.of(to) {
                followers[fill[*from as usize] as usize] = to;
                fill[*from as usize] += 1;
            }
        }
        let mut sorted: Vec<u32> = (0..count as u32)
            .filter(|n| missing[*n as usize] == 0)
            .collect();
        let mut at = 0;
        while let Some(&node) = sorted.get(at) {
            at += 1;
            for to in &followers[starts[node as usize] as usize..starts[node as usize + 1] as usize]
            {
                missing[*to as usize] -= 1;
                if missing[*to as usize] == 0 {
                    sorted.push(*to);
                }
            }
        }
        sorted.extend((0..count as u32).filter(|n| missing[*n as usize] > 0));
        sorted
    }
}
