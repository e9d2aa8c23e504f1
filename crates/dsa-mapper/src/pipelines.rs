//! Graphs of independent pipelines: the places and ways of each together, as a shortest way through its stages.
//!
//! A pipeline is a chain from an input port to an output port. Its cheapest way is found by the number of links so far, like that of a
//! single value, but it passes from stage to stage at the elements that know the next instruction. Elements, ports and links that several
//! pipelines want become dearer round by round until each has one (negotiated congestion). No way is longer than the latency that is
//! aimed at, which begins at the bound.

use crate::exact::{may_enter, may_leave};
use crate::fabric::{FAR, Fabric};
use crate::kernel::{Kernel, Place};
use crate::place::{Placement, Placer};
use fastrand::Rng;
use std::rc::Rc;

/// Rounds of negotiation for a latency; in one of so many every pipeline takes part, in the others those that are in each other's way.
const ROUNDS: u32 = 320;
const ALL: u32 = 16;
/// Latencies above the bound that are aimed at.
const LATENCIES: i32 = 8;
const NONE: u32 = u32::MAX;

/// A pipeline.
struct Chain {
    vertices: Vec<usize>,
    wires: Vec<usize>,
    /// Cycles that do not depend on its ways.
    work: i32,
    /// For each stage the least links from a switch, or from the place of its vertex, to the end.
    rest: Rc<Vec<Vec<u16>>>,
    /// Where it is: elements of its vertices, and links of its wires.
    places: Vec<u32>,
    ways: Vec<Vec<u32>>,
}

/// Places of the vertices, and links of the wires, of all pipelines.
pub(crate) struct Laid {
    pub(crate) placement: Placement,
    pub(crate) ways: Vec<Vec<(u32, u32)>>,
}

/// A pipeline so far.
struct Label {
    stage: u32,
    at: u32,
    link: u32,
    before: u32,
    cost: f32,
}

/// Scratch space of a search: the label of each stage at each element, of the layer that was looked at last.
struct Layer {
    stamp: Vec<u32>,
    label: Vec<u32>,
    now: u32,
}

/// Who wants what.
struct Demand {
    elements: Vec<u16>,
    links: Vec<u16>,
    /// What it cost to want the same in earlier rounds.
    element_history: Vec<f32>,
    link_history: Vec<f32>,
    pressure: f32,
}

impl Demand {
    fn element(&self, element: u32) -> f32 {
        let crowd = f32::from(self.elements[element as usize]);
        (1.0 + self.element_history[element as usize]) * (1.0 + crowd * self.pressure)
    }

    fn link(&self, link: u32) -> f32 {
        let crowd = f32::from(self.links[link as usize]);
        (1.0 + self.link_history[link as usize]) * (1.0 + crowd * self.pressure)
    }

    /// Whether a pipeline has something that another wants, too.
    fn is_crowded(&self, chain: &Chain) -> bool {
        chain.places.is_empty()
            || chain
                .places
                .iter()
                .any(|place| self.elements[*place as usize] > 1)
            || chain
                .ways
                .iter()
                .flatten()
                .any(|link| self.links[*link as usize] > 1)
    }

    fn take(&mut self, chain: &Chain, is_new: bool) {
        let count = |used: &mut u16| {
            *used = if is_new {
                *used + 1
            } else {
                used.saturating_sub(1)
            };
        };
        for place in &chain.places {
            count(&mut self.elements[*place as usize]);
        }
        for link in chain.ways.iter().flatten() {
            count(&mut self.links[*link as usize]);
        }
    }

    /// Whether nothing is wanted twice; what is becomes dearer.
    fn settle(&mut self) -> bool {
        let mut settled = true;
        let elements = self.elements.iter().zip(&mut self.element_history);
        for (used, history) in elements.chain(self.links.iter().zip(&mut self.link_history)) {
            if *used > 1 {
                settled = false;
                *history += 0.5 * f32::from(*used - 1);
            }
        }
        settled
    }
}

/// Lays a graph of independent pipelines; `None` where it has something else, or where they find no room near the bound.
pub(crate) fn lay(placer: &Placer<'_>, bound: i32, rng: &mut Rng) -> Option<Laid> {
    let mut chains = chains(placer)?;
    let fabric = placer.fabric;
    let mut demand = Demand {
        elements: vec![0; fabric.size()],
        links: vec![0; fabric.links.len()],
        element_history: vec![0.0; fabric.size()],
        link_history: vec![0.0; fabric.links.len()],
        pressure: 0.5,
    };
    let stages = chains.iter().map(|chain| chain.vertices.len()).max()?;
    let mut layer = Layer {
        stamp: vec![0; stages * fabric.size()],
        label: vec![0; stages * fabric.size()],
        now: 0,
    };
    let mut order: Vec<usize> = (0..chains.len()).collect();
    for latency in bound..bound + LATENCIES {
        demand.pressure = 0.5;
        for round in 0..ROUNDS {
            rng.shuffle(&mut order);
            for &number in &order {
                if round % ALL != 0 && !demand.is_crowded(&chains[number]) {
                    continue;
                }
                if placer.deadline.is_over() {
                    return None;
                }
                demand.take(&chains[number], false);
                if !run(placer, &mut chains[number], latency, &demand, &mut layer) {
                    return None;
                }
                demand.take(&chains[number], true);
            }
            if demand.settle() {
                return Some(laid(placer, &chains));
            }
            demand.pressure = (demand.pressure * 1.1).min(16.0);
        }
    }
    None
}

/// The pipelines of a graph; `None` where it has something else.
fn chains(placer: &Placer<'_>) -> Option<Vec<Chain>> {
    let kernel = placer.kernel;
    let (parts, _) = kernel.parts();
    if parts.len() < 2 {
        return None;
    }
    let mut chains: Vec<Chain> = Vec::new();
    for vertices in parts {
        let wires = wires_of(kernel, &vertices)?;
        let same = |other: &&Chain| {
            let lists = |vertex: &usize| &placer.candidates.of[*vertex];
            other.vertices.len() == vertices.len()
                && other
                    .vertices
                    .iter()
                    .map(lists)
                    .eq(vertices.iter().map(lists))
        };
        let rest = match chains.iter().find(same) {
            Some(known) => Rc::clone(&known.rest),
            None => Rc::new(rest(placer, &vertices)),
        };
        let ready: i32 = wires.iter().map(|wire| kernel.wires[*wire].ready - 1).sum();
        chains.push(Chain {
            work: ready
                + vertices
                    .last()
                    .map_or(0, |last| kernel.vertices[*last].latency),
            vertices,
            wires,
            rest,
            places: Vec::new(),
            ways: Vec::new(),
        });
    }
    Some(chains)
}

/// The wires of a chain from port to port; `None` where the vertices are something else.
fn wires_of(kernel: &Kernel, vertices: &[usize]) -> Option<Vec<usize>> {
    let mut wires = Vec::new();
    for (index, vertex) in vertices.iter().enumerate() {
        let body = &kernel.vertices[*vertex];
        let (first, last) = (index == 0, index + 1 == vertices.len());
        let place = match (first, last) {
            (true, _) => Place::Input,
            (_, true) => Place::Output,
            _ => Place::Unit,
        };
        let (before, behind) = (usize::from(!first), usize::from(!last));
        if body.place != place
            || body.temporal
            || (body.inputs.len(), body.outputs.len()) != (before, behind)
        {
            return None;
        }
        wires.extend(body.outputs.first());
    }
    let follows = |pair: &[usize]| kernel.wires[pair[0]].sink == kernel.wires[pair[1]].source;
    wires.windows(2).all(follows).then_some(wires)
}

/// Whether a vertex can be on the first slot of an element.
fn is_place(placer: &Placer<'_>, vertex: usize, element: u32) -> bool {
    placer.candidates.of[vertex]
        .binary_search(&(element, 0))
        .is_ok()
}

/// For each stage the least links from a switch, or from the place of its vertex, to the end.
fn rest(placer: &Placer<'_>, vertices: &[usize]) -> Vec<Vec<u16>> {
    let fabric = placer.fabric;
    let mut stages: Vec<Vec<u16>> = vec![vec![FAR; fabric.size()]; vertices.len()];
    for (stage, vertex) in vertices.iter().enumerate().rev() {
        // What the next vertex needs from each of its places, backwards from these.
        let behind = stages.get(stage + 1).cloned();
        let own = &mut stages[stage];
        let Some(behind) = behind else {
            for (element, _) in &placer.candidates.of[*vertex] {
                own[*element as usize] = 0;
            }
            continue;
        };
        let next = vertices[stage + 1];
        let mut layers: Vec<Vec<u32>> = Vec::new();
        let reach = |own: &mut Vec<u16>, layers: &mut Vec<Vec<u32>>, element: u32, links: u16| {
            let known = &mut own[element as usize];
            if links < *known {
                *known = links;
                if layers.len() <= usize::from(links) {
                    layers.resize(usize::from(links) + 1, Vec::new());
                }
                layers[usize::from(links)].push(element);
            }
        };
        let may_pass =
            |element: u32| fabric.is_switch[element as usize] || is_place(placer, *vertex, element);
        for (element, _) in &placer.candidates.of[next] {
            let links = behind[*element as usize];
            if links == FAR {
                continue;
            }
            for link in &fabric.inputs[*element as usize] {
                let from = fabric.links[*link as usize].source;
                if may_pass(from) {
                    reach(own, &mut layers, from, links + 1);
                }
            }
        }
        let mut links = 0;
        while links < layers.len() {
            let mut index = 0;
            while let Some(&at) = layers[links].get(index) {
                index += 1;
                if own[at as usize] as usize != links || !fabric.is_switch[at as usize] {
                    continue;
                }
                for link in &fabric.inputs[at as usize] {
                    let from = fabric.links[*link as usize].source;
                    if may_pass(from) {
                        reach(own, &mut layers, from, links as u16 + 1);
                    }
                }
            }
            links += 1;
        }
    }
    stages
}

/// Finds the cheapest way of a pipeline within a latency; whether there is one.
fn run(
    placer: &Placer<'_>,
    chain: &mut Chain,
    latency: i32,
    demand: &Demand,
    known: &mut Layer,
) -> bool {
    let fabric = placer.fabric;
    let most = (latency - chain.work).max(0) as usize;
    let last = chain.vertices.len() - 1;
    let mut labels: Vec<Label> = Vec::new();
    let mut layer: Vec<u32> = Vec::new();
    for (element, slot) in &placer.candidates.of[chain.vertices[0]] {
        if *slot == 0 && usize::from(chain.rest[0][*element as usize]) <= most {
            layer.push(labels.len() as u32);
            labels.push(Label {
                stage: 0,
                at: *element,
                link: NONE,
                before: NONE,
                cost: demand.element(*element),
            });
        }
    }
    let mut best: Option<(f32, u32)> = None;
    for links in 1..=most {
        known.now += 1;
        let mut next: Vec<u32> = Vec::new();
        for number in std::mem::take(&mut layer) {
            let Label {
                stage, at, cost, ..
            } = labels[number as usize];
            if best.is_some_and(|(known, _)| cost >= known) {
                continue;
            }
            let wire = chain.wires[stage as usize];
            for &link in &fabric.outputs[at as usize] {
                let to = fabric.links[link as usize].sink;
                let passes = fabric.is_switch[to as usize];
                let ahead = if passes { stage } else { stage + 1 };
                let left = chain.rest[ahead as usize][to as usize];
                let leaves =
                    fabric.is_switch[at as usize] || may_leave(placer, wire, (at, 0), (link, 0));
                let enters = passes
                    || is_place(placer, chain.vertices[ahead as usize], to)
                        && may_enter(placer, wire, (to, 0), (link, 0));
                if links + usize::from(left) > most
                    || !(leaves && enters)
                    || is_behind(fabric, &labels, number, link, to)
                {
                    continue;
                }
                let there = if passes { 0.0 } else { demand.element(to) };
                let label = Label {
                    stage: ahead,
                    at: to,
                    link,
                    before: number,
                    cost: cost + demand.link(link) + there,
                };
                if ahead as usize == last {
                    if best.is_none_or(|(known, _)| label.cost < known) {
                        best = Some((label.cost, labels.len() as u32));
                        labels.push(label);
                    }
                    continue;
                }
                let index = labels.len() as u32;
                let state = ahead as usize * fabric.size() + to as usize;
                if known.stamp[state] == known.now {
                    let other = &mut labels[known.label[state] as usize];
                    if label.cost < other.cost {
                        *other = label;
                    }
                } else {
                    known.stamp[state] = known.now;
                    known.label[state] = index;
                    next.push(index);
                    labels.push(label);
                }
            }
        }
        layer = next;
    }
    let Some((_, end)) = best else {
        return false;
    };
    take_way(fabric, chain, &labels, end);
    true
}

/// Whether a pipeline has passed a link already, or stands on an element. Passing a switch again is nothing.
fn is_behind(
    fabric: &Fabric<'_>,
    labels: &[Label],
    mut number: u32,
    link: u32,
    element: u32,
) -> bool {
    let stands = !fabric.is_switch[element as usize];
    while let Some(label) = labels.get(number as usize) {
        if label.link == link || stands && label.at == element {
            return true;
        }
        number = label.before;
    }
    false
}

/// Reads the way of a pipeline off its labels.
fn take_way(fabric: &Fabric<'_>, chain: &mut Chain, labels: &[Label], end: u32) {
    chain.places = vec![0; chain.vertices.len()];
    chain.ways = vec![Vec::new(); chain.wires.len()];
    let mut number = end;
    while let Some(label) = labels.get(number as usize) {
        let stands = !fabric.is_switch[label.at as usize];
        if stands {
            chain.places[label.stage as usize] = label.at;
        }
        if label.link != NONE {
            // The link onto the place of a vertex is the last of the wire before it.
            let wire = label.stage as usize - usize::from(stands);
            chain.ways[wire].push(label.link);
        }
        number = label.before;
    }
    for way in &mut chain.ways {
        way.reverse();
    }
}

fn laid(placer: &Placer<'_>, chains: &[Chain]) -> Laid {
    let kernel = placer.kernel;
    let mut spot = vec![0; kernel.vertices.len()];
    let mut ways = vec![Vec::new(); kernel.wires.len()];
    for chain in chains {
        for (vertex, place) in chain.vertices.iter().zip(&chain.places) {
            let number = placer.candidates.of[*vertex].binary_search(&(*place, 0));
            spot[*vertex] = number.unwrap_or(0) as u32;
        }
        for (wire, way) in chain.wires.iter().zip(&chain.ways) {
            ways[*wire] = way.iter().map(|link| (*link, 0)).collect();
        }
    }
    Laid {
        placement: placer.with_pins(spot, &ways),
        ways,
    }
}
