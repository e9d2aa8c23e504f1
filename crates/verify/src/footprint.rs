//! Which bytes each task touches. A *footprint* is a set of bytes of one buffer; tasks that touch the same bytes share
//! one, so that what it costs to look at its patterns is paid once.

use crate::access::{Strided, union};
use chipless_model::{Access, BufferId, Certainty, Direction, Loop, Pattern, Program, TaskId};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Runs that are looked at to find out whether a footprint has holes.
const RUNS: u64 = 1 << 12;

/// A set of bytes of one buffer.
#[derive(Debug)]
pub(crate) struct Footprint {
    pub(crate) buffer: BufferId,
    /// Whether all of it lies inside the buffer.
    pub(crate) fits: bool,
    /// Its patterns in their table.
    patterns: (u32, u32),
    /// What its patterns span, those joined that touch; patterns that leave the buffer do not count. In ascending order.
    pub(crate) extents: SmallVec<[Extent; 1]>,
}

impl Footprint {
    /// First byte and one past the last of what fits.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.extents.first().map_or(0, |e| e.low), self.extents.last().map_or(0, |e| e.high))
    }
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// Whether every byte of it is touched.
    pub(crate) whole: bool,
}

/// All accesses of one task to one buffer in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) task: TaskId,
    pub(crate) footprint: u32,
    pub(crate) direction: Direction,
    pub(crate) certainty: Certainty,
}

/// A pattern in the table: offset, run, and which loops.
#[derive(Clone, Copy, Debug)]
struct Flat {
    offset: u64,
    run: u64,
    loops: (u32, u32),
}

/// Every access of a program, task by task; of each task reads come before writes.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    uses: Vec<Use>,
    /// First use of each task, and one past the last of all.
    first: Vec<u32>,
    footprints: Vec<Footprint>,
    patterns: Vec<Flat>,
    loops: Vec<Loop>,
    /// Whether any task writes a buffer.
    written: Vec<bool>,
}

impl Accesses {
    pub(crate) fn collect(program: &Program<'_>) -> Accesses {
        let mut accesses = Accesses { written: vec![false; program.buffers.len()], ..Accesses::default() };
        accesses.first.reserve(program.tasks.len() + 1);
        let mut known: HashTable<u32> = HashTable::new();
        let mut list: Vec<Access> = Vec::new();
        for task in program.tasks.indices() {
            accesses.first.push(accesses.uses.len() as u32);
            program.kernel(task).accesses(&mut |access| {
                if access.buffer.index() < program.buffers.len() && !access.pattern.extent().is_empty() {
                    list.push(access);
                }
            });
            let kind = |a: &Access| (a.direction, a.buffer, a.certainty == Certainty::May);
            if !list.is_sorted_by_key(kind) {
                list.sort_by_key(kind);
            }
            for group in list.chunk_by(|a, b| kind(a) == kind(b)) {
                let Access { buffer, direction, certainty, .. } = group[0];
                accesses.written[buffer.index()] |= direction == Direction::Write;
                let footprint = accesses.footprint(group, program.buffers[buffer].size, &mut known);
                accesses.uses.push(Use { task, footprint, direction, certainty });
            }
            list.clear();
        }
        accesses.first.push(accesses.uses.len() as u32);
        accesses
    }

    /// The footprint of accesses to one buffer.
    fn footprint(&mut self, group: &[Access], size: u64, known: &mut HashTable<u32>) -> u32 {
        let buffer = group[0].buffer;
        let hash = hash(buffer, group.iter().map(|a| Strided::of(&a.pattern)));
        let is_same = |id: &u32| {
            let footprint = &self.footprints[*id as usize];
            footprint.buffer == buffer && self.patterns(footprint).eq(group.iter().map(|a| Strided::of(&a.pattern)))
        };
        if let Some(id) = known.find(hash, is_same) {
            return *id;
        }
        let start = self.patterns.len() as u32;
        for Access { pattern, .. } in group {
            let first = self.loops.len() as u32;
            self.loops.extend(pattern.loops.iter().copied());
            self.patterns.push(Flat { offset: pattern.offset, run: pattern.run, loops: (first, self.loops.len() as u32) });
        }
        let fitting: SmallVec<[&Pattern; 8]> = group.iter().map(|a| &a.pattern).filter(|p| p.fits(size)).collect();
        let footprint = Footprint {
            buffer,
            fits: fitting.len() == group.len(),
            patterns: (start, self.patterns.len() as u32),
            extents: extents(&fitting),
        };
        let id = self.footprints.len() as u32;
        self.footprints.push(footprint);
        known.insert_unique(hash, id, |id| {
            let footprint = &self.footprints[*id as usize];
            self::hash(footprint.buffer, self.patterns(footprint))
        });
        id
    }

    /// Whether any task writes a buffer.
    pub(crate) fn is_written(&self, buffer: BufferId) -> bool {
        self.written[buffer.index()]
    }

    /// Indices of a task's uses.
    pub(crate) fn of(&self, task: TaskId) -> std::ops::Range<u32> {
        self.first[task.index()]..self.first[task.index() + 1]
    }

    pub(crate) fn entry(&self, index: u32) -> &Use {
        &self.uses[index as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter()
    }

    pub(crate) fn footprints(&self) -> usize {
        self.footprints.len()
    }

    pub(crate) fn footprint_of(&self, entry: &Use) -> &Footprint {
        &self.footprints[entry.footprint as usize]
    }

    /// The patterns of a footprint, whether they fit or not.
    pub(crate) fn patterns(&self, footprint: &Footprint) -> impl Iterator<Item = Strided<'_>> + Clone {
        let (start, end) = footprint.patterns;
        self.patterns[start as usize..end as usize].iter().map(|flat| Strided {
            offset: flat.offset,
            run: flat.run,
            loops: &self.loops[flat.loops.0 as usize..flat.loops.1 as usize],
        })
    }

    /// The patterns of a use that lie inside its buffer of `size` bytes.
    pub(crate) fn fitting(&self, footprint: &Footprint, size: u64) -> impl Iterator<Item = Strided<'_>> + Clone {
        self.patterns(footprint).filter(move |p| p.fits(size))
    }
}

fn hash<'a>(buffer: BufferId, patterns: impl Iterator<Item = Strided<'a>>) -> u64 {
    let mut hasher = FxHasher::default();
    buffer.raw().hash(&mut hasher);
    for pattern in patterns {
        (pattern.offset, pattern.run, pattern.loops).hash(&mut hasher);
    }
    hasher.finish()
}

/// What patterns span, those joined that touch or overlap.
fn extents(patterns: &[&Pattern]) -> SmallVec<[Extent; 1]> {
    let mut spans: SmallVec<[(u64, u64, Strided<'_>); 8]> = patterns
        .iter()
        .map(|pattern| {
            let pattern = Strided::of(pattern);
            let (low, high) = pattern.extent();
            (low as u64, high as u64, pattern)
        })
        .collect();
    if !spans.is_sorted_by_key(|span| span.0) {
        spans.sort_by_key(|span| span.0);
    }
    let mut extents = SmallVec::new();
    let mut rest = &spans[..];
    while let Some(&(low, mut high, _)) = rest.first() {
        let mut count = 1;
        while let Some(next) = rest.get(count).filter(|next| next.0 <= high) {
            high = high.max(next.1);
            count += 1;
        }
        let (joined, others) = rest.split_at(count);
        let parts = joined.iter().map(|span| span.2);
        let enough = || parts.clone().fold(0u64, |n, p| n.saturating_add(p.bytes())) >= high - low;
        let whole = parts.clone().all(|p| p.is_contiguous()) || (enough() && union(parts.clone(), RUNS).is_some_and(|u| u.len() == 1));
        extents.push(Extent { low, high, whole });
        rest = others;
    }
    extents
}
