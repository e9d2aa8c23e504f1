//! Programs of files on the device. Alone, a program is computed once for each state of TLB and cache that it finds; with others on the
//! memory path, or when it is preempted, it runs in a world.

use super::{Device, Due};
use crate::job::{Body, Phase};
use crate::memory::{Crossing, Loaded};
use crate::mmu::Map;
use crate::owner::{JobId, Owner};
use crate::power::CLOCKS;
use crate::programs::{FileProgram, Work};
use crate::setup::{Program, Setup};
use crate::states::Alone;
use chipless_model::Time;
use chipless_sim::{Effects, Order, Stopped, TimingOnly, World};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The first address of a process that the driver gives to buffers of users.
const BASE: u64 = 0x8000_0000;
/// Programs begin at multiples of this.
const ALIGNMENT: u64 = 1 << 16;

/// The programs of files of a setup in the address spaces of their processes, one behind the other, by stream and clock. At each clock, a
/// stream's program is the same one at the same place.
pub(crate) fn load<'s, 'p, 'a>(
    setup: &'s Setup<'s, 'p, 'a>,
    masks: &[Vec<u64>],
) -> Vec<Option<Loaded<'s, 'p, 'a>>> {
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    let streams = setup.streams.iter().zip(masks);
    let load = |(stream, masks): (&crate::StreamSetup<'s, 'p, 'a>, &Vec<u64>)| {
        let Program::File(program) = stream.program else {
            return [const { None }; CLOCKS];
        };
        let process = setup.contexts[stream.stream.context].process;
        let next = next.entry(process).or_insert(BASE);
        let size = program.touches.size();
        let mapped = [Map::new(*next, size)];
        *next += size.next_multiple_of(ALIGNMENT);
        let at = |clock: usize| {
            let program = match clock.checked_sub(1) {
                None => Some(program),
                Some(slower) => stream.slower.get(slower),
            };
            program.map(|program| Loaded {
                program,
                process,
                mapped,
                masks: masks.clone(),
            })
        };
        std::array::from_fn(at)
    };
    streams.flat_map(load).collect()
}

/// Lets a world and the memory path go on, up to an instant, which is left out.
fn go_until<E: Effects>(
    world: &mut World<'_, '_, E>,
    crossing: &mut Crossing<'_, '_, '_, '_>,
    until: u64,
) -> Result<(), Stopped> {
    let mut ended = Vec::new();
    loop {
        let next = world.next().map(|at| at.0);
        let next = next.into_iter().chain(crossing.memory.network.next()).min();
        let Some(now) = next.filter(|at| *at < until) else {
            return Ok(());
        };
        if crossing.memory.network.next() == Some(now) {
            crossing.memory.network.ended(now, &mut ended);
            for owner in ended.drain(..) {
                if let Owner::File(instance, task) = owner {
                    world.served(instance, task, Time(now));
                }
            }
        } else {
            while world.next() == Some(Time(now)) {
                world.step(crossing)?;
            }
        }
    }
}

impl<'s, 'p, 'a> Device<'s, 'p, 'a> {
    fn file(&mut self, id: JobId) -> Option<&'s FileProgram<'p, 'a>> {
        let place = self.loaded_at(id);
        self.loaded[place].as_ref().map(|loaded| loaded.program)
    }

    /// The place of a job's program, by stream and clock, among those that are loaded.
    fn loaded_at(&mut self, id: JobId) -> usize {
        let job = self.job(id);
        job.stream * CLOCKS + job.clock.unwrap_or(0)
    }

    /// A program begins, or goes on after a preemption.
    pub(crate) fn start_program(&mut self, id: JobId) -> Result<(), Stopped> {
        let Some(program) = self.file(id) else {
            return Ok(());
        };
        let now = self.now;
        let is_shared = self.share(id)?;
        if let (true, Body::Live(instance)) = (self.job(id).has_begun, &self.job(id).body) {
            let instance = *instance;
            self.states.live(&mut self.memory);
            let mut crossing = Crossing::new(&mut self.memory, &self.loaded, &self.placed);
            return self.world.resume(instance, &mut crossing, Time(now));
        }
        self.job(id).has_begun = true;
        let (stream, index, loaded) = (self.job(id).stream, self.job(id).index, self.loaded_at(id));
        let storage = match &mut self.compute {
            Some(compute) if index == 0 => compute(stream),
            _ => None,
        };
        if is_shared {
            return self.live(
                id,
                program,
                storage.map_or(Work::Timing, Work::Computing),
                now,
            );
        }
        // Who begins alone finds nothing in flight.
        self.memory.settle(now);
        if let Some(storage) = storage {
            return self.live(id, program, Work::Computing(storage), now);
        }
        let Some(run) = self.alone(loaded, program)? else {
            return self.live(id, program, Work::Timing, now);
        };
        let epoch = self.job(id).epoch;
        self.at(now.saturating_add(run.time), Due::Program(id, epoch));
        self.job(id).body = Body::Alone(now, run);
        Ok(())
    }

    /// How a loaded program runs alone from now on, given what TLB and cache hold; `None` where that cannot be known beforehand.
    fn alone(
        &mut self,
        loaded: usize,
        program: &FileProgram<'p, 'a>,
    ) -> Result<Option<Rc<Alone>>, Stopped> {
        let Some(state) = self.states.state(&self.memory) else {
            return Ok(None);
        };
        if let Some(run) = self.states.run(loaded, state) {
            return Ok(Some(run));
        }
        self.states.live(&mut self.memory);
        let before = self.memory.take_counts();
        let run = self.ahead(loaded, program);
        let counts = self.memory.take_counts();
        self.memory.add_counts(&before);
        // It ran ahead of time, and its walks are over.
        self.memory.settle(self.now);
        let (time, walked) = run?;
        let Some(after) = self.states.state(&self.memory) else {
            // No room for what it leaves, so it is computed as it goes.
            self.states.go(state);
            return Ok(None);
        };
        self.states.go(state);
        let run = Alone {
            time,
            walked,
            counts,
            after,
        };
        Ok(Some(self.states.learn(loaded, state, run)))
    }

    /// Runs a program alone from now on, in a world of its own: how long it takes, and how long of that nothing went on but walks.
    fn ahead(
        &mut self,
        loaded: usize,
        program: &FileProgram<'p, 'a>,
    ) -> Result<(u64, u64), Stopped> {
        let mut world = World::default();
        let streams = BTreeMap::from([(world.coming(), loaded)]);
        let mut crossing = Crossing::new(&mut self.memory, &self.loaded, &streams);
        let from = Time(self.now);
        let instance = world.place(
            &program.verified,
            Order::Timed,
            TimingOnly,
            &mut crossing,
            from,
        )?;
        go_until(&mut world, &mut crossing, u64::MAX)?;
        let walked = world.idled(instance).0;
        let end = world
            .remove(instance)
            .map_or(from, |(outcome, _)| outcome.timeline.end);
        Ok((end.0.saturating_sub(from.0), walked))
    }

    /// Programs that run alone run in the world from now on, if the job passes the memory path as well. Whether any other does.
    pub(crate) fn share(&mut self, id: JobId) -> Result<bool, Stopped> {
        let running: Vec<JobId> = self
            .engines
            .iter()
            .flat_map(|places| places.holding.iter().map(|(job, _)| *job))
            .filter(|job| *job != id)
            .collect();
        let mut is_shared = !self.bursting.is_empty();
        for other in running {
            let (setup, job) = (self.setup, self.job(other));
            let has_transfers = setup.streams[job.stream].program.has_transfers();
            is_shared |= match job.body {
                Body::Alone(..) => {
                    self.materialise(other)?;
                    true
                }
                Body::Live(_) => true,
                Body::Synthetic(_) => job.phase == Phase::Running && has_transfers,
                Body::None => false,
            };
        }
        Ok(is_shared)
    }

    fn live(
        &mut self,
        id: JobId,
        program: &FileProgram<'p, 'a>,
        work: Work<'a>,
        from: u64,
    ) -> Result<(), Stopped> {
        self.states.live(&mut self.memory);
        let (instance, loaded) = (self.world.coming(), self.loaded_at(id));
        self.placed.insert(instance, loaded);
        self.job(id).body = Body::Live(instance);
        let mut crossing = Crossing::new(&mut self.memory, &self.loaded, &self.placed);
        self.world
            .place(
                &program.verified,
                Order::Timed,
                work,
                &mut crossing,
                Time(from),
            )
            .map(drop)
    }

    /// A program that ran alone until now runs in the world.
    fn materialise(&mut self, id: JobId) -> Result<(), Stopped> {
        let Body::Alone(from, _) = self.job(id).body else {
            return Ok(());
        };
        let Some(program) = self.file(id) else {
            return Ok(());
        };
        // Its end is not known any more.
        self.job(id).epoch += 1;
        self.live(id, program, Work::Timing, from)?;
        let mut crossing = Crossing::new(&mut self.memory, &self.loaded, &self.placed);
        go_until(&mut self.world, &mut crossing, self.now)
    }

    /// No task of a job starts any more.
    pub(crate) fn halt(&mut self, id: JobId) -> Result<(), Stopped> {
        self.withdraw_pushes(id);
        self.materialise(id)?;
        if let Body::Live(instance) = self.job(id).body {
            self.world.halt(instance);
        }
        Ok(())
    }

    /// Whether nothing of a job is in flight, now that it is asked to leave.
    pub(crate) fn is_still(&mut self, id: JobId) -> bool {
        let now = Time(self.now);
        match &self.job(id).body {
            Body::None => true,
            Body::Synthetic(run) => run.in_flight == 0,
            Body::Alone(..) => false,
            Body::Live(instance) => {
                let instance = *instance;
                self.world.is_still(instance) && self.world.next() != Some(now)
            }
        }
    }

    /// A program that ran alone has ended.
    pub(crate) fn program_ends(&mut self, id: JobId) {
        if let Body::Alone(_, run) = &self.job(id).body {
            let run = Rc::clone(run);
            self.memory.add_counts(&run.counts);
            self.states.go(run.after);
            self.job(id).walked += run.walked;
            if let Some(program) = self.file(id) {
                self.count_fifos(id, program.deepest.iter().copied());
            }
        }
        self.job(id).body = Body::None;
        self.tasks_ended(id);
    }

    /// Counts what stood in the work FIFOs of a program that has ended, by its queues.
    fn count_fifos(&mut self, id: JobId, deepest: impl Iterator<Item = u32>) {
        let Some(program) = self.file(id) else {
            return;
        };
        for (fifo, deepest) in program.fifos.iter().zip(deepest) {
            if let Some((block, entries)) = fifo {
                let counts = &mut self.totals.fifos[*block as usize];
                counts.writes += entries;
                counts.deepest = counts.deepest.max(deepest.into());
            }
        }
    }

    /// Everything that is due in the world; programs end or have drained.
    pub(crate) fn world_goes_on(&mut self) -> Result<(), Stopped> {
        let now = Time(self.now);
        let mut crossing = Crossing::new(&mut self.memory, &self.loaded, &self.placed);
        while self.world.next() == Some(now) {
            self.world.step(&mut crossing)?;
        }
        let running: Vec<JobId> = self
            .engines
            .iter()
            .flat_map(|places| places.holding.iter().map(|(job, _)| *job))
            .collect();
        for id in running {
            let Body::Live(instance) = self.job(id).body else {
                continue;
            };
            if self.world.is_done(instance) {
                let (stream, walked) = (self.job(id).stream, self.world.idled(instance).0);
                self.placed.remove(&instance);
                if let Some((outcome, work)) = self.world.remove(instance) {
                    self.count_fifos(id, outcome.timeline.deepest.iter().copied());
                    if let Work::Computing(storage) = work {
                        self.totals.outputs.push((stream, storage));
                    }
                }
                self.job(id).body = Body::None;
                self.job(id).walked += walked;
                self.tasks_ended(id);
            } else if self.job(id).leaving.is_some() {
                self.drain(id);
            }
        }
        Ok(())
    }

    /// The program of a job is given up.
    pub(crate) fn drop_program(&mut self, id: JobId) {
        match self.job(id).body {
            Body::Live(instance) => {
                let now = self.now;
                self.memory.network.cancel(
                    now,
                    |owner| matches!(owner, Owner::File(of, _) if *of == instance),
                );
                self.placed.remove(&instance);
                drop(self.world.remove(instance));
                self.job(id).body = Body::None;
            }
            // TLB and cache stay as it found them: nobody knows how far it came.
            Body::None | Body::Alone(..) => self.job(id).body = Body::None,
            Body::Synthetic(_) => self.drop_tasks(id),
        }
    }

    /// Counts what a job has moved over resources of its own.
    pub(crate) fn carry(&mut self, id: JobId) {
        if let Some(program) = self.file(id) {
            self.totals.carry(&program.carried);
        }
    }
}
