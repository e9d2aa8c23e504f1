//! What is simulated: contexts, streams with their programs, and how long.

use crate::agents::Agent;
use crate::engine::Engine;
use crate::figures::Figures;
use crate::power::CLOCKS;
use crate::programs::FileProgram;
use crate::synthetic::Synthetic;
use crate::workload::{Context, Stream};

/// What a stream's jobs run.
#[derive(Clone, Copy, Debug)]
pub enum Program<'s, 'p, 'a> {
    /// A program of the workload.
    Synthetic(&'s Synthetic),
    /// A program of a file.
    File(&'s FileProgram<'p, 'a>),
}

impl Program<'_, '_, '_> {
    /// Tiles that a job holds; `None`: all, and all places of its engine.
    pub(crate) fn tiles(&self) -> Option<u64> {
        match self {
            Program::Synthetic(program) => Some(program.tiles),
            Program::File(program) => program.tiles,
        }
    }

    /// Bytes that a preemption saves when its tasks have run so long.
    pub(crate) fn state(&self, ran: u64) -> u64 {
        match self {
            Program::Synthetic(program) => program.state,
            Program::File(program) => program.state(ran),
        }
    }

    /// Ways of the cache that its agents may fill, by their numbers; of a program of a file, by its queues.
    pub(crate) fn masks(&self, figures: &Figures) -> Vec<u64> {
        let mask = |agent: &String| figures.cache_masks.get(agent).copied().unwrap_or(u64::MAX);
        match self {
            Program::Synthetic(program) => program.agents.iter().map(mask).collect(),
            Program::File(program) => {
                let queues = program.verified.program().queues.iter();
                queues.map(|queue| mask(&agent_of(&queue.name))).collect()
            }
        }
    }

    /// Whether it passes the memory path.
    pub(crate) fn has_transfers(&self) -> bool {
        match self {
            Program::Synthetic(program) => program.has_transfers(),
            Program::File(_) => true,
        }
    }
}

/// The agent that a queue of a program of a file is: `dma` of `dma0.ddr`.
fn agent_of(queue: &str) -> String {
    let letters = queue.chars().take_while(char::is_ascii_alphabetic);
    letters.collect::<String>().to_ascii_lowercase()
}

/// A stream, its program, and where it runs.
#[derive(Clone, Copy, Debug)]
pub struct StreamSetup<'s, 'p, 'a> {
    /// The stream.
    pub stream: &'s Stream,
    /// Its program.
    pub program: Program<'s, 'p, 'a>,
    /// Its engine.
    pub engine: Engine,
    /// The program of a file at slower clocks, as far as jobs may have them.
    pub slower: &'s [FileProgram<'p, 'a>],
    /// How long the program takes alone at each clock, without memory path or costs, in picoseconds.
    pub alone: [u64; CLOCKS],
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup<'s, 'p, 'a> {
    /// All contexts.
    pub contexts: &'s [Context],
    /// Other agents on the chip.
    pub agents: &'s [Agent],
    /// All streams.
    pub streams: Vec<StreamSetup<'s, 'p, 'a>>,
    /// Arrivals happen before it.
    pub duration: Option<u64>,
    /// Of arrivals.
    pub seed: u64,
    /// Whether the times of tasks are kept.
    pub with_tasks: bool,
    /// Whether what passes the memory path is kept over time.
    pub with_traffic: bool,
}
