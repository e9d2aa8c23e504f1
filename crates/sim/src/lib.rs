//! The engine of Chipless: runs the tasks of a [`Program`](chipless_model::Program) in simulated time.
//!
//! [`run`] serves functional and timing runs alike: what a task does to memory is the business of the [`Effects`] that
//! it is given. The result is a [`Timeline`], the same for every run of the same program. A [`Session`] runs a program many
//! times on bytes that outlive a run. A [`World`] holds many runs at once on one clock: each can be halted between
//! tasks, go on, or be aborted, and what they share is [`Outside`]. A [`Moment`] is the state of syncs and
//! servers in the middle of a run.
//!
//! What is run has been verified, or is explicitly taken for good:
//!
//! ```
//! use chipless_sim::{TimingOnly, Verified, run};
//! let program = chipless_model::Program::default();
//! assert!(run(&Verified::assume(&program), &mut TimingOnly).end.is_ok());
//! ```
//!
//! A program alone is neither:
//!
//! ```compile_fail
//! use chipless_sim::{TimingOnly, run};
//! let program = chipless_model::Program::default();
//! run(&program, &mut TimingOnly);
//! ```

mod deadlock;
mod diagnosis;
mod effects;
mod engine;
mod moment;
mod outside;
mod resource;
mod session;
mod side_by_side;
mod stage;
mod timeline;
mod verified;
mod world;

pub use deadlock::{Deadlock, Stuck};
pub use diagnosis::{
    Nonfinite, NonfiniteKind, clipped, nonfinite, nonfinite_element, nonfinite_of, origin,
};
pub use effects::{Effects, Functional, TimingOnly};
pub use engine::{Order, Outcome, Stop};
pub use moment::{At, Moment, SyncState};
pub use outside::{InstanceId, Outside};
pub use session::{Part, Session};
pub use timeline::{Record, Stall, State, Timeline};
pub use verified::Verified;
pub use world::{Stopped, World, run, run_in};
