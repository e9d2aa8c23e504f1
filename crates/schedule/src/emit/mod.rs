//! Schedules from trees: which core computes which box when, what moves, and the files that say so.

mod aligned;
mod best;
mod build;
mod floor;
mod jobs;
mod layers;
mod lives;
mod lowered;
mod scales;
mod segments;
mod set;
mod spec;
mod stages;
mod view;
mod weights;
mod written;

pub use best::{Best, searched, spec_dialect};
pub use floor::Floor;
pub use segments::{SegmentTime, segment_times};
pub use spec::DramCycles;
pub use spec::replay_machine;
pub use written::Written;

use crate::machine::Machine;
use crate::model::{self, Impossible};
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
        let root = model::nodes_of(evaluator, tree)?;
        Ok::<_, Impossible>(jobs::jobs(evaluator, &root))
    })?;
    let view = view::View::of_model(network);
    let built = build::build(machine, &view, &jobs);
    set::write(&built.schedule, put)
}

/// Why no schedule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// It does not fit.
    Impossible(Impossible),
    /// Chipless lacks something.
    Unsupported(String),
    /// Chipless made a schedule that it refuses itself: a fault of its own.
    Refused(String),
}

impl From<Impossible> for Unwritten {
    fn from(impossible: Impossible) -> Unwritten {
        Unwritten::Impossible(impossible)
    }
}

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unwritten::Impossible(impossible) => impossible.fmt(f),
            Unwritten::Unsupported(text) => f.write_str(text),
            Unwritten::Refused(finding) => write!(
                f,
                "Chipless made a schedule that does not pass its own `check`, so nothing is written. This is a fault of Chipless, not of the network: please report it with the network, the command and this finding: {finding}"
            ),
        }
    }
}

impl std::error::Error for Unwritten {}
