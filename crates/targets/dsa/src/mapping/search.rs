//! The search: trials of placement and routing, the best kept, until nothing gets better.
//!
//! Trials come in rounds. A round's trials depend on the seed, their number and what earlier rounds found, never on each other, so the
//! result is the same for any number of threads. Only where the time limit ends the search does the machine's speed matter.

use super::exact::{self, Answer};
use super::fabric::Fabric;
use super::feasible::{self, Candidates};
use super::kernel::{Kernel, Place, label};
use super::place::{Placement, Placer, Weights};
use super::route::{Router, Routing};
use super::timing::{self, Timing};
use super::{Claim, Hop, Location, Mapping, Route};
use crate::adg::{Adg, ElementId, LinkId};
use crate::graph::Graph;
use fastrand::Rng;
use std::collections::BTreeSet;
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
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            jobs: 1,
            time_limit: Duration::from_mins(1),
            objective: Objective::default(),
            effort: 1,
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

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The mapping, if there is one.
    pub mapping: Option<Mapping>,
    /// Cycles from the first input to the last output.
    pub latency: u32,
    /// Cycles by which operands of one node miss each other.
    pub mismatch: u32,
    /// Cycles between two firings.
    pub initiation_interval: u32,
    /// Links that carry something.
    pub links: u32,
    /// A latency that no mapping can beat.
    pub latency_bound: u32,
    /// Trials made.
    pub trials: u32,
    /// Why there is no mapping, or why a mapping has a mismatch.
    pub reason: Option<String>,
    /// Whether the reason proves that there is none.
    pub proved: bool,
}

impl Outcome {
    fn refused(reason: String, proved: bool) -> Outcome {
        Outcome {
            mapping: None,
            latency: 0,
            mismatch: 0,
            initiation_interval: 0,
            links: 0,
            latency_bound: 0,
            trials: 0,
            reason: Some(reason),
            proved,
        }
    }
}

/// What a trial came to. Smaller is better.
#[derive(Clone)]
struct Trial {
    placement: Placement,
    ways: Vec<Vec<(u32, u32)>>,
    delay: Vec<i32>,
    /// Collisions and wires without a way.
    faults: usize,
    mismatch: i32,
    slack: i32,
    latency: i32,
    links: usize,
    /// What is in the way.
    obstacle: Option<(u32, u16)>,
}

impl Trial {
    fn score(&self, objective: Objective) -> (usize, i32, i64, i64) {
        let (latency, links) = (i64::from(self.latency), self.links as i64);
        let (first, second) = match objective {
            Objective::Latency => (latency, links),
            Objective::Links => (links, latency),
            Objective::Legal | Objective::Interval => (0, 0),
        };
        (self.faults, self.slack.max(self.mismatch), first, second)
    }

    fn is_good(&self) -> bool {
        self.faults == 0 && self.mismatch == 0
    }
}

/// Trials of a round.
const ROUND: u64 = 2;
/// Work without a better mapping after which a search ends, in moves times what a move looks at: a small graph gets more trials.
const PATIENCE: u64 = 400_000;
/// Rounds without a legal mapping after which a search gives up.
const DESPAIR: u32 = 60;

/// Maps a graph onto a fabric. `progress` is told of every round.
pub fn map(
    graph: &Graph,
    adg: &Adg,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    let started = Instant::now();
    let kernel = match Kernel::new(graph) {
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
    // Where arrays can be divided among memories in several ways, the first way that leads to a mapping without mismatch has to do.
    let mut best: Option<Outcome> = None;
    let mut impossible = complete;
    for candidates in &candidates {
        let outcome = search(
            graph, &kernel, &fabric, candidates, options, started, progress,
        );
        let done = outcome.mapping.is_some() && outcome.mismatch == 0
            || started.elapsed() >= options.time_limit;
        impossible &= outcome.proved;
        if best.as_ref().is_none_or(|best| {
            best.mapping.is_none() && outcome.mapping.is_some() || outcome.mismatch < best.mismatch
        }) {
            best = Some(outcome);
        }
        if done {
            break;
        }
    }
    let mut best =
        best.unwrap_or_else(|| Outcome::refused("nothing was searched".to_owned(), false));
    best.proved = impossible && best.mapping.is_none();
    best
}

/// Searches for a mapping with the arrays where they are.
fn search(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    candidates: &Candidates,
    options: &Options,
    started: Instant,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    let bound = feasible::latency_bound(kernel, fabric, candidates);
    let placer = Placer::new(kernel, fabric, candidates);
    let mut best: Option<Trial> = None;
    let (mut trials, mut stale, mut hopeless) = (0, 0u64, 0);
    let work = ROUND
        * u64::from(moves(&placer))
        * (kernel.wires.len() + kernel.vertices.len() + placer.pins.len()) as u64;
    let mut expired = false;
    for round in 0u64.. {
        let numbers: Vec<u64> = (0..ROUND).map(|index| round * ROUND + index).collect();
        let done = |trial: &Trial| {
            trial.is_good()
                && match options.objective {
                    Objective::Legal | Objective::Interval => true,
                    Objective::Latency => trial.latency <= bound,
                    Objective::Links => false,
                }
        };
        let mut finished = Vec::new();
        for group in numbers.chunks(options.jobs.clamp(1, ROUND as usize)) {
            let run = |number: u64| attempt(&placer, options, number, best.as_ref());
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
            expired = started.elapsed() >= options.time_limit;
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
        let mut better = false;
        let mut optimal = false;
        for trial in finished {
            trials += 1;
            optimal |= done(&trial);
            let score = trial.score(options.objective);
            if best
                .as_ref()
                .is_none_or(|best| score < best.score(options.objective))
            {
                better |= best.as_ref().is_none_or(|best| {
                    let old = best.score(options.objective);
                    (score.0, score.1, score.2) < (old.0, old.1, old.2)
                });
                best = Some(trial);
            }
        }
        let good = best.as_ref().filter(|best| best.is_good());
        progress(Progress {
            trials,
            latency: good.map(|best| best.latency as u32),
        });
        stale = if better { 0 } else { stale + work };
        hopeless += u32::from(good.is_none());
        let effort = options.effort.max(1);
        let patience = PATIENCE * u64::from(effort);
        if optimal || expired || good.is_some() && stale >= patience || hopeless >= DESPAIR * effort
        {
            break;
        }
    }
    let Some(mut best) = best else {
        return Outcome::refused("the time limit left no time for a trial".to_owned(), false);
    };
    if best.faults > 0 {
        let deadline = started
            .checked_add(options.time_limit)
            .unwrap_or_else(|| started + Duration::from_hours(24));
        match exact::search(&placer, deadline) {
            Answer::Found(placement, ways) => best = trial_of(&placer, placement, ways),
            Answer::Impossible(placements) => {
                let reason = format!(
                    "no mapping exists: each of {placements} placements was tried, and none can be routed"
                );
                return Outcome {
                    trials,
                    ..Outcome::refused(reason, true)
                };
            }
            Answer::Open => {}
        }
    }
    finish(graph, &placer, candidates, &best, bound, trials, expired)
}

/// Moves of a trial that begins anew.
fn moves(placer: &Placer<'_>) -> u32 {
    (60 * (placer.kernel.vertices.len() + placer.pins.len()) as u32).min(60_000)
}

/// One trial: place, route, mend the timing.
fn attempt(placer: &Placer<'_>, options: &Options, number: u64, best: Option<&Trial>) -> Trial {
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
    let local = best.filter(|best| best.faults == 0 && number % 2 == 1);
    let (mut placement, moves, heat) = match local {
        Some(best) => (best.placement.clone(), moves / 3, (6.0, 0.3)),
        None => (placer.random(&mut rng), moves, (60.0, 0.4)),
    };
    placer.anneal(&mut placement, &weights, moves, heat, &mut rng);
    let (windows, _) = placer.windows(&placement);
    let (routing, timing) = settle(placer, &placement, windows);
    let mut used: Vec<u32> = routing
        .ways
        .iter()
        .flatten()
        .map(|(link, _)| *link)
        .collect();
    used.sort_unstable();
    used.dedup();
    let obstacle = routing
        .collisions
        .first()
        .map(|(link, _, values)| (*link, *values));
    Trial {
        faults: routing.collisions.len()
            + routing.unreached
            + usize::from(!placer.is_apart(&placement)),
        mismatch: timing.mismatch,
        slack: timing.slack,
        latency: timing.latency,
        links: used.len(),
        delay: timing.delay,
        ways: routing.ways,
        placement,
        obstacle,
    }
}

/// A routed placement as a trial.
fn trial_of(placer: &Placer<'_>, placement: Placement, ways: Vec<Vec<(u32, u32)>>) -> Trial {
    let vertices = 0..placer.kernel.vertices.len();
    let depths: Vec<i32> = vertices
        .map(|vertex| placer.fabric.delay_depth(placer.at(&placement, vertex).0))
        .collect();
    let lengths: Vec<i32> = ways.iter().map(|way| way.len() as i32).collect();
    let Timing {
        delay,
        latency,
        mismatch,
        slack,
        ..
    } = timing::solve(placer.kernel, &lengths, &depths);
    let used: BTreeSet<u32> = ways.iter().flatten().map(|(link, _)| *link).collect();
    Trial {
        placement,
        ways,
        delay,
        faults: 0,
        mismatch,
        slack,
        latency,
        links: used.len(),
        obstacle: None,
    }
}

/// Routes, and asks for longer ways where operands come too early.
fn settle(
    placer: &Placer<'_>,
    placement: &Placement,
    mut windows: Vec<(i32, i32)>,
) -> (Routing, Timing) {
    let kernel = placer.kernel;
    let depths: Vec<i32> = (0..kernel.vertices.len())
        .map(|vertex| placer.fabric.delay_depth(placer.at(placement, vertex).0))
        .collect();
    let mut router = Router::new(placer, placement);
    let mut best: Option<(Routing, Timing)> = None;
    for pass in 0..6 {
        let routing = router.route(&windows, if pass == 0 { 24 } else { 8 });
        let lengths: Vec<i32> = routing.ways.iter().map(|way| way.len() as i32).collect();
        let timing = timing::solve(kernel, &lengths, &depths);
        let faults = routing.collisions.len() + routing.unreached;
        let finished = faults > 0 || timing.slack == 0 && timing.mismatch == 0;
        // Late operands: their wires are asked to be as long as their nodes wait beyond the buffers.
        for (wire, body) in kernel
            .wires
            .iter()
            .enumerate()
            .filter(|(_, body)| body.timed)
        {
            let most = timing.start[body.sink]
                - timing.start[body.source]
                - kernel.vertices[body.source].latency
                + 1;
            let least = most - depths[body.sink];
            windows[wire] = if lengths[wire] < least {
                (least, most)
            } else {
                (least.max(1).min(lengths[wire]), most.max(lengths[wire]))
            };
        }
        let score = (faults, timing.slack.max(timing.mismatch), timing.latency);
        let known = best.as_ref().map(|(routing, timing)| {
            (
                routing.collisions.len() + routing.unreached,
                timing.slack.max(timing.mismatch),
                timing.latency,
            )
        });
        if known.is_none_or(|known| score < known) {
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
        let timing = timing::solve(kernel, &vec![1; kernel.wires.len()], &depths);
        (none, timing)
    })
}

#[allow(
    clippy::too_many_arguments,
    reason = "the end of one function, cut off for reading"
)]
fn finish(
    graph: &Graph,
    placer: &Placer<'_>,
    candidates: &Candidates,
    best: &Trial,
    bound: i32,
    trials: u32,
    expired: bool,
) -> Outcome {
    let adg = placer.fabric.adg;
    let ended = if expired {
        "before the time limit"
    } else {
        "in the trials that were made"
    };
    if best.faults > 0 {
        let nearest = match best.obstacle {
            Some((link, values)) => {
                format!(
                    "in the closest, {} links carry more than one value, {} one of them ({} values too many)",
                    best.faults,
                    adg.describe(LinkId::new(link as usize)),
                    values
                )
            }
            None => format!(
                "in the closest, {} edges have no way, or two instructions one place",
                best.faults
            ),
        };
        let mut outcome = Outcome::refused(
            format!("no legal mapping was found {ended} ({trials}); {nearest}"),
            false,
        );
        outcome.trials = trials;
        return outcome;
    }
    let kernel = placer.kernel;
    let mut mapping = Mapping::empty(graph);
    for (vertex, body) in kernel.vertices.iter().enumerate() {
        let (element, slot) = placer.at(&best.placement, vertex);
        mapping.nodes[body.node] = Some(Location {
            element: ElementId::new(element as usize),
            slot,
        });
    }
    for (array, memory) in kernel.arrays.iter().zip(&candidates.memories) {
        mapping.nodes[array.node] = Some(Location {
            element: ElementId::new(*memory as usize),
            slot: 0,
        });
    }
    for (wire, body) in kernel.wires.iter().enumerate() {
        let links = best.ways[wire].iter().map(|(link, slot)| {
            let id = LinkId::new(*link as usize);
            Hop {
                link: id,
                bit: slot * adg.granularity(id),
            }
        });
        mapping.edges[body.edge] = Route {
            links: links.collect(),
            delay: Some(best.delay[wire].max(0) as u32),
        };
    }
    // Edges between memories and ports go straight.
    for (edge, body) in graph.edges.iter_enumerated() {
        let (Some(from), Some(to)) = (mapping.nodes[body.source], mapping.nodes[body.sink]) else {
            continue;
        };
        if adg.elements[from.element].memory().is_some()
            || adg.elements[to.element].memory().is_some()
        {
            let link = adg.elements[from.element]
                .outputs
                .iter()
                .find(|link| adg.links[**link].sink == to.element);
            mapping.edges[edge] = Route {
                links: link
                    .map(|link| Hop {
                        link: *link,
                        bit: 0,
                    })
                    .into_iter()
                    .collect(),
                delay: None,
            };
        }
    }
    mapping.claim = Some(Claim {
        latency: best.latency as u32,
        mismatch: best.mismatch as u32,
    });
    let links = mapping.links_used(adg) as u32;
    let depth = kernel
        .vertices
        .iter()
        .enumerate()
        .filter(|(_, vertex)| vertex.place == Place::Unit);
    let depth = depth
        .map(|(vertex, _)| {
            placer
                .fabric
                .delay_depth(placer.at(&best.placement, vertex).0)
        })
        .min()
        .unwrap_or(1)
        .max(1);
    let throughput = graph
        .instructions()
        .filter_map(|(_, _, instruction)| crate::operations::lookup(&instruction.operation))
        .map(|operation| operation.throughput)
        .max()
        .unwrap_or(1);
    // A late operand stops its node until the buffers have drained by as much.
    let interval = throughput.max(((depth + best.mismatch) as u32).div_ceil(depth as u32));
    let reason = (best.mismatch > 0).then(|| {
        let worst = kernel.vertices.iter().max_by_key(|vertex| vertex.inputs.iter().map(|wire| best.delay[*wire]).max());
        let name = worst.map(|vertex| label(graph, vertex.node)).unwrap_or_default();
        format!(
            "no mapping without mismatch was found {ended} ({trials}); operands miss each other by {} cycles, near {name}",
            best.mismatch
        )
    });
    Outcome {
        mapping: Some(mapping),
        latency: best.latency as u32,
        mismatch: best.mismatch as u32,
        initiation_interval: interval,
        links,
        latency_bound: bound.max(0) as u32,
        trials,
        reason,
        proved: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;
    use crate::judge::judge;
    use chipless_model::Limits;

    /// What the exhaustive search finds is legal, with the figures that it has.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn the_exhaustive_search_finds_legal_mappings() {
        let read = |name: &str| {
            std::fs::read(format!(
                "{}/../../../fixtures/dsa/{name}",
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
            let kernel = Kernel::new(&graph).unwrap();
            let fabric = Fabric::new(&adg).unwrap();
            let Ok((candidates, _)) = feasible::candidates(&graph, &kernel, &fabric) else {
                panic!("refused")
            };
            let placer = Placer::new(&kernel, &fabric, &candidates[0]);
            let Answer::Found(placement, ways) =
                exact::search(&placer, Instant::now() + Duration::from_mins(1))
            else {
                panic!("no mapping")
            };
            let outcome = finish(
                &graph,
                &placer,
                &candidates[0],
                &trial_of(&placer, placement, ways),
                0,
                0,
                false,
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
