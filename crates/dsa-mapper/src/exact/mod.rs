//! Exact search, for small graphs for which the heuristics find no mapping, or none without mismatch: places, ways and starts together,
//! as a propositional formula.
//!
//! A value that passes a link has a *depth* there, the links from its source; a link behind a switch needs one before it with one less.
//! Starts obey the differences of [`crate::timing`], and what shares an element starts in cycles of its own modulo the interval. Depths
//! and starts have horizons. They grow to those that no mapping needs to pass (see [`Horizon::widest`]), so that the answer is a mapping,
//! a proof that there is none, or neither, when the effort is spent.

mod ends;
mod formula;
mod starts;
mod ways;

pub(crate) use ends::{may_enter, may_leave};

use crate::deadline::Deadline;
use crate::kernel::{Kernel, Place};
use crate::place::{Placement, Placer};
use batsat::Lit;
use chipless_dsa::adg::ElementId;
use ends::Job;
use formula::{Formula, Number};
use std::collections::BTreeMap;
use ways::Ways;

/// Depths of values on links in a formula, at most.
const MOST_DEPTHS: usize = 400_000;
/// Ends of wires, lengths and starts in a formula, at most.
const MOST_STARTS: usize = 4_000_000;
/// Conflicts that one formula is worth, while trials may still find a mapping, and when they have come to nothing.
pub(crate) const CONFLICTS: u64 = 60_000;
pub(crate) const ALL_CONFLICTS: u64 = 8 * CONFLICTS;

/// What a search came to.
pub(crate) enum Answer {
    /// A mapping.
    Found(Found),
    /// There is no mapping.
    Impossible,
    /// The effort was spent, or the graph is not one for this search.
    Open,
}

/// A mapping.
pub(crate) struct Found {
    pub(crate) placement: Placement,
    /// For each wire its links and slots.
    pub(crate) ways: Vec<Vec<(u32, u32)>>,
    /// The start of each vertex, where the search was for one with a schedule.
    pub(crate) start: Option<Vec<i32>>,
}

/// How far a formula looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Horizon {
    /// Links of a way.
    links: i32,
    /// Cycles until the last result.
    cycles: i32,
}

impl Horizon {
    /// What no mapping needs to pass. A value takes no link twice. The earliest starts are those of a chain of vertices and ways; the ways
    /// that leave different vertices have no link in common, so that all links together are as many as a chain has. Where starts differ
    /// modulo the interval, each vertex waits less than that beyond.
    fn widest(placer: &Placer<'_>, timed: bool) -> Horizon {
        let (kernel, fabric) = (placer.kernel, placer.fabric);
        let is_spatial = |link: &&crate::fabric::Wireway| {
            fabric.is_switch[link.source as usize] || fabric.is_switch[link.sink as usize]
        };
        let between = |link: &&crate::fabric::Wireway| {
            fabric.is_switch[link.source as usize] && fabric.is_switch[link.sink as usize]
        };
        let all: u32 = fabric
            .links
            .iter()
            .filter(is_spatial)
            .map(|l| l.slots)
            .sum();
        let work = kernel.vertices.iter().map(|vertex| {
            let ready = vertex.outputs.iter().map(|wire| kernel.wires[*wire].ready);
            let turns = if is_shared(placer) {
                placer.interval
            } else {
                0
            };
            ready.max().unwrap_or(0).max(vertex.latency) + turns
        });
        let links: u32 = if timed {
            fabric.links.iter().filter(between).map(|l| l.slots).sum()
        } else {
            // Without time a value enters each switch once at most: what a detour adds is of no use.
            fabric.is_switch.iter().map(|is| u32::from(*is)).sum()
        };
        Horizon {
            links: links as i32 + 2,
            cycles: all as i32 + work.sum::<i32>(),
        }
    }
}

/// Whether instructions may share elements.
fn is_shared(placer: &Placer<'_>) -> bool {
    placer
        .fabric
        .units
        .iter()
        .any(|unit| placer.is_shared(*unit))
}

/// Whether the search knows everything that the graph and the fabric have.
fn is_for_this(placer: &Placer<'_>) -> bool {
    let (kernel, fabric) = (placer.kernel, placer.fabric);
    // Values in parts, or several values in turns on one way, and links that are shared in time, are none of its matter.
    let whole = kernel.nets.iter().all(|net| {
        let part = |wire: &usize| {
            let wire = &kernel.wires[*wire];
            (wire.low, wire.width, wire.value, wire.source)
        };
        net.wires
            .windows(2)
            .all(|pair| part(&pair[0]) == part(&pair[1]))
    });
    whole && fabric.values.iter().all(|values| *values == 1)
}

/// Searches for a mapping; with `timed` for one whose rows come every interval of the placer.
pub(crate) fn search(
    placer: &Placer<'_>,
    timed: bool,
    conflicts: u64,
    deadline: Deadline,
) -> Answer {
    if !is_for_this(placer) {
        return Answer::Open;
    }
    let widest = Horizon::widest(placer, timed);
    let jobs = ends::jobs(placer);
    let shortest = ends::shortest(placer, &jobs);
    let bound = starts::bound(placer, &jobs, &shortest);
    let longest = shortest.iter().copied().max().unwrap_or(0);
    let near = |more: i32| Horizon {
        links: (longest + more).min(widest.links),
        cycles: (bound + 2 * more).min(widest.cycles),
    };
    let mut horizons = vec![near(4), near(10), widest];
    horizons.dedup();
    if !timed {
        horizons = vec![near(6), widest];
    }
    for horizon in horizons {
        let formula = Formula::new(deadline, conflicts);
        let Some(mut model) = Model::new(placer, timed, horizon, &jobs, &shortest, formula) else {
            return Answer::Open;
        };
        match model.formula.solve() {
            Some(true) => return Answer::Found(model.found()),
            Some(false) if horizon == widest => return Answer::Impossible,
            _ if deadline.is_over() => return Answer::Open,
            _ => {}
        }
    }
    Answer::Open
}

/// The formula of a search, and what its literals stand for.
struct Model<'p> {
    placer: &'p Placer<'p>,
    formula: Formula,
    /// For each vertex and candidate whether it is there.
    place: Vec<Vec<Lit>>,
    /// For each net its links.
    ways: Vec<Ways>,
    jobs: &'p [Job],
    /// For each job the steps that it can end with.
    ends: Vec<Vec<(usize, Lit)>>,
    /// For each job whether both ends are on one shared element.
    inside: Vec<Option<Lit>>,
    start: Vec<Number>,
}

impl<'p> Model<'p> {
    /// `None` where the formula would be too large.
    fn new(
        placer: &'p Placer<'p>,
        timed: bool,
        horizon: Horizon,
        jobs: &'p [Job],
        shortest: &[i32],
        formula: Formula,
    ) -> Option<Model<'p>> {
        let mut model = Model {
            placer,
            formula,
            place: Vec::new(),
            ways: Vec::new(),
            jobs,
            ends: Vec::new(),
            inside: Vec::new(),
            start: Vec::new(),
        };
        model.places();
        model.route(horizon)?;
        model.arrive();
        if timed {
            let size = jobs.len() * (horizon.links * horizon.cycles) as usize;
            if size > MOST_STARTS {
                return None;
            }
            model.schedule(horizon, shortest);
        }
        Some(model)
    }

    fn kernel(&self) -> &'p Kernel {
        self.placer.kernel
    }

    /// Every vertex has one place, and every place as many vertices as it has room for.
    fn places(&mut self) {
        let placer = self.placer;
        let mut tenants: BTreeMap<(u32, u32), Vec<Lit>> = BTreeMap::new();
        for (vertex, body) in placer.kernel.vertices.iter().enumerate() {
            let candidates = &placer.candidates.of[vertex];
            let there: Vec<Lit> = candidates.iter().map(|_| self.formula.fresh()).collect();
            self.formula.add(there.clone());
            self.formula.at_most(1, &there);
            for ((element, slot), literal) in candidates.iter().zip(&there) {
                let own = &placer.fabric.adg.elements[ElementId::new(*element as usize)];
                let parts = if body.place == Place::Unit && !body.temporal {
                    body.width.div_ceil(own.granularity.max(1)).max(1)
                } else {
                    1
                };
                for part in *slot..slot + parts {
                    tenants.entry((*element, part)).or_default().push(*literal);
                }
            }
            self.place.push(there);
        }
        for ((element, _), literals) in tenants {
            let own = &placer.fabric.adg.elements[ElementId::new(element as usize)];
            let room = own
                .processing()
                .map_or(1, |unit| unit.instruction_slots.max(1));
            self.formula.at_most(room as usize, &literals);
        }
    }

    /// What the solution says.
    fn found(&self) -> Found {
        let kernel = self.kernel();
        let mut ways = vec![Vec::new(); kernel.wires.len()];
        for (job, ends) in self.jobs.iter().zip(&self.ends) {
            let Some((end, _)) = ends.iter().find(|(_, end)| self.formula.holds(*end)) else {
                continue;
            };
            let way = self.ways[job.net].back(&self.formula, self.placer.fabric, *end);
            for wire in &job.wires {
                ways[*wire].clone_from(&way);
            }
        }
        let spot = self.place.iter().map(|there| {
            let chosen = there
                .iter()
                .position(|literal| self.formula.holds(*literal));
            chosen.unwrap_or(0) as u32
        });
        let start = self.start.iter().map(|start| self.formula.value(start));
        Found {
            placement: self.placer.with_pins(spot.collect(), &ways),
            ways,
            start: (!self.start.is_empty()).then(|| start.collect()),
        }
    }
}
