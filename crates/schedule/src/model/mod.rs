//! SET's cost model: energy, delay, byte-hops, DRAM traffic and room of a tree, to the last digit of what SET itself prints.
//!
//! The formulas are those of the program that came with "Inter-layer Scheduling Space Definition and Exploration for Tiled
//! Accelerators" (ISCA 2023), with its quirks: a concatenation of which only the first producer's bytes travel, a second weight
//! buffer that costs nothing, paddings of its own. They stay, for otherwise no comparison would be fair.

mod bounds;
mod core;
mod evaluate;
mod leaf;
mod mesh;
pub(crate) mod node;
mod placed;
pub(crate) mod segment;

use crate::machine::Machine;
use crate::network::Network;
use crate::tree::Partition;
pub use bounds::Bounds;
pub(crate) use bounds::bounds;
pub(crate) use evaluate::{explicit, nodes_of, share, tree_of};
use leaf::Costs;
pub(crate) use placed::{Block, Range, intervals, window};
use segment::Evaluator;

/// What a tree costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Energy, pJ.
    pub energy: f64,
    /// Delay, cycles.
    pub delay: i64,
    /// Bytes times links.
    pub hops: i64,
    /// Bytes from and to DRAM.
    pub dram: i64,
    /// Bytes on the busiest link.
    pub busiest_link: i64,
}

impl Cost {
    /// Energy times delay.
    pub fn edp(&self) -> f64 {
        self.energy * self.delay as f64
    }
}

/// What is minimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Energy times delay.
    #[default]
    Edp,
    /// Delay.
    Delay,
    /// Energy.
    Energy,
}

impl Objective {
    /// As options name it.
    pub const fn name(self) -> &'static str {
        match self {
            Objective::Edp => "edp",
            Objective::Delay => "delay",
            Objective::Energy => "energy",
        }
    }

    /// What a search by SET's model minimises where a replay decides in the end. The model's delay knows no wait for DRAM, so schedules that
    /// differ in their bytes alone are alike to it; its energy tells them apart.
    pub(crate) const fn by_the_model(self) -> Objective {
        match self {
            Objective::Edp | Objective::Delay => Objective::Edp,
            Objective::Energy => Objective::Energy,
        }
    }

    /// The figure to minimise.
    pub fn of(self, energy: f64, delay: f64) -> f64 {
        match self {
            Objective::Edp => energy * delay,
            // What costs nothing is better with less of the other.
            Objective::Delay => delay * (1.0 + 1e-20 * energy),
            Objective::Energy => energy * (1.0 + 1e-20 * delay),
        }
    }
}

/// Why a tree is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// No mapping of a layer's part onto the array.
    Mapping(String),
    /// Something does not fit into L2.
    Room {
        /// What.
        what: String,
        /// Bytes that it needs on the fullest core.
        needed: i64,
        /// Those of them through which results stream to DRAM.
        stream: i64,
        /// Bytes that there are.
        present: i64,
    },
    /// The weights of a layer's part do not fit into the weight buffer.
    WeightBuffer {
        /// The layer.
        layer: String,
        /// Bytes that it needs in each bank, as few channels at a time as there can be.
        needed: i64,
        /// Bytes that there are.
        present: i64,
    },
    /// The tree breaks a rule.
    Rule(String),
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Impossible::Mapping(layer) => write!(
                f,
                "{layer}: no mapping of its part onto the array of a core"
            ),
            Impossible::Room {
                what,
                needed,
                stream,
                present,
            } => {
                let of_these = match stream {
                    0 => String::new(),
                    stream => format!(" ({stream} of them `ofmap_stream_bytes`)"),
                };
                write!(
                    f,
                    "L2 is short: {what} needs {needed} bytes on a core{of_these}, there are {present}, {} too few",
                    needed - present
                )
            }
            Impossible::WeightBuffer {
                layer,
                needed,
                present,
            } => write!(
                f,
                "the weight buffer is short: the layer {layer} needs {needed} bytes in a bank, there are {present}, {} too few",
                needed - present
            ),
            Impossible::Rule(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Impossible {}

/// Ordered factorisations of numbers into four: parts along K, B, H, W, in the order in which SET tries them.
#[derive(Debug)]
pub(crate) struct Factors(Vec<Vec<Partition>>);

impl Factors {
    /// Of all numbers up to this one.
    pub(crate) fn up_to(most: usize) -> Factors {
        let four = |n: usize| {
            let mut all = Vec::new();
            for [x, y] in pairs(n) {
                for [a, b] in pairs(x) {
                    all.extend(
                        pairs(y)
                            .into_iter()
                            .map(|[c, d]| [a, b, c, d].map(|v| v as u16)),
                    );
                }
            }
            all
        };
        Factors(
            (0..=most)
                .map(|n| if n == 0 { Vec::new() } else { four(n) })
                .collect(),
        )
    }

    /// Of this number.
    pub(crate) fn of(&self, n: u16) -> &[Partition] {
        &self.0[usize::from(n)]
    }
}

/// Ordered factorisations into two.
fn pairs(n: usize) -> Vec<[usize; 2]> {
    match n {
        1 => vec![[1, 1]],
        4 => vec![[2, 2], [1, 4], [4, 1]],
        6 => vec![[2, 3], [3, 2], [1, 6], [6, 1]],
        8 => vec![[2, 4], [4, 2], [1, 8], [8, 1]],
        9 => vec![[3, 3], [1, 9], [9, 1]],
        10 => vec![[2, 5], [5, 2], [1, 10], [10, 1]],
        0..=11 => vec![[1, n], [n, 1]],
        _ => {
            let root = n.isqrt();
            let mut all = Vec::new();
            if n.is_multiple_of(root) {
                all.push([root, n / root]);
                if root * root != n {
                    all.push([n / root, root]);
                }
            }
            for i in (2..root).rev().filter(|i| n.is_multiple_of(*i)) {
                all.extend([[i, n / i], [n / i, i]]);
            }
            all.extend([[1, n], [n, 1]]);
            all
        }
    }
}

/// Calls a function with what evaluates trees of a network on a machine.
pub(crate) fn with_evaluator<T>(
    network: &Network,
    machine: &Machine,
    batch: i64,
    f: impl FnOnce(&mut Evaluator<'_>) -> T,
) -> T {
    let factors = Factors::up_to(machine.cores());
    f(&mut Evaluator::new(
        Costs::new(machine, network, batch),
        &factors,
    ))
}

/// What layers of a network cost on a machine.
pub(crate) fn leaf_costs<'a>(machine: &'a Machine, network: &'a Network, batch: i64) -> Costs<'a> {
    Costs::new(machine, network, batch)
}

/// About how good a partition is: energy times time with transfers estimated; nothing where it does not fit.
pub(crate) fn placed_estimate(
    costs: &mut Costs<'_>,
    layer: usize,
    part: Partition,
    batch: i64,
) -> Option<f64> {
    let tile = costs.tile(layer, part, batch)?;
    let machine = costs.machine;
    let count: u16 = part.iter().product();
    let cores: Vec<u16> = (0..count)
        .map(|place| machine.core_at(usize::from(place)))
        .collect();
    let placed = placed::Placed::new(machine, costs.network, layer, part, &cores, batch);
    if placed.fullest() > machine.l2.bytes {
        return None;
    }
    let share = if costs.network.layers[layer].weights_from.is_empty() {
        costs.batch / batch
    } else {
        1
    };
    // Each copy costs a hop at least, each transfer about half the mesh.
    let way = (machine.mesh[0] + machine.mesh[1]) as f64 / 2.0;
    let weights: i64 = placed.weights.iter().map(|entry| entry.bytes).sum();
    let inputs: i64 = placed.ifmaps.iter().map(|entry| entry.bytes).sum();
    let hops = (placed.weight_total as f64 + weights as f64 * way) / share as f64
        + placed.ifmap_total as f64
        + inputs as f64 * way / 2.0;
    let kept = placed.weight_total as f64 / share as f64 + placed.ifmap_total as f64;
    let energy = tile.energy * f64::from(count)
        + kept * machine.l2.write
        + hops * machine.hop_energy
        + (weights / share) as f64 * machine.dram_energy;
    let time = tile.time.max(machine.dram.cycles(weights / share)).max(1);
    Some(energy * time as f64)
}
