//! What this crate promises to others, tested through its public door. One binary: building tests is what costs.

mod common;
mod cores;
mod fixtures;
mod hostile;
mod indices;
mod instructions;
mod integers;
mod lowering;
mod mends;
mod microscaled;
mod movements;
mod profile;
mod registers;
mod rules;
mod run;
mod silicon;
mod streams;
