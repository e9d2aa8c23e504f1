//! Annealing: vertices and lanes change their places at random, less and less against the cost.

use super::{Placement, Placer, Scratch, Weights};
use fastrand::Rng;

impl Placer<'_> {
    /// Anneals a placement.
    pub(in super::super) fn anneal(
        &self,
        placement: &mut Placement,
        weights: &Weights,
        moves: u32,
        heat: (f64, f64),
        rng: &mut Rng,
    ) -> f64 {
        let mut scratch = Scratch::default();
        let mut cost = self.cost(placement, weights, &mut scratch);
        let mut best = (cost, placement.clone());
        let cooling = (heat.1 / heat.0).powf(1.0 / f64::from(moves.max(1)));
        let mut temperature = heat.0;
        let mut undo: Vec<(bool, usize, u32)> = Vec::new();
        let holder = |placement: &Placement, spot: (u32, u32)| -> Option<usize> {
            (0..self.cluster.len())
                .find(|cluster| self.at(placement, self.cluster[*cluster][0]) == spot)
        };
        for number in 0..moves {
            if number % 256 == 255 && self.deadline.is_over() {
                break;
            }
            temperature *= cooling;
            undo.clear();
            let things = self.cluster.len() + self.pins.len();
            let thing = rng.usize(..things.max(1));
            if thing < self.cluster.len() {
                let lead = self.cluster[thing][0];
                let candidates = &self.candidates.of[lead];
                if candidates.len() < 2 {
                    continue;
                }
                let number = rng.u32(..candidates.len() as u32);
                if number == placement.spot[lead] {
                    continue;
                }
                let (old, new) = (self.at(placement, lead), candidates[number as usize]);
                let other = holder(placement, new).filter(|_| {
                    self.slot_room[(self.slot_first[new.0 as usize] + new.1) as usize] == 1
                });
                if let Some(other) = other {
                    let other_lead = self.cluster[other][0];
                    let Some(back) = self.candidates.of[other_lead]
                        .iter()
                        .position(|spot| *spot == old)
                    else {
                        continue;
                    };
                    self.relocate(placement, other, back as u32, rng, &mut undo);
                }
                self.relocate(placement, thing, number, rng, &mut undo);
            } else {
                let pin = thing - self.cluster.len();
                let body = &self.pins[pin];
                let port = self.at(placement, body.vertex).0;
                let count = self.positions(body, port);
                if body.lane.is_none() || count < 2 || self.fabric.is_ordered(port) {
                    continue;
                }
                let position = rng.u32(..count);
                let old = placement.position[pin];
                let wanted = self.taken(
                    pin,
                    self.spots[body.class][port as usize][position as usize],
                );
                let mut there = self.of_vertex[body.vertex].iter().copied().filter(|other| {
                    let held = self.taken(*other, self.position(placement, *other));
                    *other != pin
                        && self.pins[*other].lane.is_some()
                        && held.start < wanted.end
                        && wanted.start < held.end
                });
                // Pins of one width change places; nothing else is pushed aside.
                match (there.next(), there.next()) {
                    (None, _) => {}
                    (Some(other), None) if self.pins[other].class == body.class => {
                        undo.push((false, other, placement.position[other]));
                        placement.position[other] = old;
                    }
                    _ => continue,
                }
                undo.push((false, pin, old));
                placement.position[pin] = position;
            }
            let new_cost = self.cost(placement, weights, &mut scratch);
            if new_cost <= cost || rng.f64() < ((cost - new_cost) / temperature).exp() {
                cost = new_cost;
                if cost < best.0 {
                    best.0 = cost;
                    best.1.spot.clone_from(&placement.spot);
                    best.1.position.clone_from(&placement.position);
                }
            } else {
                for (is_vertex, index, value) in undo.drain(..).rev() {
                    if is_vertex {
                        placement.spot[index] = value;
                    } else {
                        placement.position[index] = value;
                    }
                }
            }
        }
        *placement = best.1;
        best.0
    }

    fn relocate(
        &self,
        placement: &mut Placement,
        cluster: usize,
        number: u32,
        rng: &mut Rng,
        undo: &mut Vec<(bool, usize, u32)>,
    ) {
        for &member in &self.cluster[cluster] {
            undo.push((true, member, placement.spot[member]));
            for &pin in &self.of_vertex[member] {
                undo.push((false, pin, placement.position[pin]));
            }
        }
        let lead = self.cluster[cluster][0];
        placement.spot[lead] = number;
        self.follow(placement, lead);
        // Ports differ in their links: positions that the new port does not have, or orders that it does not allow, are made anew.
        for &member in &self.cluster[cluster] {
            let port = self.at(placement, member).0;
            let fits = self.of_vertex[member].iter().all(|pin| {
                self.pins[*pin].lane.is_none()
                    || placement.position[*pin] < self.positions(&self.pins[*pin], port)
            });
            if !self.of_vertex[member].is_empty() && (!fits || self.fabric.is_ordered(port)) {
                self.spread(placement, member, rng);
            }
        }
    }
}
