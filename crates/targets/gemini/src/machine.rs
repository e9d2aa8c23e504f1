//! Machines: clocks, memories, rates, latencies and unit energies, from a TOML file that users copy and edit.

use crate::schedule::Schedule;
use chipless_model::Time;
use serde::Deserialize;

/// What the hardware does in how much time and for how much energy. The files under `machines/` give the source of every figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name: `spec`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Clock of everything in MHz.
    pub clock_mhz: f64,
    /// A core.
    pub core: Core,
    /// What instructions cost besides their work, in cycles.
    pub overhead: Overhead,
    /// Off-chip memory.
    pub dram: Dram,
    /// The mesh between the cores.
    pub noc: Noc,
    /// Energy of one operation or byte in picojoules.
    pub energy: Energy,
}

/// A core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// How many there are; 0 for as many as a schedule uses. Machine files from before this figure lack it.
    #[serde(default)]
    pub count: u32,
    /// Columns of the mesh of so many cores; 0 where any mesh will do. Machine files from before this figure lack it.
    #[serde(default)]
    pub columns: u32,
    /// Bytes of L2, for files that do not say.
    pub buffer_bytes: u64,
    /// Banks of the weight buffer.
    pub weight_banks: u32,
    /// Bytes of one bank.
    pub weight_bank_bytes: u64,
    /// Multiplications with addition in a cycle.
    pub macs_per_cycle: f64,
}

/// What instructions cost besides their work, in cycles.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Control instructions before anything else.
    pub begin: f64,
    /// Control instruction at the end.
    pub end: f64,
    /// A compute instruction, one for each tile.
    pub tile: f64,
    /// A configuration instruction.
    pub configure: f64,
    /// Configuration instructions of a `pe` workload.
    pub pe_configurations: u32,
    /// Further ones where the shape of the tile is not that of the `pe` workload before.
    pub pe_shape_configurations: u32,
    /// Configuration instructions of a `vp` workload.
    pub vp_configurations: u32,
    /// A transfer from DRAM.
    pub load: f64,
    /// A transfer to DRAM.
    pub store: f64,
}

/// Off-chip memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// Bytes per second of the chip.
    pub bytes_per_second: f64,
    /// Bytes per second more for each core.
    pub bytes_per_second_per_core: f64,
    /// Share of it that long transfers reach.
    pub efficiency: f64,
}

/// The mesh between the cores.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noc {
    /// Bytes per cycle of a link in one direction.
    pub link_bytes_per_cycle: f64,
    /// Cycles from a core to the next, before the first byte of a transfer is there. Machine files from before this figure lack it.
    #[serde(default)]
    pub hop_cycles: f64,
}

/// Energy of one operation or byte in picojoules.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// A multiplication with addition.
    pub mac: f64,
    /// An operation of the vector processor.
    pub vector: f64,
    /// A byte read from L2.
    pub l2_read: f64,
    /// A byte written to L2.
    pub l2_write: f64,
    /// A byte read from the weight buffer.
    pub weight_read: f64,
    /// A byte written to the weight buffer.
    pub weight_write: f64,
    /// A byte over one link.
    pub hop: f64,
    /// A byte from or to DRAM.
    pub dram: f64,
}

/// The machines that come with Chipless: name and file.
pub const MACHINES: &[(&str, &str)] = &[
    ("spec", include_str!("../machines/spec.toml")),
    ("set", include_str!("../machines/set.toml")),
    ("gemini", include_str!("../machines/gemini.toml")),
];

impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column, or which figure makes no sense.
    pub fn parse(text: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|e| e.to_string())?;
        let Machine {
            name: _,
            title: _,
            clock_mhz,
            core: c,
            overhead: o,
            dram: d,
            noc: n,
            energy: e,
        } = &machine;
        let positive = [
            ("clock_mhz", *clock_mhz),
            ("core.weight_banks", f64::from(c.weight_banks)),
            ("core.macs_per_cycle", c.macs_per_cycle),
            (
                "dram.bytes_per_second and dram.bytes_per_second_per_core",
                d.bytes_per_second + d.bytes_per_second_per_core,
            ),
            ("dram.efficiency", d.efficiency),
            ("noc.link_bytes_per_cycle", n.link_bytes_per_cycle),
        ];
        if let Some((name, figure)) = positive
            .iter()
            .find(|(_, figure)| !(figure.is_finite() && *figure > 0.0))
        {
            return Err(format!("{name} is {figure}, expected a positive number"));
        }
        let not_negative = [
            ("overhead.begin", o.begin),
            ("overhead.end", o.end),
            ("overhead.tile", o.tile),
            ("overhead.configure", o.configure),
            ("overhead.load", o.load),
            ("overhead.store", o.store),
            ("dram.bytes_per_second", d.bytes_per_second),
            (
                "dram.bytes_per_second_per_core",
                d.bytes_per_second_per_core,
            ),
            ("noc.hop_cycles", n.hop_cycles),
            ("energy.mac", e.mac),
            ("energy.vector", e.vector),
            ("energy.l2_read", e.l2_read),
            ("energy.l2_write", e.l2_write),
            ("energy.weight_read", e.weight_read),
            ("energy.weight_write", e.weight_write),
            ("energy.hop", e.hop),
            ("energy.dram", e.dram),
        ];
        match not_negative
            .iter()
            .find(|(_, figure)| !(figure.is_finite() && *figure >= 0.0))
        {
            Some((name, figure)) => Err(format!(
                "{name} is {figure}, expected a number that is not negative"
            )),
            None => Ok(machine),
        }
    }

    /// The machine that comes with Chipless under this name.
    pub fn named(name: &str) -> Option<Machine> {
        let (_, text) = MACHINES.iter().find(|(known, _)| *known == name)?;
        Machine::parse(text).ok()
    }

    /// What to say of a schedule that is made for more L2 than a core has.
    pub fn lack_of_l2(&self, schedule: &Schedule) -> Option<String> {
        let present = self.core.buffer_bytes;
        let needed = schedule.buffer_size.filter(|needed| *needed > present)?;
        Some(format!(
            "the schedule is made for {needed} bytes of L2 (buffersize), this machine has {present}: what lies beyond cannot run there. Schedule the network for it"
        ))
    }

    /// Columns and rows of the mesh, where the machine has one.
    pub fn mesh(&self) -> Option<[u32; 2]> {
        let rows = self.core.count.checked_div(self.core.columns)?;
        (rows > 0).then_some([self.core.columns, rows])
    }

    /// Duration of a number of cycles.
    pub(crate) fn cycles(&self, cycles: f64) -> Time {
        Time::from_cycles(cycles, self.clock_mhz)
    }

    /// Cycles in a time, a started one counting whole; a millionth of a cycle is rounding.
    pub fn cycles_of(&self, time: Time) -> u64 {
        (time.0 as f64 * self.clock_mhz * 1e-6 - 1e-6)
            .ceil()
            .max(0.0) as u64
    }

    /// Bytes per second of DRAM for a number of cores.
    pub fn dram_rate(&self, cores: usize) -> f64 {
        (self.dram.bytes_per_second + self.dram.bytes_per_second_per_core * cores as f64)
            * self.dram.efficiency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_that_come_along_are_sound() {
        for (name, text) in MACHINES {
            let machine = Machine::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(machine.name, *name);
        }
    }

    #[test]
    fn figures_must_make_sense() {
        let (_, text) = MACHINES[0];
        let broken = text.replace("efficiency = 0.9998", "efficiency = 0");
        assert_eq!(
            Machine::parse(&broken),
            Err("dram.efficiency is 0, expected a positive number".to_owned())
        );
        let broken = text.replace("tile = 20", "tile = -1");
        assert!(Machine::parse(&broken).is_err_and(|e| e.contains("overhead.tile")));
        assert!(
            Machine::parse(&text.replace("clock_mhz", "clock")).is_err_and(|e| e.contains("clock"))
        );
    }

    #[test]
    fn cycles_and_times_agree() {
        let machine = Machine::named("spec").expect("known");
        assert_eq!(machine.cycles_of(machine.cycles(12345.0)), 12345);
        assert_eq!(machine.cycles_of(Time(1)), 1);
        assert_eq!(machine.cycles_of(Time::ZERO), 0);
    }
}
