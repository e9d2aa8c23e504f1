//! Happens-before, as vector clocks over one legal order.

use crate::clock::{Clock, Point};
use crate::semaphore::History;
use chipless_model::{IndexVec, SyncId, TaskId};

/// Tasks that [`Settled`] looks at together.
const STEP: usize = 16;

/// Position of a task that did not run.
pub(crate) const NOT_RUN: u32 = u32::MAX;

/// How the reference order ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// All tasks ran.
    #[default]
    Done,
    /// Nothing could move.
    Stuck,
    /// A signal was a fault.
    Fault,
}

/// One legal order of the tasks, and what comes before each in every legal order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Tasks as they ran, one after the other.
    pub(crate) sequence: Vec<TaskId>,
    pub(crate) thread: IndexVec<TaskId, u32>,
    /// Position in the thread.
    pub(crate) position: IndexVec<TaskId, u32>,
    pub(crate) rows: Vec<u32>,
    /// First entry and entries of the clock of a task's start.
    pub(crate) row: IndexVec<TaskId, (usize, u32)>,
    pub(crate) histories: IndexVec<SyncId, History>,
    /// What comes before the report that the program is done.
    pub(crate) completion: Option<Clock>,
    pub(crate) threads: usize,
    pub(crate) end: End,
}

impl Order {
    pub(crate) fn ran(&self, task: TaskId) -> bool {
        self.position[task] != NOT_RUN
    }

    /// What comes before the start of a task.
    pub(crate) fn start(&self, task: TaskId) -> &[u32] {
        let (first, length) = self.row[task];
        &self.rows[first..first + length as usize]
    }

    /// What comes before all that is left to run, for each place of the sequence.
    pub(crate) fn settled(&self) -> Settled {
        let mut common: Option<Clock> = None;
        let mut steps: Vec<Clock> = Vec::new();
        for tasks in self.sequence.chunks(STEP).rev() {
            for start in tasks.iter().map(|task| self.start(*task)) {
                let common = common.get_or_insert_with(|| start.to_vec());
                common.truncate(start.len());
                for (common, epoch) in common.iter_mut().zip(start) {
                    *common = (*common).min(*epoch);
                }
            }
            steps.extend(common.clone());
        }
        steps.reverse();
        Settled(steps)
    }

    /// The point at which a task has taken its sources.
    pub(crate) fn read(&self, task: TaskId) -> Point {
        Point {
            thread: self.thread[task],
            epoch: 2 * self.position[task] + 1,
        }
    }

    /// The point at which a task completes.
    pub(crate) fn completion(&self, task: TaskId) -> Point {
        Point {
            thread: self.thread[task],
            epoch: 2 * self.position[task] + 2,
        }
    }
}

/// Points that come before every task from some place of the sequence on, for every few places: nothing that is left to run races with
/// what ends there.
#[derive(Debug)]
pub(crate) struct Settled(Vec<Clock>);

impl Settled {
    /// What comes before the task at this place of the sequence and all later ones, as far as that is known.
    pub(crate) fn at(&self, place: usize) -> &[u32] {
        self.0.get(place / STEP).map_or(&[], Vec::as_slice)
    }
}
