//! For the person with wrong numbers: where bytes come from, which task was the first to write a NaN or an infinity, and what was clipped.

use crate::timeline::Timeline;
use chipless_model::{
    Access, BufferId, Certainty, Direction, ElementType, Kernel, Pattern, Program, Storage, TaskId,
};

/// The task that computed a byte, found by going back from its last writer through tasks that only move bytes. `None` where the
/// byte is there from the beginning, or where data decide whether a task wrote it.
pub fn origin(
    program: &Program<'_>,
    timeline: &Timeline,
    buffer: BufferId,
    byte: u64,
) -> Option<TaskId> {
    let (mut buffer, mut byte) = (buffer, byte);
    for task in timeline.order.iter().rev() {
        let kernel = program.kernel(*task);
        match writes(kernel, buffer, byte) {
            None => {}
            Some(Certainty::May) => return None,
            Some(Certainty::Exact) => match kernel.source_of(buffer, byte) {
                Some(source) => (buffer, byte) = source,
                None => return Some(*task),
            },
        }
    }
    None
}

/// Whether a task writes a byte, and whether data decide.
fn writes(kernel: &dyn Kernel, buffer: BufferId, byte: u64) -> Option<Certainty> {
    let mut found = None;
    kernel.accesses(&mut |access| {
        let touches = access.buffer == buffer
            && access.direction == Direction::Write
            && access.pattern.extent().contains(&i128::from(byte))
            && access.pattern.position(byte).is_some();
        if touches && found != Some(Certainty::Exact) {
            found = Some(access.certainty);
        }
    });
    found
}

/// A NaN or an infinity that a task wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonfinite {
    /// The task.
    pub task: TaskId,
    /// Where it wrote.
    pub buffer: BufferId,
    /// The first byte of the element.
    pub byte: u64,
    /// The type of the element.
    pub element: ElementType,
}

/// Which numbers that are not finite are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonfiniteKind {
    /// NaN and the infinities.
    Any,
    /// NaN.
    Nan,
    /// The infinities.
    Infinity,
}

impl NonfiniteKind {
    /// Whether the bits of an element that is not finite are of this kind.
    fn includes(self, element: ElementType, mask: u64, bits: u64) -> bool {
        // All that is neither mask nor sign: the fraction. E4M3FN has no infinities.
        let fraction = bits & !mask & !(1 << (element.bits() - 1));
        let is_nan = fraction != 0 || element == ElementType::Float8E4M3Fn;
        match self {
            NonfiniteKind::Any => true,
            NonfiniteKind::Nan => is_nan,
            NonfiniteKind::Infinity => !is_nan,
        }
    }
}

/// The first NaN or infinity among the elements that a task has just written. Their types are those that the kernel names, and
/// those of the program's inputs and outputs.
pub fn nonfinite(program: &Program<'_>, task: TaskId, storage: &Storage<'_>) -> Option<Nonfinite> {
    nonfinite_of(program, task, storage, NonfiniteKind::Any)
}

/// The first of one kind.
pub fn nonfinite_of(
    program: &Program<'_>,
    task: TaskId,
    storage: &Storage<'_>,
    kind: NonfiniteKind,
) -> Option<Nonfinite> {
    results(program, task).into_iter().find_map(|result| {
        let Written {
            buffer, element, ..
        } = result;
        let byte = find(storage.bytes(buffer), &result.pattern, element, kind)?;
        Some(Nonfinite {
            task,
            buffer,
            byte,
            element,
        })
    })
}

/// How many of the elements that a task has just computed are the float16 of the largest magnitude, as what is larger becomes where
/// conversions clip. What the task only moves does not count.
pub fn clipped(program: &Program<'_>, task: TaskId, storage: &Storage<'_>) -> u64 {
    const LARGEST: [u16; 2] = [0x7bff, 0xfbff];
    let mut clipped = 0;
    for result in results(program, task) {
        let (bytes, pattern) = (storage.bytes(result.buffer), &result.pattern);
        let is_half = result.element == ElementType::Float16 && pattern.run.is_multiple_of(2);
        if result.is_moved || !is_half || !pattern.fits(bytes.len() as u64) {
            continue;
        }
        for at in pattern.runs() {
            let run = &bytes[at as usize..][..pattern.run as usize];
            let (halves, _) = run.as_chunks();
            let halves = halves.iter().map(|bytes| u16::from_le_bytes(*bytes));
            clipped += halves.filter(|bits| LARGEST.contains(bits)).count() as u64;
        }
    }
    clipped
}

/// Elements that a task writes.
struct Written {
    buffer: BufferId,
    pattern: Pattern,
    element: ElementType,
    /// Whether they are moved, and not computed.
    is_moved: bool,
}

/// What a task writes, as far as its type is known.
fn results(program: &Program<'_>, task: TaskId) -> Vec<Written> {
    let kernel = program.kernel(task);
    let mut results = Vec::new();
    kernel.results(&mut |access, element| {
        let is_moved = kernel
            .source_of(access.buffer, access.pattern.offset)
            .is_some();
        results.push(Written {
            buffer: access.buffer,
            pattern: access.pattern,
            element,
            is_moved,
        });
    });
    if !results.is_empty() {
        return results;
    }
    let mut accesses: Vec<Access> = Vec::new();
    kernel.accesses(&mut |access| accesses.push(access));
    let written = |a: &Access| a.direction == Direction::Write && a.certainty == Certainty::Exact;
    for access in accesses.into_iter().filter(written) {
        // Bytes that are moved keep the type that they have where they come from.
        let source = kernel.source_of(access.buffer, access.pattern.offset);
        let known = kernel.tensor(&access).map(|(element, _)| element);
        let element = known
            .or_else(|| port_type(program, access.buffer))
            .or_else(|| port_type(program, source.map(|(buffer, _)| buffer)?));
        if let Some(element) = element {
            results.push(Written {
                buffer: access.buffer,
                pattern: access.pattern,
                element,
                is_moved: source.is_some(),
            });
        }
    }
    results
}

/// The element type of an input or output that is this buffer.
fn port_type(program: &Program<'_>, buffer: BufferId) -> Option<ElementType> {
    let interface = &program.interface;
    let ports = interface.inputs.iter().chain(&interface.outputs);
    ports
        .filter(|port| port.buffer == buffer)
        .map(|port| port.element)
        .next()
}

/// The first byte of an element that is NaN or infinite.
pub fn nonfinite_element(bytes: &[u8], pattern: &Pattern, element: ElementType) -> Option<u64> {
    find(bytes, pattern, element, NonfiniteKind::Any)
}

fn find(bytes: &[u8], pattern: &Pattern, element: ElementType, kind: NonfiniteKind) -> Option<u64> {
    let (mask, size) = (element.nonfinite_bits()?, element.bits() / 8);
    if !pattern.fits(bytes.len() as u64) || !pattern.run.is_multiple_of(size) {
        return None;
    }
    let size = size as usize;
    pattern.runs().find_map(|at| {
        let run = &bytes[at as usize..][..pattern.run as usize];
        let is_nonfinite = |bytes: &[u8]| {
            let bits = bytes
                .iter()
                .rev()
                .fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            bits & mask == mask && kind.includes(element, mask, bits)
        };
        let place = run.chunks_exact(size).position(is_nonfinite)?;
        Some(at + (place * size) as u64)
    })
}
