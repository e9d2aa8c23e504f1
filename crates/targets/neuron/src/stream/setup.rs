//! Instructions that say what later ones of their engine do.

use super::Slot;
use super::formats::Gather;

const ACTIVATE: u8 = 0x21;
const POOL_BUFFER_LOAD: u8 = 0x67;
const GATHER: u8 = 0x68;
const LOAD_MASK_SELECT: u8 = 0x69;
const STREAM_SHUFFLE: u8 = 0x6a;
const PSEUDO_LOAD_ACT_FUNC_SET: u8 = 0xc6;
const PSEUDO_DMA_DIRECT2D: u8 = 0xd4;
const PSEUDO_EXTENSION: u8 = 0xda;

/// The last such instructions, while the slots of an engine are followed in order.
#[derive(Debug, Default)]
pub(crate) struct Setups<'a> {
    table: Option<&'a Slot>,
    mask: Option<&'a Slot>,
    functions: Option<&'a Slot>,
    /// The slot before, if it is a transfer.
    transfer: Option<&'a Slot>,
}

impl<'a> Setups<'a> {
    /// Whether a slot needs one.
    pub(crate) fn needed_by(slot: &Slot) -> bool {
        matches!(slot.head.opcode, GATHER | STREAM_SHUFFLE | PSEUDO_EXTENSION)
    }

    /// What says what the next slot does, if anything has to.
    pub(crate) fn next(&mut self, slot: &'a Slot) -> Option<&'a Slot> {
        let transfer = self.transfer.take();
        match slot.head.opcode {
            PSEUDO_DMA_DIRECT2D => {
                self.transfer = Some(slot);
                None
            }
            PSEUDO_EXTENSION => transfer,
            POOL_BUFFER_LOAD => {
                self.table = Some(slot);
                None
            }
            GATHER if Gather(slot).free() == 0 => self.table,
            GATHER => self.table.take(),
            LOAD_MASK_SELECT => {
                self.mask = Some(slot);
                None
            }
            STREAM_SHUFFLE => self.mask,
            PSEUDO_LOAD_ACT_FUNC_SET => {
                self.functions = Some(slot);
                None
            }
            ACTIVATE => self.functions,
            _ => None,
        }
    }
}
