//! The address map of a blob as the loader lays it out: DDR sections, CMX tiles, hardware registers.

use crate::npu3720;

/// Bytes of CMX that programs may use in each tile (NPU4: 1.5 MiB).
pub(crate) const CMX_SIZE: u64 = 0x18_0000;
/// Bytes that no memory on the chip exceeds: two tiles of NPU3720 are one memory.
pub(crate) const CMX_REACH: u64 = 0x40_0000;
/// Tiles that the address map has room for.
pub(crate) const TILES: u8 = 6;
const CMX_BASE: u64 = 0x4000_0000;
/// A tile's address space, of which the first [`CMX_SIZE`] bytes are memory.
const TILE_SPACE_BITS: u32 = 21;
/// Registers that DMAs write in fully managed programs.
pub(crate) const REGISTERS: std::ops::Range<u64> = 0x2f00_0000..0x3000_0000;

/// What an address of a descriptor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A byte of a DDR section, by section index.
    Section(usize, u64),
    /// A byte of CMX in each tile of the mask.
    Cmx {
        /// One bit for each tile.
        tiles: u8,
        /// Byte in the tile.
        offset: u64,
    },
    /// A hardware register.
    Register(u64),
    /// Nothing.
    Unmapped,
}

/// Tiles and offset of a CMX address, in either map of the chips: the ranges have nothing in common.
pub(crate) fn cmx(address: u64) -> Option<(u8, u64)> {
    if let Some(found) = npu3720::cmx(address) {
        return Some(found);
    }
    let tiles = address >> TILE_SPACE_BITS & 0x3f;
    (address >> 27 == CMX_BASE >> 27 && tiles != 0).then_some((tiles as u8, in_tile(address)))
}

/// The byte in a tile that an address in CMX names, whichever tile it may be.
pub(crate) fn in_tile(address: u64) -> u64 {
    address & ((1 << TILE_SPACE_BITS) - 1)
}

/// Tiles of a mask.
pub(crate) fn tiles(mask: u8) -> impl Iterator<Item = u8> {
    (0..TILES).filter(move |t| mask >> t & 1 != 0)
}
