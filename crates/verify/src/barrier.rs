//! Barriers with the clocks of their uses.

use crate::clock::{Clock, Point, join};
use chipless_model::{BarrierFault, Configuration, ConfigurationId, IndexVec, TaskId};

#[derive(Debug)]
pub(crate) struct Barrier {
    /// Each configuration with what comes before its push.
    state: chipless_model::Barrier<(ConfigurationId, Clock)>,
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
        let mut state = chipless_model::Barrier::new(depth);
        for id in preloaded {
            let Configuration {
                producers,
                consumers,
                ..
            } = configurations[*id];
            // What the FIFO does not hold at the start is reported when it is signalled.
            state.push((*id, Clock::new()), producers, consumers).ok();
        }
        Barrier {
            state,
            depth,
            retired: Clock::new(),
            activated: Clock::new(),
            lit: Clock::new(),
            consumed: Clock::new(),
            participants: Vec::new(),
            previous: Vec::new(),
            watchers: Vec::new(),
            pushed: (Clock::new(), None),
            retirements: Vec::new(),
            pushes: preloaded.len(),
        }
    }

    pub(crate) fn active(&self) -> Option<ConfigurationId> {
        self.state.active().map(|(configuration, _)| *configuration)
    }

    pub(crate) fn is_lit(&self) -> bool {
        self.state.is_lit()
    }

    /// Counts a producer down.
    pub(crate) fn produce(&mut self, task: TaskId, clock: &Clock) -> Result<(), BarrierFault> {
        self.state.produce()?;
        self.participants.push(task);
        join(&mut self.lit, clock);
        Ok(())
    }

    /// Counts a consumer down.
    pub(crate) fn consume(&mut self, task: TaskId, clock: &Clock) -> Result<(), BarrierFault> {
        self.state.consume()?;
        self.participants.push(task);
        join(&mut self.consumed, clock);
        Ok(())
    }

    /// Remembers a task that waits for the active use without consuming it.
    pub(crate) fn watch(&mut self, task: TaskId, start: Point) {
        self.watchers.push((task, start));
    }

    /// Pushes a configuration.
    pub(crate) fn push(
        &mut self,
        configuration: ConfigurationId,
        task: TaskId,
        clock: &Clock,
        configurations: &Configurations,
    ) -> Result<(), BarrierFault> {
        let Configuration {
            producers,
            consumers,
            ..
        } = configurations[configuration];
        let was_active = self.state.active().is_some();
        self.pushed = (clock.clone(), Some(task));
        self.pushes += 1;
        let pushed = self
            .state
            .push((configuration, clock.clone()), producers, consumers);
        if !was_active {
            self.activate();
        }
        pushed
    }

    /// The retirement that must come before the last push, if the FIFO is not to overflow.
    pub(crate) fn makes_room(&self) -> Option<&Clock> {
        let first = self.pushes.checked_sub(self.depth? as usize + 2)?;
        self.retirements.get(first)
    }

    /// If the active use is over, activates the next one.
    pub(crate) fn retire(&mut self) -> Option<Retired> {
        let (configuration, _) = self.state.retire()?;
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
        self.activate();
        Some(Retired {
            configuration,
            late,
        })
    }

    /// What comes before the use that has become active.
    fn activate(&mut self) {
        if let Some((_, push)) = self.state.active() {
            self.activated.clone_from(&self.retired);
            join(&mut self.activated, push);
            self.lit.clone_from(&self.activated);
        }
    }
}
