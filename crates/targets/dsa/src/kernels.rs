//! The meanings of the tasks that a graph becomes: streams that move, and the fabric between them.

use crate::evaluate::{Fabric, Rows, Stop, Stream};
use crate::inputs::Input;
use crate::operations::REGISTERS;
use chipless_model::{Access, BufferId, Fault, Kernel, Pattern, Storage};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a stream that go from one buffer to the same place of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) from: BufferId,
    pub(crate) to: BufferId,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Rows of one stream, or of several one after the other, move between memory and ports.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) operation: &'static str,
    /// The port, or how many they are.
    pub(crate) streams: Arc<str>,
    pub(crate) legs: Box<[Leg]>,
}

impl Kernel for Move {
    fn operation(&self) -> Cow<'static, str> {
        self.operation.into()
    }

    fn details(&self) -> String {
        let size = self.legs.iter().map(|leg| leg.size).sum();
        format!("{} of {}", bytes(size), self.streams)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for leg in &self.legs {
            let pattern = Pattern::contiguous(leg.offset, leg.size);
            visit(Access::read(leg.from, pattern));
        }
        for leg in &self.legs {
            let pattern = Pattern::contiguous(leg.offset, leg.size);
            visit(Access::write(leg.to, pattern));
        }
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        let holds =
            |leg: &&Leg| leg.to == buffer && (leg.offset..leg.offset + leg.size).contains(&byte);
        let leg = self.legs.iter().rev().find(holds)?;
        Some((leg.from, byte))
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        for leg in &self.legs {
            let range = leg.offset as usize..(leg.offset + leg.size) as usize;
            if let Some(([from], to)) = storage.split([leg.from], leg.to) {
                to[range.clone()].copy_from_slice(&from[range]);
            }
        }
        Ok(())
    }
}

/// Bytes of a stream at a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Which of the graph's input or output ports.
    pub(crate) port: u32,
    /// Whether they say which lanes count.
    pub(crate) flags: bool,
    pub(crate) buffer: BufferId,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Piece {
    fn access(&self) -> Pattern {
        Pattern::contiguous(self.offset, self.size)
    }
}

/// What instructions hand on from one piece of their rows to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub(crate) buffer: BufferId,
    pub(crate) size: u64,
    /// Whether there are rows before these, and behind them.
    pub(crate) takes: bool,
    pub(crate) gives: bool,
}

/// The fabric computes some rows.
///
/// How many rows come out was found when the program was made, on the inputs that were known then: buffers are as long as that. On other
/// inputs that is a fault where it differs.
#[derive(Debug)]
pub(crate) struct Compute<'a> {
    pub(crate) fabric: Arc<Fabric<'a>>,
    /// The streams of all input ports, for their loops.
    pub(crate) inputs: &'a [Input<'a>],
    /// The connected parts that are computed.
    pub(crate) parts: Range<usize>,
    /// The rows; all there are where data decide how far each stream is taken.
    pub(crate) span: Option<Range<usize>>,
    pub(crate) rows: u64,
    pub(crate) nodes: usize,
    /// Instructions that remember something.
    pub(crate) memories: usize,
    /// Operations of the part, as people read them.
    pub(crate) operations: Arc<str>,
    pub(crate) takes: Box<[Piece]>,
    pub(crate) gives: Box<[Piece]>,
    pub(crate) registers: Option<Registers>,
    /// Why nothing can be computed.
    pub(crate) fault: Option<Fault>,
}

impl Kernel for Compute<'_> {
    fn operation(&self) -> Cow<'static, str> {
        "compute".into()
    }

    fn details(&self) -> String {
        format!(
            "{} rows through {} nodes: {}",
            self.rows, self.nodes, self.operations
        )
    }

    /// Each node is taken for one operation on each row.
    fn arithmetic(&self) -> u64 {
        self.rows.saturating_mul(self.nodes as u64)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let some = |piece: &&Piece| piece.size > 0;
        for piece in self.takes.iter().filter(some) {
            visit(Access::read(piece.buffer, piece.access()));
        }
        if let Some(registers) = self.registers.filter(|registers| registers.takes) {
            let pattern = Pattern::contiguous(0, registers.size);
            visit(Access::read(registers.buffer, pattern));
        }
        for piece in self.gives.iter().filter(some) {
            visit(Access::write(piece.buffer, piece.access()));
        }
        if let Some(registers) = self.registers.filter(|registers| registers.gives) {
            let pattern = Pattern::contiguous(0, registers.size);
            visit(Access::write(registers.buffer, pattern));
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut memory = vec![[0; REGISTERS]; self.memories];
        if let Some(registers) = self.registers.filter(|registers| registers.takes) {
            let words = storage.bytes(registers.buffer).as_chunks().0;
            for (register, word) in memory.as_flattened_mut().iter_mut().zip(words) {
                *register = u64::from_le_bytes(*word);
            }
        }
        let mut streams = vec![Stream::default(); self.inputs.len()];
        for piece in &self.takes {
            let port = piece.port as usize;
            streams[port] = Stream {
                loops: self.inputs[port].stream.loops.clone(),
                bytes: Cow::Borrowed(storage.bytes(piece.buffer)),
            };
        }
        let parts = self.parts.clone();
        let mut found = self
            .fabric
            .run(parts, &streams, self.span.as_ref(), &mut memory)
            .map_err(|stop| self.stopped(&stop))?;
        found.sort_unstable_by_key(|(port, _)| *port);
        let none = Rows::default();
        for piece in &self.gives {
            let rows = found.binary_search_by_key(&(piece.port as usize), |(port, _)| *port);
            let rows = rows.map_or(&none, |at| &found[at].1);
            self.give(piece, rows, storage)?;
        }
        if let Some(registers) = self.registers.filter(|registers| registers.gives) {
            let words = storage.bytes_mut(registers.buffer).as_chunks_mut().0;
            for (word, register) in words.iter_mut().zip(memory.as_flattened()) {
                *word = register.to_le_bytes();
            }
        }
        Ok(())
    }
}

impl Compute<'_> {
    fn stopped(&self, stop: &Stop) -> Fault {
        let message = stop.message(self.fabric.graph());
        match stop {
            Stop::Refused(_) => Fault::unsupported(message),
            _ => Fault::program(message),
        }
    }

    /// Puts rows where the program has room for them.
    fn give(&self, piece: &Piece, rows: &Rows, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let (offset, size) = (piece.offset as usize, piece.size as usize);
        let room = &mut storage.bytes_mut(piece.buffer)[offset..offset + size];
        let given = match &rows.valid {
            Some(valid) if piece.flags => valid,
            // Every lane counts.
            None if piece.flags => {
                room.fill(1);
                return Ok(());
            }
            _ => &rows.bytes,
        };
        if given.len() != size {
            let mut outputs = self.fabric.graph().outputs();
            let name = outputs
                .nth(piece.port as usize)
                .map_or("", |(_, node, _)| &node.name);
            return Err(Fault::program(format!(
                "{} of output {name} come out; on the inputs that the program was made for it was {}",
                bytes(given.len() as u64),
                bytes(piece.size)
            )));
        }
        room.copy_from_slice(given);
        Ok(())
    }
}

fn bytes(size: u64) -> String {
    if size == 1 {
        "1 byte".to_owned()
    } else {
        format!("{size} bytes")
    }
}
