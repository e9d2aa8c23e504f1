//! One program, run again and again on the same bytes.

use crate::effects::{TimingOnly, accesses_fit};
use crate::engine::{Order, Stop};
use crate::verified::Verified;
use crate::world::run_in;
use chipless_model::{IndexVec, KernelId, Program, Storage, TaskId};

/// A program with its bytes. Each run finds what the one before has left: state is kept, and inputs keep their bytes until they are
/// given others. Runs keep no time; that of one is [`run`](crate::run)'s with [`TimingOnly`].
///
/// When a task runs does not depend on data, so all runs of the [timed](Order::Timed) order have the same one. It is found once.
#[derive(Debug)]
pub struct Session<'p, 'a> {
    program: &'p Program<'a>,
    storage: Storage<'a>,
    order: Order,
    /// Tasks in the order of their effects, for the next run.
    effects: Option<Vec<TaskId>>,
    /// Kernels whose accesses are known to fit their buffers.
    fits: IndexVec<KernelId, bool>,
}

/// Some tasks of a program: those that one of its sequences runs.
#[derive(Clone, Debug)]
pub struct Part(IndexVec<TaskId, bool>);

impl Part {
    /// These tasks; what they wait for is taken to have happened in runs before.
    pub fn new(program: &Program<'_>, tasks: impl IntoIterator<Item = TaskId>) -> Part {
        let mut part: IndexVec<TaskId, bool> = program.tasks.iter().map(|_| false).collect();
        for task in tasks {
            part[task] = true;
        }
        Part(part)
    }
}

impl<'p, 'a> Session<'p, 'a> {
    /// At the start. The bytes are the program's own.
    pub fn new(program: &Verified<'p, 'a>, storage: Storage<'a>) -> Session<'p, 'a> {
        let program = program.program();
        Session {
            program,
            storage,
            order: Order::Timed,
            effects: None,
            fits: program.kernels.iter().map(|_| false).collect(),
        }
    }

    /// Runs are in this order from now on; of random orders, each run has another one.
    pub fn set_order(&mut self, order: Order) {
        (self.order, self.effects) = (order, None);
    }

    /// The program.
    pub const fn program(&self) -> &'p Program<'a> {
        self.program
    }

    /// The bytes.
    pub const fn storage(&self) -> &Storage<'a> {
        &self.storage
    }

    /// The bytes, to give inputs others.
    pub const fn storage_mut(&mut self) -> &mut Storage<'a> {
        &mut self.storage
    }

    /// Back to the start: all bytes but constants as the program has them then.
    pub fn reset(&mut self) {
        self.storage.reset(&self.program.buffers);
    }

    /// Runs every task once.
    ///
    /// # Errors
    /// The program gets stuck, or a task cannot be executed: those before it have been.
    pub fn run(&mut self) -> Result<(), Stop> {
        self.execute(|_| true)
    }

    /// Runs every task of a part once.
    ///
    /// # Errors
    /// As of [`run`](Session::run).
    pub fn run_part(&mut self, part: &Part) -> Result<(), Stop> {
        self.execute(|task| part.0[task])
    }

    fn execute(&mut self, runs: impl Fn(TaskId) -> bool) -> Result<(), Stop> {
        let effects = if let Some(effects) = self.effects.take() {
            effects
        } else {
            let outcome = run_in(&Verified::assume(self.program), self.order, &mut TimingOnly);
            outcome.end?;
            outcome.timeline.order
        };
        let done = effects
            .iter()
            .copied()
            .filter(|task| runs(*task))
            .try_for_each(|task| {
                let kernel = self.program.tasks[task].kernel;
                let fault = |fault| Stop::Fault { task, fault };
                if !self.fits[kernel] {
                    accesses_fit(self.program, task).map_err(fault)?;
                    self.fits[kernel] = true;
                }
                self.program.kernels[kernel]
                    .execute(&mut self.storage)
                    .map_err(fault)
            });
        match &mut self.order {
            Order::Timed | Order::Late(_) => self.effects = Some(effects),
            Order::Random(seed) => *seed = seed.wrapping_add(1),
        }
        done
    }
}
