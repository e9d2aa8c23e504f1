//! Clocks and energy: the points of frequency and voltage, who chooses among them, and what the NPU's work costs.
//!
//! A job keeps the clock that it begins with: its tasks take as much longer as the clock is slower, transfers on the memory path do not.

use schemars::JsonSchema;
use serde::Serialize;

/// Points of frequency and voltage: full, efficient, least.
pub const CLOCKS: usize = 3;
pub(crate) const FULL: usize = 0;
pub(crate) const LEAST: usize = CLOCKS - 1;

/// Who chooses the clock of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Governor {
    /// Nobody: it is the full one.
    #[default]
    Full,
    /// Nobody: it is the efficient one.
    Efficient,
    /// Nobody: it is the least one.
    Least,
    /// The full one while there is work, the least one while there is none.
    OnDemand,
    /// The least one at which a job keeps its deadline, by its time alone; the full one without a deadline.
    Deadline,
}

impl Governor {
    /// Their names in machine files.
    pub(crate) const NAMES: [(&'static str, Governor); 5] = [
        ("full", Governor::Full),
        ("efficient", Governor::Efficient),
        ("least", Governor::Least),
        ("on_demand", Governor::OnDemand),
        ("deadline", Governor::Deadline),
    ];

    /// The governor that keeps to one clock.
    pub const fn fixed(clock: usize) -> Governor {
        match clock {
            FULL => Governor::Full,
            LEAST => Governor::Least,
            _ => Governor::Efficient,
        }
    }

    /// The clock of a device without work.
    pub(crate) const fn at_rest(self) -> usize {
        match self {
            Governor::Full | Governor::Deadline => FULL,
            Governor::Efficient => 1,
            Governor::Least | Governor::OnDemand => LEAST,
        }
    }
}

/// Figures of power.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table of figures names each")]
pub struct PowerFigures {
    pub enabled: bool,
    pub idle: u64,
    pub wake: u64,
    pub governor: Governor,
    /// Percent of the full one, from the efficient one on.
    pub clock: [f64; CLOCKS - 1],
    pub voltage: [f64; CLOCKS - 1],
    pub change: u64,
    pub thermal_period: u64,
    pub thermal_duty: f64,
    pub leakage: f64,
    pub asleep: f64,
    pub tile: f64,
    pub network_byte: f64,
    pub cache_byte: f64,
    pub ddr_byte: f64,
}

impl Default for PowerFigures {
    fn default() -> PowerFigures {
        PowerFigures {
            enabled: false,
            idle: 0,
            wake: 0,
            governor: Governor::Full,
            clock: [100.0; CLOCKS - 1],
            voltage: [100.0; CLOCKS - 1],
            change: 0,
            thermal_period: 0,
            thermal_duty: 100.0,
            leakage: 0.0,
            asleep: 0.0,
            tile: 0.0,
            network_byte: 0.0,
            cache_byte: 0.0,
            ddr_byte: 0.0,
        }
    }
}

fn part(of: &[f64; CLOCKS - 1], clock: usize) -> f64 {
    let percent = clock.checked_sub(1).map_or(100.0, |clock| of[clock]);
    (percent / 100.0).min(1.0)
}

impl PowerFigures {
    /// A clock as a part of the full one.
    pub fn speed(&self, clock: usize) -> f64 {
        part(&self.clock, clock)
    }

    fn volts(&self, clock: usize) -> f64 {
        part(&self.voltage, clock)
    }

    /// Clocks that jobs may have, up to the slowest.
    pub fn clocks(&self) -> usize {
        let of_governor = match self.governor {
            Governor::Full | Governor::OnDemand => FULL,
            Governor::Efficient => 1,
            Governor::Least | Governor::Deadline => LEAST,
        };
        1 + if self.thermal_period > 0 {
            LEAST
        } else {
            of_governor
        }
    }

    /// Whether the clock ever changes.
    pub(crate) fn changes(&self) -> bool {
        self.thermal_period > 0 || matches!(self.governor, Governor::OnDemand | Governor::Deadline)
    }

    /// What work on the tiles takes of the full power: it goes with the clock and the square of the voltage.
    pub(crate) fn work(&self, clock: usize) -> f64 {
        self.speed(clock) * self.volts(clock).powi(2)
    }
}

/// Where the clock stands, and what has been used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Power {
    pub(crate) clock: usize,
    /// When the last change is over.
    pub(crate) ready: u64,
    /// Until when the sums below go.
    since: u64,
    /// Tile-picoseconds at full power.
    pub(crate) tiles: f64,
    /// Picoseconds awake at full voltage, and asleep.
    awake: f64,
    asleep: f64,
}

/// Energy of the NPU in joules, an estimate from assumed figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Energy {
    /// Work on the tiles.
    pub tiles_j: f64,
    /// Leakage and clock tree while the device is awake.
    pub leakage_j: f64,
    /// While it is asleep.
    pub asleep_j: f64,
    /// Bytes that passed the network.
    pub network_j: f64,
    /// Bytes that passed the memory-side cache.
    pub cache_j: f64,
    /// Bytes that passed the memory.
    pub ddr_j: f64,
    /// All of these.
    pub total_j: f64,
    /// Watts, over the whole time.
    pub mean_w: f64,
    /// Joules times seconds, over the whole time.
    pub energy_delay_js: f64,
}

impl Power {
    pub(crate) fn new(figures: &PowerFigures) -> Power {
        Power {
            clock: figures.governor.at_rest(),
            ..Power::default()
        }
    }

    /// Time passes, with work or, since an instant, without.
    pub(crate) fn pass(&mut self, figures: &PowerFigures, now: u64, idle_since: Option<u64>) {
        let time = now.saturating_sub(self.since);
        let asleep = match idle_since {
            Some(since) if figures.enabled => {
                let falls = since.saturating_add(figures.idle).max(self.since);
                now.saturating_sub(falls)
            }
            _ => 0,
        };
        self.asleep += asleep as f64;
        self.awake += (time - asleep) as f64 * figures.volts(self.clock);
        self.since = now;
    }

    /// What it comes to, with the bytes that network, cache and memory carried.
    pub(crate) fn energy(&self, figures: &PowerFigures, now: u64, carried: [u64; 3]) -> Energy {
        let [network, cache, ddr] = carried.map(|bytes| bytes as f64 * 1e-12);
        let mut energy = Energy {
            tiles_j: self.tiles * 1e-12 * figures.tile,
            leakage_j: self.awake * 1e-12 * figures.leakage,
            asleep_j: self.asleep * 1e-12 * figures.asleep,
            network_j: network * figures.network_byte,
            cache_j: cache * figures.cache_byte,
            ddr_j: ddr * figures.ddr_byte,
            ..Energy::default()
        };
        let used = energy.tiles_j + energy.leakage_j + energy.asleep_j;
        energy.total_j = used + energy.network_j + energy.cache_j + energy.ddr_j;
        let seconds = now as f64 * 1e-12;
        if now > 0 {
            energy.mean_w = energy.total_j / seconds;
        }
        energy.energy_delay_js = energy.total_j * seconds;
        energy
    }
}
