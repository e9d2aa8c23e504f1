//! Whether instructions wait for whole transfers, and for the last one.
//!
//! A transfer raises its semaphore by the number of rings that it goes to: by one for each, whenever that one is done. So a wait for
//! anything but a sum of whole transfers lets the instruction start while some rings still move.

use super::Findings;
use crate::def::VariableType;
use crate::read::{EngineRoom, Subgraph};
use crate::stream::formats::Dma;
use crate::stream::operand::variable;
use crate::stream::{Comparison, Instruction, SLOT_BYTES, Stream, UpdateMode, WaitMode};
use chipless_model::Place;

chipless_model::rules! {
    PART_OF_TRANSFER Fault Error Format "neff-wait-part" "an instruction waits for a part of a transfer"
        "A transfer raises its semaphore by one for each ring that it goes to, in no fixed order. A wait for a value between two whole transfers is satisfied while the last of them still moves."
        "Wait for a multiple of the amount by which the transfers raise the semaphore."
        "NEFF specification, semaphore; DMA overview: each ring signals";
    NOT_AWAITED Departure Warning Writers "neff-output-not-awaited" "no instruction waits for the last transfer to an output"
        "When all engines have come to the end of their instructions, the program counts as done. A transfer that nobody waits for may still be moving then, so that the host reads an old output."
        "Let an instruction of the engine wait for the semaphore of the transfer."
        "compiled programs: the last instruction of an engine waits for its transfers";
}

/// What raises a semaphore.
#[derive(Clone, Copy, Default)]
struct Raised {
    /// By how much each transfer does; 0 where there is none.
    step: u64,
    /// By how much all transfers do.
    total: u64,
    /// Anything besides transfers of one step.
    otherwise: bool,
}

impl Raised {
    fn transfer(&mut self, by: u64) {
        self.otherwise |= self.step != 0 && self.step != by;
        self.step = by;
        self.total = self.total.saturating_add(by);
    }
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
        let mut raised = [Raised::default(); 256];
        let remote = subgraphs
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .flat_map(|(_, s)| &s.engines);
        for semaphore in remote
            .flat_map(|room| &room.file.dma)
            .flat_map(|entry| &entry.remote_semaphores)
        {
            if let Some(raised) = raised.get_mut(*semaphore as usize) {
                raised.otherwise = true;
            }
        }
        let (mut waits, mut last) = (Vec::new(), Vec::new());
        for room in &subgraph.engines {
            stored(subgraph, room, &mut raised);
            streamed(room, &mut raised, &mut waits, &mut last);
        }
        partial(&raised, &waits, findings);
        for (room, slot, dma) in last {
            let is_output = |d: Dma<'_>| matches!(variable(&subgraph.definition, d.dst().address), Ok((_, _, v)) if v.kind == Some(VariableType::Output));
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
                findings.report(&NOT_AWAITED, || place(room, slot), message);
            }
        }
    }
}

/// What the descriptors of an engine file raise.
fn stored(subgraph: &Subgraph<'_>, room: &EngineRoom<'_>, raised: &mut [Raised; 256]) {
    for entry in &room.file.dma {
        let set = entry
            .queue_name()
            .and_then(|name| subgraph.definition.queue_set(name));
        let rings = set
            .and_then(|set| subgraph.definition.queues.get_index(set))
            .map_or(1, |(_, queue)| queue.queues());
        if let Some(raised) = entry
            .semaphore
            .and_then(|semaphore| raised.get_mut(usize::try_from(semaphore).ok()?))
        {
            raised.transfer(rings);
        }
    }
}

/// What the instructions of an engine raise and wait for, and the last transfer that they hand over.
fn streamed<'s, 'a>(
    room: &'s EngineRoom<'a>,
    raised: &mut [Raised; 256],
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
            if let UpdateMode::Semaphore(..) = events.update() {
                raised[usize::from(events.update_index)].otherwise = true;
            }
        }
        if let Instruction::Dma(dma) = instruction.decode() {
            let (semaphore, increment) = dma.completion();
            raised[usize::from(semaphore)].transfer(u64::from(increment));
            transfer = Some((room, slot, dma));
        }
    }
    last.extend(transfer);
}

/// Waits for parts: the first for each semaphore.
fn partial(raised: &[Raised; 256], waits: &[Wait<'_, '_>], findings: &mut Findings) {
    let mut found = [0u32; 256];
    let is_part = |wait: &&Wait<'_, '_>| {
        let raised = raised[usize::from(wait.semaphore)];
        !raised.otherwise && raised.step > 1 && !wait.value.is_multiple_of(raised.step)
    };
    for wait in waits.iter().filter(is_part) {
        let semaphore = usize::from(wait.semaphore);
        found[semaphore] += 1;
        if found[semaphore] == 1 {
            let message = format!(
                "waits until $S[{semaphore}] is {}; each transfer raises it by {}, one for each ring",
                wait.value, raised[semaphore].step
            );
            findings.report(&PART_OF_TRANSFER, || place(wait.room, wait.slot), message);
        }
    }
}

fn place(room: &EngineRoom<'_>, slot: usize) -> Place {
    let part = room.instructions.map_or("", |member| member.path);
    Place::bytes((slot * SLOT_BYTES) as u64, SLOT_BYTES as u64)
        .in_part(part.to_owned())
        .at(format!("slot {slot}"))
}
