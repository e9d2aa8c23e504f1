//! The bytes that every slot has alike, and those of addresses of transfers.

use super::DmaTarget;
use super::events::Events;
use zerocopy::byteorder::little_endian::{I32, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an instruction slot.
pub const SLOT_BYTES: usize = 64;

macro_rules! layouts {
    ($($(#[$doc:meta])* $name:ident $size:literal { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

            const _: () = assert!(size_of::<$name>() == $size);
        )*
    };
}

layouts! {
    /// The first 12 bytes of every slot.
    Head 12 {
        /// Operation (offset 0).
        opcode: u8,
        /// Length in 32-bit words: 16 in every known slot (offset 1).
        words: u8,
        /// For the profiler (offset 2).
        debug_command: u8,
        /// For the profiler (offset 3).
        debug_hint: u8,
        /// What the instruction waits for and signals (offset 4).
        events: Events,
    }

    /// A slot as it stands in the file. What its operands mean says [`formats`](super::formats).
    Slot 64 {
        /// Opcode and events.
        head: Head,
        /// Operands.
        operands: [u8; 52],
    }

    /// Where a transfer starts: a variable, or an entry of a table of variables, and an offset.
    DmaAddress 8 {
        /// Bytes from the start of the variable.
        offset: U32,
        /// Number of the variable, or index into the table.
        id: U16,
        /// Which of the two, see [`DmaTarget`](super::DmaTarget).
        tag: U16,
    }

    /// Elements in memory that registers are loaded from or stored to.
    Scalars 18 {
        /// How many, innermost first.
        counts: [u8; 2],
        /// The first of them.
        address: DmaAddress,
        /// Elements from one to the next, innermost first.
        steps: [I32; 2],
    }

    /// One side of a transfer: rows of contiguous bytes in two dimensions.
    DmaSide 22 {
        /// First byte.
        address: DmaAddress,
        /// Bytes from one row to the next, innermost first.
        steps: [I32; 2],
        /// Rows, innermost first.
        counts: [U16; 2],
        /// Bytes of a row; 0 for 65536.
        row_bytes: U16,
    }
}

/// `PSEUDO_EXTENSION`, which has no head of its own.
const EXTENSION: u8 = 0xda;

impl Slot {
    /// A slot without operands.
    pub const fn new(opcode: u8) -> Slot {
        let events = Events::NONE;
        let head = Head {
            opcode,
            words: if opcode == EXTENSION { 0 } else { 16 },
            debug_command: 0,
            debug_hint: 0,
            events,
        };
        Slot {
            head,
            operands: [0; SLOT_BYTES - size_of::<Head>()],
        }
    }

    /// Whether it has a length, a wait and a signal, as all but extensions of other slots have.
    pub const fn has_events(&self) -> bool {
        self.head.opcode != EXTENSION
    }

    /// The bytes as they stand in the file.
    pub fn bytes(&self) -> &[u8; SLOT_BYTES] {
        zerocopy::transmute_ref!(self)
    }

    /// The bytes, to change them.
    pub fn bytes_mut(&mut self) -> &mut [u8; SLOT_BYTES] {
        zerocopy::transmute_mut!(self)
    }

    /// The byte at a place of the slot.
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.bytes()[at]
    }
}

impl Scalars {
    /// Elements.
    pub fn elements(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(*n)).product()
    }

    /// Where it starts, if the instruction has the number of a variable in place of an address.
    pub fn symbolic(&self) -> DmaTarget {
        let [id, offset] = self.halves();
        DmaTarget::Variable { id, offset }
    }

    /// The two words in place of an address.
    fn halves(&self) -> [u32; 2] {
        let words: [U32; 2] = zerocopy::transmute!(self.address);
        words.map(U32::get)
    }
}

impl DmaSide {
    /// Bytes of a row, its zero resolved.
    pub fn row(&self) -> u64 {
        match self.row_bytes.get() {
            0 => 1 << 16,
            n => u64::from(n),
        }
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(n.get())).product()
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.rows() * self.row()
    }
}
