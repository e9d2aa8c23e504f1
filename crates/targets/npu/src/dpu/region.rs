//! Byte regions that a workload touches.

use chipless_model::{Pattern, Swizzle};

/// Bytes of CMX behind each tile's 2 MiB of address space (`cmx_slice_size`); a bound where pointers are data.
pub const TILE_BYTES: u64 = 0x18_0000;

/// Strided bytes of one tile that a workload reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Which tile.
    pub tile: u8,
    /// Which bytes, from the start of the tile's address space: logical addresses.
    pub pattern: Pattern,
    /// How they are permuted.
    pub swizzle: Swizzle,
    /// Written, or else read.
    pub write: bool,
    /// A bound: data decides which of these bytes are touched.
    pub may: bool,
    /// Which of the workload's tensors, if it is read.
    pub tensor: Operand,
    /// What it is to the operation, for lists.
    pub role: &'static str,
}

/// A tensor that a workload reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Activations, with their pointers and map where they are sparse.
    Activations = 1,
    /// The second operand of an elementwise operation.
    Second = 2,
    /// The weight table, and what it points to.
    Weights = 3,
}

/// The tiles' memories, as a workload sees them.
pub trait TileMemory {
    /// The bytes of a tile's address space, to be written; `None` where there is no such tile.
    fn tile_mut(&mut self, tile: u8) -> Option<&mut [u8]>;
}
