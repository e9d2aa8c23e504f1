//! Which layer reads what another one computed: the edges of the network as the run shows it.

use crate::attribution::Attribution;
use crate::extents::Extents;
use chipless_model::{BufferId, Direction, Program, TaskId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that tasks of one layer wrote and tasks of another one read.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Edge {
    /// Places in the run's layers.
    from: u32,
    to: u32,
    bytes: u64,
}

/// The edges between layers, in order of the two. Accesses count from their first byte to their last. What a transfer brings that no layer
/// computed (constants, descriptors, inputs) is nobody's: one transfer often brings it for many layers.
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
        let (reads, writes) = accesses(program, row.task);
        let mut computed = !is_transfer(program, row.task);
        for (buffer, extent) in reads {
            for (range, from) in wrote[buffer.index()].meeting(extent.clone()) {
                let Some(from) = *from else { continue };
                computed = true;
                if let Some(to) = layer.filter(|to| *to != from) {
                    let bytes = range.end.min(extent.end) - range.start.max(extent.start);
                    let edge = found.entry((from, to)).or_default();
                    *edge = edge.saturating_add(bytes);
                }
            }
        }
        for (buffer, extent) in writes {
            wrote[buffer.index()].put(extent, layer.filter(|_| computed), |_, _| {});
        }
    }
    let edges = found.into_iter();
    edges
        .map(|((from, to), bytes)| Edge { from, to, bytes })
        .collect()
}

type Extent = (BufferId, Range<u64>);

/// What a task reads and what it writes.
fn accesses(program: &Program<'_>, task: TaskId) -> (Vec<Extent>, Vec<Extent>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    program.kernel(task).accesses(&mut |access| {
        let extent = access.pattern.inside(program.buffers[access.buffer].size);
        if !extent.is_empty() {
            let list = match access.direction {
                Direction::Read => &mut reads,
                Direction::Write => &mut writes,
            };
            list.push((access.buffer, extent));
        }
    });
    (reads, writes)
}

/// Whether a task moves bytes over shared links and computes nothing.
fn is_transfer(program: &Program<'_>, task: TaskId) -> bool {
    let moves = program.demands(task).iter().any(|demand| demand.bytes > 0);
    moves && program.kernel(task).arithmetic() == 0
}
