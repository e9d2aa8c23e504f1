//! The bytes of a program's buffers while it runs.

use crate::buffer::{Buffer, Role};
use crate::finding::Rule;
use crate::id::{BufferId, TaskId};
use crate::limits::Limits;
use index_vec::IndexVec;
use std::borrow::Cow;
use std::fmt;

/// The bytes of every buffer. Constants stay borrowed from the file until somebody writes them; everything else is
/// zeroed address space that the system commits page by page. It outlives a run: state buffers keep their bytes.
#[derive(Debug)]
pub struct Storage<'a> {
    buffers: IndexVec<BufferId, Cow<'a, [u8]>>,
    /// The task that runs.
    task: TaskId,
    remarks: Vec<Remark>,
}

/// What kernels saw in the data of a run that its user should know, though the run goes on: one for each rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it is.
    pub rule: &'static Rule,
    /// The first case, with its numbers.
    pub message: String,
    /// The task of the first case.
    pub task: TaskId,
    /// Task executions with such a case.
    pub tasks: u64,
    last: TaskId,
}

/// Why there is no room for the buffers of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// Together they are larger than the limit.
    Limit {
        /// Bytes that the program asks for.
        bytes: u128,
        /// The limit `memory_bytes`.
        limit: u64,
    },
    /// The system refuses one of them.
    System {
        /// Its bytes.
        bytes: u64,
    },
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Limit { bytes, limit } => write!(
                f,
                "expected buffers of at most {limit} bytes together, found {bytes} (--limit memory_bytes={bytes} lets it)"
            ),
            NoRoom::System { bytes } => {
                write!(f, "the system has no memory for {bytes} more bytes")
            }
        }
    }
}

impl std::error::Error for NoRoom {}

/// So many zero bytes, which the system commits page by page.
///
/// # Errors
/// The system refuses them. (`vec!` would end the process.)
pub fn zeroed(bytes: u64) -> Result<Vec<u8>, NoRoom> {
    let refused = NoRoom::System { bytes };
    let size = usize::try_from(bytes).map_err(|_| refused)?;
    bytemuck::allocation::try_zeroed_vec(size).map_err(|()| refused)
}

impl<'a> Storage<'a> {
    /// The bytes at the start of a run, of a program with these buffers.
    ///
    /// # Errors
    /// Buffers beyond the limit, or beyond what the system gives.
    pub fn new(
        said: &IndexVec<BufferId, Buffer<'a>>,
        limits: &Limits,
    ) -> Result<Storage<'a>, NoRoom> {
        let bytes: u128 = said.iter().map(|b| u128::from(b.size)).sum();
        if bytes > u128::from(limits.memory_bytes) {
            return Err(NoRoom::Limit {
                bytes,
                limit: limits.memory_bytes,
            });
        }
        let mut buffers = IndexVec::with_capacity(said.len());
        for buffer in said {
            buffers.push(match &buffer.initial {
                Cow::Borrowed(bytes) if bytes.len() as u64 == buffer.size => Cow::Borrowed(*bytes),
                initial => {
                    let mut bytes = zeroed(buffer.size)?;
                    let known = initial.len().min(bytes.len());
                    bytes[..known].copy_from_slice(&initial[..known]);
                    Cow::Owned(bytes)
                }
            });
        }
        Ok(Storage {
            buffers,
            task: TaskId::from_raw(0),
            remarks: Vec::new(),
        })
    }

    /// Back to the start of a first run: everything but constants has the bytes that its program says, or zeros.
    pub fn reset(&mut self, said: &IndexVec<BufferId, Buffer<'_>>) {
        for (id, buffer) in said.iter_enumerated() {
            if buffer.role != Role::Constant {
                let bytes = self.bytes_mut(id);
                let known = buffer.initial.len().min(bytes.len());
                bytes[..known].copy_from_slice(&buffer.initial[..known]);
                bytes[known..].fill(0);
            }
        }
    }

    /// Fills what is undefined until the program writes it: a read of such bytes then shows in the outputs.
    pub fn fill_undefined(&mut self, said: &IndexVec<BufferId, Buffer<'_>>, byte: u8) {
        for (id, buffer) in said.iter_enumerated() {
            if let Role::Scratch | Role::Output | Role::Profile = buffer.role {
                let bytes = self.bytes_mut(id);
                let known = buffer.initial.len().min(bytes.len());
                bytes[known..].fill(byte);
            }
        }
    }

    /// Says which task runs from now on: [remarks](Storage::remark) are about it.
    pub fn enter(&mut self, task: TaskId) {
        self.task = task;
    }

    /// Notes what a kernel saw in the data of the task that runs. The message is made for the first task of the rule only.
    pub fn remark(&mut self, rule: &'static Rule, message: impl FnOnce() -> String) {
        let task = self.task;
        match self.remarks.iter_mut().find(|known| known.rule == rule) {
            Some(known) if known.last == task => {}
            Some(known) => {
                known.tasks += 1;
                known.last = task;
            }
            None => self.remarks.push(Remark {
                rule,
                message: message(),
                task,
                tasks: 1,
                last: task,
            }),
        }
    }

    /// What kernels have remarked since the bytes were made.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, MemoryKind};

    #[test]
    fn memory_that_nobody_has_is_refused() {
        let limits = Limits {
            memory_bytes: u64::MAX,
            ..Limits::default()
        };
        for bytes in [1 << 62, u64::MAX] {
            let mut build = Builder::new("test", &limits);
            let memory = build.memory("m", bytes, MemoryKind::Dram);
            build.buffer(Buffer::new("b", memory, bytes, Role::State));
            let program = build.finish().expect("a program");
            let refused = Storage::new(&program.buffers, &limits).expect_err("too much");
            assert_eq!(refused, NoRoom::System { bytes });
        }
    }
}
