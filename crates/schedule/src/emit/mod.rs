//! Schedules from trees: which core computes which box when, what moves, and the files that say so.

mod aligned;
mod build;
mod jobs;
mod layers;
mod lives;
mod lowered;
mod scales;
mod set;
mod spec;
mod view;
mod weights;
mod written;

pub use spec::spec_dialect;
pub use written::Written;

use crate::machine::Machine;
use crate::model::{self, Cost, Impossible};
use crate::network::Network;
use crate::tree::Tree;

/// The schedule of a tree in SET's dialect; the text is handed on piece by piece.
///
/// # Errors
/// What the tree breaks, and what the function says that takes the text.
pub fn set_dialect<E: From<Impossible>>(
    network: &Network,
    machine: &Machine,
    tree: &Tree,
    put: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let jobs = model::with_evaluator(network, machine, tree.batch(), |evaluator| {
        jobs::jobs(evaluator, tree)
    })?;
    let view = view::View::of_model(network);
    let built = build::build(machine, &view, &jobs);
    set::write(&built.schedule, put)
}

/// The schedule of the best tree.
#[derive(Clone, Debug)]
pub struct Best<'t> {
    /// The tree.
    pub tree: &'t Tree,
    /// Its cost in SET's model.
    pub cost: Cost,
    /// Energy (pJ) and delay (cycles) of the schedule by the replay.
    pub replay: (f64, i64),
    /// The file.
    pub text: String,
    /// The next best of the trees that were replayed: its cost in SET's model, its energy and delay by the replay.
    pub runner_up: Option<(Cost, (f64, i64))>,
}

/// Why no schedule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// It does not fit.
    Impossible(Impossible),
    /// Chipless lacks something.
    Unsupported(String),
}

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unwritten::Impossible(impossible) => impossible.fmt(f),
            Unwritten::Unsupported(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Unwritten {}
