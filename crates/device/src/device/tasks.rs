//! Tasks of synthetic programs: queues and transfers.

use super::{Device, Due};
use crate::figures::{CACHE, DDR};
use crate::job::{Body, Phase, Run, Status};
use crate::mmu::{Space, Unmapped};
use crate::network::{Claim, Leg};
use crate::owner::{JobId, Owner};
use crate::setup::Program;
use crate::synthetic::{Synthetic, TaskKind, Transfer};
use chipless_model::Time;
use chipless_sim::Stopped;

/// A time at a clock that is a part of the full one.
pub(crate) fn slowed(time: u64, speed: f64) -> u64 {
    if speed < 1.0 {
        (time as f64 / speed).round() as u64
    } else {
        time
    }
}

impl<'s> Device<'s, '_, '_> {
    /// The synthetic program of a job under way, and its run.
    pub(crate) fn run(&mut self, id: JobId) -> Option<(&'s Synthetic, &mut Run)> {
        let stream = self.job(id).stream;
        let Program::Synthetic(program) = self.setup.streams[stream].program else {
            return None;
        };
        match &mut self.job(id).body {
            Body::Synthetic(run) => Some((program, run)),
            _ => None,
        }
    }

    /// Starts what can start of a job.
    pub(crate) fn start_tasks(&mut self, id: JobId) -> Result<(), Stopped> {
        if self.job(id).phase != Phase::Running {
            return Ok(());
        }
        if self.job(id).leaving.is_some() {
            self.drain(id);
            return Ok(());
        }
        let stream = self.job(id).stream;
        let Program::Synthetic(program) = self.setup.streams[stream].program else {
            return self.start_program(id);
        };
        let with_times = self.setup.with_tasks;
        if !self.job(id).has_begun && program.has_transfers() {
            self.share(id)?;
        }
        let job = self.job(id);
        if !job.has_begun {
            job.has_begun = true;
            job.body = Body::Synthetic(Box::new(Run::new(program, with_times)));
        }
        for queue in 0..program.queues.len() as u32 {
            if !self.start_queue(id, program, queue) {
                return Ok(());
            }
        }
        self.watch(id);
        Ok(())
    }

    /// Starts the next task of a queue if it can. `false` where the job ended of it.
    fn start_queue(&mut self, id: JobId, program: &'s Synthetic, queue: u32) -> bool {
        let (now, epoch) = (self.now, self.job(id).epoch);
        loop {
            let Some((_, run)) = self.run(id) else {
                return false;
            };
            let place = &mut run.queues[queue as usize];
            let Some(number) = program.queues[queue as usize].get(place.task as usize) else {
                return true;
            };
            let task = &program.tasks[*number as usize];
            let is_free =
                |(before, repetition): &(u32, u64)| run.done[*before as usize] > *repetition;
            if place.busy || !task.after.iter().all(is_free) {
                return true;
            }
            place.busy = true;
            let repetition = place.repetition;
            if let Some(times) = &mut run.times {
                times[(task.first + repetition) as usize].0 = now;
            }
            match &task.kind {
                TaskKind::Compute(time) => {
                    run.in_flight += 1;
                    let clock = self.job(id).clock.unwrap_or(0);
                    let time = slowed(*time, self.figures.power.speed(clock));
                    self.at(now.saturating_add(time), Due::Task(id, epoch, queue));
                    return true;
                }
                TaskKind::Hang => {
                    run.in_flight += 1;
                    run.hanging += 1;
                    return true;
                }
                TaskKind::Transfer(transfer) => {
                    run.in_flight += 1;
                    return self.transfer(id, Owner::Task(id, queue), transfer, repetition);
                }
                TaskKind::Push(push) => {
                    let written = self.written_at(push.writer);
                    if written > now {
                        if let Some((_, run)) = self.run(id) {
                            run.in_flight += 1;
                        }
                        self.at(written, Due::Written(id, epoch, queue));
                        return true;
                    }
                    self.enqueue(id, queue, push.fifo);
                    if !self.is_current(id, |j| j.epoch == epoch && j.phase == Phase::Running) {
                        return false;
                    }
                    // The push may have ended, and the next task of the queue may start.
                    match self.run(id) {
                        Some((_, run)) if run.queues[queue as usize].busy => return true,
                        Some(_) => {}
                        None => return false,
                    }
                }
            }
        }
    }

    /// Bytes set out: pages are looked up, walks are waited for. `false` where the job ended of it.
    pub(crate) fn transfer(
        &mut self,
        id: JobId,
        owner: Owner,
        transfer: &Transfer,
        repetition: u64,
    ) -> bool {
        let (now, epoch, stream) = (self.now, self.job(id).epoch, self.job(id).stream);
        let process = self.setup.contexts[self.context_of(id)].process;
        if let (Some(address), Program::Synthetic(program)) =
            (transfer.address, self.setup.streams[stream].program)
        {
            self.states.live(&mut self.memory);
            let space = Space {
                process,
                maps: program.maps.as_deref(),
            };
            let start = address + transfer.stride * repetition;
            let passes = transfer.path.contains(&DDR);
            let rate = transfer
                .path
                .iter()
                .map(|r| self.figures.bandwidth[usize::from(*r)]);
            let rate = rate.fold(f64::INFINITY, f64::min);
            let found = self.memory.look_up(now, space, rate, passes, |visit| {
                visit(start, transfer.bytes);
            });
            match found {
                Err(Unmapped) => {
                    self.fail(id, Status::Fault);
                    return false;
                }
                Ok(ready) if ready > now => {
                    if let Some((_, run)) = self.run(id) {
                        run.walking += 1;
                    }
                    self.at(ready, Due::Walked(id, epoch, owner));
                    return true;
                }
                Ok(_) => {}
            }
        }
        self.move_bytes(id, owner, transfer, repetition);
        true
    }

    /// Bytes enter the network, but for those that the cache holds.
    fn move_bytes(&mut self, id: JobId, owner: Owner, transfer: &Transfer, repetition: u64) {
        let (now, context, stream) = (self.now, self.context_of(id), self.job(id).stream);
        let bytes = transfer.bytes;
        let path = transfer.path.iter();
        let mut legs: Vec<Leg> = path.map(|resource| Leg::of(*resource, bytes)).collect();
        if let Some(address) = transfer.address
            && self.memory.cache.is_some()
            && transfer.path.contains(&DDR)
        {
            self.states.live(&mut self.memory);
            let process = self.setup.contexts[context].process;
            let start = address + transfer.stride * repetition;
            let mask = self.masks[stream][transfer.agent as usize];
            let (missed, _) = self
                .memory
                .touch(process, mask, |visit| visit(start, bytes));
            let ddr = legs.iter_mut().filter(|leg| leg.resource == DDR);
            ddr.for_each(|leg| leg.bytes = missed);
            if !transfer.path.contains(&CACHE) {
                legs.push(Leg::of(CACHE, bytes));
            }
        }
        self.memory
            .network
            .start(now, owner, bytes, legs, Claim::Equal);
    }

    /// The walks of a transfer are done.
    pub(crate) fn walked(&mut self, id: JobId, owner: Owner) {
        let Some((program, run)) = self.run(id) else {
            return;
        };
        let found = match owner {
            Owner::Task(_, queue) => {
                let place = run.queues[queue as usize];
                let number = program.queues[queue as usize][place.task as usize];
                Some((number, place.repetition))
            }
            Owner::List(_, fifo) => self.first_entry(id, fifo),
            Owner::File(..) | Owner::Prefetch | Owner::Agent(_) => None,
        };
        let Some((number, repetition)) = found else {
            return;
        };
        if let Some(transfer) = program.tasks[number as usize].kind.transfer() {
            self.move_bytes(id, owner, transfer, repetition);
        }
        if let Some((_, run)) = self.run(id) {
            run.walking -= 1;
        }
        self.watch(id);
    }

    /// Transfers that have ended by now.
    pub(crate) fn transfers_end(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        self.memory.network.ended(self.now, &mut ended);
        for owner in ended.drain(..) {
            match owner {
                Owner::Task(job, queue) => self.task_ends(job, queue),
                Owner::List(job, fifo) => self.entry_ends(job, fifo),
                Owner::File(instance, task) => {
                    self.world.served(instance, task, Time(self.now));
                }
                Owner::Prefetch => {}
                Owner::Agent(agent) => self.burst_ends(agent),
            }
        }
        self.ended = ended;
    }

    /// A task of a synthetic program ends.
    pub(crate) fn task_ends(&mut self, id: JobId, queue: u32) {
        if let Some((_, run)) = self.run(id) {
            run.in_flight -= 1;
        }
        self.advance(id, queue);
        self.proceed(id);
    }

    /// The task that a queue is at has ended.
    pub(crate) fn advance(&mut self, id: JobId, queue: u32) {
        let now = self.now;
        let Some((program, run)) = self.run(id) else {
            return;
        };
        let place = &mut run.queues[queue as usize];
        let number = program.queues[queue as usize][place.task as usize];
        let task = &program.tasks[number as usize];
        if let Some(times) = &mut run.times {
            times[(task.first + place.repetition) as usize].1 = now;
        }
        run.done[number as usize] += 1;
        run.left -= 1;
        place.busy = false;
        place.repetition += 1;
        if place.repetition == task.repeat {
            (place.task, place.repetition) = (place.task + 1, 0);
        }
    }

    /// Something of a job has ended: it ends, leaves, or goes on.
    pub(crate) fn proceed(&mut self, id: JobId) {
        let Some((_, run)) = self.run(id) else {
            return;
        };
        let is_done = run.left == 0;
        self.watch(id);
        if is_done {
            self.tasks_ended(id);
        } else if self.job(id).leaving.is_some() {
            self.drain(id);
        } else {
            let epoch = self.job(id).epoch;
            self.eager.push((id, epoch));
        }
    }

    /// Keeps what a job waits for: walks alone, or nothing that ends.
    pub(crate) fn watch(&mut self, id: JobId) {
        let (now, epoch, timeout) = (self.now, self.job(id).epoch, self.figures.watchdog_timeout);
        let Some((_, run)) = self.run(id) else {
            return;
        };
        let walks = run.in_flight > 0 && run.in_flight == run.walking;
        let mut walked = 0;
        match run.walks_since {
            Some(since) => {
                walked = now - since;
                run.walks_since = walks.then_some(now);
            }
            None => run.walks_since = walks.then_some(now),
        }
        let hangs = run.in_flight > 0 && run.in_flight == run.hanging;
        let begins = hangs && run.hangs_since.is_none();
        if begins || !hangs {
            run.hangs_since = hangs.then_some(now);
        }
        self.job(id).walked += walked;
        if begins {
            self.at(now.saturating_add(timeout), Due::Watchdog(id, epoch, now));
        }
    }

    /// Since when nothing of a job has been in flight that can end.
    pub(crate) fn hangs_since(&mut self, id: JobId) -> Option<u64> {
        self.run(id)?.1.hangs_since
    }

    /// Transfers and lists of a job are given up.
    pub(crate) fn drop_tasks(&mut self, id: JobId) {
        let is_its = |owner: &Owner| matches!(owner, Owner::Task(job, _) | Owner::List(job, _) if *job == id);
        self.memory.network.cancel(self.now, is_its);
        self.job(id).body = Body::None;
        self.leave_fifos(id);
    }
}
