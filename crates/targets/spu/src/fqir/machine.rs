//! The chip: memories and the assumptions behind times, from a TOML file that users copy and edit.

use chipless_model::Time;
use serde::Deserialize;

/// What the hardware has, and what is assumed of its speed. The file `machine.toml` gives the source of every figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name: `spu001`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Clocks.
    pub clock: Clock,
    /// Cores.
    pub core: Core,
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
}

/// Memories of each core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Banks of data memory.
    pub data_banks: u32,
    /// 64-bit words of a bank.
    pub data_bank_words: u32,
    /// Banks of table memory.
    pub table_banks: u32,
    /// 16-bit entries of a bank.
    pub table_bank_entries: u32,
}

/// The file of the machine that comes with Chipless.
pub const MACHINE: &str = include_str!("../../machine.toml");

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

    /// Bytes of a core's data memory.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.memory.data_banks) * u64::from(self.memory.data_bank_words) * 8
    }

    /// Bytes of a core's table memory.
    pub fn table_bytes(&self) -> u64 {
        u64::from(self.memory.table_banks) * u64::from(self.memory.table_bank_entries) * 2
    }

    /// Time of a node whose longest operand has so many words.
    pub(super) fn time(&self, words: u64) -> Time {
        Time::from_cycles(
            self.core.issue_cycles + words as f64 / self.core.words_per_cycle,
            self.clock.mhz,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_comes_along_is_sound() {
        let machine = Machine::parse(MACHINE).expect("sound");
        assert_eq!(
            (machine.data_bytes(), machine.table_bytes()),
            (512 << 10, 16 << 10)
        );
        assert!(
            Machine::parse(&MACHINE.replace("mhz = 150", "mhz = 0"))
                .is_err_and(|e| e.contains("clock.mhz is 0"))
        );
    }
}
