//! Placement: annealing over the places of vertices and over the links that the lanes of ports take.
//!
//! The cost is what the distances promise: latency first, then links beyond the shortest way that late operands need because the delay
//! buffers are too shallow, then the number of links. It is a sum over the parts of the graph that no wire connects, so that a move costs
//! as much as the part that it changes.

mod anneal;
mod cost;
mod pins;
mod start;

pub(crate) use cost::Weights;
pub(crate) use pins::Pin;

use crate::Mapping;
use crate::deadline::Deadline;
use crate::fabric::{FAR, Fabric};
use crate::feasible::Candidates;
use crate::kernel::{Kernel, Place};
use cost::TimedWire;
use fastrand::Rng;
use pins::Pins;
use std::ops::Range;

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
    /// A latency that no mapping is below: what a part of the graph takes less is nothing gained.
    bound: i32,
    /// When to stop at the latest.
    pub(crate) deadline: Deadline,
    /// Whether instructions share each element in time.
    shared: Vec<bool>,
    /// Cycles that operands can wait at each element.
    pub(crate) depth: Vec<i32>,
    granularity: Vec<u32>,
    /// For each width of a pin and each port: links and slots that such a pin can take.
    spots: Vec<Vec<Vec<(u32, u32)>>>,
    /// The parts of the graph: sources before sinks in each. And the part of each vertex.
    parts: Vec<Vec<usize>>,
    part_of: Vec<usize>,
    /// Wires in the order of their sinks, and where those of each vertex are.
    timed: Vec<TimedWire>,
    into: Vec<Range<usize>>,
    /// For each vertex its outgoing wires, as numbers in `timed`.
    out_of: Vec<Vec<u32>>,
    /// Vertices that move together.
    cluster: Vec<Vec<usize>>,
    cluster_of: Vec<usize>,
    /// For each element those near it, the nearest first; empty on fabrics on which everything is near.
    near: Vec<Vec<u32>>,
}

const NONE: u32 = u32::MAX;

/// Elements beyond which moves look near the neighbours of a vertex.
const WIDE: usize = 400;
/// Elements that are near another.
const NEAR: usize = 24;

impl<'k> Placer<'k> {
    pub(crate) fn new(
        kernel: &'k Kernel,
        fabric: &'k Fabric<'k>,
        candidates: &'k Candidates,
        interval: i32,
        bound: i32,
        deadline: Deadline,
    ) -> Placer<'k> {
        let Pins {
            all: mut pins,
            of_vertex,
            source_pin,
            sink_pin,
        } = pins::pins(kernel);
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
        let (parts, part_of) = kernel.parts();
        let mut timed = Vec::with_capacity(kernel.wires.len());
        let mut into = vec![0..0; kernel.vertices.len()];
        let mut out_of = vec![Vec::new(); kernel.vertices.len()];
        for &vertex in parts.iter().flatten() {
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
        let depth = (0..fabric.size() as u32)
            .map(|element| fabric.delay_depth(element).saturating_mul(interval))
            .collect();
        let elements = &fabric.adg.elements;
        let is_shared = |element: &chipless_dsa::adg::Element| {
            element
                .processing()
                .is_some_and(chipless_dsa::adg::ProcessingElement::is_shared)
        };
        Placer {
            kernel,
            fabric,
            candidates,
            spots: widths
                .iter()
                .map(|width| pins::spots(fabric, *width))
                .collect(),
            pins,
            of_vertex,
            sink_pin,
            around: around(fabric),
            slot_first,
            slot_room,
            interval,
            bound,
            deadline,
            shared: elements.iter().map(is_shared).collect(),
            depth,
            granularity: elements.iter().map(|e| e.granularity.max(1)).collect(),
            parts,
            part_of,
            timed,
            into,
            out_of,
            cluster,
            cluster_of,
            near: near(fabric),
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
        self.take_pins(&mut placement, |wire, outgoing| {
            let links = &mapping.edges.get(self.kernel.wires[wire].edge)?.links;
            let hop = if outgoing {
                links.first()
            } else {
                links.last()
            };
            Some(hop?.link.index() as u32)
        });
        any.then_some(placement)
    }

    /// The placement of vertices whose wires have ways.
    pub(crate) fn with_pins(&self, spot: Vec<u32>, ways: &[Vec<(u32, u32)>]) -> Placement {
        let mut placement = Placement {
            spot,
            position: vec![0; self.pins.len()],
        };
        self.take_pins(&mut placement, |wire, outgoing| {
            let way = &ways[wire];
            let hop = if outgoing { way.first() } else { way.last() };
            hop.map(|(link, _)| *link)
        });
        placement
    }

    /// Puts lanes on the links that their wires have at their ports; `link_of` is given a wire and whether its port is the source.
    fn take_pins(&self, placement: &mut Placement, link_of: impl Fn(usize, bool) -> Option<u32>) {
        for (pin, body) in self.pins.iter().enumerate() {
            let port = self.at(placement, body.vertex).0;
            let outgoing = self.kernel.vertices[body.vertex].place == Place::Input;
            let link = body.wires.first().and_then(|wire| link_of(*wire, outgoing));
            let spots = &self.spots[body.class][port as usize];
            let known = link.and_then(|link| spots.iter().position(|(other, _)| *other == link));
            if let Some(position) = known.filter(|_| body.lane.is_some()) {
                placement.position[pin] = position as u32;
            }
        }
    }

    pub(crate) fn sink_pin(&self, wire: usize) -> Option<usize> {
        (self.sink_pin[wire] != NONE).then_some(self.sink_pin[wire] as usize)
    }
}

/// For each element the places of vertices that are near it, the nearest first; nothing where the fabric is small.
fn near(fabric: &Fabric<'_>) -> Vec<Vec<u32>> {
    if fabric.size() <= WIDE {
        return Vec::new();
    }
    let places = [&fabric.units, &fabric.input_ports, &fabric.output_ports];
    let mut near = vec![Vec::new(); fabric.size()];
    for from in places.into_iter().flatten() {
        // As seen from the first switch at it.
        let (outputs, inputs) = (
            &fabric.outputs[*from as usize],
            &fabric.inputs[*from as usize],
        );
        let out = outputs
            .first()
            .map(|link| fabric.links[*link as usize].sink);
        let beside = out.or_else(|| {
            inputs
                .first()
                .map(|link| fabric.links[*link as usize].source)
        });
        let Some(beside) = beside else {
            continue;
        };
        for (number, kind) in places.into_iter().enumerate() {
            let is_input = number == 1;
            let distance = |to: &u32| {
                let back = fabric.outputs[*to as usize].first().copied();
                let hops = match back.filter(|_| is_input) {
                    Some(link) => fabric.hops(fabric.links[link as usize].sink, *from),
                    None => fabric.hops(beside, *to),
                };
                (hops, *to)
            };
            let mut others: Vec<(u16, u32)> = kind
                .iter()
                .filter(|to| *to != from)
                .map(distance)
                .filter(|(hops, _)| *hops < FAR)
                .collect();
            if others.len() > NEAR {
                others.select_nth_unstable(NEAR);
                others.truncate(NEAR);
            }
            others.sort_unstable();
            near[*from as usize].extend(others.into_iter().map(|(_, to)| to));
        }
    }
    near
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
