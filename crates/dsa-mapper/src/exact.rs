//! Exhaustive search, for small graphs for which the heuristics find nothing: every placement, and every way to route it.
//!
//! Only legality counts here. A value that passes a switch twice could be cut short there, so each value is taken for a tree that
//! enters each switch once: what is left out is never needed. The result is a mapping, a proof that there is none, or neither,
//! when the effort is spent.

use crate::fabric::FAR;
use crate::kernel::Place;
use crate::place::{Placement, Placer};
use crate::search::Deadline;
use chipless_dsa::adg::ElementId;

/// Vertices of a graph that is searched, at most; as deep goes the recursion over placements.
const MOST_VERTICES: usize = 24;
/// Elements of a fabric that is searched, at most.
const MOST_ELEMENTS: usize = 256;
/// Wires of a graph that is searched, at most; with the elements they bound the depth of the recursion over ways.
const MOST_WIRES: usize = 48;
/// Steps of a search.
const STEPS: u64 = 2_000_000;

const NONE: u32 = u32::MAX;

/// What a search came to.
pub(crate) enum Answer {
    /// A placement, and for each wire its links and slots.
    Found(Placement, Vec<Vec<(u32, u32)>>),
    /// There is no mapping: none of so many placements can be routed.
    Impossible(u64),
    /// The effort was spent, or the graph is not one for this search.
    Open,
}

/// Where a part of the search ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Found,
    Exhausted,
    Spent,
}

/// Wires of one value to one place, that have one way.
struct Job {
    net: usize,
    wires: Vec<usize>,
}

struct Exact<'p> {
    placer: &'p Placer<'p>,
    deadline: Deadline,
    steps: u64,
    placements: u64,
    /// Vertices in the order in which they are placed, and the candidate of each.
    order: Vec<usize>,
    spot: Vec<Option<u32>>,
    /// Vertices on each slot of each element.
    tenants: Vec<Vec<u32>>,
    jobs: Vec<Job>,
    /// For each slot of each link whether it is taken.
    taken: Vec<bool>,
    /// For each net and element the link and slot on which the value came.
    came: Vec<Option<(u32, u32)>>,
    /// For each net the element that it begins at, and whether it has left it.
    left: Vec<bool>,
    /// For each job the last link and slot.
    last: Vec<(u32, u32)>,
}

/// Searches until there is an answer or the deadline.
pub(crate) fn search(placer: &Placer<'_>, deadline: Deadline) -> Answer {
    let (kernel, fabric) = (placer.kernel, placer.fabric);
    let small = kernel.vertices.len() <= MOST_VERTICES
        && kernel.wires.len() <= MOST_WIRES
        && fabric.size() <= MOST_ELEMENTS;
    let whole = kernel.nets.iter().all(|net| {
        let bits = |wire: &usize| (kernel.wires[*wire].low, kernel.wires[*wire].width);
        net.wires
            .windows(2)
            .all(|pair| bits(&pair[0]) == bits(&pair[1]))
    });
    // Instructions of a shared element need no link between them, and a schedule: this search knows neither.
    let shared = fabric.units.iter().any(|unit| placer.is_shared(*unit));
    if !small || !whole || shared {
        return Answer::Open;
    }
    let mut order: Vec<usize> = (0..kernel.vertices.len()).collect();
    order.sort_by_key(|vertex| placer.candidates.of[*vertex].len());
    let mut exact = Exact {
        placer,
        deadline,
        steps: 0,
        placements: 0,
        order,
        spot: vec![None; kernel.vertices.len()],
        tenants: fabric
            .adg
            .elements
            .iter()
            .map(|element| vec![0; element.slots() as usize])
            .collect(),
        jobs: Vec::new(),
        taken: vec![false; fabric.slots],
        came: vec![None; kernel.nets.len() * fabric.size()],
        left: vec![false; kernel.nets.len()],
        last: Vec::new(),
    };
    match exact.place(0) {
        End::Found => exact.answer(),
        End::Exhausted => Answer::Impossible(exact.placements),
        End::Spent => Answer::Open,
    }
}

impl Exact<'_> {
    /// Counts a step; `false` where the effort is spent.
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps < STEPS && (!self.steps.is_multiple_of(4096) || !self.deadline.is_over())
    }

    fn at(&self, vertex: usize) -> Option<(u32, u32)> {
        self.placer.candidates.of[vertex]
            .get(self.spot[vertex]? as usize)
            .copied()
    }

    /// Places the vertices from the one with this number in the order on.
    fn place(&mut self, number: usize) -> End {
        let Some(&vertex) = self.order.get(number) else {
            self.placements += 1;
            return self.route();
        };
        let placer = self.placer;
        let body = &placer.kernel.vertices[vertex];
        for (index, &(element, slot)) in placer.candidates.of[vertex].iter().enumerate() {
            if !self.step() {
                return End::Spent;
            }
            let own = &placer.fabric.adg.elements[ElementId::new(element as usize)];
            let parts = if body.place == Place::Unit {
                body.width.div_ceil(own.granularity.max(1)).max(1)
            } else {
                1
            };
            let room = own
                .processing()
                .map_or(1, |unit| unit.instruction_slots.max(1));
            let slots = slot as usize..(slot + parts) as usize;
            let free = self.tenants[element as usize]
                .get(slots.clone())
                .is_some_and(|slots| slots.iter().all(|count| *count < room));
            self.spot[vertex] = Some(index as u32);
            if free && self.is_reached(vertex) {
                self.tenants[element as usize][slots.clone()]
                    .iter_mut()
                    .for_each(|count| *count += 1);
                let end = self.place(number + 1);
                if end != End::Exhausted {
                    return end;
                }
                self.tenants[element as usize][slots]
                    .iter_mut()
                    .for_each(|count| *count -= 1);
            }
        }
        self.spot[vertex] = None;
        End::Exhausted
    }

    /// Whether there are ways at all between a vertex and those that have a place.
    fn is_reached(&self, vertex: usize) -> bool {
        let kernel = self.placer.kernel;
        let body = &kernel.vertices[vertex];
        body.inputs.iter().chain(&body.outputs).all(|wire| {
            let wire = &kernel.wires[*wire];
            match (self.at(wire.source), self.at(wire.sink)) {
                (Some((from, _)), Some((to, _))) => {
                    from == to || self.placer.fabric.hops_out(from, to) < FAR
                }
                _ => true,
            }
        })
    }

    /// Routes a placement.
    fn route(&mut self) -> End {
        let kernel = self.placer.kernel;
        self.jobs.clear();
        for (number, wire) in kernel.wires.iter().enumerate() {
            let sink = self.at(wire.sink).map_or(0, |(element, _)| element);
            let ordered = self.placer.fabric.is_ordered(sink);
            let one_way = |job: &&mut Job| {
                let other = &kernel.wires[job.wires[0]];
                let together = kernel.vertices[wire.sink].place == Place::Output && !ordered
                    || other.offset == wire.offset;
                job.net == wire.net
                    && other.sink == wire.sink
                    && together
                    && (!ordered || other.operand == wire.operand)
            };
            match self.jobs.iter_mut().find(one_way) {
                Some(job) => job.wires.push(number),
                None => self.jobs.push(Job {
                    net: wire.net,
                    wires: vec![number],
                }),
            }
        }
        // The ways of one value behind each other: what it has is known before the next value.
        self.jobs.sort_by_key(|job| job.net);
        self.last = vec![(NONE, 0); self.jobs.len()];
        self.begin(0)
    }

    /// Finds ways for the jobs from this one on.
    fn begin(&mut self, job: usize) -> End {
        let Some(Job { net, wires }) = self.jobs.get(job) else {
            return End::Found;
        };
        let (net, wire) = (*net, wires[0]);
        let fabric = self.placer.fabric;
        let body = &self.placer.kernel.wires[wire];
        let (Some((source, _)), Some((sink, _))) = (self.at(body.source), self.at(body.sink))
        else {
            return End::Exhausted;
        };
        let reach = self.reach(sink, body.width);
        let is_unit = self.placer.kernel.vertices[body.source].place == Place::Unit;
        let mut starts: Vec<u32> = (0..fabric.size() as u32)
            .filter(|at| self.came[net * fabric.size() + *at as usize].is_some())
            .collect();
        if !(is_unit && self.left[net]) {
            starts.push(source);
        }
        for start in starts {
            let end = self.extend(job, wire, start, &reach);
            if end != End::Exhausted {
                return end;
            }
        }
        End::Exhausted
    }

    /// Links from each switch to an element over slots that are free.
    fn reach(&self, sink: u32, width: u32) -> Vec<u16> {
        let fabric = self.placer.fabric;
        let mut reach = vec![FAR; fabric.size()];
        let mut queue = vec![sink];
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let length = if at == sink {
                1
            } else {
                reach[at as usize] + 1
            };
            for &link in &fabric.inputs[at as usize] {
                let way = fabric.links[link as usize];
                let free = (0..way.slots)
                    .filter(|slot| !self.taken[(way.first + slot) as usize])
                    .count() as u32;
                if fabric.is_switch[way.source as usize]
                    && reach[way.source as usize] == FAR
                    && free >= fabric.slots_for(link, width)
                {
                    reach[way.source as usize] = length;
                    queue.push(way.source);
                }
            }
        }
        reach
    }

    /// Goes on from an element that the value of a wire has come to.
    fn extend(&mut self, job: usize, wire: usize, at: u32, reach: &[u16]) -> End {
        if !self.step() {
            return End::Spent;
        }
        let (kernel, fabric) = (self.placer.kernel, self.placer.fabric);
        let body = &kernel.wires[wire];
        let Some((sink, _)) = self.at(body.sink) else {
            return End::Exhausted;
        };
        let from_switch = fabric.is_switch[at as usize];
        let known = |element: u32| body.net * fabric.size() + element as usize;
        let mut links: Vec<u32> = fabric.outputs[at as usize].clone();
        links.sort_by_key(|link| match fabric.links[*link as usize].sink {
            next if next == sink => 0,
            next => reach[next as usize],
        });
        for link in links {
            let way = fabric.links[link as usize];
            let arrives = way.sink == sink;
            if !arrives
                && (!fabric.is_switch[way.sink as usize]
                    || reach[way.sink as usize] == FAR
                    || self.came[known(way.sink)].is_some())
            {
                continue;
            }
            let parts = fabric.slots_for(link, body.width);
            let to_switch = fabric.is_switch[way.sink as usize];
            for slot in 0..if parts > way.slots { 0 } else { way.slots } {
                let inside = slot.is_multiple_of(parts) && slot + parts <= way.slots;
                let slots =
                    (slot..slot + parts).map(|part| (way.first + part % way.slots) as usize);
                let fits = (from_switch && to_switch || inside)
                    && slots.clone().all(|slot| !self.taken[slot])
                    && (from_switch || self.may_leave(wire, link, slot))
                    && (to_switch || self.may_enter(wire, link, slot));
                if !fits {
                    continue;
                }
                slots.clone().for_each(|slot| self.taken[slot] = true);
                let left = std::mem::replace(&mut self.left[body.net], true);
                let end = if arrives {
                    self.last[job] = (link, slot);
                    self.begin(job + 1)
                } else {
                    self.came[known(way.sink)] = Some((link, slot));
                    self.extend(job, wire, way.sink, reach)
                };
                if end != End::Exhausted {
                    return end;
                }
                if !arrives {
                    self.came[known(way.sink)] = None;
                }
                self.left[body.net] = left;
                slots.for_each(|slot| self.taken[slot] = false);
            }
        }
        End::Exhausted
    }

    /// Whether a wire may leave its element, or its port, on a slot of a link.
    fn may_leave(&self, wire: usize, link: u32, slot: u32) -> bool {
        let (kernel, fabric) = (self.placer.kernel, self.placer.fabric);
        let body = &kernel.wires[wire];
        let Some((element, own_slot)) = self.at(body.source) else {
            return false;
        };
        if kernel.vertices[body.source].place == Place::Unit {
            let granularity = fabric.links[link as usize].granularity;
            let bit = own_slot * fabric.adg.elements[ElementId::new(element as usize)].granularity
                + body.low;
            return slot * granularity == bit - bit % granularity;
        }
        let net = &kernel.nets[body.net];
        let lane = net
            .value
            .wrapping_sub(u32::from(kernel.vertices[body.source].stated));
        self.is_lane(
            element,
            &fabric.outputs[element as usize],
            (link, slot),
            net.state,
            lane,
        )
    }

    /// Whether a wire may enter its element, or its port, on a slot of a link.
    fn may_enter(&self, wire: usize, link: u32, slot: u32) -> bool {
        let (kernel, fabric) = (self.placer.kernel, self.placer.fabric);
        let body = &kernel.wires[wire];
        let Some((element, own_slot)) = self.at(body.sink) else {
            return false;
        };
        if kernel.vertices[body.sink].place == Place::Unit {
            let granularity = fabric.links[link as usize].granularity;
            let bit = own_slot * fabric.adg.elements[ElementId::new(element as usize)].granularity
                + body.offset;
            return body.offset.is_multiple_of(granularity)
                && slot * granularity == bit - bit % granularity;
        }
        let state = body.operand >= kernel.vertices[body.sink].lanes;
        self.is_lane(
            element,
            &fabric.inputs[element as usize],
            (link, slot),
            state,
            body.operand,
        )
    }

    /// Whether a lane, or the state, of a port may be on a slot of a link.
    fn is_lane(
        &self,
        port: u32,
        links: &[u32],
        (link, slot): (u32, u32),
        state: bool,
        lane: u32,
    ) -> bool {
        let Some(position) = links.iter().position(|other| *other == link) else {
            return false;
        };
        if state {
            return position == 0 && slot == 0;
        }
        let stated = self.placer.fabric.adg.elements[ElementId::new(port as usize)]
            .port()
            .is_some_and(|port| port.stated);
        !(stated && position == 0)
            && (!self.placer.fabric.is_ordered(port)
                || position == lane as usize + usize::from(stated))
    }

    fn answer(&self) -> Answer {
        let fabric = self.placer.fabric;
        let mut ways = vec![Vec::new(); self.placer.kernel.wires.len()];
        for (job, last) in self.jobs.iter().zip(&self.last) {
            let mut way = vec![*last];
            let mut at = fabric.links[last.0 as usize].source;
            while let Some((link, slot)) = self.came[job.net * fabric.size() + at as usize] {
                way.push((link, slot));
                at = fabric.links[link as usize].source;
            }
            way.reverse();
            for wire in &job.wires {
                ways[*wire].clone_from(&way);
            }
        }
        let spot = self.spot.iter().map(|spot| spot.unwrap_or(0)).collect();
        Answer::Found(
            Placement {
                spot,
                position: vec![0; self.placer.pins.len()],
            },
            ways,
        )
    }
}
