//! The state of a run at one of its effects: syncs, and what the servers of its queues are at.

use crate::effects::Effects;
use crate::engine::Order;
use crate::timeline::State;
use crate::verified::Verified;
use crate::world::World;
use chipless_model::{
    ConfigurationId, Fault, IndexVec, Program, QueueId, SyncId, SyncKind, TaskId, Time, Wait,
};

/// A run just before an effect.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The simulated time.
    pub time: Time,
    /// The state of every sync.
    pub syncs: IndexVec<SyncId, SyncState>,
    /// What each server is at, in the order of the queues.
    pub servers: Vec<At>,
}

/// The state of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncState {
    /// Of a counter.
    Value(i64),
    /// Of a barrier: the use that is active, and the producers and consumers that it still expects.
    Barrier {
        /// `None`: it has no configuration.
        active: Option<ConfigurationId>,
        /// Producers that are left.
        producers: u32,
        /// Consumers that are left.
        consumers: u32,
        /// Whether waits for it hold.
        lit: bool,
    },
}

/// What a server of a queue is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Its queue.
    pub queue: QueueId,
    /// Which of the queue's servers.
    pub server: u32,
    /// The task that it runs, or would start; `None` where nothing has been released to it.
    pub task: Option<TaskId>,
    /// Whether the task has started.
    pub runs: bool,
    /// Conditions that do not hold and keep the task from starting.
    pub waits: Vec<Wait>,
}

/// Lets so many effects happen and refuses the next.
struct Until(usize);

impl Effects for Until {
    fn apply(&mut self, _: &Program<'_>, _: TaskId) -> Result<(), Fault> {
        self.0 = self
            .0
            .checked_sub(1)
            .ok_or_else(|| Fault::program(String::new()))?;
        Ok(())
    }
}

impl Moment {
    /// The moment before an effect, counted from 0, found by keeping the time of the run up to there; beyond the last effect, the end of
    /// the run. It costs what a timing run costs, and runs that nobody asks pay nothing.
    pub fn of(program: &Verified<'_, '_>, order: Order, effect: usize) -> Moment {
        let mut world = World::default();
        let start = program.program().start;
        let placed = world.place(program, order, Until(effect), &mut (), start);
        let mut stopped = placed.is_err();
        while !stopped && world.next().is_some() {
            stopped = world.step(&mut ()).is_err();
        }
        world.moment(program.program())
    }
}

impl World<'_, '_, Until> {
    /// The state of the only instance.
    fn moment(&self, program: &Program<'_>) -> Moment {
        let time = self.now();
        let Some(engine) = self.only() else {
            return Moment {
                time,
                syncs: IndexVec::new(),
                servers: Vec::new(),
            };
        };
        let state =
            |(id, sync): (SyncId, &chipless_model::Sync)| match (&sync.kind, engine.barrier(id)) {
                (SyncKind::Barrier { .. }, Some(barrier)) => {
                    let (producers, consumers) = barrier.left();
                    SyncState::Barrier {
                        active: barrier.active().copied(),
                        producers,
                        consumers,
                        lit: barrier.is_lit(),
                    }
                }
                _ => SyncState::Value(engine.value(id)),
            };
        let mut servers: Vec<At> = Vec::with_capacity(engine.servers.len());
        for server in &engine.servers {
            let before = servers.last().filter(|at| at.queue == server.queue);
            let number = before.map_or(0, |at| at.server + 1);
            let task = (server.task != server.end).then(|| TaskId::from_raw(server.task));
            let runs = task.is_some_and(|task| engine.timeline.tasks[task].state == State::Running);
            let waits = task.filter(|_| !runs).map(|task| {
                let waits = program.waits_and_uses(task);
                let unmet = waits.filter(|(wait, meant)| !engine.holds(wait, *meant));
                unmet.map(|(wait, _)| *wait).collect()
            });
            servers.push(At {
                queue: server.queue,
                server: number,
                task,
                runs,
                waits: waits.unwrap_or_default(),
            });
        }
        Moment {
            time,
            syncs: program.syncs.iter_enumerated().map(state).collect(),
            servers,
        }
    }
}
