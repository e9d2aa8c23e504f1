//! Whether matched tasks wait for, and signal, the same: semaphores and uses of barriers go by other names in another program. Which is
//! which, most of the tasks that use them say.

use super::Side;
use crate::uses::Uses;
use chipless_model::{Action, Condition, Configuration, ConfigurationId, Moment, SyncId, TaskId};
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

impl Event {
    fn name(self, side: Side<'_, '_>) -> String {
        let program = side.program;
        match self {
            Event::Counter(sync) | Event::Barrier(sync) => program.syncs[sync].name.clone(),
            Event::Use(id) => {
                let Configuration {
                    barrier, number, ..
                } = &program.configurations[id];
                format!("{} (use {number})", program.syncs[*barrier].name)
            }
        }
    }
}

impl Part {
    /// `waits for sg00 $S[5] ≥ 2`.
    fn text(self, side: Side<'_, '_>, event: Event) -> String {
        let name = event.name(side);
        match self {
            Part::Waits(Condition::Equal(n)) => format!("waits for {name} = {n}"),
            Part::Waits(Condition::AtLeast(n)) => format!("waits for {name} ≥ {n}"),
            Part::Waits(Condition::Lit) => format!("waits for {name}"),
            Part::Adds(_, n) => format!("adds {n} to {name}"),
            Part::Consumes(_) => format!("consumes {name}"),
            Part::Produces(_) => format!("signals {name}"),
            Part::Configures(_, producers, consumers) => {
                format!("sets {name} to {producers} producers and {consumers} consumers")
            }
        }
    }
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

    /// How the waits of two tasks differ, a sentence each; none where they wait for the same.
    pub(super) fn other_waits(&self, x: TaskId, y: TaskId) -> Vec<String> {
        self.differences(self.waits(x, y))
    }

    /// How the signals of two tasks differ; none where they signal the same.
    pub(super) fn other_signals(&self, x: TaskId, y: TaskId) -> Vec<String> {
        self.differences(self.signals(x, y))
    }

    fn differences(&self, (a, mut b): (Parts, Parts)) -> Vec<String> {
        let mut left = Vec::new();
        for (part, event) in a {
            let other = self.same.get(&event);
            match b.iter().position(|(p, e)| *p == part && Some(e) == other) {
                Some(at) => drop(b.swap_remove(at)),
                None => left.push((part, event)),
            }
        }
        // An event that was taken for another one, or for none, and goes by the same name as before: nothing to say of it.
        left.retain(|(part, event)| {
            let was = part.text(self.a, *event);
            let same = b
                .iter()
                .position(|(now, event)| now.text(self.b, *event) == was);
            same.map(|at| b.swap_remove(at)).is_none()
        });
        let mut said = Vec::new();
        for (part, event) in left {
            let was = part.text(self.a, event);
            let other = self.same.get(&event);
            said.push(match b.iter().position(|(_, e)| Some(e) == other) {
                Some(at) => {
                    let (now, event) = b.swap_remove(at);
                    format!("{}, was: {was}", now.text(self.b, event))
                }
                None => format!("no longer {was}"),
            });
        }
        let new = b
            .into_iter()
            .map(|(part, event)| format!("now {}", part.text(self.b, event)));
        said.extend(new);
        said
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
