//! Accesses that leave what they belong to: the buffer, or the tensor that the host shares.

use crate::access::{Strided, range};
use crate::findings::Findings;
use crate::footprint::{Accesses, Use};
use crate::rules;
use chipless_model::{BufferId, Certainty, Direction, IndexVec, Program};

/// Reports accesses outside their buffers, of all tasks.
pub(crate) fn buffers(program: &Program<'_>, accesses: &Accesses, findings: &mut Findings) {
    for entry in accesses.iter() {
        let footprint = accesses.footprint_of(entry);
        if footprint.fits {
            continue;
        }
        let size = program.buffers[footprint.buffer].size;
        for pattern in accesses.patterns(footprint).filter(|p| !p.fits(size)) {
            let (low, high) = pattern.extent();
            if entry.certainty == Certainty::Exact || low >= i128::from(size) || high <= 0 {
                outside_buffer(program, entry, footprint.buffer, pattern, findings);
            }
        }
    }
}

fn outside_buffer(
    program: &Program<'_>,
    entry: &Use,
    buffer: BufferId,
    pattern: Strided<'_>,
    findings: &mut Findings,
) {
    let queue = program.tasks[entry.task].queue;
    findings.add(
        &rules::OUT_OF_BOUNDS,
        (queue.raw(), buffer.raw(), entry.direction as u32),
        || {
            let (low, high) = pattern.extent();
            let buffer = &program.buffers[buffer];
            let beyond = if low < 0 {
                format!("{} bytes before its start", -low)
            } else {
                format!("{} bytes beyond its end", high - i128::from(buffer.size))
            };
            let message = format!(
                "{} {} {} {}; the buffer has {:#x} bytes, so that it reaches {beyond}",
                program.task_name(entry.task),
                verb(entry.direction),
                buffer.name,
                signed_range(low, high),
                buffer.size
            );
            rules::OUT_OF_BOUNDS.at(program.place(entry.task), message)
        },
    );
}

/// Reports accesses that lie in the buffer of an input or output, and beyond the host's tensor.
pub(crate) fn tensors(program: &Program<'_>, accesses: &Accesses, findings: &mut Findings) {
    let mut sizes: IndexVec<BufferId, u64> = program.buffers.iter().map(|_| u64::MAX).collect();
    let ports = || {
        program
            .interface
            .inputs
            .iter()
            .chain(&program.interface.outputs)
            .filter(|p| p.buffer.index() < program.buffers.len())
    };
    ports().for_each(|port| sizes[port.buffer] = 0);
    ports().for_each(|port| {
        sizes[port.buffer] = sizes[port.buffer].max(port.bytes().unwrap_or(u64::MAX));
    });
    for entry in accesses.iter().filter(|e| e.certainty == Certainty::Exact) {
        let footprint = accesses.footprint_of(entry);
        let size = sizes[footprint.buffer];
        let (low, high) = footprint.span;
        if high <= size {
            continue;
        }
        let queue = program.tasks[entry.task].queue;
        findings.add(&rules::OUT_OF_BOUNDS, (queue.raw(), footprint.buffer.raw(), 2 + entry.direction as u32), || {
            let message = format!(
                "{} {} {} {}; the tensor that the host shares there has {size:#x} bytes, {} fewer",
                program.task_name(entry.task),
                verb(entry.direction),
                program.buffers[footprint.buffer].name,
                range(low, high),
                high - size,
            );
            rules::OUT_OF_BOUNDS.at(program.place(entry.task), message)
        });
    }
}

pub(crate) fn signed_range(low: i128, high: i128) -> String {
    if low < 0 {
        format!("from {low} to {high}")
    } else {
        range(low as u128, high as u128)
    }
}

/// What a task does to bytes.
pub(crate) fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}
