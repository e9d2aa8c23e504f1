//! Weights from L2 into the weight buffer, part by part, while the tiles that use them run.

use super::super::builder::NewTask;
use super::super::plan::Node;
use super::super::weights::Weights;
use super::Emit;
use crate::kernels::moves::Copy;
use chipless_model::{BuildError, SyncId, Time};
use smallvec::SmallVec;
use std::collections::HashMap;

impl Emit<'_, '_, '_> {
    /// Loads of the weight buffer from L2 for a workload. Gives their tokens, and those that tiles must give because a later
    /// load takes their place.
    pub(super) fn weight_moves(
        &mut self,
        index: u32,
        core: usize,
        position: usize,
        weights: Option<&Weights>,
        waits: &[SyncId],
    ) -> Result<(Vec<SyncId>, HashMap<usize, SyncId>), BuildError> {
        let plan = self.plan;
        let (mut tokens, mut tile_tokens) = (Vec::new(), HashMap::new());
        let Some(weights) = weights.filter(|w| !w.moves.is_empty()) else {
            return Ok((tokens, tile_tokens));
        };
        let workload = plan.workload(index).2;
        let queue = self.queues[core].weights;
        let id = plan.schedule.cores[core].id;
        let gate = match weights.first.checked_sub(1) {
            Some(before) => Node::Workload(plan.first_of_core[core] + before as u32),
            None => Node::Begin(core as u32),
        };
        let gate = self.tokens[plan.number(gate) as usize];
        // The loader is in order: what comes from DRAM in this snapshot stands behind the chunks that fill the entry and the one
        // after, and before the rest.
        let refills = weights.moves.len() > weights.slots;
        let from_dram: Vec<u32> = if refills && plan.schedule.cores.len() == 1 {
            let added = self
                .residents
                .held_of(index as usize)
                .iter()
                .filter(|h| self.residents.held[**h as usize].first == position);
            added
                .filter_map(|h| plan.load_of_held.get(h).copied())
                .collect()
        } else {
            Vec::new()
        };
        for (chunk, load) in weights.moves.iter().enumerate() {
            let mut waits: SmallVec<[SyncId; 8]> = if chunk == 0 {
                waits.iter().copied().chain(gate).collect()
            } else {
                SmallVec::new()
            };
            let earlier = weights.held.and_then(|held| self.refilled.get(&held));
            let earlier = earlier.into_iter().flatten();
            waits.extend(
                earlier
                    .filter(|(part, _)| part.meets(&load.to))
                    .map(|(_, token)| *token),
            );
            if let Some(before) = chunk.checked_sub(weights.slots) {
                let tile = weights.moves[before].tiles[1];
                let token = *tile_tokens.entry(tile).or_insert_with(|| {
                    self.builder.token(format!(
                        "core{id} workload {} tile {tile} done",
                        workload.id
                    ))
                });
                waits.push(token);
                if chunk == weights.slots {
                    self.after_tile
                        .extend(from_dram.iter().map(|load| (*load, token)));
                }
            }
            if chunk == weights.slots + 1 {
                waits.extend(
                    from_dram
                        .iter()
                        .filter_map(|load| self.tokens[plan.number(Node::Load(*load)) as usize]),
                );
            }
            let token = self
                .builder
                .token(format!("core{id} workload {} weights {chunk}", workload.id));
            let kernel = Copy {
                operation: "load weights",
                from: SmallVec::from_elem(load.from.clone(), 1),
                to: SmallVec::from_elem(load.to.clone(), 1),
                executable: true,
            };
            let label = Some(self.label(workload));
            let task = NewTask {
                queue,
                waits: &waits,
                gives: Some(token),
                demands: &[],
                fixed: Time::ZERO,
                at: workload.at.0,
                label,
            };
            self.builder.task(task, kernel)?;
            tokens.push(token);
        }
        self.refills(index, position, weights, &mut tile_tokens);
        Ok((tokens, tile_tokens))
    }

    /// Two workloads that name the same weights are two uses of their entry: what the second one loads into a part of it waits
    /// for the last tile of the first that reads that part.
    fn refills(
        &mut self,
        index: u32,
        position: usize,
        weights: &Weights,
        tile_tokens: &mut HashMap<usize, SyncId>,
    ) {
        let Some(held) = weights.held else { return };
        let entry = &self.residents.held[held as usize];
        let later = index + 1..=index + entry.last.saturating_sub(position) as u32;
        let uses = |index: u32| {
            let weight = self.plan.workload(index).2.weight.as_ref();
            weight.is_some_and(|w| w.transfers == entry.tensor.transfers)
        };
        if !later.into_iter().any(uses) {
            self.refilled.remove(&held);
            return;
        }
        let (core, _, workload) = self.plan.workload(index);
        let id = self.plan.schedule.cores[core].id;
        let parts = self.refilled.entry(held).or_default();
        let first = weights.moves.len().saturating_sub(weights.slots);
        for load in &weights.moves[first..] {
            let tile = load.tiles[1];
            let token = *tile_tokens.entry(tile).or_insert_with(|| {
                let name = format!("core{id} workload {} tile {tile} done", workload.id);
                self.builder.token(name)
            });
            parts.retain(|(part, _)| !part.meets(&load.to));
            parts.push((load.to.clone(), token));
        }
    }
}
