//! A functional run as a sequence of effects, with a place in it that moves forwards and backwards.

use crate::undo::{BUDGET, Log, Record};
use chipless_model::{Fault, IndexVec, Program, QueueId, Storage, TaskId, Time};
use chipless_sim::{
    Effects, Functional, Moment, Order, Outcome, Stop, Timeline, TimingOnly, Verified, run_in,
};
use std::cell::OnceCell;

/// A run that stands before one of its effects. When tasks run does not depend on data, so the order of all effects is known from
/// the start, and the state before effect `k` is a function of program, inputs, order and `k`.
pub struct Session<'p, 'a> {
    program: &'p Program<'a>,
    order: Order,
    timeline: Timeline,
    end: Result<(), Stop>,
    /// The number of each task's effect; `None` of tasks that never come to theirs.
    effect_of: IndexVec<TaskId, Option<u32>>,
    storage: Storage<'a>,
    at: usize,
    log: Log,
    /// Syncs and servers at the present, once somebody asks.
    moment: OnceCell<Moment>,
}

impl<'p, 'a> Session<'p, 'a> {
    /// At the start, with the inputs in the storage.
    pub fn new(program: &Verified<'p, 'a>, order: Order, storage: Storage<'a>) -> Session<'p, 'a> {
        Session::with_budget(program, order, storage, BUDGET)
    }

    /// The same; the way back keeps so many bytes.
    pub fn with_budget(
        program: &Verified<'p, 'a>,
        order: Order,
        storage: Storage<'a>,
        budget: usize,
    ) -> Session<'p, 'a> {
        let Outcome { timeline, end } = run_in(program, order, &mut TimingOnly);
        let program = program.program();
        let mut effect_of: IndexVec<TaskId, Option<u32>> =
            program.tasks.iter().map(|_| None).collect();
        for (effect, task) in timeline.order.iter().enumerate() {
            effect_of[*task] = Some(effect as u32);
        }
        Session {
            program,
            order,
            timeline,
            end,
            effect_of,
            storage,
            at: 0,
            log: Log::new(budget),
            moment: OnceCell::new(),
        }
    }

    /// The program.
    pub const fn program(&self) -> &'p Program<'a> {
        self.program
    }

    /// The bytes at present.
    pub const fn storage(&self) -> &Storage<'a> {
        &self.storage
    }

    /// When everything happens.
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The number of the effect that comes next; that of effects at the end.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// How many effects the run has.
    pub const fn effects(&self) -> usize {
        self.timeline.order.len()
    }

    /// Why the run ends before its program does.
    pub const fn end(&self) -> Option<&Stop> {
        match &self.end {
            Ok(()) => None,
            Err(stop) => Some(stop),
        }
    }

    /// The task of an effect.
    pub fn task(&self, effect: usize) -> Option<TaskId> {
        self.timeline.order.get(effect).copied()
    }

    /// The task whose effect comes next; `None` at the end.
    pub fn current(&self) -> Option<TaskId> {
        self.task(self.at)
    }

    /// The number of a task's effect.
    pub fn effect_of(&self, task: TaskId) -> Option<usize> {
        self.effect_of[task].map(|effect| effect as usize)
    }

    /// The simulated time at present; `None` in an order whose times mean nothing.
    pub fn time(&self) -> Option<Time> {
        (self.order == Order::Timed).then(|| self.instant())
    }

    /// The instant of the timeline, whatever the order.
    pub(crate) fn instant(&self) -> Time {
        match self.current() {
            Some(task) => self.timeline.effect(self.program, task),
            None => self.timeline.end,
        }
    }

    /// Syncs and servers at present.
    pub fn moment(&self) -> &Moment {
        self.moment
            .get_or_init(|| Moment::of(&Verified::assume(self.program), self.order, self.at))
    }

    /// Lets the next effect happen; nothing at the end.
    ///
    /// # Errors
    /// The task cannot be executed. The bytes are then those before it, and so is the place.
    pub fn forward(&mut self) -> Result<(), Fault> {
        let Some(task) = self.current() else {
            return Ok(());
        };
        let record = Record::before(self.program, task, &self.storage);
        if let Err(fault) = Functional::new(&mut self.storage).apply(self.program, task) {
            record.restore(&mut self.storage);
            return Err(fault);
        }
        self.log.push(record);
        self.arrive(self.at + 1);
        Ok(())
    }

    fn arrive(&mut self, at: usize) {
        self.at = at;
        self.moment.take();
    }

    /// Takes the last effect back; nothing at the start.
    pub fn back(&mut self) {
        if let Some(before) = self.at.checked_sub(1) {
            // What has been executed once is executed again without a fault.
            let _ = self.goto(before);
        }
    }

    /// Goes to the moment before an effect, or to the end.
    ///
    /// # Errors
    /// A task before it cannot be executed: the session stands before that task.
    pub fn goto(&mut self, effect: usize) -> Result<(), Fault> {
        let effect = effect.min(self.effects());
        while self.at > effect {
            match self.log.back(&mut self.storage) {
                Some(at) => self.arrive(at),
                None => break,
            }
        }
        while self.at < effect {
            self.forward()?;
        }
        Ok(())
    }

    /// The next effect of a queue from a number on.
    pub fn next_of(&self, queue: QueueId, from: usize) -> Option<usize> {
        let later = self.timeline.order.iter().enumerate().skip(from);
        later
            .filter(|(_, task)| self.program.tasks[**task].queue == queue)
            .map(|(effect, _)| effect)
            .next()
    }

    /// The last effect of a queue before a number.
    pub fn previous_of(&self, queue: QueueId, before: usize) -> Option<usize> {
        let earlier = &self.timeline.order[..before.min(self.effects())];
        let is_of_queue = |task: &TaskId| self.program.tasks[*task].queue == queue;
        earlier.iter().rposition(is_of_queue)
    }
}
