//! Trees of files: checked, given the partitions that they lack, and turned into those that are evaluated.

use super::leaf::Surroundings;
use super::node::{Branch, Leaf, Node, ORDERS, Region, Site, placement};
use super::placed::Placed;
use super::segment::{Evaluator, Shape};
use super::{Cost, Impossible};
use crate::machine::Machine;
use crate::network::{Kind, Network};
use crate::tree::{self, Cut, Partition, Tree};
use smallvec::SmallVec;
use std::rc::Rc;

/// The tree with names and core lists.
pub(crate) fn tree_of(evaluator: &Evaluator<'_>, node: &Node) -> Tree {
    match node {
        Node::Leaf(leaf) => {
            let (part, cores) = evaluator.resolve(leaf.site);
            Tree::Leaf(tree::Leaf {
                layer: evaluator.costs.network.layers[usize::from(leaf.layer)]
                    .name
                    .clone(),
                batch: i64::from(leaf.batch),
                part: Some(part),
                order: None,
                cores: Some(cores),
            })
        }
        Node::Cut(branch) => Tree::Cut(tree::Branch {
            cut: branch.cut,
            batch: i64::from(branch.batch),
            groups: i64::from(branch.groups),
            children: branch
                .children
                .iter()
                .map(|child| tree_of(evaluator, child))
                .collect(),
        }),
    }
}

/// The cost of a whole tree, and the tree with every partition and core list.
///
/// # Errors
/// What the tree breaks.
pub(crate) fn explicit(
    evaluator: &mut Evaluator<'_>,
    tree: &Tree,
) -> Result<(Cost, Tree), Impossible> {
    let branch = nodes_of(evaluator, tree)?;
    let mut total = Cost::default();
    let mut links = vec![0; 4 * evaluator.costs.machine.cores()];
    for child in &branch.children {
        let segment = evaluator.segment(child)?;
        total.energy += segment.energy;
        total.delay += segment.time;
        total.hops += segment.traffic.hops;
        total.dram += segment.traffic.dram;
        links
            .iter_mut()
            .zip(&segment.traffic.links)
            .for_each(|(link, more)| *link += more);
    }
    let groups = i64::from(branch.groups);
    total.energy *= groups as f64;
    total.delay *= groups;
    total.hops *= groups;
    total.dram *= groups;
    total.busiest_link = links.into_iter().max().unwrap_or(0) * groups;
    Ok((total, tree_of(evaluator, &Node::Cut(branch))))
}

/// The nodes of a tree: rules checked, partitions chosen where they lack as SET's greedy search does.
///
/// # Errors
/// What the tree breaks.
pub(crate) fn nodes_of(evaluator: &mut Evaluator<'_>, tree: &Tree) -> Result<Branch, Impossible> {
    let network = evaluator.costs.network;
    let Tree::Cut(root) = tree else {
        return Err(rule("the root is no T cut"));
    };
    if root.cut != Cut::Time {
        return Err(rule("the root is no T cut"));
    }
    if root.batch != evaluator.costs.batch {
        return Err(rule(format!(
            "the root has batch {}, not {}",
            root.batch, evaluator.costs.batch
        )));
    }
    let whole = Region {
        first: 0,
        count: evaluator.costs.machine.cores() as u16,
    };
    let Node::Cut(mut branch) = bare(network, tree, &mut vec![false; network.layers.len()])? else {
        return Err(rule("the root is no T cut"));
    };
    if let Some(missing) = tree.missing(network).first() {
        return Err(rule(format!("the layer {missing} is missing")));
    }
    branch.region = whole;
    let mut placer = Placer {
        evaluator,
        placed: vec![None; network.layers.len()],
    };
    for (node, child) in branch.children.iter_mut().zip(&root.children) {
        let mut shape = Shape::new(network);
        shape.read(node, network);
        placer.node(node, child, &shape, 0, Some(whole))?;
    }
    Ok(branch)
}

fn rule(text: impl Into<String>) -> Impossible {
    Impossible::Rule(text.into())
}

/// The nodes without places, after the rules of order and batch.
fn bare(network: &Network, tree: &Tree, seen: &mut Vec<bool>) -> Result<Node, Impossible> {
    let branch = match tree {
        Tree::Leaf(leaf) => {
            let unknown = || rule(format!("the network has no layer {}", leaf.layer));
            let index = network.position(&leaf.layer).ok_or_else(unknown)?;
            if std::mem::replace(&mut seen[index], true) {
                return Err(rule(format!("the layer {} stands twice", leaf.layer)));
            }
            if let Some(read) = network.facts[index].reads.iter().find(|read| !seen[**read]) {
                let read = &network.layers[*read].name;
                return Err(rule(format!(
                    "{} stands before {read}, which it reads",
                    leaf.layer
                )));
            }
            let (layer, batch) = (index as u16, leaf.batch as u32);
            return Ok(Node::Leaf(Leaf {
                layer,
                batch,
                region: Region::default(),
                site: Site::listed(index),
            }));
        }
        Tree::Cut(branch) => branch,
    };
    if branch.children.is_empty() {
        return Err(rule("a cut has no children"));
    }
    let (batch, groups) = (branch.batch, branch.groups);
    if batch % groups != 0 {
        return Err(rule(format!(
            "{groups} groups do not divide a batch of {batch}"
        )));
    }
    let mut children = Vec::with_capacity(branch.children.len());
    for child in &branch.children {
        if child.batch() * groups != batch {
            return Err(rule(format!(
                "a child has batch {}, its cut {batch}/{groups}",
                child.batch()
            )));
        }
        children.push(bare(network, child, seen)?);
    }
    let region = Region::default();
    Ok(Node::Cut(Branch {
        cut: branch.cut,
        batch: batch as u32,
        groups: groups as u32,
        region,
        children,
    }))
}

/// Gives layers their partitions and cores.
struct Placer<'r, 'a> {
    evaluator: &'r mut Evaluator<'a>,
    /// Partition and place of each layer that has them.
    placed: Vec<Option<(Partition, Rc<Placed>)>>,
}

impl Placer<'_, '_> {
    /// A node on the cores of a region, or on those that its layers name.
    fn node(
        &mut self,
        node: &mut Node,
        tree: &Tree,
        shape: &Shape,
        at: usize,
        region: Option<Region>,
    ) -> Result<(), Impossible> {
        let (branch, file) = match (node, tree) {
            (Node::Leaf(leaf), Tree::Leaf(file)) => return self.leaf(leaf, file, shape, region),
            (Node::Cut(branch), Tree::Cut(file)) => (branch, file),
            _ => return Err(rule("the tree changed while it was read")),
        };
        branch.region = region.unwrap_or_default();
        let mut regions = vec![region; file.children.len()];
        if file.cut == Cut::Space {
            let listed = |child: &Tree| child.leaves().iter().all(|leaf| leaf.cores.is_some());
            if file.children.iter().all(listed) {
                apart(file)?;
                regions.fill(None);
            } else {
                let whole = region
                    .ok_or_else(|| rule("a layer has no list of cores, others beside it have"))?;
                regions = self.allocate(branch, shape, at, whole)?;
            }
        }
        let flats = &shape.nodes[at].children;
        for ((child, file), (flat, region)) in branch
            .children
            .iter_mut()
            .zip(&file.children)
            .zip(flats.iter().zip(regions))
        {
            self.node(child, file, shape, *flat as usize, region)?;
        }
        Ok(())
    }

    fn leaf(
        &mut self,
        leaf: &mut Leaf,
        file: &tree::Leaf,
        shape: &Shape,
        region: Option<Region>,
    ) -> Result<(), Impossible> {
        let machine = self.evaluator.costs.machine;
        let (part, cores) = match (&file.part, &file.cores) {
            (Some(part), Some(cores)) => (*part, cores.clone()),
            (part, _) => {
                let region =
                    region.ok_or_else(|| rule(format!("{} has no list of cores", file.layer)))?;
                let (part, order) = match (part, file.order) {
                    (Some(part), order) => (*part, order.unwrap_or([0, 1, 2, 3])),
                    (None, _) => self.greedy(leaf, shape, region)?,
                };
                if product(part) != usize::from(region.count) {
                    return Err(rule(format!(
                        "{}: {part:?} parts on {} cores",
                        file.layer, region.count
                    )));
                }
                (part, cores_of(machine, region, part, order))
            }
        };
        if product(part) != cores.len() {
            return Err(rule(format!(
                "{}: {part:?} parts on {} cores",
                file.layer,
                cores.len()
            )));
        }
        let mut sorted = cores.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|two| two[0] == two[1]);
        if twice
            || sorted
                .last()
                .is_some_and(|core| usize::from(*core) >= machine.cores())
        {
            return Err(rule(format!(
                "{}: a core stands twice or is none of the mesh",
                file.layer
            )));
        }
        self.evaluator.listed.push((part, cores));
        leaf.site = Site::listed(self.evaluator.listed.len() - 1);
        leaf.region = region.unwrap_or_default();
        let (part, placed) = self.evaluator.placed(leaf.layer, leaf.batch, leaf.site);
        self.placed[usize::from(leaf.layer)] = Some((part, placed));
        Ok(())
    }

    /// SET's choice of partition and order: the first with the least energy times delay.
    fn greedy(
        &mut self,
        leaf: &Leaf,
        shape: &Shape,
        region: Region,
    ) -> Result<(Partition, [usize; 4]), Impossible> {
        let index = usize::from(leaf.layer);
        let costs = &mut self.evaluator.costs;
        let (machine, network) = (costs.machine, costs.network);
        let (layer, facts) = (&network.layers[index], &network.facts[index]);
        let batch = i64::from(leaf.batch);
        let extents = [layer.output[0], batch, layer.output[1], layer.output[2]];
        let [c, h, w] = facts.input;
        let room = machine.l2.bytes as f64 * f64::from(region.count) * 0.8;
        let cuts = match layer.kind {
            Kind::Conv | Kind::Fc => ((c * h * w * batch) as f64 / room + 1.0) as i64,
            _ => 0,
        };
        let utilisation = |part: &Partition| {
            extents
                .iter()
                .zip(part)
                .fold(1.0, |product, (extent, parts)| {
                    let parts = i64::from(*parts);
                    product * (*extent as f64 / (super::core::ceil(*extent, parts) * parts) as f64)
                })
        };
        let all: Vec<(f64, Partition)> = self
            .evaluator
            .factors
            .of(region.count)
            .iter()
            .filter(|[_, b, h, w]| i64::from(*b) * i64::from(*h) * i64::from(*w) >= cuts)
            .map(|part| (utilisation(part), *part))
            .collect();
        let mut good: Vec<Partition> = all
            .iter()
            .filter(|(used, _)| *used >= 0.75)
            .map(|(_, part)| *part)
            .collect();
        if good.is_empty() {
            let mut most = 0.0;
            for (used, part) in &all {
                if *used > most {
                    most = *used;
                    good = vec![*part];
                }
            }
        }
        let (sources, to_dram) = shape.around(leaf.layer);
        let direct: Vec<Option<Rc<Placed>>> = facts
            .reads
            .iter()
            .zip(sources)
            .map(|(read, direct)| {
                self.placed[*read]
                    .as_ref()
                    .filter(|_| direct.is_some())
                    .map(|(_, placed)| Rc::clone(placed))
            })
            .collect();
        let around = Surroundings {
            direct: &direct,
            to_dram,
        };
        let mut found: Option<((Partition, [usize; 4]), f64)> = None;
        for part in good {
            for order in orders_of(part) {
                let cores = cores_of(machine, region, part, order);
                let placed = Rc::new(Placed::new(machine, network, index, part, &cores, batch));
                if machine.stream + placed.ifmap_largest + placed.weight_largest > machine.l2.bytes
                {
                    break;
                }
                let Some(cost) = self
                    .evaluator
                    .costs
                    .leaf(index, part, &placed, &around, false)
                else {
                    break;
                };
                let score = cost.energy * cost.time as f64;
                if found.as_ref().is_none_or(|(_, least)| score < *least) {
                    found = Some(((part, order), score));
                }
            }
        }
        found
            .map(|(choice, _)| choice)
            .ok_or_else(|| rule(format!("{}: no partition fits", layer.name)))
    }

    /// Work of a node: what its cores are shared out by.
    fn units(&self, node: &Node, shape: &Shape, at: usize) -> f64 {
        let Node::Cut(branch) = node else {
            let Node::Leaf(leaf) = node else { return 0.0 };
            return self.evaluator.costs.unit_time(usize::from(leaf.layer));
        };
        let flat = &shape.nodes[at];
        let children = branch.children.iter().zip(&flat.children);
        let sum: f64 = children
            .map(|(child, at)| self.units(child, shape, *at as usize))
            .sum();
        match branch.cut {
            Cut::Time => sum,
            Cut::Space => {
                sum * f64::from(branch.groups as i32 + flat.stages as i32)
                    / f64::from(branch.groups)
            }
        }
    }

    /// How SET shares out the cores of a cut in space.
    fn allocate(
        &self,
        branch: &Branch,
        shape: &Shape,
        at: usize,
        whole: Region,
    ) -> Result<Vec<Option<Region>>, Impossible> {
        let children = branch.children.iter().zip(&shape.nodes[at].children);
        let units: Vec<f64> = children
            .map(|(child, at)| self.units(child, shape, *at as usize))
            .collect();
        if units.len() > usize::from(whole.count) {
            return Err(rule("a cut in space has more children than cores"));
        }
        let (counts, busy) = share(i64::from(whole.count), &units);
        if busy < 0.75 {
            return Err(rule(format!(
                "a cut in space keeps its cores {busy:.2} busy, less than 0.75"
            )));
        }
        let mut first = whole.first;
        let regions = counts.into_iter().map(|count| {
            let region = Region {
                first,
                count: count as u16,
            };
            first += count as u16;
            Some(region)
        });
        Ok(regions.collect())
    }
}

/// Cores of each child of a cut in space by its work, and how busy they are then.
pub(crate) fn share(cores: i64, units: &[f64]) -> (Vec<i64>, f64) {
    let total: f64 = units.iter().sum();
    let (mut counts, mut done) = (vec![0; units.len()], vec![false; units.len()]);
    let (mut rest, mut work, mut slowest) = (cores, total, 0.0_f64);
    while work > 0.0 {
        let mut ratios = Vec::new();
        let mut extra = rest;
        for i in (0..units.len()).filter(|i| !done[*i]) {
            let ideal = units[i] / work * rest as f64;
            counts[i] = ideal as i64;
            extra -= counts[i];
            ratios.push((counts[i] as f64 / ideal, i));
        }
        if extra <= 0 || ratios.is_empty() {
            for i in (0..units.len()).filter(|i| !done[*i]) {
                slowest = slowest.max(units[i] / counts[i] as f64);
            }
            break;
        }
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, i) in ratios.into_iter().take(extra as usize) {
            counts[i] += 1;
            rest -= counts[i];
            work -= units[i];
            done[i] = true;
            slowest = slowest.max(units[i] / counts[i] as f64);
        }
    }
    (counts, total / (cores as f64 * slowest))
}

fn product(part: Partition) -> usize {
    part.iter().map(|parts| usize::from(*parts)).product()
}

/// Cores of the parts of a layer in a region.
fn cores_of(machine: &Machine, region: Region, part: Partition, order: [usize; 4]) -> Vec<u16> {
    placement(part, order)
        .into_iter()
        .map(|place| machine.core_at(usize::from(region.first) + place))
        .collect()
}

/// Orders of the dimensions that are cut, those that are not innermost: as SET goes through them.
fn orders_of(part: Partition) -> Vec<[usize; 4]> {
    let cut: SmallVec<[usize; 4]> = (0..4).filter(|d| part[*d] > 1).collect();
    let whole: SmallVec<[usize; 4]> = (0..4).rev().filter(|d| part[*d] == 1).collect();
    // In lexical order of what is cut, as permutations of an ascending list come.
    ORDERS
        .iter()
        .filter(|order| order[cut.len()..] == whole[..])
        .copied()
        .collect()
}

/// Children of a cut in space whose layers name their cores must not share any.
fn apart(branch: &tree::Branch) -> Result<(), Impossible> {
    let mut owner = std::collections::BTreeMap::new();
    for (position, child) in branch.children.iter().enumerate() {
        for leaf in child.leaves() {
            for core in leaf.cores.iter().flatten() {
                if *owner.entry(*core).or_insert(position) != position {
                    return Err(rule(format!(
                        "children of an S cut share core {core}, on which {} is one of the layers",
                        leaf.layer
                    )));
                }
            }
        }
    }
    Ok(())
}
