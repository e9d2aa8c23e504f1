//! Annealing: vertices and lanes change their places at random, less and less against the cost.

use super::cost::Costs;
use super::{Placement, Placer, Weights};
use fastrand::Rng;

/// A placement that changes.
struct Annealing<'a, 'p> {
    placer: &'a Placer<'p>,
    weights: &'a Weights,
    placement: &'a mut Placement,
    rng: &'a mut Rng,
    costs: Costs,
    /// For each slot the clusters whose first vertex is there.
    tenants: Vec<Vec<u32>>,
    /// What a move changed: the clusters with the spot of their first vertex, the pins with their positions.
    moved: Vec<(usize, u32)>,
    pins: Vec<(usize, u32)>,
    /// The parts that it changed, and what they cost before.
    parts: Vec<(usize, f64)>,
}

impl Placer<'_> {
    /// Anneals a placement.
    pub(in super::super) fn anneal(
        &self,
        placement: &mut Placement,
        weights: &Weights,
        moves: u32,
        heat: (f64, f64),
        rng: &mut Rng,
    ) {
        let costs = self.costs(placement, weights);
        let mut tenants = vec![Vec::new(); self.slot_room.len()];
        for cluster in 0..self.cluster.len() {
            tenants[self.slot_of(placement, cluster)].push(cluster as u32);
        }
        let mut cost = costs.total();
        let mut best = (cost, placement.clone());
        let cooling = (heat.1 / heat.0).powf(1.0 / f64::from(moves.max(1)));
        let mut temperature = heat.0;
        let mut annealing = Annealing {
            placer: self,
            weights,
            placement,
            rng,
            costs,
            tenants,
            moved: Vec::new(),
            pins: Vec::new(),
            parts: Vec::new(),
        };
        for number in 0..moves {
            if number % 256 == 255 && self.deadline.is_over() {
                break;
            }
            temperature *= cooling;
            let Some(change) = annealing.step() else {
                continue;
            };
            if change <= 0.0 || annealing.rng.f64() < (-change / temperature).exp() {
                cost += change;
                // Sums of changes drift: what is hardly better is not.
                if cost < best.0 - 1e-6 {
                    best.0 = cost;
                    best.1.spot.clone_from(&annealing.placement.spot);
                    best.1.position.clone_from(&annealing.placement.position);
                }
            } else {
                annealing.undo();
            }
        }
        *placement = best.1;
    }

    /// The slot that the first vertex of a cluster takes.
    fn slot_of(&self, placement: &Placement, cluster: usize) -> usize {
        let (element, slot) = self.at(placement, self.cluster[cluster][0]);
        (self.slot_first[element as usize] + slot) as usize
    }
}

impl Annealing<'_, '_> {
    /// Changes something; by how much the cost grew. `None` where nothing changed.
    fn step(&mut self) -> Option<f64> {
        let placer = self.placer;
        self.moved.clear();
        self.pins.clear();
        self.parts.clear();
        let things = placer.cluster.len() + placer.pins.len();
        let thing = self.rng.usize(..things.max(1));
        let overlap = self.costs.overlap();
        if thing < placer.cluster.len() {
            self.move_cluster(thing)?;
        } else {
            self.move_pin(thing - placer.cluster.len())?;
        }
        let mut change = self.costs.overlap() - overlap;
        self.parts.sort_unstable_by_key(|(part, _)| *part);
        self.parts.dedup_by_key(|(part, _)| *part);
        for (part, before) in &self.parts {
            let now = placer.part_cost(*part, self.weights, &mut self.costs);
            self.costs.set_part(*part, now);
            change += now - before;
        }
        Some(change)
    }

    /// A candidate for a vertex: any, or on a wide fabric mostly one near its neighbours.
    fn candidate(&mut self, lead: usize) -> u32 {
        let placer = self.placer;
        let candidates = &placer.candidates.of[lead];
        let any = self.rng.u32(..candidates.len() as u32);
        if placer.near.is_empty() || self.rng.u32(..8) == 0 {
            return any;
        }
        let body = &placer.kernel.vertices[lead];
        let wires = body.inputs.len() + body.outputs.len();
        if wires == 0 {
            return any;
        }
        let number = self.rng.usize(..wires);
        let neighbour = match body.inputs.get(number) {
            Some(wire) => placer.kernel.wires[*wire].source,
            None => placer.kernel.wires[body.outputs[number - body.inputs.len()]].sink,
        };
        let near = &placer.near[placer.at(self.placement, neighbour).0 as usize];
        if near.is_empty() {
            return any;
        }
        for _ in 0..8 {
            let element = near[self.rng.usize(..near.len())];
            let first = candidates.partition_point(|spot| spot.0 < element);
            let there = candidates[first..]
                .iter()
                .take_while(|spot| spot.0 == element)
                .count();
            if there > 0 {
                return (first + self.rng.usize(..there)) as u32;
            }
        }
        any
    }

    fn move_cluster(&mut self, cluster: usize) -> Option<()> {
        let placer = self.placer;
        let lead = placer.cluster[cluster][0];
        let candidates = &placer.candidates.of[lead];
        if candidates.len() < 2 {
            return None;
        }
        let number = self.candidate(lead);
        if number == self.placement.spot[lead] {
            return None;
        }
        let (old, new) = (placer.at(self.placement, lead), candidates[number as usize]);
        // Who is in the way where there is no room goes back to where this one was.
        let slot = (placer.slot_first[new.0 as usize] + new.1) as usize;
        let room = usize::from(placer.slot_room[slot]);
        let tenants = &self.tenants[slot];
        let full = tenants.len() >= room
            || placer.shared[new.0 as usize]
                && new.0 != old.0
                && self.costs.load(new.0) + placer.kernel.vertices[lead].throughput
                    > placer.interval;
        if full && !tenants.is_empty() {
            let other = tenants[self.rng.usize(..tenants.len())] as usize;
            let other_lead = placer.cluster[other][0];
            let back = placer.candidates.of[other_lead].binary_search(&old).ok()?;
            self.relocate(other, back as u32);
        }
        self.relocate(cluster, number);
        Some(())
    }

    fn move_pin(&mut self, pin: usize) -> Option<()> {
        let placer = self.placer;
        let body = &placer.pins[pin];
        let port = placer.at(self.placement, body.vertex).0;
        let count = placer.positions(body, port);
        if body.lane.is_none() || count < 2 || placer.fabric.is_ordered(port) {
            return None;
        }
        let position = self.rng.u32(..count);
        let old = self.placement.position[pin];
        let wanted = placer.taken(
            pin,
            placer.spots[body.class][port as usize][position as usize],
        );
        let mut there = placer.of_vertex[body.vertex]
            .iter()
            .copied()
            .filter(|other| {
                let held = placer.taken(*other, placer.position(self.placement, *other));
                *other != pin
                    && placer.pins[*other].lane.is_some()
                    && held.start < wanted.end
                    && wanted.start < held.end
            });
        // Pins of one width change places; nothing else is pushed aside.
        let other = match (there.next(), there.next()) {
            (None, _) => None,
            (Some(other), None) if placer.pins[other].class == body.class => Some(other),
            _ => return None,
        };
        if let Some(other) = other {
            self.pins.push((other, self.placement.position[other]));
            self.placement.position[other] = old;
        }
        self.pins.push((pin, old));
        self.placement.position[pin] = position;
        self.touch(body.vertex);
        placer.look(self.placement, body.vertex, &mut self.costs);
        Some(())
    }

    /// Remembers what the part of a vertex cost.
    fn touch(&mut self, vertex: usize) {
        let part = self.placer.part_of[vertex];
        if self.parts.iter().all(|(known, _)| *known != part) {
            self.parts.push((part, self.costs.part(part)));
        }
    }

    /// Gives a cluster another candidate.
    fn relocate(&mut self, cluster: usize, number: u32) {
        let placer = self.placer;
        let lead = placer.cluster[cluster][0];
        self.moved.push((cluster, self.placement.spot[lead]));
        for &member in &placer.cluster[cluster] {
            self.touch(member);
            for &pin in &placer.of_vertex[member] {
                self.pins.push((pin, self.placement.position[pin]));
            }
        }
        self.shift(cluster, number);
        // Ports differ in their links: positions that the new port does not have, or orders that it does not allow, are made anew.
        for &member in &placer.cluster[cluster] {
            let port = placer.at(self.placement, member).0;
            let fits = placer.of_vertex[member].iter().all(|pin| {
                placer.pins[*pin].lane.is_none()
                    || self.placement.position[*pin] < placer.positions(&placer.pins[*pin], port)
            });
            if !placer.of_vertex[member].is_empty() && (!fits || placer.fabric.is_ordered(port)) {
                placer.spread(self.placement, member, self.rng);
            }
            placer.look(self.placement, member, &mut self.costs);
        }
    }

    /// Moves a cluster, with the slots that it takes.
    fn shift(&mut self, cluster: usize, number: u32) {
        let placer = self.placer;
        let members = &placer.cluster[cluster];
        let old = placer.slot_of(self.placement, cluster);
        self.tenants[old].retain(|other| *other as usize != cluster);
        for &member in members {
            placer.occupy(self.placement, member, false, &mut self.costs);
        }
        self.placement.spot[members[0]] = number;
        placer.follow(self.placement, members[0]);
        for &member in members {
            placer.occupy(self.placement, member, true, &mut self.costs);
        }
        let new = placer.slot_of(self.placement, cluster);
        self.tenants[new].push(cluster as u32);
    }

    /// Takes back the last step.
    fn undo(&mut self) {
        let placer = self.placer;
        for (pin, position) in std::mem::take(&mut self.pins).into_iter().rev() {
            self.placement.position[pin] = position;
            if self.moved.is_empty() {
                placer.look(self.placement, placer.pins[pin].vertex, &mut self.costs);
            }
        }
        for (cluster, spot) in std::mem::take(&mut self.moved).into_iter().rev() {
            self.shift(cluster, spot);
            for &member in &placer.cluster[cluster] {
                placer.look(self.placement, member, &mut self.costs);
            }
        }
        for (part, cost) in &self.parts {
            self.costs.set_part(*part, *cost);
        }
    }
}
