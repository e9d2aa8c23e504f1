//! What happened in a run: when each task started and ended, and what it waited for.

use chipless_model::{IndexVec, Moment, Program, QueueId, ResourceId, SyncId, TaskId, Time};

/// A run, task by task. A pure function of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// One record for each task.
    pub tasks: IndexVec<TaskId, Record>,
    /// Tasks in the order in which their effects happened.
    pub order: Vec<TaskId>,
    /// When the program reported that it was done, or when the last task ended.
    pub end: Time,
    /// The most released pieces of each queue that no server had taken at a time: what a FIFO of them must hold.
    pub deepest: IndexVec<QueueId, u32>,
}

/// When a task ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Which server of its queue ran it, counted from 0.
    pub server: u32,
    /// When its server reached it.
    pub ready: Time,
    /// When it started.
    pub start: Time,
    /// When it completed.
    pub end: Time,
    /// What kept it from starting when its server reached it.
    pub stall: Option<Stall>,
    /// Whether it started and completed.
    pub state: State,
}

/// The last thing that a task waited for before it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The synchronisation object.
    pub sync: SyncId,
    /// The task whose signal ended the wait; `None` while it still waits.
    pub by: Option<TaskId>,
}

/// How far a task came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Never started.
    #[default]
    Waiting,
    /// Started, not completed.
    Running,
    /// Completed.
    Done,
}

impl Timeline {
    /// Time that each queue spent on tasks; overlapping servers count once each.
    pub fn busy(&self, program: &Program<'_>) -> IndexVec<QueueId, Time> {
        let mut busy: IndexVec<QueueId, Time> = program.queues.iter().map(|_| Time::ZERO).collect();
        for (task, record) in self.tasks.iter_enumerated() {
            if record.state == State::Done {
                busy[program.tasks[task].queue] += record.end - record.start;
            }
        }
        busy
    }

    /// Bytes that completed tasks asked of each shared resource.
    pub fn carried(&self, program: &Program<'_>) -> IndexVec<ResourceId, u64> {
        let mut carried: IndexVec<ResourceId, u64> = program.resources.iter().map(|_| 0).collect();
        for (task, record) in self.tasks.iter_enumerated() {
            if record.state == State::Done {
                for demand in program.demands(task) {
                    carried[demand.resource] += demand.bytes;
                }
            }
        }
        carried
    }

    /// When the effect of a task happened: at its start if it signals that it has read its sources, otherwise at its end.
    pub fn effect(&self, program: &Program<'_>, task: TaskId) -> Time {
        let signals = program.signals(task);
        let record = &self.tasks[task];
        if signals.iter().any(|s| s.moment == Moment::Read) {
            record.start
        } else {
            record.end
        }
    }

    /// How many tasks completed.
    pub fn completed(&self) -> usize {
        let is_done = |record: &&Record| record.state == State::Done;
        self.tasks.iter().filter(is_done).count()
    }
}
