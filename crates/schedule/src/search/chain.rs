//! One annealing chain.

use super::menu::Searcher;
use super::moves;
use super::state::State;
use fastrand::Rng;
use std::time::Instant;

/// Temperature at the start, as a part of the cost; one for each chain.
const WARMEST: [f64; super::CHAINS] = [0.003, 0.0006, 0.012, 0.0001];
/// Trees between looks at the clock.
const LOOK: u64 = 16;

/// A chain.
pub(super) struct Chain {
    pub(super) state: State,
    pub(super) best: State,
    rng: Rng,
    warmest: f64,
    /// Trees that it may evaluate in this round, and has.
    pub(super) quota: u64,
    pub(super) done: u64,
    /// Part of the search that is over.
    pub(super) part: f64,
}

impl Chain {
    pub(super) fn new(state: State, seed: u64, index: usize) -> Chain {
        let mut rng = Rng::with_seed(seed);
        (0..=index).for_each(|_| drop(rng.fork()));
        let rng = Rng::with_seed(rng.u64(..) ^ (index as u64) << 32);
        Chain {
            best: state.clone(),
            state,
            rng,
            warmest: WARMEST[index],
            quota: 0,
            done: 0,
            part: 0.0,
        }
    }

    /// Evaluates the trees of a round.
    pub(super) fn run(&mut self, searcher: &mut Searcher<'_>, deadline: Option<Instant>) {
        self.done = 0;
        let objective = searcher.objective;
        let (mut now, mut best) = (self.state.score(objective), self.best.score(objective));
        let temperature = self.warmest * (1.0 - self.part).max(0.0) / (1.0 + 8.0 * self.part);
        while self.done < self.quota {
            if self.done.is_multiple_of(LOOK)
                && deadline.is_some_and(|deadline| Instant::now() >= deadline)
            {
                break;
            }
            self.done += 1;
            let Some(next) = moves::neighbour(searcher, &self.state, &mut self.rng) else {
                continue;
            };
            let score = next.score(objective);
            let worse = (score - now) / now;
            if worse <= 0.0 || temperature > 0.0 && self.rng.f64() < (-worse / temperature).exp() {
                self.state = next;
                now = score;
                if now < best {
                    best = now;
                    self.best = self.state.clone();
                }
            }
        }
    }
}
