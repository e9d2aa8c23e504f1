//! Whether instructions wait for whole transfers, and for the last one.
//!
//! A transfer raises its semaphore by the number of rings that it goes to: by one for each, whenever that one is done. So a wait for
//! anything but a sum of whole transfers lets the instruction start while some rings still move.

use super::Findings;
use crate::def::VariableType;
use crate::read::{EngineRoom, Subgraph};
use crate::semaphores::{Raised, raised};
use crate::stream::formats::Dma;
use crate::stream::operand::variable;
use crate::stream::{Comparison, Instruction, Stream, WaitMode};
use crate::triggers;
use chipless_model::Place;

chipless_model::rules! {
    PART_OF_TRANSFER Departure Warning Format "neff-wait-part" "an instruction waits for a part of a transfer"
        "A transfer raises its semaphore by one for each ring that it goes to, in no fixed order. A wait for a value between two whole transfers is satisfied while the last of them still moves. Where that makes a race, it is reported as one."
        "Wait for a multiple of the amount by which the transfers raise the semaphore."
        "NEFF specification, semaphore; DMA overview: each ring signals";
    NOT_AWAITED Departure Warning Writers "neff-output-not-awaited" "no instruction waits for the last transfer to an output"
        "When all engines have come to the end of their instructions, the program counts as done. A transfer that nobody waits for may still be moving then, so that the host reads an old output."
        "Let an instruction of the engine wait for the semaphore of the transfer."
        "compiled programs: the last instruction of an engine waits for its transfers";
}

/// A wait for a value.
struct Wait<'s, 'a> {
    room: &'s EngineRoom<'a>,
    slot: usize,
    semaphore: u8,
    value: u64,
}

pub(super) fn check(subgraphs: &[Subgraph<'_>], findings: &mut Findings) {
    for (index, subgraph) in subgraphs.iter().enumerate() {
        let raised = raised(subgraphs, index);
        let (mut waits, mut last) = (Vec::new(), Vec::new());
        for room in &subgraph.engines {
            streamed(room, &mut waits, &mut last);
        }
        partial(&raised, &subgraph.name, &waits, findings);
        for (room, slot, dma) in last {
            let is_output = |d: Dma<'_>| matches!(variable(&subgraph.definition, d.dst().address.target()), Ok((_, _, v)) if v.kind == Some(VariableType::Output));
            let (semaphore, _) = dma.completion();
            let raised = raised[usize::from(semaphore)];
            let is_awaited = waits
                .iter()
                .any(|wait| wait.semaphore == semaphore && wait.value >= raised.total);
            if is_output(dma) && !raised.otherwise && !is_awaited {
                let message = format!(
                    "nothing waits until $S[{semaphore}] is {}, which it is when this transfer, the last of the engine, is over",
                    raised.total
                );
                let at = || instruction(&subgraph.name, room, slot);
                findings.report(&NOT_AWAITED, at, message);
            }
        }
    }
}

/// What the instructions of an engine wait for, and the last transfer that they hand over.
fn streamed<'s, 'a>(
    room: &'s EngineRoom<'a>,
    waits: &mut Vec<Wait<'s, 'a>>,
    last: &mut Vec<(&'s EngineRoom<'a>, usize, Dma<'s>)>,
) {
    let Some(member) = room.instructions else {
        return;
    };
    let mut transfer = None;
    for (slot, instruction) in Stream::new(member.bytes).slots.iter().enumerate() {
        for events in instruction.events() {
            let value = u64::from(events.value.get());
            let value = match events.wait() {
                WaitMode::Immediate(Comparison::AtLeast | Comparison::Equal) => Some(value),
                WaitMode::Immediate(Comparison::Greater) => Some(value + 1),
                _ => None,
            };
            waits.extend(value.map(|value| Wait {
                room,
                slot,
                semaphore: events.wait_index,
                value,
            }));
        }
        if let Instruction::Dma(dma) = instruction.decode() {
            transfer = Some((room, slot, dma));
        }
    }
    last.extend(transfer);
}

/// Waits for parts: the first for each semaphore.
fn partial(
    raised: &[Raised; 256],
    subgraph: &str,
    waits: &[Wait<'_, '_>],
    findings: &mut Findings,
) {
    let mut found = [0u32; 256];
    let is_part = |wait: &&Wait<'_, '_>| {
        let raised = raised[usize::from(wait.semaphore)];
        raised.whole(wait.value) != wait.value
    };
    for wait in waits.iter().filter(is_part) {
        let semaphore = usize::from(wait.semaphore);
        found[semaphore] += 1;
        if found[semaphore] == 1 {
            let message = format!(
                "waits until $S[{semaphore}] is {}; each transfer raises it by {}, one for each ring",
                wait.value, raised[semaphore].step
            );
            findings.report(
                &PART_OF_TRANSFER,
                || instruction(subgraph, wait.room, wait.slot),
                message,
            );
        }
    }
}

/// Where an instruction stands.
fn instruction(subgraph: &str, room: &EngineRoom<'_>, slot: usize) -> Place {
    let bytes = room.instructions.map_or(&[][..], |member| member.bytes);
    let has_functions = triggers::has_functions(Stream::new(bytes).slots);
    triggers::place(subgraph, room, slot, has_functions)
}
