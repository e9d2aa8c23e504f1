//! What tasks do to memory.
//!
//! | module | what |
//! |---|---|
//! | [`moves`] | transfers from and to DRAM, between cores, into the weight buffer |
//! | [`compute`] | a tile: what it touches |
//! | [`arithmetic`] | the numbers of a tile |
//! | [`control`] | instructions without an effect on memory |

pub(crate) mod arithmetic;
pub(crate) mod compute;
pub(crate) mod control;
pub(crate) mod moves;
mod vector;
