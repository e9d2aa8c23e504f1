//! Tests of the SPU target through its public door.

mod common;
mod containers;
mod contracts;
mod diagram;
mod drivable;
mod firmware;
mod fixtures;
mod hostile;
mod machine;
mod operations;
mod plans;
mod saved;
