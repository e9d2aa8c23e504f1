//! Which bytes off the chip the tasks of a program touch, as addresses.
//!
//! Buffers in memories off the chip stand one behind the other, from 0 on, each with the alignment that its own address has. What tasks touch
//! are patterns: a few numbers each, however many bytes they reach.

use chipless_model::{
    BufferId, Certainty, IndexVec, Loop, MemoryKind, Pattern, Program, Span, TaskId,
};

/// Largest page: buffers keep their place in it.
const ALIGNMENT: u64 = 1 << 16;
/// A program has no more addresses; beyond, they come again.
const SPACE: u64 = 1 << 46;
/// A pattern of more runs is taken for one run of as many bytes.
const RUNS: u64 = 1 << 20;

/// A pattern at an address.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    run: u64,
    loops: Span,
    /// Bytes that are touched at most: data decides which of a bound are.
    most: u64,
}

/// What the tasks of a program touch off the chip.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    tasks: IndexVec<TaskId, Span>,
    pieces: Vec<Piece>,
    loops: Vec<Loop>,
    size: u64,
}

impl Touches {
    /// Asks the tasks of a program.
    pub fn of(program: &Program<'_>) -> Touches {
        let (places, size) = places(program);
        let mut touches = Touches {
            size,
            ..Touches::default()
        };
        for (task, of) in program.tasks.iter_enumerated() {
            let first = touches.pieces.len() as u32;
            let demanded = program.demands(task).iter().map(|d| d.bytes).max();
            program.kernels[of.kernel].accesses(&mut |access| {
                let Some(base) = places[access.buffer] else {
                    return;
                };
                let most = match (access.certainty, demanded) {
                    (Certainty::May, Some(bytes)) if bytes > 0 => bytes,
                    _ => u64::MAX,
                };
                if access.pattern.fits(program.buffers[access.buffer].size) {
                    touches.add(base, &access.pattern, most);
                } else {
                    // A bound that reaches further than the buffer.
                    let all = Pattern::contiguous(0, program.buffers[access.buffer].size);
                    touches.add(base, &all, most);
                }
            });
            touches.tasks.push(Span {
                start: first,
                len: touches.pieces.len() as u32 - first,
            });
        }
        touches
    }

    fn add(&mut self, base: u64, pattern: &Pattern, most: u64) {
        let extent = pattern.extent();
        if extent.is_empty() {
            return;
        }
        let (start, run, loops) = if pattern.count() > RUNS {
            let reach = (extent.end - extent.start) as u64;
            let bytes = pattern.bytes().unwrap_or(u64::MAX);
            (extent.start as u64, bytes.min(reach), &[][..])
        } else {
            (pattern.offset, pattern.run, &pattern.loops[..])
        };
        let loops = Span::push(&mut self.loops, loops.iter().copied());
        self.pieces.push(Piece {
            start: base + start,
            run,
            loops,
            most,
        });
    }

    /// Bytes of address space that the program takes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether a task touches anything off the chip.
    pub fn any(&self, task: TaskId) -> bool {
        self.tasks[task].len > 0
    }

    /// The ranges that a task touches, in its order, of a program that begins at this address: first address and bytes. Ranges that follow
    /// each other are one.
    pub fn each(&self, task: TaskId, base: u64, mut visit: impl FnMut(u64, u64)) {
        let mut open: Option<(u64, u64)> = None;
        for piece in self.tasks[task].of(&self.pieces) {
            let pattern = Pattern {
                offset: piece.start,
                run: piece.run,
                loops: piece.loops.of(&self.loops).into(),
            };
            let mut left = piece.most;
            for start in pattern.runs() {
                let bytes = piece.run.min(left);
                left -= bytes;
                match &mut open {
                    Some((first, length)) if *first + *length == start => *length += bytes,
                    _ => {
                        if let Some((first, length)) = open.replace((start, bytes)) {
                            visit(base + first, length);
                        }
                    }
                }
                if left == 0 {
                    break;
                }
            }
        }
        if let Some((first, length)) = open {
            visit(base + first, length);
        }
    }
}

/// Where buffers off the chip stand, and how far they reach together.
fn places(program: &Program<'_>) -> (IndexVec<BufferId, Option<u64>>, u64) {
    let is_off_chip = |buffer: &BufferId| {
        let kind = program.memories[program.buffers[*buffer].memory].kind;
        matches!(kind, MemoryKind::Dram | MemoryKind::Hbm)
    };
    let mut buffers: Vec<BufferId> = program.buffers.indices().filter(is_off_chip).collect();
    buffers.sort_by_key(|id| {
        let buffer = &program.buffers[*id];
        (buffer.memory, buffer.address.is_none(), buffer.address, *id)
    });
    let mut places: IndexVec<BufferId, Option<u64>> =
        program.buffers.iter().map(|_| None).collect();
    let (mut next, mut most) = (0u64, 0u64);
    for id in buffers {
        let buffer = &program.buffers[id];
        let within = buffer.address.unwrap_or(0) % ALIGNMENT;
        let gap = within.wrapping_sub(next) % ALIGNMENT;
        let size = buffer.size.min(SPACE);
        let start = if next + gap + size > SPACE {
            within
        } else {
            next + gap
        };
        places[id] = Some(start);
        next = start + size;
        most = most.max(next);
    }
    (places, most)
}
