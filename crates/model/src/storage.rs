//! The bytes of a program's buffers while it runs.

use crate::id::BufferId;
use crate::limits::Limits;
use crate::program::{Program, Role};
use index_vec::IndexVec;
use std::borrow::Cow;

/// The bytes of every buffer. Constants stay borrowed from the file until somebody writes them; everything else is
/// zeroed address space that the system commits page by page. It outlives a run: state buffers keep their bytes.
#[derive(Debug)]
pub struct Storage<'a> {
    buffers: IndexVec<BufferId, Cow<'a, [u8]>>,
}

/// The buffers of a program together are larger than the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes that the program asks for.
    pub bytes: u128,
    /// The limit `memory_bytes`.
    pub limit: u64,
}

impl<'a> Storage<'a> {
    /// The bytes at the start of a run.
    pub fn new(program: &Program<'a>, limits: &Limits) -> Result<Storage<'a>, TooLarge> {
        let bytes: u128 = program.buffers.iter().map(|b| u128::from(b.size)).sum();
        if bytes > u128::from(limits.memory_bytes) {
            return Err(TooLarge {
                bytes,
                limit: limits.memory_bytes,
            });
        }
        let buffers = program.buffers.iter().map(|buffer| {
            let size = buffer.size as usize;
            match &buffer.initial {
                Cow::Borrowed(bytes) if bytes.len() == size => Cow::Borrowed(*bytes),
                initial => {
                    let mut bytes = vec![0; size];
                    let known = initial.len().min(size);
                    bytes[..known].copy_from_slice(&initial[..known]);
                    Cow::Owned(bytes)
                }
            }
        });
        Ok(Storage {
            buffers: buffers.collect(),
        })
    }

    /// Back to the start of a first run: everything but constants has the bytes that its program says, or zeros.
    pub fn reset(&mut self, program: &Program<'_>) {
        for (id, buffer) in program.buffers.iter_enumerated() {
            if buffer.role != Role::Constant {
                let bytes = self.bytes_mut(id);
                let known = buffer.initial.len().min(bytes.len());
                bytes[..known].copy_from_slice(&buffer.initial[..known]);
                bytes[known..].fill(0);
            }
        }
    }

    /// The bytes of a buffer.
    pub fn bytes(&self, buffer: BufferId) -> &[u8] {
        &self.buffers[buffer]
    }

    /// The bytes of a buffer, to be written.
    pub fn bytes_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        self.buffers[buffer].to_mut()
    }

    /// Takes the bytes of a buffer out; it has none afterwards.
    pub fn take(&mut self, buffer: BufferId) -> Vec<u8> {
        std::mem::take(&mut self.buffers[buffer]).into_owned()
    }

    /// Some buffers to read and another to write; `None` where that is one of them, or none of the program's.
    pub fn split<const READ: usize>(
        &mut self,
        read: [BufferId; READ],
        write: BufferId,
    ) -> Option<([&[u8]; READ], &mut [u8])> {
        if read.contains(&write) {
            return None;
        }
        let (before, rest) = self.buffers.as_raw_slice_mut().split_at_mut(write.index());
        let [written, after @ ..] = rest else {
            return None;
        };
        let read = read.map(|buffer| {
            if buffer < write {
                &*before[buffer.index()]
            } else {
                &*after[buffer.index() - write.index() - 1]
            }
        });
        Some((read, written.to_mut().as_mut_slice()))
    }

    /// Replaces the bytes of a buffer, an input's for example; shorter bytes leave the rest as it was.
    pub fn set(&mut self, buffer: BufferId, bytes: Cow<'a, [u8]>) {
        if bytes.len() == self.buffers[buffer].len() {
            self.buffers[buffer] = bytes;
        } else {
            let known = bytes.len().min(self.buffers[buffer].len());
            self.bytes_mut(buffer)[..known].copy_from_slice(&bytes[..known]);
        }
    }
}
