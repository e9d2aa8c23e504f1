//! Puts a program together, table by table.

use crate::json::Error;
use crate::kernels::Chip;
use crate::kernels::instruction::Executed;
use crate::rules::container::LIMIT;
use crate::stream::{Bodies, Slot};
use chipless_model::{
    Demand, IndexVec, Kernel, KernelId, Limits, Location, PartId, Piece, PieceId, Place, Program,
    Queue, QueueId, Signal, Span, SyncId, SyncKind, Task, TaskId, Time, Wait,
};

/// A program in the making.
pub(super) struct Builder<'p> {
    pub(super) program: Program<'p>,
    /// Tasks of each queue so far.
    counts: IndexVec<QueueId, u32>,
    /// Slots that have been seen of the current core.
    bodies: Bodies,
    /// Kernels of slots, by number of the body.
    executed: Vec<KernelId>,
    most_tasks: u64,
}

/// A task to be added.
pub(super) struct NewTask<'t> {
    pub(super) queue: QueueId,
    pub(super) kernel: KernelId,
    pub(super) waits: &'t [Wait],
    pub(super) signals: &'t [Signal],
    pub(super) demands: &'t [Demand],
    pub(super) fixed: Time,
    pub(super) location: Location,
    pub(super) label: Option<Box<str>>,
}

impl<'p> Builder<'p> {
    pub(super) fn new(limits: &Limits) -> Builder<'p> {
        let program = Program {
            target: "neuron",
            ..Program::default()
        };
        // Ids are 32 bits wide; a task brings at most four entries of any other table.
        Builder {
            program,
            counts: IndexVec::new(),
            bodies: Bodies::default(),
            executed: Vec::new(),
            most_tasks: limits.tasks.min(1 << 29),
        }
    }

    /// Makes room for a number of tasks to come.
    pub(super) fn reserve(&mut self, tasks: usize) {
        let tasks = tasks.min(usize::try_from(self.most_tasks).unwrap_or(usize::MAX));
        self.program.tasks.reserve(tasks);
        self.program.signals.reserve(tasks);
    }

    pub(super) fn queue(&mut self, name: String, servers: u32) -> QueueId {
        self.counts.push(0);
        self.program.queues.push(Queue { name, servers })
    }

    pub(super) fn kernel(&mut self, kernel: impl Kernel + 'p) -> KernelId {
        self.program.kernels.push(Box::new(kernel))
    }

    /// What a slot does, and the number of its body among those of its core. Slots that do the same share a kernel.
    pub(super) fn slot(&mut self, slot: &'p Slot, chip: Chip) -> (KernelId, u32) {
        let (body, is_new) = self.bodies.number(slot);
        if is_new {
            let kernel = self.kernel(Executed { slot, chip });
            self.executed.push(kernel);
        }
        (self.executed[body as usize], body)
    }

    /// Slots that follow are those of another core.
    pub(super) fn leave_core(&mut self) {
        self.bodies.leave_core();
    }

    pub(super) fn part(&mut self, name: &str) -> PartId {
        self.program.parts.push(name.to_owned())
    }

    pub(super) fn sync(&mut self, name: String, kind: SyncKind) -> SyncId {
        self.program.syncs.push(chipless_model::Sync { name, kind })
    }

    pub(super) fn task(&mut self, task: NewTask<'_>) -> Result<TaskId, Error> {
        let count = self.program.tasks.len() as u64;
        if count >= self.most_tasks {
            let message = format!(
                "more than {count} tasks: beyond the limit tasks = {}",
                self.most_tasks
            );
            return Err(Box::new(LIMIT.at(Place::file(), message)));
        }
        let NewTask {
            queue,
            kernel,
            waits,
            signals,
            demands,
            fixed,
            location,
            label,
        } = task;
        let index = self.counts[queue];
        self.counts[queue] += 1;
        let program = &mut self.program;
        let waits = Span::push(&mut program.waits, waits.iter().copied());
        let signals = Span::push(&mut program.signals, signals.iter().copied());
        let demands = Span::push(&mut program.demands, demands.iter().copied());
        Ok(program.tasks.push(Task {
            queue,
            index,
            kernel,
            waits,
            signals,
            demands,
            fixed,
            location,
            label,
        }))
    }

    /// A piece whose tasks are not known yet.
    pub(super) fn reserve_piece(&mut self, queue: QueueId) -> PieceId {
        self.program.pieces.push(Piece {
            queue,
            first: TaskId::from_raw(0),
            count: 0,
        })
    }

    /// Gives a reserved piece its one task.
    pub(super) fn fill_piece(&mut self, piece: PieceId, task: TaskId) {
        let piece = &mut self.program.pieces[piece];
        (piece.first, piece.count) = (task, 1);
    }

    /// Releases the tasks from `first` on, all of one queue, before the start.
    pub(super) fn release(&mut self, queue: QueueId, first: TaskId) {
        let count = (self.program.tasks.len() - first.index()) as u32;
        let piece = self.program.pieces.push(Piece {
            queue,
            first,
            count,
        });
        self.program.initial.push(piece);
    }

    /// One more condition for a task.
    pub(super) fn add_wait(&mut self, task: TaskId, wait: Wait) {
        let program = &mut self.program;
        let all: Vec<Wait> = program.waits(task).iter().copied().chain([wait]).collect();
        program.tasks[task].waits = Span::push(&mut program.waits, all);
    }

    /// One more signal for a task.
    pub(super) fn add_signal(&mut self, task: TaskId, signal: Signal) {
        let program = &mut self.program;
        let all: Vec<Signal> = program
            .signals(task)
            .iter()
            .copied()
            .chain([signal])
            .collect();
        program.tasks[task].signals = Span::push(&mut program.signals, all);
    }
}
