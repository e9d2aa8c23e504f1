//! What instructions cost that work element by element: a start, and a time for each element of a partition.
//!
//! The laws are those of isolated instructions on Trainium 2, from start to result (see the machine files). An instruction keeps its engine for all
//! of that here; on the chip the next one may start earlier, by about the start of this one.

use crate::graph::Engine;
use crate::machine::ElementWise;
use crate::stream::{ElementCode, Instruction, OnChip, Operand, Slot, Space};
use chipless_model::Direction;

/// `RECIPROCAL`, which shares its format with reductions.
const RECIPROCAL: u8 = 0x48;
/// `TENSOR_TENSOR_SCAN`, which shares its format with `SCALAR_TENSOR_TENSOR`.
const SCAN: u8 = 0xe5;
/// Where an operand of `ACTIVATE` comes from memory: the factor, and the addend, which is coded the other way round.
const SCALE_FROM_MEMORY: u8 = 1;
const BIAS_FROM_MEMORY: u8 = 0;

/// Nanoseconds before the elements, and cycles of the engine for them.
pub(super) fn cost(rules: &ElementWise, engine: Engine, slot: &Slot) -> (f64, f64) {
    let operands = slot.operands();
    let operands = &operands[..];
    match slot.decode() {
        Instruction::Move(_) => return (rules.move_ns, 0.0),
        Instruction::LoadMask(_) => return (rules.mask_ns, 0.0),
        _ => {}
    }
    let Some(elements) = operands.iter().map(Operand::elements).max() else {
        return (0.0, 0.0);
    };
    let elements = elements as f64 * stride(rules, operands);
    match (engine, slot.decode()) {
        (Engine::Act, Instruction::ReadAccumulator(_)) => (rules.accumulator_ns, 0.0),
        (Engine::Act, Instruction::Activate(i)) => {
            let reads = u8::from(i.scale_source() == SCALE_FROM_MEMORY)
                + u8::from(i.bias_source() == BIAS_FROM_MEMORY);
            let start = rules.activate_start_ns + f64::from(reads) * rules.operand_read_ns;
            (earlier(rules, operands, start), elements)
        }
        (Engine::Act, _) => (earlier(rules, operands, rules.scalar_start_ns), elements),
        (Engine::Dve, Instruction::Memset(_)) => {
            (rules.memset_start_ns, elements * rules.memset_cycles)
        }
        (Engine::Dve, Instruction::Reduce(_)) if slot.bytes()[0] == RECIPROCAL => {
            (rules.vector_start_ns, elements * rules.reciprocal_cycles)
        }
        (Engine::Dve, Instruction::ScalarTensorTensor(_)) if slot.bytes()[0] == SCAN => {
            let elements = elements.max(rules.scan_elements);
            (rules.vector_start_ns, elements * rules.scan_cycles)
        }
        (Engine::Dve, Instruction::Copy(_)) => (
            rules.vector_start_ns,
            elements / copy_speedup(rules, operands),
        ),
        (Engine::Dve, _) => {
            let factor = if operands.len() <= 2 {
                1.0
            } else if operands.iter().all(|o| bits(o) == 16 && is_in_sbuf(o)) {
                1.0 / rules.vector_speedup_16bit
            } else {
                rules.vector_second_operand_factor
            };
            (rules.vector_start_ns, elements * factor)
        }
        _ => {
            let two = operands.len() > 2;
            let factor = if two {
                rules.gpsimd_second_operand_factor
            } else {
                1.0
            };
            (rules.gpsimd_start_ns, elements * factor)
        }
    }
}

/// The start of an instruction of `ScalarE`, which is earlier where operands are in PSUM.
fn earlier(rules: &ElementWise, operands: &[Operand], start: f64) -> f64 {
    let lies_there = |direction| {
        let mut operands = operands.iter().filter(|o| o.direction == direction);
        operands.any(|o| !is_in_sbuf(o))
    };
    let from = if lies_there(Direction::Read) {
        rules.scalar_from_psum_ns
    } else {
        0.0
    };
    let to = if lies_there(Direction::Write) {
        rules.scalar_to_psum_ns
    } else {
        0.0
    };
    (start - from - to).max(0.0)
}

/// How many times as long the elements take because an operand's innermost step is wide.
fn stride(rules: &ElementWise, operands: &[Operand]) -> f64 {
    let bytes = |o: &Operand| f64::from(o.steps[0].unsigned_abs()) * bits(o) as f64 / 8.0;
    let widest = operands.iter().filter(|o| o.counts[0] > 1).map(bytes);
    (widest.fold(0.0, f64::max) / rules.wide_stride_bytes).clamp(1.0, 2.0)
}

fn copy_speedup(rules: &ElementWise, operands: &[Operand]) -> f64 {
    if !operands.iter().all(is_in_sbuf) {
        return 1.0;
    }
    let width = |direction| {
        let operand = operands.iter().find(|o| o.direction == direction);
        operand.map_or(0, bits)
    };
    match (width(Direction::Read), width(Direction::Write)) {
        (32, _) => rules.vector_copy_speedup_32bit,
        (16, 32) => rules.vector_copy_speedup_widening,
        (16, _) => rules.vector_copy_speedup_16bit,
        _ => 1.0,
    }
}

fn bits(operand: &Operand) -> u64 {
    ElementCode::of(operand.code).map_or(8, |code| code.element.bits())
}

fn is_in_sbuf(operand: &Operand) -> bool {
    OnChip::at(operand.address).is_some_and(|at| at.space == Space::StateBuffer)
}
