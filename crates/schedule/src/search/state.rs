//! A tree under change: its segments, each with its cost.

use crate::model::Objective;
use crate::model::node::{Branch, Node, Region};
use crate::tree::Cut;
use std::sync::Arc;

/// A segment with its cost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) node: Arc<Node>,
    pub(super) energy: f64,
    pub(super) time: i64,
}

/// A tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(super) batch: u32,
    /// Sub-batches of the root.
    pub(super) groups: u32,
    pub(super) whole: Region,
    pub(super) pieces: Vec<Piece>,
}

impl State {
    /// Energy of the tree, summed as the root sums it.
    pub(super) fn energy(&self) -> f64 {
        self.pieces
            .iter()
            .fold(0.0, |sum, piece| sum + piece.energy)
            * f64::from(self.groups)
    }

    pub(super) fn delay(&self) -> i64 {
        self.pieces.iter().map(|piece| piece.time).sum::<i64>() * i64::from(self.groups)
    }

    pub(super) fn score(&self, objective: Objective) -> f64 {
        objective.of(self.energy(), self.delay() as f64)
    }

    /// Images that a segment gets at once.
    pub(super) fn inner_batch(&self) -> u32 {
        self.batch / self.groups
    }

    pub(super) fn root(&self) -> Branch {
        Branch {
            cut: Cut::Time,
            batch: self.batch,
            groups: self.groups,
            region: self.whole,
            children: self
                .pieces
                .iter()
                .map(|piece| (*piece.node).clone())
                .collect(),
        }
    }
}
