//! The search: first every choice of variants on what its mappings use of the start, then changes of the best of these.
//!
//! Changes are tried in rounds, all of a round on the same design; which they are depends on the seed and their number, and the best of them
//! is kept if it is good enough. So the result does not depend on threads or on time, but for where it ends.

mod changes;
mod options;

pub use options::{Freeze, Options};

use crate::design::{Draft, Placed};
use crate::objective::{Budget, Kernel, Score, score};
use chipless_dsa::adg::{Adg, Element, System};
use chipless_dsa_mapper::judge::judge;
use chipless_dsa_mapper::performance::{Demand, Model};
use chipless_dsa_mapper::{self as mapper, Mapping, Objective};
use fastrand::Rng;
use std::time::Duration;

/// Whether an element is of some kind.
type OfKind = fn(&Element) -> bool;

/// A design: a fabric and where the kernels are on it.
#[derive(Clone, Debug)]
struct Design {
    draft: Draft,
    /// For each kernel each of its variants, where it is mapped.
    placed: Vec<Vec<Option<Placed>>>,
    score: Score,
}

/// A change that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Its number, from 1.
    pub iteration: u64,
    /// What it was.
    pub kind: &'static str,
    /// What came of it; `None` where a kernel lost its place or the budget was exceeded.
    pub objective: Option<f64>,
    /// Whether it was kept.
    pub accepted: bool,
    /// The best objective so far.
    pub best: f64,
}

/// A design that no other beats in everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it reaches.
    pub score: Score,
}

/// Changes of a round.
const ROUND: u64 = 8;
/// Choices of variants that are looked at, at most.
const CHOICES: usize = 64;
/// Designs that are changed side by side, and for how many rounds; then only the best of them.
const BEAM: usize = 4;
const SIDE_BY_SIDE: u64 = 120;
/// Rounds without a better design after which a chain goes back to its best.
const STALE: u64 = 24;
/// What a change may lose that is kept nevertheless, now and then.
const LOSS: f64 = 0.02;
/// Time for one mapping, at most: long beyond what rounds take.
const MAPPING: Duration = Duration::from_mins(2);

/// A chain of designs, each a change of the one before it.
struct Chain {
    now: Design,
    best: Design,
    stale: u64,
}

/// An exploration.
pub struct Explorer<'k> {
    kernels: &'k [Kernel],
    options: Options,
    system: Option<System>,
    start: Design,
    chains: Vec<Chain>,
    best: Design,
    moves: u64,
    pareto: Vec<Point>,
}

impl<'k> Explorer<'k> {
    /// Maps the kernels onto a start.
    ///
    /// # Errors
    /// A kernel of which no variant can be mapped, or a start that exceeds the budget with one core.
    pub fn new(
        kernels: &'k [Kernel],
        start: &Adg,
        options: Options,
    ) -> Result<Explorer<'k>, String> {
        let system = start.system.filter(|_| options.freeze.system);
        let draft = Draft::of(start);
        let built = draft.build();
        let mut placed = Vec::new();
        for kernel in kernels {
            let mut variants = Vec::new();
            let mut reason = None;
            for variant in &kernel.variants {
                let options = mapper::Options {
                    seed: options.seed,
                    jobs: options.jobs,
                    time_limit: MAPPING,
                    objective: Objective::Interval,
                    stop: options.stop,
                    ..mapper::Options::default()
                };
                let outcome = mapper::map(&variant.graph, &built.adg, &options, &mut |_| {});
                reason = reason.or(outcome.reason);
                let found = outcome.mapping.filter(|_| outcome.mismatch == 0);
                variants.push(found.map(|mapping| Placed::of(&mapping, &built)));
            }
            if variants.iter().all(Option::is_none) {
                return Err(format!(
                    "no variant of {} can be mapped onto the start: {}",
                    kernel.name,
                    reason.unwrap_or_else(|| "no mapping was found".to_owned())
                ));
            }
            placed.push(variants);
        }
        let start = evaluate(kernels, &options.budget, system, draft, placed)
            .ok_or("the start exceeds the budget with a single core")?;
        Ok(Explorer {
            kernels,
            system,
            chains: Vec::new(),
            best: start.clone(),
            pareto: vec![Point {
                score: start.score.clone(),
            }],
            start,
            options,
            moves: 0,
        })
    }

    /// Goes on from the best design of an earlier run: its fabric, for each kernel the number of the variant that counts and its mapping, and
    /// how many changes had been tried.
    pub fn resume(&mut self, adg: &Adg, mappings: &[(usize, Mapping)], moves: u64) {
        let draft = Draft::of(adg);
        let built = draft.build();
        let placed = self
            .kernels
            .iter()
            .zip(mappings)
            .map(|(kernel, (variant, mapping))| {
                let mut placed = vec![None; kernel.variants.len()];
                if let Some(placed) = placed.get_mut(*variant) {
                    *placed = Some(Placed::of(mapping, &built));
                }
                placed
            });
        let placed = placed.collect();
        let design = evaluate(
            self.kernels,
            &self.options.budget,
            self.system,
            draft,
            placed,
        );
        self.moves = moves;
        if let Some(design) = design.filter(|design| design.score.is_better(&self.best.score)) {
            self.best = design.clone();
            self.keep(&design.score);
            self.chains = vec![Chain {
                now: design.clone(),
                best: design,
                stale: 0,
            }];
        }
    }

    /// What the start reaches.
    pub fn start(&self) -> &Score {
        &self.start.score
    }

    /// What the best design reaches.
    pub fn best(&self) -> &Score {
        &self.best.score
    }

    /// Changes tried so far.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Designs that no other beats in everything.
    pub fn pareto(&self) -> &[Point] {
        &self.pareto
    }

    /// The best fabric, and for each kernel the mapping of the variant that counts.
    pub fn result(&self) -> (Adg, Vec<Mapping>) {
        let mut built = self.best.draft.build();
        built.adg.system = Some(self.best.score.system);
        let scores = &self.best.score.kernels;
        let mappings = self.kernels.iter().zip(&self.best.placed).zip(scores);
        let mappings = mappings.map(|((kernel, placed), score)| {
            let graph = &kernel.variants[score.variant].graph;
            let judged = placed[score.variant]
                .as_ref()
                .and_then(|p| p.judged(graph, &built));
            judged.map_or_else(|| Mapping::empty(graph), |(mapping, _)| mapping)
        });
        let mappings = mappings.collect();
        (built.adg, mappings)
    }

    /// One round; what was tried.
    pub fn round(&mut self) -> Vec<Move> {
        if self.chains.is_empty() {
            return self.choices();
        }
        let round = self.moves / ROUND;
        let chain = if round < SIDE_BY_SIDE {
            (round % self.chains.len() as u64) as usize
        } else {
            let best = (0..self.chains.len()).reduce(|a, b| {
                if self.chains[b]
                    .best
                    .score
                    .is_better(&self.chains[a].best.score)
                {
                    b
                } else {
                    a
                }
            });
            best.unwrap_or(0)
        };
        let base = &self.chains[chain].now;
        let propose = |index: u64| {
            let number = self.moves + index + 1;
            let seed = self.options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03);
            self.propose(base, &mut Rng::with_seed(seed))
        };
        let proposed: Vec<(&'static str, Option<Design>)> =
            in_parallel(self.options.jobs, ROUND, &propose);
        let mut rng = Rng::with_seed(self.options.seed ^ round.wrapping_mul(0xA24B_AED4_963E_E407));
        let lenient = rng.u32(..10) == 0;
        let chosen = (0..proposed.len())
            .filter(|index| proposed[*index].1.is_some())
            .reduce(|a, b| match (&proposed[a].1, &proposed[b].1) {
                (Some(one), Some(two)) if two.score.is_better(&one.score) => b,
                _ => a,
            })
            .filter(|index| {
                proposed[*index].1.as_ref().is_some_and(|design| {
                    let (new, old) = (&design.score, &base.score);
                    let near = new.objective >= old.objective * (1.0 - LOSS)
                        && new.share <= old.share * (1.0 + LOSS);
                    new.is_better(old) || near && (lenient || new.share <= old.share)
                })
            });
        let mut log = Vec::new();
        let mut kept = None;
        for (index, (kind, design)) in proposed.into_iter().enumerate() {
            self.moves += 1;
            let accepted = chosen == Some(index);
            let objective = design.as_ref().map(|design| design.score.objective);
            if accepted {
                kept = design;
                if let Some(design) = &kept {
                    self.keep_design(design);
                }
            }
            log.push(Move {
                iteration: self.moves,
                kind,
                objective,
                accepted,
                best: self.best.score.objective,
            });
        }
        let chain = &mut self.chains[chain];
        chain.stale += 1;
        if let Some(design) = kept {
            if design.score.is_better(&chain.best.score) {
                chain.best = design.clone();
                chain.stale = 0;
            }
            chain.now = design;
        }
        if chain.stale >= STALE {
            chain.now = chain.best.clone();
            chain.stale = 0;
        }
        log
    }

    /// Every choice of variants, on what its mappings use of the start.
    fn choices(&mut self) -> Vec<Move> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for placed in &self.start.placed {
            let mapped: Vec<usize> = (0..placed.len()).filter(|v| placed[*v].is_some()).collect();
            all = all
                .into_iter()
                .flat_map(|choice| {
                    mapped.iter().map(move |variant| {
                        let mut choice = choice.clone();
                        choice.push(*variant);
                        choice
                    })
                })
                .collect();
            if all.len() > CHOICES {
                Rng::with_seed(self.options.seed).shuffle(&mut all);
                all.truncate(CHOICES);
            }
        }
        let choose = |index: u64| {
            let choice = &all[index as usize];
            let placed = self
                .start
                .placed
                .iter()
                .zip(choice)
                .map(|(placed, chosen)| {
                    let only = |(variant, placed): (usize, &Option<Placed>)| {
                        placed.clone().filter(|_| variant == *chosen)
                    };
                    placed.iter().enumerate().map(only).collect()
                });
            self.pruned(self.start.draft.clone(), placed.collect())
        };
        let designs = in_parallel(self.options.jobs, all.len() as u64, &choose);
        let mut log = Vec::new();
        let mut found: Vec<Design> = Vec::new();
        for design in designs {
            self.moves += 1;
            if let Some(design) = &design {
                self.keep_design(design);
            }
            log.push(Move {
                iteration: self.moves,
                kind: "variants",
                objective: design.as_ref().map(|design| design.score.objective),
                accepted: design.is_some(),
                best: self.best.score.objective,
            });
            found.extend(design);
        }
        found.sort_by(|a, b| {
            let order = b.score.objective.total_cmp(&a.score.objective);
            order.then(a.score.share.total_cmp(&b.score.share))
        });
        found.truncate(BEAM);
        if found.is_empty() {
            found.push(self.start.clone());
        }
        self.chains = found
            .into_iter()
            .map(|design| Chain {
                best: design.clone(),
                now: design,
                stale: 0,
            })
            .collect();
        log
    }

    /// Remembers a design where no other is better: as a point of the Pareto front, as the best of all.
    fn keep_design(&mut self, design: &Design) {
        self.keep(&design.score);
        if design.score.is_better(&self.best.score) {
            self.best = design.clone();
        }
    }

    /// Remembers a design that no other beats in objective, area and share of the budget.
    fn keep(&mut self, new: &Score) {
        let covers = |a: &Score, b: &Score| {
            a.objective >= b.objective
                && a.area <= b.area
                && a.power <= b.power
                && a.share <= b.share
        };
        if self.pareto.iter().any(|point| covers(&point.score, new)) {
            return;
        }
        self.pareto.retain(|point| !covers(new, &point.score));
        self.pareto.push(Point { score: new.clone() });
    }
}

/// Judges and scores; `None` where a kernel has no legal mapping, or the budget has no room for a core.
fn evaluate(
    kernels: &[Kernel],
    budget: &Budget,
    system: Option<System>,
    draft: Draft,
    mut placed: Vec<Vec<Option<Placed>>>,
) -> Option<Design> {
    let built = draft.build();
    let mut demands = Vec::with_capacity(kernels.len());
    for (kernel, placed) in kernels.iter().zip(&mut placed) {
        let mut of = Vec::with_capacity(placed.len());
        for (variant, placed) in kernel.variants.iter().zip(placed.iter_mut()) {
            let judged = placed.as_ref().and_then(|placed| {
                let mapping = placed.mapping(&variant.graph, &built);
                let verdict = judge(&variant.graph, &built.adg, &mapping);
                let good = verdict.is_legal() && verdict.mismatch == 0;
                good.then(|| {
                    Demand::of(&variant.graph, &built.adg, &mapping, &verdict, Model::Peer)
                })
            });
            if judged.is_none() {
                *placed = None;
            }
            of.push(judged);
        }
        if of.iter().all(Option::is_none) {
            return None;
        }
        demands.push(of);
    }
    let score = score(&built.adg, kernels, &demands, budget, system)?;
    Some(Design {
        draft,
        placed,
        score,
    })
}

/// Calls a function with the numbers from 0, on so many threads; results in order.
fn in_parallel<T: Send>(jobs: usize, count: u64, work: &(dyn Fn(u64) -> T + Sync)) -> Vec<T> {
    if jobs < 2 {
        return (0..count).map(work).collect();
    }
    let mut results: Vec<(u64, T)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..jobs as u64)
            .map(|job| {
                scope.spawn(move || {
                    let numbers = (job..count).step_by(jobs);
                    numbers
                        .map(|number| (number, work(number)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        running
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .flatten()
            .collect()
    });
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
