//! Puts a program together, table by table, inside its limits.

use crate::buffer::{Buffer, Memory, MemoryKind};
use crate::id::{
    BufferId, KernelId, MemoryId, PartId, PieceId, QueueId, ResourceId, SyncId, TaskId,
};
use crate::kernel::Kernel;
use crate::limits::Limits;
use crate::program::{Demand, Location, Piece, PieceOrder, Program, Queue, Resource, Span, Task};
use crate::sync::{Configuration, Counter, Signal, Sync, SyncKind, Wait};
use crate::time::Time;
use index_vec::IndexVec;
use std::fmt;

/// A program in the making. [`finish`](Builder::finish) checks what it has become.
#[derive(Debug)]
pub struct Builder<'a> {
    /// What has been put together so far.
    pub program: Program<'a>,
    /// Tasks of each queue so far.
    counts: IndexVec<QueueId, u32>,
    most_tasks: u64,
    most_bytes: u64,
}

/// A task to be added, see [`Task`].
#[derive(Clone, Debug)]
pub struct NewTask<'t> {
    /// On which queue.
    pub queue: QueueId,
    /// What it does.
    pub kernel: KernelId,
    /// Conditions.
    pub waits: &'t [Wait],
    /// Signals, given in this order.
    pub signals: &'t [Signal],
    /// Shared resources.
    pub demands: &'t [Demand],
    /// Time that it takes before it competes for them.
    pub fixed: Time,
    /// Where the file says so.
    pub location: Location,
    /// The compiler's name for it.
    pub label: Option<Box<str>>,
}

impl NewTask<'_> {
    /// A task that waits for nothing, signals nothing and takes no time.
    pub fn new(queue: QueueId, kernel: KernelId) -> Self {
        NewTask {
            queue,
            kernel,
            waits: &[],
            signals: &[],
            demands: &[],
            fixed: Time::ZERO,
            location: Location::default(),
            label: None,
        }
    }
}

/// Why a program cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// It is larger than a limit.
    Limit {
        /// Name of the limit, one of [`Limits::NAMES`].
        name: &'static str,
        /// Its value.
        limit: u64,
    },
    /// It names what it does not have.
    Malformed(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Limit { name, limit } => {
                write!(f, "the program exceeds the limit {name} = {limit}")
            }
            BuildError::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for BuildError {}

impl<'a> Builder<'a> {
    /// Ids and spans are 32 bits wide, so that no limit allows more tasks than that.
    pub fn new(target: &'static str, limits: &Limits) -> Builder<'a> {
        Builder {
            program: Program {
                target,
                ..Program::default()
            },
            counts: IndexVec::new(),
            most_tasks: limits.tasks.min(u32::MAX.into()),
            most_bytes: limits.memory_bytes,
        }
    }

    /// Adds a part of the file.
    pub fn part(&mut self, name: impl Into<String>) -> PartId {
        self.program.parts.push(name.into())
    }

    /// Adds a memory of so many bytes.
    pub fn memory(&mut self, name: impl Into<String>, size: u64, kind: MemoryKind) -> MemoryId {
        let name = name.into();
        self.program.memories.push(Memory { name, size, kind })
    }

    /// Adds a buffer.
    pub fn buffer(&mut self, buffer: Buffer<'a>) -> BufferId {
        self.program.buffers.push(buffer)
    }

    /// Adds a resource on the chip of so many bytes per second, for all transfers together and for each of them.
    pub fn resource(&mut self, name: impl Into<String>, capacity: f64, each: f64) -> ResourceId {
        self.program.resources.push(Resource {
            name: name.into(),
            capacity,
            per_transfer: each,
            off_chip: false,
        })
    }

    /// Adds a counter.
    pub fn counter(&mut self, name: impl Into<String>, counter: Counter) -> SyncId {
        self.program.syncs.push(Sync {
            name: name.into(),
            kind: SyncKind::Counter(counter),
        })
    }

    /// Adds a barrier that has these uses from the start; the barrier that they name is set here.
    pub fn barrier(
        &mut self,
        name: impl Into<String>,
        uses: impl IntoIterator<Item = Configuration>,
    ) -> SyncId {
        let barrier = self.program.syncs.next_idx();
        let uses = uses
            .into_iter()
            .map(|used| Configuration { barrier, ..used });
        let preloaded = uses.map(|used| self.program.configurations.push(used));
        let kind = SyncKind::Barrier {
            preloaded: preloaded.collect(),
            depth: None,
        };
        let name = name.into();
        self.program.syncs.push(Sync { name, kind })
    }

    /// Adds a queue that works on so many pieces at a time.
    pub fn queue(&mut self, name: impl Into<String>, servers: u32) -> QueueId {
        let name = name.into();
        let order = PieceOrder::Release;
        self.program.queues.push(Queue {
            name,
            servers,
            order,
        })
    }

    /// Adds a kernel.
    pub fn kernel(&mut self, kernel: impl Kernel + 'a) -> KernelId {
        self.program.kernels.push(Box::new(kernel))
    }

    /// Makes room for a number of tasks to come.
    pub fn reserve(&mut self, tasks: usize) {
        let tasks = tasks.min(usize::try_from(self.most_tasks).unwrap_or(usize::MAX));
        self.program.tasks.reserve(tasks);
        self.program.signals.reserve(tasks);
    }

    /// The number that the next task of a queue will have among those of its queue.
    pub fn next_index(&self, queue: QueueId) -> u32 {
        self.counts.get(queue).copied().unwrap_or_default()
    }

    /// Adds a task. It runs when its piece is released.
    pub fn task(&mut self, task: NewTask<'_>) -> Result<TaskId, BuildError> {
        let program = &mut self.program;
        let full = |table: usize, more: usize| u32::try_from(table.saturating_add(more)).is_err();
        if program.tasks.len() as u64 >= self.most_tasks
            || full(program.waits.len(), task.waits.len())
            || full(program.signals.len(), task.signals.len())
            || full(program.demands.len(), task.demands.len())
        {
            return Err(BuildError::Limit {
                name: "tasks",
                limit: self.most_tasks,
            });
        }
        while self.counts.len() <= task.queue.index() {
            self.counts.push(0);
        }
        let index = self.counts[task.queue];
        self.counts[task.queue] += 1;
        Ok(program.tasks.push(Task {
            queue: task.queue,
            index,
            kernel: task.kernel,
            waits: Span::push(&mut program.waits, task.waits.iter().copied()),
            signals: Span::push(&mut program.signals, task.signals.iter().copied()),
            demands: Span::push(&mut program.demands, task.demands.iter().copied()),
            fixed: task.fixed,
            location: task.location,
            label: task.label,
        }))
    }

    /// Makes a piece of the tasks from `first` on, all of one queue.
    pub fn piece(&mut self, queue: QueueId, first: TaskId) -> PieceId {
        let count = self.program.tasks.len().saturating_sub(first.index()) as u32;
        self.program.pieces.push(Piece {
            queue,
            first,
            count,
        })
    }

    /// The same, and releases it before the start.
    pub fn release(&mut self, queue: QueueId, first: TaskId) -> PieceId {
        let piece = self.piece(queue, first);
        self.program.initial.push(piece);
        piece
    }

    /// The program, if everything that it names is there and its buffers are inside the limit.
    pub fn finish(self) -> Result<Program<'a>, BuildError> {
        let sizes = self.program.buffers.iter().map(|buffer| buffer.size);
        if sizes.fold(0, u64::saturating_add) > self.most_bytes {
            return Err(BuildError::Limit {
                name: "memory_bytes",
                limit: self.most_bytes,
            });
        }
        self.program.well_formed().map_err(BuildError::Malformed)?;
        Ok(self.program)
    }
}
