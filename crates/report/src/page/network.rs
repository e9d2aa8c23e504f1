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

/// Of bytes that a transfer brings from more layers, those that wrote most are kept.
const ORIGINS: usize = 8;

/// The edges between layers, in order of the two. Accesses count from their first byte to their last, and bytes of several layers for each of them.
/// A transfer hands on what layers computed, whichever layer it is for; in a layer of transfers alone, they are what it computes. What no layer
/// computed (constants, descriptors, inputs) is nobody's.
pub(super) fn edges(
    program: &Program<'_>,
    attribution: &Attribution,
    layers: &[&str],
) -> Vec<Edge> {
    if layers.is_empty() {
        return Vec::new();
    }
    let numbers: FxHashMap<&str, u32> = layers.iter().copied().zip(0..).collect();
    let layer_of = |task| {
        let layer = attribution.layer(program, task);
        layer.and_then(|name| numbers.get(name).copied())
    };
    let mut works = vec![false; layers.len()];
    for row in &attribution.rows {
        if let Some(layer) = layer_of(row.task).filter(|_| !is_transfer(program, row.task)) {
            works[layer as usize] = true;
        }
    }
    // Of each extent the layers that computed its bytes, as a place in `sets`.
    let mut wrote: Vec<Extents<u32>> = program.buffers.iter().map(|_| Extents::default()).collect();
    let mut sets: Vec<Vec<u32>> = Vec::new();
    let mut numbered: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut found: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for row in &attribution.rows {
        let (reads, writes) = accesses(program, row.task);
        let mut origins: BTreeMap<u32, u64> = BTreeMap::new();
        for (buffer, extent) in reads {
            for (range, set) in wrote[buffer.index()].meeting(extent.clone()) {
                let bytes = range.end.min(extent.end) - range.start.max(extent.start);
                for layer in &sets[*set as usize] {
                    let sum = origins.entry(*layer).or_default();
                    *sum = sum.saturating_add(bytes);
                }
            }
        }
        let layer = layer_of(row.task)
            .filter(|layer| !works[*layer as usize] || !is_transfer(program, row.task));
        let set = match layer {
            Some(to) => {
                for (from, bytes) in origins.into_iter().filter(|(from, _)| *from != to) {
                    let edge = found.entry((from, to)).or_default();
                    *edge = edge.saturating_add(bytes);
                }
                vec![to]
            }
            None => largest(origins),
        };
        let set = *numbered.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            sets.len() as u32 - 1
        });
        for (buffer, extent) in writes {
            wrote[buffer.index()].put(extent, set, |_, _| {});
        }
    }
    let edges = found.into_iter();
    edges
        .map(|((from, to), bytes)| Edge { from, to, bytes })
        .collect()
}

/// The layers with the most bytes, in their order.
fn largest(origins: BTreeMap<u32, u64>) -> Vec<u32> {
    let mut origins: Vec<(u32, u64)> = origins.into_iter().collect();
    origins.sort_by_key(|(layer, bytes)| (std::cmp::Reverse(*bytes), *layer));
    let mut layers: Vec<u32> = origins
        .into_iter()
        .map(|(layer, _)| layer)
        .take(ORIGINS)
        .collect();
    layers.sort_unstable();
    layers
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
