//! The device: events in simulated time, from the arrival of a job to its end.
//!
//! Of one instant, first everything happens that is due, then the scheduler looks, and only then tasks start: a job that is asked to
//! leave at an instant starts none any more.

mod agents;
mod fifos;
mod life;
mod places;
mod power;
mod programs;
mod rings;
mod tasks;
mod traffic;

use crate::arrivals::{Arrival, Link, Source};
use crate::fifos::{Fifo, FifoName};
use crate::figures::{CACHE, DDR, Figures, NETWORK};
use crate::job::{Job, Record, Status};
use crate::memory::{Loaded, Memory};
use crate::owner::{JobId, Owner};
use crate::policy::{self, Candidate, Holder, Place, Policy};
use crate::power::Power;
use crate::programs::Work;
use crate::setup::Setup;
use crate::states::States;
use crate::substreams::ContextMap;
use crate::totals::{Simulated, Totals};
use crate::traffic::Sampler;
use crate::workload::ArrivalKind;
use agents::Bursting;
use chipless_model::Storage;
use chipless_sim::{InstanceId, Stopped, World};
use programs::load;
use rings::Ring;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What is due. Timers of jobs carry what makes them void when it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A stream's next job, and where it stands in a chain.
    Arrival(usize, u64, Link),
    /// A stream's next job is drawn, which comes so much later.
    Drawn(usize, u64, u64),
    /// A phase of a job is over.
    Phase(JobId, u64),
    /// A refused push is tried again.
    Attempt(JobId, u64),
    /// A task ends, on this queue.
    Task(JobId, u64, u32),
    /// An entry has been written that a queue of a job pushes into a FIFO.
    Written(JobId, u64, u32),
    /// The work of the first entry of a FIFO that a job's program names is done.
    Entry(JobId, u64, u32),
    /// The walks of a transfer are done: of a task on this queue, or of the list of an agent.
    Walked(JobId, u64, Owner),
    /// A program ends that nothing shares with.
    Program(JobId, u64),
    /// Nothing that can end has been in flight since an instant.
    Watchdog(JobId, u64, u64),
    /// A job that was asked to leave has not drained in time.
    Timeout(JobId, u64),
    /// The doorbell of a context is taken back.
    Revoked(usize),
    /// The scheduler of an engine looks again.
    Wake(usize),
}

/// Order of events of one instant: ends before pushes that are tried again, these before arrivals, arrivals in the order of their streams.
const ENDS: u32 = 0;
const ATTEMPTS: u32 = 1;
const ARRIVALS: u32 = 2;
const WAKES: u32 = u32::MAX;

/// An engine's places.
pub(crate) struct Places {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) room: Place,
    pub(crate) holding: Vec<(JobId, Holder)>,
    /// Jobs that wait for one.
    pub(crate) waiting: usize,
    pub(crate) is_dirty: bool,
    pub(crate) wake: Option<u64>,
    pub(crate) reset_until: u64,
    pub(crate) busy_since: u64,
}

/// What gives the inputs of a stream's first job.
pub type Compute<'c, 'a> = &'c mut dyn FnMut(usize) -> Option<Storage<'a>>;

pub(crate) struct Device<'s, 'p, 'a> {
    pub(crate) setup: &'s Setup<'s, 'p, 'a>,
    pub(crate) figures: &'s Figures,
    pub(crate) now: u64,
    pub(crate) events: BinaryHeap<Reverse<(u64, u32, u64, Due)>>,
    pub(crate) numbers: u64,
    pub(crate) jobs: Vec<Option<Job>>,
    pub(crate) free: Vec<JobId>,
    pub(crate) live: usize,
    /// Arrivals among the events.
    coming: usize,
    pub(crate) sources: Vec<Source>,
    pub(crate) rings: Vec<Ring>,
    pub(crate) engines: [Places; 2],
    pub(crate) memory: Memory,
    pub(crate) states: States,
    /// Programs of files, by stream and clock.
    pub(crate) loaded: Vec<Option<Loaded<'s, 'p, 'a>>>,
    pub(crate) world: World<'p, 'a, Work<'a>>,
    /// Which of them each instance in the world is.
    pub(crate) placed: BTreeMap<InstanceId, usize>,
    /// Jobs whose tasks may start at the end of this instant.
    pub(crate) eager: Vec<(JobId, u64)>,
    /// Jobs that wait for a place or hold one.
    pub(crate) active: usize,
    pub(crate) idle_since: u64,
    pub(crate) awake_at: u64,
    pub(crate) compute: Option<Compute<'s, 'a>>,
    pub(crate) observe: Option<&'s mut dyn FnMut(&Record)>,
    /// Jobs that left at this instant.
    pub(crate) left: Vec<(usize, u64, Record)>,
    pub(crate) totals: Totals<'a>,
    /// Ways of the cache that the agents of each stream may fill.
    pub(crate) masks: Vec<Vec<u64>>,
    /// Agents with bursts.
    pub(crate) bursting: Vec<Bursting>,
    pub(crate) power: Power,
    pub(crate) sampler: Sampler,
    pub(crate) map: ContextMap,
    /// FIFOs that jobs of all contexts push into, and until when the scheduler CPU writes entries.
    pub(crate) shared: BTreeMap<FifoName, Fifo>,
    pub(crate) cpu_free: u64,
    /// By stream, those whose jobs follow its own.
    pub(crate) followers: Vec<Vec<usize>>,
    pub(crate) ended: Vec<Owner>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) holders: Vec<Holder>,
}

/// Simulates a setup to the end of its last job.
///
/// # Errors
/// A program that gets stuck or faults: which stream, and why.
pub fn simulate<'s, 'a>(
    setup: &'s Setup<'s, '_, 'a>,
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
    let masks = setup.streams.iter().map(|s| s.program.masks(figures));
    let masks: Vec<Vec<u64>> = masks.collect();
    let mut states = States::default();
    let bursting = Bursting::of(setup.agents, figures);
    if !figures.cache_masks.is_empty() || !bursting.is_empty() {
        // What a cache holds does not say then who may replace it, or what comes to it from outside.
        states.give_up();
    }
    let mut device = Device {
        setup,
        figures,
        now: 0,
        events: BinaryHeap::new(),
        numbers: 0,
        jobs: Vec::new(),
        free: Vec::new(),
        live: 0,
        coming: 0,
        sources: sources.collect(),
        rings: setup.contexts.iter().map(|_| Ring::default()).collect(),
        engines: [
            places(figures.nn_slots, figures.tiles),
            places(figures.copy_slots, 0),
        ],
        memory: Memory::new(figures, setup.agents),
        states,
        loaded: load(setup, &masks),
        world: World::default(),
        placed: BTreeMap::new(),
        eager: Vec::new(),
        active: 0,
        idle_since: 0,
        awake_at: 0,
        compute,
        observe,
        left: Vec::new(),
        totals: Totals::new(setup),
        masks,
        bursting,
        power: Power::new(&figures.power),
        sampler: Sampler::default(),
        map: ContextMap::default(),
        shared: BTreeMap::new(),
        cpu_free: 0,
        followers: followers(setup),
        ended: Vec::new(),
        candidates: Vec::new(),
        holders: Vec::new(),
    };
    device.go()?;
    Ok(device.finish())
}

/// By stream, those whose jobs follow its own.
fn followers(setup: &Setup<'_, '_, '_>) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); setup.streams.len()];
    for (number, of) in setup.streams.iter().enumerate() {
        if let ArrivalKind::After { streams, .. } = &of.stream.arrivals.kind {
            for before in streams {
                all[*before].push(number);
            }
        }
    }
    all
}

impl<'a> Device<'_, '_, 'a> {
    fn go(&mut self) -> Result<(), Stopped> {
        for (number, context) in self.setup.contexts.iter().enumerate() {
            if let Some(revoked) = context.revoked {
                self.at(revoked, Due::Revoked(number));
            }
        }
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
                    self.sample();
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
        // Timers alone do not keep a simulation going: nobody is left whom they could mean.
        let has_jobs = self.live > 0 || self.coming > 0;
        let event = self.events.peek().filter(|_| has_jobs);
        let event = event.map(|Reverse((at, ..))| *at);
        let world = self.world.next().map(|at| at.0);
        let own = event
            .into_iter()
            .chain(self.memory.network.next())
            .chain(world)
            .min()?;
        // Bursts of other agents alone do not keep a simulation going.
        let is_over = self.live == 0 && event.is_none() && !self.bursting.is_empty();
        let next = self.next_burst().map_or(own, |burst| burst.min(own));
        (!is_over).then_some(next)
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
                    self.handle(due);
                }
            } else if self.memory.network.next().is_some_and(is_due) {
                self.transfers_end();
            } else if self.world.next().is_some_and(|at| is_due(at.0)) {
                self.world_goes_on()?;
            } else if self.next_burst().is_some_and(is_due) {
                self.burst();
            } else {
                return Ok(());
            }
        }
    }

    pub(crate) fn at(&mut self, at: u64, due: Due) {
        let order = match due {
            Due::Arrival(stream, ..) | Due::Drawn(stream, ..) => {
                self.coming += 1;
                ARRIVALS + stream as u32
            }
            Due::Attempt(..) => ATTEMPTS,
            Due::Wake(_) => WAKES,
            _ => ENDS,
        };
        self.numbers += 1;
        self.events.push(Reverse((at, order, self.numbers, due)));
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Drawn(stream, index, delay) => {
                self.coming -= 1;
                self.at(
                    self.now + delay,
                    Due::Arrival(stream, index, Link::default()),
                );
                self.draw(stream);
            }
            Due::Arrival(stream, index, link) => {
                self.coming -= 1;
                self.arrive(stream, index, link);
                if !self.sources[stream].has_jitter() {
                    self.draw(stream);
                }
            }
            Due::Phase(job, stamp) | Due::Attempt(job, stamp)
                if self.is_current(job, |j| j.stamp == stamp) =>
            {
                self.elapsed(job);
            }
            Due::Task(job, epoch, queue) if self.is_current(job, |j| j.epoch == epoch) => {
                self.task_ends(job, queue);
            }
            Due::Written(job, epoch, queue) if self.is_current(job, |j| j.epoch == epoch) => {
                self.written(job, queue);
            }
            Due::Entry(job, epoch, fifo) if self.is_current(job, |j| j.epoch == epoch) => {
                self.entry_ends(job, fifo);
            }
            Due::Walked(job, epoch, owner) if self.is_current(job, |j| j.epoch == epoch) => {
                self.walked(job, owner);
            }
            Due::Program(job, epoch) if self.is_current(job, |j| j.epoch == epoch) => {
                self.program_ends(job);
            }
            Due::Watchdog(job, epoch, since)
                if self.is_current(job, |j| j.epoch == epoch)
                    && self.hangs_since(job) == Some(since) =>
            {
                self.stop(job, Status::Hang);
            }
            Due::Timeout(job, stamp) if self.is_current(job, |j| j.stamp == stamp) => {
                self.stop(job, Status::Timeout);
            }
            Due::Revoked(context) => self.abort(context),
            Due::Wake(engine) => {
                self.engines[engine].wake = None;
                self.engines[engine].is_dirty = true;
            }
            _ => {}
        }
    }

    fn draw(&mut self, stream: usize) {
        if let Some(arrival) = self.sources[stream].next() {
            self.arrives(stream, arrival);
        }
    }

    pub(crate) fn arrives(&mut self, stream: usize, arrival: Arrival) {
        let Arrival {
            at,
            index,
            delay,
            link,
        } = arrival;
        if self.sources[stream].has_jitter() {
            self.at(at, Due::Drawn(stream, index, delay));
        } else {
            self.at(at, Due::Arrival(stream, index, link));
        }
    }

    pub(crate) fn job(&mut self, job: JobId) -> &mut Job {
        self.jobs[job as usize]
            .as_mut()
            .unwrap_or_else(|| unreachable!("only live jobs are named"))
    }

    pub(crate) fn is_current(&self, job: JobId, is: impl Fn(&Job) -> bool) -> bool {
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
        self.totals.agents = self.agents_moved(self.now);
        self.totals.traffic = std::mem::take(&mut self.sampler.kept);
        self.totals.map = self.map.counts;
        self.power_passes();
        let carried = [NETWORK, CACHE, DDR].map(|r| self.memory.network.carried[usize::from(r)]);
        self.totals.energy = self.power.energy(&self.figures.power, self.now, carried);
        self.totals.finish(
            self.memory.tlb_counts(),
            self.memory.cache_counts(),
            &self.memory.network.carried,
            stuck,
        )
    }
}
