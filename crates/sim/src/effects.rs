//! What a task does to the outside of the engine: nothing, or its effect on memory.

use crate::side_by_side::SideBySide;
use crate::verified::Verified;
use chipless_model::{Certainty, Fault, Program, Storage, TaskId};

/// Called at the instant at which a task's effect on memory happens.
pub trait Effects {
    /// Applies the effect of a task.
    fn apply(&mut self, program: &Program<'_>, task: TaskId) -> Result<(), Fault>;

    /// A task has started: whatever it waits for has happened. Its effect follows.
    fn started(&mut self, program: &Program<'_>, task: TaskId) {
        let _ = (program, task);
    }
}

/// Leaves the bytes alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimingOnly;

impl Effects for TimingOnly {
    fn apply(&mut self, _: &Program<'_>, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }
}

/// Executes every task on the bytes of a storage.
#[derive(Debug)]
pub struct Functional<'s, 'a> {
    storage: &'s mut Storage<'a>,
    observe: Option<Observer<'s>>,
    /// Whether it is known that what tasks touch lies in their buffers.
    fits: bool,
    side_by_side: Option<SideBySide>,
}

struct Observer<'s>(&'s mut dyn FnMut(TaskId, &Storage<'_>));

impl std::fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

impl<'s, 'a> Functional<'s, 'a> {
    /// Executes on these bytes.
    pub fn new(storage: &'s mut Storage<'a>) -> Functional<'s, 'a> {
        Functional {
            storage,
            observe: None,
            fits: false,
            side_by_side: None,
        }
    }

    /// For this program alone: what was proven of it is not looked at again, task by task.
    #[must_use]
    pub fn of(mut self, program: &Verified<'_, '_>) -> Functional<'s, 'a> {
        self.fits = program.is_proven();
        self
    }

    /// Computes tasks that run at once on the threads of the pool, one of which is the caller's, if the program was [proven](Functional::of).
    #[must_use]
    pub fn side_by_side(mut self) -> Functional<'s, 'a> {
        let is_shared = self.fits && rayon::current_num_threads() > 1;
        self.side_by_side = is_shared.then(SideBySide::default);
        self
    }

    /// Calls back after each task, with the bytes as it left them: tasks are computed one after the other then.
    #[must_use]
    pub fn observed_by(
        mut self,
        observe: &'s mut dyn FnMut(TaskId, &Storage<'_>),
    ) -> Functional<'s, 'a> {
        self.observe = Some(Observer(observe));
        self.side_by_side = None;
        self
    }
}

/// Whether every access of a task fits its buffer.
pub(crate) fn accesses_fit(program: &Program<'_>, task: TaskId) -> Result<(), Fault> {
    let mut outside = None;
    program.kernel(task).accesses(&mut |access| {
        let buffer = &program.buffers[access.buffer];
        // What data decides is a bound that may reach further than the data does; the kernel checks those itself.
        if access.certainty == Certainty::Exact
            && outside.is_none()
            && !access.pattern.fits(buffer.size)
        {
            let extent = access.pattern.extent();
            outside = Some(Fault::program(format!(
                "{:?} of {} bytes {:#x}..{:#x}, which has {:#x}",
                access.direction, buffer.name, extent.start, extent.end, buffer.size
            )));
        }
    });
    outside.map_or(Ok(()), Err)
}

impl Effects for Functional<'_, '_> {
    fn apply(&mut self, program: &Program<'_>, task: TaskId) -> Result<(), Fault> {
        if let Some(side_by_side) = &mut self.side_by_side
            && let Some(done) = side_by_side.effect(program, task, self.storage)
        {
            return done;
        }
        if !self.fits {
            accesses_fit(program, task)?;
        }
        self.storage.enter(task);
        program.kernel(task).execute(self.storage)?;
        if let Some(Observer(observe)) = &mut self.observe {
            observe(task, self.storage);
        }
        Ok(())
    }

    fn started(&mut self, program: &Program<'_>, task: TaskId) {
        if let Some(side_by_side) = &mut self.side_by_side {
            side_by_side.started(program, task);
        }
    }
}

impl<E: Effects> Effects for &mut E {
    fn apply(&mut self, program: &Program<'_>, task: TaskId) -> Result<(), Fault> {
        (**self).apply(program, task)
    }

    fn started(&mut self, program: &Program<'_>, task: TaskId) {
        (**self).started(program, task);
    }
}
