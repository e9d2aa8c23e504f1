//! The engine through its public door.

mod diagnosis;
mod engine;
