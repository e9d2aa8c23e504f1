//! The order in which a machine comes to its transfers from and to DRAM.

use super::builder::Builder;
use super::frames::Frames;
use super::plan::{Node, Plan, Predecessors, Sink};
use super::residents::Residents;
use crate::schedule::{Peer, Schedule};
use chipless_model::Limits;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Bytes that move in a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From and to DRAM.
    pub dram: f64,
    /// Over a link.
    pub link: f64,
}

/// For each tensor of each snapshot its place among the transfers of DRAM, numbered from 0 without gaps; `None` for what stays on the
/// chip.
///
/// Whenever DRAM is free it takes that transfer, of those for which nothing is left to wait, behind which the longest chain of work
/// waits. Loads into one tensor follow each other, as they share its place. The order is one in which all of it can happen, so a
/// schedule that comes to an end without a queue does so with this one: loads of a tensor taken together must not wait for each other, which
/// they never do in what [`Schedule::queue_at`] is for.
pub(crate) fn paced(schedule: &Schedule, pace: Pace) -> Vec<Option<u32>> {
    let mut builder = Builder::new(&Limits::default());
    let residents = Residents::find(schedule, 1, 0, 0, &mut builder);
    let (plan, predecessors) = Plan::new(schedule, &residents, Frames::of(schedule)).into_order();
    let order = Paced::new(&plan, &predecessors, pace).run();
    let mut places: Vec<Option<u32>> = vec![None; residents.all.len()];
    let mut next = 0;
    let mut take = || {
        next += 1;
        next - 1
    };
    for members in order {
        // Tensors whose first part comes by one transfer have one place.
        let mut shared: HashMap<u32, u32> = HashMap::new();
        for node in members {
            match plan.node(node) {
                Node::Load(index) => {
                    for sink in &plan.loads[index as usize].sinks {
                        let Sink::Resident(number) = *sink else {
                            continue;
                        };
                        let sources = &residents.all[number as usize].tensor.sources;
                        let mut sources = sources.iter();
                        let first = sources.find(|source| matches!(source.peer, Peer::Dram(_)));
                        let first = first.map_or(u32::MAX, |source| source.transfer);
                        let place = *shared.entry(first).or_insert_with(&mut take);
                        places[number as usize] = Some(place);
                    }
                }
                Node::Store(index) => {
                    if let Some(staged) = plan.stores[index as usize].staged {
                        places[staged as usize] = Some(take());
                    }
                }
                _ => {}
            }
        }
    }
    let snapshots = (0..plan.workloads()).flat_map(|workload| residents.of(workload as usize));
    snapshots
        .map(|resident| places[*resident as usize])
        .collect()
}

/// A machine that is followed through a schedule.
struct Paced<'p> {
    plan: &'p Plan<'p>,
    sorted: Vec<u32>,
    followers: Vec<Vec<u32>>,
    cycles: Vec<u64>,
    /// Nodes that are left to wait for, by the head of the group.
    missing: Vec<u32>,
    /// The first of the nodes that DRAM takes together.
    head: Vec<u32>,
    /// All of them, by the first.
    members: HashMap<u32, Vec<u32>>,
    /// Cycles of the longest chain from a node on.
    behind: Vec<u64>,
}

impl<'p> Paced<'p> {
    fn new(plan: &'p Plan<'p>, predecessors: &Predecessors, pace: Pace) -> Paced<'p> {
        let count = plan.nodes();
        let sorted = predecessors.sorted();
        let mut followers = vec![Vec::new(); count];
        for node in 0..count as u32 {
            for before in predecessors.of(node) {
                followers[*before as usize].push(node);
            }
        }
        let cycles: Vec<u64> = (0..count as u32)
            .map(|node| cycles(plan, plan.node(node), pace))
            .collect();
        let head = heads(plan);
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut missing = vec![0; count];
        for node in 0..count as u32 {
            members.entry(head[node as usize]).or_default().push(node);
            missing[head[node as usize] as usize] += predecessors.of(node).len() as u32;
        }
        let mut behind = vec![0; count];
        for node in sorted.iter().rev() {
            let node = *node as usize;
            let longest = followers[node].iter().map(|next| behind[*next as usize]);
            behind[node] = cycles[node] + longest.max().unwrap_or(0);
        }
        Paced {
            plan,
            sorted,
            followers,
            cycles,
            missing,
            head,
            members,
            behind,
        }
    }

    fn is_dram(&self, node: u32) -> bool {
        matches!(self.plan.node(node), Node::Load(_) | Node::Store(_))
    }

    /// Transfers of DRAM in their order, those that are taken together in one list.
    fn run(mut self) -> Vec<Vec<u32>> {
        let mut order: Vec<Vec<u32>> = Vec::new();
        let mut ends: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut waiting: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
        let mut is_taken = vec![false; self.missing.len()];
        let mut free = 0;
        let mut ready: Vec<u32> = (0..self.missing.len() as u32)
            .filter(|node| self.head[*node as usize] == *node && self.missing[*node as usize] == 0)
            .collect();
        let mut now = 0;
        loop {
            for node in std::mem::take(&mut ready) {
                if self.is_dram(node) {
                    let members = self.members[&node].iter();
                    let longest = members.map(|node| self.behind[*node as usize]).max();
                    waiting.push((longest.unwrap_or(0), Reverse(node)));
                } else {
                    ends.push(Reverse((now + self.cycles[node as usize], node)));
                }
            }
            if free <= now
                && let Some((_, Reverse(head))) = waiting.pop()
            {
                let members = self.members[&head].clone();
                free = now;
                for node in &members {
                    free += self.cycles[*node as usize];
                    is_taken[*node as usize] = true;
                    ends.push(Reverse((free, *node)));
                }
                order.push(members);
            }
            let Some(Reverse((time, node))) = ends.pop() else {
                break;
            };
            now = time;
            self.end(node, &mut ready);
            while let Some(Reverse((time, node))) = ends.peek().copied()
                && time == now
            {
                ends.pop();
                self.end(node, &mut ready);
            }
        }
        // What waits in a circle comes last.
        for node in &self.sorted {
            if self.is_dram(*node) && !is_taken[*node as usize] {
                order.push(vec![*node]);
            }
        }
        order
    }

    fn end(&mut self, node: u32, ready: &mut Vec<u32>) {
        for next in &self.followers[node as usize] {
            let head = self.head[*next as usize];
            let missing = &mut self.missing[head as usize];
            *missing -= 1;
            if *missing == 0 {
                ready.push(head);
            }
        }
    }
}

fn cycles(plan: &Plan<'_>, node: Node, pace: Pace) -> u64 {
    let piece = |workload: u32, ofmap: u32| {
        let piece = &plan.workload(workload).2.ofmaps[ofmap as usize];
        piece.size.unwrap_or_else(|| piece.bounds.elements())
    };
    let at = |bytes: u64, pace: f64| (bytes as f64 / pace.max(1e-9)).ceil() as u64;
    match node {
        Node::Begin(_) | Node::End(_) => 0,
        Node::Workload(index) => plan.workload(index).2.time,
        Node::Load(index) => {
            let out = plan.loads[index as usize].out;
            at(plan.schedule.dram_out[out as usize].size, pace.dram)
        }
        Node::Store(index) => {
            let store = &plan.stores[index as usize];
            at(piece(store.workload, store.ofmap), pace.dram)
        }
        Node::Send(index) => {
            let send = &plan.sends[index as usize];
            at(piece(send.workload, send.ofmap), pace.link)
        }
    }
}

/// For each node the first of those that DRAM takes together: loads that share a tensor.
fn heads(plan: &Plan<'_>) -> Vec<u32> {
    let mut head: Vec<u32> = (0..plan.nodes() as u32).collect();
    fn find(head: &mut [u32], node: u32) -> u32 {
        let mut at = node;
        while head[at as usize] != at {
            head[at as usize] = head[head[at as usize] as usize];
            at = head[at as usize];
        }
        at
    }
    let mut filled: HashMap<u32, u32> = HashMap::new();
    for (index, load) in plan.loads.iter().enumerate() {
        let node = plan.number(Node::Load(index as u32));
        for sink in &load.sinks {
            let Sink::Resident(resident) = sink else {
                continue;
            };
            let other = *filled.entry(*resident).or_insert(node);
            let (a, b) = (find(&mut head, node), find(&mut head, other));
            head[a.max(b) as usize] = a.min(b);
        }
    }
    for node in 0..head.len() as u32 {
        head[node as usize] = find(&mut head, node);
    }
    head
}
