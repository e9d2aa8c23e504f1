//! A debugger for compiled accelerator programs that goes backwards.
//!
//! A functional run is a sequence of *effects*, the instants at which tasks take hold of memory. A [`Session`] stands before one of them and
//! moves in both directions; a [`Debugger`] stops it at breakpoints, watched bytes, NaN and faults; a [`Console`] takes commands in gdb's
//! words. Above it are three faces: [`script`] for automation, [`dap`] for editors, [`terminal`] for people.

mod command;
mod debugger;
mod expression;
mod listing;
mod place;
mod session;
mod tensor;
mod touches;
mod undo;

pub mod dap;
pub mod script;
pub mod terminal;

pub use command::{Answer, Console};
pub use debugger::{Breakpoint, Catch, Debugger, Reason, Stop};
pub use expression::{Expression, Value};
pub use place::{Place, Selection};
pub use session::Session;
pub use tensor::{Index, Tensor};
pub use touches::{Bytes, Kind};
pub use undo::BUDGET;
