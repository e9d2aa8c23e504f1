//! Hardware registers that the DMAs of a fully managed program write.
//!
//! | address | stride | register |
//! |---|---|---|
//! | `0x2f00_0000` | 0x20 a tile | DPU FIFO: CMX offset of a variant, divided by 32 |
//! | `0x2f00_c000` | 0x40 a tile, 0x20 a list | SHAVE FIFO: CMX offset of an invocation, divided by 32 |
//! | `0x2f01_0000` | 0x20 a barrier | barrier FIFO: configurations, producers in bits 0..8, last flag in bit 8, consumers in bits 16..24; 0 is none |
//!
//! As found in programs of the vendor's compiler; the registers themselves are not publicly documented.

use super::{Control, Unit};
use crate::address;

/// Configurations that a barrier's FIFO holds besides the active one.
pub(crate) const BARRIER_DEPTH: u32 = 3;

/// What one 32-bit write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// A work item for a tile's unit: where its first descriptor stands.
    Enqueue(Unit, u64),
    /// A configuration for a barrier.
    Configure {
        /// Physical barrier.
        barrier: u8,
        /// Producers.
        producers: u32,
        /// Consumers.
        consumers: u32,
        /// Whether its producers end the inference.
        last: bool,
    },
    /// An empty entry.
    Nothing,
    /// No register that is known.
    Unknown,
}

/// Decodes a write.
pub(super) fn decode(control: &Control, register: u64, value: u32) -> Write {
    let cmx = |tile: u64| (0x4000_0000 | 1 << (21 + tile)) + (u64::from(value & 0xffff) << 5);
    let tiles = u64::from(address::TILES);
    match register {
        0x2f00_0000..0x2f00_c000 if (register - 0x2f00_0000) / 0x20 < tiles => {
            let tile = (register - 0x2f00_0000) / 0x20;
            Write::Enqueue(Unit::Dpu(tile as u8), cmx(tile))
        }
        0x2f00_c000..0x2f01_0000 if (register - 0x2f00_c000) / 0x40 < tiles => {
            let (tile, list) = (
                (register - 0x2f00_c000) / 0x40,
                (register - 0x2f00_c000) % 0x40 / 0x20,
            );
            if list == 1 && !control.two_lists {
                return Write::Unknown;
            }
            Write::Enqueue(control.shave(tile as u8, list as u8), cmx(tile))
        }
        0x2f01_0000..0x2f01_0c00 => {
            let barrier = ((register - 0x2f01_0000) / 0x20) as u8;
            match value {
                0 => Write::Nothing,
                v => Write::Configure {
                    barrier,
                    producers: v & 0xff,
                    consumers: v >> 16 & 0xff,
                    last: v >> 8 & 1 != 0,
                },
            }
        }
        _ => Write::Unknown,
    }
}
