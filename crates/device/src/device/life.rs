//! The life of a job: from its arrival over ring and doorbell to its end, and what its time goes into.

use super::{Device, Due};
use crate::arrivals::Link;
use crate::job::{Body, Breakdown, Job, Phase, Record, Status};
use crate::owner::JobId;
use crate::setup::Program;
use crate::workload::ArrivalKind;

impl Device<'_, '_, '_> {
    pub(crate) fn arrive(&mut self, stream: usize, index: u64, link: Link) {
        self.numbers += 1;
        let job = Job {
            stream,
            index,
            link,
            arrival: self.now,
            push: None,
            first_push: self.now,
            start: None,
            end: None,
            phase: Phase::Submitting,
            since: self.now,
            stamp: self.numbers,
            epoch: self.numbers,
            clock: None,
            spent: Breakdown::default(),
            ran: 0,
            walked: 0,
            preemptions: Vec::new(),
            leaving: None,
            has_begun: false,
            number: 0,
            placed: 0,
            status: Status::Done,
            body: Body::None,
        };
        self.totals.streams[stream].jobs += 1;
        self.live += 1;
        let id = if let Some(id) = self.free.pop() {
            self.jobs[id as usize] = Some(job);
            id
        } else {
            self.jobs.push(Some(job));
            self.jobs.len() as JobId - 1
        };
        if self.rings[self.setup.streams[stream].stream.context].is_dead {
            self.leave(id, Status::Aborted);
        } else {
            self.enter(id, Phase::Submitting, self.figures.host_submit);
        }
    }

    /// Time since the last change goes to the part that the phase belongs to.
    pub(crate) fn charge(&mut self, id: JobId) {
        let now = self.now;
        let job = self.job(id);
        let time = now - job.since;
        job.since = now;
        let part = match job.phase {
            Phase::Submitting | Phase::Returning => &mut job.spent.host,
            Phase::Refused | Phase::Ringing => &mut job.spent.ring,
            Phase::Waiting => &mut job.spent.scheduler,
            Phase::Preempted | Phase::Resetting => &mut job.spent.preempted,
            Phase::Starting | Phase::Completing => &mut job.spent.firmware,
            Phase::Restoring | Phase::Saving => &mut job.spent.save_restore,
            Phase::Running => {
                job.ran += time;
                let (stream, clock) = (job.stream, job.clock.unwrap_or(0));
                self.worked(self.need(stream).tiles, clock, time);
                return;
            }
        };
        *part += time as i64;
    }

    /// A job enters a phase that lasts so long.
    pub(crate) fn enter(&mut self, id: JobId, phase: Phase, time: u64) {
        self.set_phase(id, phase);
        if time == 0 {
            self.elapsed(id);
        } else {
            let stamp = self.job(id).stamp;
            self.at(self.now.saturating_add(time), Due::Phase(id, stamp));
        }
    }

    pub(crate) fn set_phase(&mut self, id: JobId, phase: Phase) {
        self.charge(id);
        self.numbers += 1;
        let stamp = self.numbers;
        let job = self.job(id);
        (job.phase, job.stamp) = (phase, stamp);
    }

    /// A phase is over.
    pub(crate) fn elapsed(&mut self, id: JobId) {
        let now = self.now;
        match self.job(id).phase {
            Phase::Submitting => {
                self.job(id).first_push = now;
                self.push(id);
            }
            Phase::Refused => {
                self.count_refused(id);
                self.push(id);
            }
            Phase::Ringing => self.wait(id, Phase::Waiting),
            Phase::Starting | Phase::Resetting => {
                if self.job(id).leaving.is_some() {
                    self.save(id);
                } else {
                    self.begin(id);
                }
            }
            Phase::Restoring => {
                if self.job(id).leaving.is_some() {
                    self.save(id);
                } else {
                    if let Some(last) = self.job(id).preemptions.last_mut() {
                        last.resume_ps = Some(now);
                    }
                    self.begin(id);
                }
            }
            Phase::Saving => {
                self.give_up_place(id);
                self.job(id).leaving = None;
                self.wait(id, Phase::Preempted);
            }
            Phase::Completing => {
                self.give_up_place(id);
                self.retire();
                self.enter(id, Phase::Returning, self.figures.host_complete);
            }
            Phase::Returning => {
                let status = self.job(id).status;
                self.leave(id, status);
            }
            Phase::Waiting | Phase::Preempted | Phase::Running => {}
        }
    }

    /// A job waits for its place, the first of its ring if it had one before.
    pub(crate) fn wait(&mut self, id: JobId, phase: Phase) {
        self.set_phase(id, phase);
        let (context, engine) = (self.context_of(id), self.engine_of(id));
        if phase == Phase::Preempted {
            self.rings[context].waiting.push_front(id);
        } else {
            self.numbers += 1;
            self.job(id).number = self.numbers;
            self.rings[context].waiting.push_back(id);
            let figures = self.figures;
            if self.active == 0 {
                self.power_passes();
                let slept = self.now - self.idle_since >= figures.power.idle && self.now > 0;
                if figures.power.enabled && slept {
                    self.awake_at = self.now.saturating_add(figures.power.wake);
                }
            }
            self.active += 1;
        }
        self.engines[engine].waiting += 1;
        self.engines[engine].is_dirty = true;
    }

    /// The program of a job begins or goes on.
    pub(crate) fn begin(&mut self, id: JobId) {
        if self.waits_for_clock(id) {
            return;
        }
        let now = self.now;
        self.job(id).start.get_or_insert(now);
        self.set_phase(id, Phase::Running);
        let epoch = self.job(id).epoch;
        self.eager.push((id, epoch));
    }

    /// The last task of a job has ended.
    pub(crate) fn tasks_ended(&mut self, id: JobId) {
        let now = self.now;
        self.charge(id);
        self.job(id).end = Some(now);
        self.carry(id);
        self.enter(id, Phase::Completing, self.figures.firmware_complete);
    }

    /// A job's work on the device is over.
    pub(crate) fn retire(&mut self) {
        self.power_passes();
        self.active -= 1;
        self.idle_since = self.now;
        if self.active == 0 {
            self.rests();
        }
    }

    /// A job fails at this instant, and all others of its context.
    pub(crate) fn fail(&mut self, id: JobId, status: Status) {
        let now = self.now;
        self.charge(id);
        self.drop_program(id);
        self.job(id).end = Some(now);
        self.job(id).status = status;
        self.give_up_place(id);
        self.retire();
        let context = self.context_of(id);
        self.abort(context);
        self.enter(id, Phase::Returning, self.figures.host_complete);
    }

    /// All jobs of a context end, but those that have ended on the device.
    pub(crate) fn abort(&mut self, context: usize) {
        let ring = &mut self.rings[context];
        ring.is_dead = true;
        ring.refused.clear();
        let waiting = std::mem::take(&mut ring.waiting);
        for id in waiting {
            let engine = self.engine_of(id);
            self.engines[engine].waiting -= 1;
            self.retire();
            self.leave(id, Status::Aborted);
        }
        for id in 0..self.jobs.len() as JobId {
            let early = |j: &Job| {
                matches!(j.phase, Phase::Submitting | Phase::Refused | Phase::Ringing)
                    && self.setup.streams[j.stream].stream.context == context
            };
            if self.is_current(id, early) {
                self.leave(id, Status::Aborted);
            }
        }
    }

    /// A job hangs or does not drain: it is ended, the engine is reset, the others on it start again.
    pub(crate) fn stop(&mut self, id: JobId, status: Status) {
        let engine = self.engine_of(id);
        let reset = self.figures.reset_time;
        self.fail(id, status);
        self.totals.resets += 1;
        self.engines[engine].reset_until = self.now.saturating_add(reset);
        let others: Vec<JobId> = self.engines[engine]
            .holding
            .iter()
            .map(|(job, _)| *job)
            .collect();
        for other in others {
            if self.job(other).phase == Phase::Completing {
                continue;
            }
            self.charge(other);
            self.drop_program(other);
            self.numbers += 1;
            let epoch = self.numbers;
            let job = self.job(other);
            job.spent.preempted += job.ran as i64;
            (job.ran, job.walked, job.has_begun, job.epoch) = (0, 0, false, epoch);
            job.leaving = None;
            for (id, holder) in &mut self.engines[engine].holding {
                holder.is_leaving &= *id != other;
            }
            self.enter(other, Phase::Resetting, reset);
        }
    }

    /// A job leaves the device and the host.
    pub(crate) fn leave(&mut self, id: JobId, status: Status) {
        if self.job(id).phase == Phase::Refused {
            self.count_refused(id);
        }
        self.charge(id);
        let Some(job) = self.jobs[id as usize].take() else {
            return;
        };
        self.free.push(id);
        self.live -= 1;
        let stream = &self.setup.streams[job.stream];
        let context = stream.stream.context;
        if job.push.is_some() {
            self.rings[context].held -= 1;
            self.wake_refused(context);
        }
        let mut spent = job.spent;
        let (ran, walked) = (job.ran as i64, job.walked.min(job.ran) as i64);
        spent.translation = walked;
        if status == Status::Done {
            let alone = stream.alone[job.clock.unwrap_or(0)];
            spent.execution = alone.min(i64::MAX as u64) as i64;
            let rest = ran - walked - spent.execution;
            // Where nothing is shared, what a drain leaves idle is the preemption's.
            if job.preemptions.is_empty()
                || matches!(stream.program, Program::Synthetic(p) if p.has_transfers())
                || rest < 0
            {
                spent.memory = rest;
            } else {
                spent.preempted += rest;
            }
        } else {
            spent.execution = ran - walked;
        }
        self.totals.left(&job, stream, status, self.now, &spent);
        if self.observe.is_some() {
            let tasks = match job.body {
                Body::Synthetic(run) => run.times,
                _ => None,
            };
            let record = Record {
                stream: stream.stream.name.clone(),
                index: job.index,
                context: self.setup.contexts[context].name.clone(),
                status,
                arrival_ps: job.arrival,
                push_ps: job.push,
                start_ps: job.start,
                end_ps: job.end,
                done_ps: self.now,
                breakdown_ps: spent,
                preemptions: job.preemptions,
                tasks,
            };
            self.left.push((job.stream, job.index, record));
        }
        if status == Status::Done {
            let mut link = job.link;
            link.began.get_or_insert(job.arrival);
            if let ArrivalKind::After { turns: Some(_), .. } = stream.stream.arrivals.kind {
                self.totals.turn(job.stream, link, self.now);
                link.last = Some(self.now);
            }
            for at in 0..self.followers[job.stream].len() {
                let follower = self.followers[job.stream][at];
                if let Some(arrival) = self.sources[follower].behind(self.now, link) {
                    self.arrives(follower, arrival);
                }
            }
        }
        let again = match status {
            Status::Rejected => self.now.saturating_add(self.figures.host_retry),
            _ => self.now,
        };
        if !self.rings[context].is_dead
            && let Some(arrival) = self.sources[job.stream].follow(again)
        {
            self.arrives(job.stream, arrival);
        }
    }
}
