//! What a placement costs.

use super::{NONE, Placement, Placer};
use crate::kernel::Place;

/// A wire as the cost looks at it, in one place of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedWire {
    pub(super) wire: u32,
    pub(super) source: u32,
    pub(super) sink: u32,
    pub(super) source_pin: u32,
    pub(super) sink_pin: u32,
    /// Cycles from the start of the source until the value is ready.
    pub(super) ready: i32,
    /// Whether both ends can be on one element without a link between them.
    pub(super) together: bool,
}

/// Weights of the cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub(crate) latency: f64,
    pub(crate) excess: f64,
    pub(crate) length: f64,
}

/// What a vertex too many on a place costs.
const OVERLAP: f64 = 1000.0;

/// A placement with what its cost is made of.
pub(super) struct Costs {
    /// The element of each vertex.
    element: Vec<u32>,
    /// For each pin the element at the inner end of its link.
    inner: Vec<u32>,
    /// Length of each wire, and start of each vertex, of the parts as they were looked at last.
    length: Vec<i32>,
    start: Vec<i32>,
    /// Vertices on each slot, cycles of each element that are taken, and how much of it is too many.
    count: Vec<u16>,
    load: Vec<i32>,
    overlap: i32,
    /// The cost of each part.
    part: Vec<f64>,
}

impl Costs {
    /// The whole cost.
    pub(super) fn total(&self) -> f64 {
        self.part.iter().sum::<f64>() + f64::from(self.overlap) * OVERLAP
    }

    /// What vertices too many cost.
    pub(super) fn overlap(&self) -> f64 {
        f64::from(self.overlap) * OVERLAP
    }

    /// Cycles of an element that are taken.
    pub(super) fn load(&self, element: u32) -> i32 {
        self.load[element as usize]
    }

    pub(super) fn part(&self, part: usize) -> f64 {
        self.part[part]
    }

    pub(super) fn set_part(&mut self, part: usize, cost: f64) {
        self.part[part] = cost;
    }
}

impl Placer<'_> {
    /// The costs of a placement.
    pub(super) fn costs(&self, placement: &Placement, weights: &Weights) -> Costs {
        let vertices = self.kernel.vertices.len();
        let mut costs = Costs {
            element: vec![0; vertices],
            inner: vec![0; self.pins.len()],
            length: vec![0; self.timed.len()],
            start: vec![0; vertices],
            count: vec![0; self.slot_room.len()],
            load: vec![0; self.shared.len()],
            overlap: 0,
            part: vec![0.0; self.parts.len()],
        };
        for vertex in 0..vertices {
            self.look(placement, vertex, &mut costs);
            self.occupy(placement, vertex, true, &mut costs);
        }
        for part in 0..self.parts.len() {
            costs.part[part] = self.part_cost(part, weights, &mut costs);
        }
        costs
    }

    /// Looks up where a vertex and its pins are.
    pub(super) fn look(&self, placement: &Placement, vertex: usize, costs: &mut Costs) {
        costs.element[vertex] = self.at(placement, vertex).0;
        let outgoing = self.kernel.vertices[vertex].place == Place::Input;
        for &pin in &self.of_vertex[vertex] {
            let link = self.fabric.links[self.position(placement, pin).0 as usize];
            costs.inner[pin] = if outgoing { link.sink } else { link.source };
        }
    }

    /// Takes or leaves the slots of a vertex.
    pub(super) fn occupy(
        &self,
        placement: &Placement,
        vertex: usize,
        is_new: bool,
        costs: &mut Costs,
    ) {
        let body = &self.kernel.vertices[vertex];
        let (element, slot) = self.at(placement, vertex);
        let dedicated = body.place == Place::Unit && !body.temporal;
        let parts = if dedicated {
            body.width
                .div_ceil(self.granularity[element as usize])
                .max(1)
        } else {
            1
        };
        for part in slot..slot + parts {
            let index = (self.slot_first[element as usize] + part) as usize;
            if let (Some(count), Some(room)) =
                (costs.count.get_mut(index), self.slot_room.get(index))
            {
                if is_new {
                    *count += 1;
                    costs.overlap += i32::from(*count > *room);
                } else {
                    costs.overlap -= i32::from(*count > *room);
                    *count -= 1;
                }
            }
        }
        // One start a cycle.
        if self.shared[element as usize] {
            let load = &mut costs.load[element as usize];
            let before = (*load - self.interval).max(0);
            *load += if is_new {
                body.throughput
            } else {
                -body.throughput
            };
            costs.overlap += (*load - self.interval).max(0) - before;
        }
    }

    /// The cost of a part of the graph.
    pub(super) fn part_cost(&self, part: usize, weights: &Weights, costs: &mut Costs) -> f64 {
        let (latency, excess, total) = self.estimate(part, costs);
        f64::from(latency.max(self.bound)) * weights.latency
            + f64::from(excess) * weights.excess
            + f64::from(total) * weights.length
    }

    /// Links of the shortest way of a wire.
    #[inline]
    fn length(&self, costs: &Costs, wire: &TimedWire) -> i32 {
        let (to, last) = match wire.sink_pin {
            NONE => (costs.element[wire.sink as usize], 0),
            pin => (costs.inner[pin as usize], 1),
        };
        let hops = match wire.source_pin {
            NONE => match costs.element[wire.source as usize] {
                from if from == to && wire.together && self.shared[from as usize] => 0,
                from => self.around[from as usize * self.fabric.size() + to as usize],
            },
            pin => self.fabric.hops(costs.inner[pin as usize], to) + 1,
        };
        i32::from(hops) + last
    }

    /// Times of a part as the distances promise them: latency, links beyond the shortest ways, and links.
    fn estimate(&self, part: usize, costs: &mut Costs) -> (i32, i32, i32) {
        let mut start = std::mem::take(&mut costs.start);
        let mut length = std::mem::take(&mut costs.length);
        let (mut latency, mut total) = (0, 0);
        for &vertex in &self.parts[part] {
            let mut at = 0;
            for number in self.into[vertex].clone() {
                let wire = &self.timed[number];
                let links = self.length(costs, wire);
                length[number] = links;
                total += links;
                at = at.max(start[wire.source as usize] + wire.ready + (links - 1).max(0));
            }
            start[vertex] = at;
            latency = latency.max(at + self.kernel.vertices[vertex].latency);
        }
        // Vertices wait for their consumers as far as their own operands can be delayed.
        let depth = |vertex: u32| self.depth[costs.element[vertex as usize] as usize];
        let mut excess = 0;
        for &vertex in self.parts[part].iter().rev() {
            let body = &self.kernel.vertices[vertex];
            let (mut wanted, mut slack) = (0, i32::MAX);
            let mut over = 0;
            for number in &self.out_of[vertex] {
                let wire = &self.timed[*number as usize];
                let wait = start[wire.sink as usize]
                    - (start[vertex] + wire.ready + (length[*number as usize] - 1).max(0));
                let late = wait - depth(wire.sink);
                slack = slack.min(wait);
                wanted = wanted.max(late);
                over += late.max(0);
            }
            excess += over;
            if wanted > 0 && body.place == Place::Unit {
                let own = depth(vertex as u32);
                let arrivals = self.into[vertex].clone().map(|number| {
                    let wire = &self.timed[number];
                    start[wire.source as usize] + wire.ready + (length[number] - 1).max(0)
                });
                let room = arrivals
                    .map(|arrival| own - (start[vertex] - arrival))
                    .min()
                    .unwrap_or(i32::MAX);
                let push = wanted.min(slack).min(room.max(0));
                start[vertex] += push;
                // What it waits itself, its wires need not.
                for number in &self.out_of[vertex] {
                    let wire = &self.timed[*number as usize];
                    let wait = start[wire.sink as usize]
                        - (start[vertex] + wire.ready + (length[*number as usize] - 1).max(0));
                    let late = wait - depth(wire.sink);
                    excess -= (late + push).max(0) - late.max(0);
                }
            }
        }
        costs.start = start;
        costs.length = length;
        (latency, excess, total)
    }

    /// Whether every vertex has a place of its own.
    pub(crate) fn is_apart(&self, placement: &Placement) -> bool {
        self.costs(placement, &Weights::NONE).overlap == 0
    }

    /// Lengths that the wires should have, from the least to the most.
    pub(crate) fn windows(&self, placement: &Placement) -> Vec<(i32, i32)> {
        let costs = self.costs(placement, &Weights::NONE);
        let mut windows = vec![(0, 0); self.kernel.wires.len()];
        for (wire, length) in self.timed.iter().zip(&costs.length) {
            let most =
                costs.start[wire.sink as usize] - costs.start[wire.source as usize] - wire.ready
                    + 1;
            let most = most.max(*length);
            windows[wire.wire as usize] = (
                (most - self.depth[costs.element[wire.sink as usize] as usize]).max(*length),
                most,
            );
        }
        windows
    }
}

impl Weights {
    /// For who wants to know times and places, not the cost.
    const NONE: Weights = Weights {
        latency: 0.0,
        excess: 0.0,
        length: 0.0,
    };
}
