//! The command line, from the outside.

mod calibrated;
mod command_line;
mod containers;
mod contracts;
mod debug;
mod device;
mod documents;
mod editor;
#[cfg(unix)]
mod faults;
mod findings;
mod front_ends;
mod gates;
mod house;
mod machines;
mod neuron;
mod npu;
mod pages;
mod rates;
mod schedules;
mod small;
mod support;
mod targets;
mod time;
mod undefined;
