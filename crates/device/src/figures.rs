//! The figures of a device: what each is called, its kind, and the value that a machine file and a workload give it.

mod machine;

pub use machine::{Change, Machine, Mistake, Resolved};

use crate::agents::{Agent, AgentFigures};
use crate::power::{Governor, PowerFigures};
use crate::quantity::{self, BANDWIDTHS};
use std::collections::BTreeMap;

/// Bands of the scheduler, lowest first.
pub const BANDS: [&str; 4] = ["idle", "normal", "focus", "realtime"];

/// Resources that paths of transfers name.
pub const RESOURCES: [&str; 9] = [
    "port0", "port1", "port2", "port3", "group0", "group1", "network", "cache", "ddr",
];
/// The number of `group0` among them.
pub(crate) const GROUPS: u8 = 4;
/// The number of `network` among them.
pub(crate) const NETWORK: u8 = 6;
/// The number of `cache` among them.
pub(crate) const CACHE: u8 = 7;
/// The number of `ddr` among them.
pub(crate) const DDR: u8 = 8;

/// How the scheduler chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyName {
    /// Bands, turns and preemption, as the firmware does it.
    #[default]
    Hardware,
    /// In the order of the pushes.
    Fifo,
    /// One job of each context in turn.
    RoundRobin,
}

/// Figures of a device. Times are in picoseconds, bandwidths in bytes a second. The keys are those of the machine file.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table below names each")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in the machine file"
)]
pub struct Figures {
    pub ideal: bool,
    pub tiles: u64,
    pub nn_slots: u64,
    pub copy_slots: u64,
    pub contexts: u64,
    pub doorbells: u64,
    pub ring_jobs: u64,
    pub host_submit: u64,
    pub host_complete: u64,
    pub host_retry: u64,
    pub host_retry_limit: u64,
    pub doorbell_latency: u64,
    pub doorbell_grant: u64,
    pub map_rows: u64,
    pub map_load: u64,
    pub firmware_start: u64,
    pub firmware_complete: u64,
    pub policy: PolicyName,
    pub quantum: [u64; 4],
    pub grace: [u64; 4],
    pub process_grace: [u64; 4],
    pub context_quantum: u64,
    pub context_grace: u64,
    pub normal_percentage: f64,
    pub preempt_save: u64,
    pub preempt_restore: u64,
    pub preempt_bandwidth: f64,
    pub preempt_timeout: u64,
    pub mmu_enabled: bool,
    pub mmu_page: u64,
    pub tlb_entries: u64,
    pub tlb_ways: u64,
    pub walk_levels: u64,
    pub walk_level: u64,
    pub walk_slots: u64,
    pub walk_cached: bool,
    pub walk_hit: u64,
    pub mmu_pipelined: bool,
    pub mmu_fault: u64,
    pub mmu_prefetch: bool,
    pub prefetch_pages: u64,
    pub prefetch_bytes: u64,
    pub cache_enabled: bool,
    pub cache_size: u64,
    pub cache_ways: u64,
    pub cache_line: u64,
    pub cache_masks: BTreeMap<String, u64>,
    pub cache_sample: u64,
    pub bandwidth: [f64; 9],
    pub agents: BTreeMap<String, AgentFigures>,
    pub agent_entries: u64,
    pub agents_per_tile: u64,
    pub fifo_entries: [u64; 4],
    pub fifo_count: [u64; 4],
    pub fifo_divided: bool,
    pub fifo_write: [u64; 2],
    pub watchdog_timeout: u64,
    pub reset_time: u64,
    pub power: PowerFigures,
}

/// What kind of value a figure has, and the unit of a plain number in the machine file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// Picoseconds; the unit in the machine file.
    Time(&'static str),
    /// Bytes.
    Size,
    /// A whole number.
    Count,
    /// Bytes a second.
    Bandwidth,
    /// Of a hundred.
    Percent,
    /// Ways that may be filled.
    Bits,
    /// The name of a policy.
    Policy,
    /// The name of a governor.
    Governor,
    /// A number; its unit.
    Number(&'static str),
}

enum Slot<'f> {
    Bool(&'f mut bool),
    Whole(&'f mut u64),
    Real(&'f mut f64),
    Policy(&'f mut PolicyName),
    Governor(&'f mut Governor),
}

type Access = for<'f> fn(&'f mut Figures) -> Slot<'f>;

/// A figure: its key, its kind, the smallest number that makes sense, and its place.
pub struct Spec {
    /// As machine files and workloads name it.
    pub key: &'static str,
    /// Its kind.
    pub kind: Kind,
    low: u64,
    slot: Access,
}

macro_rules! specs {
    ($($key:literal $kind:expr, $low:literal, $slot:ident($($field:tt)+);)*) => {
        /// Every figure but `cache.mask.AGENT`.
        pub static SPECS: &[Spec] = &[$(Spec {
            key: $key, kind: $kind, low: $low, slot: |f| Slot::$slot(&mut f.$($field)+),
        },)*];
    };
}

use Kind::{Bandwidth, Bits, Bool, Count, Number, Percent, Policy, Size, Time};

specs! {
    "device.ideal" Bool, 0, Bool(ideal);
    "device.tiles" Count, 1, Whole(tiles);
    "device.nn_slots" Count, 1, Whole(nn_slots);
    "device.copy_slots" Count, 1, Whole(copy_slots);
    "device.contexts" Count, 1, Whole(contexts);
    "device.doorbells" Count, 1, Whole(doorbells);
    "ring.jobs" Count, 1, Whole(ring_jobs);
    "host.submit" Time("us"), 0, Whole(host_submit);
    "host.complete" Time("us"), 0, Whole(host_complete);
    "host.retry" Time("us"), 1, Whole(host_retry);
    "host.retry_limit" Time("s"), 0, Whole(host_retry_limit);
    "doorbell.latency" Time("us"), 0, Whole(doorbell_latency);
    "doorbell.grant" Time("us"), 0, Whole(doorbell_grant);
    "context_map.rows" Count, 1, Whole(map_rows);
    "context_map.load" Time("us"), 0, Whole(map_load);
    "firmware.start" Time("us"), 0, Whole(firmware_start);
    "firmware.complete" Time("us"), 0, Whole(firmware_complete);
    "scheduler.policy" Policy, 0, Policy(policy);
    "scheduler.quantum.idle" Time("ms"), 1, Whole(quantum[0]);
    "scheduler.quantum.normal" Time("ms"), 1, Whole(quantum[1]);
    "scheduler.quantum.focus" Time("ms"), 1, Whole(quantum[2]);
    "scheduler.quantum.realtime" Time("ms"), 1, Whole(quantum[3]);
    "scheduler.grace.idle" Time("ms"), 0, Whole(grace[0]);
    "scheduler.grace.normal" Time("ms"), 0, Whole(grace[1]);
    "scheduler.grace.focus" Time("ms"), 0, Whole(grace[2]);
    "scheduler.grace.realtime" Time("ms"), 0, Whole(grace[3]);
    "scheduler.process_grace.idle" Time("ms"), 0, Whole(process_grace[0]);
    "scheduler.process_grace.normal" Time("ms"), 0, Whole(process_grace[1]);
    "scheduler.process_grace.focus" Time("ms"), 0, Whole(process_grace[2]);
    "scheduler.process_grace.realtime" Time("ms"), 0, Whole(process_grace[3]);
    "scheduler.context_quantum" Time("ms"), 1, Whole(context_quantum);
    "scheduler.context_grace" Time("ms"), 0, Whole(context_grace);
    "scheduler.normal_percentage" Percent, 0, Real(normal_percentage);
    "preempt.save" Time("us"), 0, Whole(preempt_save);
    "preempt.restore" Time("us"), 0, Whole(preempt_restore);
    "preempt.bandwidth" Bandwidth, 1, Real(preempt_bandwidth);
    "preempt.timeout" Time("ms"), 0, Whole(preempt_timeout);
    "mmu.enabled" Bool, 0, Bool(mmu_enabled);
    "mmu.page" Size, 4096, Whole(mmu_page);
    "mmu.tlb.entries" Count, 1, Whole(tlb_entries);
    "mmu.tlb.ways" Count, 1, Whole(tlb_ways);
    "mmu.walk.levels" Count, 1, Whole(walk_levels);
    "mmu.walk.level" Time("ns"), 0, Whole(walk_level);
    "mmu.walk.slots" Count, 1, Whole(walk_slots);
    "mmu.walk.cached" Bool, 0, Bool(walk_cached);
    "mmu.walk.hit" Time("ns"), 0, Whole(walk_hit);
    "mmu.pipelined" Bool, 0, Bool(mmu_pipelined);
    "mmu.fault" Time("us"), 0, Whole(mmu_fault);
    "mmu.prefetch" Bool, 0, Bool(mmu_prefetch);
    "mmu.prefetch_pages" Count, 1, Whole(prefetch_pages);
    "mmu.prefetch_bytes" Size, 0, Whole(prefetch_bytes);
    "cache.enabled" Bool, 0, Bool(cache_enabled);
    "cache.size" Size, 1, Whole(cache_size);
    "cache.ways" Count, 1, Whole(cache_ways);
    "cache.line" Size, 1, Whole(cache_line);
    "cache.sample" Count, 1, Whole(cache_sample);
    "port0.bandwidth" Bandwidth, 1, Real(bandwidth[0]);
    "port1.bandwidth" Bandwidth, 1, Real(bandwidth[1]);
    "port2.bandwidth" Bandwidth, 1, Real(bandwidth[2]);
    "port3.bandwidth" Bandwidth, 1, Real(bandwidth[3]);
    "group0.bandwidth" Bandwidth, 1, Real(bandwidth[4]);
    "group1.bandwidth" Bandwidth, 1, Real(bandwidth[5]);
    "network.bandwidth" Bandwidth, 1, Real(bandwidth[6]);
    "cache.bandwidth" Bandwidth, 1, Real(bandwidth[7]);
    "ddr.bandwidth" Bandwidth, 1, Real(bandwidth[8]);
    "dma.agent.entries" Count, 1, Whole(agent_entries);
    "dma.agents_per_tile" Count, 1, Whole(agents_per_tile);
    "fifo.dpu.entries" Count, 1, Whole(fifo_entries[0]);
    "fifo.dpu.fifos" Count, 1, Whole(fifo_count[0]);
    "fifo.spare.entries" Count, 1, Whole(fifo_entries[1]);
    "fifo.spare.fifos" Count, 1, Whole(fifo_count[1]);
    "fifo.ipc.entries" Count, 1, Whole(fifo_entries[2]);
    "fifo.ipc.fifos" Count, 1, Whole(fifo_count[2]);
    "fifo.shave.entries" Count, 1, Whole(fifo_entries[3]);
    "fifo.shave.fifos" Count, 1, Whole(fifo_count[3]);
    "fifo.divided" Bool, 0, Bool(fifo_divided);
    "fifo.write.cpu" Time("ns"), 0, Whole(fifo_write[0]);
    "fifo.write.dma" Time("ns"), 0, Whole(fifo_write[1]);
    "watchdog.timeout" Time("s"), 1, Whole(watchdog_timeout);
    "reset.time" Time("ms"), 0, Whole(reset_time);
    "power.enabled" Bool, 0, Bool(power.enabled);
    "power.idle" Time("ms"), 0, Whole(power.idle);
    "power.wake" Time("ms"), 0, Whole(power.wake);
    "power.governor" Kind::Governor, 0, Governor(power.governor);
    "power.change" Time("us"), 0, Whole(power.change);
    "power.clock.efficient" Percent, 1, Real(power.clock[0]);
    "power.clock.least" Percent, 1, Real(power.clock[1]);
    "power.voltage.efficient" Percent, 1, Real(power.voltage[0]);
    "power.voltage.least" Percent, 1, Real(power.voltage[1]);
    "power.thermal.period" Time("ms"), 0, Whole(power.thermal_period);
    "power.thermal.duty" Percent, 0, Real(power.thermal_duty);
    "power.leakage" Number("W"), 0, Real(power.leakage);
    "power.asleep" Number("W"), 0, Real(power.asleep);
    "power.tile" Number("W"), 0, Real(power.tile);
    "power.byte.network" Number("pJ"), 0, Real(power.network_byte);
    "power.byte.cache" Number("pJ"), 0, Real(power.cache_byte);
    "power.byte.ddr" Number("pJ"), 0, Real(power.ddr_byte);
}

/// Figures that are 0, or off, on an ideal device.
const IDEAL: [&str; 18] = [
    "host.submit",
    "host.complete",
    "doorbell.latency",
    "doorbell.grant",
    "context_map.load",
    "firmware.start",
    "firmware.complete",
    "fifo.write.cpu",
    "fifo.write.dma",
    "preempt.save",
    "preempt.restore",
    "reset.time",
    "power.wake",
    "mmu.enabled",
    "cache.enabled",
    "power.enabled",
    "power.change",
    "power.thermal.period",
];

/// What the keys of masks start with.
const MASK: &str = "cache.mask.";

/// What the keys of agents start with.
const AGENT: &str = "agent.";

/// Whether a key is one of the device's figures.
pub fn is_figure(key: &str) -> bool {
    key.starts_with(MASK) || SPECS.iter().any(|spec| spec.key == key)
}

impl Spec {
    /// The unit of a plain number, as the machine file says it.
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            Bool => "bool",
            Time(unit) | Number(unit) => unit,
            Size => "bytes",
            Count => "count",
            Bandwidth => "bytes/s",
            Percent => "percent",
            Bits => "bits",
            Policy | Kind::Governor => "name",
        }
    }

    fn put(&self, figures: &mut Figures, text: &str) -> Result<(), String> {
        let wrong = |expected: &str| {
            Err(format!(
                "expected {expected} for {}, found \"{text}\"",
                self.key
            ))
        };
        match ((self.slot)(figures), self.kind) {
            (Slot::Bool(slot), _) => match text {
                "true" => *slot = true,
                "false" => *slot = false,
                _ => return wrong("true or false"),
            },
            (Slot::Policy(slot), _) => match text {
                "hardware" => *slot = PolicyName::Hardware,
                "fifo" => *slot = PolicyName::Fifo,
                "round_robin" => *slot = PolicyName::RoundRobin,
                _ => return wrong("hardware, fifo or round_robin"),
            },
            (Slot::Governor(slot), _) => {
                let named = Governor::NAMES.iter().find(|(name, _)| *name == text);
                match named {
                    Some((_, governor)) => *slot = *governor,
                    None => return wrong("full, efficient, least, on_demand or deadline"),
                }
            }
            (Slot::Real(slot), kind) => {
                let units = if kind == Bandwidth { BANDWIDTHS } else { &[] };
                match quantity::real(text, units) {
                    Some(value) if kind == Percent && value > 100.0 => {
                        return wrong("at most 100 percent");
                    }
                    Some(value) if value >= self.low as f64 => *slot = value,
                    _ if kind == Bandwidth => return wrong("a bandwidth above zero (10GB/s)"),
                    _ => return wrong("a number"),
                }
            }
            (Slot::Whole(slot), kind) => {
                let value = match kind {
                    Time(unit) => {
                        let unit = quantity::TIMES.iter().find(|(name, _)| *name == unit);
                        quantity::time(text, unit.map(|(_, ps)| *ps))
                    }
                    Size => quantity::size(text),
                    _ => text.parse().ok().or_else(|| {
                        let real: f64 = text.parse().ok()?;
                        (real >= 0.0 && real.fract() == 0.0 && real < 1e15).then_some(real as u64)
                    }),
                };
                match (value, kind) {
                    (Some(value), _) if value >= self.low => *slot = value,
                    (_, Time(_)) => return wrong("a time (5us)"),
                    (_, Size) => return wrong("a size (64KiB)"),
                    _ => return wrong(&format!("a whole number from {} on", self.low)),
                }
            }
        }
        Ok(())
    }

    /// Multiplies a figure; switches and names have no multiples.
    fn scale(&self, figures: &mut Figures, factor: f64) -> bool {
        match (self.slot)(figures) {
            Slot::Whole(slot) => {
                let scaled = (*slot as f64 * factor).round() as u64;
                *slot = scaled.max(self.low);
            }
            Slot::Real(slot) if self.kind == Percent => *slot = (*slot * factor).min(100.0),
            Slot::Real(slot) => *slot *= factor,
            Slot::Bool(_) | Slot::Policy(_) | Slot::Governor(_) => return false,
        }
        true
    }

    fn clear(&self, figures: &mut Figures) {
        match (self.slot)(figures) {
            Slot::Whole(slot) => *slot = 0,
            Slot::Bool(slot) => *slot = false,
            Slot::Real(_) | Slot::Policy(_) | Slot::Governor(_) => {}
        }
    }
}

impl Default for Figures {
    /// Everything zero, off, or as large as can be: what a machine file replaces.
    fn default() -> Figures {
        Figures {
            ideal: false,
            tiles: 1,
            nn_slots: 1,
            copy_slots: 1,
            contexts: 256,
            doorbells: 255,
            ring_jobs: 62,
            host_submit: 0,
            host_complete: 0,
            host_retry: 100_000_000,
            host_retry_limit: 2_000_000_000_000,
            doorbell_latency: 0,
            doorbell_grant: 0,
            map_rows: 30,
            map_load: 0,
            firmware_start: 0,
            firmware_complete: 0,
            policy: PolicyName::Hardware,
            quantum: [u64::MAX; 4],
            grace: [0; 4],
            process_grace: [0; 4],
            context_quantum: u64::MAX,
            context_grace: 0,
            normal_percentage: 0.0,
            preempt_save: 0,
            preempt_restore: 0,
            preempt_bandwidth: f64::INFINITY,
            preempt_timeout: 0,
            mmu_enabled: false,
            mmu_page: 4096,
            tlb_entries: 1,
            tlb_ways: 1,
            walk_levels: 4,
            walk_level: 0,
            walk_slots: 1,
            walk_cached: false,
            walk_hit: 0,
            mmu_pipelined: false,
            mmu_fault: 0,
            mmu_prefetch: false,
            prefetch_pages: 1,
            prefetch_bytes: 0,
            cache_enabled: false,
            cache_size: 64,
            cache_ways: 1,
            cache_line: 64,
            cache_masks: BTreeMap::new(),
            cache_sample: 1,
            bandwidth: [f64::INFINITY; 9],
            agents: BTreeMap::new(),
            agent_entries: 8,
            agents_per_tile: 6,
            fifo_entries: [256, 64, 16, 128],
            fifo_count: [8, 8, 16, 16],
            fifo_divided: false,
            fifo_write: [0; 2],
            watchdog_timeout: 2_000_000_000_000,
            reset_time: 0,
            power: PowerFigures::default(),
        }
    }
}

/// Where the value of a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// Measured.
    Silicon,
    /// The vendor's driver or its headers.
    Driver,
    /// The vendor's cost model.
    CostModel,
    /// Notes about the device, of unknown origin.
    Seed,
    /// Nobody outside the vendor knows.
    Assumed,
}

impl Grade {
    /// All of them, in this order.
    pub const ALL: [Grade; 5] = [
        Grade::Silicon,
        Grade::Driver,
        Grade::CostModel,
        Grade::Seed,
        Grade::Assumed,
    ];

    /// As machine files write it.
    pub const fn name(self) -> &'static str {
        match self {
            Grade::Silicon => "silicon",
            Grade::Driver => "driver",
            Grade::CostModel => "cost model",
            Grade::Seed => "seed",
            Grade::Assumed => "assumed",
        }
    }

    /// The grade of this name.
    pub fn from_name(name: &str) -> Option<Grade> {
        Grade::ALL.into_iter().find(|grade| grade.name() == name)
    }
}

fn factor(value: &str) -> Option<f64> {
    let factor: f64 = value.strip_suffix('x')?.parse().ok()?;
    (factor.is_finite() && factor > 0.0).then_some(factor)
}

/// A figure of an agent.
enum AgentFigure<'f> {
    Rate(&'f mut f64),
    Weight(&'f mut f64),
}

impl AgentFigure<'_> {
    /// Gives it a value or multiplies it; otherwise says what was expected.
    fn change(self, value: &str) -> Result<(), &'static str> {
        let (slot, units, low, expected) = match self {
            AgentFigure::Rate(slot) => (slot, BANDWIDTHS, 0.0, "a bandwidth (10GB/s)"),
            AgentFigure::Weight(slot) => (slot, &[][..], f64::MIN_POSITIVE, "a weight above zero"),
        };
        let after =
            factor(value).map_or_else(|| quantity::real(value, units), |by| Some(*slot * by));
        match after.filter(|after| after.is_finite() && *after >= low) {
            Some(after) => *slot = after,
            None => return Err(expected),
        }
        Ok(())
    }
}

impl Figures {
    /// The figure of an agent that has this key: `agent.NAME.rate` or `agent.NAME.weight`.
    fn agent(&mut self, key: &str) -> Option<AgentFigure<'_>> {
        let (name, figure) = key.strip_prefix(AGENT)?.rsplit_once('.')?;
        let agent = self.agents.get_mut(name)?;
        match figure {
            "rate" => agent.rate.as_mut().map(AgentFigure::Rate),
            "weight" => Some(AgentFigure::Weight(&mut agent.weight)),
            _ => None,
        }
    }

    /// Bytes a second that an agent wants.
    pub(crate) fn agent_rate(&self, agent: &Agent) -> Option<f64> {
        self.agents.get(&agent.name)?.rate
    }

    pub(crate) fn agent_weight(&self, agent: &Agent) -> f64 {
        self.agents
            .get(&agent.name)
            .map_or(1.0, |agent| agent.weight)
    }

    /// Leaves out what an ideal device has not: costs of host, firmware, preemption, reset and power, translation and cache.
    pub fn make_ideal(&mut self) {
        for spec in SPECS.iter().filter(|spec| IDEAL.contains(&spec.key)) {
            spec.clear(self);
        }
    }

    /// Whether the figures fit each other; otherwise the keys that do not, and why.
    fn check(&self) -> Result<(), (&'static [&'static str], String)> {
        let at_once = self.nn_slots.saturating_add(self.copy_slots);
        if self.map_rows < at_once {
            let text = format!(
                "expected a row of the context map for each of the {at_once} contexts that run at once, found {}",
                self.map_rows
            );
            return Err((
                &["context_map.rows", "device.nn_slots", "device.copy_slots"],
                text,
            ));
        }
        if !self.mmu_page.is_power_of_two() {
            let text = format!(
                "expected a power of two for mmu.page, found {}",
                self.mmu_page
            );
            return Err((&["mmu.page"], text));
        }
        if !self.tlb_entries.is_multiple_of(self.tlb_ways) || self.tlb_entries > 1 << 24 {
            let text = format!(
                "expected at most 2^24 entries of a TLB, a multiple of its {} ways, found {}",
                self.tlb_ways, self.tlb_entries
            );
            return Err((&["mmu.tlb.entries", "mmu.tlb.ways"], text));
        }
        let (size, ways, line) = (self.cache_size, self.cache_ways, self.cache_line);
        let sets = size / ways / line;
        if sets == 0 || ways > 64 || size / line > 1 << 28 {
            let text = format!(
                "expected a cache of one set at least, 64 ways and 2^28 lines at most, found {size} bytes in {ways} ways of lines of {line}"
            );
            return Err((&["cache.size", "cache.ways", "cache.line"], text));
        }
        Ok(())
    }
}
