//! Puts a program together, task by task.

use chipless_model::{
    Action, Counter, Demand, IndexVec, Kernel, Location, PartId, Piece, Program, Queue, QueueId,
    Signal, Span, SyncId, SyncKind, Task, TaskId, Time, Wait,
};

/// A program in the making. Tasks are added in the order of their queues; a run of them on one queue is a piece.
pub(crate) struct Builder<'p> {
    pub(crate) program: Program<'p>,
    /// Tasks of each queue so far.
    counts: IndexVec<QueueId, u32>,
    most_tasks: u64,
}

/// A task to be added.
pub(crate) struct NewTask<'t> {
    pub(crate) queue: QueueId,
    pub(crate) waits: &'t [SyncId],
    /// Token that it gives.
    pub(crate) gives: Option<SyncId>,
    pub(crate) demands: &'t [Demand],
    pub(crate) fixed: Time,
    /// Offset in the file.
    pub(crate) at: u32,
    pub(crate) label: Option<Box<str>>,
}

/// More tasks than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) u64);

impl<'p> Builder<'p> {
    pub(crate) fn new(most_tasks: u64) -> Builder<'p> {
        let program = Program {
            target: "gemini",
            parts: IndexVec::from_vec(vec!["schedule".to_owned()]),
            ..Program::default()
        };
        // Ids are 32 bits wide; a task brings few entries of any other table.
        Builder {
            program,
            counts: IndexVec::new(),
            most_tasks: most_tasks.min(1 << 27),
        }
    }

    pub(crate) fn queue(&mut self, name: String) -> QueueId {
        self.counts.push(0);
        self.program.queues.push(Queue { name, servers: 1 })
    }

    pub(crate) fn token(&mut self, name: String) -> SyncId {
        self.program.syncs.push(chipless_model::Sync {
            name,
            kind: SyncKind::Counter(Counter::FLAG),
        })
    }

    /// Adds a task; it is released before the start.
    pub(crate) fn task(
        &mut self,
        task: NewTask<'_>,
        kernel: impl Kernel + 'p,
    ) -> Result<TaskId, TooMany> {
        let program = &mut self.program;
        if program.tasks.len() as u64 >= self.most_tasks {
            return Err(TooMany(self.most_tasks));
        }
        let NewTask {
            queue,
            waits,
            gives,
            demands,
            fixed,
            at,
            label,
        } = task;
        let index = self.counts[queue];
        self.counts[queue] += 1;
        let waits = Span::push(
            &mut program.waits,
            waits.iter().map(|sync| Wait {
                sync: *sync,
                condition: chipless_model::Condition::AtLeast(1),
            }),
        );
        let signals = Span::push(
            &mut program.signals,
            gives.map(|sync| Signal::on_completion(Action::Add(sync, 1))),
        );
        let demands = Span::push(&mut program.demands, demands.iter().copied());
        let kernel = program.kernels.push(Box::new(kernel));
        let location = Location {
            part: PartId::from_raw(0),
            offset: u64::from(at),
            size: 1,
        };
        let id = program.tasks.push(Task {
            queue,
            index,
            kernel,
            waits,
            signals,
            demands,
            fixed,
            location,
            label,
        });
        match program.pieces.last_mut() {
            Some(piece) if piece.queue == queue => piece.count += 1,
            _ => {
                let piece = program.pieces.push(Piece {
                    queue,
                    first: id,
                    count: 1,
                });
                program.initial.push(piece);
            }
        }
        Ok(id)
    }
}

impl Builder<'_> {
    /// Lets the task that was added last give another token.
    pub(crate) fn also_gives(&mut self, task: TaskId, token: SyncId) {
        let program = &mut self.program;
        program
            .signals
            .push(Signal::on_completion(Action::Add(token, 1)));
        program.tasks[task].signals.len += 1;
    }
}
