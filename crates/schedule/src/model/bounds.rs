//! What no tree can beat.
//!
//! Over every tree of the format: every leaf has disjoint parts on distinct cores, whatever its cuts.
//!
//! - Bytes of DRAM: weights are loaded once (less the rounding of their share of the batch), what the network reads and gives
//!   passes DRAM once.
//! - Delay: segments follow each other, and each lasts at least as long as its DRAM bytes; a layer keeps its n cores busy for
//!   at least its work, cuts in time add times on the same cores, cuts in space have disjoint ones.
//! - Energy: those bytes; every result is read from L2 and every input and weight written to it at least once; every
//!   multiplication, and the partial sums that it passes through.

use super::leaf::Costs;
use crate::machine::Array;
use crate::network::{Kind, Network};
use std::collections::BTreeSet;

/// Lower bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Energy, pJ.
    pub energy: f64,
    /// Delay, cycles.
    pub delay: f64,
    /// Bytes from and to DRAM.
    pub dram: i64,
    /// The part of the delay that computing alone takes, cycles.
    pub compute: f64,
}

impl Bounds {
    /// Energy times delay.
    pub fn edp(&self) -> f64 {
        self.energy * self.delay
    }
}

/// Elements of so many input channels that a layer cannot do without.
fn read(network: &Network, index: usize, channels: i64) -> i64 {
    let (layer, facts) = (&network.layers[index], &network.facts[index]);
    let [_, rows, columns] = facts.input;
    match layer.kind {
        Kind::Eltwise | Kind::PointToPoint | Kind::Transpose => channels * rows * columns,
        Kind::Fc => {
            channels * (layer.kernel[0] - facts.padding[0]) * (layer.kernel[1] - facts.padding[1])
        }
        _ => {
            let touched = |d: usize| {
                let size = facts.input[d + 1];
                let windows =
                    (0..layer.output[d + 1]).map(|o| o * layer.stride[d] - facts.padding[d]);
                let lines: BTreeSet<i64> = windows
                    .flat_map(|first| first.max(0)..(first + layer.kernel[d]).min(size))
                    .collect();
                lines.len() as i64
            };
            channels * touched(0) * touched(1)
        }
    }
}

/// The bounds of a network on a machine.
pub(crate) fn bounds(costs: &Costs<'_>) -> Bounds {
    let (machine, network, batch) = (costs.machine, costs.network, costs.batch);
    let (mut dram, mut energy, mut work) = (0, 0.0, 0.0);
    for (index, (layer, facts)) in network.layers.iter().zip(&network.facts).enumerate() {
        let out = layer.output.iter().product::<i64>() * batch;
        let constant = layer.weights_from.is_empty();
        let own = if constant { facts.weights } else { 0 };
        let written = if facts.readers.is_empty() { out } else { 0 };
        // Operands that lie over each other and both come from outside are loaded as one; so is what is joined along rows.
        let outside = match layer.kind {
            Kind::Eltwise | Kind::Transpose => facts.external_channels.min(layer.output[0]),
            _ => facts.external_channels,
        };
        dram += (own - (batch - 1)).max(0) + read(network, index, outside) * batch + written;
        work += costs.unit_time(index) * batch as f64;
        let weights = facts.weights * if constant { 1 } else { batch };
        energy += out as f64 * machine.l2.read
            + (read(network, index, facts.input[0]) * batch) as f64 * machine.l2.write
            + weights as f64 * machine.l2.write;
        if !layer.kind.multiplies() {
            energy += (facts.operations * batch) as f64 * machine.vector_energy;
            continue;
        }
        energy += (facts.macs * batch) as f64 * machine.mac_energy + out as f64 * machine.l2.write;
        match &machine.array {
            Array::Polar {
                vector, ol1, ol2, ..
            } => {
                let sums = (facts.macs * batch) as f64 / *vector as f64;
                energy += sums * (ol1.read + ol1.write)
                    + out as f64 * (ol1.read + ol2.read + ol2.write)
                    + facts.weights as f64 * machine.l2.read;
            }
            Array::Eyeriss { .. } => energy += out as f64 * machine.l2.read,
        }
    }
    energy += dram as f64 * machine.dram_energy;
    let compute = work / machine.cores() as f64;
    let delay = compute.max(machine.dram.cycles(dram) as f64);
    Bounds {
        energy,
        delay,
        dram,
        compute,
    }
}
