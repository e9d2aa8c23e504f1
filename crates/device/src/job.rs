//! A job on its way through the device, and what its time went into.

use crate::arrivals::Link;
use crate::fifos::Fifo;
use crate::states::Alone;
use crate::synthetic::Synthetic;
use chipless_sim::InstanceId;
use schemars::JsonSchema;
use serde::Serialize;
use std::rc::Rc;

/// Time of a job in picoseconds by what it went into. The sum is the time from arrival to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Breakdown {
    /// Before the push, and after the completion.
    pub host: i64,
    /// Refused pushes and the doorbell.
    pub ring: i64,
    /// The wait for its place.
    pub scheduler: i64,
    /// Before the first task and after the last.
    pub firmware: i64,
    /// Nothing else went on than walks of page tables.
    pub translation: i64,
    /// What sharing and the cache add; less than nothing where the cache helps.
    pub memory: i64,
    /// The program alone on the device.
    pub execution: i64,
    /// The wait for its place after it gave it up, and what a reset undid.
    pub preempted: i64,
    /// Saving and restoring its state.
    pub save_restore: i64,
}

impl Breakdown {
    /// The parts in the order of their names above.
    pub const fn parts(&self) -> [i64; 9] {
        [
            self.host,
            self.ring,
            self.scheduler,
            self.firmware,
            self.translation,
            self.memory,
            self.execution,
            self.preempted,
            self.save_restore,
        ]
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It came to its end.
    Done,
    /// It touched an address that is not mapped.
    Fault,
    /// It did not go on.
    Hang,
    /// It had to leave its place, and did not in time.
    Timeout,
    /// A job of its context before it failed.
    Aborted,
    /// Its ring was full for too long.
    Rejected,
}

/// A time at which a job had to give up its place.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Preemption {
    /// When it was asked to.
    pub request_ps: u64,
    /// Until what was in flight had ended.
    pub drain_ps: u64,
    /// Until its state was saved.
    pub save_ps: u64,
    /// When it went on, restored; missing where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_ps: Option<u64>,
    /// The context that it made room for.
    pub by: String,
}

/// A job that has left, as `--jobs` writes it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Record {
    /// Its stream.
    pub stream: String,
    /// Which job of the stream.
    pub index: u64,
    /// Its context.
    pub context: String,
    /// How it ended.
    pub status: Status,
    /// When it came.
    pub arrival_ps: u64,
    /// When it was in the ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_ps: Option<u64>,
    /// When its first task could start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ps: Option<u64>,
    /// When its last task had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ps: Option<u64>,
    /// When it left.
    pub done_ps: u64,
    /// What its time went into.
    pub breakdown_ps: Breakdown,
    /// When it had to make room.
    pub preemptions: Vec<Preemption>,
    /// Start and end of each task of a synthetic program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<(u64, u64)>>,
}

/// Where a job is. Each phase but the last two belongs to one part of the breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Submitting,
    Refused,
    Ringing,
    Waiting,
    /// Its place is gone, its state saved.
    Preempted,
    Starting,
    Restoring,
    Running,
    Saving,
    Completing,
    Returning,
    /// The engine is being reset, after which it starts again.
    Resetting,
}

/// A live job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) stream: usize,
    pub(crate) index: u64,
    pub(crate) link: Link,
    pub(crate) arrival: u64,
    pub(crate) push: Option<u64>,
    pub(crate) first_push: u64,
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) phase: Phase,
    /// When the phase began.
    pub(crate) since: u64,
    /// Changes with the phase: timers of former phases are void.
    pub(crate) stamp: u64,
    /// Changes when the program starts again: events of former runs are void.
    pub(crate) epoch: u64,
    /// The clock that it began with.
    pub(crate) clock: Option<usize>,
    pub(crate) spent: Breakdown,
    /// Time in which its tasks could run.
    pub(crate) ran: u64,
    /// Of these, time in which nothing went on but walks.
    pub(crate) walked: u64,
    pub(crate) preemptions: Vec<Preemption>,
    /// When and for which context it was asked to leave its place.
    pub(crate) leaving: Option<(u64, usize)>,
    /// Whether its program has begun.
    pub(crate) has_begun: bool,
    /// Numbers jobs in the order in which they came to the scheduler.
    pub(crate) number: u64,
    pub(crate) placed: u64,
    pub(crate) status: Status,
    pub(crate) body: Body,
}

/// The run of its program.
#[derive(Debug)]
pub(crate) enum Body {
    /// Not begun.
    None,
    Synthetic(Box<Run>),
    /// Alone since an instant: it ends as it does on an idle device.
    Alone(u64, Rc<Alone>),
    /// In the world, with others or after a preemption.
    Live(InstanceId),
}

/// A synthetic program under way.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) queues: Vec<Place>,
    /// FIFOs that its program names. Those that are shared stand in the device.
    pub(crate) fifos: Vec<Fifo>,
    /// Repetitions of each task that have ended.
    pub(crate) done: Vec<u64>,
    /// Tasks and lists that have not.
    pub(crate) left: u64,
    /// Tasks and lists that have started and not ended; of these, those that hang and those that wait for walks.
    pub(crate) in_flight: u64,
    pub(crate) hanging: u64,
    pub(crate) walking: u64,
    /// Since when nothing but walks has gone on.
    pub(crate) walks_since: Option<u64>,
    /// Since when nothing has been in flight that can end.
    pub(crate) hangs_since: Option<u64>,
    pub(crate) times: Option<Vec<(u64, u64)>>,
}

/// Where a queue of a synthetic program stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Index into the queue's tasks, and repetition.
    pub(crate) task: u32,
    pub(crate) repetition: u64,
    pub(crate) busy: bool,
}

impl Run {
    pub(crate) fn new(program: &Synthetic, with_times: bool) -> Run {
        let count = program.count();
        Run {
            queues: vec![Place::default(); program.queues.len()],
            fifos: program.fifos.iter().map(|_| Fifo::default()).collect(),
            done: vec![0; program.tasks.len()],
            left: count + program.entries(),
            in_flight: 0,
            hanging: 0,
            walking: 0,
            walks_since: None,
            hangs_since: None,
            times: with_times.then(|| vec![(0, 0); count as usize]),
        }
    }
}
