//! DMA descriptors.

mod entry;
mod operation;
mod transfer;

use super::{Findings, Hardware, Object};
use crate::memory;
use crate::read::{EngineRoom, Neff, Subgraph};
use crate::rules::dma as rules;
use crate::stream::Stream;
use crate::triggers::functions_of_entries;
use chipless_model::{Rule, count};
use std::collections::HashMap;

/// Hardware descriptors of a ring, at most (driver, ring limits).
const MAX_RING_DESCRIPTORS: u64 = (1 << 24) - 16;
/// Opcode of the slot that begins a function.
const FUNCTION_BEGIN: u8 = 0xd1;

pub(super) fn check(
    neff: &Neff<'_>,
    hardware: Hardware,
    subgraph: &Subgraph<'_>,
    findings: &mut Findings,
) {
    for room in &subgraph.engines {
        let Some(source) = &room.source else { continue };
        let mut amounts: HashMap<(u64, &str), (u64, u64, usize)> = HashMap::new();
        let functions = functions_of_entries(&subgraph.definition, room);
        for (index, entry) in room.file.dma.iter().enumerate() {
            if entry.is_unread {
                continue;
            }
            let pointer = format!("/dma/{index}");
            let object = Object {
                source,
                text: entry.text,
                pointer: &pointer,
            };
            let set = entry
                .queue_name()
                .and_then(|name| subgraph.definition.queue_set(name))
                .and_then(|set| subgraph.definition.queues.get_index(set));
            let context = Context {
                neff,
                subgraph,
                room,
                object,
                hardware,
                rings: set.map_or(1, |(_, set)| set.queues()),
            };
            context.entry(entry, findings);
            let rows = entry
                .descriptors
                .iter()
                .map(|d| d.to.rows().unwrap_or(u64::MAX))
                .fold(0, u64::saturating_add);
            let amount = (entry.descriptors.len() as u64, rows);
            let Some(id) = entry.id else { continue };
            let first = *amounts
                .entry((id, functions[index]))
                .or_insert((amount.0, amount.1, index));
            if (first.0, first.1) != amount {
                let message = format!(
                    "id {id} has {} transfers and {} destination rows here, {} and {} in entry {}",
                    amount.0, amount.1, first.0, first.1, first.2
                );
                findings.report(&rules::DMA_AMOUNT, || object.at("/id"), message);
            }
        }
        undeclared_functions(room, findings);
    }
    for ((name, queue), descriptors) in subgraph
        .definition
        .queues
        .iter()
        .zip(memory::ring_descriptors(subgraph))
    {
        let each = descriptors / queue.queues().max(1);
        if each > MAX_RING_DESCRIPTORS {
            let message = format!(
                "queue set `{name}` puts about {each} descriptors into each ring; it has {}",
                count(queue.queues() as usize, "ring")
            );
            let place = || {
                subgraph
                    .source
                    .place(queue.text, &format!("/dma_queue/{name}"), "")
            };
            findings.report(&rules::RING_LENGTH, place, message);
        }
    }
}

/// Functions are declared by slots. What else such a slot says is not public, so only their absence is reported.
fn undeclared_functions(room: &EngineRoom<'_>, findings: &mut Findings) {
    let stream = Stream::new(room.instructions.map_or(&[][..], |m| m.bytes));
    if stream
        .slots
        .iter()
        .any(|slot| slot.head.opcode == FUNCTION_BEGIN)
    {
        return;
    }
    let mut starts = room
        .file
        .dma
        .iter()
        .enumerate()
        .filter(|(_, e)| e.function_start.as_ref().is_some_and(|f| !f.is_empty()));
    if let (Some((index, first)), Some(source)) = (starts.next(), &room.source) {
        let name = first.function_start.as_deref().unwrap_or_default();
        let message = match starts.count() {
            0 => format!("function `{name}` is named, the instructions declare none"),
            more => format!(
                "function `{name}` and {more} more are named, the instructions declare none"
            ),
        };
        findings.report(
            &rules::DMA_FUNCTION,
            || source.place(first.text, &format!("/dma/{index}"), "/function_start"),
            message,
        );
    }
}

/// Where a descriptor stands.
#[derive(Clone, Copy)]
struct Context<'c, 'a> {
    neff: &'c Neff<'a>,
    subgraph: &'c Subgraph<'a>,
    room: &'c EngineRoom<'a>,
    object: Object<'a, 'c>,
    hardware: Hardware,
    /// Rings of the queue set.
    rings: u64,
}

impl Context<'_, '_> {
    fn report(&self, findings: &mut Findings, rule: &'static Rule, field: &str, message: String) {
        findings.report(rule, || self.object.at(field), message);
    }

    /// Fields that inf1 does not have. One that says what holds without it asks for nothing and is no fault.
    fn not_on_inf1(
        &self,
        at: &str,
        fields: &[(&'static Rule, &str, bool)],
        findings: &mut Findings,
    ) {
        for (rule, name, _) in fields.iter().filter(|(_, _, present)| *present) {
            self.report(
                findings,
                rule,
                &format!("{at}/{name}"),
                format!("{name} is not supported on inf1"),
            );
        }
    }
}
