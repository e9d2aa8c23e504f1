//! The best schedule of the trees that there are.

use super::spec::Emitter;
use super::written::Written;
use super::{DramCycles, Floor, Unwritten};
use crate::machine::Machine;
use crate::model::node::Branch;
use crate::model::segment::Evaluator;
use crate::model::{Cost, explicit, nodes_of, with_evaluator};
use crate::network::Network;
use crate::search::refine::{Course, Figures, Judged, refine};
use crate::search::{self, Found, Options, Progress, Stopped};
use crate::tree::Tree;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The schedule of the best tree.
#[derive(Clone, Debug)]
pub struct Best {
    /// The tree.
    pub tree: Tree,
    /// Its cost in SET's model.
    pub cost: Cost,
    /// Energy (pJ) and delay (cycles) of the schedule by the replay.
    pub replay: (f64, i64),
    /// The file.
    pub text: String,
    /// The next best of the trees that were replayed: its cost in SET's model, its energy and delay by the replay.
    pub runner_up: Option<(Cost, (f64, i64))>,
    /// Energy and delay by the replay of one layer after another; nothing where that does not fit, or was not asked for.
    pub layer_by_layer: Option<(f64, i64)>,
    /// What no schedule is faster than, by the replay.
    pub floor: Floor,
    /// What the queue of DRAM did in the replay, which takes so many cycles.
    pub dram: DramCycles,
    /// Trees that the replay tried in a search; 0 without one.
    pub replayed: u64,
}

/// The schedule of a tree. It has passed every check before it is given.
///
/// # Errors
/// What does not fit, or what cannot be executed.
pub fn spec_dialect(
    written: &Written,
    (network, machine): (&Network, &Machine),
    tree: &Tree,
) -> Result<Best, Unwritten> {
    let emitter = Emitter::new(written, machine)?;
    let judged = with_evaluator(network, machine, tree.batch(), |evaluator| {
        let (cost, tree) = explicit(evaluator, tree)?;
        let root = nodes_of(evaluator, &tree)?;
        let (_, figures) = emitter.schedule(evaluator, &root)?;
        Ok::<_, Unwritten>(Judged {
            tree,
            cost,
            figures,
        })
    })?;
    first(&emitter, (network, machine), tree.batch(), vec![judged])
}

/// Part of a search in which trees are judged by SET's model alone.
const BY_THE_MODEL: f64 = 0.5;
/// Trees that the model evaluates for one that is replayed, where their number is told.
const TREES_OF_A_REPLAY: u64 = 100;

/// The best schedule by the replay, with what a search by the model found. It has passed every check before it is given.
///
/// A machine has waits that the model knows nothing of, so the replay chooses where a search by the model begins and goes on from, and
/// what it found is changed further by the replay alone.
///
/// # Errors
/// What does not fit, or what cannot be executed.
pub fn searched(
    written: &Written,
    (network, machine): (&Network, &Machine),
    options: &Options,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<(Found, Best), Unwritten> {
    let began = Instant::now();
    let until = options
        .seconds
        .map(|seconds| began + Duration::from_secs_f64(seconds.clamp(0.0, 1e6)));
    let replays = options.trees.map(|trees| trees / TREES_OF_A_REPLAY);
    let of_model = options
        .trees
        .zip(replays)
        .map(|(all, replays)| all - replays);
    let emitter = Emitter::new(written, machine)?;
    // What Chipless cannot schedule, or would refuse itself, shows before the search.
    let (state, alone) = search::layer_by_layer(network, machine, options, |evaluator, root| {
        emitter.schedule(evaluator, root)
    })?;
    let alone = alone.ok();
    if let Some(fault) = alone
        .as_ref()
        .and_then(|(schedule, _)| emitter.faults_of_file(&schedule.write()))
    {
        return Err(Unwritten::Refused(fault));
    }
    // The end takes about as long: the best tree becomes a schedule once more, and is checked.
    let end = began.elapsed();
    let known = alone.map(|(_, figures)| (state, figures));
    let layer_by_layer = known
        .as_ref()
        .map(|(_, figures)| (figures.energy, figures.delay));
    let rank = |evaluator: &mut Evaluator<'_>, root: &Branch| {
        let (_, figures) = emitter.schedule(evaluator, root).ok()?;
        Some(options.objective.of(figures.energy, figures.delay as f64))
    };
    let most = options.seconds.map(|seconds| seconds * BY_THE_MODEL);
    let before = began.elapsed().as_secs_f64();
    let part = Options {
        objective: options.objective.by_the_model(),
        one_pass: true,
        seconds: most.map(|most| (most - before).max(0.0)),
        latest: most.map(|most| began + Duration::from_secs_f64(most.clamp(0.0, 1e6))),
        trees: of_model,
        ..options.clone()
    };
    let mut found = search::ranked(network, machine, &part, &rank, interrupted, &mut |so_far| {
        progress(&Progress {
            seconds: before + so_far.seconds,
            ..*so_far
        });
    })?;
    let (trees, model, bounds) = (found.trees, found.cost, found.bounds);
    let course = Course {
        until: until.map(|until| until.checked_sub(end).unwrap_or(began)),
        trees: replays,
        interrupted,
        known,
        progress: &mut |replayed, figures| {
            progress(&Progress {
                seconds: began.elapsed().as_secs_f64(),
                trees: trees + replayed,
                best: model,
                replay: Some((figures.energy, figures.delay)),
                replayed: (replayed, replays),
                bounds,
            });
        },
    };
    let refined = refine::<Unwritten>(
        (network, machine),
        options,
        &found,
        course,
        &|evaluator, root| Ok(emitter.schedule(evaluator, root)?.1),
    )?;
    let mut best = first(&emitter, (network, machine), options.batch, refined.judged)?;
    best.layer_by_layer = layer_by_layer;
    best.replayed = refined.replayed;
    found.trees = trees + refined.further;
    found.seconds = began.elapsed().as_secs_f64();
    if interrupted.load(Ordering::Relaxed) {
        found.stopped = Stopped::Interrupted;
    }
    Ok((found, best))
}

/// The first of some trees, best first, whose schedule passes every check.
fn first(
    emitter: &Emitter<'_>,
    (network, machine): (&Network, &Machine),
    batch: i64,
    judged: Vec<Judged>,
) -> Result<Best, Unwritten> {
    let mut wrong = None;
    let mut left = judged.into_iter().peekable();
    while let Some(Judged {
        tree,
        cost,
        figures,
    }) = left.next()
    {
        let schedule = with_evaluator(network, machine, tree.batch(), |evaluator| {
            let root = nodes_of(evaluator, &tree)?;
            emitter.schedule(evaluator, &root)
        })?;
        let dram = emitter.dram_cycles(&schedule.0)?;
        let text = schedule.0.write();
        let Some(fault) = emitter.faults(&text) else {
            return Ok(Best {
                tree,
                cost,
                replay: (figures.energy, figures.delay),
                text,
                runner_up: left.peek().map(|next| {
                    let Figures { energy, delay, .. } = next.figures;
                    (next.cost, (energy, delay))
                }),
                layer_by_layer: None,
                replayed: 0,
                floor: emitter.floor(batch),
                dram,
            });
        };
        wrong = wrong.or(Some(Unwritten::Refused(fault)));
    }
    Err(wrong.unwrap_or_else(|| Unwritten::Unsupported("there is no tree".to_owned())))
}
