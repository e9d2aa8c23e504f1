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
pub use layout::{DmaAddress, DmaSide, Head, SLOT_BYTES, Slot};
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
    /// Its waits and signals: one pair, or two.
    pub fn events(&self) -> impl Iterator<Item = Events> + use<> {
        let second = match self.decode() {
            Instruction::EventSemaphore(i) => Some(i.second()),
            _ => None,
        };
        std::iter::once(self.head.events).chain(second)
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

/// What a [`DmaAddress`] counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaTarget {
    /// The variable with this number.
    Variable(u16),
    /// The variable at this index of the program's table: the one that can be rebound without changing code.
    Table(u16),
    /// An offset in a register (its rules are not public).
    Register,
    /// Not known.
    Unknown(u16),
}

impl DmaAddress {
    /// An offset in the variable with this number.
    pub fn variable(id: u16, offset: u32) -> DmaAddress {
        DmaAddress {
            offset: offset.into(),
            id: id.into(),
            tag: 0x1000.into(),
        }
    }

    /// An offset in the variable at this index of the table.
    pub fn table(index: u16, offset: u32) -> DmaAddress {
        DmaAddress {
            offset: offset.into(),
            id: index.into(),
            tag: 0x2000.into(),
        }
    }

    /// What the offset counts from.
    pub fn target(&self) -> DmaTarget {
        match self.tag.get() {
            0x1000 => DmaTarget::Variable(self.id.get()),
            0x2000 => DmaTarget::Table(self.id.get()),
            0x2800 => DmaTarget::Register,
            tag => DmaTarget::Unknown(tag),
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
