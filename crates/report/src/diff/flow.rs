//! Where the data of tasks come from.

use super::meaning::hash;
use crate::extents::Extents;
use chipless_model::{Access, BufferId, Direction, IndexVec, Program, Role, TaskId};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// Who makes bytes that a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Maker {
    /// A task of the program.
    Task(TaskId),
    /// The host, or the run before: a buffer of this role, the number of it among those of the role.
    Outside(Role, usize),
}

/// What a task reads of one maker: which bytes of what it made, at which place of the read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) maker: Maker,
    pub(super) places: u64,
}

/// Where the bytes come from that each task reads, and where those go that it writes for the host.
pub(super) struct Flow {
    sources: IndexVec<TaskId, Vec<Source>>,
    /// What a task writes for the host.
    given: IndexVec<TaskId, u64>,
    /// Tasks whose bytes are read, and only as descriptions of tasks. They hold addresses.
    describes: IndexVec<TaskId, bool>,
}

/// Runs of an access that are followed one by one. Of one with more, those that lie nearest are joined.
const RUNS: u64 = 1 << 10;
/// Runs of all accesses together that are followed so.
const ALL_RUNS: u64 = 1 << 22;

/// Bytes of a buffer that were written together: by whom, and where his write began.
#[derive(Clone, Copy)]
struct Written {
    by: TaskId,
    from: u64,
}

impl Flow {
    /// Goes through the tasks in the order of their effects.
    pub(super) fn of(program: &Program<'_>, order: &[TaskId]) -> Flow {
        let numbers = numbers(program);
        let mut budget = ALL_RUNS;
        let mut written: IndexVec<BufferId, Extents<Written>> =
            program.buffers.iter().map(|_| Extents::default()).collect();
        let mut flow = Flow {
            sources: program.tasks.iter().map(|_| Vec::new()).collect(),
            given: program.tasks.iter().map(|_| 0).collect(),
            describes: program.tasks.iter().map(|_| false).collect(),
        };
        // Tasks whose bytes are read as data.
        let mut feeds: IndexVec<TaskId, bool> = program.tasks.iter().map(|_| false).collect();
        for &task in order {
            let mut reads = Reads::default();
            let mut writes = Vec::new();
            let mut given = FxHasher::default();
            program.kernel(task).accesses(&mut |access| {
                let buffer = access.buffer;
                let (base, parts) = parts(program, &access, &mut budget);
                let role = program.buffers[buffer].role;
                let outside = Maker::Outside(role, numbers[buffer]);
                if access.direction == Direction::Write {
                    if role.outlives_run() {
                        (outside, base, &access.pattern).hash(&mut given);
                    }
                    writes.push((buffer, base, parts));
                    return;
                }
                let is_description = access.tensor == Access::DESCRIPTION;
                for part in parts {
                    let mut at = part.start;
                    for (bytes, by) in written[buffer].meeting(part.clone()) {
                        let bytes = bytes.start.max(part.start)..bytes.end.min(part.end);
                        if is_description {
                            flow.describes[by.by] = true;
                        } else {
                            reads.untouched(role, outside, at..bytes.start, base);
                            let maker = Maker::Task(by.by);
                            reads.push(maker, bytes.start - by.from, bytes.clone(), base);
                            feeds[by.by] = true;
                        }
                        at = bytes.end;
                    }
                    if !is_description {
                        reads.untouched(role, outside, at..part.end, base);
                    }
                }
                reads.next_access();
            });
            flow.sources[task] = reads.finish();
            flow.given[task] = given.finish();
            for (buffer, from, parts) in writes {
                for part in parts {
                    written[buffer].put(part, Written { by: task, from }, |_, _| {});
                }
            }
        }
        for (describes, feeds) in flow.describes.iter_mut().zip(&feeds) {
            *describes &= !feeds;
        }
        flow
    }

    pub(super) fn sources(&self, task: TaskId) -> &[Source] {
        &self.sources[task]
    }

    /// What a task writes for the host.
    pub(super) fn given(&self, task: TaskId) -> u64 {
        self.given[task]
    }

    /// Whether a task only brings the descriptions of other tasks.
    pub(super) fn describes(&self, task: TaskId) -> bool {
        self.describes[task]
    }
}

/// The sources of a task while its accesses are looked at.
#[derive(Default)]
struct Reads {
    /// In order of first use, with the hash of the places so far.
    found: Vec<(Maker, FxHasher)>,
    at: FxHashMap<Maker, usize>,
    /// Bytes that may go on: maker, first byte of what it made, first byte of the read, count.
    open: Option<(Maker, u64, u64, u64)>,
}

impl Reads {
    /// Bytes of a maker, from this byte of what it made on.
    fn push(&mut self, maker: Maker, made: u64, bytes: Range<u64>, base: u64) {
        let (read, size) = (bytes.start - base.min(bytes.start), bytes.end - bytes.start);
        match &mut self.open {
            Some((last, from, to, count))
                if *last == maker && *from + *count == made && *to + *count == read =>
            {
                *count += size;
            }
            _ => {
                self.close();
                self.open = Some((maker, made, read, size));
            }
        }
    }

    /// Bytes that no task wrote. What the program never wrote and nobody gave means nothing; constants are compared by content.
    fn untouched(&mut self, role: Role, maker: Maker, bytes: Range<u64>, base: u64) {
        if bytes.start < bytes.end && (role == Role::Input || role.outlives_run()) {
            self.push(maker, bytes.start, bytes, base);
        }
    }

    fn close(&mut self) {
        if let Some((maker, made, read, count)) = self.open.take() {
            let at = *self.at.entry(maker).or_insert_with(|| {
                self.found.push((maker, FxHasher::default()));
                self.found.len() - 1
            });
            (made, read, count).hash(&mut self.found[at].1);
        }
    }

    fn next_access(&mut self) {
        self.close();
        for (_, hasher) in &mut self.found {
            hasher.write_u8(b'/');
        }
    }

    fn finish(mut self) -> Vec<Source> {
        self.close();
        let sources = self.found.into_iter();
        sources
            .map(|(maker, hasher)| Source {
                maker,
                places: hasher.finish(),
            })
            .collect()
    }
}

/// The bytes of an access inside its buffer, and the first of them.
fn parts(program: &Program<'_>, access: &Access, budget: &mut u64) -> (u64, Vec<Range<u64>>) {
    let (pattern, size) = (&access.pattern, program.buffers[access.buffer].size);
    let most = RUNS.min(*budget);
    if pattern.count() <= most {
        *budget -= pattern.count();
    }
    (pattern.inside(size).start, pattern.ranges(size, most))
}

/// What a maker has made, in words.
pub(super) fn named(program: &Program<'_>, maker: Maker) -> String {
    match maker {
        Maker::Task(task) => format!("what {} writes", program.task_name(task)),
        Maker::Outside(role, number) => {
            let mut of_role = program.buffers.iter().filter(|buffer| buffer.role == role);
            let buffer = of_role.nth(number);
            buffer.map_or_else(String::new, |buffer| {
                format!("{} {}", role.name(), buffer.name)
            })
        }
    }
}

/// Number of each buffer among those of its role.
fn numbers(program: &Program<'_>) -> IndexVec<BufferId, usize> {
    let mut next: FxHashMap<Role, usize> = FxHashMap::default();
    let number = |role| {
        let next = next.entry(role).or_default();
        *next += 1;
        *next - 1
    };
    program.buffers.iter().map(|b| b.role).map(number).collect()
}

/// What a task reads of constants: the bytes, in the order in which it reads them.
pub(super) fn constants(program: &Program<'_>, task: TaskId) -> Vec<(BufferId, Vec<u8>)> {
    let mut read = Vec::new();
    program.kernel(task).accesses(&mut |access| {
        let buffer = &program.buffers[access.buffer];
        let is_constant = buffer.role == Role::Constant
            && access.direction == Direction::Read
            && access.tensor != Access::DESCRIPTION;
        if is_constant && access.pattern.fits(buffer.size) {
            let run = access.pattern.run as usize;
            let mut bytes = Vec::new();
            for at in access.pattern.runs() {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let held = buffer.initial.get(start..).unwrap_or_default();
                bytes.extend_from_slice(&held[..run.min(held.len())]);
                // Broadcasts repeat the same bytes: a bound for what they may say.
                if bytes.len() > 1 << 28 {
                    break;
                }
            }
            read.push((access.buffer, bytes));
        }
    });
    read
}

/// A number for what a task reads of constants.
pub(super) fn constant_hash(program: &Program<'_>, task: TaskId) -> u64 {
    let read = constants(program, task);
    let bytes: Vec<&[u8]> = read.iter().map(|(_, bytes)| &**bytes).collect();
    hash(&bytes)
}
