//! The command line, from the outside.

mod command_line;
mod containers;
mod findings;
mod house;
mod npu;
mod support;
mod targets;
