//! Lanes of ports: the links and slots that they take there.

use super::{NONE, Placement, Placer};
use crate::fabric::Fabric;
use crate::feasible::nets_of;
use crate::kernel::{Kernel, Place};
use fastrand::Rng;

/// A lane of a port: which wires end or begin there.
#[derive(Clone, Debug)]
pub(crate) struct Pin {
    pub(crate) vertex: usize,
    pub(crate) wires: Vec<usize>,
    /// Lane, in order; the state has none.
    pub(super) lane: Option<u32>,
    pub(super) width: u32,
    /// Its width among those of all pins.
    pub(super) class: usize,
}

/// The pins of all ports.
pub(super) struct Pins {
    pub(super) all: Vec<Pin>,
    /// Those of each vertex.
    pub(super) of_vertex: Vec<Vec<usize>>,
    /// The pin at the source of each wire, and at its sink.
    pub(super) source_pin: Vec<u32>,
    pub(super) sink_pin: Vec<u32>,
}

pub(super) fn pins(kernel: &Kernel) -> Pins {
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

/// For each port: the links and slots that a pin of a width can take, in order.
pub(super) fn spots(fabric: &Fabric<'_>, width: u32) -> Vec<Vec<(u32, u32)>> {
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

impl Placer<'_> {
    /// Positions of a pin on a port: how many there are.
    pub(super) fn positions(&self, pin: &Pin, port: u32) -> u32 {
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

    /// Slots that a pin takes at a position: those of all links in one row.
    pub(super) fn taken(&self, pin: usize, (link, slot): (u32, u32)) -> std::ops::Range<u32> {
        let first = self.fabric.links[link as usize].first + slot;
        first..first + self.fabric.slots_for(link, self.pins[pin].width)
    }

    /// Gives the pins of a port positions of their own.
    pub(super) fn spread(&self, placement: &mut Placement, vertex: usize, rng: &mut Rng) {
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
}
