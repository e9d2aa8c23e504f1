//! The command line, from the outside.

mod command_line;
mod containers;
mod contracts;
mod device;
mod findings;
mod house;
mod npu;
mod support;
mod targets;
