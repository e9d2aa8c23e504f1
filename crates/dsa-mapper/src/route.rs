//! Routing by negotiated congestion (PathFinder): every net takes the cheapest way, links that two values want become dearer until
//! every one of them has one value.
//!
//! A wire asks for a way of a certain length, between a least and a most number of links, because the delay buffers cover only part of
//! what operands have to wait. The search therefore goes by links and by the number of links so far.

use crate::fabric::Fabric;
use crate::kernel::{Kernel, Place};
use crate::place::{Placement, Placer};
use chipless_dsa::adg::ElementId;

/// A link of a net, and the way to it.
#[derive(Clone, Copy, Debug)]
struct Branch {
    link: u32,
    slot: u32,
    /// Links from the source, this one included.
    depth: u32,
    /// The branch before it.
    before: u32,
    /// The lowest bit of the value that it carries, and how many.
    low: u32,
    width: u32,
    /// The coarsest link so far: parts of the value that begin at its multiples can be taken off.
    coarsest: u32,
}

/// The ways of a net: a tree.
#[derive(Clone, Debug, Default)]
struct Tree {
    branches: Vec<Branch>,
    /// For each wire of the net its last branch.
    ends: Vec<u32>,
}

/// The ways of all wires.
pub(crate) struct Routing {
    /// For each wire its links and slots.
    pub(crate) ways: Vec<Vec<(u32, u32)>>,
    /// Links on which values collide: link, slot, values too many.
    pub(crate) collisions: Vec<(u32, u32, u16)>,
    /// Wires for which there is no way at all.
    pub(crate) unreached: usize,
}

/// Links that a way may have.
pub(crate) const LONGEST: usize = 255;

const NONE: u32 = u32::MAX;

pub(crate) struct Router<'p> {
    placer: &'p Placer<'p>,
    placement: &'p Placement,
    /// Values on each slot of each link.
    used: Vec<u16>,
    history: Vec<f32>,
    pressure: f32,
    trees: Vec<Tree>,
    /// The net that a slot of a port's link is kept for; `NONE` for any.
    owner: Vec<u32>,
    frontier: Frontier,
}

/// Scratch space of a search: states are elements and depths.
struct Frontier {
    cost: Vec<f32>,
    /// The link that leads to a state, its slot, and the state before, or a branch of the tree.
    step: Vec<(u32, u32, u32)>,
    stamp: Vec<u32>,
    now: u32,
    layers: Vec<Vec<u32>>,
}

impl<'p> Router<'p> {
    pub(crate) fn new(placer: &'p Placer<'p>, placement: &'p Placement) -> Router<'p> {
        let (fabric, kernel) = (placer.fabric, placer.kernel);
        let mut owner = vec![NONE; fabric.slots];
        // Links of ports belong to the pins on them; the first link of a stated port to nobody else.
        for &port in fabric.input_ports.iter().chain(&fabric.output_ports) {
            let stated = fabric.adg.elements[ElementId::new(port as usize)]
                .port()
                .is_some_and(|port| port.stated);
            let links = if fabric.outputs[port as usize].is_empty() {
                &fabric.inputs[port as usize]
            } else {
                &fabric.outputs[port as usize]
            };
            let ordered = fabric.is_ordered(port);
            let is_input = !fabric.outputs[port as usize].is_empty();
            for (index, link) in links.iter().enumerate() {
                let body = fabric.links[*link as usize];
                for slot in 0..body.slots {
                    if (index == 0 && stated) || ordered || !is_input {
                        owner[(body.first + slot) as usize] = NONE - 1;
                    }
                }
            }
        }
        for (pin, body) in placer.pins.iter().enumerate() {
            let (link, slot) = placer.position(placement, pin);
            let wireway = fabric.links[link as usize];
            if let Some(wire) = body.wires.first() {
                let wire = &kernel.wires[*wire];
                for part in 0..fabric.slots_for(link, wire.width) {
                    if let Some(owner) = owner.get_mut((wireway.first + slot + part) as usize) {
                        *owner = wire.net as u32;
                    }
                }
            }
        }
        let states = fabric.size() * (LONGEST + 1);
        Router {
            placer,
            placement,
            used: vec![0; fabric.slots],
            history: vec![0.0; fabric.slots],
            pressure: 0.5,
            trees: kernel.nets.iter().map(|_| Tree::default()).collect(),
            owner,
            frontier: Frontier {
                cost: vec![0.0; states],
                step: vec![(NONE, 0, NONE); states],
                stamp: vec![0; states],
                now: 0,
                layers: vec![Vec::new(); LONGEST + 1],
            },
        }
    }

    fn kernel(&self) -> &'p Kernel {
        self.placer.kernel
    }

    fn fabric(&self) -> &'p Fabric<'p> {
        self.placer.fabric
    }

    /// Routes everything, in at most so many rounds. Wires ask for the lengths in `windows`.
    pub(crate) fn route(&mut self, windows: &[(i32, i32)], rounds: u32) -> Routing {
        let kernel = self.kernel();
        let mut order: Vec<usize> = (0..kernel.nets.len()).collect();
        // Nets with little choice first: long ones, and those with many sinks.
        order.sort_by_key(|net| {
            std::cmp::Reverse(
                kernel.nets[*net]
                    .wires
                    .iter()
                    .map(|wire| windows[*wire].0)
                    .sum::<i32>(),
            )
        });
        let mut unreached = vec![0; kernel.nets.len()];
        for _ in 0..rounds.max(1) {
            for (number, &net) in order.iter().enumerate() {
                if number % 16 == 15 && self.placer.deadline.is_over() {
                    break;
                }
                let crowded = self.trees[net]
                    .branches
                    .iter()
                    .any(|branch| self.is_crowded(branch));
                let missing = self.trees[net].ends.len() < kernel.nets[net].wires.len();
                if crowded || missing || unreached[net] > 0 || self.strays(net, windows) {
                    self.remove(net);
                    unreached[net] = self.grow(net, windows);
                }
            }
            let collisions = self.collisions();
            if collisions.is_empty() {
                break;
            }
            for (link, slot, _) in collisions {
                let index = (self.fabric().links[link as usize].first + slot) as usize;
                self.history[index] += 1.0;
            }
            self.pressure *= 1.5;
        }
        let mut ways = vec![Vec::new(); kernel.wires.len()];
        for (net, tree) in self.trees.iter().enumerate() {
            for (wire, end) in kernel.nets[net].wires.iter().zip(&tree.ends) {
                let mut at = *end;
                while let Some(branch) = tree.branches.get(at as usize) {
                    // A part of what the branch carries lies behind its beginning.
                    let behind = kernel.wires[*wire].low.saturating_sub(branch.low)
                        / self.fabric().links[branch.link as usize].granularity;
                    ways[*wire].push((branch.link, branch.slot + behind));
                    at = branch.before;
                }
                ways[*wire].reverse();
            }
        }
        // Nets that time was not enough for have no way.
        let late = kernel
            .nets
            .iter()
            .zip(&self.trees)
            .map(|(net, tree)| net.wires.len().saturating_sub(tree.ends.len()));
        Routing {
            ways,
            collisions: self.collisions(),
            unreached: unreached.iter().sum::<usize>() + late.sum::<usize>(),
        }
    }

    /// Slots of all links that a branch takes.
    fn taken(&self, branch: &Branch) -> std::ops::Range<u32> {
        let first = self.fabric().links[branch.link as usize].first + branch.slot;
        first..first + self.fabric().slots_for(branch.link, branch.width)
    }

    fn is_crowded(&self, branch: &Branch) -> bool {
        let room = self.room(branch.link);
        self.taken(branch).any(|slot| {
            self.used
                .get(slot as usize)
                .is_some_and(|used| *used > room)
        })
    }

    /// Values that a link has room for: one, or one in each cycle of the interval.
    fn room(&self, link: u32) -> u16 {
        let values = self.fabric().values[link as usize];
        values.min(self.placer.interval.max(1) as u32) as u16
    }

    /// Whether a wire of the net has not the length that it should.
    fn strays(&self, net: usize, windows: &[(i32, i32)]) -> bool {
        let tree = &self.trees[net];
        self.kernel().nets[net]
            .wires
            .iter()
            .zip(&tree.ends)
            .any(|(wire, end)| {
                let length = tree
                    .branches
                    .get(*end as usize)
                    .map_or(0, |branch| branch.depth as i32);
                length < windows[*wire].0 || length > windows[*wire].1
            })
    }

    fn collisions(&self) -> Vec<(u32, u32, u16)> {
        let mut found = Vec::new();
        for (number, link) in self.fabric().links.iter().enumerate() {
            for slot in 0..link.slots {
                let used = self.used[(link.first + slot) as usize];
                let room = self.room(number as u32);
                if used > room {
                    found.push((number as u32, slot, used - room));
                }
            }
        }
        found
    }

    fn mark(&mut self, branch: Branch, add: bool) {
        for slot in self.taken(&branch) {
            if let Some(used) = self.used.get_mut(slot as usize) {
                *used = if add {
                    *used + 1
                } else {
                    used.saturating_sub(1)
                };
            }
        }
    }

    fn remove(&mut self, net: usize) {
        let tree = std::mem::take(&mut self.trees[net]);
        for branch in tree.branches {
            self.mark(branch, false);
        }
    }

    /// Grows the tree of a net to all its sinks; how many it did not reach.
    fn grow(&mut self, net: usize, windows: &[(i32, i32)]) -> usize {
        let kernel = self.kernel();
        let wires = &kernel.nets[net].wires;
        let mut order: Vec<usize> = (0..wires.len()).collect();
        // Whole values first, then short ways: parts and longer ways branch off them.
        order.sort_by_key(|index| {
            (
                std::cmp::Reverse(kernel.wires[wires[*index]].width),
                windows[wires[*index]].1,
            )
        });
        let mut ends = vec![NONE; wires.len()];
        let mut missed = 0;
        for index in order {
            let wire = wires[index];
            let body = &kernel.wires[wire];
            let (from, to) = (
                self.placer.at(self.placement, body.source),
                self.placer.at(self.placement, body.sink),
            );
            let inside = from.0 == to.0 && self.placer.is_shared(from.0);
            if inside && kernel.vertices[body.sink].place == Place::Unit {
                continue;
            }
            match self.reach(net, wire, windows[wire]) {
                Some(end) => ends[index] = end,
                None => missed += 1,
            }
        }
        self.trees[net].ends = ends;
        missed
    }

    /// What a slot of a link costs a net; `None` where the net may not have it.
    fn price(&self, link: u32, slot: u32, parts: u32, net: usize) -> Option<f32> {
        let body = self.fabric().links[link as usize];
        if slot + parts > body.slots {
            return None;
        }
        let mut price = 0.0;
        for index in body.first + slot..body.first + slot + parts {
            let owner = self.owner[index as usize];
            if owner != NONE && owner != net as u32 {
                return None;
            }
            let room = self.room(link);
            let crowd = f32::from((self.used[index as usize] + 1).saturating_sub(room));
            price += (1.0 + self.history[index as usize]) * (1.0 + crowd * self.pressure * 4.0);
        }
        Some(price)
    }

    /// The cheapest way of the right length to the sink of a wire, from anywhere on the tree.
    fn reach(&mut self, net: usize, wire: usize, window: (i32, i32)) -> Option<u32> {
        let (kernel, fabric) = (self.kernel(), self.fabric());
        let body = &kernel.wires[wire];
        let (least, most) = (
            window.0.clamp(0, LONGEST as i32) as usize,
            window.1.clamp(1, LONGEST as i32) as usize,
        );
        let last = self
            .placer
            .sink_pin(wire)
            .map(|pin| self.placer.position(self.placement, pin));
        let sink = self.placer.at(self.placement, body.sink);
        // The element from which the last step is made, or the sink itself.
        let target = last.map_or(sink.0, |(link, _)| fabric.links[link as usize].source);
        let extra = usize::from(last.is_some());
        // Beyond the window there may be ways where congestion leaves no other; a mismatch may be mended later.
        let reserve = 6;
        let horizon = (most + reserve).min(LONGEST);
        self.frontier.begin();
        let source = self.placer.at(self.placement, body.source);
        let is_unit = kernel.vertices[body.source].place == Place::Unit;
        self.frontier.offer(source.0, 0, 0.0, (NONE, NONE, NONE));
        // The link on which the value leaves, where that is settled: state on the first of its port, a result on one only.
        let leaves_on = if kernel.nets[net].state && !is_unit {
            fabric.outputs[source.0 as usize].first().copied()
        } else {
            self.trees[net]
                .branches
                .iter()
                .find(|branch| {
                    is_unit && branch.depth == 1 && fabric.values[branch.link as usize] == 1
                })
                .map(|branch| branch.link)
        };
        for (index, branch) in self.trees[net].branches.iter().enumerate() {
            let at = fabric.links[branch.link as usize].sink;
            let inside =
                branch.low <= body.low && body.low + body.width <= branch.low + branch.width;
            if !inside || !(body.low - branch.low).is_multiple_of(branch.coarsest) {
                continue;
            }
            let behind = (body.low - branch.low) / fabric.links[branch.link as usize].granularity;
            let arrived = last.is_none()
                && at == target
                && self.enters(wire, branch.link, branch.slot + behind);
            if (branch.depth as usize) < horizon && (fabric.is_switch[at as usize] || arrived) {
                self.frontier
                    .offer(at, branch.depth as usize, 0.0, (NONE, index as u32, NONE));
            }
        }
        let mut best: Option<(f32, u32, usize)> = None;
        for depth in 0..=horizon {
            let mut at = 0;
            while let Some(&element) = self.frontier.layers[depth].get(at) {
                at += 1;
                let state = Frontier::state(element, depth);
                let cost = self.frontier.cost[state];
                if best.is_some_and(|(known, ..)| cost >= known) {
                    continue;
                }
                let is_source = depth == 0 && element == source.0;
                let is_end = if last.is_some() {
                    fabric.is_switch[element as usize] || is_source
                } else {
                    depth > 0
                };
                if element == target && is_end {
                    let length = depth + extra;
                    let off = if length < least {
                        (least - length) as f32 * 6.0
                    } else {
                        length.saturating_sub(most) as f32 * 12.0
                    };
                    if best.is_none_or(|(known, ..)| cost + off < known) {
                        best = Some((cost + off, element, depth));
                    }
                    if !(fabric.is_switch[element as usize] || is_source) {
                        continue;
                    }
                }
                if depth == horizon || !(fabric.is_switch[element as usize] || depth == 0) {
                    continue;
                }
                for &link in &fabric.outputs[element as usize] {
                    let next = fabric.links[link as usize].sink;
                    let rest = fabric.hops(next, target) as usize;
                    if depth + 1 + rest + extra > horizon {
                        continue;
                    }
                    let shared = fabric.values[link as usize] > 1;
                    if shared && !body.may_share
                        || is_source && !shared && leaves_on.is_some_and(|settled| settled != link)
                    {
                        continue;
                    }
                    let parts = fabric.slots_for(link, body.width);
                    let granularity = fabric.links[link as usize].granularity;
                    let slots = fabric.links[link as usize].slots;
                    let mut cheapest: Option<(f32, u32)> = None;
                    for slot in (0..slots).step_by(parts as usize) {
                        // Elements and ports fix the part of the first and last link; switches do not.
                        if is_source
                            && is_unit
                            && slot * granularity != self.first_bit(wire, granularity)
                        {
                            continue;
                        }
                        if next == sink.0 && last.is_none() && !self.enters(wire, link, slot) {
                            continue;
                        }
                        if let Some(price) = self.price(link, slot, parts, net)
                            && cheapest.is_none_or(|(known, _)| price < known)
                        {
                            cheapest = Some((price, slot));
                        }
                    }
                    let Some((price, slot)) = cheapest else {
                        continue;
                    };
                    if self.frontier.is_new(next, depth + 1, cost + price)
                        && !self.is_on_way(net, link, slot..slot + parts, state)
                    {
                        self.frontier.offer(
                            next,
                            depth + 1,
                            cost + price,
                            (link, slot, state as u32),
                        );
                    }
                }
            }
        }
        let (_, element, depth) = best?;
        Some(self.plant(net, wire, Frontier::state(element, depth), depth, last))
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
