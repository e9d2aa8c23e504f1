//! Placement: annealing over the places of vertices and over the links that the lanes of ports take.
//!
//! The cost is what the distances promise: latency first, then links beyond the shortest way that late operands need because the delay
//! buffers are too shallow, then the number of links.

mod anneal;

use crate::Mapping;
use crate::fabric::{FAR, Fabric};
use crate::feasible::{Candidates, nets_of};
use crate::kernel::{Kernel, Place};
use crate::search::Deadline;
use fastrand::Rng;

/// A lane of a port: which wires end or begin there.
#[derive(Clone, Debug)]
pub(crate) struct Pin {
    pub(crate) vertex: usize,
    pub(crate) wires: Vec<usize>,
    /// Lane, in order; the state has none.
    lane: Option<u32>,
    width: u32,
    /// Its width among those of all pins.
    class: usize,
}

/// Where everything is.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// For each vertex the number of its candidate.
    pub(crate) spot: Vec<u32>,
    /// For each pin its position on the port, among those of [`Placer::position`].
    pub(crate) position: Vec<u32>,
}

/// What does not change while placing.
pub(crate) struct Placer<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) fabric: &'k Fabric<'k>,
    pub(crate) candidates: &'k Candidates,
    pub(crate) pins: Vec<Pin>,
    of_vertex: Vec<Vec<usize>>,
    /// The pin at the sink of each wire.
    sink_pin: Vec<u32>,
    /// Distances from processing elements, as [`Fabric::hops_out`], but around where both ends are the same.
    around: Vec<u16>,
    slot_first: Vec<u32>,
    slot_room: Vec<u16>,
    /// Cycles from one row to the next.
    pub(crate) interval: i32,
    /// When to stop at the latest.
    pub(crate) deadline: Deadline,
    /// Whether instructions share each element in time.
    shared: Vec<bool>,
    /// Cycles that operands can wait at each element.
    pub(crate) depth: Vec<i32>,
    granularity: Vec<u32>,
    /// For each width of a pin and each port: links and slots that such a pin can take.
    spots: Vec<Vec<Vec<(u32, u32)>>>,
    /// Wires in the order of their sinks, and where those of each vertex are.
    timed: Vec<TimedWire>,
    into: Vec<std::ops::Range<usize>>,
    /// For each vertex its outgoing wires, as numbers in `timed`.
    out_of: Vec<Vec<u32>>,
    /// Vertices that move together.
    cluster: Vec<Vec<usize>>,
    cluster_of: Vec<usize>,
}

const NONE: u32 = u32::MAX;

/// A wire as the cost looks at it, in one place of memory.
#[derive(Clone, Copy, Debug)]
struct TimedWire {
    wire: u32,
    source: u32,
    sink: u32,
    source_pin: u32,
    sink_pin: u32,
    /// Cycles from the start of the source until the value is ready.
    ready: i32,
    /// Whether both ends can be on one element without a link between them.
    together: bool,
}

/// Weights of the cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub(crate) latency: f64,
    pub(crate) excess: f64,
    pub(crate) length: f64,
}

/// Scratch space of the cost.
#[derive(Default)]
struct Scratch {
    /// The element of each vertex.
    element: Vec<u32>,
    /// For each pin the element at the inner end of its link.
    inner: Vec<u32>,
    length: Vec<i32>,
    start: Vec<i32>,
    count: Vec<u16>,
    load: Vec<i32>,
}

impl<'k> Placer<'k> {
    pub(crate) fn new(
        kernel: &'k Kernel,
        fabric: &'k Fabric<'k>,
        candidates: &'k Candidates,
        interval: i32,
        deadline: Deadline,
    ) -> Placer<'k> {
        let Pins {
            all: mut pins,
            of_vertex,
            source_pin,
            sink_pin,
        } = pins(kernel);
        let size = fabric.size();
        let around = around(fabric);
        let (mut slot_first, mut slot_room, mut first) = (Vec::new(), Vec::new(), 0);
        for element in &fabric.adg.elements {
            slot_first.push(first);
            let shared = element
                .processing()
                .filter(|unit| unit.is_shared())
                .map(|unit| unit.instruction_slots);
            for _ in 0..element.slots() {
                slot_room.push(shared.unwrap_or(1).min(u32::from(u16::MAX)) as u16);
                first += 1;
            }
        }
        let cluster = kernel.together();
        let mut cluster_of = vec![0; kernel.vertices.len()];
        for (number, members) in cluster.iter().enumerate() {
            for member in members {
                cluster_of[*member] = number;
            }
        }
        let mut widths: Vec<u32> = pins.iter().map(|pin| pin.width).collect();
        widths.sort_unstable();
        widths.dedup();
        for pin in &mut pins {
            pin.class = widths.binary_search(&pin.width).unwrap_or(0);
        }
        let spots = widths.iter().map(|width| spots(fabric, *width)).collect();
        let mut timed = Vec::with_capacity(kernel.wires.len());
        let mut into = vec![0..0; kernel.vertices.len()];
        let mut out_of = vec![Vec::new(); kernel.vertices.len()];
        for &vertex in &kernel.order {
            let first = timed.len();
            for &wire in &kernel.vertices[vertex].inputs {
                let body = &kernel.wires[wire];
                out_of[body.source].push(timed.len() as u32);
                timed.push(TimedWire {
                    wire: wire as u32,
                    source: body.source as u32,
                    sink: vertex as u32,
                    source_pin: source_pin[wire],
                    sink_pin: sink_pin[wire],
                    ready: body.ready,
                    together: kernel.vertices[body.source].place == Place::Unit
                        && kernel.vertices[vertex].place == Place::Unit,
                });
            }
            into[vertex] = first..timed.len();
        }
        let depth = (0..size as u32)
            .map(|element| fabric.delay_depth(element).saturating_mul(interval))
            .collect();
        let shared = fabric
            .adg
            .elements
            .iter()
            .map(|element| {
                element
                    .processing()
                    .is_some_and(chipless_dsa::adg::ProcessingElement::is_shared)
            })
            .collect();
        let granularity = fabric
            .adg
            .elements
            .iter()
            .map(|element| element.granularity.max(1))
            .collect();
        Placer {
            kernel,
            fabric,
            candidates,
            pins,
            of_vertex,
            sink_pin,
            around,
            slot_first,
            slot_room,
            interval,
            deadline,
            shared,
            depth,
            granularity,
            spots,
            timed,
            into,
            out_of,
            cluster,
            cluster_of,
        }
    }

    /// Element and slot of a vertex.
    pub(crate) fn at(&self, placement: &Placement, vertex: usize) -> (u32, u32) {
        self.candidates.of[vertex]
            .get(placement.spot[vertex] as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Whether instructions share an element in time.
    pub(crate) fn is_shared(&self, element: u32) -> bool {
        self.shared[element as usize]
    }

    /// The placement of a mapping, with what it lacks at some place; `None` where it has nothing.
    pub(crate) fn of_mapping(&self, mapping: &Mapping) -> Option<Placement> {
        let mut rng = Rng::with_seed(0);
        let mut placement = self.random(&mut rng);
        let mut any = false;
        for (vertex, body) in self.kernel.vertices.iter().enumerate() {
            let at = mapping.nodes.get(body.node).copied().flatten();
            let at = at.map(|at| (at.element.index() as u32, at.slot));
            let spots = &self.candidates.of[vertex];
            if let Some(spot) = at.and_then(|at| spots.iter().position(|spot| *spot == at)) {
                placement.spot[vertex] = spot as u32;
                any = true;
            }
        }
        for vertex in 0..self.kernel.vertices.len() {
            self.spread(&mut placement, vertex, &mut rng);
        }
        // Lanes on the links that the mapping gives them.
        for (pin, body) in self.pins.iter().enumerate() {
            let port = self.at(&placement, body.vertex).0;
            let outgoing = self.kernel.vertices[body.vertex].place == Place::Input;
            let hop = body.wires.first().and_then(|wire| {
                let links = &mapping.edges.get(self.kernel.wires[*wire].edge)?.links;
                if outgoing {
                    links.first()
                } else {
                    links.last()
                }
            });
            let spots = &self.spots[body.class][port as usize];
            let known = hop.and_then(|hop| {
                spots
                    .iter()
                    .position(|(link, _)| *link as usize == hop.link.index())
            });
            if let Some(position) = known.filter(|_| body.lane.is_some()) {
                placement.position[pin] = position as u32;
            }
        }
        any.then_some(placement)
    }

    /// Positions of a pin on a port: how many there are.
    fn positions(&self, pin: &Pin, port: u32) -> u32 {
        if pin.lane.is_none() {
            1
        } else {
            self.spots[pin.class][port as usize].len() as u32
        }
    }

    /// Link and slot of a pin.
    pub(crate) fn position(&self, placement: &Placement, pin: usize) -> (u32, u32) {
        let body = &self.pins[pin];
        let (port, _) = self.at(placement, body.vertex);
        if body.lane.is_none() {
            let outgoing = self.kernel.vertices[body.vertex].place == Place::Input;
            let links = if outgoing {
                &self.fabric.outputs[port as usize]
            } else {
                &self.fabric.inputs[port as usize]
            };
            return (links.first().copied().unwrap_or(0), 0);
        }
        self.spots[body.class][port as usize]
            .get(placement.position[pin] as usize)
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn sink_pin(&self, wire: usize) -> Option<usize> {
        (self.sink_pin[wire] != NONE).then_some(self.sink_pin[wire] as usize)
    }

    /// Looks up where everything is.
    fn locate(&self, placement: &Placement, scratch: &mut Scratch) {
        scratch.element.clear();
        scratch
            .element
            .extend((0..self.kernel.vertices.len()).map(|vertex| self.at(placement, vertex).0));
        scratch.inner.clear();
        scratch
            .inner
            .extend(self.pins.iter().enumerate().map(|(pin, body)| {
                let link = self.fabric.links[self.position(placement, pin).0 as usize];
                if self.kernel.vertices[body.vertex].place == Place::Input {
                    link.sink
                } else {
                    link.source
                }
            }));
    }

    /// Links of the shortest way of a wire.
    #[inline]
    fn length(&self, scratch: &Scratch, wire: &TimedWire) -> i32 {
        let (to, last) = match wire.sink_pin {
            NONE => (scratch.element[wire.sink as usize], 0),
            pin => (scratch.inner[pin as usize], 1),
        };
        let hops = match wire.source_pin {
            NONE => match scratch.element[wire.source as usize] {
                from if from == to && wire.together && self.shared[from as usize] => 0,
                from => self.around[from as usize * self.fabric.size() + to as usize],
            },
            pin => self.fabric.hops(scratch.inner[pin as usize], to) + 1,
        };
        i32::from(hops) + last
    }

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
    fn follow(&self, placement: &mut Placement, vertex: usize) {
        let members = &self.cluster[self.cluster_of[vertex]];
        let spot = self.at(placement, vertex);
        for member in members {
            if let Some(number) = self.candidates.of[*member]
                .iter()
                .position(|other| *other == spot)
            {
                placement.spot[*member] = number as u32;
            }
        }
    }

    /// Slots that a pin takes at a position: those of all links in one row.
    fn taken(&self, pin: usize, (link, slot): (u32, u32)) -> std::ops::Range<u32> {
        let first = self.fabric.links[link as usize].first + slot;
        first..first + self.fabric.slots_for(link, self.pins[pin].width)
    }

    /// Gives the pins of a port positions of their own.
    fn spread(&self, placement: &mut Placement, vertex: usize, rng: &mut Rng) {
        let port = self.at(placement, vertex).0;
        let outgoing = self.kernel.vertices[vertex].place == Place::Input;
        let links = self.fabric.data_links(port, outgoing);
        let mut pins: Vec<usize> = self.of_vertex[vertex]
            .iter()
            .copied()
            .filter(|pin| self.pins[*pin].lane.is_some())
            .collect();
        if self.fabric.is_ordered(port) {
            for pin in pins {
                let body = &self.pins[pin];
                let wire = body.wires.first().map(|wire| &self.kernel.wires[*wire]);
                let within = wire.map_or(0, |wire| if outgoing { wire.low } else { wire.offset });
                let own = links.get(body.lane.unwrap_or(0) as usize);
                let fits = |(link, slot): &(u32, u32)| {
                    Some(link) == own
                        && *slot == within / self.fabric.links[*link as usize].granularity
                };
                let position = self.spots[body.class][port as usize].iter().position(fits);
                placement.position[pin] = position.unwrap_or(0) as u32;
            }
            return;
        }
        // Wide ones first: narrow ones fit between them.
        rng.shuffle(&mut pins);
        pins.sort_by_key(|pin| std::cmp::Reverse(self.pins[*pin].width));
        let mut taken = std::collections::HashSet::new();
        for pin in pins {
            let spots = &self.spots[self.pins[pin].class][port as usize];
            let offset = rng.usize(..spots.len().max(1));
            let free = |position: &usize| {
                !self
                    .taken(pin, spots[*position])
                    .any(|slot| taken.contains(&slot))
            };
            let position = (0..spots.len())
                .map(|index| (index + offset) % spots.len())
                .find(free)
                .unwrap_or(0);
            placement.position[pin] = position as u32;
            taken.extend(
                spots
                    .get(position)
                    .map(|spot| self.taken(pin, *spot))
                    .into_iter()
                    .flatten(),
            );
        }
    }

    /// Times as the distances promise them: start of each vertex, links that each wire should have.
    fn estimate(&self, placement: &Placement, scratch: &mut Scratch) -> (i32, i32, i32) {
        self.locate(placement, scratch);
        let mut start = std::mem::take(&mut scratch.start);
        let mut length = std::mem::take(&mut scratch.length);
        start.clear();
        start.resize(self.kernel.vertices.len(), 0);
        length.clear();
        let (mut latency, mut total) = (0, 0);
        for &vertex in &self.kernel.order {
            let mut at = 0;
            for wire in &self.timed[self.into[vertex].clone()] {
                let links = self.length(scratch, wire);
                length.push(links);
                total += links;
                at = at.max(start[wire.source as usize] + wire.ready + (links - 1).max(0));
            }
            start[vertex] = at;
            latency = latency.max(at + self.kernel.vertices[vertex].latency);
        }
        // Vertices wait for their consumers as far as their own operands can be delayed.
        let depth = |vertex: u32| self.depth[scratch.element[vertex as usize] as usize];
        let mut excess = 0;
        for &vertex in self.kernel.order.iter().rev() {
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
        scratch.start = start;
        scratch.length = length;
        (latency, excess, total)
    }

    /// By how many vertices the slots of elements and the ports are overbooked.
    fn overlap(&self, placement: &Placement, scratch: &mut Scratch) -> i32 {
        scratch.count.clear();
        scratch.count.resize(self.slot_room.len(), 0);
        scratch.load.clear();
        scratch.load.resize(self.shared.len(), 0);
        let mut overlap = 0;
        for (vertex, body) in self.kernel.vertices.iter().enumerate() {
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
                    (scratch.count.get_mut(index), self.slot_room.get(index))
                {
                    *count += 1;
                    overlap += i32::from(*count > *room);
                }
            }
            // One start a cycle.
            if self.shared[element as usize] {
                let load = &mut scratch.load[element as usize];
                let before = (*load - self.interval).max(0);
                *load += body.throughput;
                overlap += (*load - self.interval).max(0) - before;
            }
        }
        overlap
    }

    /// Whether every vertex has a place of its own.
    pub(crate) fn is_apart(&self, placement: &Placement) -> bool {
        self.overlap(placement, &mut Scratch::default()) == 0
    }

    fn cost(&self, placement: &Placement, weights: &Weights, scratch: &mut Scratch) -> f64 {
        let (latency, excess, total) = self.estimate(placement, scratch);
        let overlap = self.overlap(placement, scratch);
        f64::from(latency) * weights.latency
            + f64::from(excess) * weights.excess
            + f64::from(total) * weights.length
            + f64::from(overlap) * 1000.0
    }

    /// Lengths that the wires should have, from the least to the most, and the latency that they promise.
    pub(crate) fn windows(&self, placement: &Placement) -> (Vec<(i32, i32)>, i32) {
        let mut scratch = Scratch::default();
        let (latency, _, _) = self.estimate(placement, &mut scratch);
        let mut windows = vec![(0, 0); self.kernel.wires.len()];
        for (wire, length) in self.timed.iter().zip(&scratch.length) {
            let most = scratch.start[wire.sink as usize]
                - scratch.start[wire.source as usize]
                - wire.ready
                + 1;
            let most = most.max(*length);
            windows[wire.wire as usize] = (
                (most - self.depth[scratch.element[wire.sink as usize] as usize]).max(*length),
                most,
            );
        }
        (windows, latency)
    }
}

/// The pins of all ports.
struct Pins {
    all: Vec<Pin>,
    /// Those of each vertex.
    of_vertex: Vec<Vec<usize>>,
    /// The pin at the source of each wire, and at its sink.
    source_pin: Vec<u32>,
    sink_pin: Vec<u32>,
}

fn pins(kernel: &Kernel) -> Pins {
    let mut pins: Vec<Pin> = Vec::new();
    let mut source_pin = vec![NONE; kernel.wires.len()];
    let mut sink_pin = vec![NONE; kernel.wires.len()];
    let mut of_vertex = vec![Vec::new(); kernel.vertices.len()];
    for (vertex, body) in kernel.vertices.iter().enumerate() {
        if body.place == Place::Input {
            for (_, net) in nets_of(kernel, vertex) {
                let lane = (!net.state).then(|| {
                    if body.temporal {
                        0
                    } else {
                        net.value - u32::from(body.stated)
                    }
                });
                for wire in &net.wires {
                    source_pin[*wire] = pins.len() as u32;
                }
                of_vertex[vertex].push(pins.len());
                pins.push(Pin {
                    vertex,
                    wires: net.wires.clone(),
                    lane,
                    width: net.width.max(1),
                    class: 0,
                });
            }
        } else if body.place == Place::Output {
            let mut of_net: Vec<(usize, usize)> = Vec::new();
            for wire in &body.inputs {
                let wire_ = &kernel.wires[*wire];
                let state = wire_.operand >= body.lanes;
                let lane = (!state).then_some(if body.temporal { 0 } else { wire_.operand });
                // Lanes that come in turn share a link; others have one each, whatever their values.
                let key = if state { usize::MAX } else { wire_.net };
                let known = of_net
                    .iter()
                    .find(|(net, _)| *net == key && body.temporal)
                    .map(|(_, pin)| *pin);
                let pin = known.unwrap_or_else(|| {
                    of_vertex[vertex].push(pins.len());
                    pins.push(Pin {
                        vertex,
                        wires: Vec::new(),
                        lane,
                        width: wire_.width.max(1),
                        class: 0,
                    });
                    of_net.push((key, pins.len() - 1));
                    pins.len() - 1
                });
                pins[pin].wires.push(*wire);
                sink_pin[*wire] = pin as u32;
            }
        }
    }
    Pins {
        all: pins,
        of_vertex,
        source_pin,
        sink_pin,
    }
}

/// Links from processing elements to everything, around where both ends are the same.
fn around(fabric: &Fabric<'_>) -> Vec<u16> {
    let size = fabric.size();
    let mut around = vec![FAR; size * size];
    for &unit in &fabric.units {
        for to in 0..size as u32 {
            let ways = fabric.outputs[unit as usize]
                .iter()
                .map(|link| fabric.hops(fabric.links[*link as usize].sink, to) + 1);
            around[unit as usize * size + to as usize] = ways.min().unwrap_or(FAR).min(FAR);
        }
    }
    around
}

/// For each port: the links and slots that a pin of a width can take, in order.
fn spots(fabric: &Fabric<'_>, width: u32) -> Vec<Vec<(u32, u32)>> {
    let mut of = vec![Vec::new(); fabric.size()];
    let inputs = fabric.input_ports.iter().map(|port| (*port, true));
    for (port, outgoing) in inputs.chain(fabric.output_ports.iter().map(|port| (*port, false))) {
        for &link in fabric.data_links(port, outgoing) {
            let (parts, slots) = (
                fabric.slots_for(link, width),
                fabric.links[link as usize].slots,
            );
            of[port as usize].extend(
                (0..slots)
                    .step_by(parts as usize)
                    .filter(|slot| slot + parts <= slots)
                    .map(|slot| (link, slot)),
            );
        }
    }
    of
}
