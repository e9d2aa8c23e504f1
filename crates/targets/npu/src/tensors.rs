//! Which tasks make a tensor together. A layer is cut into invariants, one for each tile, and these into variants: all of them write one
//! tensor, halo rows in each other's memory included, and the variants of an invariant read one. The invariants of a layer
//! post one barrier. Whatever else runs is by itself.

use crate::schedule::{Description, Schedule, Slice};
use chipless_model::{TaskId, Tensors};
use std::collections::HashMap;

/// Groups of the tasks of a program with `count` tasks; `ids` are these by their position in the walk.
pub(crate) fn of(schedule: &Schedule, ids: &[Option<TaskId>], count: usize) -> Tensors {
    let alone: Vec<u32> = (0..count as u32).collect();
    let (mut writers, mut readers) = (alone.clone(), alone);
    // The first task of each group gives its number.
    let mut layers: HashMap<usize, u32> = HashMap::new();
    let mut invariants: HashMap<Slice, (u32, Option<usize>)> = HashMap::new();
    let variants = || {
        let tasks = schedule.tasks.iter().zip(ids);
        tasks.filter_map(|(task, id)| match task.description {
            Description::Dpu { invariant, .. } => Some((task, invariant.from, (*id)?)),
            _ => None,
        })
    };
    // Mostly the last variant of an invariant posts for all of them.
    for (task, invariant, id) in variants() {
        let (_, produces) = invariants.entry(invariant).or_insert((id.raw(), None));
        *produces = produces.or(task.produces);
    }
    for (_, invariant, id) in variants() {
        let (first, produces) = invariants[&invariant];
        readers[id.index()] = first;
        writers[id.index()] =
            produces.map_or(first, |barrier| *layers.entry(barrier).or_insert(first));
    }
    Tensors {
        writers: writers.into(),
        readers: readers.into(),
    }
}
