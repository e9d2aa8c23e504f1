//! The machine as data: a clock and the rates of memory engines, from `machine.toml` or from an architecture graph.

use crate::adg::{Adg, ElementKind, MemoryKind};
use crate::graph::ArrayKind;
use serde::Deserialize;

/// The system around a fabric. See `machine.toml` for units and sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// As printed.
    pub name: String,
    /// MHz.
    pub clock: f64,
    /// Direct memory access.
    pub dma: Rates,
    /// Scratchpad.
    pub scratchpad: Rates,
    /// Outputs that come back as inputs.
    pub recurrence: Rates,
    /// Generated values.
    pub generate: Rates,
    /// Registers of the host core.
    pub register: Rates,
}

/// Bytes in a cycle, all streams of an engine together.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Into the fabric.
    pub read: f64,
    /// Out of the fabric.
    pub write: f64,
}

/// The machine that comes with Chipless: name and file.
pub const MACHINES: &[(&str, &str)] = &[("dsa", include_str!("../machine.toml"))];

impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column, or which figure is not positive.
    pub fn from_toml(text: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|error| error.to_string())?;
        let rates = ArrayKind::ALL.into_iter().flat_map(|kind| {
            [
                (kind, machine.rates(kind).read),
                (kind, machine.rates(kind).write),
            ]
        });
        if !(machine.clock.is_finite() && machine.clock > 0.0) {
            return Err(format!(
                "expected a clock above 0 MHz, found {}",
                machine.clock
            ));
        }
        for (kind, rate) in rates {
            if !(rate.is_finite() && rate > 0.0) {
                return Err(format!(
                    "expected rates above 0 bytes in a cycle, found {rate} ({})",
                    kind.name()
                ));
            }
        }
        Ok(machine)
    }

    /// The rates of an engine.
    pub const fn rates(&self, kind: ArrayKind) -> Rates {
        match kind {
            ArrayKind::Dma => self.dma,
            ArrayKind::Scratchpad => self.scratchpad,
            ArrayKind::Recurrence => self.recurrence,
            ArrayKind::Generate => self.generate,
            ArrayKind::Register => self.register,
        }
    }

    /// The same machine with the rates of a fabric's engines, where it has them: engines of one kind together.
    #[must_use]
    pub fn with_rates_of(mut self, adg: &Adg) -> Machine {
        for kind in ArrayKind::ALL {
            let of = match kind {
                ArrayKind::Dma => MemoryKind::DirectMemoryAccess,
                ArrayKind::Scratchpad => MemoryKind::Scratchpad,
                ArrayKind::Recurrence => MemoryKind::Recurrence,
                ArrayKind::Generate => MemoryKind::Generate,
                ArrayKind::Register => MemoryKind::Register,
            };
            let mut found = Rates {
                read: 0.0,
                write: 0.0,
            };
            for element in &adg.elements {
                if let ElementKind::Memory(memory) = &element.kind
                    && memory.kind == of
                {
                    let unit = f64::from(memory.unit_bits) / 8.0;
                    found.read += f64::from(memory.read_width) * unit;
                    found.write += f64::from(memory.write_width) * unit;
                }
            }
            let own = match kind {
                ArrayKind::Dma => &mut self.dma,
                ArrayKind::Scratchpad => &mut self.scratchpad,
                ArrayKind::Recurrence => &mut self.recurrence,
                ArrayKind::Generate => &mut self.generate,
                ArrayKind::Register => &mut self.register,
            };
            // A rate of zero is an engine that the fabric does not have, or a direction in which it does not work.
            own.read = if found.read > 0.0 {
                found.read
            } else {
                own.read
            };
            own.write = if found.write > 0.0 {
                found.write
            } else {
                own.write
            };
        }
        self
    }
}

impl Default for Machine {
    fn default() -> Machine {
        #[expect(clippy::expect_used, reason = "the file is part of the program")]
        Machine::from_toml(MACHINES[0].1)
            .expect("the machine file that is compiled in is valid: a test reads it")
    }
}
