//! Configuration words: the header (`.bits.h`) that a program includes and the hardware is loaded with.
//!
//! A word has 64 bits: kind of element (63..62: processing element, switch, input port, output port), its number (61..54), group
//! (53..52, always 0), index of the word (51..48), and 48 bits of payload. The payloads of an element in a row, least significant first,
//! hold its fields; the widths follow from the fabric:
//!
//! | element | fields, from the least significant bit |
//! |---|---|
//! | switch | enabled; for each output, for each part of it: input + 1, 0 for none |
//! | input port | enabled; for each link: place in the stream + 1 |
//! | output port | enabled; for each place in the stream: link + 1 |
//! | processing element | enabled; valid; two operands: input + 1, registers behind the inputs; mode of control (1 by an operand, 2 by the result); input of control + 1; delays, if static; operation; output + 1; register + 1; for each entry of the control table: valid, hold (2), discard, reset, abstain; bits of control that count (6) |
//!
//! The scheduler that defined the words writes two fields differently from what the hardware reads: holding the second operand sets the
//! bit of the first, and the output is written without the 1. [`Encoding`] chooses; reading understands both as far as they differ
//! from each other.

mod judge;
mod read;
mod write;

pub use read::read;
pub use write::write;

use crate::Mapping;
use chipless_dsa::adg::{Element, ElementKind, ProcessingElement};

/// What the words of a header say.
#[derive(Clone, Debug)]
pub struct Header {
    /// Where they put what.
    pub mapping: Mapping,
    /// What they tell elements to do that the graph does not ask for, so that its values are held up or changed.
    pub faults: Vec<String>,
}

/// Whose reading of the two disputed fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As the hardware reads them.
    #[default]
    Hardware,
    /// As the scheduler writes them.
    Scheduler,
}

/// The two faults of the scheduler's encoding, by name.
pub const SCHEDULER_FAULTS: [&str; 2] = [
    "hold-second-operand: the scheduler sets the hold bit of the first operand for b2 as well, so b1 and b2 cannot be told apart",
    "result-output: the scheduler writes the number of the output, the hardware expects it plus 1 and takes 0 for none",
];

/// Bits that numbers below `count` take.
fn bits_for(count: usize) -> u32 {
    usize::BITS - count.max(1).saturating_sub(1).leading_zeros()
}

/// Fields, the least significant first.
#[derive(Default)]
struct Fields(Vec<bool>);

impl Fields {
    fn push(&mut self, value: u64, bits: u32) {
        self.0.extend((0..bits).map(|bit| value >> bit & 1 == 1));
    }
}

/// Payload bits that are read one field after the other.
struct Payload<'a> {
    bits: &'a [bool],
    at: usize,
}

impl Payload<'_> {
    fn take(&mut self, bits: u32) -> u64 {
        let value = (0..bits as usize)
            .map(|bit| u64::from(self.bits.get(self.at + bit).copied().unwrap_or(false)) << bit)
            .sum();
        self.at += bits as usize;
        value
    }
}

/// What a processing element is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unit {
    operands: [u64; 2],
    mode: u64,
    control: u64,
    delays: [u64; 2],
    operation: u64,
    output: u64,
    register: u64,
    /// Valid, hold (two bits), discard, reset, abstain.
    table: Vec<[u64; 5]>,
    mask: u64,
}

impl Unit {
    fn walk(
        &mut self,
        element: &Element,
        unit: &ProcessingElement,
        mut field: impl FnMut(&mut u64, u32),
    ) {
        let (inputs, outputs) = (element.inputs.len(), element.outputs.len());
        let registers = unit.registers as usize;
        for operand in &mut self.operands {
            field(operand, bits_for(inputs + registers + 1));
        }
        if unit.input_control || unit.output_control {
            field(&mut self.mode, 2);
        }
        if unit.input_control {
            field(&mut self.control, bits_for(inputs + 1));
        }
        if !unit.dynamic {
            for delay in &mut self.delays {
                field(delay, bits_for(unit.delay_depth as usize + 1));
            }
        }
        field(&mut self.operation, bits_for(unit.operations.len()));
        field(&mut self.output, bits_for(outputs + 1));
        if registers > 0 {
            field(&mut self.register, bits_for(registers + 1));
        }
        self.table
            .resize(unit.control_entries.min(64) as usize, [0; 5]);
        for [valid, hold, discard, reset, abstain] in &mut self.table {
            for (value, bits) in [
                (valid, 1),
                (hold, 2),
                (discard, 1),
                (reset, 1),
                (abstain, 1),
            ] {
                field(value, bits);
            }
        }
        field(&mut self.mask, 6);
    }
}

fn kind_of(element: &Element) -> Option<u64> {
    match element.kind {
        ElementKind::ProcessingElement(_) => Some(0),
        ElementKind::Switch(_) => Some(1),
        ElementKind::InputPort(_) => Some(2),
        ElementKind::OutputPort(_) => Some(3),
        ElementKind::Memory(_) => None,
    }
}
