//! What keeps a task from being executed, found while it is made: what a tile needs and no buffer holds, and transfers whose bytes nobody knows how to
//! lay out.
//!
//! The kernels say the same when they come to it. A check that asks for it here is clean if and only if the run is.

use chipless_model::{Finding, Lint, Program, Rule, TaskId};

/// Findings that are kept; the verifier shows far fewer of a kind.
const MOST: usize = 1 << 10;

/// What tasks lack.
#[derive(Debug, Default)]
pub(crate) struct Lacks(Vec<(TaskId, &'static Rule, String)>);

impl Lacks {
    pub(crate) fn add(&mut self, task: TaskId, rule: &'static Rule, message: String) {
        if self.0.len() < MOST {
            self.0.push((task, rule, message));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Lint for Lacks {
    fn check(&self, program: &Program<'_>) -> Vec<Finding> {
        let lacks = self.0.iter();
        lacks
            .map(|(task, rule, message)| rule.at(program.place(*task), message.clone()))
            .collect()
    }
}
