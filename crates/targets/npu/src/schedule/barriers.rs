//! Physical barriers during the walk: counts only, and forgiving, since the engine is the judge of protocol faults.

use super::Configuration;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    active: Option<usize>,
    producers: u32,
    consumers: u32,
    fifo: VecDeque<usize>,
}

impl Barrier {
    pub(super) fn lit(&self) -> bool {
        self.active.is_some() && self.producers == 0
    }

    pub(super) fn produce(&mut self) {
        self.producers = self.producers.saturating_sub(1);
    }

    pub(super) fn consume(&mut self) {
        self.consumers = self.consumers.saturating_sub(1);
    }

    pub(super) fn push(&mut self, configuration: usize, all: &[Configuration]) {
        self.fifo.push_back(configuration);
        if self.active.is_none() {
            self.load(all);
        }
    }

    /// Activates the next configuration if the active one is used up, and returns that one.
    pub(super) fn retire(&mut self, all: &[Configuration]) -> Option<usize> {
        let active = self.active?;
        if self.producers != 0 || self.consumers != 0 || all[active].consumers == 0 {
            return None;
        }
        self.load(all);
        Some(active)
    }

    fn load(&mut self, all: &[Configuration]) {
        self.active = self.fifo.pop_front();
        if let Some(active) = self.active {
            self.producers = all[active].producers;
            self.consumers = all[active].consumers;
        }
    }
}
