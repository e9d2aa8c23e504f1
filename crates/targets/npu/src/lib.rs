//! Intel NPU4 blobs: read, lower, execute.

pub mod dump;
pub mod elf;
pub mod image;
pub mod inference;
pub mod info;
pub mod metadata;
pub mod raw;
pub mod read;
pub mod relocation;
pub mod rules;
pub mod section;
pub mod trailer;
