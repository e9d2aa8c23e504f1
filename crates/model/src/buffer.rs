//! Where bytes are: memories of the machine, and the buffers in them.

use crate::element::ElementType;
use crate::id::MemoryId;
use std::borrow::Cow;

/// What kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Off-chip, of the host or the board.
    Dram,
    /// Off-chip, on the package.
    Hbm,
    /// On-chip, managed by the program.
    Scratchpad,
    /// Registers that transfers can write.
    Registers,
}

impl MemoryKind {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryKind::Dram => "DRAM",
            MemoryKind::Hbm => "HBM",
            MemoryKind::Scratchpad => "scratchpad",
            MemoryKind::Registers => "registers",
        }
    }
}

/// A memory of the machine. Each core, tile or partition set has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// As the field names it: `cmx0`, `ddr`.
    pub name: String,
    /// Bytes that programs may use.
    pub size: u64,
    /// What kind.
    pub kind: MemoryKind,
}

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The host writes it before a run.
    Input,
    /// The host reads it after a run.
    Output,
    /// Never written by the program.
    Constant,
    /// Kept from run to run.
    State,
    /// What the program measures of itself, for whoever profiles it: the host reads it after a run, and it is no output.
    Profile,
    /// Undefined until written.
    Scratch,
}

impl Role {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
            Role::Constant => "constant",
            Role::State => "state",
            Role::Profile => "profile",
            Role::Scratch => "scratch",
        }
    }

    /// Whether somebody reads what a program leaves there at its end.
    pub const fn outlives_run(self) -> bool {
        matches!(self, Role::Output | Role::State | Role::Profile)
    }
}

/// A named region of a memory.
#[derive(Clone, Debug)]
pub struct Buffer<'a> {
    /// As the file names it.
    pub name: String,
    /// Where it lives.
    pub memory: MemoryId,
    /// First byte in the memory; `None` before allocation.
    pub address: Option<u64>,
    /// What the file asks of the address: a multiple of this. 1 where it asks for nothing.
    pub alignment: u64,
    /// Bytes.
    pub size: u64,
    /// What it is for.
    pub role: Role,
    /// Whether it has the weights or tables of a network, also where the host brings them.
    pub has_weights: bool,
    /// Bytes at the start, borrowed from the file where they stand there; the rest is undefined (zero when run).
    pub initial: Cow<'a, [u8]>,
    /// Type and dimensions, outermost first, of the one tensor that it holds throughout. `None` where tensors share it, or its type is not known.
    pub tensor: Option<(ElementType, Vec<u64>)>,
}

impl<'a> Buffer<'a> {
    /// A buffer without an address whose bytes are not known at the start.
    pub fn new(name: impl Into<String>, memory: MemoryId, size: u64, role: Role) -> Buffer<'a> {
        Buffer {
            name: name.into(),
            memory,
            address: None,
            alignment: 1,
            size,
            role,
            has_weights: false,
            initial: Cow::Borrowed(&[]),
            tensor: None,
        }
    }
}
