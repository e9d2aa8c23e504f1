//! Programs of files on the device. Alone, a program takes as long as on an idle machine; with others that share its resources, or
//! when it is preempted, it runs in a world.

use crate::device::{Device, Due, JobId};
use crate::job::Body;
use crate::setup::Program;
use chipless_model::{Fault, Storage, TaskId, Time};
use chipless_sim::{Effects, Functional, Order, Stopped, Verified, World};

/// A program of a file.
#[derive(Debug)]
pub struct FileProgram<'p, 'a> {
    /// The program.
    pub verified: Verified<'p, 'a>,
    /// How long it takes alone, in picoseconds.
    pub latency: u64,
    /// Tiles that it holds; `None`: the whole device.
    pub tiles: Option<u64>,
    /// Bytes on the chip that are still needed, from each instant of its run on, in picoseconds.
    pub levels: Vec<(u64, u64)>,
    /// Bytes that it moves over each resource.
    pub carried: Vec<(String, u64)>,
}

impl FileProgram<'_, '_> {
    /// Bytes that are still needed when its tasks have run so long.
    pub(crate) fn state(&self, ran: u64) -> u64 {
        let after = self.levels.partition_point(|(at, _)| *at <= ran);
        self.levels[..after].last().map_or(0, |(_, bytes)| *bytes)
    }

    fn shares_with(&self, other: &FileProgram<'_, '_>) -> bool {
        let (one, two) = (self.verified.program(), other.verified.program());
        one.target == two.target && one.resources.iter().any(|r| two.resources.contains(r))
    }
}

/// What tasks do besides taking time.
#[derive(Debug)]
pub enum Work<'a> {
    /// Nothing.
    Timing,
    /// They compute on these bytes.
    Computing(Storage<'a>),
}

impl Effects for Work<'_> {
    fn apply(&mut self, program: &chipless_model::Program<'_>, task: TaskId) -> Result<(), Fault> {
        match self {
            Work::Timing => Ok(()),
            Work::Computing(storage) => Functional::new(storage).apply(program, task),
        }
    }
}

impl<'s, 'p, 'a> Device<'s, 'p, 'a> {
    fn file(&mut self, id: JobId) -> Option<&'s FileProgram<'p, 'a>> {
        let stream = self.job(id).stream;
        match self.setup.streams[stream].program {
            Program::File(program) => Some(program),
            Program::Synthetic(_) => None,
        }
    }

    /// The world of a target's programs.
    fn world(&mut self, target: &'static str) -> usize {
        let known = self.worlds.iter().position(|(of, _)| *of == target);
        known.unwrap_or_else(|| {
            self.worlds.push((target, World::default()));
            self.worlds.len() - 1
        })
    }

    /// A program begins, or goes on after a preemption.
    pub(crate) fn start_program(&mut self, id: JobId) -> Result<(), Stopped> {
        let Some(program) = self.file(id) else {
            return Ok(());
        };
        let now = self.now;
        if let (true, Body::Live(world, instance)) = (self.job(id).has_begun, &self.job(id).body) {
            let (world, instance) = (*world, *instance);
            self.share(id, program)?;
            return self.worlds[world].1.resume(instance, Time(now));
        }
        self.job(id).has_begun = true;
        let (stream, index) = (self.job(id).stream, self.job(id).index);
        let storage = match &mut self.compute {
            Some(compute) if index == 0 => compute(stream),
            _ => None,
        };
        let is_shared = self.share(id, program)?;
        if let Some(storage) = storage {
            return self.live(id, program, Work::Computing(storage), now);
        }
        if is_shared {
            return self.live(id, program, Work::Timing, now);
        }
        let epoch = self.job(id).epoch;
        self.job(id).body = Body::Alone(now);
        self.at(now.saturating_add(program.latency), Due::Program(id, epoch));
        Ok(())
    }

    /// Programs that run now and share something with this one run in a world from now on. Whether there are any.
    fn share(&mut self, id: JobId, program: &FileProgram<'p, 'a>) -> Result<bool, Stopped> {
        let running: Vec<JobId> = self
            .engines
            .iter()
            .flat_map(|places| places.holding.iter().map(|(job, _)| *job))
            .filter(|job| *job != id)
            .collect();
        let mut is_shared = false;
        for other in running {
            if self
                .file(other)
                .is_some_and(|file| file.shares_with(program))
            {
                match self.job(other).body {
                    Body::Alone(_) => self.materialise(other)?,
                    Body::Live(..) => {}
                    _ => continue,
                }
                is_shared = true;
            }
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
        let world = self.world(program.verified.program().target);
        let instance =
            self.worlds[world]
                .1
                .place(&program.verified, Order::Timed, work, Time(from))?;
        self.job(id).body = Body::Live(world, instance);
        Ok(())
    }

    /// A program that ran alone until now runs in a world.
    fn materialise(&mut self, id: JobId) -> Result<(), Stopped> {
        let Body::Alone(from) = self.job(id).body else {
            return Ok(());
        };
        let Some(program) = self.file(id) else {
            return Ok(());
        };
        // Its end is not known any more.
        self.job(id).epoch += 1;
        self.live(id, program, Work::Timing, from)?;
        if let Body::Live(world, _) = self.job(id).body {
            self.worlds[world].1.run_until(Time(self.now))?;
        }
        Ok(())
    }

    /// No task of a job starts any more.
    pub(crate) fn halt(&mut self, id: JobId) -> Result<(), Stopped> {
        self.withdraw_pushes(id);
        self.materialise(id)?;
        if let Body::Live(world, instance) = self.job(id).body {
            self.worlds[world].1.halt(instance);
        }
        Ok(())
    }

    /// Whether nothing of a job is in flight, now that it is asked to leave.
    pub(crate) fn is_still(&mut self, id: JobId) -> bool {
        let now = Time(self.now);
        match &self.job(id).body {
            Body::None => true,
            Body::Synthetic(run) => run.in_flight == 0,
            Body::Alone(_) => false,
            Body::Live(world, instance) => {
                let (world, instance) = (*world, *instance);
                let world = &self.worlds[world].1;
                world.is_still(instance) && world.next() != Some(now)
            }
        }
    }

    /// Everything that is due in the worlds; programs end or have drained.
    pub(crate) fn worlds_go_on(&mut self) -> Result<(), Stopped> {
        let now = Time(self.now);
        for (_, world) in &mut self.worlds {
            while world.next() == Some(now) {
                world.step()?;
            }
        }
        let running: Vec<JobId> = self
            .engines
            .iter()
            .flat_map(|places| places.holding.iter().map(|(job, _)| *job))
            .collect();
        for id in running {
            let Body::Live(world, instance) = self.job(id).body else {
                continue;
            };
            if self.worlds[world].1.is_done(instance) {
                let stream = self.job(id).stream;
                if let Some((_, Work::Computing(storage))) = self.worlds[world].1.remove(instance) {
                    self.totals.outputs.push((stream, storage));
                }
                self.job(id).body = Body::None;
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
            Body::Live(world, instance) => {
                drop(self.worlds[world].1.remove(instance));
                self.job(id).body = Body::None;
            }
            Body::None | Body::Alone(_) => self.job(id).body = Body::None,
            Body::Synthetic(_) => self.drop_tasks(id),
        }
    }

    /// Counts what a job has moved.
    pub(crate) fn carry(&mut self, id: JobId) {
        if let Some(program) = self.file(id) {
            self.totals.carry(&program.carried);
        }
    }
}
