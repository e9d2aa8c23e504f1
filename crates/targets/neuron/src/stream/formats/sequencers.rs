//! Formats of instructions that the sequencers act on: registers, semaphores, transfers.

use super::{Code, Field, Format, Kind, get, kind, views};
use crate::stream::{DmaSide, Events, Evidence, Scalars, Slot};
use Code::At;

/// Where operands of the sequencer come from.
const REGISTER_SOURCES: &[&str] = &["registers", "instruction"];
/// How a register compares for a branch.
const COMPARISONS: &[&str] = &[
    "always",
    "less_than_number",
    "at_most_number",
    "equals_number",
    "differs_from_number",
    "at_least_number",
    "greater_than_number",
    "code7",
    "code8",
    "less_than_register",
    "at_most_register",
    "equals_register",
    "differs_from_register",
    "at_least_register",
    "greater_than_register",
];

views! {
    /// `COMPARE_BRANCH`: goes on elsewhere if a register compares with a number or with another register.
    CompareBranch {
        /// The comparison.
        0x0c op: Choice(COMPARISONS), Quoted;
        /// Type of what is compared.
        0x0d element: Element(At(0x0d)), Quoted;
        /// What the target is, as a code.
        0x0e form: Byte, Quoted;
        /// The first register.
        0x20 register0: Byte, Quoted;
        /// The second.
        0x21 register1: Byte, Quoted;
        /// Or a number.
        0x10 imm: Word, Quoted;
        /// Where to. Which place of the stream that is, is not public.
        0x30 target: Word, Quoted;
    }

    /// `MOVE`: up to eight registers of the engine.
    Move {
        /// How many.
        0x0c moves: Byte, Quoted;
        /// Type of what is moved.
        0x0d element: Element(At(0x0d)), Quoted;
        /// From registers or from the instruction.
        0x0e from: Choice(REGISTER_SOURCES), Quoted;
        /// Registers read.
        0x10 sources: Array(8), Quoted;
        /// Registers written.
        0x18 destinations: Array(8), Quoted;
        /// Eight words.
        0x20 immediates: Array(32), Quoted;
    }

    /// `ALU_OP`: one operation on registers of the engine, `src0 op src1` or `src0 op imm`.
    RegisterOperation {
        /// The operation.
        0x0c op: Alu, Quoted;
        /// Type of the operands.
        0x0d element: Element(At(0x0d)), Quoted;
        /// Type of the result, where it says one.
        0x0f result: Element(At(0x0f)), Quoted;
        /// Register of the result.
        0x14 dst: Byte, Quoted;
        /// Register of its high half, of 64 bits.
        0x15 dst_high: Byte, Quoted;
        /// Register of the first operand.
        0x10 src0: Byte, Quoted;
        /// Register of its high half, of 64 bits.
        0x11 src0_high: Byte, Quoted;
        /// Where the second operand comes from.
        0x0e from: Choice(REGISTER_SOURCES), Quoted;
        /// Register of the second operand.
        0x12 src1: Byte, Quoted;
        /// Register of its high half, of 64 bits.
        0x13 src1_high: Byte, Quoted;
        /// The second operand.
        0x18 imm: Bits, Quoted;
        /// Its high half, of 64 bits.
        0x1c imm_high: Bits, Quoted;
    }

    /// `TENSOR_LOAD` and `TENSOR_STORE`: elements of memory into registers of the engine, and back.
    RegisterMemory {
        /// The elements.
        0x0e memory: Scalars(At(0x0c)), Quoted;
        /// What a store takes them from.
        0x0d from: Choice(REGISTER_SOURCES), Quoted;
        /// A register for each element, in their order; or the elements themselves.
        0x20 registers: Array(32), Quoted;
    }

    /// The same, with the number of a variable in place of an address.
    RegisterVariable {
        /// The elements.
        0x0e memory: SymbolicScalars(At(0x0c)), Quoted;
        /// What a store takes them from.
        0x0d from: Choice(REGISTER_SOURCES), Quoted;
        /// A register for each element, in their order; or the elements themselves.
        0x20 registers: Array(32), Quoted;
    }

    /// `PSEUDO_CORE_BARRIER`: the engine waits for one of each other core of the logical core.
    CoreBarrier {
        /// Which barrier: the same number on all cores.
        0x0c id: Word, Quoted;
        /// The semaphore that the runtime takes for it.
        0x10 semaphore: Word, Quoted;
    }

    /// `EVENT_SEMAPHORE` and `NOP`: wait and signal, nothing else.
    EventSemaphore {
        /// A second wait and a second signal; both waits must hold.
        0x20 second: Events, Proven;
    }

    /// Instructions without operands.
    NoOperands {}

    /// `PSEUDO_DMA_DIRECT2D`: hands a transfer to the queue set of its engine.
    Dma {
        /// Where to.
        0x28 dst: Side(At(0x3f)), Proven;
        /// Where from.
        0x10 src: Side(At(0x3e)), Proven;
        /// How the rows are found.
        0x0f kind: Choice(&["direct", "indirect", "transpose", "gather_transpose"]), Proven;
        /// Class of service: has no effect on memory.
        0x0c quality: Byte, Quoted;
        /// Register with a bound for the source: its number, with 0x80 where the bound counts and 0x40 where nobody is told.
        0x26 src_bound: Byte, Assumed;
        /// Register with a bound for the destination.
        0x27 dst_bound: Byte, Assumed;
        /// The semaphore that rises at completion, and by how much: 16 in real programs.
        0x0d completion: Completion, Proven;
    }

    /// `PSEUDO_EXTENSION`: more of the transfer before it. It has no length, no wait and no signal: its operands begin behind the opcode.
    DmaExtension {
        /// Whose rows the indices find: neither bit the source's, `scatter` the destination's, `both` those of both. Then whether an index
        /// out of bounds is an error, whether indices of the destination may be equal, and the dimensions that indices count in.
        0x01 flags: Flags(&["scatter", "both", "error", "repeated", "src_y", "src_z", "dst_y", "dst_z"]), Quoted;
        /// Partitions with indices.
        0x02 channels: Byte, Quoted;
        /// What the destination becomes with what it held.
        0x03 compute: Choice(&["none", "add", "multiply", "max", "min"]), Quoted;
        /// Address of the first index of a row of the source.
        0x04 src_index: Bits, Quoted;
        /// Address of the first index of a row of the destination.
        0x08 dst_index: Bits, Quoted;
        /// Bytes that the source has.
        0x0c src_bytes: Word, Quoted;
        /// Their high half.
        0x38 src_bytes_high: Word, Quoted;
        /// Bytes that the destination has.
        0x10 dst_bytes: Word, Quoted;
        /// Their high half.
        0x3c dst_bytes_high: Word, Quoted;
        /// Bytes from one row of a tile to the next.
        0x14 tile_step: Signed, Quoted;
        /// Rows of a tile.
        0x18 tile_rows: Byte, Quoted;
        /// Columns of a tile.
        0x19 tile_columns: Byte, Quoted;
    }

    /// `PSEUDO_DMA_TRIGGER`: starts descriptors of the engine's file.
    Trigger {
        /// The queue set, or an instance of it.
        0x0c queue: Name, Quoted;
        /// What the number below says.
        0x2c by: Word, Quoted;
        /// The id of entries, or how many transfers.
        0x30 number: Word, Quoted;
    }

    /// `PSEUDO_LOAD_ACT_FUNC_SET`: loads a set of functions.
    FunctionSet {
        /// The name of the set.
        0x0c name: Name, Quoted;
    }

    /// Pseudo instructions with a name: functions, instances of queue sets.
    Named {
        /// The name.
        0x0c name: Name, Assumed;
    }

    /// Operands that nobody outside the vendor knows.
    Raw {}
}

impl DmaExtension<'_> {
    /// Whether indices find the rows of the source, and those of the destination.
    pub fn by_index(self) -> [bool; 2] {
        match self.flags() & 3 {
            0 => [true, false],
            1 => [false, true],
            _ => [true, true],
        }
    }
}

impl Dma<'_> {
    /// Kind of a transfer whose rows indices find.
    pub const INDIRECT: u8 = 1;
    /// Kind of one that is transposed besides.
    pub const GATHER_TRANSPOSE: u8 = 3;

    /// Whether indices find the rows of a side.
    pub fn has_indices(self) -> bool {
        matches!(self.kind(), Dma::INDIRECT | Dma::GATHER_TRANSPOSE)
    }

    /// Element type codes of source and destination.
    pub fn codes(self) -> (u8, u8) {
        (At(0x3e).of(self.0), At(0x3f).of(self.0))
    }

    /// Whether elements change their type on the way.
    pub fn casts(self) -> bool {
        let (source, destination) = self.codes();
        source != destination
    }
}
