//! Intel NPU4 (NPU40XX) programs: ELF blobs as the vendor's compiler writes them.
//!
//! A blob is read into a [`Document`], which keeps the file's own structures, loaded into an [`Image`], which places the
//! sections and applies the relocations, and [lowered](lower()) to a [`Program`](chipless_model::Program).

mod address;
mod bytes;
mod dma;
pub mod document;
pub mod dpu;
pub mod elf;
pub mod generation;
pub mod image;
pub mod inference;
pub mod info;
mod kernels;
mod lint;
mod lower;
mod machine;
pub mod metadata;
pub mod names;
mod npu3720;
pub mod profiling;
mod raw;
mod read;
pub mod registers;
pub mod relocation;
pub mod rules;
mod schedule;
pub mod section;
pub mod shave;
pub mod structures;
mod tensors;
pub mod trailer;

pub use document::Document;
pub use image::Image;
pub use lower::{Options, lower};
pub use machine::{MACHINES, Machine};
pub use shave::KernelTable;

use chipless_model::{Finding, Info, Node, Rule};

/// Whether a file looks like a blob: an ELF file, or the footer of the plugin's metadata.
pub fn recognize(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.ends_with(b"OVNPU")
}

impl Document<'_> {
    /// What the file is.
    pub fn info(&self) -> Info {
        info::info(self)
    }

    /// The file's own structures.
    pub fn raw(&self) -> Node {
        raw::raw(self)
    }

    /// What was found while reading: odd, but no reason to stop.
    pub fn findings(&self) -> &[Finding] {
        self.warnings()
    }
}

/// Every rule of this target.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    rules::ALL
        .iter()
        .chain(schedule::rules::ALL)
        .chain(lower::ALL)
        .copied()
        .chain(lint::rules())
}
