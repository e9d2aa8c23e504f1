//! Pushes into FIFOs, and the work on their entries.

use super::tasks::slowed;
use super::{Device, Due};
use crate::fifos::{Fifo, FifoName, Push, Pushed, Writer};
use crate::job::{Body, Phase};
use crate::owner::{JobId, Owner};
use crate::setup::Program;
use crate::synthetic::{Entry, TaskKind};

/// Which FIFO: one that a job has for itself, by its number among those that the program names, or a shared one.
#[derive(Clone, Copy, Debug)]
struct Which {
    own: Option<(JobId, u32)>,
    name: FifoName,
}

impl Device<'_, '_, '_> {
    /// A FIFO of a job's program.
    fn which(&mut self, id: JobId, fifo: u32) -> Option<Which> {
        let stream = self.job(id).stream;
        let Program::Synthetic(program) = self.setup.streams[stream].program else {
            return None;
        };
        let name = program.fifos[fifo as usize];
        let own = (!name.is_shared).then_some((id, fifo));
        Some(Which { own, name })
    }

    fn fifo(&mut self, which: Which) -> Option<&mut Fifo> {
        match which.own {
            None => Some(self.shared.entry(which.name).or_default()),
            Some((id, fifo)) => match &mut self.job(id).body {
                Body::Synthetic(run) => run.fifos.get_mut(fifo as usize),
                _ => None,
            },
        }
    }

    /// When an entry that is written from now on has been written.
    pub(crate) fn written_at(&mut self, writer: Option<Writer>) -> u64 {
        let (now, [cpu, dma]) = (self.now, self.figures.fifo_write);
        match writer {
            None => now,
            Some(Writer::Dma) => now.saturating_add(dma),
            Some(Writer::Cpu) => {
                self.cpu_free = self.cpu_free.max(now).saturating_add(cpu);
                self.cpu_free
            }
        }
    }

    /// The entry that a queue of a job pushes has been written.
    pub(crate) fn written(&mut self, id: JobId, queue: u32) {
        let Some((program, run)) = self.run(id) else {
            return;
        };
        run.in_flight -= 1;
        let place = &mut run.queues[queue as usize];
        let number = program.queues[queue as usize][place.task as usize];
        let is_leaving = self.job(id).leaving.is_some();
        if let TaskKind::Push(push) = &program.tasks[number as usize].kind
            && !is_leaving
        {
            self.enqueue(id, queue, push.fifo);
            self.watch(id);
            return;
        }
        if let Some((_, run)) = self.run(id) {
            // It is pushed again when the job goes on.
            run.queues[queue as usize].busy = false;
        }
        self.drain(id);
    }

    /// A queue of a job pushes an entry, which waits for room.
    pub(crate) fn enqueue(&mut self, id: JobId, queue: u32, fifo: u32) {
        let since = self.now;
        let Some(which) = self.which(id, fifo) else {
            return;
        };
        self.totals.fifos[which.name.block as usize].writes += 1;
        if let Some(state) = self.fifo(which) {
            state.waiting.push_back(Push {
                job: id,
                fifo,
                queue,
                since,
            });
        }
        self.admit(which);
    }

    /// Lets pushes that wait enter a FIFO, and its first entry begin.
    fn admit(&mut self, which: Which) {
        let (now, depth) = (self.now, which.name.block.depth(self.figures));
        while let Some(state) = self.fifo(which) {
            if state.entries.len() as u64 >= depth {
                break;
            }
            let Some(push) = state.waiting.pop_front() else {
                break;
            };
            let Some((program, run)) = self.run(push.job) else {
                continue;
            };
            let place = run.queues[push.queue as usize];
            run.in_flight += 1;
            let entry = Pushed {
                job: push.job,
                fifo: push.fifo,
                task: program.queues[push.queue as usize][place.task as usize],
                repetition: place.repetition,
            };
            let deep = self.fifo(which).map_or(0, |state| {
                state.entries.push_back(entry);
                state.entries.len() as u64
            });
            let counts = &mut self.totals.fifos[which.name.block as usize];
            counts.deepest = counts.deepest.max(deep);
            counts.waits += u64::from(push.since < now);
            counts.waited += now - push.since;
            self.advance(push.job, push.queue);
            let epoch = self.job(push.job).epoch;
            self.eager.push((push.job, epoch));
        }
        self.start_entry(which);
    }

    /// The first entry of a FIFO begins, if none is under way.
    fn start_entry(&mut self, which: Which) {
        let Some(state) = self.fifo(which) else {
            return;
        };
        let (Some(entry), false) = (state.entries.front().copied(), state.is_busy) else {
            return;
        };
        state.is_busy = true;
        let Some((program, _)) = self.run(entry.job) else {
            return;
        };
        let TaskKind::Push(push) = &program.tasks[entry.task as usize].kind else {
            return;
        };
        match &push.entry {
            Entry::List(transfer) => {
                let owner = Owner::List(entry.job, entry.fifo);
                self.transfer(entry.job, owner, transfer, entry.repetition);
            }
            Entry::Work(time) => {
                let (clock, epoch) = (self.job(entry.job).clock, self.job(entry.job).epoch);
                let time = slowed(*time, self.figures.power.speed(clock.unwrap_or(0)));
                let end = self.now.saturating_add(time);
                self.at(end, Due::Entry(entry.job, epoch, entry.fifo));
            }
        }
    }

    /// The task and repetition of the entry that is under way in a FIFO of a job.
    pub(crate) fn first_entry(&mut self, id: JobId, fifo: u32) -> Option<(u32, u64)> {
        let which = self.which(id, fifo)?;
        let first = self.fifo(which)?.entries.front()?;
        Some((first.task, first.repetition))
    }

    /// The first entry of a FIFO is done; the next one starts, and a push that waited enters.
    pub(crate) fn entry_ends(&mut self, id: JobId, fifo: u32) {
        let Some(which) = self.which(id, fifo) else {
            return;
        };
        if let Some(state) = self.fifo(which) {
            state.is_busy = false;
            state.entries.pop_front();
        }
        let epoch = self.job(id).epoch;
        if let Some((_, run)) = self.run(id) {
            run.in_flight -= 1;
            run.left -= 1;
        }
        self.proceed(id);
        // The job may have come to its end, and its own FIFOs with it.
        let goes_on = |device: &Self| {
            device.is_current(id, |j| j.epoch == epoch && j.phase == Phase::Running)
        };
        if which.own.is_none() || goes_on(self) {
            self.admit(which);
        }
    }

    /// Pushes of a job that wait for room are taken back: it is asked to leave.
    pub(crate) fn withdraw_pushes(&mut self, id: JobId) {
        let shared = self.shared.values_mut();
        let Some(job) = self.jobs[id as usize].as_mut() else {
            return;
        };
        let Body::Synthetic(run) = &mut job.body else {
            return;
        };
        for fifo in shared.chain(&mut run.fifos) {
            fifo.waiting.retain(|push| {
                if push.job == id {
                    run.queues[push.queue as usize].busy = false;
                }
                push.job != id
            });
        }
    }

    /// What a job has in shared FIFOs is given up.
    pub(crate) fn leave_fifos(&mut self, id: JobId) {
        let mut left = Vec::new();
        for (name, fifo) in &mut self.shared {
            let is_first = fifo.entries.front().is_some_and(|first| first.job == id);
            fifo.is_busy &= !is_first;
            let before = fifo.entries.len() + fifo.waiting.len();
            fifo.entries.retain(|entry| entry.job != id);
            fifo.waiting.retain(|push| push.job != id);
            if fifo.entries.len() + fifo.waiting.len() < before {
                left.push(*name);
            }
        }
        for name in left {
            self.admit(Which { own: None, name });
        }
    }
}
