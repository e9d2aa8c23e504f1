//! Area and price of a machine as one die, as the scripts of GEMINI define them (github.com/SET-Scheduling-Project/GEMINI-HPCA2024,
//! `src/main.cpp` and `src/cost.cpp` at ea8700a; the price of dies and packages follows Feng and Ma, *Chiplet Actuary*, DAC 2022).
//!
//! Nothing here was checked against silicon or a quotation.

use crate::machine::{Array, Machine};
use std::f64::consts::PI;

/// Area of a byte of SRAM, µm² at 12 nm.
const BYTE: f64 = 0.0964 * 8.0;
/// Area of an 8-bit multiplier, µm² at 12 nm.
const MULTIPLIER: f64 = 57.9;
/// Area of a lane of the vector unit, in multipliers.
const LANE: f64 = 8.0;
/// Area of a router, µm² at 12 nm for each byte that a link takes in a cycle.
const ROUTER: f64 = 16_781.312;
/// Area of a core behind its parts': wiring and clocks.
const LAYOUT: f64 = 2.2;
/// Area behind that of cores and interfaces: control, and logic for tests.
const CONTROL: f64 = 1.05 * 1.05;
/// Area of a `PCIe` interface, µm² for each GB/s of DRAM.
const PCIE: f64 = 3_000_000.0 / 128.0;
/// The largest die that a reticle takes, mm².
pub const RETICLE: f64 = 858.0;

/// Diameter of a wafer, its rim that is lost, and the width of a cut, mm.
const WAFER: f64 = 300.0;
const RIM: f64 = 5.0;
const CUT: f64 = 0.2;
/// Critical levels of the negative-binomial yield.
const CRITICAL: f64 = 10.0;
/// Dollars for the bumps of a mm² of die.
const BUMPS: f64 = 0.005;
/// Area of an organic substrate, in dies; dollars for a mm² of it; share of dies that are bonded well.
const SUBSTRATE: f64 = 4.0;
const SUBSTRATE_PRICE: f64 = 0.005;
const BONDED: f64 = 0.99;

/// A process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// 12 nm.
    #[default]
    Nm12,
    /// 7 nm.
    Nm7,
}

impl Process {
    /// All of them.
    pub const ALL: [Process; 2] = [Process::Nm12, Process::Nm7];

    /// As spaces name it.
    pub const fn name(self) -> &'static str {
        match self {
            Process::Nm12 => "12nm",
            Process::Nm7 => "7nm",
        }
    }

    /// Area of logic and SRAM, of that at 12 nm; dollars for a wafer; defects of a cm².
    const fn figures(self) -> (f64, f64, f64) {
        match self {
            Process::Nm12 => (1.0, 5992.0, 0.08),
            Process::Nm7 => (0.7, 9346.0, 0.09),
        }
    }
}

/// A kind of DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// GDDR6X.
    #[default]
    Gddr6x,
    /// HBM.
    Hbm,
}

impl Memory {
    /// All of them.
    pub const ALL: [Memory; 2] = [Memory::Gddr6x, Memory::Hbm];

    /// As spaces name it.
    pub const fn name(self) -> &'static str {
        match self {
            Memory::Gddr6x => "gddr6x",
            Memory::Hbm => "hbm",
        }
    }

    /// Area of the interface (µm²) and dollars for each GB/s. The script's dollars of HBM are a division of whole numbers that gives 0; here
    /// they are what it divides.
    const fn figures(self) -> (f64, f64) {
        match self {
            Memory::Gddr6x => (5940.0 * 1100.0 / 32.0, 3.5 / 32.0),
            Memory::Hbm => (502_665.0 / 819.0, 320.0 / 819.0),
        }
    }
}

/// What a machine takes and costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Area of the cores with their share of control, mm².
    pub cores: f64,
    /// Area of the interfaces to DRAM and host, mm².
    pub interfaces: f64,
    /// Dollars for a good die: its share of a wafer, its bumps, and the dies that are not good. As in the script, those of the cores alone.
    pub die: f64,
    /// Dollars for the substrate and for what is lost in bonding.
    pub package: f64,
    /// Dollars for the DRAM.
    pub memory: f64,
}

impl Price {
    /// Of a machine.
    ///
    /// A byte of the weight buffer counts as one of L2; the script's cores have no such buffer. Units of a row-stationary array count like
    /// those of the other; the script prices only that.
    pub fn of(machine: &Machine, process: Process, memory: Memory) -> Price {
        let (scale, wafer, defects) = process.figures();
        let (interface, dollars) = memory.figures();
        let (units, buffers) = match &machine.array {
            Array::Polar {
                array,
                al1,
                wl1,
                ol1,
                ..
            } => (array[0] * array[1], al1.bytes + wl1.bytes + ol1.bytes),
            Array::Eyeriss {
                array,
                al1,
                wl1,
                pl1,
            } => (array[0] * array[1], al1.bytes + wl1.bytes + pl1.bytes),
        };
        let [banks, bytes] = machine.weight_buffer.map(|n| n as f64);
        let sram = machine.l2.bytes as f64 + buffers as f64 * units as f64 + banks * bytes;
        let multipliers = machine.macs() as f64 + machine.vector_lanes as f64 * LANE;
        let core =
            (sram * BYTE + multipliers * MULTIPLIER + machine.link.0 * ROUTER) * scale * LAYOUT;
        let rate = machine.dram.0 * machine.clock / 1e9;
        let square_millimetres = |micrometres: f64| micrometres * CONTROL / 1e6;
        let cores = square_millimetres(core * machine.cores() as f64);
        let die = good_die(cores, wafer, defects);
        let substrate = cores * SUBSTRATE * SUBSTRATE_PRICE;
        Price {
            cores,
            interfaces: square_millimetres(rate * (interface + PCIE)),
            die,
            package: substrate / BONDED + die * (1.0 / BONDED - 1.0),
            memory: rate * dollars,
        }
    }

    /// Area of the die, mm².
    pub const fn area(&self) -> f64 {
        self.cores + self.interfaces
    }

    /// All dollars; none where no reticle takes the die.
    pub fn dollars(&self) -> Option<f64> {
        (self.area() <= RETICLE).then_some(self.die + self.package + self.memory)
    }
}

/// Dollars for a good die of this area.
fn good_die(area: f64, wafer: f64, defects: f64) -> f64 {
    let cut = area + 2.0 * CUT * area.sqrt() + CUT * CUT;
    let usable = WAFER - 2.0 * RIM;
    let dies = PI * (usable / 2.0).powi(2) / cut - PI * usable / (2.0 * cut).sqrt();
    let good = (1.0 + defects / 100.0 * area / CRITICAL).powf(-CRITICAL);
    wafer / (dies * good) + area * BUMPS
}
