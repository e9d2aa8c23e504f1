//! The reference order: tasks one after the other, each with the clock of what must come before it.

mod reports;
mod signals;

use crate::barrier::Barrier;
use crate::clock::{Clock, covers, join, raise, reaches};
use crate::findings::Findings;
use crate::order::{End, NOT_RUN, Order};
use crate::rules;
use crate::semaphore::{History, Known, Spread, need};
use crate::usage::Usage;
use chipless_model::{
    Action, Condition, ConfigurationId, Counter, IndexVec, Moment, PieceId, PieceOrder, Program,
    QueueId, SyncId, SyncKind, TaskId, Turns, Wait,
};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Rounds after which the order of counters is bounded instead of computed.
const ROUNDS: usize = 24;

/// Finds the order of a program, and what is wrong with its synchronisation.
pub(crate) fn find_order(program: &Program<'_>) -> (Order, Findings) {
    let usage = Usage::new(program);
    let (mut order, mut findings) = Replay::new(program, &usage, Mode::First).run();
    if !usage.needs_rounds {
        return (order, findings);
    }
    for _ in 0..ROUNDS {
        let (next, found) = Replay::new(program, &usage, Mode::Refine(&order)).run();
        let settled = next.rows == order.rows;
        (order, findings) = (next, found);
        if settled {
            return (order, findings);
        }
    }
    let (bounded, mut findings) = Replay::new(program, &usage, Mode::Bound(&order)).run();
    findings.add(&crate::rules::ORDER_BOUND, (0, 0, 0), || {
        let message = format!("the order of semaphore signals did not settle in {ROUNDS} rounds");
        crate::rules::ORDER_BOUND.at(chipless_model::Place::file(), message)
    });
    (bounded, findings)
}

/// How signals that come later in the reference order are looked at.
#[derive(Clone, Copy)]
enum Mode<'o> {
    /// As if they came after the waiter: the first guess, which orders too much.
    First,
    /// By the order of the round before.
    Refine(&'o Order),
    /// As if nothing but their own queue held them back: orders too little.
    Bound(&'o Order),
}

/// A worker of a queue.
#[derive(Debug)]
struct Server {
    queue: QueueId,
    piece: Option<PieceId>,
    next: u32,
    end: u32,
    thread: u32,
    is_idle: bool,
}

/// A thread of a queue that keeps no order of its own, and its last task.
struct Chain {
    thread: u32,
    last: TaskId,
}

/// Threads of a queue.
type Chains = Vec<Chain>;

struct Replay<'p, 'a> {
    program: &'p Program<'a>,
    usage: &'p Usage,
    mode: Mode<'p>,
    order: Order,
    findings: Findings,
    servers: Vec<Server>,
    /// Servers that should look for something to do.
    ready: VecDeque<u32>,
    backlogs: IndexVec<QueueId, VecDeque<PieceId>>,
    /// Clock of the last release of each queue, and its piece.
    last_release: IndexVec<QueueId, Option<PieceId>>,
    released: IndexVec<PieceId, Option<Clock>>,
    turns: Turns,
    chains: IndexVec<QueueId, Chains>,
    /// What comes before the next task of each thread.
    threads: Vec<Clock>,
    lengths: Vec<u32>,
    values: IndexVec<SyncId, i64>,
    barriers: IndexVec<SyncId, Option<Box<Barrier>>>,
    configured: Vec<bool>,
    waiters: IndexVec<SyncId, Vec<u32>>,
}

/// A signal that cannot be given; it has been reported.
struct Faulted;

impl<'p, 'a> Replay<'p, 'a> {
    pub(crate) fn new(
        program: &'p Program<'a>,
        usage: &'p Usage,
        mode: Mode<'p>,
    ) -> Replay<'p, 'a> {
        let mut servers = Vec::new();
        for (queue, q) in program.queues.iter_enumerated() {
            let server = || Server {
                queue,
                piece: None,
                next: 0,
                end: 0,
                thread: queue.raw(),
                is_idle: true,
            };
            servers.extend((0..q.servers).map(|_| server()));
        }
        let mut order = Order {
            sequence: Vec::with_capacity(program.tasks.len()),
            thread: IndexVec::from_vec(vec![0; program.tasks.len()]),
            position: IndexVec::from_vec(vec![NOT_RUN; program.tasks.len()]),
            row: IndexVec::from_vec(vec![(0, 0); program.tasks.len()]),
            ..Order::default()
        };
        let mut configured = vec![false; program.configurations.len()];
        let mut barriers = IndexVec::with_capacity(program.syncs.len());
        let mut values = IndexVec::with_capacity(program.syncs.len());
        for sync in &program.syncs {
            let (initial, barrier) = match &sync.kind {
                SyncKind::Counter(counter) => (counter.initial, None),
                SyncKind::Barrier { preloaded, depth } => {
                    for configuration in preloaded {
                        configured[configuration.index()] = true;
                    }
                    let barrier = Barrier::new(preloaded, *depth, &program.configurations);
                    (0, Some(Box::new(barrier)))
                }
            };
            values.push(initial);
            barriers.push(barrier);
            order.histories.push(History {
                initial,
                ..History::default()
            });
        }
        Replay {
            program,
            usage,
            mode,
            order,
            findings: Findings::default(),
            servers,
            ready: VecDeque::new(),
            backlogs: program.queues.iter().map(|_| VecDeque::new()).collect(),
            last_release: program.queues.iter().map(|_| None).collect(),
            released: program.pieces.iter().map(|_| None).collect(),
            turns: Turns::new(program.pieces.iter().map(|piece| piece.queue.index())),
            chains: program.queues.iter().map(|_| Chains::new()).collect(),
            threads: vec![Clock::new(); program.queues.len()],
            lengths: vec![0; program.queues.len()],
            values,
            barriers,
            configured,
            waiters: program.syncs.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Runs tasks until nothing can move.
    pub(crate) fn run(mut self) -> (Order, Findings) {
        let faulted = self.go().is_err();
        self.order.threads = self.threads.len();
        self.order.end = match faulted {
            true => End::Fault,
            false if self.is_done() => End::Done,
            false => End::Stuck,
        };
        (self.order, self.findings)
    }

    fn is_done(&self) -> bool {
        self.order.sequence.len() == self.program.tasks.len()
            && (self.program.completion.is_none() || self.order.completion.is_some())
    }

    fn go(&mut self) -> Result<(), Faulted> {
        for piece in &self.program.initial {
            self.release(*piece, &Clock::new(), None)?;
        }
        for sync in self.program.syncs.indices() {
            self.light(sync);
        }
        while let Some(server) = self.ready.pop_front() {
            self.attend(server)?;
        }
        Ok(())
    }

    /// A server runs its next task, if it can.
    fn attend(&mut self, server: u32) -> Result<(), Faulted> {
        let Server {
            queue,
            mut next,
            mut end,
            ..
        } = self.servers[server as usize];
        while next == end {
            let Some(piece) = self.backlogs[queue].pop_front() else {
                self.servers[server as usize].is_idle = true;
                return Ok(());
            };
            let p = &self.program.pieces[piece];
            (next, end) = (p.first.raw(), p.first.raw() + p.count);
            let thread = self.thread_for(queue, piece, end);
            let at = &mut self.servers[server as usize];
            (at.piece, at.next, at.end, at.thread) = (Some(piece), next, end, thread);
        }
        let task = TaskId::from_raw(next);
        let mut waits = self.program.waits_and_uses(task);
        if let Some((wait, _)) = waits.find(|(wait, meant)| !self.holds(wait, *meant)) {
            self.waiters[wait.sync].push(server);
            return Ok(());
        }
        self.execute(server, task)?;
        self.servers[server as usize].next += 1;
        self.ready.push_back(server);
        Ok(())
    }

    /// The thread of a piece: its queue's, or one whose last task comes before the release of the piece.
    fn thread_for(&mut self, queue: QueueId, piece: PieceId, end: u32) -> u32 {
        let q = &self.program.queues[queue];
        if q.servers == 1 || self.lanes(queue) > 1 {
            return queue.raw();
        }
        let last = TaskId::from_raw(end.saturating_sub(1));
        let release = self.released[piece].as_ref();
        let ends_before = |chain: &&mut Chain| {
            !self.usage.needs_rounds
                && self.order.ran(chain.last)
                && release.is_some_and(|r| reaches(r, self.order.completion(chain.last)))
        };
        if let Some(chain) = self.chains[queue].iter_mut().find(ends_before) {
            chain.last = last;
            return chain.thread;
        }
        let thread = if self.chains[queue].is_empty() {
            queue.raw()
        } else {
            self.threads.push(Clock::new());
            self.lengths.push(0);
            self.threads.len() as u32 - 1
        };
        self.chains[queue].push(Chain { thread, last });
        thread
    }

    /// Over how many lanes a queue spreads its tasks.
    fn lanes(&self, queue: QueueId) -> i64 {
        match self.program.queues[queue].order {
            PieceOrder::Lanes(lanes) => i64::from(lanes.max(1)),
            PieceOrder::Release | PieceOrder::Number => 1,
        }
    }

    fn holds(&self, wait: &Wait, meant: Option<ConfigurationId>) -> bool {
        match wait.condition {
            Condition::Lit => self.barriers[wait.sync]
                .as_ref()
                .is_some_and(|b| b.is_lit() && (meant.is_none() || b.active() == meant)),
            condition => condition.is_met_by(self.values[wait.sync]),
        }
    }

    /// A task runs from start to end; all its waits hold.
    fn execute(&mut self, server: u32, task: TaskId) -> Result<(), Faulted> {
        let program = self.program;
        let Server { thread, piece, .. } = self.servers[server as usize];
        let position = self.lengths[thread as usize];
        self.lengths[thread as usize] += 1;
        let mut clock = std::mem::take(&mut self.threads[thread as usize]);
        let lanes = self.lanes(program.tasks[task].queue);
        if let Some(piece) = piece.filter(|p| program.pieces[*p].first == task) {
            // It starts behind the piece before it, whose other lanes may still be at work.
            if lanes > 1
                && let Some(own) = clock.get_mut(thread as usize)
            {
                *own = 0;
            }
            if let Some(release) = &self.released[piece] {
                join(&mut clock, release);
            }
        }
        let own = clock.get(thread as usize).copied().unwrap_or(0);
        self.order.thread[task] = thread;
        self.order.position[task] = position;
        self.start(task, &mut clock);
        self.order.row[task] = (self.order.rows.len(), clock.len() as u32);
        self.order.rows.extend_from_slice(&clock);
        self.order.sequence.push(task);
        for moment in [Moment::Read, Moment::Completion] {
            let point = if moment == Moment::Read {
                self.order.read(task)
            } else {
                self.order.completion(task)
            };
            raise(&mut clock, point);
            for signal in program.signals(task).iter().filter(|s| s.moment == moment) {
                self.signal(task, signal.action, &clock, Spread { point, lanes, own })?;
            }
        }
        self.threads[thread as usize] = clock;
        Ok(())
    }

    /// Adds to a task's clock what its waits need, and proves that they mean what they meant here.
    fn start(&mut self, task: TaskId, clock: &mut Clock) {
        let program = self.program;
        let waits = program.waits(task);
        if waits.iter().any(|w| w.condition == Condition::Lit) {
            self.meet(task, waits, clock);
        }
        for wait in waits.iter().filter(|w| w.condition != Condition::Lit) {
            self.count(task, wait, clock);
        }
    }

    /// Adds to a task's clock what comes before the uses of barriers that it waits for.
    fn meet(&mut self, task: TaskId, waits: &[Wait], clock: &mut Clock) {
        let program = self.program;
        // A barrier's use is certain once everything of the use before is, by anything but this very wait.
        let mut pending: SmallVec<[SyncId; 4]> = waits
            .iter()
            .filter(|w| w.condition == Condition::Lit)
            .map(|w| w.sync)
            .collect();
        loop {
            let before = pending.len();
            pending.retain(|sync| {
                let Some(barrier) = &self.barriers[*sync] else {
                    return false;
                };
                let proven = covers(clock, &barrier.retired);
                if proven {
                    join(clock, &barrier.lit);
                }
                !proven
            });
            if pending.len() == before {
                break;
            }
        }
        for sync in pending {
            let culprits = self.unordered(sync, clock);
            self.reuse(
                sync,
                task,
                &culprits,
                "may start while the previous use is active",
            );
            if let Some(barrier) = &self.barriers[sync] {
                join(clock, &barrier.lit);
            }
        }
        for wait in waits.iter().filter(|w| w.condition == Condition::Lit) {
            let consumes = program
                .signals(task)
                .iter()
                .any(|s| s.action == Action::Consume(wait.sync));
            let point = self.order.read(task);
            if let Some(barrier) = &mut self.barriers[wait.sync]
                && !consumes
            {
                barrier.watch(task, point);
            }
        }
    }

    /// Adds to a clock the signals that a wait for a counter needs.
    fn count(&mut self, task: TaskId, wait: &Wait, clock: &mut Clock) {
        let SyncKind::Counter(Counter { high, .. }) = self.program.syncs[wait.sync].kind else {
            return;
        };
        let (at_least, at_most) = match wait.condition {
            Condition::Equal(n) if n < high => (n, Some(n)),
            Condition::Equal(n) | Condition::AtLeast(n) => (n, None),
            Condition::Lit => return,
        };
        let start = self.order.read(task);
        let history = match self.mode {
            Mode::First => &self.order.histories[wait.sync],
            Mode::Refine(previous) | Mode::Bound(previous) => &previous.histories[wait.sync],
        };
        let row = |y: TaskId| match self.mode {
            _ if self.order.ran(y) => self.order.start(y),
            Mode::Refine(previous) => previous.start(y),
            Mode::First | Mode::Bound(_) => &[],
        };
        let excluded = |y: TaskId| match self.mode {
            Mode::First => false,
            Mode::Refine(previous) => y == task || reaches(previous.start(y), start),
            Mode::Bound(previous) => {
                y == task
                    || (previous.thread[y] == start.thread
                        && previous.position[y] * 2 >= start.epoch)
            }
        };
        let threads = match self.mode {
            Mode::First => self.threads.len(),
            Mode::Refine(previous) | Mode::Bound(previous) => previous.threads,
        };
        let known = Known {
            row: &row,
            excluded: &excluded,
            threads: threads as u32,
        };
        let base = history.initial.saturating_add(history.falls.before(clock));
        let most = need(&history.rises, 1, base, at_least, &known, clock);
        let Some(n) = at_most else {
            return;
        };
        let base = history.initial.saturating_add(history.rises.before(clock));
        let least = need(&history.falls, -1, base, n, &known, clock);
        if (most > n || least < n) && !matches!(self.mode, Mode::First) {
            if self.usage.counters[wait.sync].falls {
                self.unproven(
                    wait.sync,
                    task,
                    "waits for an exact value that other signals may pass",
                );
            } else {
                self.findings.add(&rules::WAIT_MISSED, (wait.sync.raw(), 0, 0), || {
                    let name = &self.program.syncs[wait.sync].name;
                    let message = format!(
                        "{} waits until {name} is {n}, but signals that nothing orders after it can raise it to {most} first",
                        self.program.task_name(task)
                    );
                    rules::WAIT_MISSED.at(self.program.place(task), message)
                });
            }
        }
    }
}
