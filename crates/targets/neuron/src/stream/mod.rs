//! Instruction streams: what the five engines of a core execute.
//!
//! A stream is a sequence of 64-byte slots. [`Stream`] views them without copying, [`Slot::decode`] gives a slot the
//! layout of its opcode, [`Display`](std::fmt::Display) writes it as the vendor's tools do. [`OPCODES`] says what is known
//! of every opcode.
//!
//! Every address of an instruction is that of a byte on the chip ([`OnChip`]): 128 partitions, 0x40000 bytes of address
//! apart, of the state buffer from 0 and of PSUM from `0x200_0000`. An instruction names the first byte of its first
//! partition, walks the elements of a partition by steps and counts, and does the same in each following partition.

mod bodies;
mod debug;
mod events;
mod layout;
mod opcode;
pub(crate) mod operand;
pub mod rules;
mod text;

pub(crate) use bodies::Bodies;
pub(crate) use text::ADD;

pub use debug::{DebugInfo, SourceLine};
pub use events::{Change, Comparison, Events, UpdateMode, WaitMode};
pub use layout::{
    Copy, Dma, DmaAddress, DmaSide, EventSemaphore, Head, LoadWeights, Matmul, Memset, SLOT_BYTES,
    Slot, Tensor3, Tensor4, TensorTensor,
};
pub use opcode::{ELEMENT_CODES, ElementCode, Evidence, OPCODES, Opcode, Support};
pub use operand::Operand;
use zerocopy::{FromBytes, IntoBytes};

/// Partitions of the state buffer and of PSUM.
pub const PARTITIONS: u32 = 128;
/// Bytes of address from one partition to the next, in the state buffer and in PSUM.
pub const PARTITION_STRIDE: u32 = 0x4_0000;
/// First address of PSUM.
pub const PSUM_BASE: u32 = PARTITIONS * PARTITION_STRIDE;
/// Bytes of a PSUM bank of one partition; a matrix product writes into one bank.
pub const PSUM_BANK_BYTES: u32 = 2048;
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

/// A slot with the layout of its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction<'a> {
    /// Fills the matrix engine's array.
    LoadWeights(&'a LoadWeights),
    /// Multiplies by what the array holds.
    Matmul(&'a Matmul),
    /// One operation on two operands.
    TensorTensor(&'a TensorTensor),
    /// Moves elements.
    Copy(&'a Copy),
    /// Moves elements to another type.
    Cast(&'a Copy),
    /// Writes one value everywhere.
    Memset(&'a Memset),
    /// Waits and signals.
    EventSemaphore(&'a EventSemaphore),
    /// Hands over a transfer.
    Dma(&'a Dma),
    /// Has no effect on memory ([`Support::NoEffect`]).
    NoEffect(&'a Slot),
    /// Anything else: it is listed, not executed.
    Other(&'a Slot),
}

impl Slot {
    /// The slot with the layout of its opcode.
    pub fn decode(&self) -> Instruction<'_> {
        let bytes: &[u8; SLOT_BYTES] = zerocopy::transmute_ref!(self);
        match self.head.opcode {
            0x01 => Instruction::LoadWeights(zerocopy::transmute_ref!(bytes)),
            0x02 => Instruction::Matmul(zerocopy::transmute_ref!(bytes)),
            0x41 => Instruction::TensorTensor(zerocopy::transmute_ref!(bytes)),
            0x46 => Instruction::Copy(zerocopy::transmute_ref!(bytes)),
            0x47 => Instruction::Cast(zerocopy::transmute_ref!(bytes)),
            0x49 => Instruction::Memset(zerocopy::transmute_ref!(bytes)),
            0xa0 | 0xa4 => Instruction::EventSemaphore(zerocopy::transmute_ref!(bytes)),
            0xd4 => Instruction::Dma(zerocopy::transmute_ref!(bytes)),
            byte => match Opcode::of(byte).map(|o| o.support) {
                Some(Support::NoEffect) => Instruction::NoEffect(self),
                _ => Instruction::Other(self),
            },
        }
    }

    /// The bytes as they stand in the file.
    pub fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Instruction<'_> {
    /// The slot: the exact inverse of [`Slot::decode`].
    pub fn encode(&self) -> Slot {
        match *self {
            Instruction::LoadWeights(layout) => zerocopy::transmute!(*layout),
            Instruction::Matmul(layout) => zerocopy::transmute!(*layout),
            Instruction::TensorTensor(layout) => zerocopy::transmute!(*layout),
            Instruction::Copy(layout) | Instruction::Cast(layout) => zerocopy::transmute!(*layout),
            Instruction::Memset(layout) => zerocopy::transmute!(*layout),
            Instruction::EventSemaphore(layout) => zerocopy::transmute!(*layout),
            Instruction::Dma(layout) => zerocopy::transmute!(*layout),
            Instruction::NoEffect(slot) | Instruction::Other(slot) => *slot,
        }
    }

    /// The first 12 bytes.
    pub fn head(&self) -> &Head {
        match self {
            Instruction::LoadWeights(i) => &i.head,
            Instruction::Matmul(i) => &i.head,
            Instruction::TensorTensor(i) => &i.head,
            Instruction::Copy(i) | Instruction::Cast(i) => &i.head,
            Instruction::Memset(i) => &i.head,
            Instruction::EventSemaphore(i) => &i.head,
            Instruction::Dma(i) => &i.head,
            Instruction::NoEffect(i) | Instruction::Other(i) => &i.head,
        }
    }

    /// Its waits and signals: one pair, or two.
    pub fn events(&self) -> impl Iterator<Item = Events> + use<> {
        let second = if let Instruction::EventSemaphore(i) = self {
            Some(i.second)
        } else {
            None
        };
        std::iter::once(self.head().events).chain(second)
    }

    /// Whether the wait of this index, counted among those that the model has, is for more than its value (`$S[3]>7`).
    pub fn waits_above(&self, wait: usize) -> bool {
        let mut waits = self.events().filter(|events| events.condition().is_some());
        waits
            .nth(wait)
            .is_some_and(|events| events.wait() == WaitMode::Immediate(Comparison::Greater))
    }
}

impl Head {
    /// The head of an instruction with these waits and signals.
    pub const fn new(opcode: u8, events: Events) -> Head {
        Head {
            opcode,
            words: 16,
            debug_command: 0,
            debug_hint: 0,
            events,
        }
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

/// A byte on the chip, as instructions address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnChip {
    /// Which memory.
    pub space: Space,
    /// Partition, below [`PARTITIONS`].
    pub partition: u32,
    /// Byte in the partition, below [`PARTITION_STRIDE`].
    pub offset: u32,
}

impl OnChip {
    /// The byte at an address; `None` behind the end of PSUM.
    pub const fn at(address: u32) -> Option<OnChip> {
        let (space, within) = match address {
            0..PSUM_BASE => (Space::StateBuffer, address),
            _ => (Space::Psum, address - PSUM_BASE),
        };
        if within >= PARTITIONS * PARTITION_STRIDE {
            return None;
        }
        Some(OnChip {
            space,
            partition: within / PARTITION_STRIDE,
            offset: within % PARTITION_STRIDE,
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
        #[test]
        fn encoding_is_the_inverse_of_decoding(opcode in prop::sample::select(OPCODES), mut bytes in prop::array::uniform32(any::<[u8; 2]>())) {
            bytes[0][0] = opcode.byte;
            let bytes = bytes.concat();
            let stream = Stream::new(&bytes);
            let [slot] = stream.slots else { panic!("one slot") };
            let instruction = slot.decode();
            let again = instruction.encode();
            prop_assert_eq!(again.bytes(), &bytes[..]);
            prop_assert_eq!(instruction.head(), &slot.head);
            // Whatever the operands are, they can be printed.
            prop_assert!(instruction.to_string().starts_with(opcode.name));
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
        assert_eq!(OnChip::at(0x208_0900), Some(psum));
        assert_eq!(psum.bank(), 1);
        assert_eq!(OnChip::at(0x400_0000), None);
    }
}
