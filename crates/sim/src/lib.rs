//! The engine of Chipless: runs the tasks of a [`Program`](chipless_model::Program) in simulated time.
//!
//! [`run`] serves functional and timing runs alike: what a task does to memory is the business of the [`Effects`] that
//! it is given. The result is a [`Timeline`], the same for every run of the same program.

mod deadlock;
mod diagnosis;
mod effects;
mod engine;
mod resource;
mod timeline;

pub use deadlock::{Deadlock, Stuck};
pub use diagnosis::{Nonfinite, nonfinite, nonfinite_element, origin};
pub use effects::{Effects, Functional, TimingOnly};
pub use engine::{Order, Outcome, Stop, run, run_in};
pub use timeline::{Record, Stall, State, Timeline};
