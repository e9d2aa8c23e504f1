//! What is counted while jobs come and go.

use crate::agents::AgentReport;
use crate::arrivals::Link;
use crate::cache::CacheCounts;
use crate::fifos::FifoCounts;
use crate::figures::RESOURCES;
use crate::job::{Breakdown, Job, Status};
use crate::mmu::TlbCounts;
use crate::power::Energy;
use crate::setup::{Setup, StreamSetup};
use crate::statistics::Latencies;
use crate::substreams::MapCounts;
use crate::traffic::Passed;
use chipless_model::Storage;

/// Of one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTotals {
    pub(crate) jobs: u64,
    pub(crate) done: u64,
    pub(crate) rejected: u64,
    pub(crate) busy: u64,
    pub(crate) aborted: u64,
    pub(crate) faults: u64,
    pub(crate) hangs: u64,
    pub(crate) timeouts: u64,
    pub(crate) missed: u64,
    pub(crate) latencies: Latencies,
    /// Of done jobs.
    pub(crate) breakdown: [i128; 9],
    /// Picoseconds that all jobs have spent on the device and the host.
    pub(crate) inside: u128,
    /// Of the turns of chains: from the start of the chain to the first, and from each to the next.
    pub(crate) first: Latencies,
    pub(crate) between: Latencies,
}

/// Of one context.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextTotals {
    pub(crate) jobs: u64,
    /// Picoseconds in which its jobs held a place on the NN engine.
    pub(crate) held: u128,
}

/// What is counted.
#[derive(Debug)]
pub(crate) struct Totals<'a> {
    pub(crate) streams: Vec<StreamTotals>,
    pub(crate) contexts: Vec<ContextTotals>,
    /// Picoseconds in which each engine had a job.
    pub(crate) busy: [u64; 2],
    pub(crate) preemptions: u64,
    pub(crate) resets: u64,
    /// When the last job left.
    end: u64,
    carried: Vec<(String, u64)>,
    pub(crate) outputs: Vec<(usize, Storage<'a>)>,
    pub(crate) agents: Vec<AgentReport>,
    pub(crate) energy: Energy,
    pub(crate) traffic: Vec<Passed>,
    pub(crate) map: MapCounts,
    /// By kind of FIFO.
    pub(crate) fifos: [FifoCounts; 5],
}

impl<'a> Totals<'a> {
    pub(crate) fn new(setup: &Setup<'_, '_, '_>) -> Totals<'a> {
        Totals {
            streams: vec![StreamTotals::default(); setup.streams.len()],
            contexts: vec![ContextTotals::default(); setup.contexts.len()],
            busy: [0; 2],
            preemptions: 0,
            resets: 0,
            end: 0,
            carried: RESOURCES
                .iter()
                .map(|name| ((*name).to_owned(), 0))
                .collect(),
            outputs: Vec::new(),
            agents: Vec::new(),
            energy: Energy::default(),
            traffic: Vec::new(),
            map: MapCounts::default(),
            fifos: [FifoCounts::default(); 5],
        }
    }

    /// A job has left.
    pub(crate) fn left(
        &mut self,
        job: &Job,
        stream: &StreamSetup<'_, '_, '_>,
        status: Status,
        now: u64,
        spent: &Breakdown,
    ) {
        self.end = self.end.max(now);
        let latency = now - job.arrival;
        let of = &mut self.streams[job.stream];
        of.inside += u128::from(latency);
        match status {
            Status::Done => {
                of.done += 1;
                of.latencies.push(latency);
                of.missed += u64::from(stream.stream.deadline.is_some_and(|d| latency > d));
                for (sum, part) in of.breakdown.iter_mut().zip(spent.parts()) {
                    *sum += i128::from(part);
                }
            }
            Status::Fault => of.faults += 1,
            Status::Hang => of.hangs += 1,
            Status::Timeout => of.timeouts += 1,
            Status::Aborted => of.aborted += 1,
            Status::Rejected => of.rejected += 1,
        }
        self.contexts[stream.stream.context].jobs += 1;
    }

    /// A turn of a chain is done.
    pub(crate) fn turn(&mut self, stream: usize, link: Link, now: u64) {
        let of = &mut self.streams[stream];
        match (link.last, link.began) {
            (Some(last), _) => of.between.push(now - last),
            (None, began) => of.first.push(now - began.unwrap_or(now)),
        }
    }

    /// A program has moved bytes over resources.
    pub(crate) fn carry(&mut self, bytes: &[(String, u64)]) {
        for (name, bytes) in bytes {
            match self.carried.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += bytes,
                None => self.carried.push((name.clone(), *bytes)),
            }
        }
    }

    pub(crate) fn finish(
        mut self,
        tlb: TlbCounts,
        cache: CacheCounts,
        network: &[u64],
        stuck: u64,
    ) -> Simulated<'a> {
        for ((_, sum), bytes) in self.carried.iter_mut().zip(network) {
            *sum += bytes;
        }
        let passed = network.iter().map(|bytes| *bytes > 0).collect();
        Simulated {
            streams: self.streams,
            contexts: self.contexts,
            busy: self.busy,
            preemptions: self.preemptions,
            resets: self.resets,
            end: self.end,
            carried: self.carried,
            passed,
            tlb,
            cache,
            outputs: self.outputs,
            agents: self.agents,
            energy: self.energy,
            traffic: self.traffic,
            map: self.map,
            fifos: self.fifos,
            stuck,
        }
    }
}

/// A simulation that came to its end.
#[derive(Debug)]
pub struct Simulated<'a> {
    pub(crate) streams: Vec<StreamTotals>,
    pub(crate) contexts: Vec<ContextTotals>,
    pub(crate) busy: [u64; 2],
    pub(crate) preemptions: u64,
    pub(crate) resets: u64,
    pub(crate) end: u64,
    pub(crate) carried: Vec<(String, u64)>,
    /// Whether transfers of synthetic programs passed each resource.
    pub(crate) passed: Vec<bool>,
    pub(crate) tlb: TlbCounts,
    pub(crate) cache: CacheCounts,
    /// What other agents on the chip moved.
    pub agents: Vec<AgentReport>,
    /// What the NPU used.
    pub energy: Energy,
    /// What passed the memory path over time, where that was asked for.
    pub traffic: Vec<Passed>,
    /// Rows of the context map.
    pub map: MapCounts,
    /// By kind of FIFO: link agents, then the blocks of the NCE subsystem.
    pub fifos: [FifoCounts; 5],
    /// Bytes of the first jobs of streams that computed.
    pub outputs: Vec<(usize, Storage<'a>)>,
    /// Jobs that got stuck: nothing is left to happen, and they have not ended.
    pub stuck: u64,
}

impl Simulated<'_> {
    /// Mean latency of the done jobs of a stream, in picoseconds.
    pub fn mean(&self, stream: usize) -> f64 {
        self.streams[stream].latencies.mean()
    }

    /// Look-ups of pages.
    pub const fn tlb(&self) -> TlbCounts {
        self.tlb
    }

    /// Accesses to the cache.
    pub const fn cache(&self) -> CacheCounts {
        self.cache
    }

    /// Pushes of a stream that were refused.
    pub fn refused(&self, stream: usize) -> u64 {
        self.streams[stream].busy
    }

    /// Jobs of a stream that were done.
    pub fn done(&self, stream: usize) -> u64 {
        self.streams[stream].done
    }
}
