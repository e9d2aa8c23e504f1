//! Whether matched tasks wait for, and signal, the same: semaphores and uses of barriers go by other names in another program. Which is
//! which, most of the tasks that use them say.

use super::Side;
use crate::uses::Uses;
use chipless_model::{Action, Condition, ConfigurationId, Moment, SyncId, TaskId};
use rustc_hash::FxHashMap;

/// What is waited for and signalled: a counter, or one use of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Event {
    Counter(SyncId),
    Use(ConfigurationId),
    /// A barrier of which it is not known which use it was.
    Barrier(SyncId),
}

/// How a task has to do with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Waits(Condition),
    Adds(Moment, i64),
    Consumes(Moment),
    Produces(Moment),
    Configures(Moment, u32, u32),
}

/// A task's parts in events: its waits, or its signals.
type Parts = Vec<(Part, Event)>;

/// Tasks with so many waits or signals tell in their order only which event is which.
const MANY: usize = 8;

pub(super) struct Syncs<'s, 'a> {
    a: Side<'s, 'a>,
    b: Side<'s, 'a>,
    uses_a: Uses,
    uses_b: Uses,
    /// Events of the second program by those of the first.
    same: FxHashMap<Event, Event>,
}

impl<'s, 'a> Syncs<'s, 'a> {
    pub(super) fn of(
        a: Side<'s, 'a>,
        b: Side<'s, 'a>,
        pairs: &[(TaskId, TaskId)],
    ) -> Syncs<'s, 'a> {
        let mut syncs = Syncs {
            a,
            b,
            uses_a: Uses::of(a.program, Some(a.timeline)),
            uses_b: Uses::of(b.program, Some(b.timeline)),
            same: FxHashMap::default(),
        };
        let mut votes: FxHashMap<(Event, Event), u32> = FxHashMap::default();
        for &(x, y) in pairs {
            let (waits, signals) = (syncs.waits(x, y), syncs.signals(x, y));
            for (a, b) in [waits, signals] {
                let few = a.len() <= MANY && b.len() <= MANY;
                for (i, (part, event)) in a.iter().enumerate() {
                    let others = b.iter().enumerate();
                    for (_, (_, other)) in
                        others.filter(|(j, (p, _))| p == part && (i == *j || few))
                    {
                        let vote = votes.entry((*event, *other)).or_default();
                        *vote = vote.saturating_add(1);
                    }
                    // The same place among as many counts more.
                    if a.len() == b.len() && b[i].0 == *part {
                        let vote = votes.entry((*event, b[i].1)).or_default();
                        *vote = vote.saturating_add(2);
                    }
                }
            }
        }
        let mut votes: Vec<_> = votes.into_iter().collect();
        votes.sort_unstable_by_key(|(events, votes)| (std::cmp::Reverse(*votes), *events));
        let mut taken = FxHashMap::default();
        for ((event, other), _) in votes {
            if !syncs.same.contains_key(&event) && !taken.contains_key(&other) {
                syncs.same.insert(event, other);
                taken.insert(other, event);
            }
        }
        syncs
    }

    /// Whether two tasks wait for the same.
    pub(super) fn waits_agree(&self, x: TaskId, y: TaskId) -> bool {
        self.agree(self.waits(x, y))
    }

    /// Whether two tasks signal the same.
    pub(super) fn signals_agree(&self, x: TaskId, y: TaskId) -> bool {
        self.agree(self.signals(x, y))
    }

    fn agree(&self, (a, mut b): (Parts, Parts)) -> bool {
        a.len() == b.len()
            && a.iter().all(|(part, event)| {
                let other = self.same.get(event);
                let at = b.iter().position(|(p, e)| p == part && Some(e) == other);
                at.map(|at| b.swap_remove(at)).is_some()
            })
    }

    fn waits(&self, x: TaskId, y: TaskId) -> (Parts, Parts) {
        let (a, b) = (self.a, self.b);
        (waits(a, &self.uses_a, x), waits(b, &self.uses_b, y))
    }

    fn signals(&self, x: TaskId, y: TaskId) -> (Parts, Parts) {
        let (a, b) = (self.a, self.b);
        (signals(a, &self.uses_a, x), signals(b, &self.uses_b, y))
    }
}

fn waits(side: Side<'_, '_>, uses: &Uses, task: TaskId) -> Parts {
    let waits = side.program.waits(task).iter();
    waits
        .map(|wait| {
            let event = match wait.condition {
                Condition::Lit => uses
                    .wait(side.program, task, wait.sync)
                    .map_or(Event::Barrier(wait.sync), Event::Use),
                _ => Event::Counter(wait.sync),
            };
            (Part::Waits(wait.condition), event)
        })
        .collect()
}

/// Releases are left out: they say in which portions a queue is fed, which follows from where descriptors lie.
fn signals(side: Side<'_, '_>, uses: &Uses, task: TaskId) -> Parts {
    let program = side.program;
    let first = program.tasks[task].signals.start as usize;
    let signals = program.signals(task).iter().enumerate();
    signals
        .filter_map(|(n, signal)| {
            let moment = signal.moment;
            let used = |sync| {
                uses.signal(first + n)
                    .map_or(Event::Barrier(sync), Event::Use)
            };
            Some(match signal.action {
                Action::Add(sync, n) => (Part::Adds(moment, n), Event::Counter(sync)),
                Action::Consume(sync) => (Part::Consumes(moment), used(sync)),
                Action::Produce(sync) => (Part::Produces(moment), used(sync)),
                Action::Configure(id) => {
                    let configuration = &program.configurations[id];
                    let (producers, consumers) = (configuration.producers, configuration.consumers);
                    let part = Part::Configures(moment, producers, consumers);
                    (part, Event::Use(id))
                }
                Action::Release(_) => return None,
            })
        })
        .collect()
}
