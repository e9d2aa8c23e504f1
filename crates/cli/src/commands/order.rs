//! `--order`: which of its legal orders a program runs in.

use super::Opened;
use super::list::task_named;
use crate::failure::Failure;
use chipless_model::Program;
use chipless_sim::Order;
use std::str::FromStr;

/// How help shows the values.
pub(crate) const ORDERS: &str = "timed|random:SEED|late:TASK";

/// An order as it is asked for: tasks have names before there is a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// That of the simulated times.
    Timed,
    /// Any, by a seed.
    Random(u64),
    /// That in which this task comes as late as it can.
    Late(String),
}

impl FromStr for Asked {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Asked, &'static str> {
        match text.split_once(':') {
            None if text == "timed" => Some(Asked::Timed),
            Some(("random", seed)) => seed.parse().ok().map(Asked::Random),
            Some(("late", task)) if !task.is_empty() => Some(Asked::Late(task.to_owned())),
            _ => None,
        }
        .ok_or(
            "expected `timed`, `random:` and a whole number, or `late:` and a task such as dpu0[3]",
        )
    }
}

impl Asked {
    /// The order of a program.
    pub(crate) fn of(&self, opened: &Opened, program: &Program<'_>) -> Result<Order, Failure> {
        Ok(match self {
            Asked::Timed => Order::Timed,
            Asked::Random(seed) => Order::Random(*seed),
            Asked::Late(task) => Order::Late(task_named(opened, program, task, "a task")?),
        })
    }
}
