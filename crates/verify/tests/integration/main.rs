//! What this crate promises to others, tested through its public door. One binary: building tests is what costs.

mod brute_force;
mod doubtful;
mod explore;
mod lanes;
mod late;
mod layout;
mod mutants;
mod orders;
mod races;
mod rates;
mod refusals;
mod turns;
