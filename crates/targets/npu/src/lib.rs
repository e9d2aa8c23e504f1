//! Intel NPU4 (NPU40XX) programs: ELF blobs as the vendor's compiler writes them.
//!
//! A blob is read into a [`Document`], which keeps the file's own structures, loaded into an [`Image`], which places the
//! sections and applies the relocations, and [lowered](lower()) to a [`Program`](chipless_model::Program).

mod address;
mod bytes;
mod dma;
pub mod dpu;
mod dump;
pub mod elf;
mod image;
pub mod inference;
pub mod info;
mod kernels;
mod lower;
mod machine;
pub mod metadata;
pub mod raw;
mod read;
pub mod relocation;
pub mod rules;
mod schedule;
mod section;
pub mod shave;
pub mod trailer;

pub use image::Image;
pub use lower::{Options, lower};
pub use machine::Machine;
pub use read::Document;
pub use shave::KernelTable;
