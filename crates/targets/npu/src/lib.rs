//! Intel NPU4 programs.

pub mod shave;
