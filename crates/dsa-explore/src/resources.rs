//! What a fabric takes of an FPGA (Xilinx VU9P), part by part.
//!
//! Formulas and figures are those of dsa-scheduler (`resource_estimator.h`), which fitted them to synthesis; elements, switches and ports go
//! by `models`.

use crate::models::{self, Kind};
use chipless_dsa::adg::{Adg, Element, ElementKind, LinkId, Memory, MemoryKind, System};
use chipless_dsa::operations;

/// Names of the figures, in the order of [`Usage`].
pub const FIELDS: [&str; 9] = [
    "total_lut",
    "logic_lut",
    "ram_lut",
    "srl",
    "ff",
    "ramb36",
    "ramb18",
    "uram",
    "dsp",
];

/// LUTs, of these for logic, of these as memory, shift registers, flip-flops, block RAMs of 36 and 18 kbit, `UltraRAM`, DSP slices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage(pub [f64; 9]);

impl Usage {
    /// From total, logic and memory LUTs, flip-flops, RAMB36 and DSP.
    const fn of(figures: [f64; 6]) -> Usage {
        let [total, logic, ram, ff, ramb36, dsp] = figures;
        Usage([total, logic, ram, 0.0, ff, ramb36, 0.0, 0.0, dsp])
    }

    /// Adds another one, so many times.
    pub fn add(&mut self, other: &Usage, times: f64) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own += other * times;
        }
    }

    /// So many times as much.
    #[must_use]
    pub fn times(mut self, times: f64) -> Usage {
        self.0.iter_mut().for_each(|figure| *figure *= times);
        self
    }

    /// The figure of a name.
    pub fn get(&self, field: &str) -> Option<f64> {
        FIELDS
            .iter()
            .position(|name| *name == field)
            .map(|index| self.0[index])
    }
}

/// A host core with its caches.
const CORE: Usage = Usage::of([9446.0, 7894.0, 1552.0, 3140.0, 0.0, 0.0]);
/// A bus of 512 core-bank-bytes.
const BUS: Usage = Usage::of([10024.0, 10024.0, 0.0, 833.0, 0.0, 0.0]);
const BUS_UNITS: f64 = 512.0;
/// A generate engine of 7 links, recurrence and register engines of 5.
const GENERATE: Usage = Usage::of([10023.0, 9965.0, 58.0, 5200.0, 0.0, 0.0]);
const RECURRENCE: Usage = Usage::of([4976.0, 4857.0, 119.0, 194.0, 0.0, 0.0]);
const REGISTER: Usage = Usage::of([332.0, 332.0, 0.0, 333.0, 0.0, 0.0]);
/// A scratchpad: stream table for 11 links; addresses for 32 bytes; reorder buffer, crossbars and scheduler of indirect streams for 32 bytes;
/// banks for 1 MiB.
const STREAM_TABLE: Usage = Usage::of([15730.0, 15730.0, 0.0, 4504.0, 0.0, 0.0]);
const ADDRESSES: Usage = Usage::of([2602.0, 2602.0, 0.0, 0.0, 0.0, 0.0]);
const REORDER: Usage = Usage::of([29801.0, 29801.0, 0.0, 1344.0, 4.0, 0.0]);
const CROSSBARS: Usage = Usage::of([1908.0, 1028.0, 880.0, 104.0, 0.0, 0.0]);
const SCHEDULER: Usage = Usage::of([246.0, 246.0, 0.0, 0.0, 0.0, 0.0]);
const BANKS: Usage = Usage::of([548.0, 548.0, 0.0, 152.0, 256.0, 0.0]);
/// Direct memory access: what it always takes; stream table for 11 links; what goes with 32 bytes.
const DMA: Usage = Usage::of([526.0, 526.0, 0.0, 196.0, 0.0, 0.0]);
const DMA_TABLE: Usage = Usage::of([246.0, 246.0, 0.0, 0.0, 0.0, 0.0]);
const DMA_WIDTH: Usage = Usage::of([5348.0, 5320.0, 28.0, 2017.0, 4.0, 0.0]);

/// The figures of each part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts(pub [(&'static str, Usage); 11]);

const ELEMENTS: usize = 0;
const SWITCHES: usize = 1;
const INPUT_PORTS: usize = 2;
const OUTPUT_PORTS: usize = 3;
const SCRATCHPAD: usize = 4;
const DIRECT: usize = 5;
const RECURRENCES: usize = 6;
const GENERATES: usize = 7;
const REGISTERS: usize = 8;
const HOST: usize = 9;
const SYSTEM_BUS: usize = 10;

impl Parts {
    /// All parts together.
    pub fn total(&self) -> Usage {
        let mut total = Usage::default();
        for (_, usage) in &self.0 {
            total.add(usage, 1.0);
        }
        total
    }
}

/// The system of a fabric whose file tells none.
pub const ALONE: System = System {
    cores: 1,
    banks: 8,
    bus_width: 8,
};

/// mm² and mW of a fabric as silicon (28 nm), for one core: an estimate for comparing fabrics.
pub fn silicon(adg: &Adg) -> (f64, f64) {
    let silicon = crate::asic::silicon(adg);
    (silicon.area, silicon.power)
}

/// What the bus of a system takes.
pub fn bus(system: System) -> Usage {
    let units = f64::from(system.cores) * f64::from(system.banks) * f64::from(system.bus_width);
    BUS.times(units / BUS_UNITS)
}

/// What one core takes, with its fabric and without the bus.
pub fn core(adg: &Adg) -> Usage {
    let one = parts(
        adg,
        System {
            cores: 1,
            banks: 0,
            bus_width: 0,
        },
    );
    one.total()
}

/// What a system of fabrics takes: every part as often as there are cores, the bus once.
pub fn parts(adg: &Adg, system: System) -> Parts {
    let mut parts = Parts([
        ("elements", Usage::default()),
        ("switches", Usage::default()),
        ("input_ports", Usage::default()),
        ("output_ports", Usage::default()),
        ("scratchpad", Usage::default()),
        ("dma", Usage::default()),
        ("recurrence", Usage::default()),
        ("generate", Usage::default()),
        ("register", Usage::default()),
        ("core", CORE),
        ("bus", Usage::default()),
    ]);
    for element in &adg.elements {
        let (part, usage) = of_element(adg, element);
        parts.0[part].1.add(&usage, 1.0);
    }
    for (_, usage) in &mut parts.0[..=HOST] {
        *usage = usage.times(f64::from(system.cores));
    }
    parts.0[SYSTEM_BUS].1 = bus(system);
    parts
}

fn of_element(adg: &Adg, element: &Element) -> (usize, Usage) {
    let (inputs, outputs) = (element.inputs.len() as f64, element.outputs.len() as f64);
    let flag = |flag: bool| f64::from(u8::from(flag));
    let network = |kind: Kind, shape: &[f64]| {
        let [total, logic, ram, ff] = models::figures(kind, shape);
        Usage::of([total, logic, ram, ff, 0.0, 0.0])
    };
    let (width, granularity) = (f64::from(element.width), f64::from(element.granularity));
    match &element.kind {
        ElementKind::ProcessingElement(unit) => {
            let shape = [
                inputs,
                outputs,
                0.0,
                flag(unit.dynamic),
                unit.delay_depth.into(),
                unit.registers.into(),
                width,
                granularity,
            ];
            let mut usage = network(Kind::Element, &shape);
            usage.add(&of_operations(&unit.operations), 1.0);
            (ELEMENTS, usage)
        }
        ElementKind::Switch(switch) => {
            let shape = [
                inputs,
                outputs,
                switch.output_buffer_depth.into(),
                flag(switch.static_output_buffer),
                granularity,
                width,
            ];
            (SWITCHES, network(Kind::Switch, &shape))
        }
        ElementKind::InputPort(port) => {
            let (bytes, padded) = of_memories(adg, element, true, port.stated);
            let shape = [
                inputs,
                outputs,
                port.depth.into(),
                flag(port.stated),
                flag(port.repeated),
                flag(port.broadcast),
                bytes,
                flag(padded),
            ];
            let kind = if element.inputs.is_empty() {
                Kind::InputPortAlone
            } else {
                Kind::InputPort
            };
            (INPUT_PORTS, network(kind, &shape))
        }
        ElementKind::OutputPort(port) => {
            let (bytes, padded) = of_memories(adg, element, false, port.stated);
            let shape = [
                inputs,
                outputs,
                port.depth.into(),
                flag(port.stated),
                flag(port.discard),
                bytes,
                flag(padded),
            ];
            let kind = if element.outputs.is_empty() {
                Kind::OutputPortAlone
            } else {
                Kind::OutputPort
            };
            (OUTPUT_PORTS, network(kind, &shape))
        }
        ElementKind::Memory(memory) => of_memory(memory, inputs, outputs),
    }
}

/// Bytes of the bus of a port, and whether a memory behind it fills up rows.
fn of_memories(adg: &Adg, element: &Element, incoming: bool, stated: bool) -> (f64, bool) {
    let (behind, lanes) = if incoming {
        (&element.inputs, &element.outputs)
    } else {
        (&element.outputs, &element.inputs)
    };
    let memories = || {
        behind.iter().filter_map(|link: &LinkId| {
            let end = if incoming {
                adg.source(*link)
            } else {
                adg.sink(*link)
            };
            end.memory()
        })
    };
    let widest = memories()
        .map(|memory| memory.read_width)
        .max()
        .unwrap_or(0);
    let lanes = lanes.iter().skip(usize::from(stated));
    let bits: u64 = lanes.map(|link| u64::from(adg.width(*link))).sum();
    let bytes = u64::from(widest).min(bits / 8).min(8);
    (bytes as f64, memories().any(|memory| memory.padding))
}

fn of_memory(memory: &Memory, inputs: f64, outputs: f64) -> (usize, Usage) {
    let links = inputs + outputs;
    let width = f64::from(memory.read_width) / 32.0;
    match memory.kind {
        MemoryKind::Scratchpad => {
            let mut usage = STREAM_TABLE.times(links / 11.0);
            usage.add(&ADDRESSES, width);
            usage.add(&BANKS, memory.capacity as f64 / 1_048_576.0);
            if memory.indirect {
                usage.add(&REORDER, width);
                usage.add(&CROSSBARS, width);
                usage.add(&SCHEDULER, 1.0);
            }
            (SCRATCHPAD, usage)
        }
        MemoryKind::DirectMemoryAccess => {
            let mut usage = DMA;
            usage.add(&DMA_TABLE, links / 11.0);
            usage.add(&DMA_WIDTH, width);
            (DIRECT, usage)
        }
        MemoryKind::Generate => (GENERATES, GENERATE.times(outputs / 7.0)),
        MemoryKind::Recurrence => (RECURRENCES, RECURRENCE.times(inputs / 5.0)),
        MemoryKind::Register => (REGISTERS, REGISTER.times(inputs / 5.0)),
    }
}

/// Units that operations on whole numbers share: of those of a class the largest counts.
const CLASSES: [(&str, Option<usize>); 8] = [
    ("Add", Some(0)),
    ("Sub", Some(0)),
    ("Acc", Some(0)),
    ("Div", None),
    ("Mul", Some(1)),
    ("Cmp", Some(2)),
    ("Shl", Some(3)),
    ("Shr", Some(3)),
];

/// What the units of an element take: floating point and whatever has no class adds up.
pub(crate) fn of_operations(names: &[String]) -> Usage {
    let mut shared = [[0.0_f64; 3]; 4];
    let mut sum = [0.0_f64; 3];
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            continue;
        }
        let Some(cost) = operations::lookup(name).and_then(|operation| operation.cost) else {
            continue;
        };
        let cost = [
            cost.tables.into(),
            cost.flip_flops.into(),
            cost.slices.into(),
        ];
        let floating = name.starts_with('F') && !name.starts_with("Fx");
        let known = CLASSES.iter().rfind(|(mark, _)| name.contains(mark));
        match known.and_then(|(_, class)| *class).filter(|_| !floating) {
            Some(class) => {
                for (most, cost) in shared[class].iter_mut().zip(cost) {
                    *most = most.max(cost);
                }
            }
            None => sum
                .iter_mut()
                .zip(cost)
                .for_each(|(sum, cost)| *sum += cost),
        }
    }
    for class in shared {
        sum.iter_mut()
            .zip(class)
            .for_each(|(sum, cost)| *sum += cost);
    }
    let [lut, ff, dsp] = sum;
    Usage::of([lut, lut, 0.0, ff, 0.0, dsp])
}
