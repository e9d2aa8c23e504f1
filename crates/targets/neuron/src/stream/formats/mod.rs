//! The formats of instructions: what each byte of a slot means, in one table.
//!
//! The macro `views!` makes two things of every row: a view of a slot with a method for each field (what kernels use), and the
//! [`Format`] from which the listing ([`Display`](std::fmt::Display) of [`Slot`]), the assembler, the check for bytes that nobody
//! decodes ([`Slot::undecoded`]) and docs/neuron-opcodes.md come. Which opcode has which format says
//! [`OPCODES`](super::OPCODES).
//!
//! To execute one more instruction: give its opcode a format if it has none, say `Executed` in its row, and give it a meaning in
//! `kernels`. A field that is known but whose meaning is not executed is marked `refused`: a slot in which it is not 0 is refused by
//! name, like one with a byte that no field covers.

mod engines;
mod sequencers;
mod table;
mod tensor;
mod views;

pub(super) use engines::ONE_PARTITION;
pub use engines::*;
pub use sequencers::*;
pub(super) use table::FormatId;
pub use table::{FORMATS, Instruction};
pub use tensor::{Generator, Microscaled, Tensor};

use super::{Evidence, SLOT_BYTES, Slot};
use chipless_model::Direction;
use views::{get, kind, views};

/// A format: its fields in the order in which the text form has them.
#[derive(Debug)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// Which of them are tensors, and how many.
    tensors: ([u8; MOST_TENSORS], usize),
    /// Bits of the slot that are decoded and executed, its head included.
    executed: [u8; SLOT_BYTES],
}

/// A field of a slot.
#[derive(Debug)]
pub struct Field {
    /// Its name in the text form.
    pub name: &'static str,
    /// First byte.
    pub at: u8,
    /// What stands there.
    pub kind: Kind,
    /// Where place and meaning come from.
    pub evidence: Evidence,
    /// What it is where the text form says nothing: 0 but for the groups of the matrix engine.
    pub default: u8,
    /// Whether it must be 0 in an instruction that is executed: it has a name, but what it does is not known well enough.
    pub refused: bool,
}

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Elements on the chip, in this many dimensions: address, steps, counts.
    Tensor {
        /// Dimensions: 1 to 4.
        dimensions: u8,
        /// Read or written.
        direction: Direction,
        /// Where the element type stands.
        element: Code,
        /// The byte with the number of partitions; 0 where it is one.
        partitions: u8,
    },
    /// Numbers instead of elements: a signed base, four steps, four counts.
    Generator,
    /// Elements on the chip in groups that share a scale, see [`Microscaled`].
    Microscaled {
        /// Read or written.
        direction: Direction,
        /// Where their type stands.
        element: Code,
        /// The byte with the number of partitions.
        partitions: u8,
    },
    /// An element type code that belongs to no tensor.
    Element(Code),
    /// An operation of the arithmetic units, see [`ALU_OPERATIONS`](super::ALU_OPERATIONS).
    Alu,
    /// An unsigned byte.
    Byte,
    /// A byte of which each bit means something; names of the lowest bits.
    Flags(&'static [&'static str]),
    /// A byte with named values, from 0 on.
    Choice(&'static [&'static str]),
    /// An unsigned number of four bytes.
    Word,
    /// A signed number of four bytes.
    Signed,
    /// Four bytes that are a number or an address: a binary32 where that looks like one.
    Value,
    /// Four bytes, in hexadecimal.
    Bits,
    /// So many bytes, in hexadecimal.
    Array(u8),
    /// A name of up to 32 bytes, zeros behind.
    Name,
    /// One side of a transfer; where its element type stands.
    Side(Code),
    /// Elements in memory that belong to registers; where their type stands.
    Scalars(Code),
    /// The same, with the number of a variable and an offset in place of the address.
    SymbolicScalars(Code),
    /// A second wait and a second signal.
    Events,
    /// The semaphore of a transfer, and by how much it rises.
    Completion,
}

/// Where an element type code stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A whole byte.
    At(u8),
    /// The low digit of a byte.
    Low(u8),
    /// The high digit of a byte.
    High(u8),
    /// Binary32, or with byte 0x22 set the type of byte 0x20: sums, and transposed elements, of the matrix engine.
    Sums,
}

impl Code {
    /// The code in a slot.
    pub fn of(self, slot: &Slot) -> u8 {
        let bytes = slot.bytes();
        match self {
            Code::At(at) => bytes[usize::from(at)],
            Code::Low(at) => bytes[usize::from(at)] & 0xf,
            Code::High(at) => bytes[usize::from(at)] >> 4,
            Code::Sums if bytes[0x22] == 0 => super::ACCUMULATOR,
            Code::Sums => bytes[0x20],
        }
    }

    /// The byte and the bits of it; `None` where it has none of its own.
    pub const fn place(self) -> Option<(u8, u8)> {
        match self {
            Code::At(at) => Some((at, 0xff)),
            Code::Low(at) => Some((at, 0x0f)),
            Code::High(at) => Some((at, 0xf0)),
            Code::Sums => None,
        }
    }
}

impl Kind {
    /// Bytes of it, without those of its element type.
    pub const fn size(self) -> u8 {
        match self {
            Kind::Tensor { dimensions, .. } => 4 + 4 * dimensions,
            Kind::Microscaled { .. } => Microscaled::BYTES,
            Kind::Generator => 20,
            Kind::Element(_) => 0,
            Kind::Alu | Kind::Byte | Kind::Flags(_) | Kind::Choice(_) => 1,
            Kind::Word | Kind::Signed | Kind::Value | Kind::Bits => 4,
            Kind::Array(size) => size,
            Kind::Name => 32,
            Kind::Side(_) => 22,
            Kind::Scalars(_) | Kind::SymbolicScalars(_) => 18,
            Kind::Events => 8,
            Kind::Completion => 2,
        }
    }

    /// Where its element type stands.
    pub const fn element(self) -> Option<Code> {
        match self {
            Kind::Tensor { element, .. }
            | Kind::Microscaled { element, .. }
            | Kind::Element(element)
            | Kind::Side(element)
            | Kind::Scalars(element)
            | Kind::SymbolicScalars(element) => Some(element),
            _ => None,
        }
    }
}

impl Field {
    /// Sets the bits of the field.
    const fn cover(&self, bits: &mut [u8; SLOT_BYTES]) {
        let (mut at, end) = (
            self.at as usize,
            self.at as usize + self.kind.size() as usize,
        );
        while at < end {
            bits[at] = 0xff;
            at += 1;
        }
        if let Some(element) = self.kind.element()
            && let Some((at, mask)) = element.place()
        {
            bits[at as usize] |= mask;
        }
    }
}

/// Tensors of an instruction, at most.
const MOST_TENSORS: usize = 3;

/// `QUANTIZE_MX`, which has a bit beside its length.
const QUANTIZE_MX: u8 = 0xe3;

/// Bytes of the head, all of which are decoded.
const HEAD: usize = 12;

impl Format {
    const fn new(name: &'static str, fields: &'static [Field]) -> Format {
        let mut executed = [0; SLOT_BYTES];
        let mut at = 0;
        while at < HEAD {
            executed[at] = 0xff;
            at += 1;
        }
        let mut tensors = ([0; MOST_TENSORS], 0);
        let mut index = 0;
        while index < fields.len() {
            if let Kind::Tensor { .. } | Kind::Microscaled { .. } = fields[index].kind {
                tensors.0[tensors.1] = index as u8;
                tensors.1 += 1;
            }
            if !fields[index].refused {
                fields[index].cover(&mut executed);
            }
            index += 1;
        }
        Format {
            name,
            fields,
            tensors,
            executed,
        }
    }

    /// Its tensors, in their order.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &'static Field> {
        let (places, count) = &self.tensors;
        let fields = self.fields;
        places[..*count]
            .iter()
            .map(move |at| &fields[usize::from(*at)])
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A byte that keeps a slot from being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecoded {
    /// Where it stands.
    pub at: u8,
    /// What it is.
    pub value: u8,
    /// The field that it belongs to, if any is known.
    pub field: Option<&'static str>,
}

impl std::fmt::Display for Undecoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Undecoded { at, value, field } = self;
        match field {
            Some(field) => write!(
                f,
                "byte {at:#04x} ({field}) is {value:#04x}: that is not supported, only 0 is"
            ),
            None if *at == 1 => write!(
                f,
                "byte 0x01 (length in words) is {value:#04x}: that is not supported, only 0x10 is"
            ),
            None => write!(
                f,
                "byte {at:#04x} is {value:#04x}: that is not supported, nothing is known of this byte but that it is 0"
            ),
        }
    }
}

impl Slot {
    /// The first byte that is not 0 although nothing says what it does, or although what it does is not executed.
    pub fn undecoded(&self) -> Option<Undecoded> {
        let (bytes, format) = (self.bytes(), self.format());
        let strange = |at: &usize| {
            bytes[*at] & !format.executed[*at] != 0 || (*at == 1 && !self.has_length())
        };
        let at = (0..SLOT_BYTES).find(strange)?;
        let covers = |field: &&Field| {
            let mut bits = [0; SLOT_BYTES];
            field.cover(&mut bits);
            field.refused && bits[at] != 0
        };
        let field = format.fields.iter().find(covers).map(|field| field.name);
        Some(Undecoded {
            at: at as u8,
            value: bytes[at],
            field,
        })
    }

    /// Whether it says that it is as long as it is, where it says how long.
    pub(crate) const fn has_length(&self) -> bool {
        // The lowest bit says that results saturate, which they never need: scales leave room for the largest.
        let saturates = self.head.opcode == QUANTIZE_MX && self.head.words == 0x11;
        self.head.words == 0x10 || saturates || !self.has_events()
    }

    /// Whether [`undecoded`](Slot::undecoded) finds nothing, said quickly.
    #[inline]
    pub fn is_decoded(&self) -> bool {
        let (bytes, executed) = (self.bytes(), &self.format().executed);
        self.has_length()
            && bytes
                .iter()
                .zip(executed)
                .fold(0, |strange, (byte, known)| strange | (byte & !known))
                == 0
    }

    /// The name at a place, as bytes: up to 32, without the zeros behind it.
    fn name_at(&self, at: usize) -> &[u8] {
        let bytes = &self.bytes()[at..at + usize::from(Kind::Name.size())];
        let size = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        &bytes[..size]
    }

    /// So many bytes from a place on.
    #[inline]
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes()[at..at + N]);
        array
    }

    /// The elements in groups that stand in a slot.
    pub(crate) fn microscaled(&self, at: u8) -> Microscaled {
        Microscaled::read(self.array(at.into()))
    }

    /// The elements that stand in a slot.
    #[inline]
    pub(crate) fn tensor(&self, at: u8, dimensions: u8) -> Tensor {
        let bytes = &self.bytes()[usize::from(at)..];
        match dimensions {
            1 => Tensor::read::<1>(bytes),
            2 => Tensor::read::<2>(bytes),
            3 => Tensor::read::<3>(bytes),
            _ => Tensor::read::<4>(bytes),
        }
    }
}
