//! What tasks do to memory.
//!
//! | module | what |
//! |---|---|
//! | [`moves`] | transfers from and to DRAM, between cores, into the weight buffer |
//! | [`tile`] | a tile, and the elements in its buffers |
//! | [`compute`] | a tile as a kernel: what it touches |
//! | [`arithmetic`] | the numbers of a tile |
//! | [`control`] | instructions without an effect on memory |

mod arithmetic;
mod compute;
pub(crate) mod control;
pub(crate) mod moves;
pub(crate) mod tile;
mod vector;
