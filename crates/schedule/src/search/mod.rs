//! The search for a tree: annealing chains from a start that a dynamic program finds.
//!
//! A fixed number of chains runs in rounds; between rounds they learn of the best tree. One half of them begins elsewhere than the other,
//! since a model that leaves out waits does not say which start is the better one: after half the search, what knows of them decides.
//! Each chain has random numbers of its own and
//! costs follow from trees alone, so neither the number of threads nor what happens to be kept of costs changes a result.

mod chain;
mod menu;
mod moves;
pub(crate) mod refine;
mod start;
mod state;

use crate::machine::Machine;
use crate::model::segment::Evaluator;
use crate::model::{Bounds, Cost, Factors, Impossible, Objective, bounds, explicit, tree_of};
use crate::model::{
    leaf_costs,
    node::{Branch, Node},
};
use crate::network::Network;
use crate::tree::Tree;
use chain::Chain;
use menu::Searcher;
use state::State;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// Chains.
const CHAINS: usize = 4;
/// Trees of a chain in a round.
const ROUND: u64 = 200;

/// Starts that chains begin at.
const STARTS: usize = 2;

/// What decides between trees that chains begin at or have found: the less the better, nothing where a tree cannot be.
pub(crate) type Rank<'r> = dyn Fn(&mut Evaluator<'_>, &Branch) -> Option<f64> + 'r;

/// What a search is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Images.
    pub batch: i64,
    /// What is minimised.
    pub objective: Objective,
    /// Wall time after which it stops.
    pub seconds: Option<f64>,
    /// When the trees to begin with must be there, where that is later: a search may be a part of another one.
    pub latest: Option<Instant>,
    /// Trees after which it stops.
    pub trees: Option<u64>,
    /// Of the random numbers.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Whether the whole batch passes the tree once: SET's model counts weights once for all sub-batches of the root, a machine loads
    /// them for each.
    pub one_pass: bool,
}

/// Why a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The time was over.
    Time,
    /// So many trees were evaluated.
    Trees,
    /// Somebody interrupted it.
    Interrupted,
}

impl Stopped {
    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Stopped::Time => "time",
            Stopped::Trees => "trees",
            Stopped::Interrupted => "interrupted",
        }
    }
}

/// How far a search has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Seconds since it began.
    pub seconds: f64,
    /// Trees so far.
    pub trees: u64,
    /// Figures of the best in SET's model.
    pub best: Cost,
    /// Energy (pJ) and delay (cycles) of the best schedule by the replay, as soon as that decides.
    pub replay: Option<(f64, i64)>,
    /// Trees that were replayed, and how many will be if no clock ends it.
    pub replayed: (u64, Option<u64>),
    /// What none beats.
    pub bounds: Bounds,
}

/// A best tree when it was found.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Seconds since the search began.
    pub seconds: f64,
    /// Its energy times delay.
    pub edp: f64,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best tree, with partitions and cores.
    pub tree: Tree,
    /// Its cost.
    pub cost: Cost,
    /// The next best tree's cost.
    pub runner_up: Option<Cost>,
    /// The best tree and other good ones.
    states: Vec<State>,
    /// What no tree beats.
    pub bounds: Bounds,
    /// Each new best.
    pub history: Vec<Step>,
    /// Trees that were evaluated.
    pub trees: u64,
    /// Wall time.
    pub seconds: f64,
    /// Why it stopped.
    pub stopped: Stopped,
}

/// What the coordinator and the workers share.
struct Shared {
    chains: Vec<Mutex<Option<Chain>>>,
    barrier: Barrier,
    over: AtomicBool,
    /// When a chain stops in the middle of a round.
    deadline: Option<Instant>,
}

impl Shared {
    fn new(starts: &[State], options: &Options, deadline: Option<Instant>) -> Shared {
        let chains: Vec<Chain> = (0..CHAINS)
            .map(|index| {
                let state = starts[start_of(index, starts.len())].clone();
                Chain::new(state, options.seed, index)
            })
            .collect();
        Shared {
            chains: chains
                .into_iter()
                .map(|chain| Mutex::new(Some(chain)))
                .collect(),
            barrier: Barrier::new(options.threads.clamp(1, CHAINS)),
            over: AtomicBool::new(false),
            deadline,
        }
    }
}

/// The start of a chain, one of so many.
fn start_of(chain: usize, starts: usize) -> usize {
    chain * starts / CHAINS
}

/// Searches for the best tree by SET's model alone.
///
/// # Errors
/// What is short where not even the layers one by one fit.
pub fn search(
    network: &Network,
    machine: &Machine,
    options: &Options,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Found, Impossible> {
    ranked(
        network,
        machine,
        options,
        &|_, _| None,
        interrupted,
        progress,
    )
}

/// Searches for the best tree; what ranks trees decides where to begin.
///
/// # Errors
/// What is short where not even the layers one by one fit.
pub(crate) fn ranked(
    network: &Network,
    machine: &Machine,
    options: &Options,
    rank: &Rank<'_>,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Found, Impossible> {
    let began = Instant::now();
    let factors = Factors::up_to(machine.cores());
    let deadline = options
        .seconds
        .map(|seconds| began + Duration::from_secs_f64(seconds.clamp(0.0, 1e6)));
    let evaluator = || Evaluator::new(leaf_costs(machine, network, options.batch), &factors);
    let mut searcher = Searcher::new(evaluator(), options.objective);
    let limits = bounds(&searcher.evaluator.costs);
    let latest = options.latest.or(deadline);
    let is_late = || {
        latest.is_some_and(|latest| Instant::now() >= latest) || interrupted.load(Ordering::Relaxed)
    };
    let mut starts = start::starts(&mut searcher, &limits, &is_late)?;
    if options.one_pass {
        starts = start::in_one_pass(&mut searcher, starts);
    }
    let mut best = start::ranked(&mut searcher, &starts, rank, &is_late);
    best.truncate(STARTS);
    let shared = Shared::new(&best, options, deadline);
    let mut coordinator = Coordinator {
        options,
        began,
        interrupted,
        limits,
        best,
        passed_over: Vec::new(),
        history: Vec::new(),
        trees: 1,
        stopped: None,
        said: began,
        next_share: 0.1,
    };
    coordinator.note();
    rounds(
        &mut searcher,
        &evaluator,
        &shared,
        &mut coordinator,
        rank,
        progress,
    );
    coordinator.choose(&mut searcher, &shared, rank);
    let best = coordinator.best.swap_remove(0);
    searcher.evaluator.terse = false;
    let mut others: Vec<State> = shared
        .chains
        .iter()
        .filter_map(|chain| chain.lock().ok()?.take().map(|chain| chain.best))
        .collect();
    others.extend(starts);
    others.retain(|state| *state != best);
    others.sort_by(|a, b| {
        a.score(options.objective)
            .total_cmp(&b.score(options.objective))
    });
    others.dedup();
    let runner_up = others.first().cloned();
    others.splice(0..0, coordinator.passed_over);
    // A model in which cores do not wait for DRAM may leave some idle that a machine has work for.
    let spread = start::spread(&mut searcher, &best);
    if spread != best {
        others.insert(0, spread);
    }
    let mut whole = |state: &State| {
        let tree = tree_of(&searcher.evaluator, &Node::Cut(state.root()));
        explicit(&mut searcher.evaluator, &tree)
    };
    let (cost, tree) = whole(&best)?;
    let runner_up = runner_up.and_then(|state| whole(&state).ok());
    let mut states = vec![best];
    states.extend(others);
    Ok(Found {
        tree,
        cost,
        runner_up: runner_up.map(|(cost, _)| cost),
        states,
        bounds: limits,
        history: coordinator.history,
        trees: coordinator.trees,
        seconds: began.elapsed().as_secs_f64(),
        stopped: coordinator.stopped.unwrap_or(Stopped::Time),
    })
}

/// Moves all chains, round by round, on as many threads as there are to be.
fn rounds<'a>(
    searcher: &mut Searcher<'a>,
    evaluator: &(impl Fn() -> Evaluator<'a> + Sync),
    shared: &Shared,
    coordinator: &mut Coordinator<'_>,
    rank: &Rank<'_>,
    progress: &mut dyn FnMut(&Progress),
) {
    let Options {
        threads, objective, ..
    } = *coordinator.options;
    let threads = threads.clamp(1, CHAINS);
    std::thread::scope(|scope| {
        for worker in 1..threads {
            scope.spawn(move || {
                let mut searcher = Searcher::new(evaluator(), objective);
                loop {
                    shared.barrier.wait();
                    if shared.over.load(Ordering::Acquire) {
                        break;
                    }
                    work(&mut searcher, shared, worker, threads);
                    shared.barrier.wait();
                }
            });
        }
        while coordinator.prepare(shared) {
            shared.barrier.wait();
            work(searcher, shared, 0, threads);
            shared.barrier.wait();
            coordinator.gather(shared, progress);
            if coordinator.part() >= 0.5 {
                coordinator.choose(searcher, shared, rank);
            }
        }
        shared.over.store(true, Ordering::Release);
        shared.barrier.wait();
    });
}

/// Hands on the tree that has one layer after another, and returns it beside what is made of it.
///
/// # Errors
/// What is short where a layer does not fit.
pub(crate) fn layer_by_layer<T>(
    network: &Network,
    machine: &Machine,
    options: &Options,
    take: impl FnOnce(&mut Evaluator<'_>, &Branch) -> T,
) -> Result<(State, T), Impossible> {
    let factors = Factors::up_to(machine.cores());
    let evaluator = Evaluator::new(leaf_costs(machine, network, options.batch), &factors);
    let mut searcher = Searcher::new(evaluator, options.objective);
    let limits = bounds(&searcher.evaluator.costs);
    let state = start::layer_by_layer(&mut searcher, &limits)?;
    let taken = take(&mut searcher.evaluator, &state.root());
    Ok((state, taken))
}

fn work(searcher: &mut Searcher<'_>, shared: &Shared, worker: usize, threads: usize) {
    for slot in shared.chains.iter().skip(worker).step_by(threads) {
        // A poisoned lock is that of a thread that is gone with a panic, which the scope hands on.
        let Ok(mut slot) = slot.lock() else { return };
        if let Some(chain) = slot.as_mut() {
            chain.run(searcher, shared.deadline);
        }
    }
}

/// Hands out rounds and keeps the best.
struct Coordinator<'o> {
    options: &'o Options,
    began: Instant,
    interrupted: &'o AtomicBool,
    limits: Bounds,
    /// The best tree from each start.
    best: Vec<State>,
    /// Those that are not gone on from.
    passed_over: Vec<State>,
    history: Vec<Step>,
    trees: u64,
    stopped: Option<Stopped>,
    said: Instant,
    /// Part of the search after which all chains go on from the best.
    next_share: f64,
}

impl Coordinator<'_> {
    /// Parts of the time and of the trees that are used up.
    fn parts(&self) -> [f64; 2] {
        let elapsed = self.began.elapsed().as_secs_f64();
        let of_time = |seconds: f64| elapsed / seconds.max(1e-9);
        let of_trees = |trees: u64| self.trees as f64 / trees.max(1) as f64;
        [
            self.options.seconds.map_or(0.0, of_time),
            self.options.trees.map_or(0.0, of_trees),
        ]
    }

    /// How much of the search is over.
    fn part(&self) -> f64 {
        let [of_time, of_trees] = self.parts();
        of_time.max(of_trees)
    }

    /// Goes on from the best tree of one start alone, as what knows of waits has it.
    fn choose(&mut self, searcher: &mut Searcher<'_>, shared: &Shared, rank: &Rank<'_>) {
        if self.best.len() == 1 {
            return;
        }
        let mut score = |state: &State| rank(&mut searcher.evaluator, &state.root());
        let scores: Vec<f64> = self
            .best
            .iter()
            .map(|state| score(state).unwrap_or(f64::INFINITY))
            .collect();
        let chosen = (0..scores.len()).min_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        let chosen = self.best.swap_remove(chosen.unwrap_or_default());
        for slot in &shared.chains {
            let Ok(mut slot) = slot.lock() else { return };
            if let Some(chain) = slot.as_mut() {
                chain.state = chosen.clone();
                chain.best = chosen.clone();
            }
        }
        self.passed_over = std::mem::replace(&mut self.best, vec![chosen]);
    }

    /// Gives each chain its part of the next round; `false` where there is none.
    fn prepare(&mut self, shared: &Shared) -> bool {
        let [of_time, of_trees] = self.parts();
        let part = of_time.max(of_trees);
        if self.interrupted.load(Ordering::Relaxed) {
            self.stopped = Some(Stopped::Interrupted);
        } else if self.options.trees.is_some_and(|trees| self.trees >= trees) {
            self.stopped = Some(Stopped::Trees);
        } else if of_time >= 1.0 {
            self.stopped = Some(Stopped::Time);
        }
        if self.stopped.is_some() {
            return false;
        }
        let together = part >= self.next_share;
        if together {
            self.next_share += 0.1;
        }
        let left = self
            .options
            .trees
            .map_or(u64::MAX, |trees| trees - self.trees);
        for (index, slot) in shared.chains.iter().enumerate() {
            let Ok(mut slot) = slot.lock() else {
                return false;
            };
            if let Some(chain) = slot.as_mut() {
                let share = left / CHAINS as u64 + u64::from((index as u64) < left % CHAINS as u64);
                chain.quota = share.min(ROUND);
                chain.part = part;
                if together {
                    chain.state = self.best[start_of(index, self.best.len())].clone();
                }
            }
        }
        true
    }

    fn gather(&mut self, shared: &Shared, progress: &mut dyn FnMut(&Progress)) {
        for (index, slot) in shared.chains.iter().enumerate() {
            let Ok(slot) = slot.lock() else { return };
            let Some(chain) = slot.as_ref() else { continue };
            self.trees += chain.done;
            let objective = self.options.objective;
            let start = start_of(index, self.best.len());
            if chain.best.score(objective) < self.best[start].score(objective) {
                self.best[start] = chain.best.clone();
                self.note();
            }
        }
        if self.said.elapsed() >= Duration::from_secs(1) {
            self.said = Instant::now();
            progress(&Progress {
                seconds: self.began.elapsed().as_secs_f64(),
                trees: self.trees,
                best: Cost {
                    energy: self.best[0].energy(),
                    delay: self.best[0].delay(),
                    ..Cost::default()
                },
                replay: None,
                replayed: (0, None),
                bounds: self.limits,
            });
        }
    }

    fn note(&mut self) {
        let edp = |state: &State| state.energy() * state.delay() as f64;
        let edp = self.best.iter().map(edp).fold(f64::INFINITY, f64::min);
        if self.history.last().is_none_or(|last| edp < last.edp) {
            self.history.push(Step {
                seconds: self.began.elapsed().as_secs_f64(),
                edp,
            });
        }
    }
}
