//! Puts a program together, task by task.

use chipless_model::{
    Action, BuildError, Condition, Counter, Demand, Kernel, Limits, Location, PartId, Program,
    QueueId, Signal, SyncId, TaskId, Time, Wait,
};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};

/// A program in the making. Tasks are added in the order of their queues; a run of them on one queue is a piece.
pub(crate) struct Builder<'p>(chipless_model::Builder<'p>);

impl<'p> Deref for Builder<'p> {
    type Target = chipless_model::Builder<'p>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// A task to be added.
pub(crate) struct NewTask<'t> {
    pub(crate) queue: QueueId,
    pub(crate) waits: &'t [SyncId],
    /// Token that it gives.
    pub(crate) gives: Option<SyncId>,
    pub(crate) demands: &'t [Demand],
    pub(crate) fixed: Time,
    /// Offset in the file.
    pub(crate) at: u32,
    pub(crate) label: Option<Box<str>>,
}

impl<'p> Builder<'p> {
    pub(crate) fn new(limits: &Limits) -> Builder<'p> {
        let mut build = chipless_model::Builder::new("gemini", limits);
        build.part("schedule");
        Builder(build)
    }

    pub(crate) fn queue(&mut self, name: String) -> QueueId {
        self.0.queue(name, 1)
    }

    pub(crate) fn token(&mut self, name: String) -> SyncId {
        self.counter(name, Counter::FLAG)
    }

    /// Adds a task; it is released before the start.
    pub(crate) fn task(
        &mut self,
        task: NewTask<'_>,
        kernel: impl Kernel + 'p,
    ) -> Result<TaskId, BuildError> {
        let waits: SmallVec<[Wait; 4]> = task
            .waits
            .iter()
            .map(|sync| Wait {
                sync: *sync,
                condition: Condition::AtLeast(1),
            })
            .collect();
        let signal = task
            .gives
            .map(|sync| Signal::on_completion(Action::Add(sync, 1)));
        let kernel = self.0.kernel(kernel);
        let id = self.0.task(chipless_model::NewTask {
            queue: task.queue,
            kernel,
            waits: &waits,
            signals: signal.as_slice(),
            demands: task.demands,
            fixed: task.fixed,
            location: Location {
                part: PartId::from_raw(0),
                offset: u64::from(task.at),
                size: 1,
            },
            label: task.label,
        })?;
        match self.program.pieces.last_mut() {
            Some(piece) if piece.queue == task.queue => piece.count += 1,
            _ => {
                self.release(task.queue, id);
            }
        }
        Ok(id)
    }

    pub(crate) fn finish(self) -> Result<Program<'p>, BuildError> {
        self.0.finish()
    }
}

impl Builder<'_> {
    /// Lets the task that was added last give another token.
    pub(crate) fn also_gives(&mut self, task: TaskId, token: SyncId) {
        let program = &mut self.program;
        program
            .signals
            .push(Signal::on_completion(Action::Add(token, 1)));
        program.tasks[task].signals.len += 1;
    }
}
