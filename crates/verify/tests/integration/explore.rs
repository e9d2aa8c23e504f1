//! All interleavings of small programs.
//!
//! The brute force explores every state that a program can reach, one point of one task at a time: a start (with the
//! signals at the read) or a completion (with the others). A program gets stuck if some state that is not the end has no
//! successor; two tasks race if some state has both running and they conflict.
//!
//! The fuzz targets include this file, too.

use chipless_model::{
    Access, Action, Buffer, Builder, Condition, Configuration, Counter, Direction, Fault, Kernel,
    Limits, MemoryKind, Moment, NewTask, Pattern, Place, Program, QueueId, Role, Signal, Storage,
    SyncId, SyncKind, TaskId, Time, Wait,
};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

/// Reads or writes one byte, or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch(pub(crate) Option<(u64, Direction)>);

impl Kernel for Touch {
    fn operation(&self) -> Cow<'static, str> {
        "touch".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        if let Some((byte, direction)) = self.0 {
            let access = Access::read(0usize.into(), Pattern::contiguous(byte, 1));
            visit(Access {
                direction,
                ..access
            });
        }
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// A task as it is generated: queue, byte touched, waits, signals.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) queue: u32,
    pub(crate) touch: Touch,
    pub(crate) waits: Vec<(u32, i64)>,
    /// Which sync, by how much, and whether at the read.
    pub(crate) signals: Vec<(u32, i64, bool)>,
}

pub(crate) const QUEUES: u32 = 3;
/// Two semaphores, an event, and a token.
pub(crate) const COUNTERS: u32 = 4;

fn empty() -> Builder<'static> {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let memory = build.memory("m", 16, MemoryKind::Scratchpad);
    build.buffer(Buffer::new("b", memory, 16, Role::State));
    build
}

fn push_task(
    build: &mut Builder<'static>,
    queue: QueueId,
    touch: Touch,
    waits: &[Wait],
    signals: &[Signal],
) {
    let kernel = build.kernel(touch);
    let task = NewTask {
        waits,
        signals,
        fixed: Time(1),
        ..NewTask::new(queue, kernel)
    };
    build.task(task).expect("a task");
}

/// Queues one after the other, each with one piece.
pub(crate) fn counters(drafts: &[Draft]) -> Program<'static> {
    let mut build = empty();
    build.counter("S0", Counter::up_to(1000));
    let from_one = Counter {
        initial: 1,
        ..Counter::up_to(1000)
    };
    build.counter("S1", from_one);
    build.counter("E", Counter::FLAG);
    build.counter("T", Counter::FLAG);
    for queue in 0..QUEUES {
        let id = build.queue(format!("q{queue}"), 1);
        let first = build.program.tasks.next_idx();
        for d in drafts.iter().filter(|d| d.queue == queue) {
            let wait = |(s, n): &(u32, i64)| {
                let n = if *s >= 2 { 1 } else { *n };
                Wait {
                    sync: SyncId::from_raw(*s),
                    condition: if *s == 2 {
                        Condition::Equal(n)
                    } else {
                        Condition::AtLeast(n)
                    },
                }
            };
            let signal = |(s, n, read): &(u32, i64, bool)| {
                let action = if *s >= 2 {
                    Action::Add(SyncId::from_raw(*s), 1)
                } else {
                    Action::Add(SyncId::from_raw(*s), *n)
                };
                Signal {
                    moment: if *read {
                        Moment::Read
                    } else {
                        Moment::Completion
                    },
                    action,
                }
            };
            let waits: Vec<Wait> = d.waits.iter().map(wait).collect();
            let signals: Vec<Signal> = d.signals.iter().map(signal).collect();
            push_task(&mut build, id, d.touch, &waits, &signals);
        }
        build.release(id, first);
    }
    build.finish().expect("a program")
}

/// Barriers: each task waits for and produces some; counts are what the tasks say, or off by one.
pub(crate) fn barriers(drafts: &[Draft], skew: (u32, i64, bool)) -> Program<'static> {
    let mut build = empty();
    // Two physical barriers, each used twice: uses 0 and 2 of barrier 0, 1 and 3 of barrier 1.
    let mut producers = [0i64; 4];
    let mut consumers = [0i64; 4];
    for queue in 0..QUEUES {
        let id = build.queue(format!("q{queue}"), 1);
        let first = build.program.tasks.next_idx();
        for d in drafts.iter().filter(|d| d.queue == queue) {
            let waits: BTreeSet<u32> = d.waits.iter().map(|w| (w.0 + w.1 as u32) % 4).collect();
            let posts: BTreeSet<u32> = d.signals.iter().map(|s| (s.0 + s.1 as u32) % 4).collect();
            let physical =
                |uses: &BTreeSet<u32>| uses.iter().map(|u| u % 2).collect::<BTreeSet<u32>>();
            let (waiting, posting) = (physical(&waits), physical(&posts));
            for b in &waiting {
                consumers[*waits.iter().find(|u| *u % 2 == *b).unwrap() as usize] += 1;
            }
            for b in &posting {
                producers[*posts.iter().find(|u| *u % 2 == *b).unwrap() as usize] += 1;
            }
            let barrier = |b: &u32| SyncId::from_raw(*b);
            let signals = waiting
                .iter()
                .map(|b| Signal::on_completion(Action::Consume(barrier(b))));
            let signals: Vec<Signal> = signals
                .chain(
                    posting
                        .iter()
                        .map(|b| Signal::on_completion(Action::Produce(barrier(b)))),
                )
                .collect();
            let waits = waiting.iter().map(|b| Wait {
                sync: barrier(b),
                condition: Condition::Lit,
            });
            let waits: Vec<Wait> = waits.collect();
            push_task(&mut build, id, d.touch, &waits, &signals);
        }
        build.release(id, first);
    }
    let counts = if skew.2 {
        &mut producers
    } else {
        &mut consumers
    };
    counts[skew.0 as usize] = (counts[skew.0 as usize] + skew.1).max(0);
    for barrier in 0..2u32 {
        let used = |number: u32| {
            let [producers, consumers] =
                [&producers, &consumers].map(|counts| counts[number as usize] as u32);
            (producers + consumers > 0).then(|| Configuration {
                barrier: SyncId::from_raw(barrier),
                number,
                producers,
                consumers,
                releases: Vec::new(),
                place: Place::file(),
            })
        };
        let uses = [barrier, barrier + 2].into_iter().filter_map(used);
        build.barrier(format!("B{barrier}"), uses);
    }
    build.finish().expect("a program")
}

/// What can happen.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) stuck: bool,
    pub(crate) fault: bool,
    pub(crate) races: BTreeSet<(u32, u32)>,
}

/// Progress of each task (0 waiting, 1 running, 2 done), values of counters, and (uses retired, producers, consumers) of barriers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    tasks: Vec<u8>,
    values: Vec<i64>,
    barriers: Vec<(usize, u32, u32)>,
}

pub(crate) struct Explorer<'p> {
    program: &'p Program<'static>,
    truth: Truth,
    seen: HashSet<State>,
}

impl Explorer<'_> {
    fn uses(&self, sync: usize) -> &[chipless_model::ConfigurationId] {
        match &self.program.syncs[sync].kind {
            SyncKind::Barrier { preloaded, .. } => preloaded,
            SyncKind::Counter(_) => &[],
        }
    }

    pub(crate) fn explore(program: &Program<'static>) -> Truth {
        let mut explorer = Explorer {
            program,
            truth: Truth::default(),
            seen: HashSet::new(),
        };
        let mut state = State {
            tasks: vec![0; program.tasks.len()],
            values: program
                .syncs
                .iter()
                .map(|s| match s.kind {
                    SyncKind::Counter(counter) => counter.initial,
                    SyncKind::Barrier { .. } => 0,
                })
                .collect(),
            barriers: vec![(0, 0, 0); program.syncs.len()],
        };
        for sync in 0..program.syncs.len() {
            explorer.load(&mut state, sync);
        }
        explorer.visit(state);
        explorer.truth
    }

    fn load(&self, state: &mut State, sync: usize) {
        let (used, producers, consumers) = &mut state.barriers[sync];
        if let Some(c) = self.uses(sync).get(*used) {
            let c = &self.program.configurations[*c];
            (*producers, *consumers) = (c.producers, c.consumers);
        }
    }

    fn visit(&mut self, first: State) {
        let mut left = vec![first];
        while let Some(state) = left.pop() {
            if !self.seen.insert(state.clone()) {
                continue;
            }
            let running: Vec<usize> = (0..state.tasks.len())
                .filter(|t| state.tasks[*t] == 1)
                .collect();
            self.races(&running);
            let mut moves = 0;
            for task in 0..state.tasks.len() {
                let moment = match state.tasks[task] {
                    0 if self.can_start(&state, task) => Moment::Read,
                    1 => Moment::Completion,
                    _ => continue,
                };
                moves += 1;
                let mut next = state.clone();
                // A task that signals at its read has its sources from then on: for races with its reads it is done.
                next.tasks[task] += 1;
                if self.signal(&mut next, task, moment) {
                    left.push(next);
                } else {
                    self.truth.fault = true;
                }
            }
            self.truth.stuck |= moves == 0 && state.tasks.iter().any(|t| *t != 2);
        }
    }

    fn can_start(&self, state: &State, task: usize) -> bool {
        let id = TaskId::from_usize(task);
        let before = task
            .checked_sub(1)
            .filter(|t| self.program.tasks[*t].queue == self.program.tasks[task].queue);
        before.is_none_or(|t| state.tasks[t] == 2)
            && self.program.waits(id).iter().all(|w| {
                let value = state.values[w.sync.index()];
                match w.condition {
                    Condition::Equal(n) => value == n,
                    Condition::AtLeast(n) => value >= n,
                    Condition::Lit => {
                        let (used, producers, _) = state.barriers[w.sync.index()];
                        used < self.uses(w.sync.index()).len() && producers == 0
                    }
                }
            })
    }

    /// Gives the signals of a moment; `false` on a fault.
    fn signal(&self, state: &mut State, task: usize, moment: Moment) -> bool {
        for signal in self
            .program
            .signals(TaskId::from_usize(task))
            .iter()
            .filter(|s| s.moment == moment)
        {
            match signal.action {
                Action::Add(sync, n) => {
                    let value = &mut state.values[sync.index()];
                    *value += n;
                    let SyncKind::Counter(Counter { low, high, .. }) =
                        self.program.syncs[sync].kind
                    else {
                        unreachable!("not generated");
                    };
                    if !(low..=high).contains(value) {
                        return false;
                    }
                }
                Action::Produce(sync) | Action::Consume(sync) => {
                    let sync = sync.index();
                    let uses = self.uses(sync);
                    let (used, producers, consumers) = &mut state.barriers[sync];
                    let count = if matches!(signal.action, Action::Produce(_)) {
                        producers
                    } else {
                        consumers
                    };
                    if *used >= uses.len() || *count == 0 {
                        return false;
                    }
                    *count -= 1;
                    let (used, producers, consumers) = state.barriers[sync];
                    if producers == 0
                        && consumers == 0
                        && self.program.configurations[uses[used]].consumers > 0
                    {
                        state.barriers[sync].0 += 1;
                        self.load(state, sync);
                    }
                }
                _ => unreachable!("not generated"),
            }
        }
        true
    }

    fn races(&mut self, running: &[usize]) {
        let access = |task: usize| {
            let mut found = None;
            self.program
                .kernel(TaskId::from_usize(task))
                .accesses(&mut |a| found = Some((a.pattern.offset, a.direction)));
            found
        };
        for (i, a) in running.iter().enumerate() {
            for b in &running[i + 1..] {
                if let (Some((x, dx)), Some((y, dy))) = (access(*a), access(*b))
                    && x == y
                    && (dx == Direction::Write || dy == Direction::Write)
                {
                    self.truth.races.insert((*a as u32, *b as u32));
                }
            }
        }
    }
}

fn codes(program: &Program<'static>) -> Vec<&'static str> {
    match chipless_verify::verify(program) {
        Ok(verified) => verified.warnings().iter().map(|f| f.rule.code).collect(),
        Err(findings) => findings.iter().map(|f| f.rule.code).collect(),
    }
}

/// Where the verifier says something else than the brute force.
pub(crate) fn disagreement(program: &Program<'static>) -> Option<String> {
    let truth = Explorer::explore(program);
    let codes = codes(program);
    let has = |code: &str| codes.iter().any(|c| c.starts_with(code));
    let broken = has("event-set-twice") || has("barrier");
    let agrees = if truth.fault || truth.stuck {
        broken || has("deadlock")
    } else {
        // Which use of a barrier a task means may differ from order to order and still end well.
        !has("deadlock")
            && !has("event-set-twice")
            && (broken || truth.races.is_empty() != has("race"))
    };
    (!agrees).then(|| format!("{truth:?}: {codes:?}"))
}
