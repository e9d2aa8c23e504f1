//! In which order the layers of a tree are computed, sub-batch by sub-batch.

use crate::model::node::{Branch, Node};
use crate::model::segment::{Evaluator, Shape};
use crate::tree::{Cut, Partition};
use std::collections::{BTreeMap, BTreeSet};

/// A layer for a sub-batch.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The layer, by its position in the network.
    pub(crate) layer: usize,
    /// First image and the one behind the last.
    pub(crate) images: [i64; 2],
    /// Parts along K, B, H, W.
    pub(crate) part: Partition,
    /// Core of each part.
    pub(crate) cores: Vec<u16>,
    /// Cycles of a core.
    pub(crate) time: i64,
    /// Channels, rows and columns that it computes, where it is not all of them.
    pub(crate) within: Option<[[i64; 2]; 3]>,
}

/// All jobs, and how layers get what they read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    /// In an order in which each comes after what it reads.
    pub(crate) list: Vec<Job>,
    /// Reader and producer where the result goes straight from core to core.
    pub(crate) direct: BTreeSet<(usize, usize)>,
    /// The segment of each layer of the tree.
    pub(crate) segments: BTreeMap<usize, usize>,
    /// Sub-batches of the root.
    pub(crate) groups: i64,
    /// Layers whose weights stay on their cores for all jobs of a sub-batch of the root.
    pub(crate) kept: BTreeSet<usize>,
}

/// The jobs of a tree.
pub(crate) fn jobs(evaluator: &mut Evaluator<'_>, root: &Branch) -> Jobs {
    let network = evaluator.costs.network;
    let mut shapes = Vec::new();
    let mut jobs = Jobs {
        groups: i64::from(root.groups),
        ..Jobs::default()
    };
    for (number, segment) in root.children.iter().enumerate() {
        let mut shape = Shape::new(network);
        shape.read(segment, network);
        segment.for_each(&mut |leaf| {
            let layer = usize::from(leaf.layer);
            jobs.segments.insert(layer, number);
            let (sources, _) = shape.around(leaf.layer);
            let direct = network.facts[layer]
                .reads
                .iter()
                .zip(sources)
                .filter(|(_, source)| source.is_some());
            jobs.direct.extend(direct.map(|(read, _)| (layer, *read)));
        });
        shapes.push(shape);
    }
    let inner = i64::from(root.batch / root.groups);
    for group in 0..jobs.groups {
        for (segment, shape) in root.children.iter().zip(&shapes) {
            walk(evaluator, segment, shape, 0, group * inner, &mut jobs.list);
        }
    }
    jobs
}

fn walk(
    evaluator: &mut Evaluator<'_>,
    node: &Node,
    shape: &Shape,
    at: usize,
    first: i64,
    list: &mut Vec<Job>,
) {
    let branch = match node {
        Node::Leaf(leaf) => {
            let (part, cores) = evaluator.resolve(leaf.site);
            let layer = usize::from(leaf.layer);
            let batch = i64::from(leaf.batch);
            let time = evaluator
                .costs
                .tile(layer, part, batch)
                .map_or(0, |tile| tile.time);
            list.push(Job {
                layer,
                images: [first, first + batch],
                part,
                cores,
                time,
                within: None,
            });
            return;
        }
        Node::Cut(branch) => branch,
    };
    let batch = i64::from(branch.batch / branch.groups);
    let groups = i64::from(branch.groups);
    let flat = &shape.nodes[at];
    let children = || branch.children.iter().zip(&flat.children);
    match branch.cut {
        Cut::Time => {
            for group in 0..groups {
                for (child, at) in children() {
                    walk(
                        evaluator,
                        child,
                        shape,
                        *at as usize,
                        first + group * batch,
                        list,
                    );
                }
            }
        }
        // Each stage is a sub-batch behind the one before.
        Cut::Space => {
            for step in 0..groups + flat.stages {
                for (child, at) in children() {
                    let group = step - i64::from(shape.nodes[*at as usize].stage);
                    if (0..groups).contains(&group) {
                        walk(
                            evaluator,
                            child,
                            shape,
                            *at as usize,
                            first + group * batch,
                            list,
                        );
                    }
                }
            }
        }
    }
}
