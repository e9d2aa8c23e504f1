//! Programs for NPU3720 (NPU37XX, "VPU2.7", Meteor and Arrow Lake): what differs in the file, and the control structures.
//!
//! Every task is listed in its section, and the firmware brings the descriptors to the engines: programs have neither work items nor transfers
//! that fetch descriptors. A barrier count names the next use of the same physical barrier, as in mode 0 of NPU4000. Addresses of on-chip memory
//! are symbols of the runtime.
//!
//! Sources: NPU firmware headers `vpu_nnrt_api_37xx.h`, `vpu_dma_hw_37xx.h`, `vpu_nce_hw_37xx.h`, `vpu_cmx_info_37xx.h` (API 7.0.4);
//! `hpi_3720.cpp` of `npu_compiler_elf`; what programs prove stands in docs/npu-3720.md.

mod control;
mod dma;
mod structures;

pub(crate) use control::read as control;

use crate::structures::{Layout, TaskKind, TaskSection};

/// Bytes of CMX in a tile.
pub(crate) const CMX_SIZE: u64 = 0x20_0000;
/// Where the part of a tile's CMX begins that programs use: firmware, SHAVE stacks and descriptors stand before it.
pub(crate) const WORKSPACE: u64 = 0x1_4000;
/// Address of the first tile's CMX.
const CMX: u64 = 0x2e00_0000;
/// Where an invariant counts its variants.
pub(crate) const VARIANT_COUNT: usize = 0x128;
/// The section of barrier counts.
pub(crate) const BARRIERS: &str = ".text.BarrierConfigs";

/// Bytes of one record.
pub(crate) const fn record_size(kind: TaskKind) -> usize {
    match kind {
        TaskKind::DmaDdr | TaskKind::DmaCmx => 128,
        TaskKind::Invariant => 304,
        TaskKind::Variant | TaskKind::Invocation => 64,
        TaskKind::Range => 24,
    }
}

/// What a section of this name holds.
pub(crate) fn task_section(name: &str) -> Option<TaskSection> {
    let (kind, unit) = match name.strip_prefix(".text.")? {
        "dmaTasks0" => (TaskKind::DmaDdr, 0),
        "dmaTasks1" => (TaskKind::DmaDdr, 1),
        "DPUInvariants" => (TaskKind::Invariant, 0),
        "DPUVariants" => (TaskKind::Variant, 0),
        "ActKernelRanges" => (TaskKind::Range, 0),
        "ActKernelInvocations" => (TaskKind::Invocation, 0),
        _ => return None,
    };
    Some(TaskSection {
        kind,
        unit,
        list: 0,
        layout: Layout::Npu3720,
    })
}

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
