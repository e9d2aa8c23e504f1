//! Who comes before whom, asked in constant time.
//!
//! The workloads of a core are a chain, and so is the queue of DRAM. For every node two clocks say how far each chain has come
//! before it, and from where on each chain comes after it.

use crate::lower::plan::{Node, Plan, Predecessors};

/// No place of a chain.
const NEVER: u32 = u32::MAX;

pub(super) struct Clocks {
    chains: usize,
    /// Chain and place of each node that is in one.
    places: Vec<Option<(u32, u32)>>,
    /// For each node and chain, how many places of the chain come before it.
    before: Vec<u32>,
    /// For each node and chain, the first place that comes after it.
    after: Vec<u32>,
}

impl Clocks {
    /// Clocks of nodes that are `sorted`: all of them, what comes before first.
    pub(super) fn new(plan: &Plan<'_>, predecessors: &Predecessors, sorted: &[u32]) -> Clocks {
        let nodes = plan.nodes();
        let mut places = vec![None; nodes];
        // A large mesh may have few cores that work: the others are no chains.
        let cores = plan.first_of_core.windows(2).map(|ends| ends[0]..ends[1]);
        let mut working = 0;
        for workloads in cores.filter(|workloads| !workloads.is_empty()) {
            for index in workloads.clone() {
                places[plan.number(Node::Workload(index)) as usize] =
                    Some((working, index - workloads.start));
            }
            working += 1;
        }
        for (place, node) in plan.dram_queue.iter().enumerate() {
            places[plan.number(*node) as usize] = Some((working, place as u32));
        }
        let chains = working as usize + 1;
        let mut clocks = Clocks {
            chains,
            places,
            before: vec![0; nodes * chains],
            after: vec![NEVER; nodes * chains],
        };
        for &node in sorted {
            for &earlier in predecessors.of(node) {
                clocks.follow(earlier, node);
            }
        }
        for &node in sorted.iter().rev() {
            for &earlier in predecessors.of(node) {
                clocks.precede(earlier, node);
            }
        }
        clocks
    }

    fn follow(&mut self, earlier: u32, later: u32) {
        let (from, to) = (earlier as usize * self.chains, later as usize * self.chains);
        for chain in 0..self.chains {
            self.before[to + chain] = self.before[to + chain].max(self.before[from + chain]);
        }
        if let Some((chain, place)) = self.places[earlier as usize] {
            let count = &mut self.before[to + chain as usize];
            *count = (*count).max(place + 1);
        }
    }

    fn precede(&mut self, earlier: u32, later: u32) {
        let (to, from) = (earlier as usize * self.chains, later as usize * self.chains);
        for chain in 0..self.chains {
            self.after[to + chain] = self.after[to + chain].min(self.after[from + chain]);
        }
        if let Some((chain, place)) = self.places[later as usize] {
            let first = &mut self.after[to + chain as usize];
            *first = (*first).min(place);
        }
    }

    /// Whether one node is over before the other begins.
    pub(super) fn is_before(&self, a: u32, b: u32, predecessors: &Predecessors) -> bool {
        if a == b {
            return false;
        }
        if let Some((chain, place)) = self.places[a as usize] {
            return self.before[b as usize * self.chains + chain as usize] > place;
        }
        if let Some((chain, place)) = self.places[b as usize] {
            return self.after[a as usize * self.chains + chain as usize] <= place;
        }
        predecessors
            .of(b)
            .iter()
            .any(|&earlier| earlier == a || self.is_before(a, earlier, predecessors))
    }

    /// The position of the first workload of a core that comes after a node.
    pub(super) fn first_after(&self, node: u32, core: usize) -> Option<u32> {
        Some(self.after[node as usize * self.chains + core]).filter(|place| *place != NEVER)
    }
}
