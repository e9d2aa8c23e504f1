//! A world: runs of programs side by side, on one clock.
//!
//! A run of one program is a world with one instance. Everything that a program has is its instance's own; what instances share is
//! [outside](Outside).

use crate::effects::Effects;
use crate::engine::{Engine, Order, Outcome, Stop};
use crate::outside::{InstanceId, Outside};
use crate::stage::{Event, On, Stage};
use crate::verified::Verified;
use chipless_model::{TaskId, Time};
use std::collections::BTreeMap;

/// A run that cannot go on: a fault of a task. A deadlock shows when nothing is left to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Which run.
    pub instance: InstanceId,
    /// Why.
    pub stop: Stop,
}

/// Runs of programs on one clock.
pub struct World<'p, 'a, E> {
    stage: Stage,
    instances: BTreeMap<u32, (Engine<'p, 'a>, E)>,
    placed: u32,
}

impl<E> std::fmt::Debug for World<'_, '_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("now", &self.stage.now)
            .field("instances", &self.instances.len())
            .finish_non_exhaustive()
    }
}

impl<E> Default for World<'_, '_, E> {
    fn default() -> Self {
        World {
            stage: Stage::default(),
            instances: BTreeMap::new(),
            placed: 0,
        }
    }
}

impl<'p, 'a, E: Effects> World<'p, 'a, E> {
    /// The name that the program has which is placed next.
    pub const fn coming(&self) -> InstanceId {
        // Events have room for so many; nobody places them all.
        InstanceId(self.placed & (u32::MAX >> 2))
    }

    /// Starts a program at an instant: now or later, or, while nothing is pending, also before.
    ///
    /// # Errors
    /// The program breaks the protocol of a sync at its start.
    pub fn place(
        &mut self,
        program: &Verified<'p, 'a>,
        order: Order,
        mut effects: E,
        outside: &mut impl Outside,
        at: Time,
    ) -> Result<InstanceId, Stopped> {
        debug_assert!(at >= self.stage.now || self.next().is_none());
        self.stage.now = at;
        let instance = self.coming();
        let number = instance.0;
        self.placed = self.placed.wrapping_add(1);
        let mut engine = Engine::new(program.program(), number, order);
        let begun = engine.begin(&mut On {
            stage: &mut self.stage,
            effects: &mut effects,
            outside,
        });
        self.instances.insert(number, (engine, effects));
        begun
            .map(|()| instance)
            .map_err(|stop| Stopped { instance, stop })
    }

    /// The present.
    pub(crate) const fn now(&self) -> Time {
        self.stage.now
    }

    /// The first instance.
    pub(crate) fn only(&self) -> Option<&Engine<'p, 'a>> {
        self.instances
            .first_key_value()
            .map(|(_, (engine, _))| engine)
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Time> {
        self.stage.next()
    }

    /// Lets one thing happen.
    ///
    /// # Errors
    /// A task cannot be executed, or breaks the protocol of a sync.
    pub fn step(&mut self, outside: &mut impl Outside) -> Result<(), Stopped> {
        let Some((number, event)) = self.stage.pop() else {
            return Ok(());
        };
        let Some((engine, effects)) = self.instances.get_mut(&number) else {
            return Ok(());
        };
        let stage = &mut self.stage;
        engine
            .handle(
                event,
                &mut On {
                    stage,
                    effects,
                    outside,
                },
            )
            .map_err(|stop| Stopped {
                instance: InstanceId(number),
                stop,
            })
    }

    /// Lets everything happen that does so before an instant.
    ///
    /// # Errors
    /// As of [`step`](World::step).
    pub fn run_until(&mut self, until: Time, outside: &mut impl Outside) -> Result<(), Stopped> {
        while self.next().is_some_and(|at| at < until) {
            self.step(outside)?;
        }
        Ok(())
    }

    /// The [outside](Outside) has served a task at this instant.
    pub fn served(&mut self, instance: InstanceId, task: TaskId, now: Time) {
        let engine = self.instances.get_mut(&instance.0);
        if engine.is_some_and(|(engine, _)| engine.served_outside(task)) {
            self.stage.push(now, instance.0, Event::Task(task));
        }
    }

    /// No task of an instance starts from now on; those in flight run to their end.
    pub fn halt(&mut self, instance: InstanceId) {
        if let Some((engine, _)) = self.instances.get_mut(&instance.0) {
            engine.halt();
        }
    }

    /// A halted instance goes on at an instant, as of [`place`](World::place).
    ///
    /// # Errors
    /// As of [`step`](World::step).
    pub fn resume(
        &mut self,
        instance: InstanceId,
        outside: &mut impl Outside,
        at: Time,
    ) -> Result<(), Stopped> {
        debug_assert!(at >= self.stage.now || self.next().is_none());
        self.stage.now = at;
        let Some((engine, effects)) = self.instances.get_mut(&instance.0) else {
            return Ok(());
        };
        let stage = &mut self.stage;
        engine
            .resume(&mut On {
                stage,
                effects,
                outside,
            })
            .map_err(|stop| Stopped { instance, stop })
    }

    /// Whether no task of an instance is in flight.
    pub fn is_still(&self, instance: InstanceId) -> bool {
        let engine = self.instances.get(&instance.0);
        engine.is_none_or(|(engine, _)| engine.in_flight() == 0)
    }

    /// Whether an instance has come to its end.
    pub fn is_done(&self, instance: InstanceId) -> bool {
        let engine = self.instances.get(&instance.0);
        engine.is_none_or(|(engine, _)| engine.finished())
    }

    /// For how long nothing of an instance was in flight but tasks that waited for the [outside](Outside) before they began.
    pub fn idled(&self, instance: InstanceId) -> Time {
        let engine = self.instances.get(&instance.0);
        engine.map_or(Time::ZERO, |(engine, _)| engine.idled())
    }

    /// Takes an instance out of the world, at its end or before, with its effects and what has happened until now.
    pub fn remove(&mut self, instance: InstanceId) -> Option<(Outcome, E)> {
        let (engine, effects) = self.instances.remove(&instance.0)?;
        self.stage.withdraw(instance.0);
        Some((engine.into_outcome(None), effects))
    }
}

/// Runs a program to its end, or until nothing can move.
pub fn run(program: &Verified<'_, '_>, effects: &mut impl Effects) -> Outcome {
    run_in(program, Order::Timed, effects)
}

/// Runs a program in an order of choice.
pub fn run_in(program: &Verified<'_, '_>, order: Order, effects: &mut impl Effects) -> Outcome {
    let mut world = World::default();
    let mut stopped = world
        .place(program, order, effects, &mut (), program.program().start)
        .err();
    while stopped.is_none() && world.next().is_some() {
        stopped = world.step(&mut ()).err();
    }
    let stop = stopped.map(|stopped| stopped.stop);
    world.instances.pop_first().map_or_else(
        || Outcome {
            timeline: crate::Timeline::default(),
            end: Ok(()),
        },
        |(_, (engine, _))| engine.into_outcome(stop),
    )
}
