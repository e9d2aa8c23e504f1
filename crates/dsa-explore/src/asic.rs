//! What a fabric takes as silicon, by the formulas of dsa-scheduler (28 nm): an estimate for comparing fabrics, not for tape-out.
//!
//! The scheduler prices operations at nothing, because its present table has no figures. Here they have those of its older table
//! (`full.ssinst.power_area.csv`), and what that lacks has the figures of the nearest operation there: floating point by its kind and
//! width, whole numbers a tenth of it, as our own assumption.

use chipless_dsa::adg::{Adg, ElementKind, MemoryKind};

/// Area and power.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Silicon {
    /// mm².
    pub(crate) area: f64,
    /// mW.
    pub(crate) power: f64,
}

/// µm² and mW of a crossing of a crossbar, and of a word of a buffer.
const CROSSING: (f64, f64) = (24.0, 0.006);
const WORD: (f64, f64) = (291.0, 0.2);
/// What sharing in time adds to an element.
const SHARING: (f64, f64) = (16_581.0, 14.1);
/// A scratchpad controller, and what indirect streams add.
const CONTROLLER: (f64, f64) = (5_200.0, 9.3);
const INDIRECT: (f64, f64) = (88_800.0, 18.1);
/// Memories with one port: bytes, µm², mW.
const MEMORIES: [(f64, f64, f64); 4] = [
    (4_096.0, 34_125.0, 2.84),
    (8_192.0, 39_643.0, 5.33),
    (16_384.0, 50_650.0, 10.31),
    (32_768.0, 72_545.0, 20.16),
];
/// Area and power: µm² and mW.
type Cost = (f64, f64);
/// Marks of floating-point operations with their cost for 32 and 64 bits.
const OPERATIONS: [(&str, Cost, Cost); 5] = [
    ("Div", (1_571.0, 3.11), (14_191.0, 14.06)),
    ("Sqrt", (812.0, 1.30), (14_191.0, 14.06)),
    ("Mul", (960.0, 0.869), (5_008.0, 4.01)),
    ("Sub", (502.0, 0.307), (3_918.0, 5.66)),
    ("", (501.0, 0.305), (3_919.0, 5.66)),
];
/// Of floating point, what an operation on whole numbers takes.
const WHOLE: f64 = 0.1;

/// Area and power of one core's fabric.
pub(crate) fn silicon(adg: &Adg) -> Silicon {
    let (mut area, mut power) = (0.0, 0.0);
    let mut add = |(a, p): (f64, f64), times: f64| {
        area += a * times;
        power += p * times;
    };
    let crossbar = |inputs: f64, outputs: f64, slots: u32, dynamic: bool| {
        let dynamic = if dynamic { 1.7 } else { 1.0 };
        inputs * outputs * 1.1_f64.powf(f64::from(slots.max(1)).log2()) * dynamic
    };
    for element in &adg.elements {
        let (inputs, outputs) = (element.inputs.len() as f64, element.outputs.len() as f64);
        let slots = element.slots();
        match &element.kind {
            ElementKind::ProcessingElement(unit) => {
                add(CROSSING, crossbar(2.0, inputs, slots, unit.dynamic));
                add(CROSSING, crossbar(1.0, outputs, slots, unit.dynamic));
                add(WORD, unit.delay_depth.into());
                for name in &unit.operations {
                    add(operation(name), 1.0);
                }
                if unit.is_shared() {
                    add(SHARING, 1.0);
                }
            }
            ElementKind::Switch(switch) => {
                let dynamic = !switch.static_output_buffer;
                add(CROSSING, crossbar(inputs, outputs, slots, dynamic));
                add(WORD, switch.output_buffer_depth.into());
            }
            ElementKind::InputPort(_) | ElementKind::OutputPort(_) => {
                add(
                    CROSSING,
                    crossbar(inputs.max(1.0), outputs.max(1.0), 1, false),
                );
                add(WORD, 2.0);
            }
            ElementKind::Memory(memory) if memory.kind == MemoryKind::Scratchpad => {
                add(CONTROLLER, 1.0);
                if memory.indirect {
                    add(INDIRECT, 1.0);
                }
                let bytes = memory.capacity as f64;
                let known = MEMORIES.iter().find(|(size, ..)| *size >= bytes);
                let (size, area, power) = known.copied().unwrap_or(MEMORIES[3]);
                add((area, power), (bytes / size).max(1.0));
            }
            ElementKind::Memory(_) => {}
        }
    }
    Silicon {
        area: area / 1e6,
        power,
    }
}

fn operation(name: &str) -> (f64, f64) {
    if name == "Copy" {
        return (0.0, 0.0);
    }
    let floating = name.starts_with('F') && !name.starts_with("Fx");
    let known = OPERATIONS.iter().find(|(mark, ..)| name.contains(mark));
    let wide = name.contains("64");
    let (area, power) = known.map_or(
        (0.0, 0.0),
        |(_, single, double)| if wide { *double } else { *single },
    );
    if floating {
        (area, power)
    } else {
        (area * WHOLE, power * WHOLE)
    }
}
