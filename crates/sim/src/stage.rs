//! What all programs of a world share: the clock, and the pending events.

use chipless_model::{ResourceId, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The fixed time of a task is over, or its last demand has been served.
    Task(TaskId),
    /// What a task waited for outside is there, and its fixed time begins.
    Begin(TaskId),
    /// Departures from a resource.
    Resource(ResourceId),
    /// A server looks whether it can start its task; only in orders that are not the timed one.
    Start(u32),
}

/// Where a program runs, what its tasks do to memory, and what they meet outside of it.
pub(crate) struct On<'o, E, O> {
    pub(crate) stage: &'o mut Stage,
    pub(crate) effects: &'o mut E,
    pub(crate) outside: &'o mut O,
}

/// The clock and the pending events.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) now: Time,
    /// Earliest first. Of one instant, tasks come before resources, since departures complete their tasks through events of
    /// their own, and both come in the order of their programs and numbers: time, kind, program, number.
    events: BinaryHeap<Reverse<u128>>,
}

const TASK: u128 = 0;
const RESOURCE: u128 = 1;
const START: u128 = 2;
const BEGIN: u128 = 3;

/// The program of a key.
const fn program_of(key: u128) -> u32 {
    (key >> 32) as u32 & (u32::MAX >> 2)
}

impl Stage {
    pub(crate) fn push(&mut self, at: Time, program: u32, event: Event) {
        let (kind, number) = match event {
            Event::Task(task) => (TASK, task.raw()),
            Event::Resource(resource) => (RESOURCE, resource.raw()),
            Event::Start(server) => (START, server),
            Event::Begin(task) => (BEGIN, task.raw()),
        };
        let key =
            u128::from(at.0) << 64 | kind << 62 | u128::from(program) << 32 | u128::from(number);
        self.events.push(Reverse(key));
    }

    /// When the next event is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let Reverse(key) = self.events.peek()?;
        Some(Time((key >> 64) as u64))
    }

    /// The next event and the program that it is of; the clock goes there.
    pub(crate) fn pop(&mut self) -> Option<(u32, Event)> {
        let Reverse(key) = self.events.pop()?;
        self.now = Time((key >> 64) as u64);
        let number = key as u32;
        let event = match key >> 62 & 3 {
            TASK => Event::Task(TaskId::from_raw(number)),
            RESOURCE => Event::Resource(ResourceId::from_raw(number)),
            BEGIN => Event::Begin(TaskId::from_raw(number)),
            _ => Event::Start(number),
        };
        Some((program_of(key), event))
    }

    /// The events of a program are void.
    pub(crate) fn withdraw(&mut self, program: u32) {
        self.events
            .retain(|Reverse(key)| program_of(*key) != program);
    }
}
