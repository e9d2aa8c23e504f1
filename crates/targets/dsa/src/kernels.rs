//! The meanings of the tasks that a graph becomes: streams that move, and the fabric between them.

use chipless_model::{Access, BufferId, Fault, Kernel, Pattern, Storage};
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of a stream move between memory and a port.
#[derive(Debug)]
pub(crate) struct Move<'a> {
    pub(crate) operation: &'static str,
    pub(crate) port: &'a str,
    pub(crate) from: BufferId,
    pub(crate) to: BufferId,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Kernel for Move<'_> {
    fn operation(&self) -> Cow<'static, str> {
        self.operation.into()
    }

    fn details(&self) -> String {
        format!("{} of {}", bytes(self.size), self.port)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let pattern = Pattern::contiguous(self.offset, self.size);
        visit(Access::read(self.from, pattern.clone()));
        visit(Access::write(self.to, pattern));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let range = self.offset as usize..(self.offset + self.size) as usize;
        if let Some(([from], to)) = storage.split([self.from], self.to) {
            to[range.clone()].copy_from_slice(&from[range]);
        }
        Ok(())
    }
}

/// Bytes of a stream at a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) buffer: BufferId,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// The port.
    pub(crate) name: &'a str,
}

/// The fabric computes some rows.
///
/// What data decide (how many rows come out, what an accumulator holds) was decided when the graph was evaluated on its inputs, before
/// there was a program. A run checks that the rows that reach the ports are the rows that were evaluated.
#[derive(Debug)]
pub(crate) struct Compute<'a> {
    pub(crate) rows: u64,
    pub(crate) nodes: usize,
    /// Operations of the part, as people read them.
    pub(crate) operations: Arc<str>,
    pub(crate) takes: Vec<Piece<'a>>,
    pub(crate) gives: Vec<Piece<'a>>,
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
        for piece in &self.takes {
            visit(Access::read(
                piece.buffer,
                Pattern::contiguous(piece.offset, piece.bytes.len() as u64),
            ));
        }
        for piece in &self.gives {
            visit(Access::write(
                piece.buffer,
                Pattern::contiguous(piece.offset, piece.bytes.len() as u64),
            ));
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let range =
            |piece: &Piece<'_>| piece.offset as usize..piece.offset as usize + piece.bytes.len();
        for piece in &self.takes {
            if storage.bytes(piece.buffer)[range(piece)] != *piece.bytes {
                let (name, from, to) = (
                    piece.name,
                    piece.offset,
                    piece.offset + piece.bytes.len() as u64,
                );
                return Err(Fault::program(format!(
                    "bytes {from} to {to} at port {name} are not those that the graph was evaluated on"
                )));
            }
        }
        for piece in &self.gives {
            storage.bytes_mut(piece.buffer)[range(piece)].copy_from_slice(piece.bytes);
        }
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
