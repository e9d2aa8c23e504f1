//! Where the time of a run went, task by task: who waited for what and for whom, what lay on the critical path, and how much later
//! each task could have ended.
//!
//! The run's graph has a node for each start and end of a task. Edges: a task's duration; the end of the task before it on its
//! server to its start; the signal that completed its wait to its start; the release of its piece to its start. All of it is a pure
//! function of program and timeline.

mod critical;
mod layers;
mod lives;
mod slack;

pub use layers::{LayerSource, Layers};
pub use lives::{Live, Lives, lives};

use crate::uses::Uses;
use chipless_model::{
    Action, ConfigurationId, Direction, IndexVec, MemoryId, PieceId, PieceOrder, Program, QueueId,
    SyncId, TaskId, Time,
};
use chipless_sim::{State, Timeline};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Why a task did not start when its server was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It waited for a signal.
    Sync,
    /// Its piece was not released yet.
    Release,
    /// Its server was busy in a way that the timeline does not tell.
    Server,
}

impl Reason {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Sync => "sync",
            Reason::Release => "release",
            Reason::Server => "server",
        }
    }
}

/// A part of the time that a task kept its server waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why.
    pub reason: Reason,
    /// What was waited for.
    pub on: Option<SyncId>,
    /// The task whose signal ended the wait.
    pub by: Option<TaskId>,
    /// From here.
    pub start: Time,
    /// Until here.
    pub end: Time,
}

/// Bytes that a task's accesses touch in one memory, see [`touched`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// In which memory.
    pub memory: MemoryId,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// One task that ran.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which task.
    pub task: TaskId,
    /// Which server of its queue, counted from 0.
    pub server: u32,
    /// When it started.
    pub start: Time,
    /// When it completed.
    pub end: Time,
    /// How long it would have taken with no other transfer beside it.
    pub alone: Time,
    /// The task before it on its server.
    pub before: Option<TaskId>,
    /// What kept it from starting when the task before it on its server had ended, in order of time. They add up to
    /// [`waited`](Row::waited).
    pub waits: Vec<Wait>,
    /// Time from the end of the task before it on its server, or from 0, to its start.
    pub waited: Time,
    /// Whether it is on the critical path.
    pub critical: bool,
}

/// Every task that ran, in order of start, then of number.
#[derive(Clone, Debug)]
pub struct Attribution {
    /// The rows.
    pub rows: Vec<Row>,
    /// Tasks of the critical path, from the first to the last.
    pub critical: Vec<TaskId>,
    /// Places of tasks in `rows`.
    places: Places,
    /// Layers of tasks.
    layers: Layers,
}

/// Where each task that ran stands among the rows.
#[derive(Clone, Debug)]
struct Places(IndexVec<TaskId, Option<u32>>);

impl Places {
    fn of(program: &Program<'_>, rows: &[Row]) -> Places {
        let mut places: IndexVec<TaskId, Option<u32>> =
            program.tasks.iter().map(|_| None).collect();
        for (place, row) in (0..).zip(rows) {
            places[row.task] = Some(place);
        }
        Places(places)
    }

    fn get(&self, task: TaskId) -> Option<usize> {
        self.0[task].map(|place| place as usize)
    }
}

impl Attribution {
    /// Takes a run apart.
    pub fn of(program: &Program<'_>, timeline: &Timeline) -> Attribution {
        let mut rows = rows(program, timeline);
        alone(program, &mut rows);
        let places = Places::of(program, &rows);
        let critical = critical::path(program, timeline, &rows, &places);
        for place in critical.iter().filter_map(|task| places.get(*task)) {
            rows[place].critical = true;
        }
        Attribution {
            layers: Layers::of(program, &rows),
            rows,
            critical,
            places,
        }
    }

    /// The layer of a task: the one that its label names, or else the one that data flow gives it to.
    pub fn layer<'p>(&self, program: &'p Program<'_>, task: TaskId) -> Option<&'p str> {
        self.layers.get(program, task).map(|(layer, _)| layer)
    }

    /// The same, and how it is known.
    pub fn layer_and_source<'p>(
        &self,
        program: &'p Program<'_>,
        task: TaskId,
    ) -> Option<(&'p str, LayerSource)> {
        self.layers.get(program, task)
    }

    /// The row of a task that ran.
    pub fn row(&self, task: TaskId) -> Option<&Row> {
        self.place(task).map(|place| &self.rows[place])
    }

    /// Which one of the rows that is.
    pub fn place(&self, task: TaskId) -> Option<usize> {
        self.places.get(task)
    }

    /// By how much the task of each row may end later without the run growing, everything else in the order that it ran; of the same
    /// run as the attribution. It takes as long as everything else here, and most reports do without.
    pub fn slack(&self, program: &Program<'_>, timeline: &Timeline) -> Vec<Time> {
        slack::of(program, timeline, &self.rows, &self.places)
    }
}

#[cfg(test)]
mod tests;

fn rows(program: &Program<'_>, timeline: &Timeline) -> Vec<Row> {
    let releaser = releasers(program, timeline);
    let piece_of = first_tasks(program);
    let mut order: Vec<TaskId> = timeline
        .tasks
        .iter_enumerated()
        .filter(|(_, record)| record.state == State::Done)
        .map(|(task, _)| task)
        .collect();
    order.sort_by_key(|task| {
        let record = &timeline.tasks[*task];
        (record.start, record.end, *task)
    });
    // By queue, then by server.
    let mut last: IndexVec<QueueId, SmallVec<[Option<TaskId>; 2]>> =
        program.queues.iter().map(|_| SmallVec::new()).collect();
    let mut rows = Vec::with_capacity(order.len());
    for task in order {
        let record = &timeline.tasks[task];
        let t = &program.tasks[task];
        let (servers, server) = (&mut last[t.queue], record.server as usize);
        if servers.len() <= server {
            servers.resize(server + 1, None);
        }
        let before = servers[server].replace(task);
        let free = before.map_or(Time::ZERO, |before| timeline.tasks[before].end);
        let mut waits = Vec::new();
        let mut part = |reason, on, by, start: Time, end: Time| {
            if start < end {
                waits.push(Wait {
                    reason,
                    on,
                    by,
                    start,
                    end,
                });
            }
        };
        let by = piece_of.get(&task).and_then(|piece| releaser[*piece]);
        part(Reason::Release, None, by, free, record.ready);
        let ready = record.ready.max(free);
        match record.stall {
            Some(stall) => part(
                Reason::Sync,
                Some(stall.sync),
                stall.by,
                ready,
                record.start,
            ),
            None => part(Reason::Server, None, None, ready, record.start),
        }
        rows.push(Row {
            task,
            server: record.server,
            start: record.start,
            end: record.end,
            alone: record.end - record.start,
            before,
            waits,
            waited: record.start.saturating_sub(free),
            critical: false,
        });
    }
    // They are in order of start already.
    for together in rows.chunk_by_mut(|a, b| a.start == b.start) {
        together.sort_by_key(|row| row.task);
    }
    rows
}

/// The task that releases each piece; `None` for those released before the start. A barrier that retires releases pieces at the last
/// of its signals.
fn releasers(program: &Program<'_>, timeline: &Timeline) -> IndexVec<PieceId, Option<TaskId>> {
    // Without configurations no signal counts in a use.
    let has_uses = !program.configurations.is_empty();
    let uses = has_uses.then(|| Uses::of(program, Some(timeline)));
    let mut releaser: IndexVec<PieceId, Option<TaskId>> =
        program.pieces.iter().map(|_| None).collect();
    let mut last: FxHashMap<ConfigurationId, TaskId> = FxHashMap::default();
    for &task in &timeline.order {
        let first = program.tasks[task].signals.start as usize;
        for (n, signal) in program.signals(task).iter().enumerate() {
            if let Action::Release(piece) = signal.action {
                releaser[piece] = Some(task);
            }
            if let Some(used) = uses.as_ref().and_then(|uses| uses.signal(first + n)) {
                last.insert(used, task);
            }
        }
    }
    for (id, configuration) in program.configurations.iter_enumerated() {
        for piece in &configuration.releases {
            releaser[*piece] = last.get(&id).copied();
        }
    }
    // Where a piece waits for those before it, whoever releases the last of them releases it.
    let mut latest: FxHashMap<QueueId, TaskId> = FxHashMap::default();
    for (id, piece) in program.pieces.iter_enumerated() {
        if program.queues[piece.queue].order == PieceOrder::Number
            && let Some(by) = releaser[id]
        {
            let end = |task: TaskId| (timeline.tasks[task].end, task);
            let latest = latest.entry(piece.queue).or_insert(by);
            if end(by) > end(*latest) {
                *latest = by;
            }
            releaser[id] = Some(*latest);
        }
    }
    releaser
}

/// The piece that each task is the first of.
fn first_tasks(program: &Program<'_>) -> FxHashMap<TaskId, PieceId> {
    program
        .pieces
        .iter_enumerated()
        .filter(|(_, piece)| piece.count > 0)
        .map(|(id, piece)| (piece.first, id))
        .collect()
}

/// What a task touches, by memory.
pub fn touched(program: &Program<'_>, task: TaskId) -> SmallVec<[Touched; 2]> {
    let mut touched: SmallVec<[Touched; 2]> = SmallVec::new();
    program.kernel(task).accesses(&mut |access| {
        let memory = program.buffers[access.buffer].memory;
        let bytes = access
            .pattern
            .loops
            .iter()
            .fold(access.pattern.run, |n, l| n.saturating_mul(l.count));
        let at = touched.iter().position(|t| t.memory == memory);
        let at = at.unwrap_or_else(|| {
            touched.push(Touched {
                memory,
                read: 0,
                written: 0,
            });
            touched.len() - 1
        });
        let sum = match access.direction {
            Direction::Read => &mut touched[at].read,
            Direction::Write => &mut touched[at].written,
        };
        *sum = sum.saturating_add(bytes);
    });
    touched
}

/// How long tasks would have taken by themselves: as long as they did where no other transfer ran meanwhile.
fn alone(program: &Program<'_>, rows: &mut [Row]) {
    let transfers: Vec<usize> = (0..rows.len())
        .filter(|i| !program.demands(rows[*i].task).is_empty())
        .collect();
    let mut latest = Time::ZERO;
    for (n, &i) in transfers.iter().enumerate() {
        let (start, end) = (rows[i].start, rows[i].end);
        let next = transfers.get(n + 1).map(|next| rows[*next].start);
        let shared = latest > start || next.is_some_and(|next| next < end);
        latest = latest.max(end);
        if !shared {
            continue;
        }
        let slowest = program.counted_demands(rows[i].task).map(|demand| {
            let resource = &program.resources[demand.resource];
            demand.bytes as f64 / resource.capacity.min(resource.per_transfer)
        });
        let slowest = slowest.fold(0.0, f64::max);
        let by_itself = program.tasks[rows[i].task].fixed + Time::from_ns(slowest * 1e9);
        rows[i].alone = by_itself.min(end - start);
    }
}
