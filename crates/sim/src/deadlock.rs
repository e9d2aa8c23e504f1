//! Why nothing moves: every stuck queue, what its task waits for, who should have signalled it, and the cycle if there is one.

use chipless_model::{QueueId, TaskId, Wait};

/// A state in which nothing can move and work is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Tasks that stand at the head of a server and cannot start.
    pub stuck: Vec<Stuck>,
    /// Queues with tasks that were never released, and how many.
    pub unreleased: Vec<(QueueId, usize)>,
    /// Tasks that wait for each other in a ring: each one waits for a signal of the next, directly or behind it in its queue.
    pub cycle: Vec<TaskId>,
}

/// A task that cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The task.
    pub task: TaskId,
    /// Conditions that do not hold, each with the state of its sync in words.
    pub waits: Vec<(Wait, String)>,
    /// Tasks that have not run and whose signals the conditions need.
    pub missing: Vec<TaskId>,
}
