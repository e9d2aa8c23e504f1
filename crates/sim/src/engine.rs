//! The discrete-event engine: tasks start when their queue, waits and resources allow, their effect happens, they signal.
//!
//! The state is a handful of flat tables made at the start; an event allocates nothing. A server that cannot start its
//! task hangs in the list of the first sync that its task waits for and looks again when that sync changes.

use crate::deadlock::Deadlock;
use crate::effects::Effects;
use crate::outside::{InstanceId, Outside};
use crate::resource::Shared;
use crate::stage::{Event, On, Stage};
use crate::timeline::{Record, Stall, State, Timeline};
use chipless_model::{
    Barrier, ConfigurationId, Counter, Fault, IndexVec, Moment, PieceId, Program, QueueId,
    ResourceId, SplitMix64, SyncId, SyncKind, TaskId, Time, Turns,
};

mod signals;
mod stuck;

const NONE: u32 = u32::MAX;

/// How a run ended, and what happened until then.
#[derive(Debug)]
pub struct Outcome {
    /// What happened.
    pub timeline: Timeline,
    /// Whether the program came to its end.
    pub end: Result<(), Stop>,
}

/// Why a program did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing can move and work is left.
    Deadlock(Deadlock),
    /// A task could not be executed, or broke the protocol of a sync.
    Fault {
        /// Which task.
        task: TaskId,
        /// Why.
        fault: Fault,
    },
}

/// Which of its legal orders a program runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that the machine's figures give.
    #[default]
    Timed,
    /// One that this seed gives: tasks that can start or complete do so at random instants, and the times of the timeline mean nothing.
    Random(u64),
    /// One in which this task starts as late as its waits, and those of all others, let it: what nothing orders before others comes after them. The
    /// times of the timeline mean nothing.
    Late(TaskId),
}

/// Longer than any program runs.
const FOREVER: Time = Time(1 << 60);

/// A span of any magnitude, so that in a random order some tasks overtake many others.
fn delay(random: &mut SplitMix64) -> Time {
    let z = random.number();
    Time((z >> 8) & ((1 << (z % 24)) - 1))
}

/// A worker of a queue: the tasks of the piece that it has, and its place in a list of waiters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) queue: QueueId,
    /// Next or current task.
    pub(crate) task: u32,
    /// One past the last task of its piece; equal to `task` when it is idle.
    pub(crate) end: u32,
    /// Next server in the list of waiters of the same sync.
    next: u32,
}

/// Pieces released to a queue and not yet taken, linked through `Engine::next_piece`; its servers.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    head: u32,
    tail: u32,
    servers: u32,
    count: u32,
    /// Pieces in it.
    length: u32,
}

pub(crate) struct Engine<'p, 'a> {
    pub(crate) program: &'p Program<'a>,
    pub(crate) timeline: Timeline,
    /// Its number in the world.
    number: u32,
    done: Option<Time>,
    /// How many tasks have started, and how many have completed.
    started: usize,
    completed: usize,
    /// How many have started and not begun, since when nothing else is in flight, and for how long that was so before.
    held_up: usize,
    idle_since: Option<Time>,
    idled: Time,
    /// Whether no task starts at present, and the servers that would have started one.
    halted: bool,
    held: Vec<u32>,
    pub(crate) servers: Vec<Server>,
    backlogs: IndexVec<QueueId, Backlog>,
    next_piece: IndexVec<PieceId, u32>,
    released: IndexVec<PieceId, bool>,
    turns: Turns,
    /// Values of counters.
    values: IndexVec<SyncId, i64>,
    /// Index into `barriers`, or NONE.
    barrier_of: IndexVec<SyncId, u32>,
    barriers: Vec<Barrier>,
    configured: IndexVec<ConfigurationId, bool>,
    waiters: IndexVec<SyncId, u32>,
    resources: IndexVec<ResourceId, Shared>,
    /// Whether any signal of the program is given at the read.
    reads_signal: bool,
    /// Server of a running task; demands that it still waits for, NONE where it waits for the outside.
    running: IndexVec<TaskId, (u32, u32)>,
    random: Option<SplitMix64>,
    /// The task that starts as late as it can.
    late: Option<TaskId>,
}

impl<'p, 'a> Engine<'p, 'a> {
    pub(crate) fn new(program: &'p Program<'a>, number: u32, order: Order) -> Engine<'p, 'a> {
        let mut servers = Vec::new();
        let backlogs = program
            .queues
            .iter_enumerated()
            .map(|(queue, q)| {
                let first = servers.len() as u32;
                servers.extend((0..q.servers).map(|_| Server {
                    queue,
                    task: 0,
                    end: 0,
                    next: NONE,
                }));
                Backlog {
                    head: NONE,
                    tail: NONE,
                    servers: first,
                    count: q.servers,
                    length: 0,
                }
            })
            .collect();
        let mut barriers = Vec::new();
        let mut configured: IndexVec<ConfigurationId, bool> =
            program.configurations.iter().map(|_| false).collect();
        let barrier_of = program
            .syncs
            .iter()
            .map(|sync| match &sync.kind {
                SyncKind::Barrier { preloaded, depth } => {
                    for c in preloaded {
                        configured[*c] = true;
                    }
                    barriers.push(Barrier::preloaded(
                        preloaded,
                        *depth,
                        &program.configurations,
                    ));
                    barriers.len() as u32 - 1
                }
                SyncKind::Counter(_) => NONE,
            })
            .collect();
        let values = program
            .syncs
            .iter()
            .map(|s| match s.kind {
                SyncKind::Counter(Counter { initial, .. }) => initial,
                SyncKind::Barrier { .. } => 0,
            })
            .collect();
        let tasks = program.tasks.len();
        Engine {
            program,
            timeline: Timeline {
                tasks: IndexVec::from_vec(vec![Record::default(); tasks]),
                order: Vec::with_capacity(tasks),
                end: Time::ZERO,
                deepest: program.queues.iter().map(|_| 0).collect(),
            },
            number,
            done: None,
            started: 0,
            completed: 0,
            held_up: 0,
            idle_since: None,
            idled: Time::ZERO,
            halted: false,
            held: Vec::new(),
            servers,
            backlogs,
            next_piece: IndexVec::from_vec(vec![NONE; program.pieces.len()]),
            released: IndexVec::from_vec(vec![false; program.pieces.len()]),
            turns: Turns::new(program.pieces.iter().map(|piece| piece.queue.index())),
            values,
            barrier_of,
            barriers,
            configured,
            waiters: IndexVec::from_vec(vec![NONE; program.syncs.len()]),
            resources: program.resources.iter().map(Shared::new).collect(),
            reads_signal: program.signals.iter().any(|s| s.moment == Moment::Read),
            running: IndexVec::from_vec(vec![(NONE, 0); tasks]),
            random: match order {
                Order::Timed | Order::Late(_) => None,
                Order::Random(seed) => Some(SplitMix64(seed)),
            },
            late: match order {
                Order::Late(task) => Some(task),
                Order::Timed | Order::Random(_) => None,
            },
        }
    }

    /// Releases what is released before the start.
    pub(crate) fn begin(
        &mut self,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let program = self.program;
        program
            .initial
            .iter()
            .try_for_each(|piece| self.release(*piece, None, on))
    }

    /// An event of this program is due.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        match event {
            Event::Task(task) => self.proceed(task, on),
            Event::Begin(task) => {
                self.held_up -= 1;
                self.begin_task(task, on);
                Ok(())
            }
            Event::Resource(resource) => {
                self.serve(resource, on.stage);
                Ok(())
            }
            Event::Start(server) => {
                let task = TaskId::from_raw(self.servers[server as usize].task);
                self.try_start(server, task, None, on)
            }
        }
    }

    /// No task starts from now on; those in flight run to their end.
    pub(crate) const fn halt(&mut self) {
        self.halted = true;
    }

    /// Goes on where it was halted.
    pub(crate) fn resume(
        &mut self,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        self.halted = false;
        for server in std::mem::take(&mut self.held) {
            let task = TaskId::from_raw(self.servers[server as usize].task);
            self.try_start(server, task, None, on)?;
        }
        Ok(())
    }

    /// Tasks that have started and not completed.
    pub(crate) const fn in_flight(&self) -> usize {
        self.started - self.completed
    }

    /// The end of the run: when the program reported that it was done, or when its last task ended.
    pub(crate) fn into_outcome(self, stopped: Option<Stop>) -> Outcome {
        let end = match stopped {
            Some(stop) => Err(stop),
            None if self.finished() => Ok(()),
            None => Err(Stop::Deadlock(self.deadlock())),
        };
        let mut timeline = self.timeline;
        timeline.end = self.done.unwrap_or_else(|| {
            timeline
                .tasks
                .iter()
                .map(|t| t.end)
                .max()
                .unwrap_or_default()
        });
        Outcome { timeline, end }
    }

    /// Whether a task's effect happens at its start. Most programs have no such task, and need not look.
    fn signals_at_read(&self, task: TaskId) -> bool {
        self.reads_signal
            && self
                .program
                .signals(task)
                .iter()
                .any(|s| s.moment == Moment::Read)
    }

    /// Whether the program is done.
    pub(crate) fn finished(&self) -> bool {
        match self.program.completion {
            Some(_) => self.done.is_some() && self.idle(),
            None => self.idle(),
        }
    }

    fn idle(&self) -> bool {
        self.completed == self.program.tasks.len()
    }

    /// A task's effect on memory happens.
    fn apply(
        &mut self,
        task: TaskId,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        on.effects
            .apply(self.program, task)
            .map_err(|fault| Stop::Fault { task, fault })?;
        self.timeline.order.push(task);
        Ok(())
    }

    /// A task's fixed time is over, or its last demand has been served.
    fn proceed(
        &mut self,
        task: TaskId,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let program = self.program;
        let (server, pending) = self.running[task];
        if pending > 0 {
            // The fixed time is over: compete for the shared resources. `pending` counts what is left to be served.
            let instance = InstanceId(self.number);
            on.outside.moves(instance, task, on.stage.now);
            for demand in program.counted_demands(task) {
                let bytes = on.outside.passes(instance, task, &demand);
                if bytes > 0 {
                    self.resources[demand.resource].arrive(task, bytes, on.stage.now);
                    self.announce(demand.resource, on.stage);
                } else if self.served(task) {
                    on.stage.push(on.stage.now, self.number, Event::Task(task));
                }
            }
            return Ok(());
        }
        if !on.outside.ends(InstanceId(self.number), task, on.stage.now) {
            self.running[task].1 = NONE;
            return Ok(());
        }
        if !self.signals_at_read(task) {
            self.apply(task, on)?;
        }
        let record = &mut self.timeline.tasks[task];
        record.end = on.stage.now;
        record.state = State::Done;
        self.completed += 1;
        self.watch(on.stage.now);
        self.signal(task, Moment::Completion, on)?;
        self.servers[server as usize].task += 1;
        self.attend(server, None, on)
    }

    /// A demand of a task has been served: whether it was the last one.
    fn served(&mut self, task: TaskId) -> bool {
        let (_, pending) = &mut self.running[task];
        *pending -= 1;
        *pending == 0
    }

    /// The outside has served a task: whether its program had done so before, and it only waited for that.
    pub(crate) fn served_outside(&mut self, task: TaskId) -> bool {
        let (_, pending) = &mut self.running[task];
        let waited = *pending == NONE;
        if waited {
            *pending = 0;
        }
        waited
    }

    /// Transfers leave a resource; those that have been served everywhere complete.
    fn serve(&mut self, resource: ResourceId, stage: &mut Stage) {
        if !self.resources[resource].due(stage.now) {
            return;
        }
        while let Some(task) = self.resources[resource].depart(stage.now) {
            if self.served(task) {
                stage.push(stage.now, self.number, Event::Task(task));
            }
        }
        self.announce(resource, stage);
    }

    fn announce(&mut self, resource: ResourceId, stage: &mut Stage) {
        if let Some(at) = self.resources[resource].announce() {
            stage.push(at, self.number, Event::Resource(resource));
        }
    }

    /// A task has what it waited for outside: its fixed time begins.
    fn begin_task<E, O>(&mut self, task: TaskId, on: &mut On<'_, E, O>) {
        let at = on.stage.now + self.program.tasks[task].fixed;
        on.stage.push(at, self.number, Event::Task(task));
        self.watch(on.stage.now);
    }

    /// Keeps for how long nothing was in flight but tasks that had not begun.
    fn watch(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            self.idled += now - since;
        }
        if self.held_up > 0 && self.held_up == self.in_flight() {
            self.idle_since = Some(now);
        }
    }

    /// For how long nothing was in flight but tasks that waited for the outside before they began.
    pub(crate) const fn idled(&self) -> Time {
        self.idled
    }

    /// A server looks for something to do: its next task, or the next piece of its queue.
    fn attend(
        &mut self,
        server: u32,
        woken_by: Option<TaskId>,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let queue = self.servers[server as usize].queue;
        while self.servers[server as usize].task == self.servers[server as usize].end {
            let backlog = &mut self.backlogs[queue];
            if backlog.head == NONE {
                return Ok(());
            }
            let id = PieceId::from_raw(backlog.head);
            backlog.head = self.next_piece[id];
            backlog.length -= 1;
            if backlog.head == NONE {
                backlog.tail = NONE;
            }
            let piece = &self.program.pieces[id];
            let at = &mut self.servers[server as usize];
            (at.task, at.end) = (piece.first.raw(), piece.first.raw() + piece.count);
        }
        let task = TaskId::from_raw(self.servers[server as usize].task);
        let record = &mut self.timeline.tasks[task];
        record.ready = on.stage.now;
        record.server = server - self.backlogs[queue].servers;
        self.look(server, task, woken_by, on)
    }

    /// Starts a task if it can: at once, or some time later in an order that is not the timed one.
    fn look(
        &mut self,
        server: u32,
        task: TaskId,
        woken_by: Option<TaskId>,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        if let Some(random) = &mut self.random {
            let at = on.stage.now + delay(random);
            on.stage.push(at, self.number, Event::Start(server));
            return Ok(());
        }
        if self.late == Some(task) {
            // Whoever wakes it later finds it due.
            self.late = None;
            let at = on.stage.now + FOREVER;
            on.stage.push(at, self.number, Event::Start(server));
            return Ok(());
        }
        self.try_start(server, task, woken_by, on)
    }

    /// Starts the task if all its waits hold; otherwise hangs the server into the list of the first that does not.
    fn try_start(
        &mut self,
        server: u32,
        task: TaskId,
        woken_by: Option<TaskId>,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        if self.halted {
            self.held.push(server);
            return Ok(());
        }
        let program = self.program;
        for (wait, meant) in program.waits_and_uses(task) {
            if !self.holds(wait, meant) {
                self.servers[server as usize].next =
                    std::mem::replace(&mut self.waiters[wait.sync], server);
                self.timeline.tasks[task].stall = Some(Stall {
                    sync: wait.sync,
                    by: None,
                });
                return Ok(());
            }
        }
        let record = &mut self.timeline.tasks[task];
        record.start = on.stage.now;
        record.state = State::Running;
        self.started += 1;
        on.effects.started(program, task);
        if let Some(stall) = &mut record.stall {
            stall.by = woken_by;
        }
        if let Some(random) = &mut self.random {
            self.running[task] = (server, 0);
            let at = on.stage.now + delay(random);
            on.stage.push(at, self.number, Event::Task(task));
        } else {
            let pending = program.counted_demands(task).count() as u32;
            self.running[task] = (server, pending);
            let instance = InstanceId(self.number);
            let begins = on.outside.begins(instance, task, on.stage.now);
            if begins > on.stage.now {
                self.held_up += 1;
                on.stage.push(begins, self.number, Event::Begin(task));
                self.watch(on.stage.now);
            } else {
                self.begin_task(task, on);
            }
        }
        if self.signals_at_read(task) {
            self.apply(task, on)?;
            self.signal(task, Moment::Read, on)?;
        }
        Ok(())
    }
}
