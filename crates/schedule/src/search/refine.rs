//! The last part of a search: changes of the best trees that something else than SET's model decides on, which costs a thousand times
//! as much.
//!
//! As in the annealing, neither the number of threads nor a clock that is not asked for changes a result: so many changes are judged at
//! once, whoever judges them, and the best of them is gone on from.

use super::menu::Searcher;
use super::state::State;
use super::{Found, Options, moves};
use crate::machine::Machine;
use crate::model::node::Branch;
use crate::model::node::Node;
use crate::model::segment::Evaluator;
use crate::model::{Cost, Factors, Impossible, Objective, explicit, leaf_costs, tree_of};
use crate::network::Network;
use crate::tree::Tree;
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// Changes that are judged at once.
const ABREAST: usize = 4;
/// Trees of a search that are judged to begin with.
const FIRST: usize = 3;
/// Of these, those that are judged first; the best is, however late it is.
const JUDGED: usize = 2;
/// A tree that costs so many times as much by the model is not judged.
const WORTH: f64 = 1.5;
/// Changes that are thought of for one that is judged, at most.
const THOUGHTS: usize = 64;
/// Trees that are handed back, at most.
const HANDED_BACK: usize = 4;

/// How much worse a schedule may be that lets more cores work: what is told of energies is no more exact than that, and idle cores are
/// no reserve.
const AS_GOOD: f64 = 0.02;

/// What is said of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// In pJ.
    pub(crate) energy: f64,
    /// In cycles.
    pub(crate) delay: i64,
    /// Cores that work.
    pub(crate) cores: usize,
}

/// What decides on a tree.
pub(crate) type Judge<'j, E> =
    dyn Fn(&mut Evaluator<'_>, &Branch) -> Result<Figures, E> + Sync + 'j;

/// When it ends, and to whom it tells how far it has come: trees that were judged, and the best's figures.
pub(crate) struct Course<'c> {
    /// At this time.
    pub(crate) until: Option<Instant>,
    /// After so many changes.
    pub(crate) trees: Option<u64>,
    pub(crate) interrupted: &'c AtomicBool,
    pub(crate) progress: &'c mut dyn FnMut(u64, Figures),
    /// A tree that was judged before: what is found is no worse.
    pub(crate) known: Option<(State, Figures)>,
}

impl Course<'_> {
    /// Whether something that takes so long would not come to its end in time.
    fn is_over(&self, time: Duration) -> bool {
        self.until
            .is_some_and(|until| Instant::now() + time >= until)
            || self.interrupted.load(Ordering::Relaxed)
    }
}

/// A tree that was judged.
pub(crate) struct Judged {
    pub(crate) tree: Tree,
    /// In SET's model.
    pub(crate) cost: Cost,
    pub(crate) figures: Figures,
}

/// What the judge made of a search.
pub(crate) struct Refined {
    /// The best trees, best first.
    pub(crate) judged: Vec<Judged>,
    /// Trees that were judged beyond those that the search gave.
    pub(crate) further: u64,
    /// All trees that the judge was asked about.
    pub(crate) replayed: u64,
}

/// A tree with what was said of it.
#[derive(Clone)]
struct Said {
    state: State,
    figures: Figures,
    score: f64,
}

/// The best trees of a search by a judge.
///
/// # Errors
/// What the judge said of the first, if he wants none.
pub(crate) fn refine<E: Send + From<Impossible>>(
    (network, machine): (&Network, &Machine),
    options: &Options,
    found: &Found,
    mut course: Course<'_>,
    judge: &Judge<'_, E>,
) -> Result<Refined, E> {
    let factors = Factors::up_to(machine.cores());
    let evaluator = || Evaluator::new(leaf_costs(machine, network, options.batch), &factors);
    let threads = options.threads.clamp(1, ABREAST);
    let (tasks, open) = mpsc::channel::<(usize, Branch)>();
    let (answers, said) = mpsc::channel();
    let open = Mutex::new(open);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (open, answers, evaluator) = (&open, answers.clone(), &evaluator);
            scope.spawn(move || {
                let mut evaluator = evaluator();
                loop {
                    // The queue is over when nobody can put anything into it.
                    let task = open.lock().ok().and_then(|open| open.recv().ok());
                    let Some((number, root)) = task else { break };
                    let answer = catch_unwind(AssertUnwindSafe(|| judge(&mut evaluator, &root)));
                    // Nobody waits for an answer that does not come.
                    let (answer, panic) = match answer {
                        Ok(answer) => (Some(answer), None),
                        Err(panic) => (None, Some(panic)),
                    };
                    let _ = answers.send((number, answer));
                    if let Some(panic) = panic {
                        resume_unwind(panic);
                    }
                }
            });
        }
        drop(answers);
        let mut ask = |states: &[State]| -> Vec<Option<Result<Figures, E>>> {
            let mut all: Vec<_> = states.iter().map(|_| None).collect();
            for (number, state) in states.iter().enumerate() {
                let _ = tasks.send((number, state.root()));
            }
            for (number, answer) in said.iter().take(states.len()) {
                all[number] = answer;
            }
            all
        };
        let mut searcher = Searcher::new(evaluator(), options.objective.by_the_model());
        let mut climb = Climb {
            options,
            best: Vec::new(),
            trees: 0,
        };
        // The best and the same on more cores are judged, however late it is; how long that takes says whether there is time for others.
        let (mut round, mut wrong) = (Duration::ZERO, None);
        let first = &found.states[..found.states.len().min(FIRST)];
        let most = if course.is_over(Duration::ZERO) {
            1
        } else {
            JUDGED
        };
        let (judged, others) = first.split_at(first.len().min(most));
        for states in [judged, others] {
            if !climb.best.is_empty() && course.is_over(round) {
                break;
            }
            let began = Instant::now();
            let answers = ask(states);
            let heard = climb.hear(states.to_vec(), answers);
            wrong = wrong.or(heard.err());
            round = round.max(began.elapsed());
        }
        if let Some((state, figures)) = course.known.take() {
            let heard = climb.hear(vec![state], vec![Some(Ok(figures))]);
            wrong = wrong.or(heard.err());
        }
        if let Some(error) = wrong.filter(|_| climb.best.is_empty()) {
            return Err(error);
        }
        // The search has counted these.
        let begun = std::mem::take(&mut climb.trees);
        climb.climb(&mut searcher, &mut course, round, &mut ask);
        climb.prefer_busy_cores();
        drop(tasks);
        searcher.evaluator.terse = false;
        let mut judged = Vec::new();
        for said in climb.best {
            let tree = tree_of(&searcher.evaluator, &Node::Cut(said.state.root()));
            let (cost, tree) = explicit(&mut searcher.evaluator, &tree)?;
            judged.push(Judged {
                tree,
                cost,
                figures: said.figures,
            });
        }
        Ok(Refined {
            judged,
            further: climb.trees,
            replayed: begun + climb.trees,
        })
    })
}

/// Goes on from the best.
struct Climb<'o> {
    options: &'o Options,
    /// The best so far, best first, and the best of each that lets more cores work; no two with the same figures.
    best: Vec<Said>,
    trees: u64,
}

type Ask<'a, E> = dyn FnMut(&[State]) -> Vec<Option<Result<Figures, E>>> + 'a;

impl Climb<'_> {
    /// Takes up what was said of trees.
    fn hear<E>(
        &mut self,
        states: Vec<State>,
        answers: Vec<Option<Result<Figures, E>>>,
    ) -> Result<(), E> {
        let mut wrong = None;
        for (state, answer) in states.into_iter().zip(answers) {
            self.trees += 1;
            let figures = match answer {
                Some(Ok(figures)) => figures,
                Some(Err(error)) => {
                    wrong = wrong.or(Some(error));
                    continue;
                }
                None => continue,
            };
            let objective = self.options.objective;
            let score = objective.of(figures.energy, figures.delay as f64);
            // Of equals the newest is gone on from.
            if let Some(equal) = self.best.iter_mut().find(|other| other.figures == figures) {
                equal.state = state;
                continue;
            }
            let at = self.best.partition_point(|other| other.score <= score);
            self.best.insert(
                at,
                Said {
                    state,
                    figures,
                    score,
                },
            );
            // The best, and those that let more cores work than any that is better.
            let (mut rank, mut most) = (0, 0);
            self.best.retain(|said| {
                let wider = said.figures.cores > most;
                (rank, most) = (rank + 1, most.max(said.figures.cores));
                rank <= HANDED_BACK || wider
            });
        }
        match wrong {
            Some(error) if self.best.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts the schedule first that lets most cores work of those that are as good as the best. Delays are counted, not estimated.
    fn prefer_busy_cores(&mut self) {
        let more = match self.options.objective {
            Objective::Delay => 0.0,
            Objective::Edp | Objective::Energy => AS_GOOD,
        };
        let most = self.best.first().map_or(0.0, |best| best.score) * (1.0 + more);
        let as_good = self.best.iter().take_while(|said| said.score <= most);
        let widest = as_good
            .enumerate()
            .max_by_key(|(rank, said)| (said.figures.cores, std::cmp::Reverse(*rank)));
        if let Some((rank, _)) = widest {
            self.best[..=rank].rotate_right(1);
        }
    }

    /// Where a change of a round begins: one half at the best, the other where more cores work, if that is elsewhere.
    fn origin(&self, number: usize) -> Option<&State> {
        let best = self.best.first()?;
        let busier = |said: &&Said| said.figures.cores > best.figures.cores;
        let other = self.best.iter().find(busier).filter(|_| number % 2 == 1);
        Some(&other.unwrap_or(best).state)
    }

    fn climb<E>(
        &mut self,
        searcher: &mut Searcher<'_>,
        course: &mut Course<'_>,
        mut round: Duration,
        ask: &mut Ask<'_, E>,
    ) {
        let objective = self.options.objective.by_the_model();
        let mut rng = Rng::with_seed(self.options.seed);
        let (mut asked, mut said) = (0, Instant::now());
        loop {
            let left = course
                .trees
                .map_or(u64::MAX, |trees| trees.saturating_sub(asked));
            // A round that would not come to its end in time is not begun.
            if left == 0 || course.is_over(round) {
                break;
            }
            let count = left.min(ABREAST as u64) as usize;
            let mut next = Vec::with_capacity(count);
            for number in 0..count {
                let Some(now) = self.origin(number) else {
                    return;
                };
                let most = now.score(objective) * WORTH;
                let change = (0..THOUGHTS).find_map(|_| {
                    let change = moves::neighbour(searcher, now, &mut rng);
                    change.filter(|next| next.score(objective) <= most)
                });
                next.extend(change);
            }
            asked += count as u64;
            let began = Instant::now();
            let answers = ask(&next);
            round = began.elapsed();
            // What is refused is only not gone on from.
            let _ = self.hear(next, answers);
            if said.elapsed() >= Duration::from_secs(1)
                && let Some(best) = self.best.first()
            {
                said = Instant::now();
                (course.progress)(self.trees, best.figures);
            }
        }
    }
}
