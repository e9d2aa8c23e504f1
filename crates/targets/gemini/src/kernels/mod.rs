//! What tasks do to memory.
//!
//! | module | what |
//! |---|---|
//! | [`moves`] | transfers from and to DRAM, between cores, into the weight buffer |
//! | [`compute`] | a tile |
//! | [`control`] | instructions without an effect on memory |

pub(crate) mod compute;
pub(crate) mod control;
pub(crate) mod moves;
