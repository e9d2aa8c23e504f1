//! Placements to begin with.

use super::{Placement, Placer};
use fastrand::Rng;

impl Placer<'_> {
    /// A placement in which every vertex has a place of its own, at random.
    pub(crate) fn random(&self, rng: &mut Rng) -> Placement {
        let count = self.kernel.vertices.len();
        let mut placement = Placement {
            spot: vec![0; count],
            position: vec![0; self.pins.len()],
        };
        let mut holder: std::collections::HashMap<(u32, u32), Vec<usize>> =
            std::collections::HashMap::new();
        let mut order: Vec<usize> = (0..self.cluster.len()).collect();
        rng.shuffle(&mut order);
        // Those with the fewest places first.
        order.sort_by_key(|cluster| self.candidates.of[self.cluster[*cluster][0]].len());
        for cluster in order {
            let members = &self.cluster[cluster];
            let lead = members[0];
            let mut seen = std::collections::HashSet::new();
            if !self.augment(cluster, &mut holder, &mut placement, &mut seen, rng, 0) {
                placement.spot[lead] = rng.u32(..self.candidates.of[lead].len().max(1) as u32);
            }
        }
        for cluster in &self.cluster {
            self.follow(&mut placement, cluster[0]);
        }
        for vertex in 0..count {
            self.spread(&mut placement, vertex, rng);
        }
        placement
    }

    fn augment(
        &self,
        cluster: usize,
        holder: &mut std::collections::HashMap<(u32, u32), Vec<usize>>,
        placement: &mut Placement,
        seen: &mut std::collections::HashSet<(u32, u32)>,
        rng: &mut Rng,
        depth: u32,
    ) -> bool {
        let lead = self.cluster[cluster][0];
        let candidates = &self.candidates.of[lead];
        let offset = rng.usize(..candidates.len().max(1));
        for step in 0..candidates.len() {
            let number = (step + offset) % candidates.len();
            let spot = candidates[number];
            if !seen.insert(spot) {
                continue;
            }
            let room =
                usize::from(self.slot_room[(self.slot_first[spot.0 as usize] + spot.1) as usize]);
            let held = holder.entry(spot).or_default().clone();
            let taken: usize = held.iter().map(|other| self.cluster[*other].len()).sum();
            let free = taken + self.cluster[cluster].len() <= room;
            let moved = free
                || depth < 64 && held.len() == 1 && {
                    let moved = self.augment(held[0], holder, placement, seen, rng, depth + 1);
                    if moved {
                        holder
                            .entry(spot)
                            .or_default()
                            .retain(|other| *other != held[0]);
                    }
                    moved
                };
            if moved {
                holder.entry(spot).or_default().push(cluster);
                placement.spot[lead] = number as u32;
                return true;
            }
        }
        false
    }

    /// The rest of a cluster goes where its first vertex went.
    pub(super) fn follow(&self, placement: &mut Placement, vertex: usize) {
        let members = &self.cluster[self.cluster_of[vertex]];
        let spot = self.at(placement, vertex);
        for member in members {
            // Candidates are in order.
            if let Ok(number) = self.candidates.of[*member].binary_search(&spot) {
                placement.spot[*member] = number as u32;
            }
        }
    }

    /// A placement to begin with: on a wide fabric one in which the parts of the graph lie close together, else any.
    pub(crate) fn begin(&self, rng: &mut Rng) -> Placement {
        if self.near.is_empty() {
            return self.random(rng);
        }
        let count = self.kernel.vertices.len();
        let mut placement = Placement {
            spot: vec![0; count],
            position: vec![0; self.pins.len()],
        };
        let mut room: Vec<u16> = self.slot_room.clone();
        let mut placed = vec![false; count];
        let mut parts: Vec<&Vec<usize>> = self.parts.iter().collect();
        rng.shuffle(&mut parts);
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        for part in parts {
            // From the vertex with the fewest places to its neighbours.
            let first = part
                .iter()
                .copied()
                .min_by_key(|vertex| self.candidates.of[*vertex].len());
            let mut queue: Vec<usize> = first.into_iter().collect();
            let mut next = 0;
            while let Some(&vertex) = queue.get(next) {
                next += 1;
                if placed[vertex] {
                    continue;
                }
                self.join(&mut placement, vertex, &placed, &mut room, rng);
                for member in &self.cluster[self.cluster_of[vertex]] {
                    placed[*member] = true;
                    queue.extend(self.neighbours(*member).filter(|other| !placed[*other]));
                }
            }
        }
        for vertex in 0..count {
            self.spread(&mut placement, vertex, rng);
        }
        placement
    }

    fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> {
        let (body, wires) = (&self.kernel.vertices[vertex], &self.kernel.wires);
        let before = body.inputs.iter().map(|wire| wires[*wire].source);
        before.chain(body.outputs.iter().map(|wire| wires[*wire].sink))
    }

    /// Places the cluster of a vertex as near to its neighbours as there is room.
    fn join(
        &self,
        placement: &mut Placement,
        vertex: usize,
        placed: &[bool],
        room: &mut [u16],
        rng: &mut Rng,
    ) {
        let members = &self.cluster[self.cluster_of[vertex]];
        let candidates = &self.candidates.of[vertex];
        let slot = |spot: (u32, u32)| (self.slot_first[spot.0 as usize] + spot.1) as usize;
        let there: Vec<(u32, bool)> = self
            .neighbours(vertex)
            .filter(|other| placed[*other])
            .map(|other| {
                let is_source = self.kernel.vertices[vertex]
                    .inputs
                    .iter()
                    .any(|wire| self.kernel.wires[*wire].source == other);
                (self.at(placement, other).0, is_source)
            })
            .collect();
        let distance = |spot: (u32, u32)| {
            let hops = there.iter().map(|(other, is_source)| {
                u32::from(if *is_source {
                    self.fabric.hops_out(*other, spot.0)
                } else {
                    self.fabric.hops_out(spot.0, *other)
                })
            });
            hops.sum::<u32>()
        };
        let is_free = |number: usize| usize::from(room[slot(candidates[number])]) >= members.len();
        let beside = there
            .iter()
            .flat_map(|(other, _)| &self.near[*other as usize]);
        let mut numbers: Vec<usize> = beside
            .filter_map(|element| {
                let first = candidates.partition_point(|spot| spot.0 < *element);
                candidates
                    .get(first)
                    .filter(|spot| spot.0 == *element)
                    .map(|_| first)
            })
            .filter(|number| is_free(*number))
            .collect();
        if numbers.is_empty() {
            numbers = (0..candidates.len())
                .filter(|number| is_free(*number))
                .collect();
        }
        rng.shuffle(&mut numbers);
        let chosen = if there.is_empty() {
            numbers.first().copied()
        } else {
            numbers
                .into_iter()
                .min_by_key(|number| distance(candidates[*number]))
        };
        let chosen = chosen.unwrap_or_else(|| rng.usize(..candidates.len().max(1)));
        placement.spot[vertex] = chosen as u32;
        self.follow(placement, vertex);
        if let Some(room) = candidates.get(chosen).map(|spot| &mut room[slot(*spot)]) {
            *room = room.saturating_sub(members.len() as u16);
        }
    }
}
