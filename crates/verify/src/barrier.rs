//! Barriers with the clocks of their uses.

use crate::clock::{Clock, Point, join};
use chipless_model::{Configuration, ConfigurationId, IndexVec, TaskId};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    pub(crate) active: Option<ConfigurationId>,
    /// Counts that are left.
    pub(crate) producers: u32,
    pub(crate) consumers: u32,
    fifo: VecDeque<(ConfigurationId, Clock)>,
    depth: Option<u32>,
    /// The retirement of the use before the active one.
    pub(crate) retired: Clock,
    /// The active use coming to life: that retirement and its own configuration.
    pub(crate) activated: Clock,
    /// What is before everybody who waits for the active use: its activation and its producers so far.
    pub(crate) lit: Clock,
    /// Its consumers so far.
    consumed: Clock,
    /// Tasks that produced or consumed the active use, and the one before.
    participants: Vec<TaskId>,
    pub(crate) previous: Vec<TaskId>,
    /// Tasks that waited for the active use and do not consume it.
    watchers: Vec<(TaskId, Point)>,
    /// The last push, and who made it.
    pub(crate) pushed: (Clock, Option<TaskId>),
    /// Retirements of all uses, where the depth is bounded.
    retirements: Vec<Clock>,
    pushes: usize,
}

/// What a retirement leads to.
pub(crate) struct Retired {
    pub(crate) configuration: ConfigurationId,
    /// Tasks that wait for this use without consuming it, and may be late for it.
    pub(crate) late: Vec<TaskId>,
}

type Configurations = IndexVec<ConfigurationId, Configuration>;

impl Barrier {
    pub(crate) fn new(
        preloaded: &[ConfigurationId],
        depth: Option<u32>,
        configurations: &Configurations,
    ) -> Barrier {
        let fifo = preloaded.iter().map(|c| (*c, Clock::new())).collect();
        let mut barrier = Barrier {
            fifo,
            depth,
            pushes: preloaded.len(),
            ..Barrier::default()
        };
        barrier.load(configurations);
        barrier
    }

    pub(crate) fn is_lit(&self) -> bool {
        self.active.is_some() && self.producers == 0
    }

    /// Counts a producer down; `false` where that is a fault.
    pub(crate) fn produce(&mut self, task: TaskId, clock: &Clock) -> bool {
        if self.active.is_none() || self.producers == 0 {
            return false;
        }
        self.producers -= 1;
        self.participants.push(task);
        join(&mut self.lit, clock);
        true
    }

    /// Counts a consumer down; `false` where that is a fault.
    pub(crate) fn consume(&mut self, task: TaskId, clock: &Clock) -> bool {
        if self.active.is_none() || self.consumers == 0 {
            return false;
        }
        self.consumers -= 1;
        self.participants.push(task);
        join(&mut self.consumed, clock);
        true
    }

    /// Remembers a task that waits for the active use without consuming it.
    pub(crate) fn watch(&mut self, task: TaskId, start: Point) {
        self.watchers.push((task, start));
    }

    /// Pushes a configuration; `false` where the FIFO overflows.
    pub(crate) fn push(
        &mut self,
        configuration: ConfigurationId,
        task: TaskId,
        clock: &Clock,
        configurations: &Configurations,
    ) -> bool {
        self.fifo.push_back((configuration, clock.clone()));
        self.pushed = (clock.clone(), Some(task));
        self.pushes += 1;
        if self.active.is_none() {
            self.load(configurations);
        }
        self.depth
            .is_none_or(|depth| self.fifo.len() <= depth as usize)
    }

    /// The retirement that must come before the last push, if the FIFO is not to overflow.
    pub(crate) fn makes_room(&self) -> Option<&Clock> {
        let first = self.pushes.checked_sub(self.depth? as usize + 2)?;
        self.retirements.get(first)
    }

    /// If the active use is over, activates the next one.
    pub(crate) fn retire(&mut self, configurations: &Configurations) -> Option<Retired> {
        let active = self.active?;
        if self.producers != 0 || self.consumers != 0 || configurations[active].consumers == 0 {
            return None;
        }
        self.retired = std::mem::take(&mut self.lit);
        join(&mut self.retired, &self.consumed);
        self.consumed.clear();
        let retired = &self.retired;
        let late = self
            .watchers
            .drain(..)
            .filter(|(_, start)| !crate::clock::reaches(retired, *start))
            .map(|(task, _)| task)
            .collect();
        if self.depth.is_some() {
            self.retirements.push(self.retired.clone());
        }
        self.previous.clear();
        std::mem::swap(&mut self.previous, &mut self.participants);
        self.load(configurations);
        Some(Retired {
            configuration: active,
            late,
        })
    }

    fn load(&mut self, configurations: &Configurations) {
        let next = self.fifo.pop_front();
        self.active = next.as_ref().map(|(configuration, _)| *configuration);
        if let Some((configuration, push)) = next {
            self.producers = configurations[configuration].producers;
            self.consumers = configurations[configuration].consumers;
            self.activated.clone_from(&self.retired);
            join(&mut self.activated, &push);
            self.lit.clone_from(&self.activated);
        }
    }
}
