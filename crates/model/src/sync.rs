//! What tasks wait for and how they signal.

use crate::finding::Place;
use crate::id::{ConfigurationId, PieceId, SyncId};

/// A synchronisation object. Semantics in the [crate docs](crate#synchronisation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// As the field names it: `barrier 12`, `S[45]`.
    pub name: String,
    /// What it is.
    pub kind: SyncKind,
}

/// The kinds of synchronisation object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// A number: a semaphore, an event, a token.
    Counter(Counter),
    /// Producer and consumer counts with a FIFO of configurations.
    Barrier {
        /// Configurations in the FIFO at the start, first one active.
        preloaded: Vec<ConfigurationId>,
        /// Configurations that the FIFO holds besides the active one; pushing beyond is a fault. `None`: no bound.
        depth: Option<u32>,
    },
}

/// A number in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Value at the start.
    pub initial: i64,
    /// Smallest legal value.
    pub low: i64,
    /// Largest legal value.
    pub high: i64,
}

impl Counter {
    /// An event, or a token of data that becomes available once: 0, then 1.
    pub const FLAG: Counter = Counter::up_to(1);

    /// Counts from 0 to this value.
    pub const fn up_to(high: i64) -> Counter {
        Counter {
            initial: 0,
            low: 0,
            high,
        }
    }

    /// Its value after a signal that adds `n`; `None` where that leaves the range.
    pub fn after(&self, value: i64, n: i64) -> Option<i64> {
        let value = value.checked_add(n)?;
        (self.low..=self.high).contains(&value).then_some(value)
    }
}

/// One use of a barrier: it is lit when `producers` signals came, and retires when `consumers` tasks have consumed it as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Which barrier.
    pub barrier: SyncId,
    /// The number by which the program knows this use (the NPU's virtual barrier).
    pub number: u32,
    /// Signals until it is lit.
    pub producers: u32,
    /// Tasks that consume it.
    pub consumers: u32,
    /// Pieces of queues released when it retires, after the next configuration became active.
    pub releases: Vec<PieceId>,
    /// Where the file says so.
    pub place: Place,
}

/// What a wait compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A counter has this value.
    Equal(i64),
    /// A counter has at least this value.
    AtLeast(i64),
    /// A barrier has an active configuration and its producer count is zero.
    Lit,
}

impl Condition {
    /// Whether a counter of this value meets it. No value meets a condition of barriers.
    #[inline]
    pub const fn is_met_by(self, value: i64) -> bool {
        match self {
            Condition::Equal(n) => value == n,
            Condition::AtLeast(n) => value >= n,
            Condition::Lit => false,
        }
    }
}

/// One condition that a task needs before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// On what.
    pub sync: SyncId,
    /// Until when.
    pub condition: Condition,
}

/// When a signal is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// When the task has taken its sources.
    Read,
    /// When the task's effect on memory has happened.
    Completion,
}

/// What a signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Adds to a counter; negative subtracts.
    Add(SyncId, i64),
    /// Counts one consumer of a barrier's active configuration down.
    Consume(SyncId),
    /// Counts one producer of a barrier's active configuration down.
    Produce(SyncId),
    /// Pushes a configuration into the FIFO of its barrier.
    Configure(ConfigurationId),
    /// Releases a piece of a queue.
    Release(PieceId),
}

/// One signal of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signal {
    /// When.
    pub moment: Moment,
    /// What.
    pub action: Action,
}

impl Signal {
    /// A signal at completion.
    pub const fn on_completion(action: Action) -> Signal {
        Signal {
            moment: Moment::Completion,
            action,
        }
    }

    /// A signal when the sources have been taken.
    pub const fn on_read(action: Action) -> Signal {
        Signal {
            moment: Moment::Read,
            action,
        }
    }
}
