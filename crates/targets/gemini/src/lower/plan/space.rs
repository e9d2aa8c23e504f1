//! Space: what lies where a result on its way out lay, and who writes there.

use super::super::residents::{Resident, Residents};
use super::{Arrivals, Node, Plan};
use crate::schedule::{Peer, TensorKind};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, HashSet};

impl Plan<'_> {
    /// Nothing comes before there is room for it: the workload before its first snapshot is over, and so is the way out of a
    /// result whose place it takes.
    pub(super) fn space(
        &mut self,
        residents: &Residents<'_>,
        arrivals: &Arrivals,
        awaited: &HashSet<(u32, u32)>,
    ) {
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
                    .push(Node::Store(index as u32));
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
            let writers = self.writers(residents, arrivals, number as u32);
            // Somebody comes after every one of these: who follows waits for the result as well.
            let settled = writers.iter().all(|writer| {
                matches!(writer, Node::Workload(_))
                    || awaited.contains(&(number as u32, self.number(*writer)))
            });
            for (start, end) in resident.extents() {
                if writers.is_empty() {
                    break;
                }
                for node in pending[resident.core].over(start, end, resident.first, settled) {
                    for writer in writers.iter().filter(|writer| **writer != node) {
                        self.edge(node, *writer);
                    }
                }
            }
            if let Some(nodes) = leaving.get(&(number as u32)) {
                for (start, end) in resident.extents() {
                    pending[resident.core].put(start, end, resident.last, nodes);
                }
            }
        }
    }

    /// Who writes into a tensor: the transfers that bring it, and the workloads of its own core that make a part of it.
    pub(crate) fn writers(
        &self,
        residents: &Residents<'_>,
        arrivals: &Arrivals,
        number: u32,
    ) -> SmallVec<[Node; 4]> {
        let resident = &residents.all[number as usize];
        let mut writers: SmallVec<[Node; 4]> = arrivals.residents[number as usize]
            .iter()
            .map(|(_, node)| *node)
            .collect();
        if resident.tensor.kind == TensorKind::Ofmap {
            if self.is_staged.contains(&number) {
                let own = self.first_of_core[resident.core] + resident.first as u32;
                writers.push(Node::Workload(own));
            }
        } else {
            for (_, makers) in self.own_makers(resident) {
                writers.push(Node::Workload(makers));
            }
        }
        writers.dedup();
        writers
    }

    /// The workloads of a tensor's own core that make parts of it while it stands in their snapshots, by transfer.
    pub(crate) fn own_makers(&self, resident: &Resident<'_>) -> SmallVec<[(u32, u32); 4]> {
        let first = self.first_of_core[resident.core];
        let id = self.schedule.cores[resident.core].id;
        let mut makers = SmallVec::new();
        if !resident.is_filled || resident.tensor.kind == TensorKind::Ofmap {
            return makers;
        }
        for source in resident
            .tensor
            .sources
            .iter()
            .filter(|source| matches!(source.peer, Peer::Core(_)))
        {
            let Some(&(workload, ofmap)) = self.pieces.get(&source.transfer) else {
                continue;
            };
            let here =
                (first + resident.first as u32..=first + resident.last as u32).contains(&workload);
            let named = self.workload(workload).2.ofmaps[ofmap as usize]
                .destinations
                .iter()
                .any(|d| d.peer == Peer::Core(id));
            if here && named {
                makers.push((source.transfer, workload));
            }
        }
        makers
    }
}

/// Ranges of L2 whose last result is on its way out.
#[derive(Default)]
struct Pending(BTreeMap<u64, Leaving>);

/// A range of L2: where it ends, the last snapshot that shows it, and who takes its bytes away.
#[derive(Clone)]
struct Leaving {
    end: u64,
    last: usize,
    nodes: Vec<Node>,
}

impl Pending {
    /// Whatever a tensor overlaps that is new in snapshot `first`. With `take`, its range is clear of results from now on.
    fn over(&mut self, start: u64, end: u64, first: usize, take: bool) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut at = end;
        while let Some((&from, leaving)) = self
            .0
            .range(..at)
            .next_back()
            .filter(|(_, leaving)| leaving.end > start)
        {
            at = from;
            // Two tensors that are there at the same time do not wait for each other.
            if leaving.last >= first {
                continue;
            }
            nodes.extend_from_slice(&leaving.nodes);
            if take {
                self.clear(from, start, end);
            }
        }
        nodes
    }

    /// Takes a range out of the one that begins at `from`.
    fn clear(&mut self, from: u64, start: u64, end: u64) {
        let Some(leaving) = self.0.remove(&from) else {
            return;
        };
        if leaving.end > end {
            self.0.insert(end.max(from), leaving.clone());
        }
        if from < start {
            let end = start.min(leaving.end);
            self.0.insert(from, Leaving { end, ..leaving });
        }
    }

    fn put(&mut self, start: u64, end: u64, last: usize, nodes: &[Node]) {
        // What an overlapping result leaves of another is still on its way; where both begin, both are.
        let mut nodes = nodes.to_vec();
        let mut last = last;
        let mut end = end;
        if let Some(other) = self.0.remove(&start) {
            nodes.extend(other.nodes);
            last = last.max(other.last);
            end = end.max(other.end);
        }
        self.0.insert(start, Leaving { end, last, nodes });
    }
}
