//! What all programs of a world share: the clock, the pending events, the resources.

use crate::resource::{Shared, Transfer};
use chipless_model::{Resource, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The fixed time of a task is over, or its last demand has been served.
    Task(TaskId),
    /// A server looks whether it can start its task; only in random orders.
    Start(u32),
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// An event of the program of this number.
    Program(u32, Event),
    /// Departures from a resource.
    Resource(u32),
}

/// Where a program runs, and what its tasks do outside of it.
pub(crate) struct On<'o, E> {
    pub(crate) stage: &'o mut Stage,
    pub(crate) effects: &'o mut E,
}

/// The clock, the pending events, the resources.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) now: Time,
    /// Earliest first. Of one instant, tasks come before resources, since departures complete their tasks through events of
    /// their own, and both come in the order of their programs and numbers: time, kind, program, number.
    events: BinaryHeap<Reverse<u128>>,
    resources: Vec<(&'static str, Resource, Shared)>,
}

const TASK: u128 = 0;
const RESOURCE: u128 = 1;
const START: u128 = 2;

impl Stage {
    /// The number of a resource: of one target, those with the same name and figures are one.
    pub(crate) fn resource(&mut self, target: &'static str, resource: &Resource) -> u32 {
        let known = self
            .resources
            .iter()
            .position(|(of, known, _)| *of == target && known == resource);
        let number = known.unwrap_or_else(|| {
            self.resources
                .push((target, resource.clone(), Shared::new(resource)));
            self.resources.len() - 1
        });
        number as u32
    }

    fn push_key(&mut self, at: Time, kind: u128, program: u32, number: u32) {
        let key =
            u128::from(at.0) << 64 | kind << 62 | u128::from(program) << 32 | u128::from(number);
        self.events.push(Reverse(key));
    }

    pub(crate) fn push(&mut self, at: Time, program: u32, event: Event) {
        match event {
            Event::Task(task) => self.push_key(at, TASK, program, task.raw()),
            Event::Start(server) => self.push_key(at, START, program, server),
        }
    }

    /// When the next event is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let Reverse(key) = self.events.peek()?;
        Some(Time((key >> 64) as u64))
    }

    /// The next event; the clock goes there.
    pub(crate) fn pop(&mut self) -> Option<Due> {
        let Reverse(key) = self.events.pop()?;
        self.now = Time((key >> 64) as u64);
        let (program, number) = ((key >> 32) as u32 & (u32::MAX >> 2), key as u32);
        Some(match key >> 62 & 3 {
            TASK => Due::Program(program, Event::Task(TaskId::from_raw(number))),
            RESOURCE => Due::Resource(number),
            _ => Due::Program(program, Event::Start(number)),
        })
    }

    /// A transfer arrives at a resource.
    pub(crate) fn arrive(&mut self, resource: u32, transfer: Transfer, bytes: u64) {
        self.resources[resource as usize]
            .2
            .arrive(transfer, bytes, self.now);
        self.announce(resource);
    }

    /// Whether departures from a resource are due.
    pub(crate) fn due(&mut self, resource: u32) -> bool {
        self.resources[resource as usize].2.due(self.now)
    }

    /// A transfer that a resource has served by now.
    pub(crate) fn depart(&mut self, resource: u32) -> Option<Transfer> {
        self.resources[resource as usize].2.depart(self.now)
    }

    pub(crate) fn announce(&mut self, resource: u32) {
        if let Some(at) = self.resources[resource as usize].2.announce() {
            self.push_key(at, RESOURCE, 0, resource);
        }
    }

    /// The transfers of a program leave, served or not.
    pub(crate) fn withdraw(&mut self, program: u32) {
        for resource in 0..self.resources.len() {
            self.resources[resource].2.withdraw(program, self.now);
            self.announce(resource as u32);
        }
    }
}
