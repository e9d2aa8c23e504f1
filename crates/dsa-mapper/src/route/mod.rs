//! Routing by negotiated congestion (PathFinder): every net takes the cheapest way, links that two values want become dearer until
//! every one of them has one value.
//!
//! A wire asks for a way of a certain length, between a least and a most number of links, because the delay buffers cover only part of
//! what operands have to wait. The search therefore goes by links and by the number of links so far.

mod reach;

use crate::fabric::Fabric;
use crate::kernel::{Kernel, Place};
use crate::place::{Placement, Placer};
use chipless_dsa::adg::ElementId;
use reach::Frontier;

/// A link of a net, and the way to it.
#[derive(Clone, Copy, Debug)]
struct Branch {
    link: u32,
    slot: u32,
    /// Links from the source, this one included.
    depth: u32,
    /// The branch before it.
    before: u32,
    /// The lowest bit of the value that it carries, and how many.
    low: u32,
    width: u32,
    /// The coarsest link so far: parts of the value that begin at its multiples can be taken off.
    coarsest: u32,
}

/// The ways of a net: a tree.
#[derive(Clone, Debug, Default)]
struct Tree {
    branches: Vec<Branch>,
    /// For each wire of the net its last branch.
    ends: Vec<u32>,
}

/// The ways of all wires.
pub(crate) struct Routing {
    /// For each wire its links and slots.
    pub(crate) ways: Vec<Vec<(u32, u32)>>,
    /// Links on which values collide: link, slot, values too many.
    pub(crate) collisions: Vec<(u32, u32, u16)>,
    /// Wires for which there is no way at all.
    pub(crate) unreached: usize,
}

/// Links that a way may have.
pub(crate) const LONGEST: usize = 255;

const NONE: u32 = u32::MAX;

pub(crate) struct Router<'p> {
    placer: &'p Placer<'p>,
    placement: &'p Placement,
    /// Values on each slot of each link.
    used: Vec<u16>,
    history: Vec<f32>,
    pressure: f32,
    trees: Vec<Tree>,
    /// The net that a slot of a port's link is kept for; `NONE` for any.
    owner: Vec<u32>,
    frontier: Frontier,
}

impl<'p> Router<'p> {
    pub(crate) fn new(placer: &'p Placer<'p>, placement: &'p Placement) -> Router<'p> {
        let (fabric, kernel) = (placer.fabric, placer.kernel);
        let mut owner = vec![NONE; fabric.slots];
        // Links of ports belong to the pins on them; the first link of a stated port to nobody else.
        for &port in fabric.input_ports.iter().chain(&fabric.output_ports) {
            let stated = fabric.adg.elements[ElementId::new(port as usize)]
                .port()
                .is_some_and(|port| port.stated);
            let links = if fabric.outputs[port as usize].is_empty() {
                &fabric.inputs[port as usize]
            } else {
                &fabric.outputs[port as usize]
            };
            let ordered = fabric.is_ordered(port);
            let is_input = !fabric.outputs[port as usize].is_empty();
            for (index, link) in links.iter().enumerate() {
                let body = fabric.links[*link as usize];
                for slot in 0..body.slots {
                    if (index == 0 && stated) || ordered || !is_input {
                        owner[(body.first + slot) as usize] = NONE - 1;
                    }
                }
            }
        }
        for (pin, body) in placer.pins.iter().enumerate() {
            let (link, slot) = placer.position(placement, pin);
            let wireway = fabric.links[link as usize];
            if let Some(wire) = body.wires.first() {
                let wire = &kernel.wires[*wire];
                for part in 0..fabric.slots_for(link, wire.width) {
                    if let Some(owner) = owner.get_mut((wireway.first + slot + part) as usize) {
                        *owner = wire.net as u32;
                    }
                }
            }
        }
        let states = fabric.size() * (LONGEST + 1);
        Router {
            placer,
            placement,
            used: vec![0; fabric.slots],
            history: vec![0.0; fabric.slots],
            pressure: 0.5,
            trees: kernel.nets.iter().map(|_| Tree::default()).collect(),
            owner,
            frontier: Frontier::new(states),
        }
    }

    fn kernel(&self) -> &'p Kernel {
        self.placer.kernel
    }

    fn fabric(&self) -> &'p Fabric<'p> {
        self.placer.fabric
    }

    /// Routes everything, in at most so many rounds. Wires ask for the lengths in `windows`.
    pub(crate) fn route(&mut self, windows: &[(i32, i32)], rounds: u32) -> Routing {
        let kernel = self.kernel();
        let mut order: Vec<usize> = (0..kernel.nets.len()).collect();
        // Nets with little choice first: long ones, and those with many sinks.
        order.sort_by_key(|net| {
            std::cmp::Reverse(
                kernel.nets[*net]
                    .wires
                    .iter()
                    .map(|wire| windows[*wire].0)
                    .sum::<i32>(),
            )
        });
        let mut unreached = vec![0; kernel.nets.len()];
        for _ in 0..rounds.max(1) {
            for (number, &net) in order.iter().enumerate() {
                if number % 16 == 15 && self.placer.deadline.is_over() {
                    break;
                }
                let crowded = self.trees[net]
                    .branches
                    .iter()
                    .any(|branch| self.is_crowded(branch));
                let missing = self.trees[net].ends.len() < kernel.nets[net].wires.len();
                if crowded || missing || unreached[net] > 0 || self.strays(net, windows) {
                    self.remove(net);
                    unreached[net] = self.grow(net, windows);
                }
            }
            let collisions = self.collisions();
            if collisions.is_empty() {
                break;
            }
            for (link, slot, _) in collisions {
                let index = (self.fabric().links[link as usize].first + slot) as usize;
                self.history[index] += 1.0;
            }
            self.pressure *= 1.5;
        }
        let mut ways = vec![Vec::new(); kernel.wires.len()];
        for (net, tree) in self.trees.iter().enumerate() {
            for (wire, end) in kernel.nets[net].wires.iter().zip(&tree.ends) {
                let mut at = *end;
                while let Some(branch) = tree.branches.get(at as usize) {
                    // A part of what the branch carries lies behind its beginning.
                    let behind = kernel.wires[*wire].low.saturating_sub(branch.low)
                        / self.fabric().links[branch.link as usize].granularity;
                    ways[*wire].push((branch.link, branch.slot + behind));
                    at = branch.before;
                }
                ways[*wire].reverse();
            }
        }
        // Nets that time was not enough for have no way.
        let late = kernel
            .nets
            .iter()
            .zip(&self.trees)
            .map(|(net, tree)| net.wires.len().saturating_sub(tree.ends.len()));
        Routing {
            ways,
            collisions: self.collisions(),
            unreached: unreached.iter().sum::<usize>() + late.sum::<usize>(),
        }
    }

    /// Slots of all links that a branch takes.
    fn taken(&self, branch: &Branch) -> std::ops::Range<u32> {
        let first = self.fabric().links[branch.link as usize].first + branch.slot;
        first..first + self.fabric().slots_for(branch.link, branch.width)
    }

    fn is_crowded(&self, branch: &Branch) -> bool {
        let room = self.room(branch.link);
        self.taken(branch).any(|slot| {
            self.used
                .get(slot as usize)
                .is_some_and(|used| *used > room)
        })
    }

    /// Values that a link has room for: one, or one in each cycle of the interval.
    fn room(&self, link: u32) -> u16 {
        let values = self.fabric().values[link as usize];
        values.min(self.placer.interval.max(1) as u32) as u16
    }

    /// Whether a wire of the net has not the length that it should.
    fn strays(&self, net: usize, windows: &[(i32, i32)]) -> bool {
        let tree = &self.trees[net];
        self.kernel().nets[net]
            .wires
            .iter()
            .zip(&tree.ends)
            .any(|(wire, end)| {
                let length = tree
                    .branches
                    .get(*end as usize)
                    .map_or(0, |branch| branch.depth as i32);
                length < windows[*wire].0 || length > windows[*wire].1
            })
    }

    fn collisions(&self) -> Vec<(u32, u32, u16)> {
        let mut found = Vec::new();
        for (number, link) in self.fabric().links.iter().enumerate() {
            for slot in 0..link.slots {
                let used = self.used[(link.first + slot) as usize];
                let room = self.room(number as u32);
                if used > room {
                    found.push((number as u32, slot, used - room));
                }
            }
        }
        found
    }

    fn mark(&mut self, branch: Branch, add: bool) {
        for slot in self.taken(&branch) {
            if let Some(used) = self.used.get_mut(slot as usize) {
                *used = if add {
                    *used + 1
                } else {
                    used.saturating_sub(1)
                };
            }
        }
    }

    fn remove(&mut self, net: usize) {
        let tree = std::mem::take(&mut self.trees[net]);
        for branch in tree.branches {
            self.mark(branch, false);
        }
    }

    /// Grows the tree of a net to all its sinks; how many it did not reach.
    fn grow(&mut self, net: usize, windows: &[(i32, i32)]) -> usize {
        let kernel = self.kernel();
        let wires = &kernel.nets[net].wires;
        let mut order: Vec<usize> = (0..wires.len()).collect();
        // Whole values first, then short ways: parts and longer ways branch off them.
        order.sort_by_key(|index| {
            (
                std::cmp::Reverse(kernel.wires[wires[*index]].width),
                windows[wires[*index]].1,
            )
        });
        let mut ends = vec![NONE; wires.len()];
        let mut missed = 0;
        for index in order {
            let wire = wires[index];
            let body = &kernel.wires[wire];
            let (from, to) = (
                self.placer.at(self.placement, body.source),
                self.placer.at(self.placement, body.sink),
            );
            let inside = from.0 == to.0 && self.placer.is_shared(from.0);
            if inside && kernel.vertices[body.sink].place == Place::Unit {
                continue;
            }
            match self.reach(net, wire, windows[wire]) {
                Some(end) => ends[index] = end,
                None => missed += 1,
            }
        }
        self.trees[net].ends = ends;
        missed
    }

    /// What a slot of a link costs a net; `None` where the net may not have it.
    fn price(&self, link: u32, slot: u32, parts: u32, net: usize) -> Option<f32> {
        let body = self.fabric().links[link as usize];
        if slot + parts > body.slots {
            return None;
        }
        let mut price = 0.0;
        for index in body.first + slot..body.first + slot + parts {
            let owner = self.owner[index as usize];
            if owner != NONE && owner != net as u32 {
                return None;
            }
            let room = self.room(link);
            let crowd = f32::from((self.used[index as usize] + 1).saturating_sub(room));
            price += (1.0 + self.history[index as usize]) * (1.0 + crowd * self.pressure * 4.0);
        }
        Some(price)
    }
}
