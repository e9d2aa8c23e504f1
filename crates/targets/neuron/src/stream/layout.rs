//! The layouts of the proven instructions, byte for byte.
//!
//! Every layout is a view of the 64 bytes of a slot: it covers all of them, those without a known meaning in fields
//! named after their offset. So a decoded slot can be written back without loss, whatever it holds.

use super::events::Events;
use zerocopy::byteorder::little_endian::{I16, I32, U16, U32};
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

    /// Elements of one partition, three dimensions; all partitions of an instruction are walked alike.
    Tensor3 16 {
        /// On-chip address of the first element, see [`OnChip`](super::OnChip).
        address: U32,
        /// Elements from one index to the next, innermost first.
        steps: [I16; 3],
        /// Elements of each dimension, innermost first.
        counts: [U16; 3],
    }

    /// Elements of one partition, four dimensions.
    Tensor4 20 {
        /// On-chip address of the first element.
        address: U32,
        /// Elements from one index to the next, innermost first.
        steps: [I16; 4],
        /// Elements of each dimension, innermost first.
        counts: [U16; 4],
    }

    /// `LDWEIGHTS`: fills the matrix engine's array, last column first.
    LoadWeights 64 {
        /// Opcode 0x01 and events.
        head: Head,
        /// Not known (zero in real programs).
        unknown_0c: [u8; 4],
        /// Columns in the order in which they enter the array (offset 0x10).
        source: Tensor3,
        /// Element type code (offset 0x20).
        element: u8,
        /// Not known.
        unknown_21: u8,
        /// 1 for weights of a transposition (offset 0x22).
        transpose: u8,
        /// Not known.
        unknown_23: [u8; 3],
        /// Rows of the array: partitions of the source (offset 0x26).
        rows: u8,
        /// Columns of the array (offset 0x27).
        columns: u8,
        /// Not known.
        unknown_28: [u8; 4],
        /// Bit for each group of 32 rows (offset 0x2c).
        row_groups: u8,
        /// Bit for each group of 32 columns (offset 0x2d).
        column_groups: u8,
        /// Not known.
        unknown_2e: [u8; 18],
    }

    /// `MATMUL`: streams data through the array into PSUM.
    Matmul 64 {
        /// Opcode 0x02 and events.
        head: Head,
        /// Not known (zero in real programs).
        unknown_0c: [u8; 4],
        /// The moving data (offset 0x10).
        source: Tensor3,
        /// Element type code of the moving data (offset 0x20).
        element: u8,
        /// Not known.
        unknown_21: u8,
        /// 1 for a transposition: PSUM then gets elements of the source's type (offset 0x22).
        transpose: u8,
        /// Not known.
        unknown_23: [u8; 3],
        /// Rows of the array: partitions of the source (offset 0x26).
        rows: u8,
        /// Columns of the array: partitions of the destination (offset 0x27).
        columns: u8,
        /// Not known.
        unknown_28: [u8; 3],
        /// Bit 0: first of a sum, overwrites; bit 1: last of a sum (offset 0x2b).
        accumulate: u8,
        /// Bit for each group of 32 rows (offset 0x2c).
        row_groups: u8,
        /// Bit for each group of 32 columns (offset 0x2d).
        column_groups: u8,
        /// Not known.
        unknown_2e: [u8; 2],
        /// Sums in PSUM (offset 0x30).
        destination: Tensor3,
    }

    /// `TENSOR_TENSOR`: one operation on two operands, element by element.
    TensorTensor 64 {
        /// Opcode 0x41 and events.
        head: Head,
        /// Element type codes of the operands, one nibble each (offset 0x0c).
        operand_elements: u8,
        /// Element type code of the result (offset 0x0d).
        element: u8,
        /// Arithmetic operation; 4 is an addition (offset 0x0e).
        operation: u8,
        /// Partitions (offset 0x0f).
        partitions: u8,
        /// First operand (offset 0x10).
        first: Tensor3,
        /// Second operand (offset 0x20).
        second: Tensor3,
        /// Result (offset 0x30).
        destination: Tensor3,
    }

    /// `COPY` and `CAST`: moves elements, the latter from one type to another.
    Copy 64 {
        /// Opcode 0x46 or 0x47 and events.
        head: Head,
        /// Elements read (offset 0x0c).
        source: Tensor4,
        /// Element type code of the source (offset 0x20).
        source_element: u8,
        /// Element type code of the destination (offset 0x21).
        destination_element: u8,
        /// Partitions (offset 0x22).
        partitions: u8,
        /// Not known (zero in real programs).
        unknown_23: [u8; 9],
        /// Elements written (offset 0x2c).
        destination: Tensor4,
    }

    /// `MEMSET`: writes one value everywhere.
    Memset 64 {
        /// Opcode 0x49 and events.
        head: Head,
        /// The value's bits (offset 0x0c).
        value: U32,
        /// Not known.
        unknown_10: [u8; 16],
        /// Element type code (offset 0x20).
        element: u8,
        /// Not known.
        unknown_21: u8,
        /// Partitions (offset 0x22).
        partitions: u8,
        /// Not known.
        unknown_23: [u8; 9],
        /// Elements written (offset 0x2c).
        destination: Tensor4,
    }

    /// `EVENT_SEMAPHORE` and `NOP`: wait and signal, nothing else.
    EventSemaphore 64 {
        /// Opcode 0xa0 or 0xa4 and events.
        head: Head,
        /// Not known.
        unknown_0c: [u8; 20],
        /// A second wait and a second signal; both waits must hold (offset 0x20).
        second: Events,
        /// Not known.
        unknown_28: [u8; 24],
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

    /// `DMA_DIRECT2D`: hands a transfer to the queue set of its engine.
    Dma 64 {
        /// Opcode 0xd4 and events.
        head: Head,
        /// Quality of service (offset 0x0c).
        quality: u8,
        /// Semaphore that rises at completion (offset 0x0d).
        semaphore: u8,
        /// By how much: 16 in real programs (offset 0x0e).
        increment: u8,
        /// 0 direct, 1 indirect, 2 transpose, 3 gather and transpose (offset 0x0f).
        kind: u8,
        /// Where from (offset 0x10).
        source: DmaSide,
        /// Register with a bound for the source (offset 0x26).
        source_bound: u8,
        /// Register with a bound for the destination (offset 0x27).
        destination_bound: u8,
        /// Where to (offset 0x28).
        destination: DmaSide,
        /// Element type code of the source (offset 0x3e).
        source_element: u8,
        /// Element type code of the destination (offset 0x3f).
        destination_element: u8,
    }

    /// A slot as it stands in the file.
    Slot 64 {
        /// Opcode and events.
        head: Head,
        /// Operands.
        operands: [u8; 52],
    }
}

impl Tensor3 {
    /// Elements in each partition.
    pub fn elements(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(n.get())).product()
    }
}

impl Tensor4 {
    /// Elements in each partition; 2^64 and more cannot come from four 16-bit counts but by the largest of them.
    pub fn elements(&self) -> u64 {
        self.counts
            .iter()
            .fold(1u64, |n, count| n.saturating_mul(u64::from(count.get())))
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
