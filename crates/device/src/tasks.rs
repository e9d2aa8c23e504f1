//! Tasks of synthetic programs: queues, transfers, link agents.

use crate::device::{Device, Due, JobId};
use crate::figures::{CACHE, DDR};
use crate::job::{Body, Phase, Run, Status};
use crate::mmu::Unmapped;
use crate::network::Leg;
use crate::setup::Program;
use crate::synthetic::{Synthetic, TaskKind, Transfer};
use chipless_sim::Stopped;
use std::collections::VecDeque;

/// Whose transfer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A task of a job, on this queue.
    Task(JobId, u32),
    /// The first list of a link agent.
    List(u32),
}

/// A list in a link agent's FIFO: whose, and the task and repetition that pushed it.
#[derive(Clone, Copy, Debug)]
struct List {
    job: JobId,
    task: u32,
    repetition: u64,
}

/// A link agent: its FIFO, and pushes that wait for room in it.
#[derive(Debug, Default)]
pub(crate) struct Agent {
    fifo: VecDeque<List>,
    waiting: VecDeque<(JobId, u32)>,
    is_moving: bool,
}

impl<'s> Device<'s, '_, '_> {
    /// The synthetic program of a job under way, and its run.
    fn run(&mut self, id: JobId) -> Option<(&'s Synthetic, &mut Run)> {
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
                    self.at(now.saturating_add(*time), Due::Task(id, epoch, queue));
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
                TaskKind::Push(agent, _) => {
                    let agent = *agent as usize;
                    if self.agents.len() <= agent {
                        self.agents.resize_with(agent + 1, Agent::default);
                    }
                    self.agents[agent].waiting.push_back((id, queue));
                    if !self.admit(agent as u32) {
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
    fn transfer(&mut self, id: JobId, owner: Owner, transfer: &Transfer, repetition: u64) -> bool {
        let (now, epoch, stream) = (self.now, self.job(id).epoch, self.job(id).stream);
        let process = self.setup.contexts[self.context_of(id)].process;
        if let (Some(address), Some(mmu), Program::Synthetic(program)) = (
            transfer.address,
            &mut self.mmu,
            self.setup.streams[stream].program,
        ) {
            let start = address + transfer.stride * repetition;
            match mmu.look_up(now, process, start, transfer.bytes, program.maps.as_deref()) {
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
        let mut legs: Vec<Leg> = transfer
            .path
            .iter()
            .map(|resource| (*resource, bytes))
            .collect();
        if let (Some(address), Some(cache)) = (transfer.address, &mut self.cache)
            && transfer.path.contains(&DDR)
        {
            let process = self.setup.contexts[context].process;
            let start = address + transfer.stride * repetition;
            let physical = start | u64::from(process) << 40;
            let missed = cache.access(physical, bytes, self.masks[stream][transfer.agent as usize]);
            legs.iter_mut()
                .filter(|(r, _)| *r == DDR)
                .for_each(|leg| leg.1 = missed);
            if !transfer.path.contains(&CACHE) {
                legs.push((CACHE, bytes));
            }
        }
        self.network.start(now, owner, bytes, legs);
    }

    /// The walks of a transfer are done.
    pub(crate) fn walked(&mut self, id: JobId, owner: Owner) {
        let Some((program, run)) = self.run(id) else {
            return;
        };
        let (number, repetition) = match owner {
            Owner::Task(_, queue) => {
                let place = run.queues[queue as usize];
                (
                    program.queues[queue as usize][place.task as usize],
                    place.repetition,
                )
            }
            Owner::List(agent) => match self.agents[agent as usize].fifo.front() {
                Some(list) => (list.task, list.repetition),
                None => return,
            },
        };
        if let TaskKind::Transfer(transfer) | TaskKind::Push(_, transfer) =
            &program.tasks[number as usize].kind
        {
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
        self.network.ended(self.now, &mut ended);
        for owner in ended.drain(..) {
            match owner {
                Owner::Task(job, queue) => self.task_ends(job, queue),
                Owner::List(agent) => self.list_ends(agent),
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
    fn advance(&mut self, id: JobId, queue: u32) {
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
    fn proceed(&mut self, id: JobId) {
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

    /// Lets pushes that wait enter the FIFO of an agent, and its first list run. `false` where the job of a list ended of it.
    fn admit(&mut self, agent: u32) -> bool {
        let number = agent as usize;
        while (self.agents[number].fifo.len() as u64) < self.figures.agent_entries {
            let Some((id, queue)) = self.agents[number].waiting.pop_front() else {
                break;
            };
            let Some((program, run)) = self.run(id) else {
                continue;
            };
            let place = run.queues[queue as usize];
            let task = program.queues[queue as usize][place.task as usize];
            run.in_flight += 1;
            self.agents[number].fifo.push_back(List {
                job: id,
                task,
                repetition: place.repetition,
            });
            self.advance(id, queue);
            let epoch = self.job(id).epoch;
            self.eager.push((id, epoch));
        }
        self.start_list(agent)
    }

    /// The first list of an agent sets out.
    fn start_list(&mut self, agent: u32) -> bool {
        let state = &mut self.agents[agent as usize];
        let (Some(list), false) = (state.fifo.front().copied(), state.is_moving) else {
            return true;
        };
        state.is_moving = true;
        let Some((program, _)) = self.run(list.job) else {
            return true;
        };
        match &program.tasks[list.task as usize].kind {
            TaskKind::Push(_, transfer) => {
                self.transfer(list.job, Owner::List(agent), transfer, list.repetition)
            }
            _ => true,
        }
    }

    /// The first list of an agent is done; the next entry starts, and a push that waited enters.
    fn list_ends(&mut self, agent: u32) {
        let state = &mut self.agents[agent as usize];
        state.is_moving = false;
        let list = state.fifo.pop_front();
        if let Some(list) = list
            && let Some((_, run)) = self.run(list.job)
        {
            run.in_flight -= 1;
            run.left -= 1;
            self.proceed(list.job);
        }
        self.admit(agent);
    }

    /// Keeps what a job waits for: walks alone, or nothing that ends.
    fn watch(&mut self, id: JobId) {
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

    /// Pushes of a job that wait for room are taken back: it is asked to leave.
    pub(crate) fn withdraw_pushes(&mut self, id: JobId) {
        for agent in 0..self.agents.len() {
            let waiting = std::mem::take(&mut self.agents[agent].waiting);
            for (job, queue) in waiting {
                if job != id {
                    self.agents[agent].waiting.push_back((job, queue));
                } else if let Some((_, run)) = self.run(id) {
                    run.queues[queue as usize].busy = false;
                }
            }
        }
    }

    /// Transfers and lists of a job are given up.
    pub(crate) fn drop_tasks(&mut self, id: JobId) {
        self.network.cancel(
            self.now,
            |owner| matches!(owner, Owner::Task(job, _) if *job == id),
        );
        for agent in 0..self.agents.len() {
            let state = &mut self.agents[agent];
            let was_first = state.fifo.front().is_some_and(|list| list.job == id);
            state.fifo.retain(|list| list.job != id);
            state.waiting.retain(|(job, _)| *job != id);
            if was_first {
                state.is_moving = false;
                let list = Owner::List(agent as u32);
                self.network.cancel(self.now, |owner| *owner == list);
            }
        }
        self.job(id).body = Body::None;
        for agent in 0..self.agents.len() as u32 {
            self.admit(agent);
        }
    }
}
