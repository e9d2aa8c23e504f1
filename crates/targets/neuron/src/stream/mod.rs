//! Instruction streams: what the five engines of a core execute.
//!
//! A stream is a sequence of 64-byte slots. [`Stream`] views them without copying. Two tables say everything that is known of them:
//!
//! | table | one row | what comes from it |
//! |---|---|---|
//! | [`OPCODES`] | an opcode: name, format, engines, generations, executed or not, evidence | names, engine rules, what is executed |
//! | [`formats`] | a field of a format: bytes, kind, evidence, executed or not | [`Slot::decode`], [`Slot::operands`], text, assembler, [`Slot::undecoded`] |
//!
//! [`ELEMENT_CODES`] and [`ALU_OPERATIONS`] name the codes in fields. docs/neuron-opcodes.md is made of all of them.
//!
//! Every address of an instruction is that of a byte on the chip ([`OnChip`]): 128 partitions of the state buffer from 0, 0x40000
//! bytes of address apart, and of PSUM from `0x200_0000`, 0x8000 apart. An instruction names the first byte of its first
//! partition, walks the elements of a partition by steps and counts, and does the same in each following partition.

mod alike;
mod codes;
mod debug;
mod events;
pub mod formats;
mod layout;
pub(crate) mod legal;
mod opcode;
pub(crate) mod operand;
mod operators;
mod reference;
mod setup;
mod text;

pub(crate) use alike::{Alike, Bodies};
pub(crate) use codes::ACCUMULATOR;
pub(crate) use setup::Setups;
pub(crate) use text::Details;

pub use codes::{ALU_OPERATIONS, AluOperation, ELEMENT_CODES, ElementCode, Evidence};
pub use debug::{DebugInfo, SourceLine};
pub use events::{Change, Comparison, Events, UpdateMode, WaitMode};
pub use formats::{Instruction, Tensor};
pub use layout::{DmaAddress, DmaSide, Head, SLOT_BYTES, Scalars, Slot};
pub use opcode::{Engines, Generation, OPCODES, Opcode, Operands, Support, UNNAMED};
pub use operand::Operand;
pub use reference::reference;
use zerocopy::FromBytes;

/// Partitions of the state buffer and of PSUM.
pub const PARTITIONS: u32 = 128;
/// Bytes of address from one partition of the state buffer to the next.
pub const PARTITION_STRIDE: u32 = 0x4_0000;
/// Bytes of address from one partition of PSUM to the next.
pub const PSUM_PARTITION_STRIDE: u32 = 0x8000;
/// First address of PSUM.
pub const PSUM_BASE: u32 = PARTITIONS * PARTITION_STRIDE;
/// Bytes of a PSUM bank of one partition; a matrix product writes into one bank.
pub const PSUM_BANK_BYTES: u32 = 2048;
/// Characters that end a word of the assembler.
pub const MARKS: &str = "[],=+*;@:<>$()?&";
/// Bytes of PSUM in each partition, on every generation.
pub const PSUM_PARTITION_BYTES: u32 = 8 * PSUM_BANK_BYTES;

/// The slots of an engine, borrowed from the file.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// Whole slots.
    pub slots: &'a [Slot],
    /// Bytes after the last whole slot: none in a sound file.
    pub rest: &'a [u8],
}

impl<'a> Stream<'a> {
    /// The slots of a member.
    pub fn new(bytes: &'a [u8]) -> Stream<'a> {
        let count = bytes.len() / SLOT_BYTES;
        match <[Slot]>::ref_from_prefix_with_elems(bytes, count) {
            Ok((slots, rest)) => Stream { slots, rest },
            Err(_) => Stream {
                slots: &[],
                rest: bytes,
            },
        }
    }
}

impl Slot {
    /// Its waits and signals: one pair, or two; none of an extension.
    pub fn events(&self) -> impl Iterator<Item = Events> + use<> {
        let second = match self.decode() {
            Instruction::EventSemaphore(i) => Some(i.second()),
            _ => None,
        };
        let first = self.has_events().then_some(self.head.events);
        first.into_iter().chain(second)
    }

    /// Whether the wait of this index, counted among those that the model has, is for more than its value (`$S[3]>7`).
    pub fn waits_above(&self, wait: usize) -> bool {
        let mut waits = self.events().filter(|events| events.condition().is_some());
        waits
            .nth(wait)
            .is_some_and(|events| events.wait() == WaitMode::Immediate(Comparison::Greater))
    }
}

/// Which of the two on-chip memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The state buffer.
    StateBuffer,
    /// The sums of the matrix engine.
    Psum,
}

impl Space {
    /// Bytes of address from one partition to the next.
    pub const fn stride(self) -> u32 {
        match self {
            Space::StateBuffer => PARTITION_STRIDE,
            Space::Psum => PSUM_PARTITION_STRIDE,
        }
    }

    /// Bytes of address of all partitions.
    pub const fn bytes(self) -> u64 {
        PARTITIONS as u64 * self.stride() as u64
    }
}

/// A byte on the chip, as instructions address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnChip {
    /// Which memory.
    pub space: Space,
    /// Partition, below [`PARTITIONS`].
    pub partition: u32,
    /// Byte in the partition, below [`Space::stride`].
    pub offset: u32,
}

impl OnChip {
    /// The byte at an address; `None` behind the end of PSUM.
    pub const fn at(address: u32) -> Option<OnChip> {
        // Strides are powers of two: where they stand as constants, nothing is divided.
        let (space, partition, offset) = match address.checked_sub(PSUM_BASE) {
            None => (
                Space::StateBuffer,
                address / PARTITION_STRIDE,
                address % PARTITION_STRIDE,
            ),
            Some(within) => (
                Space::Psum,
                within / PSUM_PARTITION_STRIDE,
                within % PSUM_PARTITION_STRIDE,
            ),
        };
        if partition >= PARTITIONS {
            return None;
        }
        Some(OnChip {
            space,
            partition,
            offset,
        })
    }

    /// The PSUM bank that the byte is in, counted in its partition.
    pub const fn bank(self) -> u32 {
        self.offset / PSUM_BANK_BYTES
    }
}

/// Where a [`DmaAddress`] leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaTarget {
    /// Bytes of a variable.
    Variable {
        /// Its number.
        id: u32,
        /// Bytes from its start.
        offset: u32,
    },
    /// Bytes of a variable of the program's table: the one that can be rebound without changing code.
    Table {
        /// Its place in the table.
        index: u16,
        /// Bytes from its start.
        offset: u32,
    },
    /// The same, so many bytes from its start as a register of the engine says.
    TableRegister {
        /// Its place in the table.
        index: u16,
        /// The register.
        register: u8,
    },
    /// Wherever two registers of the engine say.
    Registers {
        /// The register with the low half of the address.
        low: u8,
        /// The one with the high half.
        high: u8,
    },
    /// An address of the device.
    Absolute(u64),
    /// Not known: the tag.
    Unknown(u16),
}

/// Registers of an engine's sequencer.
pub const REGISTERS: u8 = 64;

/// Tags of addresses: the high byte of each says what the other bytes mean.
const VARIABLE: u16 = 0x1000;
const TABLE: u16 = 0x2000;
const TABLE_REGISTER: u16 = 0x2800;
const ADDRESS_REGISTERS: u16 = 0x8000;

impl DmaAddress {
    /// Where it leads.
    pub fn target(&self) -> DmaTarget {
        let (offset, id, tag) = (self.offset.get(), self.id.get(), self.tag.get());
        let [low, high, ..] = offset.to_le_bytes();
        match tag {
            0 => DmaTarget::Absolute(u64::from(id) << 32 | u64::from(offset)),
            VARIABLE..=0x10ff => DmaTarget::Variable {
                id: u32::from(tag & 0xff) << 16 | u32::from(id),
                offset,
            },
            TABLE => DmaTarget::Table { index: id, offset },
            TABLE_REGISTER if offset < u32::from(REGISTERS) => DmaTarget::TableRegister {
                index: id,
                register: low,
            },
            ADDRESS_REGISTERS if id == 0 && low.max(high) < REGISTERS && offset >> 16 == 0 => {
                DmaTarget::Registers { low, high }
            }
            tag => DmaTarget::Unknown(tag),
        }
    }
}

impl DmaTarget {
    /// The address that leads there; `None` where it does not fit into one, or where nothing is known of it.
    pub fn address(self) -> Option<DmaAddress> {
        let (offset, id, tag) = match self {
            DmaTarget::Variable { id, offset } => {
                let high = u16::try_from(id >> 16).ok().filter(|high| *high < 0x100)?;
                (offset, id as u16, VARIABLE | high)
            }
            DmaTarget::Table { index, offset } => (offset, index, TABLE),
            DmaTarget::TableRegister { index, register } => {
                (u32::from(register), index, TABLE_REGISTER)
            }
            DmaTarget::Registers { low, high } => {
                (u32::from_le_bytes([low, high, 0, 0]), 0, ADDRESS_REGISTERS)
            }
            DmaTarget::Absolute(at) => (at as u32, u16::try_from(at >> 32).ok()?, 0),
            DmaTarget::Unknown(_) => return None,
        };
        Some(DmaAddress {
            offset: offset.into(),
            id: id.into(),
            tag: tag.into(),
        })
    }

    /// Whether registers say where it leads.
    pub const fn is_in_registers(self) -> bool {
        matches!(
            self,
            DmaTarget::TableRegister { .. } | DmaTarget::Registers { .. }
        )
    }

    /// Bytes from the start of its variable, or the address, where the instruction says them.
    pub const fn offset(self) -> Option<u64> {
        match self {
            DmaTarget::Variable { offset, .. } | DmaTarget::Table { offset, .. } => {
                Some(offset as u64)
            }
            DmaTarget::Absolute(at) => Some(at),
            DmaTarget::TableRegister { .. }
            | DmaTarget::Registers { .. }
            | DmaTarget::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the bytes are, they can be printed.
        #[test]
        fn every_slot_has_a_text(bytes in prop::array::uniform32(any::<[u8; 2]>())) {
            let bytes = bytes.concat();
            let [slot] = Stream::new(&bytes).slots else { panic!("one slot") };
            prop_assert_eq!(slot.bytes(), &bytes[..]);
            prop_assert!(slot.to_string().starts_with(&*Opcode::name_of(bytes[0])));
            prop_assert_eq!(slot.undecoded().is_none(), slot.is_decoded());
        }
    }

    #[test]
    fn a_stream_keeps_what_is_no_whole_slot() {
        let bytes = [0; 130];
        let stream = Stream::new(&bytes);
        assert_eq!((stream.slots.len(), stream.rest.len()), (2, 2));
        let empty = Stream::new(&[]);
        assert_eq!((empty.slots.len(), empty.rest.len()), (0, 0));
    }

    #[test]
    fn addresses_on_the_chip() {
        assert_eq!(
            OnChip::at(0x37c00),
            Some(OnChip {
                space: Space::StateBuffer,
                partition: 0,
                offset: 0x37c00
            })
        );
        let psum = OnChip {
            space: Space::Psum,
            partition: 2,
            offset: 0x900,
        };
        assert_eq!(OnChip::at(0x201_0900), Some(psum));
        assert_eq!(psum.bank(), 1);
        assert_eq!(OnChip::at(0x240_0000), None);
    }
}
