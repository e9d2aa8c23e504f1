//! Where the data of tasks come from.

use super::{Side, is_outside};
use crate::extents::Extents;
use chipless_model::{Access, BufferId, Direction, IndexVec, Program, Role, TaskId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The sources of what each task reads.
pub(super) struct Flow {
    reads: FxHashMap<TaskId, Vec<Source>>,
}

/// A part of what a task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// What another task wrote, from this byte of its write.
    Task(TaskId, i128),
    /// A buffer of the interface: role, its number among those of the role, first byte.
    Outside(Role, usize, i128),
}

impl Flow {
    pub(super) fn of(side: Side<'_, '_>) -> Flow {
        let Side { program, timeline } = side;
        let numbers = numbers(program);
        let mut written: IndexVec<BufferId, Extents<(TaskId, u64)>> =
            program.buffers.iter().map(|_| Extents::default()).collect();
        let mut reads = FxHashMap::default();
        for &task in &timeline.order {
            let (mut sources, mut writes) = (Vec::new(), Vec::new());
            program.kernel(task).accesses(&mut |access| {
                let extent = inside(program, &access);
                match access.direction {
                    Direction::Write => writes.push((access.buffer, extent)),
                    Direction::Read => {
                        let role = program.buffers[access.buffer].role;
                        let start = i128::from(extent.start);
                        let mut met = false;
                        for (_, (task, from)) in written[access.buffer].meeting(extent) {
                            sources.push(Source::Task(*task, start - i128::from(*from)));
                            met = true;
                        }
                        if !met && is_outside(role) {
                            sources.push(Source::Outside(role, numbers[access.buffer], start));
                        }
                    }
                }
            });
            sources.dedup();
            reads.insert(task, sources);
            for (buffer, extent) in writes.into_iter().filter(|(_, extent)| !extent.is_empty()) {
                let from = extent.start;
                written[buffer].put(extent, (task, from), |_, _| {});
            }
        }
        Flow { reads }
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

fn inside(program: &Program<'_>, access: &Access) -> Range<u64> {
    let size = program.buffers[access.buffer].size;
    let extent = access.pattern.extent();
    let cut = |at: i128| u64::try_from(at.max(0)).unwrap_or(u64::MAX).min(size);
    cut(extent.start)..cut(extent.end)
}

/// Whether two matched tasks read the same parts of what matched tasks wrote, and write the same parts of the interface.
pub(super) fn same(
    a: &Flow,
    x: TaskId,
    b: &Flow,
    y: TaskId,
    partner: &FxHashMap<TaskId, TaskId>,
) -> bool {
    let (Some(read_a), Some(read_b)) = (a.reads.get(&x), b.reads.get(&y)) else {
        return true;
    };
    read_a.len() == read_b.len()
        && read_a.iter().zip(read_b).all(|pair| match pair {
            (Source::Task(s, i), Source::Task(t, j)) => partner.get(s) == Some(t) && i == j,
            (s, t) => s == t,
        })
}

/// Constants that two matched tasks read and that hold other bytes, with how many bytes differ.
pub(super) fn constants(
    a: &Program<'_>,
    x: TaskId,
    b: &Program<'_>,
    y: TaskId,
) -> Vec<((BufferId, BufferId), u64)> {
    let (of_a, of_b) = (constant_reads(a, x), constant_reads(b, y));
    let mut found = Vec::new();
    for (p, q) in of_a.iter().zip(&of_b) {
        if p.pattern.bytes() != q.pattern.bytes() || p.pattern.run != q.pattern.run {
            continue;
        }
        let bytes = |program: &Program<'_>, access: &Access, at: u64| {
            let initial = &program.buffers[access.buffer].initial;
            let start = usize::try_from(at).unwrap_or(usize::MAX).min(initial.len());
            let end = start
                .saturating_add(access.pattern.run as usize)
                .min(initial.len());
            initial[start..end].to_vec()
        };
        let mut changed = 0u64;
        for (i, j) in p.pattern.runs().zip(q.pattern.runs()) {
            let (i, j) = (bytes(a, p, i), bytes(b, q, j));
            changed += i.iter().zip(&j).filter(|(i, j)| i != j).count() as u64;
        }
        if changed > 0 {
            found.push(((p.buffer, q.buffer), changed));
        }
    }
    found
}

fn constant_reads(program: &Program<'_>, task: TaskId) -> Vec<Access> {
    let mut reads = Vec::new();
    program.kernel(task).accesses(&mut |access| {
        let buffer = &program.buffers[access.buffer];
        let constant = buffer.role == Role::Constant && access.direction == Direction::Read;
        if constant && access.pattern.fits(buffer.size) {
            reads.push(access);
        }
    });
    reads
}

/// Whether two tasks that mean the same stand elsewhere: other addresses, another queue or place in it.
pub(super) fn moved(a: &Program<'_>, x: TaskId, b: &Program<'_>, y: TaskId) -> bool {
    let places = |program: &Program<'_>, task: TaskId| {
        let mut places = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            let buffer = &program.buffers[access.buffer];
            places.push(
                buffer
                    .address
                    .unwrap_or(0)
                    .wrapping_add(access.pattern.offset),
            );
        });
        places
    };
    let (t, u) = (&a.tasks[x], &b.tasks[y]);
    a.queues[t.queue].name != b.queues[u.queue].name
        || t.index != u.index
        || places(a, x) != places(b, y)
}
