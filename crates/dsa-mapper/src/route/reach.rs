//! The search for the way of a wire: by links, and by the number of links so far.

use super::{Branch, LONGEST, NONE, Router};
use crate::kernel::Place;
use chipless_dsa::adg::ElementId;

/// Scratch space of a search: states are elements and depths.
pub(super) struct Frontier {
    cost: Vec<f32>,
    /// The link that leads to a state, its slot, and the state before, or a branch of the tree.
    step: Vec<(u32, u32, u32)>,
    stamp: Vec<u32>,
    now: u32,
    layers: Vec<Vec<u32>>,
}

/// Links beyond a window: where congestion leaves no other way, a mismatch may be mended later.
const RESERVE: usize = 6;

/// The search for the way of a wire.
struct Search {
    net: usize,
    wire: usize,
    /// Links that it should have.
    least: usize,
    most: usize,
    /// Links that it has at most.
    horizon: usize,
    /// Elements of its ends.
    source: u32,
    sink: u32,
    /// The element from which the last step is made, or the sink itself.
    target: u32,
    /// The link and slot of the last step, where they are settled.
    last: Option<(u32, u32)>,
    /// Whether it leaves an instruction.
    is_unit: bool,
    /// The link on which it leaves, where that is settled.
    leaves_on: Option<u32>,
}

impl Search {
    /// What a way costs for not having the length that it should.
    fn off(&self, depth: usize) -> f32 {
        let length = depth + usize::from(self.last.is_some());
        if length < self.least {
            (self.least - length) as f32 * 6.0
        } else {
            length.saturating_sub(self.most) as f32 * 12.0
        }
    }
}

impl Router<'_> {
    /// The cheapest way of the right length to the sink of a wire, from anywhere on the tree.
    pub(super) fn reach(&mut self, net: usize, wire: usize, window: (i32, i32)) -> Option<u32> {
        let fabric = self.fabric();
        let search = self.search(net, wire, window);
        self.begin(&search);
        let mut best: Option<(f32, u32, usize)> = None;
        for depth in 0..=search.horizon {
            let mut at = 0;
            while let Some(&element) = self.frontier.layers[depth].get(at) {
                at += 1;
                let cost = self.frontier.cost[Frontier::state(element, depth)];
                if best.is_some_and(|(known, ..)| cost >= known) {
                    continue;
                }
                let is_switch = fabric.is_switch[element as usize];
                let is_source = depth == 0 && element == search.source;
                let is_end = if search.last.is_some() {
                    is_switch || is_source
                } else {
                    depth > 0
                };
                if element == search.target && is_end {
                    let off = search.off(depth);
                    if best.is_none_or(|(known, ..)| cost + off < known) {
                        best = Some((cost + off, element, depth));
                    }
                    if !(is_switch || is_source) {
                        continue;
                    }
                }
                if depth < search.horizon && (is_switch || depth == 0) {
                    self.spread(&search, element, depth);
                }
            }
        }
        let (_, element, depth) = best?;
        let state = Frontier::state(element, depth);
        Some(self.plant(net, wire, state, depth, search.last))
    }

    /// What a search for the way of a wire needs to know.
    fn search(&self, net: usize, wire: usize, window: (i32, i32)) -> Search {
        let (kernel, fabric) = (self.kernel(), self.fabric());
        let body = &kernel.wires[wire];
        let most = window.1.clamp(1, LONGEST as i32) as usize;
        let last = self
            .placer
            .sink_pin(wire)
            .map(|pin| self.placer.position(self.placement, pin));
        let sink = self.placer.at(self.placement, body.sink).0;
        let source = self.placer.at(self.placement, body.source).0;
        let is_unit = kernel.vertices[body.source].place == Place::Unit;
        // The link on which the value leaves, where that is settled: state on the first of its port, a result on one only.
        let leaves_on = if kernel.nets[net].state && !is_unit {
            fabric.outputs[source as usize].first().copied()
        } else {
            self.trees[net]
                .branches
                .iter()
                .find(|branch| {
                    is_unit && branch.depth == 1 && fabric.values[branch.link as usize] == 1
                })
                .map(|branch| branch.link)
        };
        Search {
            net,
            wire,
            least: window.0.clamp(0, LONGEST as i32) as usize,
            most,
            horizon: (most + RESERVE).min(LONGEST),
            source,
            sink,
            target: last.map_or(sink, |(link, _)| fabric.links[link as usize].source),
            last,
            is_unit,
            leaves_on,
        }
    }

    /// Begins a search: at the source, and at every branch of the tree that carries what the wire needs.
    fn begin(&mut self, search: &Search) {
        let (kernel, fabric) = (self.kernel(), self.fabric());
        let body = &kernel.wires[search.wire];
        self.frontier.begin();
        self.frontier
            .offer(search.source, 0, 0.0, (NONE, NONE, NONE));
        for (index, branch) in self.trees[search.net].branches.iter().enumerate() {
            let at = fabric.links[branch.link as usize].sink;
            let inside =
                branch.low <= body.low && body.low + body.width <= branch.low + branch.width;
            if !inside || !(body.low - branch.low).is_multiple_of(branch.coarsest) {
                continue;
            }
            let behind = (body.low - branch.low) / fabric.links[branch.link as usize].granularity;
            let arrived = search.last.is_none()
                && at == search.target
                && self.enters(search.wire, branch.link, branch.slot + behind);
            if (branch.depth as usize) < search.horizon
                && (fabric.is_switch[at as usize] || arrived)
            {
                let depth = branch.depth as usize;
                self.frontier
                    .offer(at, depth, 0.0, (NONE, index as u32, NONE));
            }
        }
    }

    /// Goes on from an element over all its links.
    fn spread(&mut self, search: &Search, element: u32, depth: usize) {
        let (kernel, fabric) = (self.kernel(), self.fabric());
        let body = &kernel.wires[search.wire];
        let state = Frontier::state(element, depth);
        let cost = self.frontier.cost[state];
        let is_source = depth == 0 && element == search.source;
        for &link in &fabric.outputs[element as usize] {
            let next = fabric.links[link as usize].sink;
            let rest = fabric.hops(next, search.target) as usize;
            if depth + 1 + rest + usize::from(search.last.is_some()) > search.horizon {
                continue;
            }
            let shared = fabric.values[link as usize] > 1;
            let settled = search.leaves_on.is_some_and(|settled| settled != link);
            if shared && !body.may_share || is_source && !shared && settled {
                continue;
            }
            let parts = fabric.slots_for(link, body.width);
            let Some((price, slot)) = self.cheapest(search, link, parts, is_source) else {
                continue;
            };
            if self.frontier.is_new(next, depth + 1, cost + price)
                && !self.is_on_way(search.net, link, slot..slot + parts, state)
            {
                let step = (link, slot, state as u32);
                self.frontier.offer(next, depth + 1, cost + price, step);
            }
        }
    }

    /// The cheapest slots of a link that the wire may have, and their first.
    fn cheapest(
        &self,
        search: &Search,
        link: u32,
        parts: u32,
        is_source: bool,
    ) -> Option<(f32, u32)> {
        let way = self.fabric().links[link as usize];
        let mut cheapest: Option<(f32, u32)> = None;
        for slot in (0..way.slots).step_by(parts as usize) {
            // Elements and ports fix the part of the first and last link; switches do not.
            let first = is_source && search.is_unit;
            if first && slot * way.granularity != self.first_bit(search.wire, way.granularity) {
                continue;
            }
            let enters = way.sink == search.sink && search.last.is_none();
            if enters && !self.enters(search.wire, link, slot) {
                continue;
            }
            if let Some(price) = self.price(link, slot, parts, search.net)
                && cheapest.is_none_or(|(known, _)| price < known)
            {
                cheapest = Some((price, slot));
            }
        }
        cheapest
    }

    /// Bit of the first link at which the value of a wire leaves its element.
    fn first_bit(&self, wire: usize, granularity: u32) -> u32 {
        let body = &self.kernel().wires[wire];
        let (element, slot) = self.placer.at(self.placement, body.source);
        let own = self.fabric().adg.elements[ElementId::new(element as usize)].granularity;
        let bit = slot * own + body.low;
        bit - bit % granularity
    }

    /// Whether a wire may enter its element on a slot of a link: where its part of the operand lies.
    fn enters(&self, wire: usize, link: u32, slot: u32) -> bool {
        let body = &self.kernel().wires[wire];
        let granularity = self.fabric().links[link as usize].granularity;
        let (element, own_slot) = self.placer.at(self.placement, body.sink);
        let own = self.fabric().adg.elements[ElementId::new(element as usize)].granularity;
        let bit = own_slot * own + body.offset;
        body.offset.is_multiple_of(granularity) && slot * granularity == bit - bit % granularity
    }

    /// Whether slots of a link are on the way to a state already, or in the tree of the net.
    fn is_on_way(
        &self,
        net: usize,
        link: u32,
        slots: std::ops::Range<u32>,
        mut state: usize,
    ) -> bool {
        let first = self.fabric().links[link as usize].first;
        let (start, end) = (first + slots.start, first + slots.end);
        let meets = |branch: &Branch| {
            let taken = self.taken(branch);
            branch.link == link && taken.start < end && start < taken.end
        };
        if self.trees[net].branches.iter().any(meets) {
            return true;
        }
        loop {
            let (via, taken, before) = self.frontier.step[state];
            if via == NONE {
                return false;
            }
            if via == link && slots.contains(&taken) {
                return true;
            }
            state = before as usize;
        }
    }

    /// Adds the way of a wire to a state to the tree, and the last step behind it; the number of its last branch.
    fn plant(
        &mut self,
        net: usize,
        wire: usize,
        mut state: usize,
        depth: usize,
        last: Option<(u32, u32)>,
    ) -> u32 {
        let mut steps = Vec::new();
        // A way begins at the source, or at a branch of the tree, whose number stands where the slot would.
        let mut before;
        loop {
            let (link, slot, previous) = self.frontier.step[state];
            before = slot;
            if link == NONE {
                break;
            }
            steps.push((link, slot));
            state = previous as usize;
        }
        let (low, width) = (
            self.kernel().wires[wire].low,
            self.kernel().wires[wire].width,
        );
        let mut at = depth - steps.len();
        for (link, slot) in steps.into_iter().rev().chain(last) {
            at += 1;
            // The last step to a port may be there already.
            let same = |branch: &Branch| {
                (
                    branch.link,
                    branch.slot,
                    branch.before,
                    branch.low,
                    branch.width,
                ) == (link, slot, before, low, width)
            };
            if let Some(known) = self.trees[net].branches.iter().position(same) {
                before = known as u32;
                continue;
            }
            let so_far = self.trees[net]
                .branches
                .get(before as usize)
                .map_or(1, |branch| branch.coarsest);
            let coarsest = so_far.max(self.fabric().links[link as usize].granularity);
            let branch = Branch {
                link,
                slot,
                depth: at as u32,
                before,
                low,
                width,
                coarsest,
            };
            self.mark(branch, true);
            before = self.trees[net].branches.len() as u32;
            self.trees[net].branches.push(branch);
        }
        before
    }
}

impl Frontier {
    pub(super) fn new(states: usize) -> Frontier {
        Frontier {
            cost: vec![0.0; states],
            step: vec![(NONE, 0, NONE); states],
            stamp: vec![0; states],
            now: 0,
            layers: vec![Vec::new(); LONGEST + 1],
        }
    }

    fn state(element: u32, depth: usize) -> usize {
        element as usize * (LONGEST + 1) + depth
    }

    fn begin(&mut self) {
        self.now += 1;
        for layer in &mut self.layers {
            layer.clear();
        }
    }

    fn is_new(&self, element: u32, depth: usize, cost: f32) -> bool {
        let state = Frontier::state(element, depth);
        self.stamp[state] != self.now || cost < self.cost[state]
    }

    fn offer(&mut self, element: u32, depth: usize, cost: f32, step: (u32, u32, u32)) {
        let state = Frontier::state(element, depth);
        if self.stamp[state] == self.now && self.cost[state] <= cost {
            return;
        }
        if self.stamp[state] != self.now {
            self.stamp[state] = self.now;
            self.layers[depth].push(element);
        }
        self.cost[state] = cost;
        self.step[state] = step;
    }
}
