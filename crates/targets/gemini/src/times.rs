//! Times that the processing elements can have.

use crate::network::Network;
use crate::operation::{Kind, Operation};
use crate::schedule::{Schedule, Workload};
use std::collections::HashMap;

/// Products of a cycle of the processing elements.
const PRODUCTS: f64 = 4096.0;
/// Bytes of a cycle from L2 into the weight buffer, and out of the processing elements.
const BYTES: f64 = 32.0;

/// The least and the most cycles of a workload; `None` where other units compute it.
pub(crate) fn range(operation: &Operation, workload: &Workload) -> Option<[u64; 2]> {
    let input = operation.operands.first()?.shape[1];
    let depth = match &operation.kind {
        Kind::Convolution { groups, .. } => {
            let taps = operation.kernel.iter().map(|v| u64::from(*v));
            taps.fold(input / u64::from((*groups).max(1)), u64::saturating_mul)
        }
        Kind::Product { groups, .. } => input / u64::from((*groups).max(1)),
        _ => return None,
    };
    let products = workload.bounds.elements().saturating_mul(depth) as f64 / PRODUCTS;
    let weights = workload.weight.as_ref().and_then(|weight| weight.size);
    let moved = [weights, workload.ofmap_size].map(|bytes| bytes.unwrap_or(0) as f64 / BYTES);
    let most = 16.0 * (products + moved[0] + moved[1]) + 4096.0;
    Some([products.ceil() as u64, most.floor() as u64])
}

impl Schedule {
    /// Brings times into the range that the format's processing elements have, where a schedule is for a machine with others.
    pub fn fit_times(&mut self, network: &Network) {
        let mut operations: HashMap<_, _> = HashMap::new();
        let names = &self.names;
        for workload in self.cores.iter_mut().flat_map(|core| &mut core.workloads) {
            let operation = operations
                .entry(workload.layer)
                .or_insert_with(|| Operation::of(network, names.get(workload.layer)).ok());
            let range = operation
                .as_ref()
                .and_then(|operation| range(operation, workload));
            if let Some([least, most]) = range
                && !(least..=most).contains(&workload.time)
            {
                workload.time = workload.time.clamp(least, most.max(least));
                for tile in &mut workload.tiles {
                    tile.time = Some(workload.time as f64);
                }
            }
        }
    }
}
