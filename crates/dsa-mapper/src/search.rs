//! The search: the smallest initiation interval first; for it trials of placement and routing, the best kept, until nothing gets better.
//!
//! Trials come in rounds. A round's trials depend on the seed, their number and what earlier rounds found, never on each other, so the
//! result is the same for any number of threads. Only where the time limit ends the search does the machine's speed matter.

use crate::exact::{self, Answer};
use crate::fabric::Fabric;
use crate::feasible::{self, Candidates};
use crate::interval::{self, Bound};
use crate::kernel::{Kernel, Place};
use crate::place::{Placement, Placer, Weights};
use crate::result::{self, Outcome};
use crate::route::{Router, Routing};
use crate::timing::{self, Crossing, Sharing, Timing};
use chipless_dsa::adg::Adg;
use chipless_dsa::graph::Graph;
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// When a search ends at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    stop: &'static AtomicBool,
}

impl Deadline {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.at.is_some_and(|at| Instant::now() >= at)
    }
}

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

/// What a trial came to. Smaller is better.
#[derive(Clone)]
pub(crate) struct Trial {
    pub(crate) placement: Placement,
    pub(crate) ways: Vec<Vec<(u32, u32)>>,
    pub(crate) timing: Timing,
    /// Collisions and wires without a way.
    pub(crate) faults: usize,
    pub(crate) links: usize,
    /// What is in the way.
    pub(crate) obstacle: Option<(u32, u16)>,
}

impl Trial {
    fn score(&self, objective: Objective) -> (usize, i32, i64, i64) {
        let (latency, links) = (i64::from(self.timing.latency), self.links as i64);
        let (first, second) = match objective {
            Objective::Latency => (latency, links),
            Objective::Links => (links, latency),
            Objective::Legal | Objective::Interval => (0, 0),
        };
        (self.faults, self.misses(), first, second)
    }

    fn misses(&self) -> i32 {
        self.timing.slack.max(self.timing.mismatch)
    }

    fn is_good(&self) -> bool {
        self.faults == 0 && self.misses() == 0
    }
}

/// Trials of a round.
const ROUND: u64 = 2;
/// Work without a better mapping after which a search ends, in moves times what a move looks at: a small graph gets more trials.
const PATIENCE: u64 = 400_000;
/// Rounds without a legal mapping after which a search gives up.
const DESPAIR: u32 = 60;
/// Rounds without one after which a larger interval is tried.
const IMPATIENCE: u32 = 32;
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
    let mut best: Option<Outcome> = None;
    let mut impossible = complete;
    let mut least = i32::MAX;
    for candidates in &candidates {
        let job = Job {
            graph,
            fabric: &fabric,
            candidates,
            options,
            deadline,
        };
        let bound = interval::bound(&kernels[0], &fabric, candidates);
        least = least.min(bound.interval);
        let outcome = job.intervals(&kernels, &bound, progress);
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
    best.interval_bound = if complete { least.max(1) as u32 } else { 1 };
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
    /// takes as much as it needs.
    fn intervals(
        &self,
        kernels: &[Kernel],
        bound: &Bound,
        progress: &mut dyn FnMut(Progress),
    ) -> Outcome {
        let shares = kernels[0].vertices.iter().any(|vertex| vertex.temporal);
        let widest = bound.interval.saturating_mul(WIDEST).saturating_add(16);
        let mut interval = bound.interval;
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
                let usual = if shares { IMPATIENCE } else { DESPAIR };
                let patience = self.options.rounds.unwrap_or(usual);
                let outcome = job.search(kernel, interval, patience, progress);
                if outcome.mapping.is_some() {
                    return outcome;
                }
                last = Some(outcome);
            }
            let next = interval + 1 + interval / 8;
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

    /// Searches for a mapping with the arrays where they are.
    fn search(
        &self,
        kernel: &Kernel,
        interval: i32,
        despair: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Outcome {
        let options = self.options;
        let bound = feasible::latency_bound(kernel, self.fabric, self.candidates);
        let placer = Placer::new(
            kernel,
            self.fabric,
            self.candidates,
            interval,
            self.deadline,
        );
        let begin = options
            .begin
            .as_ref()
            .and_then(|begin| placer.of_mapping(begin));
        let mut best: Option<Trial> = None;
        let (mut trials, mut stale, mut hopeless) = (0, 0u64, 0);
        let work = ROUND
            * u64::from(moves(&placer))
            * (kernel.wires.len() + kernel.vertices.len() + placer.pins.len()) as u64;
        let mut expired = false;
        let done = |trial: &Trial| {
            trial.is_good()
                && match options.objective {
                    Objective::Legal | Objective::Interval => true,
                    Objective::Latency => trial.timing.latency <= bound,
                    Objective::Links => false,
                }
        };
        for round in 0u64.. {
            let numbers: Vec<u64> = (0..ROUND).map(|index| round * ROUND + index).collect();
            let mut finished = Vec::new();
            for group in numbers.chunks(options.jobs.clamp(1, ROUND as usize)) {
                let run = |number: u64| {
                    let near = best
                        .as_ref()
                        .filter(|best| best.faults == 0 && number % 2 == 1);
                    let near = near.map(|best| &best.placement);
                    let near = near.or(begin.as_ref().filter(|_| number < 2 && best.is_none()));
                    attempt(&placer, options, number, near)
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
                expired = self.deadline.is_over();
                if expired || finished.iter().any(done) {
                    break;
                }
            }
            // What comes behind the first that is good enough was perhaps not tried.
            let first = finished
                .iter()
                .position(done)
                .map_or(finished.len(), |index| index + 1);
            finished.truncate(first);
            let (mut better, mut optimal) = (false, false);
            for trial in finished {
                trials += 1;
                optimal |= done(&trial);
                let score = trial.score(options.objective);
                let known = best.as_ref().map(|best| best.score(options.objective));
                if known.is_none_or(|known| score < known) {
                    better |=
                        known.is_none_or(|old| (score.0, score.1, score.2) < (old.0, old.1, old.2));
                    best = Some(trial);
                }
            }
            let good = best.as_ref().filter(|best| best.is_good());
            progress(Progress {
                trials,
                latency: good.map(|best| best.timing.latency as u32),
            });
            stale = if better { 0 } else { stale + work };
            hopeless += u32::from(good.is_none());
            let effort = options.effort.max(1);
            let patience = PATIENCE * u64::from(effort);
            if optimal
                || expired
                || good.is_some() && stale >= patience
                || hopeless >= despair * effort
            {
                break;
            }
        }
        let Some(mut best) = best else {
            return Outcome::refused("the time limit left no time for a trial".to_owned(), false);
        };
        if !best.is_good() && options.rounds.is_none() {
            match exact::search(&placer, self.deadline) {
                Answer::Found(placement, ways) => {
                    let found = trial_of(&placer, placement, ways);
                    if found.score(options.objective) < best.score(options.objective) {
                        best = found;
                    }
                }
                Answer::Impossible(placements) if best.faults > 0 => {
                    let reason = format!(
                        "no mapping exists: each of {placements} placements was tried, and none can be routed"
                    );
                    return Outcome {
                        trials,
                        ..Outcome::refused(reason, true)
                    };
                }
                Answer::Impossible(_) | Answer::Open => {}
            }
        }
        let ended = if expired {
            "before the time limit"
        } else {
            "in the trials that were made"
        };
        result::finish(
            self.graph,
            &placer,
            self.candidates,
            &best,
            bound,
            (trials, ended),
        )
    }
}

/// Moves of a trial that begins anew.
fn moves(placer: &Placer<'_>) -> u32 {
    (60 * (placer.kernel.vertices.len() + placer.pins.len()) as u32).min(60_000)
}

/// One trial: place, route, mend the timing. `near`: a placement to begin with.
fn attempt(placer: &Placer<'_>, options: &Options, number: u64, near: Option<&Placement>) -> Trial {
    let mut rng = Rng::with_seed(
        options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ (number + 1).wrapping_mul(0xD1B5_4A32_D192_ED03),
    );
    let moves = moves(placer);
    let links = options.objective == Objective::Links;
    // Trials differ in what they give for short ways: where links are scarce, shorter ways leave room.
    let length = [0.5, 1.0, 2.0, 0.7][(number % 4) as usize] * if links { 4.0 } else { 1.0 };
    let weights = Weights {
        latency: if links { 4.0 } else { 12.0 },
        excess: 4.0,
        length,
    };
    let (mut placement, moves, heat) = match near {
        Some(near) => (near.clone(), moves / 3, (6.0, 0.3)),
        None => (placer.random(&mut rng), moves, (60.0, 0.4)),
    };
    placer.anneal(&mut placement, &weights, moves, heat, &mut rng);
    let (windows, _) = placer.windows(&placement);
    let (routing, timing) = settle(placer, &placement, windows);
    let used: BTreeSet<u32> = routing
        .ways
        .iter()
        .flatten()
        .map(|(link, _)| *link)
        .collect();
    let obstacle = routing
        .collisions
        .first()
        .map(|(link, _, values)| (*link, *values));
    Trial {
        faults: routing.collisions.len()
            + routing.unreached
            + usize::from(!placer.is_apart(&placement)),
        links: used.len(),
        timing,
        ways: routing.ways,
        placement,
        obstacle,
    }
}

/// A routed placement as a trial.
fn trial_of(placer: &Placer<'_>, placement: Placement, ways: Vec<Vec<(u32, u32)>>) -> Trial {
    let timing = when(placer, &placement, &ways);
    let used: BTreeSet<u32> = ways.iter().flatten().map(|(link, _)| *link).collect();
    Trial {
        placement,
        ways,
        timing,
        faults: 0,
        links: used.len(),
        obstacle: None,
    }
}

/// When everything happens on these ways.
fn when(placer: &Placer<'_>, placement: &Placement, ways: &[Vec<(u32, u32)>]) -> Timing {
    let kernel = placer.kernel;
    let waits: Vec<i32> = (0..kernel.vertices.len())
        .map(|vertex| placer.depth[placer.at(placement, vertex).0 as usize])
        .collect();
    let lengths: Vec<i32> = ways.iter().map(|way| way.len() as i32).collect();
    let sharing = sharing(placer, placement, ways);
    if !sharing.is_used() {
        return timing::solve(kernel, &lengths, &waits);
    }
    timing::modulo(kernel, &lengths, &waits, placer.interval, &sharing).unwrap_or_else(|| {
        let timing = timing::solve(kernel, &lengths, &waits);
        Timing {
            slack: timing.slack + UNSCHEDULED,
            ..timing
        }
    })
}

/// Slack of what cannot be scheduled at all.
const UNSCHEDULED: i32 = 1 << 16;

/// Elements and links that are shared in time.
fn sharing(placer: &Placer<'_>, placement: &Placement, ways: &[Vec<(u32, u32)>]) -> Sharing {
    let (kernel, fabric) = (placer.kernel, placer.fabric);
    let element = |vertex: usize| {
        let (element, _) = placer.at(placement, vertex);
        let is_unit = kernel.vertices[vertex].place == Place::Unit;
        (is_unit && placer.is_shared(element)).then_some(element)
    };
    let mut links: BTreeMap<(u32, u32), Vec<Crossing>> = BTreeMap::new();
    for (wire, way) in ways.iter().enumerate() {
        let body = &kernel.wires[wire];
        let in_turns = kernel.nets[body.net].in_turns;
        for (position, (link, slot)) in way.iter().enumerate() {
            if in_turns || fabric.values[*link as usize] > 1 {
                links.entry((*link, *slot)).or_default().push(Crossing {
                    value: (body.source, body.value),
                    source: body.source,
                    after: body.ready + position as i32,
                });
            }
        }
    }
    let mut crossings: Vec<Vec<Crossing>> = links.into_values().collect();
    crossings.retain(|all| all.iter().any(|crossing| crossing.value != all[0].value));
    Sharing {
        element: (0..kernel.vertices.len()).map(element).collect(),
        crossings,
    }
}

/// Routes, and asks for longer ways where operands come too early.
fn settle(
    placer: &Placer<'_>,
    placement: &Placement,
    mut windows: Vec<(i32, i32)>,
) -> (Routing, Timing) {
    let kernel = placer.kernel;
    let mut router = Router::new(placer, placement);
    let mut best: Option<(Routing, Timing)> = None;
    for pass in 0..6 {
        let routing = router.route(&windows, if pass == 0 { 24 } else { 8 });
        let timing = when(placer, placement, &routing.ways);
        let faults = routing.collisions.len() + routing.unreached;
        let finished =
            faults > 0 || timing.slack == 0 && timing.mismatch == 0 || placer.deadline.is_over();
        // Late operands: their wires are asked to be as long as their nodes wait beyond the buffers.
        for (wire, body) in kernel.wires.iter().enumerate() {
            let length = routing.ways[wire].len() as i32;
            let most = timing.start[body.sink] - timing.start[body.source] - body.ready + 1;
            let least = most - placer.depth[placer.at(placement, body.sink).0 as usize];
            windows[wire] = if length < least {
                (least, most)
            } else {
                (least.max(1).min(length), most.max(length))
            };
        }
        let score = |routing: &Routing, timing: &Timing| {
            let faults = routing.collisions.len() + routing.unreached;
            (faults, timing.slack.max(timing.mismatch), timing.latency)
        };
        let known = best
            .as_ref()
            .map(|(routing, timing)| score(routing, timing));
        if known.is_none_or(|known| score(&routing, &timing) < known) {
            best = Some((routing, timing));
        }
        if finished {
            break;
        }
    }
    best.unwrap_or_else(|| {
        let none = Routing {
            ways: vec![Vec::new(); kernel.wires.len()],
            collisions: Vec::new(),
            unreached: kernel.wires.len(),
        };
        let timing = when(placer, placement, &none.ways);
        (none, timing)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use chipless_dsa::Document;
    use chipless_model::Limits;

    /// What the exhaustive search finds is legal, with the figures that it has.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn the_exhaustive_search_finds_legal_mappings() {
        let read = |name: &str| {
            std::fs::read(format!(
                "{}/../../fixtures/dsa/{name}",
                env!("CARGO_MANIFEST_DIR")
            ))
            .unwrap()
        };
        for (kernel, fabric) in [
            ("add", "mesh2x2"),
            ("add", "narrow4x4"),
            ("divide", "two-outputs3x3"),
            ("axpy", "ordered4x4"),
        ] {
            let (text, json) = (
                read(&format!("kernels/{kernel}.dfg")),
                read(&format!("adg/{fabric}.json")),
            );
            let limits = Limits::default();
            let graph = Document::read(&text, &limits).graph;
            let (adg, _) = Adg::read(&json, &limits).unwrap();
            let kernel = Kernel::new(&graph, true).unwrap();
            let fabric = Fabric::new(&adg).unwrap();
            let Ok((candidates, _)) = feasible::candidates(&graph, &kernel, &fabric) else {
                panic!("refused")
            };
            let deadline = Deadline {
                at: Some(Instant::now() + Duration::from_mins(1)),
                stop: &NEVER,
            };
            let placer = Placer::new(&kernel, &fabric, &candidates[0], 1, deadline);
            let Answer::Found(placement, ways) = exact::search(&placer, deadline) else {
                panic!("no mapping")
            };
            let outcome = result::finish(
                &graph,
                &placer,
                &candidates[0],
                &trial_of(&placer, placement, ways),
                0,
                (0, ""),
            );
            let verdict = judge(&graph, &adg, &outcome.mapping.unwrap());
            assert_eq!(verdict.faults, Vec::<String>::new());
            assert_eq!(
                (verdict.latency, verdict.mismatch),
                (outcome.latency, outcome.mismatch)
            );
        }
    }
}
