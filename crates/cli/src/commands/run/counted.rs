//! A run whose tasks are counted while it lasts.

use crate::progress::Bar;
use chipless_model::{Fault, Program, TaskId};
use chipless_sim::Effects;

/// Effects, with a bar that shows how many have happened.
pub(super) struct Counted<'b, E> {
    effects: E,
    bar: &'b Bar,
    done: u64,
}

impl<'b, E: Effects> Counted<'b, E> {
    pub(super) const fn new(effects: E, bar: &'b Bar) -> Counted<'b, E> {
        Counted {
            effects,
            bar,
            done: 0,
        }
    }
}

impl<E: Effects> Effects for Counted<'_, E> {
    fn apply(&mut self, program: &Program<'_>, task: TaskId) -> Result<(), Fault> {
        self.effects.apply(program, task)?;
        self.done += 1;
        self.bar.at(self.done, program.tasks.len() as u64, "");
        Ok(())
    }

    fn started(&mut self, program: &Program<'_>, task: TaskId) {
        self.effects.started(program, task);
    }
}
