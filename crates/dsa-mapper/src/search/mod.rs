//! The search: the smallest initiation interval first; for it trials of placement and routing, the best kept, until nothing gets better;
//! and an exact search, where the trials find nothing and the graph is small.
//!
//! Trials come in rounds. A round's trials depend on the seed, their number and what earlier rounds found, never on each other, so the
//! result is the same for any number of threads. Only where the time limit ends the search does the machine's speed matter.

mod rounds;
mod trial;

pub(crate) use trial::Trial;

use crate::deadline::Deadline;
use crate::fabric::Fabric;
use crate::feasible::{self, Candidates};
use crate::interval;
use crate::kernel::Kernel;
use crate::outcome::Outcome;
use chipless_dsa::adg::Adg;
use chipless_dsa::graph::Graph;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What counts after legality and the absence of mismatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// The first legal mapping will do.
    Legal,
    /// The shortest initiation interval, that is no mismatch; then as found.
    Interval,
    /// Cycles from the first input to the last output, then links.
    #[default]
    Latency,
    /// Links, then latency.
    Links,
}

/// How to search.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of the random choices.
    pub seed: u64,
    /// Threads; the result does not depend on them.
    pub jobs: usize,
    /// When to stop at the latest.
    pub time_limit: Duration,
    /// What counts.
    pub objective: Objective,
    /// How long to look for something better, 1 as usual.
    pub effort: u32,
    /// Rounds without a mapping after which to give up; as many as are usual, and then an exhaustive search, where it is silent.
    pub rounds: Option<u32>,
    /// A mapping of the graph to begin with, perhaps of a fabric that was a little different.
    pub begin: Option<crate::Mapping>,
    /// Set from outside when the search is to end.
    pub stop: &'static AtomicBool,
}

/// For searches that nobody ends from outside.
pub static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            jobs: 1,
            time_limit: Duration::from_mins(1),
            objective: Objective::default(),
            effort: 1,
            rounds: None,
            begin: None,
            stop: &NEVER,
        }
    }
}

/// Where a search is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Trials done.
    pub trials: u32,
    /// Latency of the best mapping so far, if there is one.
    pub latency: Option<u32>,
}

/// Times that the smallest interval for which a mapping is looked for may be, beyond the bound.
const WIDEST: i32 = 4;

/// Maps a graph onto a fabric. `progress` is told of every round.
pub fn map(
    graph: &Graph,
    adg: &Adg,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    let deadline = Deadline {
        at: Instant::now().checked_add(options.time_limit),
        stop: options.stop,
    };
    let kernel = match Kernel::new(graph, true) {
        Ok(kernel) => kernel,
        Err(reason) => return Outcome::refused(reason, true),
    };
    let fabric = match Fabric::new(adg) {
        Ok(fabric) => fabric,
        Err(reason) => return Outcome::refused(reason, false),
    };
    let (candidates, complete) = match feasible::candidates(graph, &kernel, &fabric) {
        Ok(found) => found,
        Err(refusal) => return Outcome::refused(refusal.reason, refusal.proved),
    };
    let apart = kernel.gathers().then(|| Kernel::new(graph, false));
    let kernels: Vec<Kernel> = apart
        .into_iter()
        .flatten()
        .fold(vec![kernel], |mut all, other| {
            all.push(other);
            all
        });
    // Where arrays can be divided among memories in several ways, the first way that leads to a mapping without mismatch has to do.
    let mut bounds: Vec<i32> = candidates
        .iter()
        .map(|candidates| interval::bound(&kernels[0], &fabric, candidates).interval)
        .collect();
    let mut best: Option<Outcome> = None;
    let mut impossible = complete;
    for (number, candidates) in candidates.iter().enumerate() {
        let job = Job {
            graph,
            fabric: &fabric,
            candidates,
            options,
            deadline,
        };
        let outcome = job.intervals(&kernels, bounds[number], progress);
        bounds[number] = bounds[number].max(outcome.interval_bound as i32);
        impossible &= outcome.proved;
        let done = outcome.mapping.is_some() && outcome.mismatch == 0;
        let figure = |outcome: &Outcome| (outcome.mapping.is_none(), outcome.initiation_interval);
        if best
            .as_ref()
            .is_none_or(|best| figure(&outcome) < figure(best))
        {
            best = Some(outcome);
        }
        if done || deadline.is_over() {
            break;
        }
    }
    let mut best =
        best.unwrap_or_else(|| Outcome::refused("nothing was searched".to_owned(), false));
    best.proved = impossible && best.mapping.is_none();
    let least = bounds.into_iter().min().filter(|_| complete);
    best.interval_bound = least.unwrap_or(1).max(1) as u32;
    best
}

/// What stays the same while intervals are tried.
#[derive(Clone, Copy)]
struct Job<'j> {
    graph: &'j Graph,
    fabric: &'j Fabric<'j>,
    candidates: &'j Candidates,
    options: &'j Options,
    deadline: Deadline,
}

impl Job<'_> {
    /// Searches with the smallest interval, then with larger ones. Where nothing is shared in time a larger one is of no use: a mismatch
    /// takes as much as it needs. The bound of the outcome is what is proved of the interval.
    fn intervals(
        &self,
        kernels: &[Kernel],
        bound: i32,
        progress: &mut dyn FnMut(Progress),
    ) -> Outcome {
        let shares = kernels[0].vertices.iter().any(|vertex| vertex.temporal);
        let widest = bound.saturating_mul(WIDEST).saturating_add(16);
        let (mut least, mut interval) = (bound, bound);
        loop {
            let mut last = None;
            for kernel in kernels {
                let Some(candidates) = self.candidates.for_clusters(kernel) else {
                    continue;
                };
                let job = Job {
                    candidates: &candidates,
                    ..*self
                };
                let mut outcome = job.search(kernel, interval, shares, progress);
                // What one of two ways to see the graph cannot, the other perhaps can.
                let known = if kernels.len() == 1 && interval <= least {
                    least.max(outcome.interval_bound as i32)
                } else {
                    least
                };
                least = known;
                outcome.interval_bound = known as u32;
                if outcome.mapping.is_some() {
                    return outcome;
                }
                last = Some(outcome);
            }
            let next = (interval + 1 + interval / 16).min(least.max(interval + 1));
            if !shares || next > widest || self.deadline.is_over() {
                let mut last = last.unwrap_or_else(|| {
                    Outcome::refused(
                        "no element can hold what must be together".to_owned(),
                        false,
                    )
                });
                last.proved &= !shares;
                return last;
            }
            interval = next;
        }
    }
}
