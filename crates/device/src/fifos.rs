//! FIFOs that work is pushed into: those of link agents, which take lists of transfers, and the work FIFOs of the NCE subsystem, from which
//! DPUs and SHAVEs take pointers.
//!
//! A FIFO belongs to the tiles that a job holds, or is shared by all jobs of the device. Its entries are worked on one after another. A push
//! to a full one waits for room, and holds up what stands behind it in its queue.

use crate::device::{Device, Due, JobId};
use crate::figures::Figures;
use crate::job::{Body, Phase};
use crate::setup::Program;
use crate::synthetic::{Entry, TaskKind};
use crate::tasks::{Owner, slowed};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;

/// A kind of FIFO: of the DMA engine, or a block of the NCE subsystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// Of link agents.
    LinkAgent,
    /// Block 0: pointers to DPU descriptors.
    Dpu,
    /// Block 1: unused.
    Spare,
    /// Block 2: messages between SHAVEs.
    Ipc,
    /// Block 3: pointers to SHAVE workloads.
    Shave,
}

/// Blocks of the NCE subsystem, by their numbers.
pub(crate) const BLOCKS: [&str; 4] = ["dpu", "spare", "ipc", "shave"];

impl Block {
    /// All of them.
    pub(crate) const ALL: [Block; 5] = [
        Block::LinkAgent,
        Block::Dpu,
        Block::Spare,
        Block::Ipc,
        Block::Shave,
    ];

    /// As workloads and results name it.
    pub const fn name(self) -> &'static str {
        match self.number() {
            None => "link_agent",
            Some(number) => BLOCKS[number],
        }
    }

    /// Its number in the NCE subsystem.
    const fn number(self) -> Option<usize> {
        match self {
            Block::LinkAgent => None,
            Block::Dpu => Some(0),
            Block::Spare => Some(1),
            Block::Ipc => Some(2),
            Block::Shave => Some(3),
        }
    }

    /// Entries that one of its FIFOs has room for.
    pub(crate) fn depth(self, figures: &Figures) -> u64 {
        match self.number() {
            None => figures.agent_entries,
            Some(block) if figures.fifo_divided => {
                (figures.fifo_entries[block] / figures.fifo_count[block]).max(1)
            }
            Some(block) => figures.fifo_entries[block],
        }
    }

    /// FIFOs on the device.
    pub fn on_device(self, figures: &Figures) -> u64 {
        match self.number() {
            None => figures.agents_per_tile.saturating_mul(figures.tiles),
            Some(block) => figures.fifo_count[block],
        }
    }

    /// FIFOs of the tiles of a program. One on the copy engine has no tiles, and the link agents of one.
    pub fn of_tiles(self, figures: &Figures, tiles: u64) -> u64 {
        match self {
            Block::LinkAgent => tiles.max(1).saturating_mul(figures.agents_per_tile),
            _ => tiles.saturating_mul(self.on_device(figures) / figures.tiles),
        }
    }
}

/// A FIFO as a program names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FifoName {
    /// Its kind.
    pub block: Block,
    /// Which one: of the program's own tiles, or, of shared ones, of the device.
    pub number: u32,
    /// Whether jobs of other contexts push into it, too.
    pub is_shared: bool,
}

/// Who writes entries into a FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The scheduler CPU, one entry after another for all jobs.
    Cpu,
    /// A DMA of the job.
    Dma,
}

/// What the FIFOs of a kind did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoCounts {
    /// Entries that were written.
    pub writes: u64,
    /// Of these, those that found the FIFO full.
    pub waits: u64,
    /// Picoseconds that these waited.
    pub waited: u64,
    /// Entries that stood in one at a time, at most.
    pub deepest: u64,
}

/// What the FIFOs of a kind did, as the result has it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FifoReport {
    /// `link_agent`, `dpu`, `spare`, `ipc` or `shave`.
    pub name: &'static str,
    /// Entries that each has room for.
    pub depth: u64,
    /// Entries that were written.
    pub writes: u64,
    /// Of these, those that found the FIFO full.
    pub waits: u64,
    /// How long these waited, all together.
    pub waited_ns: f64,
    /// Entries that stood in one at a time, at most.
    pub deepest: u64,
}

/// By kind, of those that anything was written to.
pub(crate) fn reports(counts: &[FifoCounts; 5], figures: &Figures) -> Vec<FifoReport> {
    let used = Block::ALL
        .into_iter()
        .zip(counts)
        .filter(|(_, c)| c.writes > 0);
    let report = |(block, counts): (Block, &FifoCounts)| FifoReport {
        name: block.name(),
        depth: block.depth(figures),
        writes: counts.writes,
        waits: counts.waits,
        waited_ns: crate::result::ns(counts.waited as f64),
        deepest: counts.deepest,
    };
    used.map(report).collect()
}

/// An entry: whose, by which of the FIFOs that its program names, and the task and repetition that pushed it.
#[derive(Clone, Copy, Debug)]
struct Pushed {
    job: JobId,
    fifo: u32,
    task: u32,
    repetition: u64,
}

/// A push that waits for room: on which queue, since when.
#[derive(Clone, Copy, Debug)]
struct Push {
    job: JobId,
    fifo: u32,
    queue: u32,
    since: u64,
}

/// A FIFO under way.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    entries: VecDeque<Pushed>,
    waiting: VecDeque<Push>,
    is_busy: bool,
}

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
