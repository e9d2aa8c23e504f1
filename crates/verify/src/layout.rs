//! Where buffers lie: inside their memories, aligned, and apart from each other.

use crate::findings::Findings;
use crate::rules;
use chipless_model::{Buffer, BufferId, Place, Program, Rule};

/// Reports buffers that their memory cannot hold where they are said to be.
pub(crate) fn check(program: &Program<'_>, findings: &mut Findings) {
    let mut placed: Vec<(BufferId, u64)> = Vec::with_capacity(program.buffers.len());
    for (id, buffer) in program.buffers.iter_enumerated() {
        let memory = &program.memories[buffer.memory];
        // Before allocation there is nothing to be said.
        let Some(address) = buffer.address else {
            continue;
        };
        let is_inside = address
            .checked_add(buffer.size)
            .is_some_and(|end| end <= memory.size);
        if !is_inside {
            add(findings, &rules::BUFFER_BEYOND_MEMORY, id, buffer, || {
                format!(
                    "{} takes {} bytes at {address:#x} of {}, {} of {} bytes",
                    buffer.name,
                    buffer.size,
                    memory.name,
                    memory.kind.name(),
                    memory.size
                )
            });
        }
        if !address.is_multiple_of(buffer.alignment.max(1)) {
            add(findings, &rules::BUFFER_MISALIGNED, id, buffer, || {
                format!(
                    "{} lies at {address:#x} of {}; its file asks for a multiple of {}",
                    buffer.name, memory.name, buffer.alignment
                )
            });
        }
        if buffer.size > 0 {
            placed.push((id, address));
        }
    }
    placed.sort_unstable_by_key(|(id, address)| (program.buffers[*id].memory, *address, *id));
    // The buffer so far that reaches furthest into the memory at hand.
    let mut furthest: Option<(BufferId, u64)> = None;
    for (id, address) in placed {
        let buffer = &program.buffers[id];
        let end = address.saturating_add(buffer.size);
        match furthest {
            Some((before, reached))
                if program.buffers[before].memory == buffer.memory && address < reached =>
            {
                findings.add(&rules::BUFFER_OVERLAP, (id.raw(), 0, 0), || {
                    let other = &program.buffers[before];
                    let message = format!(
                        "{} at {address:#x} of {} begins before {} ends, at {reached:#x}",
                        buffer.name, program.memories[buffer.memory].name, other.name
                    );
                    rules::BUFFER_OVERLAP
                        .at(place(buffer), message)
                        .with(place(other), "the buffer that it shares bytes with")
                });
                if end > reached {
                    furthest = Some((id, end));
                }
            }
            _ => furthest = Some((id, end)),
        }
    }
}

fn add(
    findings: &mut Findings,
    rule: &'static Rule,
    id: BufferId,
    buffer: &Buffer<'_>,
    message: impl FnOnce() -> String,
) {
    findings.add(rule, (id.raw(), 0, 0), || rule.at(place(buffer), message()));
}

fn place(buffer: &Buffer<'_>) -> Place {
    Place::file().in_part(buffer.name.clone())
}
