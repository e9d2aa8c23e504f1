//! Which layer reads what another one wrote: the edges of the network as the run shows it.

use crate::attribution::Attribution;
use crate::extents::Extents;
use chipless_model::{Direction, Program};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes that tasks of one layer wrote and tasks of another one read.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Edge {
    /// Places in the run's layers.
    from: u32,
    to: u32,
    bytes: u64,
}

/// The edges between layers, in order of the two. Accesses count from their first byte to their last.
pub(super) fn edges(
    program: &Program<'_>,
    attribution: &Attribution,
    layers: &[&str],
) -> Vec<Edge> {
    if layers.is_empty() {
        return Vec::new();
    }
    let numbers: FxHashMap<&str, u32> = layers.iter().copied().zip(0..).collect();
    let mut wrote: Vec<Extents<Option<u32>>> =
        program.buffers.iter().map(|_| Extents::default()).collect();
    let mut found: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for row in &attribution.rows {
        let layer = attribution.layer(program, row.task);
        let layer = layer.and_then(|name| numbers.get(name).copied());
        let mut written = Vec::new();
        program.kernel(row.task).accesses(&mut |access| {
            let extent = access.pattern.inside(program.buffers[access.buffer].size);
            if extent.is_empty() {
                return;
            }
            let writers = &mut wrote[access.buffer.index()];
            if access.direction == Direction::Write {
                written.push((access.buffer, extent));
            } else if let Some(to) = layer {
                for (range, from) in writers.meeting(extent.clone()) {
                    if let Some(from) = from.filter(|from| *from != to) {
                        let bytes = range.end.min(extent.end) - range.start.max(extent.start);
                        *found.entry((from, to)).or_default() += bytes;
                    }
                }
            }
        });
        for (buffer, extent) in written {
            wrote[buffer.index()].put(extent, layer, |_, _| {});
        }
    }
    let edges = found.into_iter();
    edges
        .map(|((from, to), bytes)| Edge { from, to, bytes })
        .collect()
}
