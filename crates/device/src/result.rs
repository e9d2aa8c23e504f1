//! The result of a simulation, as `chipless device --json` prints it.

use crate::agents::AgentReport;
use crate::cache::CacheCounts;
use crate::fifos::{FifoReport, reports};
use crate::figures::{BANDS, Figures, Grade, Machine, Resolved};
use crate::layers::Layer;
use crate::mmu::TlbCounts;
use crate::power::Energy;
use crate::quantity::ns;
use crate::rests::rests_on;
use crate::setup::{Setup, StreamSetup};
use crate::statistics::Latencies;
use crate::substreams::MapCounts;
use crate::totals::{Simulated, StreamTotals};
use crate::traffic::Passed;
use crate::workload::Source;
use crate::worst::{WorstCase, worst_cases};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Version of the result's form.
const SCHEMA_VERSION: u32 = 1;

/// The whole result.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Report {
    /// Version of the form.
    pub schema_version: u32,
    /// The workload, as the command line named it.
    pub workload: String,
    /// The machine's name.
    pub machine: String,
    /// Seed of everything that is drawn at random.
    pub seed: u64,
    /// For how long jobs arrive; null where only their number ends them.
    pub duration_ns: Option<f64>,
    /// When the last job left.
    pub end_ns: f64,
    /// In the order of the workload.
    pub streams: Vec<StreamReport>,
    /// In the order of the workload.
    pub contexts: Vec<ContextReport>,
    /// Jain's index of the contexts' shares: 1 where all are equal.
    pub fairness: f64,
    /// The device as a whole.
    pub device: DeviceReport,
    /// What other agents on the chip moved, in the order of the workload.
    pub agents: Vec<AgentReport>,
    /// What passed the memory path over time, for pages.
    #[serde(skip)]
    pub traffic: Vec<Passed>,
    /// How long jobs of the realtime band take at worst.
    pub worst_cases: Vec<WorstCase>,
    /// What shared resources carried.
    pub resources: Vec<ResourceReport>,
    /// Figures that the machine file lacks; their values are the built-in ones.
    pub defaulted: Vec<String>,
    /// On how many figures the result rests, by grade.
    pub grades: BTreeMap<&'static str, u64>,
    /// How far the result moves with all assumed figures.
    pub sensitivity: Sensitivity,
    /// One for each change that was asked for.
    pub what_if: Vec<WhatIf>,
}

/// Of one stream.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// Its context.
    pub context: String,
    /// Its program, as the workload names it.
    pub program: String,
    /// The engine that its jobs run on: `nn` or `copy`.
    pub engine: &'static str,
    /// Jobs that arrived.
    pub jobs: u64,
    /// Jobs that came to their end.
    pub done: u64,
    /// Jobs whose ring was full for too long.
    pub rejected: u64,
    /// Pushes that were refused because the ring was full.
    pub busy: u64,
    /// Jobs that ended with an earlier one of their context.
    pub aborted: u64,
    /// Jobs that touched an address that is not mapped.
    pub faults: u64,
    /// Jobs that did not go on.
    pub hangs: u64,
    /// Jobs that had to leave their place and did not in time.
    pub timeouts: u64,
    /// Done jobs that took longer than the deadline.
    pub missed: u64,
    /// Latency of one job on the idle device with the same figures; null where it does not end.
    pub alone_ns: Option<f64>,
    /// Mean latency over `alone_ns`.
    pub slowdown: Option<f64>,
    /// From arrival to the end, of done jobs.
    pub latency_ns: Latency,
    /// Turns of chains, of a stream that counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// What the mean latency went into.
    pub breakdown_ns: BreakdownReport,
    /// What the layers of the program take, of one job alone on the idle device without host and firmware, where it names layers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Jobs that were there at a time, on average.
    pub mean_in_system: f64,
    /// Done jobs a second.
    pub throughput_per_s: f64,
}

/// Times of the turns of chains: of a language model, those of its tokens.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Turns {
    /// From the arrival of the job that began the chain to the end of the first turn.
    pub first_ns: Latency,
    /// From the end of a turn to that of the next.
    pub between_ns: Latency,
}

/// Latencies of done jobs.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// Half of the jobs took no longer.
    pub p50: f64,
    /// Nine tenths took no longer.
    pub p90: f64,
    /// All but one of a hundred took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Means over done jobs; they sum to the mean latency.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct BreakdownReport {
    /// Before the push, and after the completion.
    pub host: f64,
    /// Refused pushes and the doorbell.
    pub ring: f64,
    /// The wait for its place.
    pub scheduler: f64,
    /// Before the first task and after the last.
    pub firmware: f64,
    /// Nothing else went on than walks of page tables.
    pub translation: f64,
    /// What sharing and the cache add; less than nothing where the cache helps.
    pub memory: f64,
    /// The program alone on the device.
    pub execution: f64,
    /// The wait for its place after it gave it up, and what a reset undid.
    pub preempted: f64,
    /// Saving and restoring its state.
    pub save_restore: f64,
}

impl BreakdownReport {
    /// Names and nanoseconds.
    pub const fn parts(&self) -> [(&'static str, f64); 9] {
        [
            ("host", self.host),
            ("ring", self.ring),
            ("scheduler", self.scheduler),
            ("firmware", self.firmware),
            ("translation", self.translation),
            ("memory", self.memory),
            ("execution", self.execution),
            ("preempted", self.preempted),
            ("save_restore", self.save_restore),
        ]
    }
}

/// Of one context.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ContextReport {
    /// Its name.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// Its priority band.
    pub band: &'static str,
    /// Its part of the busy time of the NN engine.
    pub share: f64,
    /// Jobs of its streams.
    pub jobs: u64,
}

/// Of the device.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct DeviceReport {
    /// How busy its engines were.
    pub utilization: Utilization,
    /// Times that a job had to give up its place.
    pub preemptions: u64,
    /// Translations.
    pub tlb: TlbCounts,
    /// The memory-side cache.
    pub cache: CacheCounts,
    /// Resets of the engine after a hang.
    pub resets: u64,
    /// Rows of the context map.
    pub context_map: MapCounts,
    /// FIFOs that entries were pushed into, by kind.
    pub fifos: Vec<FifoReport>,
    /// What the NPU used, by figures that are all assumed.
    pub energy: Energy,
}

/// Part of the time in which an engine had a job.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Utilization {
    /// The NN engine.
    pub nn: f64,
    /// The copy engine.
    pub copy: f64,
}

/// What a resource carried.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ResourceReport {
    /// Its name.
    pub name: String,
    /// Bytes that it carried.
    pub bytes: u64,
}

/// Mean latencies with every assumed figure halved or doubled, as ratios.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Sensitivity {
    /// Of each stream, with every assumed figure halved; null where no job ended.
    pub halved: BTreeMap<String, Option<f64>>,
    /// The same with every assumed figure doubled.
    pub doubled: BTreeMap<String, Option<f64>>,
}

/// One simulation with another figure.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WhatIf {
    /// As it was asked for.
    pub change: String,
    /// In the order of the workload.
    pub streams: Vec<WhatIfStream>,
    /// The device as a whole.
    pub device: DeviceReport,
    /// What other agents on the chip moved.
    pub agents: Vec<AgentReport>,
}

/// Of one stream, with another figure.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WhatIfStream {
    /// Its name.
    pub name: String,
    /// From arrival to the end, of done jobs.
    pub latency_ns: Latency,
}

fn latency(latencies: &mut Latencies) -> Latency {
    let mut at = |part: f64| ns(latencies.quantile(part) as f64);
    let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
    Latency {
        mean: ns(latencies.mean()),
        p50,
        p90,
        p99,
        max: ns(latencies.max() as f64),
    }
}

fn device(simulated: &Simulated<'_>, figures: &Figures) -> DeviceReport {
    let part = |busy: u64| {
        if simulated.end == 0 {
            0.0
        } else {
            busy as f64 / simulated.end as f64
        }
    };
    DeviceReport {
        utilization: Utilization {
            nn: part(simulated.busy[0]),
            copy: part(simulated.busy[1]),
        },
        preemptions: simulated.preemptions,
        tlb: simulated.tlb,
        cache: simulated.cache,
        resets: simulated.resets,
        context_map: simulated.map,
        fifos: reports(&simulated.fifos, figures),
        energy: simulated.energy,
    }
}

/// What the parts of a result come from.
#[derive(Debug)]
pub struct Parts<'r, 's, 'p, 'a> {
    /// The workload, as the command line named it.
    pub workload: &'r str,
    /// The machine's name.
    pub machine: &'r Machine,
    /// Its figures.
    pub resolved: &'r Resolved,
    /// What was simulated.
    pub setup: &'r Setup<'s, 'p, 'a>,
    /// Latency of one job of each stream on the idle device, in picoseconds.
    pub alone: &'r [Option<u64>],
    /// What the layers of each stream's program take alone.
    pub layers: &'r [Vec<Layer>],
}

impl Parts<'_, '_, '_, '_> {
    /// The result of one simulation; other simulations are put beside it afterwards.
    pub fn report(&self, simulated: &mut Simulated<'_>) -> Report {
        let grades = self.grades(simulated);
        let (end, setup) = (simulated.end, self.setup);
        let streams = setup
            .streams
            .iter()
            .zip(&mut simulated.streams)
            .zip(self.alone)
            .zip(self.layers);
        let streams = streams
            .map(|(((of, totals), alone), layers)| self.stream(of, totals, *alone, layers, end));
        let streams: Vec<StreamReport> = streams.collect();
        let held: u128 = simulated.contexts.iter().map(|c| c.held).sum();
        let contexts = setup
            .contexts
            .iter()
            .zip(&simulated.contexts)
            .map(|(of, totals)| ContextReport {
                name: of.name.clone(),
                process: of.process,
                band: BANDS[of.band as usize],
                share: if held == 0 {
                    0.0
                } else {
                    totals.held as f64 / held as f64
                },
                jobs: totals.jobs,
            });
        let contexts: Vec<ContextReport> = contexts.collect();
        let resources = simulated
            .carried
            .iter()
            .map(|(name, bytes)| ResourceReport {
                name: name.clone(),
                bytes: *bytes,
            });
        Report {
            schema_version: SCHEMA_VERSION,
            workload: self.workload.to_owned(),
            machine: self.machine.name.clone(),
            seed: setup.seed,
            duration_ns: setup.duration.map(|ps| ns(ps as f64)),
            end_ns: ns(end as f64),
            streams,
            fairness: fairness(setup, &contexts),
            contexts,
            device: device(simulated, &self.resolved.figures),
            agents: simulated.agents.clone(),
            traffic: std::mem::take(&mut simulated.traffic),
            worst_cases: worst_cases(setup, &self.resolved.figures, self.alone),
            resources: resources.collect(),
            defaulted: self.machine.defaulted.iter().cloned().collect(),
            grades,
            sensitivity: Sensitivity::default(),
            what_if: Vec::new(),
        }
    }

    /// The report of one stream; `end` is when the last job of all left.
    fn stream(
        &self,
        of: &StreamSetup<'_, '_, '_>,
        totals: &mut StreamTotals,
        alone: Option<u64>,
        layers: &[Layer],
        end: u64,
    ) -> StreamReport {
        let latency_ns = latency(&mut totals.latencies);
        let mean = totals.latencies.mean();
        debug_assert!(totals.latencies.sum() >= u128::from(totals.latencies.max()));
        let part = |n: usize| {
            if totals.done == 0 {
                0.0
            } else {
                ns(totals.breakdown[n] as f64 / totals.done as f64)
            }
        };
        StreamReport {
            name: of.stream.name.clone(),
            context: self.setup.contexts[of.stream.context].name.clone(),
            program: match &of.stream.program {
                Source::File(path) => path.clone(),
                Source::Synthetic(_) => "synthetic".to_owned(),
            },
            engine: of.engine.name(),
            jobs: totals.jobs,
            done: totals.done,
            rejected: totals.rejected,
            busy: totals.busy,
            aborted: totals.aborted,
            faults: totals.faults,
            hangs: totals.hangs,
            timeouts: totals.timeouts,
            missed: totals.missed,
            alone_ns: alone.map(|ps| ns(ps as f64)),
            slowdown: alone.filter(|ps| *ps > 0).map(|ps| mean / ps as f64),
            latency_ns,
            turns: (!totals.first.is_empty()).then(|| Turns {
                first_ns: latency(&mut totals.first),
                between_ns: latency(&mut totals.between),
            }),
            breakdown_ns: BreakdownReport {
                host: part(0),
                ring: part(1),
                scheduler: part(2),
                firmware: part(3),
                translation: part(4),
                memory: part(5),
                execution: part(6),
                preempted: part(7),
                save_restore: part(8),
            },
            layers: layers.to_vec(),
            mean_in_system: if end == 0 {
                0.0
            } else {
                totals.inside as f64 / end as f64
            },
            throughput_per_s: if end == 0 {
                0.0
            } else {
                totals.done as f64 / (end as f64 / 1e12)
            },
        }
    }

    /// On how many figures of each grade a result rests: the machine's that were not replaced and that took part.
    fn grades(&self, simulated: &Simulated<'_>) -> BTreeMap<&'static str, u64> {
        let mut counts: BTreeMap<&'static str, u64> =
            Grade::ALL.iter().map(|grade| (key(*grade), 0)).collect();
        for figure in rests_on(self.resolved, self.setup, simulated) {
            if let Some(grade) = self.machine.grades.get(figure.as_str()) {
                *counts.entry(key(*grade)).or_default() += 1;
            }
        }
        counts
    }

    /// Keys of the assumed figures that a result rests on.
    pub fn assumed(&self, simulated: &Simulated<'_>) -> BTreeSet<String> {
        let mut keys = rests_on(self.resolved, self.setup, simulated);
        keys.retain(|key| self.machine.grades.get(key.as_str()) == Some(&Grade::Assumed));
        keys
    }
}

/// A grade as a JSON key.
const fn key(grade: Grade) -> &'static str {
    match grade {
        Grade::CostModel => "cost_model",
        other => other.name(),
    }
}

/// Jain's index over the contexts that have streams.
fn fairness(setup: &Setup<'_, '_, '_>, contexts: &[ContextReport]) -> f64 {
    let used: BTreeSet<usize> = setup.streams.iter().map(|s| s.stream.context).collect();
    let shares: Vec<f64> = used
        .iter()
        .map(|context| contexts[*context].share)
        .collect();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (shares.len() as f64 * squares)
    }
}

/// A simulation with another figure.
pub fn what_if(
    change: &str,
    setup: &Setup<'_, '_, '_>,
    figures: &Figures,
    simulated: &mut Simulated<'_>,
) -> WhatIf {
    let streams = setup.streams.iter().zip(&mut simulated.streams);
    let streams = streams.map(|(of, totals)| WhatIfStream {
        name: of.stream.name.clone(),
        latency_ns: latency(&mut totals.latencies),
    });
    WhatIf {
        change: change.to_owned(),
        streams: streams.collect(),
        device: device(simulated, figures),
        agents: simulated.agents.clone(),
    }
}

/// Mean latencies of a simulation against those of another.
pub fn ratios(
    setup: &Setup<'_, '_, '_>,
    other: &Simulated<'_>,
    base: &Simulated<'_>,
) -> BTreeMap<String, Option<f64>> {
    let ratio = |(number, of): (usize, &crate::setup::StreamSetup<'_, '_, '_>)| {
        let (there, here) = (other.mean(number), base.mean(number));
        let both = here > 0.0 && there > 0.0;
        (of.stream.name.clone(), both.then(|| there / here))
    };
    setup.streams.iter().enumerate().map(ratio).collect()
}
