//! Trials: a placement, its ways, and when everything happens on them.

use super::{Objective, Options};
use crate::exact::Found;
use crate::kernel::Place;
use crate::place::{Placement, Placer, Weights};
use crate::route::{Router, Routing};
use crate::timing::{self, Crossing, Sharing, Timing};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};

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
    pub(super) fn score(&self, objective: Objective) -> (usize, i32, i64, i64) {
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

    pub(super) fn is_good(&self) -> bool {
        self.faults == 0 && self.misses() == 0
    }
}

/// Moves of a trial that begins anew.
pub(super) fn moves(placer: &Placer<'_>) -> u32 {
    (60 * (placer.kernel.vertices.len() + placer.pins.len()) as u32).min(60_000)
}

/// One trial: place, route, mend the timing. `near`: a placement to begin with.
pub(super) fn attempt(
    placer: &Placer<'_>,
    options: &Options,
    number: u64,
    near: Option<&Placement>,
) -> Trial {
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
        None => (placer.begin(&mut rng), moves, (60.0, 0.4)),
    };
    placer.anneal(&mut placement, &weights, moves, heat, &mut rng);
    let windows = placer.windows(&placement);
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
pub(super) fn of_ways(
    placer: &Placer<'_>,
    placement: Placement,
    ways: Vec<Vec<(u32, u32)>>,
) -> Trial {
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

/// What the exact search found as a trial.
pub(super) fn of_found(placer: &Placer<'_>, found: Found) -> Trial {
    let start = found.start;
    let trial = of_ways(placer, found.placement, found.ways);
    let Some(start) = start.filter(|_| !trial.is_good()) else {
        return trial;
    };
    // Starts that the list scheduler does not find.
    let kernel = placer.kernel;
    let delay =
        kernel.wires.iter().zip(&trial.ways).map(|(body, way)| {
            start[body.sink] - start[body.source] - body.flight(way.len() as i32)
        });
    let ends = kernel.vertices.iter().zip(&start);
    Trial {
        timing: Timing {
            delay: delay.collect(),
            latency: ends
                .map(|(body, start)| start + body.latency)
                .max()
                .unwrap_or(0),
            mismatch: 0,
            slack: 0,
            start,
        },
        ..trial
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
    use crate::deadline::Deadline;
    use crate::exact::{self, Answer};
    use crate::fabric::Fabric;
    use crate::feasible;
    use crate::judge::judge;
    use crate::kernel::Kernel;
    use crate::result;
    use crate::search::NEVER;
    use chipless_dsa::Document;
    use chipless_dsa::adg::Adg;
    use chipless_model::Limits;
    use std::time::{Duration, Instant};

    /// What the exact search finds is legal and has no mismatch.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn the_exact_search_finds_legal_mappings_without_mismatch() {
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
            let placer = Placer::new(&kernel, &fabric, &candidates[0], 1, 0, deadline);
            let Answer::Found(found) = exact::search(&placer, true, exact::CONFLICTS, deadline)
            else {
                panic!("no mapping")
            };
            let outcome = result::finish(
                &graph,
                &placer,
                &candidates[0],
                &of_found(&placer, found),
                0,
                (0, ""),
            );
            let verdict = judge(&graph, &adg, &outcome.mapping.unwrap());
            assert_eq!(verdict.faults, Vec::<String>::new());
            assert_eq!((verdict.latency, verdict.mismatch), (outcome.latency, 0));
        }
    }
}
