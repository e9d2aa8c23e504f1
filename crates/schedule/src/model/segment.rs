//! The cost of a segment: a child of the root, whatever stands in it.
//!
//! A segment's cost follows from itself alone: what it reads of other segments comes from DRAM, what others read of it goes
//! there. So a change of a tree is paid for only in the segments that it touches, and costs of layers are kept by what they
//! depend on.

use super::leaf::{Costs, Leaf as LeafCost, Surroundings};
use super::mesh::Traffic;
use super::node::{Branch, Leaf, Line, Node, Region, Site};
use super::placed::Placed;
use super::{Factors, Impossible};
use crate::network::Network;
use crate::tree::{Cut, Partition};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// Bytes of kept costs, about.
const KEPT: usize = 24 << 20;
/// No layer.
const NOWHERE: u32 = u32::MAX;

/// Energy (pJ) and time (cycles) of a segment, and what it moves.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) energy: f64,
    pub(crate) time: i64,
    pub(crate) traffic: Traffic,
}

type Key = SmallVec<[u64; 8]>;

/// Evaluates trees.
pub(crate) struct Evaluator<'a> {
    pub(crate) costs: Costs<'a>,
    pub(crate) factors: &'a Factors,
    /// Refusals say nothing but that there is no room: nobody reads those of a search.
    pub(crate) terse: bool,
    /// Partitions and cores of layers whose cores are listed.
    pub(crate) listed: Vec<(Partition, Vec<u16>)>,
    placed: FxHashMap<(u16, u32, Site), (Partition, Rc<Placed>)>,
    kept: FxHashMap<Key, Option<Rc<LeafCost>>>,
    /// By layer and batch, whether L2 has room for it on no partition.
    oversized: FxHashMap<(u16, u32), bool>,
    most_kept: usize,
    most_placed: usize,
    shape: Shape,
    spare: Vec<Vec<i64>>,
    spare_links: Vec<Vec<i64>>,
}

/// Where a layer lies that is read straight from its cores: site, layer, batch.
pub(crate) type Source = Option<(Site, u16, u32)>;

/// A segment's tree, flat: who reads whom how.
#[derive(Default)]
pub(crate) struct Shape {
    pub(crate) nodes: Vec<Flat>,
    /// Leaves in order, with their nodes.
    leaves: Vec<(u32, Leaf)>,
    /// Place of each layer among the leaves.
    place: Vec<u32>,
    to_dram: Vec<bool>,
    /// For each leaf, for each layer that it reads: where that lies, if it gets it straight from its cores.
    direct: Vec<Source>,
    /// Where in that table each leaf's layers begin.
    first_read: Vec<usize>,
}

pub(crate) struct Flat {
    parent: u32,
    /// Position among its siblings, and its stage where they stand side by side.
    position: u32,
    pub(crate) stage: u32,
    space: bool,
    /// First leaf and the one behind the last.
    leaves: [u32; 2],
    /// Children of a cut, in order.
    pub(crate) children: SmallVec<[u32; 8]>,
    /// Highest stage of the children.
    pub(crate) stages: i64,
}

/// Sums over a part of a tree: what is kept of inputs and weights, and what is needed at once, on each core.
struct Sum {
    energy: f64,
    time: i64,
    traffic: Traffic,
    ifmap: Vec<i64>,
    weight: Vec<i64>,
    room: Vec<i64>,
}

impl Sum {
    /// Room for the first child of the next group beside the last of this one.
    fn begin_again(&mut self, first: Option<&[i64]>, last: &Child, shifts: bool) {
        if let Some(first) = first {
            raise(&mut self.room, first, last.room(), None);
            return;
        }
        let weights = shifts.then_some(last.weight());
        for (core, room) in self.room.iter_mut().enumerate() {
            *room = (*room).max(last.room()[core] + weights.map_or(0, |w| w[core]));
        }
    }
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(costs: Costs<'a>, factors: &'a Factors) -> Evaluator<'a> {
        let cores = costs.machine.cores();
        let shape = Shape::new(costs.network);
        Evaluator {
            costs,
            factors,
            terse: false,
            listed: Vec::new(),
            placed: FxHashMap::default(),
            kept: FxHashMap::default(),
            oversized: FxHashMap::default(),
            most_kept: KEPT / (cores * 32 + 200),
            most_placed: KEPT / (cores * 300 + 200),
            shape,
            spare: Vec::new(),
            spare_links: Vec::new(),
        }
    }

    /// A layer on its cores.
    pub(crate) fn placed(&mut self, layer: u16, batch: u32, site: Site) -> (Partition, Rc<Placed>) {
        if let Some((part, placed)) = self.placed.get(&(layer, batch, site)) {
            return (*part, Rc::clone(placed));
        }
        if self.placed.len() >= self.most_placed {
            self.placed.clear();
        }
        let (part, cores) = self.resolve(site);
        let (machine, network) = (self.costs.machine, self.costs.network);
        let placed = Rc::new(Placed::new(
            machine,
            network,
            usize::from(layer),
            part,
            &cores,
            i64::from(batch),
        ));
        self.placed
            .insert((layer, batch, site), (part, Rc::clone(&placed)));
        (part, placed)
    }

    /// Parts and cores.
    pub(crate) fn resolve(&self, site: Site) -> (Partition, Vec<u16>) {
        match site.position() {
            Some(position) => self.listed[position].clone(),
            None => site.resolve(self.costs.machine, self.factors),
        }
    }

    /// The partition of a layer over some of a region's cores that needs the least room, and what it needs on the fullest core: the first
    /// that fits, of those over most cores. `None` where none has a mapping.
    pub(crate) fn least_room(
        &mut self,
        layer: u16,
        batch: u32,
        region: Region,
    ) -> Option<(i64, Leaf)> {
        let (room, factors) = (self.costs.machine.l2.bytes, self.factors);
        let mut least: Option<(i64, Leaf)> = None;
        for count in (1..=region.count).rev() {
            for (position, part) in factors.of(count).iter().enumerate() {
                let tile = self.costs.tile(usize::from(layer), *part, i64::from(batch));
                if tile.is_none() {
                    continue;
                }
                let site = Site::new(region, count, Line::Bands, position, 0);
                let needed = self.placed(layer, batch, site).1.fullest();
                if least.as_ref().is_none_or(|(fewest, _)| needed < *fewest) {
                    let leaf = Leaf {
                        layer,
                        batch,
                        region,
                        site,
                    };
                    least = Some((needed, leaf));
                }
            }
            if least.as_ref().is_some_and(|(needed, _)| *needed <= room) {
                break;
            }
        }
        least
    }

    /// Whether L2 has no room for a layer, however it is cut. By itself, it is then written in pieces.
    fn is_oversized(&mut self, leaf: &Leaf) -> bool {
        let key = (leaf.layer, leaf.batch);
        if let Some(known) = self.oversized.get(&key) {
            return *known;
        }
        let whole = Region {
            first: 0,
            count: self.costs.machine.cores() as u16,
        };
        let least = self.least_room(leaf.layer, leaf.batch, whole);
        let is_oversized = least.is_some_and(|(needed, _)| needed > self.costs.machine.l2.bytes);
        self.oversized.insert(key, is_oversized);
        is_oversized
    }

    /// The cost of a child of the root.
    pub(crate) fn segment(&mut self, node: &Node) -> Result<Segment, Impossible> {
        let mut shape = std::mem::take(&mut self.shape);
        shape.read(node, self.costs.network);
        let child = match node {
            Node::Leaf(leaf) => self.leaf_sum(node, leaf, &shape, true).map(Child::Leaf),
            Node::Cut(branch) => self.sum(node, branch, &shape, 0, true).map(Child::Sum),
        };
        shape.forget();
        self.shape = shape;
        let child = child?;
        let (energy, time, traffic) = child.figures();
        let time = time.max(traffic.time(self.costs.machine));
        let segment = Segment {
            energy,
            time,
            traffic: traffic.clone(),
        };
        self.give_back(child);
        Ok(segment)
    }

    /// Cost of a layer; for each that it reads straight from cores: where that lies.
    pub(crate) fn leaf_cost(
        &mut self,
        leaf: &Leaf,
        sources: &[Source],
        to_dram: bool,
    ) -> Option<Rc<LeafCost>> {
        let mut key: Key = SmallVec::new();
        key.push(u64::from(leaf.layer) | u64::from(leaf.batch) << 20 | u64::from(to_dram) << 60);
        key.push(leaf.site.number());
        for source in sources {
            match source {
                Some((site, _, batch)) => key.extend([site.number(), u64::from(*batch)]),
                None => key.push(u64::MAX),
            }
        }
        if let Some(kept) = self.kept.get(&key) {
            return kept.clone();
        }
        if self.kept.len() >= self.most_kept {
            self.kept.clear();
        }
        let (part, placed) = self.placed(leaf.layer, leaf.batch, leaf.site);
        let direct: SmallVec<[Option<Rc<Placed>>; 4]> = sources
            .iter()
            .map(|source| source.map(|(site, layer, batch)| self.placed(layer, batch, site).1))
            .collect();
        let around = Surroundings {
            direct: &direct,
            to_dram,
        };
        let cost = self
            .costs
            .leaf(usize::from(leaf.layer), part, &placed, &around, true)
            .map(Rc::new);
        self.kept.insert(key, cost.clone());
        cost
    }

    fn zeros(&mut self) -> Vec<i64> {
        match self.spare.pop() {
            Some(mut spare) => {
                spare.fill(0);
                spare
            }
            None => vec![0; self.costs.machine.cores()],
        }
    }

    fn name(&self, node: &Node) -> String {
        match node {
            Node::Leaf(leaf) => format!(
                "the layer {}",
                self.costs.network.layers[usize::from(leaf.layer)].name
            ),
            Node::Cut(_) => {
                let layers = node.layers();
                let name = |layer: Option<&u16>| {
                    layer.map_or("", |l| {
                        self.costs.network.layers[usize::from(*l)].name.as_str()
                    })
                };
                format!(
                    "the cut from {} to {}",
                    name(layers.first()),
                    name(layers.last())
                )
            }
        }
    }

    fn check(&self, node: &Node, needed: i64, what: &str) -> Result<(), Impossible> {
        let present = self.costs.machine.l2.bytes;
        if needed > present {
            return Err(self.room(node, needed, what));
        }
        Ok(())
    }

    #[cold]
    fn room(&self, node: &Node, needed: i64, what: &str) -> Impossible {
        let what = if self.terse {
            String::new()
        } else {
            format!("{what}{}", self.name(node))
        };
        Impossible::Room {
            what,
            needed,
            stream: self.costs.machine.stream.min(needed),
            present: self.costs.machine.l2.bytes,
        }
    }

    fn leaf_sum(
        &mut self,
        node: &Node,
        leaf: &Leaf,
        shape: &Shape,
        is_alone: bool,
    ) -> Result<Rc<LeafCost>, Impossible> {
        let network = self.costs.network;
        let (sources, to_dram) = shape.around(leaf.layer);
        let cost = self.leaf_cost(leaf, sources, to_dram).ok_or_else(|| {
            Impossible::Mapping(network.layers[usize::from(leaf.layer)].name.clone())
        })?;
        match self.check(node, cost.placed.fullest(), "") {
            Err(_) if is_alone && self.is_oversized(leaf) => {}
            fitting => fitting?,
        }
        Ok(cost)
    }

    fn sum(
        &mut self,
        node: &Node,
        branch: &Branch,
        shape: &Shape,
        at: usize,
        segment: bool,
    ) -> Result<Sum, Impossible> {
        let links = self.spare_links.pop().map_or_else(
            || vec![0; 4 * self.costs.machine.cores()],
            |mut links| {
                links.fill(0);
                links
            },
        );
        let mut total = Sum {
            energy: 0.0,
            time: 0,
            traffic: Traffic {
                links,
                ..Traffic::default()
            },
            ifmap: self.zeros(),
            weight: self.zeros(),
            room: self.zeros(),
        };
        // A segment in time that does all of its batch at once loads weights as it goes.
        let shifts = branch.cut == Cut::Time && segment && branch.groups == 1;
        let (mut first, mut last): (Option<Vec<i64>>, Option<Child>) = (None, None);
        for (child, flat) in branch.children.iter().zip(&shape.nodes[at].children) {
            let part = match child {
                Node::Leaf(leaf) => Child::Leaf(self.leaf_sum(child, leaf, shape, false)?),
                Node::Cut(inner) => {
                    Child::Sum(self.sum(child, inner, shape, *flat as usize, false)?)
                }
            };
            let (energy, time, traffic) = part.figures();
            total.energy += energy;
            total.traffic.add(traffic);
            match branch.cut {
                Cut::Space => {
                    total.time = total.time.max(time);
                    add(&mut total.room, part.room());
                    if branch.groups > 1 {
                        add(&mut total.room, part.ifmap());
                    }
                    add(&mut total.weight, part.weight());
                }
                Cut::Time => {
                    total.time += time;
                    if let Some(last) = &last {
                        let weights = shifts.then_some((last.weight(), part.weight()));
                        raise(&mut total.room, part.ifmap(), last.room(), weights);
                    }
                    if !shifts {
                        add(&mut total.weight, part.weight());
                    }
                }
            }
            if !segment {
                add(&mut total.ifmap, part.ifmap());
            }
            if first.is_none() && branch.groups > 1 {
                first = Some(part.ifmap().to_vec());
            }
            if let Some(before) = last.replace(part) {
                self.give_back(before);
            }
        }
        if let Some(last) = last {
            if branch.cut == Cut::Time {
                total.begin_again(first.as_deref(), &last, shifts);
            }
            self.give_back(last);
        }
        let groups = i64::from(branch.groups);
        if groups > 1 {
            total.ifmap.iter_mut().for_each(|kept| *kept *= groups);
            let most = total.ifmap.iter().copied().max().unwrap_or(0);
            self.check(node, most, "the input of ")?;
        }
        let most = if shifts {
            total.room.iter().copied().max()
        } else {
            total
                .room
                .iter()
                .zip(&total.weight)
                .map(|(room, weight)| room + weight)
                .max()
        };
        self.check(node, most.unwrap_or(0), "")?;
        total.time *= match branch.cut {
            Cut::Space => shape.nodes[at].stages + groups,
            Cut::Time => groups,
        };
        total.energy *= groups as f64;
        total.traffic.multiply(groups);
        Ok(total)
    }

    fn give_back(&mut self, child: Child) {
        if let Child::Sum(sum) = child {
            self.spare.extend([sum.ifmap, sum.weight, sum.room]);
            self.spare_links.push(sum.traffic.links);
        }
    }
}

/// What a child of a cut adds to it.
enum Child {
    Leaf(Rc<LeafCost>),
    Sum(Sum),
}

impl Child {
    fn figures(&self) -> (f64, i64, &Traffic) {
        match self {
            Child::Leaf(leaf) => (leaf.energy, leaf.time, &leaf.traffic),
            Child::Sum(sum) => (sum.energy, sum.time, &sum.traffic),
        }
    }

    fn ifmap(&self) -> &[i64] {
        match self {
            Child::Leaf(leaf) => &leaf.placed.ifmap_kept,
            Child::Sum(sum) => &sum.ifmap,
        }
    }

    fn weight(&self) -> &[i64] {
        match self {
            Child::Leaf(leaf) => &leaf.placed.weight_kept,
            Child::Sum(sum) => &sum.weight,
        }
    }

    fn room(&self) -> &[i64] {
        match self {
            Child::Leaf(leaf) => &leaf.placed.room,
            Child::Sum(sum) => &sum.room,
        }
    }
}

fn add(total: &mut [i64], more: &[i64]) {
    total
        .iter_mut()
        .zip(more)
        .for_each(|(total, more)| *total += more);
}

/// The next one's input beside the last one's room.
fn raise(room: &mut [i64], next: &[i64], last: &[i64], weights: Option<(&[i64], &[i64])>) {
    for (core, room) in room.iter_mut().enumerate() {
        let pinned = weights.map_or(0, |(last, next)| last[core] + next[core]);
        *room = (*room).max(next[core] + last[core] + pinned);
    }
}

impl Shape {
    /// For the layers of a network.
    pub(crate) fn new(network: &Network) -> Shape {
        Shape {
            place: vec![NOWHERE; network.layers.len()],
            ..Shape::default()
        }
    }

    /// What a layer of the segment reads straight from cores, and whether its result goes to DRAM.
    pub(crate) fn around(&self, layer: u16) -> (&[Source], bool) {
        let place = self.place[usize::from(layer)] as usize;
        (
            &self.direct[self.first_read[place]..self.first_read[place + 1]],
            self.to_dram[place],
        )
    }

    /// Reads a segment. It must be forgotten before the next.
    pub(crate) fn read(&mut self, node: &Node, network: &Network) {
        self.nodes.clear();
        self.leaves.clear();
        self.flatten(node, NOWHERE, 0);
        for at in 0..self.nodes.len() {
            if self.nodes[at].space {
                self.stages(at, network);
            }
        }
        let leaves = self.leaves.len();
        self.to_dram.clear();
        self.to_dram.resize(leaves, false);
        self.direct.clear();
        self.first_read.clear();
        for place in 0..leaves {
            self.first_read.push(self.direct.len());
            let facts = &network.facts[usize::from(self.leaves[place].1.layer)];
            let outside = |reader: &usize| self.place[*reader] == NOWHERE;
            self.to_dram[place] |= facts.readers.is_empty() || facts.readers.iter().any(outside);
            for producer in &facts.reads {
                let from = self.place[*producer];
                let direct = from < place as u32 && !self.is_far(from, place as u32);
                if from != NOWHERE && !direct {
                    self.to_dram[from as usize] = true;
                }
                self.direct.push(direct.then(|| {
                    let leaf = &self.leaves[from as usize].1;
                    (leaf.site, leaf.layer, leaf.batch)
                }));
            }
        }
        self.first_read.push(self.direct.len());
    }

    fn forget(&mut self) {
        for (_, leaf) in &self.leaves {
            self.place[usize::from(leaf.layer)] = NOWHERE;
        }
    }

    fn flatten(&mut self, node: &Node, parent: u32, position: u32) -> u32 {
        let at = self.nodes.len() as u32;
        let first = self.leaves.len() as u32;
        let space = matches!(node, Node::Cut(branch) if branch.cut == Cut::Space);
        self.nodes.push(Flat {
            parent,
            position,
            stage: 0,
            space,
            leaves: [first; 2],
            children: SmallVec::new(),
            stages: 0,
        });
        match node {
            Node::Leaf(leaf) => {
                self.place[usize::from(leaf.layer)] = first;
                self.leaves.push((at, leaf.clone()));
            }
            Node::Cut(branch) => {
                for (child, position) in branch.children.iter().zip(0..) {
                    let child = self.flatten(child, at, position);
                    self.nodes[at as usize].children.push(child);
                }
            }
        }
        self.nodes[at as usize].leaves[1] = self.leaves.len() as u32;
        at
    }

    /// Stages of the children of a cut in space: one more than those of earlier siblings that they read, looked at in order.
    fn stages(&mut self, at: usize, network: &Network) {
        let children = std::mem::take(&mut self.nodes[at].children);
        let start = self.nodes[at].leaves[0];
        let mut most = 0;
        let mut read = Vec::new();
        for child in &children {
            let [first, end] = self.nodes[*child as usize].leaves;
            read.clear();
            for place in first..end {
                for producer in
                    &network.facts[usize::from(self.leaves[place as usize].1.layer)].reads
                {
                    let from = self.place[*producer];
                    if from >= start && from < first {
                        read.push(self.nodes[self.below(from, at as u32) as usize].position);
                    }
                }
            }
            read.sort_unstable();
            let mut stage = 0;
            for sibling in &read {
                let other = self.nodes[children[*sibling as usize] as usize].stage;
                if other >= stage {
                    stage = other + 1;
                }
            }
            self.nodes[*child as usize].stage = stage;
            most = most.max(stage);
        }
        self.nodes[at].children = children;
        self.nodes[at].stages = i64::from(most);
    }

    /// The child of a cut in which a leaf stands.
    fn below(&self, leaf: u32, cut: u32) -> u32 {
        let mut at = self.leaves[leaf as usize].0;
        while self.nodes[at as usize].parent != cut {
            at = self.nodes[at as usize].parent;
        }
        at
    }

    /// Whether what one leaf makes for a later one goes through DRAM.
    fn is_far(&self, from: u32, to: u32) -> bool {
        let mut child = self.leaves[to as usize].0;
        let mut cut = self.nodes[child as usize].parent;
        while self.nodes[cut as usize].leaves[0] > from {
            child = cut;
            cut = self.nodes[cut as usize].parent;
        }
        let (source, reader) = (
            &self.nodes[self.below(from, cut) as usize],
            &self.nodes[child as usize],
        );
        if self.nodes[cut as usize].space {
            reader.stage > source.stage + 1
        } else {
            reader.position > source.position + 1
        }
    }
}
