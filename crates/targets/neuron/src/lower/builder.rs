//! Puts a program together, table by table.

use super::meetings::{self, Meetings, Met};
use crate::graph::Engine;
use crate::json::Error;
use crate::kernels::Context;
use crate::kernels::instruction::Executed;
use crate::rules::container::LIMIT;
use crate::stream::Slot;
use chipless_model::{
    BuildError, Counter, Fault, KernelId, Limits, PartId, Piece, PieceId, PieceOrder, Place,
    Program, QueueId, Signal, Span, TaskId, Wait,
};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub(super) use chipless_model::NewTask;

/// A program in the making.
pub(super) struct Builder<'p> {
    build: chipless_model::Builder<'p>,
    /// Kernels of slots of the current engine, by number of the body.
    executed: Vec<Option<KernelId>>,
    /// Whether slots run as their functions are called, and those that do the same share a kernel. Listings show each slot once, with
    /// a text of its own.
    pub(super) follows: bool,
    /// Where cores wait for each other.
    meetings: Meetings,
}

impl<'p> Deref for Builder<'p> {
    type Target = chipless_model::Builder<'p>;

    fn deref(&self) -> &Self::Target {
        &self.build
    }
}

impl DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.build
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: BuildError) -> Error {
    Box::new(LIMIT.at(Place::file(), error.to_string()))
}

impl<'p> Builder<'p> {
    pub(super) fn new(limits: &Limits, follows: bool) -> Builder<'p> {
        Builder {
            build: chipless_model::Builder::new("neuron", limits),
            executed: Vec::new(),
            follows,
            meetings: Meetings::default(),
        }
    }

    pub(super) fn task(&mut self, task: NewTask<'_>) -> Result<TaskId, Error> {
        self.build.task(task).map_err(refused)
    }

    /// A queue that spreads its work over lanes, see [`PieceOrder::Lanes`].
    pub(super) fn lanes(&mut self, name: String, servers: u32, lanes: u64) -> QueueId {
        let queue = self.queue(name, servers);
        let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
        self.program.queues[queue].order = PieceOrder::Lanes(lanes);
        queue
    }

    /// The part of a name, made where there is none yet.
    pub(super) fn part_of(&mut self, name: &str) -> PartId {
        let known = self.program.parts.iter().position(|part| part == name);
        known.map_or_else(|| self.part(name), PartId::from_usize)
    }

    pub(super) fn finish(self) -> Result<Program<'p>, Error> {
        self.build.finish().map_err(refused)
    }

    /// What a slot does, whose body has this number among those of its engine. Slots that do the same share a kernel.
    /// `setup` says more of what it does: then it shares with none.
    pub(super) fn slot(
        &mut self,
        slot: &'p Slot,
        body: u32,
        setup: Option<&'p Slot>,
        context: &Arc<Context>,
    ) -> KernelId {
        let shares = self.follows && setup.is_none();
        if shares && let Some(known) = self.executed[body as usize] {
            return known;
        }
        let kernel = self.kernel(Executed::new(slot, setup, Arc::clone(context)));
        if shares {
            self.executed[body as usize] = Some(kernel);
        }
        kernel
    }

    /// Slots that follow are those of another engine, with so many bodies.
    pub(super) fn begin_engine(&mut self, bodies: usize) {
        self.executed.clear();
        self.executed.resize(bodies, None);
    }

    /// A piece whose tasks are not known yet.
    pub(super) fn reserve_piece(&mut self, queue: QueueId) -> PieceId {
        self.program.pieces.push(Piece {
            queue,
            first: TaskId::from_raw(0),
            count: 0,
        })
    }

    /// Gives a reserved piece its tasks.
    pub(super) fn fill_piece(&mut self, piece: PieceId, first: TaskId, count: u32) {
        let piece = &mut self.program.pieces[piece];
        (piece.first, piece.count) = (first, count);
    }

    /// The next time that a core of so many comes to a place, with an engine: see [`Meetings::meet`].
    pub(super) fn meet(
        &mut self,
        place: meetings::Place,
        who: (usize, usize),
        engine: Engine,
    ) -> Result<Met, Fault> {
        let build = &mut self.build;
        self.meetings.meet(place, who, engine, |name| {
            build.counter(name, Counter::up_to(i64::from(u32::MAX)))
        })
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
