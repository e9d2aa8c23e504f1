//! Rounds of trials, and the exact search where they find nothing.

use super::trial::{Trial, attempt, moves, of_found, of_ways};
use super::{Job, Objective, Progress};
use crate::exact::{self, Answer};
use crate::feasible;
use crate::kernel::Kernel;
use crate::outcome::Outcome;
use crate::pipelines;
use crate::place::{Placement, Placer};
use crate::result::{self};
use fastrand::Rng;

/// Trials of a round.
const ROUND: u64 = 2;
/// Work without a better mapping after which a search ends, in moves times what a move looks at: a small graph gets more trials.
const PATIENCE: u64 = 400_000;
/// Rounds without a legal mapping after which a search gives up.
const DESPAIR: u32 = 60;
/// Rounds without one after which a larger interval is tried.
const IMPATIENCE: u32 = 32;
/// Rounds without one after which the exact search is asked.
const DOUBT: u32 = 4;

/// What the exact search showed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Nothing.
    Nothing,
    /// There is no mapping.
    Unmappable,
    /// No mapping has a smaller interval.
    Interval(i32),
}

/// Trials so far.
struct Rounds<'r> {
    job: &'r Job<'r>,
    placer: &'r Placer<'r>,
    /// A latency that no mapping is below.
    bound: i32,
    /// A placement to begin with.
    begin: Option<Placement>,
    best: Option<Trial>,
    number: u64,
    trials: u32,
    /// Work since something was better, and the rounds without a good mapping.
    stale: u64,
    hopeless: u32,
    despair: u32,
    expired: bool,
    optimal: bool,
}

impl Job<'_> {
    /// Searches for a mapping with the arrays where they are, and rows that come every interval.
    pub(super) fn search(
        &self,
        kernel: &Kernel,
        interval: i32,
        shares: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Outcome {
        let options = self.options;
        let bound = feasible::latency_bound(kernel, self.fabric, self.candidates);
        let placer = Placer::new(
            kernel,
            self.fabric,
            self.candidates,
            interval,
            bound,
            self.deadline,
        );
        let usual = if shares { IMPATIENCE } else { DESPAIR };
        let mut rounds = Rounds {
            job: self,
            placer: &placer,
            bound,
            begin: options
                .begin
                .as_ref()
                .and_then(|begin| placer.of_mapping(begin)),
            best: None,
            number: 0,
            trials: 0,
            stale: 0,
            hopeless: 0,
            despair: options.rounds.unwrap_or(usual),
            expired: false,
            optimal: false,
        };
        let mut proof = Proof::Nothing;
        if options.objective != Objective::Links && rounds.begin.is_none() {
            let mut rng = Rng::with_seed(options.seed);
            let laid = pipelines::lay(&placer, bound, &mut rng);
            rounds.best = laid.map(|laid| of_ways(&placer, laid.placement, laid.ways));
        }
        let is_laid = rounds.is_good();
        while !is_laid && rounds.turn(progress) {
            if rounds.hopeless == DOUBT && options.rounds.is_none() && !rounds.is_good() {
                proof = rounds.prove(shares, exact::CONFLICTS);
                if proof != Proof::Nothing {
                    break;
                }
            }
        }
        let is_open = proof == Proof::Nothing && !is_laid && !rounds.is_good();
        if is_open && !shares && options.rounds.is_none() && !rounds.expired {
            proof = rounds.prove(shares, exact::ALL_CONFLICTS);
        }
        rounds.finish(proof)
    }
}

impl Rounds<'_> {
    fn is_good(&self) -> bool {
        self.best.as_ref().is_some_and(Trial::is_good)
    }

    /// Whether nothing better than a trial is looked for.
    fn is_done(&self, trial: &Trial) -> bool {
        trial.is_good()
            && match self.job.options.objective {
                Objective::Legal | Objective::Interval => true,
                Objective::Latency => trial.timing.latency <= self.bound,
                Objective::Links => false,
            }
    }

    /// The trials of the next round.
    fn trials(&mut self) -> Vec<Trial> {
        let options = self.job.options;
        let numbers: Vec<u64> = (0..ROUND)
            .map(|index| self.number * ROUND + index)
            .collect();
        self.number += 1;
        let mut finished: Vec<Trial> = Vec::new();
        for group in numbers.chunks(options.jobs.clamp(1, ROUND as usize)) {
            let run = |number: u64| {
                let near = self
                    .best
                    .as_ref()
                    .filter(|best| best.faults == 0 && number % 2 == 1);
                let near = near.map(|best| &best.placement);
                let near = near.or(self
                    .begin
                    .as_ref()
                    .filter(|_| number < 2 && self.best.is_none()));
                attempt(self.placer, options, number, near)
            };
            let results: Vec<Trial> = if group.len() == 1 {
                group.iter().map(|number| run(*number)).collect()
            } else {
                std::thread::scope(|scope| {
                    let running: Vec<_> = group
                        .iter()
                        .map(|number| scope.spawn(move || run(*number)))
                        .collect();
                    running
                        .into_iter()
                        .filter_map(|thread| thread.join().ok())
                        .collect()
                })
            };
            finished.extend(results);
            self.expired = self.job.deadline.is_over();
            if self.expired || finished.iter().any(|trial| self.is_done(trial)) {
                break;
            }
        }
        // What comes behind the first that is good enough was perhaps not tried.
        let first = finished
            .iter()
            .position(|trial| self.is_done(trial))
            .map_or(finished.len(), |index| index + 1);
        finished.truncate(first);
        finished
    }

    /// Makes a round; whether another one is worth it.
    fn turn(&mut self, progress: &mut dyn FnMut(Progress)) -> bool {
        let options = self.job.options;
        let mut better = false;
        for trial in self.trials() {
            self.trials += 1;
            self.optimal |= self.is_done(&trial);
            let score = trial.score(options.objective);
            let known = self.best.as_ref().map(|best| best.score(options.objective));
            if known.is_none_or(|known| score < known) {
                better |=
                    known.is_none_or(|old| (score.0, score.1, score.2) < (old.0, old.1, old.2));
                self.best = Some(trial);
            }
        }
        let good = self.best.as_ref().filter(|best| best.is_good());
        progress(Progress {
            trials: self.trials,
            latency: good.map(|best| best.timing.latency as u32),
        });
        let kernel = self.placer.kernel;
        let work = ROUND
            * u64::from(moves(self.placer))
            * (kernel.wires.len() + kernel.vertices.len() + self.placer.pins.len()) as u64;
        self.stale = if better { 0 } else { self.stale + work };
        self.hopeless += u32::from(good.is_none());
        let effort = options.effort.max(1);
        !(self.optimal
            || self.expired
            || good.is_some() && self.stale >= PATIENCE * u64::from(effort)
            || self.hopeless >= self.despair * effort)
    }

    /// Asks the exact search for a mapping without mismatch, or else for the smallest interval.
    fn prove(&mut self, shares: bool, conflicts: u64) -> Proof {
        let (placer, deadline) = (self.placer, self.job.deadline);
        let is_legal = self.best.as_ref().is_some_and(|best| best.faults == 0);
        match exact::search(placer, true, conflicts, deadline) {
            Answer::Found(found) => {
                self.best = Some(of_found(placer, found));
                return Proof::Nothing;
            }
            Answer::Impossible if shares => return Proof::Interval(placer.interval + 1),
            Answer::Open if is_legal => return Proof::Nothing,
            Answer::Impossible | Answer::Open => {}
        }
        if !is_legal {
            match exact::search(placer, false, conflicts, deadline) {
                Answer::Found(found) => {
                    self.best = Some(of_ways(placer, found.placement, found.ways));
                }
                Answer::Impossible => return Proof::Unmappable,
                Answer::Open => return Proof::Nothing,
            }
        }
        let mut least = placer.interval + 1;
        while let Some(best) = &self.best {
            let interval =
                result::schedule(placer, best).map_or(i32::MAX, |(interval, _)| interval);
            if least >= interval {
                break;
            }
            let wider = Placer::new(
                placer.kernel,
                placer.fabric,
                placer.candidates,
                least,
                self.bound,
                deadline,
            );
            match exact::search(&wider, true, conflicts, deadline) {
                Answer::Found(found) => {
                    self.best = Some(of_ways(placer, found.placement, found.ways));
                    break;
                }
                Answer::Impossible => least += 1,
                Answer::Open => break,
            }
        }
        Proof::Interval(least)
    }

    fn finish(self, proof: Proof) -> Outcome {
        let Some(best) = self.best else {
            return Outcome::refused("the time limit left no time for a trial".to_owned(), false);
        };
        if proof == Proof::Unmappable {
            let reason = "no mapping exists: an exact search over all places and ways found none";
            return Outcome {
                trials: self.trials,
                ..Outcome::refused(reason.to_owned(), true)
            };
        }
        let ended = if self.expired {
            "before the time limit"
        } else {
            "in the trials that were made"
        };
        let least = match proof {
            Proof::Interval(least) => least,
            _ => 1,
        };
        let outcome = result::finish(
            self.job.graph,
            self.placer,
            self.job.candidates,
            &best,
            self.bound,
            (self.trials, ended),
        );
        let reason = if outcome.mismatch > 0 && least == outcome.initiation_interval as i32 {
            Some(format!(
                "no mapping without mismatch exists: a row cannot start more often than every {least} cycles"
            ))
        } else {
            outcome.reason.clone()
        };
        Outcome {
            interval_bound: least as u32,
            reason,
            ..outcome
        }
    }
}
