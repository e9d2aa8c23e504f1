//! The address map of NPU3720.

/// Bytes of CMX in a tile.
pub(crate) const CMX_SIZE: u64 = 0x20_0000;

/// Where the part of a tile's CMX begins that programs use: firmware, SHAVE stacks and descriptors stand before it.
pub(crate) const WORKSPACE: u64 = 0x1_4000;

/// Address of the first tile's CMX.
const CMX: u64 = 0x2e00_0000;

/// A symbol of the runtime, against which a program relocates addresses that only the runtime knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuntimeSymbol {
    /// Address, or number.
    pub(crate) value: u64,
    /// Entries, where descriptors stand there.
    pub(crate) slots: u64,
}

/// The symbols by number, for a program that has the chip for itself: CMX workspace; invariants, kernel ranges and the two lists of DMA
/// descriptors in the memory of the runtime; first tile; first barrier; registers.
pub(crate) fn runtime_symbol(number: u32, tiles: u8) -> Option<RuntimeSymbol> {
    // Descriptors stand from 17 KiB on: DMA (256 of 128 bytes), invariants (32 of 304 bytes), kernel ranges; in a program for two tiles those
    // of the second engine stand in the second tile.
    let (metadata, second) = (CMX + 0x4400, if tiles > 1 { CMX_SIZE } else { 0 });
    let (invariants, ranges) = (metadata + 256 * 128, metadata + 256 * 128 + 32 * 304);
    let symbol = |value, slots| Some(RuntimeSymbol { value, slots });
    match number {
        0 => symbol(CMX + WORKSPACE, 0),
        1 => symbol(invariants, 32),
        2 => symbol(ranges, 32),
        3 => symbol(metadata, 256),
        4 => symbol(metadata + second, 256),
        5..=7 => symbol(0, 0),
        _ => None,
    }
}

/// The byte that an on-chip address names, in the one memory of both tiles. `None` for those that name two.
pub(crate) fn cmx(address: u64) -> Option<(u8, u64)> {
    // Bits 22 and 23 are clear.
    let is_one = address >> 22 == CMX >> 22;
    is_one.then_some((1, address & (2 * CMX_SIZE - 1)))
}

/// The bytes that an address with the tile select of a multicast (bits 22 and 23) names.
pub(crate) fn multicast(address: u64) -> Option<[u64; 2]> {
    let offset = address & (CMX_SIZE - 1);
    let is_both = address >> 24 == CMX >> 24 && address >> 22 & 3 == 3;
    is_both.then_some([offset, offset + CMX_SIZE])
}
