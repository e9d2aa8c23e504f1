//! The reference order: tasks one after the other, each with the clock of what must come before it.

use crate::barrier::Barrier;
use crate::clock::{Clock, Point, covers, join, raise, reaches};
use crate::findings::Findings;
use crate::order::{End, NOT_RUN, Order};
use crate::rules;
use crate::semaphore::{History, Known, need};
use crate::usage::Usage;
use chipless_model::{
    Action, Condition, Counter, Finding, IndexVec, Moment, PieceId, Program, QueueId, Rule, SyncId,
    SyncKind, TaskId, Wait,
};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// How signals that come later in the reference order are looked at.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'o> {
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

/// A thread of a queue that keeps no order of its own: its last task, and the counter that it raises.
struct Chain {
    thread: u32,
    last: TaskId,
    raises: Option<SyncId>,
}

/// Threads of a queue.
type Chains = Vec<Chain>;

pub(crate) struct Replay<'p, 'a> {
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
        if let Some(wait) = self.program.waits(task).iter().find(|w| !self.holds(w)) {
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
        let (in_order, last) = (q.in_order, TaskId::from_raw(end.saturating_sub(1)));
        if q.servers == 1 && in_order {
            return queue.raw();
        }
        let raises = self
            .program
            .signals(last)
            .iter()
            .find_map(|signal| match signal.action {
                Action::Add(sync, _) => Some(sync),
                _ => None,
            });
        let release = self.released[piece].as_ref();
        let ends_before = |chain: &&mut Chain| {
            if !in_order {
                return chain.raises == raises;
            }
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
        self.chains[queue].push(Chain {
            thread,
            last,
            raises,
        });
        thread
    }

    fn holds(&self, wait: &Wait) -> bool {
        match wait.condition {
            Condition::Lit => self.barriers[wait.sync]
                .as_ref()
                .is_some_and(|b| b.is_lit()),
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
        if let Some(piece) = piece.filter(|p| program.pieces[*p].first == task)
            && let Some(release) = &self.released[piece]
        {
            join(&mut clock, release);
        }
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
                self.signal(task, signal.action, &clock, point)?;
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

    fn signal(
        &mut self,
        task: TaskId,
        action: Action,
        clock: &Clock,
        point: Point,
    ) -> Result<(), Faulted> {
        match action {
            Action::Add(sync, n) => self.add(sync, n, task, point),
            Action::Produce(sync) | Action::Consume(sync) => {
                self.count_down(sync, task, action, clock)
            }
            Action::Configure(configuration) => self.configure(configuration, task, clock),
            Action::Release(piece) => self.release(piece, clock, Some(task)),
        }
    }

    fn add(&mut self, sync: SyncId, n: i64, task: TaskId, point: Point) -> Result<(), Faulted> {
        let SyncKind::Counter(counter) = self.program.syncs[sync].kind else {
            return Err(self.barrier_fault(sync, task, "adds to {}, which is a barrier"));
        };
        let before = self.values[sync];
        let Some(value) = counter.after(before, n) else {
            return Err(self.leaves_range(sync, &counter, n, task));
        };
        self.values[sync] = value;
        let history = &mut self.order.histories[sync];
        let changes = if n < 0 {
            &mut history.falls
        } else {
            &mut history.rises
        };
        changes.push(task, point, n);
        if n < 0 && self.usage.counters[sync].contended {
            self.unproven(sync, task, "lowers it");
        }
        self.wake(sync);
        Ok(())
    }

    fn leaves_range(&mut self, sync: SyncId, counter: &Counter, n: i64, task: TaskId) -> Faulted {
        let is_set_twice = (counter.low, counter.high) == (0, 1) && n > 0;
        let rule = if is_set_twice {
            &rules::EVENT_TWICE
        } else {
            &rules::SEMAPHORE_RANGE
        };
        let (program, before) = (self.program, self.values[sync]);
        self.findings.add(rule, (sync.raw(), 0, 0), || {
            let (name, task_name) = (&program.syncs[sync].name, program.task_name(task));
            let (after, Counter { low, high, .. }) = (i128::from(before) + i128::from(n), counter);
            rule.at(
                program.place(task),
                format!(
                    "{task_name} takes {name} from {before} to {after}; it holds {low} to {high}"
                ),
            )
        });
        Faulted
    }

    fn count_down(
        &mut self,
        sync: SyncId,
        task: TaskId,
        action: Action,
        clock: &Clock,
    ) -> Result<(), Faulted> {
        let produces = matches!(action, Action::Produce(_));
        let Some(barrier) = &self.barriers[sync] else {
            return Err(self.barrier_fault(sync, task, "signals {}, which is no barrier"));
        };
        if !covers(clock, &barrier.activated) {
            let pushed = barrier.pushed.1;
            let culprits = self.unordered(sync, clock);
            let configurer = pushed.filter(|_| culprits.is_empty());
            let what = if produces {
                "may signal while the previous use is active"
            } else {
                "may consume while the previous use is active"
            };
            let culprits: Vec<TaskId> = culprits.into_iter().chain(configurer).collect();
            self.reuse(sync, task, &culprits, what);
        }
        let Some(barrier) = &mut self.barriers[sync] else {
            return Ok(());
        };
        let counted = if produces {
            barrier.produce(task, clock)
        } else {
            barrier.consume(task, clock)
        };
        if let Err(fault) = counted {
            let verb = if produces { "signals" } else { "consumes" };
            return Err(self.barrier_fault(sync, task, &format!("{verb} {{}} {fault}")));
        }
        self.settle(sync, task)
    }

    fn configure(
        &mut self,
        configuration: chipless_model::ConfigurationId,
        task: TaskId,
        clock: &Clock,
    ) -> Result<(), Faulted> {
        let program = self.program;
        let sync = program.configurations[configuration].barrier;
        if std::mem::replace(&mut self.configured[configuration.index()], true) {
            return Err(self.barrier_fault(sync, task, "gives {} the same configuration twice"));
        }
        let Some(barrier) = &mut self.barriers[sync] else {
            return Err(self.barrier_fault(sync, task, "configures {}, which is no barrier"));
        };
        let (ordered, other) = (covers(clock, &barrier.pushed.0), barrier.pushed.1);
        let fits = barrier
            .push(configuration, task, clock, &program.configurations)
            .is_ok();
        let has_room = barrier
            .makes_room()
            .is_none_or(|retired| covers(clock, retired));
        if !ordered {
            self.findings
                .add(&rules::CONFIGURATION_ORDER, (sync.raw(), 0, 0), || {
                    let message = format!(
                        "{} configures {}, and nothing orders that with the configuration before",
                        program.task_name(task),
                        program.syncs[sync].name
                    );
                    let finding = rules::CONFIGURATION_ORDER.at(program.place(task), message);
                    relate(program, finding, other, "the configuration before")
                });
        }
        if !fits || !has_room {
            let fault = self.barrier_fault(
                sync,
                task,
                "may give {} more configurations than its FIFO holds",
            );
            if !fits {
                return Err(fault);
            }
        }
        self.settle(sync, task)
    }

    /// What follows from a change of a barrier's counts: it is lit, it retires, the program is done.
    fn settle(&mut self, sync: SyncId, by: TaskId) -> Result<(), Faulted> {
        let program = self.program;
        self.light(sync);
        while let Some(retired) = self.barriers[sync].as_mut().and_then(|b| b.retire()) {
            for task in retired.late {
                self.reuse(
                    sync,
                    task,
                    &[by],
                    "waits for it without consuming it, and may come when its use is over",
                );
            }
            let releases = &program.configurations[retired.configuration].releases;
            if !releases.is_empty() {
                let clock = self.barriers[sync]
                    .as_ref()
                    .map(|b| b.retired.clone())
                    .unwrap_or_default();
                for piece in releases {
                    self.release(*piece, &clock, Some(by))?;
                }
            }
            self.light(sync);
        }
        Ok(())
    }

    /// Wakes who waits for a barrier if it is lit.
    fn light(&mut self, sync: SyncId) {
        let Some(barrier) = self.barriers[sync].as_ref().filter(|b| b.is_lit()) else {
            return;
        };
        if self.order.completion.is_none()
            && self.program.completion.is_some()
            && barrier.active() == self.program.completion
        {
            self.order.completion = Some(barrier.lit.clone());
        }
        self.wake(sync);
    }

    fn wake(&mut self, sync: SyncId) {
        self.ready.extend(self.waiters[sync].drain(..));
    }

    fn release(
        &mut self,
        piece: PieceId,
        clock: &Clock,
        by: Option<TaskId>,
    ) -> Result<(), Faulted> {
        let program = self.program;
        if program.pieces[piece].count == 0 {
            return Ok(());
        }
        let queue = program.pieces[piece].queue;
        let place = || program.place(by.unwrap_or(program.pieces[piece].first));
        if self.released[piece].is_some() {
            self.findings
                .add(&rules::RELEASED_TWICE, (queue.raw(), 0, 0), || {
                    let first = program.task_name(program.pieces[piece].first);
                    rules::RELEASED_TWICE.at(
                        place(),
                        format!(
                            "the piece of {} that starts with {first} is released twice",
                            program.queues[queue].name
                        ),
                    )
                });
            return Err(Faulted);
        }
        if let Some(last) = self.last_release[queue].replace(piece)
            && self.released[last]
                .as_ref()
                .is_some_and(|last| !covers(clock, last))
        {
            self.findings
                .add(&rules::RELEASE_ORDER, (queue.raw(), 0, 0), || {
                    let (first, second) = (program.pieces[last].first, program.pieces[piece].first);
                    let message = format!(
                        "nothing orders the releases of {} and {}",
                        program.task_name(first),
                        program.task_name(second)
                    );
                    rules::RELEASE_ORDER
                        .at(program.place(second), message)
                        .with(
                            program.place(first),
                            "released before it in one legal order",
                        )
                });
        }
        self.released[piece] = Some(clock.clone());
        self.backlogs[queue].push_back(piece);
        if let Some(server) = self
            .servers
            .iter()
            .position(|s| s.queue == queue && s.is_idle)
        {
            self.servers[server].is_idle = false;
            self.ready.push_back(server as u32);
        }
        Ok(())
    }

    /// Participants of a barrier's previous use that nothing orders before a point.
    fn unordered(&self, sync: SyncId, clock: &Clock) -> Vec<TaskId> {
        let barrier = self.barriers[sync].as_ref();
        let previous = barrier.into_iter().flat_map(|b| b.previous.iter().copied());
        previous
            .filter(|t| !reaches(clock, self.order.completion(*t)))
            .collect()
    }

    fn reuse(&mut self, sync: SyncId, task: TaskId, culprits: &[TaskId], what: &str) {
        let program = self.program;
        let number = self.barriers[sync]
            .as_ref()
            .and_then(|b| b.active())
            .map(|c| program.configurations[c].number);
        // Whoever is late only consumes: it holds the previous use, and hands nothing on.
        let only_consumes = |t: &TaskId| {
            let signals = program.signals(*t);
            signals
                .iter()
                .all(|s| matches!(s.action, Action::Consume(_)))
                && signals.iter().any(|s| s.action == Action::Consume(sync))
        };
        let is_late =
            program.consumes_in_time && !culprits.is_empty() && culprits.iter().all(only_consumes);
        let rule: &'static Rule = if is_late {
            &rules::REUSE_LATE
        } else {
            &rules::REUSE
        };
        let culprit = culprits.first().copied();
        self.findings
            .add(rule, (sync.raw(), number.unwrap_or(u32::MAX), 0), || {
                let (name, task_name) = (&program.syncs[sync].name, program.task_name(task));
                let number = number.map_or_else(String::new, |n| format!(" (use {n})"));
                let because = culprit.map_or_else(String::new, |c| {
                    format!(": nothing orders it after {}", program.task_name(c))
                });
                let finding = rule.at(
                    program.place(task),
                    format!("{task_name} {what} of {name}{number}{because}"),
                );
                relate(program, finding, culprit, "takes part in the previous use")
            });
    }

    fn barrier_fault(&mut self, sync: SyncId, task: TaskId, what: &str) -> Faulted {
        let program = self.program;
        let active = self.barriers[sync].as_ref().and_then(|b| b.active());
        self.findings
            .add(&rules::BARRIER_FAULT, (sync.raw(), 0, 0), || {
                let (name, task_name) = (&program.syncs[sync].name, program.task_name(task));
                let finding = rules::BARRIER_FAULT.at(
                    program.place(task),
                    format!("{task_name} {}", what.replace("{}", name)),
                );
                match active {
                    Some(active) => finding.with(
                        program.configurations[active].place.clone(),
                        "its configuration",
                    ),
                    None => finding,
                }
            });
        Faulted
    }

    fn unproven(&mut self, sync: SyncId, task: TaskId, what: &str) {
        let rule: &'static Rule = &rules::CONSERVATIVE;
        self.findings.add(rule, (sync.raw(), 0, 0), || {
            let (name, task_name) = (&self.program.syncs[sync].name, self.program.task_name(task));
            rule.at(
                self.program.place(task),
                format!("{task_name} {what} ({name}) in an order that is not proven"),
            )
        });
    }
}

fn relate(program: &Program<'_>, finding: Finding, task: Option<TaskId>, role: &str) -> Finding {
    match task {
        Some(task) => finding.with(program.place(task), role),
        None => finding,
    }
}
