//! Energy of a schedule: operations and bytes times the unit energies of a machine. What stands still costs nothing here.

use crate::machine::Machine;
use crate::schedule::{Ifmap, LayerType, Schedule, Workload};
use crate::traffic::Traffic;
use std::collections::HashMap;

/// Picojoules by what they are spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Multiplications with addition of the processing elements.
    pub mac: f64,
    /// Operations of the vector processor, one for each element of its results.
    pub vector: f64,
    /// Bytes read from and written to L2.
    pub l2: f64,
    /// Bytes read from and written to the weight buffers.
    pub weight_buffer: f64,
    /// Bytes over links.
    pub noc: f64,
    /// Bytes from and to DRAM.
    pub dram: f64,
}

impl Energy {
    /// The energy of a schedule. Every workload reads its inputs and its weights once and writes its output once.
    pub fn of(schedule: &Schedule, traffic: &Traffic, machine: &Machine) -> Energy {
        let unit = &machine.energy;
        let weights: HashMap<u32, u64> = schedule
            .dram_out
            .iter()
            .filter(|o| o.weight)
            .map(|o| (o.transfer, o.size))
            .collect();
        let mut energy = Energy::default();
        let (mut read, mut written) = (traffic.dram_written, traffic.dram_read);
        read = read.saturating_add(traffic.between_cores);
        written = written.saturating_add(traffic.between_cores);
        for (_, workload) in schedule.workloads() {
            let elements = workload.bounds.elements();
            let inputs = workload
                .ifmaps
                .iter()
                .map(bytes)
                .fold(0, u64::saturating_add);
            let bytes = weight_bytes(workload, &weights);
            read = read.saturating_add(inputs).saturating_add(bytes);
            written = written.saturating_add(workload.ofmap_size.unwrap_or(elements));
            if workload.layer_type.unit() == LayerType::Pe {
                energy.mac += macs(workload, bytes) * unit.mac;
                energy.weight_buffer += bytes as f64 * (unit.weight_read + unit.weight_write);
            } else {
                energy.vector += elements as f64 * unit.vector;
            }
        }
        energy.l2 = read as f64 * unit.l2_read + written as f64 * unit.l2_write;
        energy.noc = traffic.byte_hops() as f64 * unit.hop;
        energy.dram = traffic.dram() as f64 * unit.dram;
        energy
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.mac + self.vector + self.l2 + self.weight_buffer + self.noc + self.dram
    }
}

fn bytes(ifmap: &Ifmap) -> u64 {
    ifmap.size.unwrap_or_else(|| ifmap.bounds.elements())
}

fn weight_bytes(workload: &Workload, sizes: &HashMap<u32, u64>) -> u64 {
    let Some(weight) = &workload.weight else {
        return 0;
    };
    weight.size.unwrap_or_else(|| {
        weight
            .transfers
            .iter()
            .filter_map(|t| sizes.get(t))
            .fold(0, |sum, size| sum.saturating_add(*size))
    })
}

/// Multiplications: every element of the output takes the weights of one output channel.
fn macs(workload: &Workload, weight_bytes: u64) -> f64 {
    let Some(weight) = &workload.weight else {
        return 0.0;
    };
    let [_, channels, ..] = weight.bounds.shape();
    let each = products(workload).unwrap_or(weight_bytes / channels.max(1));
    workload.bounds.elements() as f64 * each as f64
}

/// Multiplications of an element of the output; `None` where the bounds of the weights do not say.
pub(crate) fn products(workload: &Workload) -> Option<u64> {
    let [_, _, depth, kernel] = workload.weight.as_ref()?.bounds.shape();
    Some(depth.saturating_mul(kernel)).filter(|products| *products > 1)
}
