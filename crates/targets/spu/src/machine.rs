//! The chip: memories and the assumptions behind times, from a TOML file that users copy and edit.

use chipless_model::Time;
use serde::Deserialize;
use std::sync::LazyLock;

/// What the hardware has, and what is assumed of its speed. The file `machine.toml` gives the source of every figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name: `spu001`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Its number in a `.femto` file.
    pub part: u8,
    /// Version of its instruction set.
    pub isa: String,
    /// Clocks.
    pub clock: Clock,
    /// Cores.
    pub core: Core,
    /// Addresses of the cores.
    pub map: Map,
    /// Memories of each core.
    pub memory: Memory,
}

/// Clocks in MHz.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Of the cores.
    pub mhz: f64,
}

/// A core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// How many there are.
    pub count: u32,
    /// Cycles from a node to the next, at least.
    pub issue_cycles: f64,
    /// 64-bit words of each operand in a cycle.
    pub words_per_cycle: f64,
    /// Instructions of the program memory.
    pub program_words: u32,
}

/// Addresses of the cores, in bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// First byte of core 0.
    pub base: u64,
    /// From one core to the next.
    pub spacing: u64,
    /// First byte of core 0 in the vendor's simulation, where that is another one.
    #[serde(default)]
    pub simulation_base: Option<u64>,
}

/// Memories of each core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Data, in words of 64 bits.
    pub data: Banks,
    /// Tables, in entries of 16 bits.
    pub tables: Banks,
    /// Instructions.
    pub program: Banks,
    /// What threads wait for.
    pub scoreboard: Banks,
    /// Threads that may run.
    pub ready_queue: Banks,
    /// Program counters of threads.
    pub thread_counters: Banks,
}

/// Banks of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banks {
    /// How many.
    pub banks: u32,
    /// Bytes of each.
    pub bytes: u64,
    /// First byte in the core.
    pub start: u64,
    /// Bytes from one bank to the next.
    pub spacing: u64,
}

/// The machine that is taken for a program that names none.
pub const MACHINE: &str = include_str!("../machines/spu001.toml");

/// The machines that come with Chipless: name and file.
pub const MACHINES: &[(&str, &str)] = &[
    ("spu001", MACHINE),
    ("spu150_tc1", include_str!("../machines/spu150_tc1.toml")),
    ("spu150_mp", include_str!("../machines/spu150_mp.toml")),
];

/// The machines that come with Chipless, read.
static KNOWN: LazyLock<Vec<Machine>> = LazyLock::new(|| {
    let read = MACHINES.iter().map(|(_, text)| Machine::parse(text));
    read.filter_map(Result::ok).collect()
});

impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column, or which figure is not positive.
    pub fn parse(text: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|e| e.to_string())?;
        let figures = [
            ("clock.mhz", machine.clock.mhz),
            ("core.count", f64::from(machine.core.count)),
            ("map.spacing", machine.map.spacing as f64),
            ("core.words_per_cycle", machine.core.words_per_cycle),
        ];
        match figures
            .iter()
            .find(|(_, figure)| !(figure.is_finite() && *figure > 0.0))
        {
            Some((name, figure)) => Err(format!("{name} is {figure}, expected a positive number")),
            None if !(machine.core.issue_cycles.is_finite()
                && machine.core.issue_cycles >= 0.0) =>
            {
                Err(format!(
                    "core.issue_cycles is {}, expected a number from 0 on",
                    machine.core.issue_cycles
                ))
            }
            None => Ok(machine),
        }
    }

    /// The largest figure of all known parts: what a contract, which does not name its part, cannot exceed.
    pub(crate) fn largest(figure: impl Fn(&Machine) -> u32) -> u32 {
        KNOWN.iter().map(figure).max().unwrap_or_default()
    }

    /// The machine of a part number.
    pub fn of_part(part: u8) -> Option<Machine> {
        KNOWN.iter().find(|machine| machine.part == part).cloned()
    }

    /// Whether a core has a bank of this number: data from 0x00 and tables from 0x20 in steps of 4, the program 0x30.
    pub fn has_bank(&self, uid: u8) -> bool {
        let counted = |first: u8, banks: &Banks| {
            uid.checked_sub(first)
                .is_some_and(|from| from % 4 == 0 && u32::from(from / 4) < banks.banks)
        };
        (uid < 0x20 && counted(0, &self.memory.data))
            || (uid < 0x30 && counted(0x20, &self.memory.tables))
            || uid == 0x30
    }

    /// The core and the bytes of the bank that an address lies in; in the vendor's simulation where asked for.
    pub fn place(&self, address: u64, simulated: bool) -> Option<(u32, std::ops::Range<u64>)> {
        let base = if simulated {
            self.map.simulation_base?
        } else {
            self.map.base
        };
        let within = address.checked_sub(base)?;
        let core = u32::try_from(within / self.map.spacing)
            .ok()
            .filter(|core| *core < self.core.count)?;
        let first = base + u64::from(core) * self.map.spacing;
        let memory = &self.memory;
        let all = [
            memory.data,
            memory.tables,
            memory.program,
            memory.scoreboard,
            memory.ready_queue,
            memory.thread_counters,
        ];
        let starts = all.into_iter().flat_map(|banks| {
            (0..u64::from(banks.banks))
                .map(move |bank| (first + banks.start + bank * banks.spacing, banks.bytes))
        });
        let mut banks = starts.map(|(start, bytes)| start..start + bytes);
        Some((core, banks.find(|bank| bank.contains(&address))?))
    }

    /// Bytes of a core's data memory.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.memory.data.banks) * self.memory.data.bytes
    }

    /// Bytes of a core's table memory: entries of 16 bits, each of which has an address of its own as a word of 64 bits would.
    pub fn table_bytes(&self) -> u64 {
        u64::from(self.memory.tables.banks) * self.memory.tables.bytes / 4
    }

    /// Time of a node whose longest operand has so many words.
    pub(crate) fn time(&self, words: u64) -> Time {
        Time::from_cycles(
            self.core.issue_cycles + words as f64 / self.core.words_per_cycle,
            self.clock.mhz,
        )
    }
}
