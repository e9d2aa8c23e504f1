//! The device: events in simulated time, from the arrival of a job to its end.
//!
//! Of one instant, first everything happens that is due, then the scheduler looks, and only then tasks start: a job that is asked to
//! leave at an instant starts none any more.

use crate::arrivals::{Arrival, Source};
use crate::cache::Cache;
use crate::figures::Figures;
use crate::job::{Body, Job, Phase, Preemption, Record, Status};
use crate::mmu::Mmu;
use crate::network::Network;
use crate::policy::{self, Candidate, Holder, Place, Policy};
use crate::programs::Work;
use crate::setup::Setup;
use crate::tasks::{Agent, Owner};
use crate::totals::{Simulated, Totals};
use crate::workload::Engine;
use chipless_model::Storage;
use chipless_sim::{Stopped, World};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub(crate) type JobId = u32;

/// What is due. Timers of jobs carry what makes them void when it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A stream's next job.
    Arrival(usize, u64),
    /// A stream's next job is drawn, which comes so much later.
    Drawn(usize, u64, u64),
    /// A phase of a job is over.
    Phase(JobId, u64),
    /// A task ends, on this queue.
    Task(JobId, u64, u32),
    /// The walks of a transfer are done: of a task on this queue, or of the list of an agent.
    Walked(JobId, u64, Owner),
    /// A program ends that nothing shares with.
    Program(JobId, u64),
    /// Nothing that can end has been in flight since an instant.
    Watchdog(JobId, u64, u64),
    /// The scheduler of an engine looks again.
    Wake(usize),
}

/// Order of events of one instant: ends before arrivals, arrivals in the order of their streams.
const ENDS: u32 = 0;
const ARRIVALS: u32 = 1;
const WAKES: u32 = u32::MAX;

/// A context's ring, and what became of its jobs.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    waiting: VecDeque<JobId>,
    held: u64,
    pub(crate) running: Option<JobId>,
    pub(crate) is_dead: bool,
}

/// An engine's places.
pub(crate) struct Places {
    policy: Box<dyn Policy>,
    room: Place,
    pub(crate) holding: Vec<(JobId, Holder)>,
    /// Jobs that wait for one.
    waiting: usize,
    is_dirty: bool,
    wake: Option<u64>,
    pub(crate) reset_until: u64,
    busy_since: u64,
}

/// What gives the inputs of a stream's first job.
pub type Compute<'c, 'a> = &'c mut dyn FnMut(usize) -> Option<Storage<'a>>;

pub(crate) struct Device<'s, 'p, 'a> {
    pub(crate) setup: &'s Setup<'s, 'p, 'a>,
    pub(crate) figures: &'s Figures,
    pub(crate) now: u64,
    events: BinaryHeap<Reverse<(u64, u32, u64, Due)>>,
    numbers: u64,
    jobs: Vec<Option<Job>>,
    free: Vec<JobId>,
    live: usize,
    sources: Vec<Source>,
    pub(crate) rings: Vec<Ring>,
    pub(crate) engines: [Places; 2],
    pub(crate) network: Network<Owner>,
    pub(crate) mmu: Option<Mmu>,
    pub(crate) cache: Option<Cache>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) worlds: Vec<(&'static str, World<'p, 'a, Work<'a>>)>,
    /// Jobs whose tasks may start at the end of this instant.
    pub(crate) eager: Vec<(JobId, u64)>,
    /// Jobs that wait for a place or hold one.
    active: usize,
    idle_since: u64,
    awake_at: u64,
    pub(crate) compute: Option<Compute<'s, 'a>>,
    observe: Option<&'s mut dyn FnMut(&Record)>,
    /// Jobs that left at this instant.
    left: Vec<(usize, u64, Record)>,
    pub(crate) totals: Totals<'a>,
    /// Ways of the cache that the agents of each stream may fill.
    pub(crate) masks: Vec<Vec<u64>>,
    pub(crate) ended: Vec<Owner>,
    candidates: Vec<Candidate>,
    holders: Vec<Holder>,
}

/// Simulates a setup to the end of its last job.
///
/// # Errors
/// A program that gets stuck or faults: which stream, and why.
pub fn simulate<'s, 'p, 'a>(
    setup: &'s Setup<'s, 'p, 'a>,
    figures: &'s Figures,
    compute: Option<Compute<'s, 'a>>,
    observe: Option<&'s mut dyn FnMut(&Record)>,
) -> Result<Simulated<'a>, Stopped> {
    let places = |slots: u64, tiles: u64| Places {
        policy: policy::of(figures),
        room: Place { slots, tiles },
        holding: Vec::new(),
        waiting: 0,
        is_dirty: false,
        wake: None,
        reset_until: 0,
        busy_since: 0,
    };
    let sources = setup
        .streams
        .iter()
        .enumerate()
        .map(|(number, s)| Source::new(&s.stream.arrivals, setup.duration, setup.seed, number));
    let mut device = Device {
        setup,
        figures,
        now: 0,
        events: BinaryHeap::new(),
        numbers: 0,
        jobs: Vec::new(),
        free: Vec::new(),
        live: 0,
        sources: sources.collect(),
        rings: setup.contexts.iter().map(|_| Ring::default()).collect(),
        engines: [
            places(figures.nn_slots, figures.tiles),
            places(figures.copy_slots, 0),
        ],
        network: Network::new(&figures.bandwidth),
        mmu: figures.mmu_enabled.then(|| Mmu::new(figures)),
        cache: figures.cache_enabled.then(|| Cache::new(figures)),
        agents: Vec::new(),
        worlds: Vec::new(),
        eager: Vec::new(),
        active: 0,
        idle_since: 0,
        awake_at: 0,
        compute,
        observe,
        left: Vec::new(),
        totals: Totals::new(setup),
        masks: setup
            .streams
            .iter()
            .map(|s| s.program.masks(figures))
            .collect(),
        ended: Vec::new(),
        candidates: Vec::new(),
        holders: Vec::new(),
    };
    device.go()?;
    Ok(device.finish())
}

impl<'a> Device<'_, '_, 'a> {
    fn go(&mut self) -> Result<(), Stopped> {
        for stream in 0..self.sources.len() {
            for _ in 0..self.sources[stream].first() {
                match self.sources[stream].follow(0) {
                    Some(arrival) => self.arrives(stream, arrival),
                    None => break,
                }
            }
            self.draw(stream);
        }
        loop {
            // What the scheduler has just freed is given out before time goes on.
            if !self.engines.iter().any(|places| places.is_dirty) {
                let Some(at) = self.next() else {
                    break;
                };
                if at > self.now {
                    self.report();
                    self.now = at;
                }
            }
            self.happen()?;
            for engine in 0..self.engines.len() {
                if std::mem::take(&mut self.engines[engine].is_dirty) {
                    self.schedule(engine)?;
                }
            }
            for (job, epoch) in std::mem::take(&mut self.eager) {
                if self.is_current(job, |j| j.epoch == epoch) {
                    self.start_tasks(job)?;
                }
            }
        }
        self.report();
        Ok(())
    }

    /// When something is due.
    fn next(&self) -> Option<u64> {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        let worlds = self.worlds.iter().filter_map(|(_, world)| world.next());
        let worlds = worlds.map(|at| at.0);
        event
            .into_iter()
            .chain(self.network.next())
            .chain(worlds)
            .min()
    }

    /// Everything that is due at this instant.
    fn happen(&mut self) -> Result<(), Stopped> {
        loop {
            let is_due = |at: u64| at == self.now;
            if self
                .events
                .peek()
                .is_some_and(|Reverse((at, ..))| is_due(*at))
            {
                if let Some(Reverse((.., due))) = self.events.pop() {
                    self.handle(due)?;
                }
            } else if self.network.next().is_some_and(is_due) {
                self.transfers_end();
            } else if self
                .worlds
                .iter()
                .any(|(_, world)| world.next().is_some_and(|at| is_due(at.0)))
            {
                self.worlds_go_on()?;
            } else {
                return Ok(());
            }
        }
    }

    pub(crate) fn at(&mut self, at: u64, due: Due) {
        let order = match due {
            Due::Arrival(stream, _) | Due::Drawn(stream, ..) => ARRIVALS + stream as u32,
            Due::Wake(_) => WAKES,
            _ => ENDS,
        };
        self.numbers += 1;
        self.events.push(Reverse((at, order, self.numbers, due)));
    }

    fn handle(&mut self, due: Due) -> Result<(), Stopped> {
        match due {
            Due::Drawn(stream, index, delay) => {
                self.at(self.now + delay, Due::Arrival(stream, index));
                self.draw(stream);
            }
            Due::Arrival(stream, index) => {
                self.arrive(stream, index);
                if !self.sources[stream].has_jitter() {
                    self.draw(stream);
                }
            }
            Due::Phase(job, stamp) if self.is_current(job, |j| j.stamp == stamp) => {
                self.elapsed(job)
            }
            Due::Task(job, epoch, queue) if self.is_current(job, |j| j.epoch == epoch) => {
                self.task_ends(job, queue);
            }
            Due::Walked(job, epoch, owner) if self.is_current(job, |j| j.epoch == epoch) => {
                self.walked(job, owner);
            }
            Due::Program(job, epoch) if self.is_current(job, |j| j.epoch == epoch) => {
                self.tasks_ended(job);
            }
            Due::Watchdog(job, epoch, since) if self.is_current(job, |j| j.epoch == epoch) => {
                if self.hangs_since(job) == Some(since) {
                    self.hang(job);
                }
            }
            Due::Wake(engine) => {
                self.engines[engine].wake = None;
                self.engines[engine].is_dirty = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn draw(&mut self, stream: usize) {
        if let Some(arrival) = self.sources[stream].next() {
            self.arrives(stream, arrival);
        }
    }

    fn arrives(&mut self, stream: usize, Arrival { at, index, delay }: Arrival) {
        if self.sources[stream].has_jitter() {
            self.at(at, Due::Drawn(stream, index, delay));
        } else {
            self.at(at, Due::Arrival(stream, index));
        }
    }

    pub(crate) fn job(&mut self, job: JobId) -> &mut Job {
        self.jobs[job as usize]
            .as_mut()
            .unwrap_or_else(|| unreachable!("live jobs are named only"))
    }

    fn is_current(&self, job: JobId, is: impl Fn(&Job) -> bool) -> bool {
        self.jobs
            .get(job as usize)
            .and_then(Option::as_ref)
            .is_some_and(is)
    }

    pub(crate) fn context_of(&mut self, job: JobId) -> usize {
        let stream = self.job(job).stream;
        self.setup.streams[stream].stream.context
    }

    pub(crate) fn engine_of(&mut self, job: JobId) -> usize {
        let stream = self.job(job).stream;
        self.setup.streams[stream].engine as usize
    }

    fn arrive(&mut self, stream: usize, index: u64) {
        self.numbers += 1;
        let job = Job {
            stream,
            index,
            arrival: self.now,
            push: None,
            first_push: self.now,
            start: None,
            end: None,
            phase: Phase::Submitting,
            since: self.now,
            stamp: self.numbers,
            epoch: self.numbers,
            spent: crate::job::Breakdown::default(),
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
    fn charge(&mut self, id: JobId) {
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

    fn set_phase(&mut self, id: JobId, phase: Phase) {
        self.charge(id);
        self.numbers += 1;
        let stamp = self.numbers;
        let job = self.job(id);
        (job.phase, job.stamp) = (phase, stamp);
    }

    /// A phase is over.
    fn elapsed(&mut self, id: JobId) {
        let now = self.now;
        match self.job(id).phase {
            Phase::Submitting => {
                self.job(id).first_push = now;
                self.push(id);
            }
            Phase::Refused => self.push(id),
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

    fn push(&mut self, id: JobId) {
        let (now, figures) = (self.now, self.figures);
        let context = self.context_of(id);
        if self.rings[context].held < figures.ring_jobs {
            self.rings[context].held += 1;
            self.job(id).push = Some(now);
            self.enter(id, Phase::Ringing, figures.doorbell_latency);
            return;
        }
        let (stream, first) = (self.job(id).stream, self.job(id).first_push);
        self.totals.streams[stream].busy += 1;
        if now.saturating_add(figures.host_retry) > first.saturating_add(figures.host_retry_limit) {
            self.leave(id, Status::Rejected);
        } else {
            self.enter(id, Phase::Refused, figures.host_retry);
        }
    }

    /// A job waits for its place, the first of its ring if it had one before.
    fn wait(&mut self, id: JobId, phase: Phase) {
        self.set_phase(id, phase);
        let (context, engine) = (self.context_of(id), self.engine_of(id));
        if phase == Phase::Preempted {
            self.rings[context].waiting.push_front(id);
        } else {
            self.numbers += 1;
            self.job(id).number = self.numbers;
            self.rings[context].waiting.push_back(id);
            let figures = self.figures;
            if self.active == 0
                && figures.power_enabled
                && self.now - self.idle_since >= figures.power_idle
                && self.now > 0
            {
                self.awake_at = self.now.saturating_add(figures.power_wake);
            }
            self.active += 1;
        }
        self.engines[engine].waiting += 1;
        self.engines[engine].is_dirty = true;
    }

    /// The scheduler of an engine looks.
    fn schedule(&mut self, engine: usize) -> Result<(), Stopped> {
        let ready = self.engines[engine].reset_until.max(self.awake_at);
        if self.now < ready {
            self.wake(engine, ready);
            return Ok(());
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        for (number, ring) in self.rings.iter().enumerate() {
            let (Some(first), None) = (ring.waiting.front(), ring.running) else {
                continue;
            };
            let Some(job) = &self.jobs[*first as usize] else {
                continue;
            };
            let stream = &self.setup.streams[job.stream];
            if stream.engine as usize != engine {
                continue;
            }
            let context = &self.setup.contexts[number];
            candidates.push(Candidate {
                context: number,
                process: context.process,
                band: context.band,
                priority: context.priority,
                need: self.need(job.stream),
                number: job.number,
            });
        }
        let mut holders = std::mem::take(&mut self.holders);
        holders.clear();
        let places = &mut self.engines[engine];
        holders.extend(places.holding.iter().map(|(_, holder)| *holder));
        let plan = places
            .policy
            .plan(self.now, &mut candidates, &holders, places.room);
        (self.candidates, self.holders) = (candidates, holders);
        if let Some(at) = plan.wake {
            self.wake(engine, at);
        }
        for (context, by) in plan.preempt {
            if let Some(job) = self.rings[context].running {
                self.ask_to_leave(job, by)?;
            }
        }
        for context in plan.place {
            self.place(context);
        }
        Ok(())
    }

    fn wake(&mut self, engine: usize, at: u64) {
        let places = &mut self.engines[engine];
        if places.wake.is_none_or(|wake| at < wake) {
            places.wake = Some(at);
            self.at(at, Due::Wake(engine));
        }
    }

    /// The place that a job of a stream needs.
    fn need(&self, stream: usize) -> Place {
        let (figures, stream) = (self.figures, &self.setup.streams[stream]);
        match (stream.engine, stream.program.tiles()) {
            (Engine::Copy, _) => Place { slots: 1, tiles: 0 },
            (Engine::Nn, Some(tiles)) => Place { slots: 1, tiles },
            (Engine::Nn, None) => Place {
                slots: figures.nn_slots,
                tiles: figures.tiles,
            },
        }
    }

    /// The first waiting job of a context gets its place.
    fn place(&mut self, context: usize) {
        let Some(id) = self.rings[context].waiting.pop_front() else {
            return;
        };
        self.numbers += 1;
        let (now, number, stream) = (self.now, self.numbers, self.job(id).stream);
        let (engine, need) = (
            self.setup.streams[stream].engine as usize,
            self.need(stream),
        );
        self.job(id).placed = now;
        self.rings[context].running = Some(id);
        let of = &self.setup.contexts[context];
        let holder = Holder {
            context,
            process: of.process,
            band: of.band,
            priority: of.priority,
            holds: need,
            placed: number,
            is_leaving: false,
        };
        let places = &mut self.engines[engine];
        places.waiting -= 1;
        places.room = places.room.minus(need);
        if places.holding.is_empty() {
            places.busy_since = now;
        }
        places.holding.push((id, holder));
        let figures = self.figures;
        if self.job(id).phase == Phase::Preempted {
            let time = figures.preempt_restore.saturating_add(self.state_time(id));
            self.enter(id, Phase::Restoring, time);
        } else {
            self.enter(id, Phase::Starting, figures.firmware_start);
        }
    }

    pub(crate) fn give_up_place(&mut self, id: JobId) {
        let (now, engine, context) = (self.now, self.engine_of(id), self.context_of(id));
        let time = now - self.job(id).placed;
        self.rings[context].running = None;
        let places = &mut self.engines[engine];
        if let Some(at) = places.holding.iter().position(|(job, _)| *job == id) {
            let (_, holder) = places.holding.remove(at);
            places.room = places.room.plus(holder.holds);
            if places.holding.is_empty() {
                self.totals.busy[engine] += now - places.busy_since;
            }
        }
        places.is_dirty = true;
        // The next job of the context may wait for the other engine.
        if let Some(next) = self.rings[context].waiting.front().copied() {
            let other = self.engine_of(next);
            self.engines[other].is_dirty = true;
        }
        if engine == Engine::Nn as usize {
            self.totals.contexts[context].held += u128::from(time);
        }
    }

    /// A job that holds a place must leave it for a context.
    fn ask_to_leave(&mut self, id: JobId, by: usize) -> Result<(), Stopped> {
        let (now, engine) = (self.now, self.engine_of(id));
        let holding = &mut self.engines[engine].holding;
        if let Some((_, holder)) = holding.iter_mut().find(|(job, _)| *job == id) {
            holder.is_leaving = true;
        }
        self.job(id).leaving = Some((now, by));
        if self.job(id).phase == Phase::Running {
            self.halt(id)?;
            self.drain(id);
        }
        Ok(())
    }

    /// Saves a leaving job as soon as nothing of it is in flight.
    pub(crate) fn drain(&mut self, id: JobId) {
        if self.job(id).phase == Phase::Running && self.is_still(id) {
            self.save(id);
        }
    }

    fn save(&mut self, id: JobId) {
        let now = self.now;
        self.charge(id);
        let time = self
            .figures
            .preempt_save
            .saturating_add(self.state_time(id));
        let Some((request, by)) = self.job(id).leaving else {
            return;
        };
        let by = self.setup.contexts[by].name.clone();
        self.totals.preemptions += 1;
        self.job(id).preemptions.push(Preemption {
            request_ps: request,
            drain_ps: now - request,
            save_ps: time,
            resume_ps: None,
            by,
        });
        self.enter(id, Phase::Saving, time);
    }

    /// How long the state of a job takes to or from memory.
    fn state_time(&mut self, id: JobId) -> u64 {
        let (ran, has_begun) = (self.job(id).ran, self.job(id).has_begun);
        let stream = self.job(id).stream;
        let bytes = if has_begun {
            self.setup.streams[stream].program.state(ran)
        } else {
            0
        };
        let rate = self.figures.preempt_bandwidth;
        if rate.fract() == 0.0 && rate < 1e18 {
            let time = (u128::from(bytes) * 1_000_000_000_000).div_ceil(rate as u128);
            return u64::try_from(time).unwrap_or(u64::MAX);
        }
        (bytes as f64 * 1e12 / rate).ceil() as u64
    }

    /// The program of a job begins or goes on.
    fn begin(&mut self, id: JobId) {
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
    fn retire(&mut self) {
        self.active -= 1;
        self.idle_since = self.now;
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
    fn abort(&mut self, context: usize) {
        let ring = &mut self.rings[context];
        ring.is_dead = true;
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

    /// A job hangs: the engine is reset, the others on it start again.
    fn hang(&mut self, id: JobId) {
        let engine = self.engine_of(id);
        let reset = self.figures.reset_time;
        self.fail(id, Status::Hang);
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
    fn leave(&mut self, id: JobId, status: Status) {
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
        }
        let mut spent = job.spent;
        let (ran, walked) = (job.ran as i64, job.walked.min(job.ran) as i64);
        spent.translation = walked;
        if status == Status::Done {
            spent.execution = stream.alone.min(i64::MAX as u64) as i64;
            let rest = ran - walked - spent.execution;
            // Where nothing is shared, what a drain leaves idle is the preemption's.
            if job.preemptions.is_empty() || stream.program.shares() || rest < 0 {
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

    /// Tells of the jobs that left at this instant.
    fn report(&mut self) {
        if let Some(observe) = &mut self.observe {
            self.left
                .sort_by_key(|(stream, index, _)| (*stream, *index));
            for (.., record) in self.left.drain(..) {
                observe(&record);
            }
        }
    }

    fn finish(mut self) -> Simulated<'a> {
        for (engine, places) in self.engines.iter().enumerate() {
            if !places.holding.is_empty() {
                self.totals.busy[engine] += self.now - places.busy_since;
            }
        }
        let stuck = self.live as u64;
        self.totals.finish(
            self.mmu.map(|mmu| mmu.counts).unwrap_or_default(),
            self.cache.map(|cache| cache.counts()).unwrap_or_default(),
            self.network.carried(),
            stuck,
        )
    }
}
