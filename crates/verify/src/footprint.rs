//! Which bytes each task touches. A *footprint* is a set of bytes of one buffer; tasks that touch the same bytes share
//! one, so that what it costs to look at its patterns is paid once.
//!
//! Memories with partitions are walked alike in all of them: nearly every access is a loop over partitions around a few columns of
//! each, and the spans of any two of them overlap. Such a buffer has a *pitch*, and is looked at as rows of so many
//! bytes: an access is a box of rows and columns. Other buffers are one row.

use crate::access::{Strided, union};
use chipless_model::{
    Access, BufferId, Certainty, Direction, IndexVec, KernelId, Loop, Program, Swizzle, TaskId,
};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Runs that are looked at to find out whether a footprint has holes.
const RUNS: u64 = 1 << 12;

/// Footprints of more pieces have pieces with holes joined, if no more than `GAP` bytes are between them: slices of channels, pixel after pixel.
/// Whether two accesses have bytes in common is decided by their patterns, not by what these span.
const PIECES: usize = 4;
const GAP: u64 = 1 << 10;

/// A set of bytes of one buffer.
#[derive(Debug)]
pub(crate) struct Footprint {
    pub(crate) buffer: BufferId,
    /// Bytes of the buffer, and whether all of the footprint lies among them.
    size: u64,
    pub(crate) fits: bool,
    /// Its patterns in their table.
    patterns: (u32, u32),
    /// First byte and one past the last of the patterns that lie inside the buffer.
    pub(crate) span: (u64, u64),
    /// What these patterns span, those joined that touch.
    pub(crate) extents: SmallVec<[Extent; 1]>,
}

/// Columns of some rows of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First row and one past the last.
    pub(crate) rows: (u32, u32),
    /// First column and one past the last.
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// Whether every byte of it is touched.
    pub(crate) whole: bool,
}

impl Extent {
    /// The bytes of each row, in a buffer of this pitch.
    pub(crate) fn ranges(self, pitch: u64) -> impl Iterator<Item = (u64, u64)> {
        (self.rows.0..self.rows.1).map(move |row| {
            let start = u64::from(row).saturating_mul(pitch);
            (
                start.saturating_add(self.low),
                start.saturating_add(self.high),
            )
        })
    }
}

/// A pattern as a box of rows and columns: which rows, whether it has all of them, and what it touches of each.
struct Boxed<'a> {
    rows: (u32, u32),
    dense: bool,
    low: u64,
    high: u64,
    /// Bytes of one row that it enumerates, repeats counted.
    bytes: u64,
    pattern: Strided<'a>,
}

impl<'a> Boxed<'a> {
    /// The box of a pattern that lies inside its buffer; `None` where its columns go on from row to row, or are turned.
    fn new(pattern: Strided<'a>, pitch: u64) -> Option<Boxed<'a>> {
        let (first, end) = pattern.extent();
        if pitch == u64::MAX {
            let counts = pattern.loops.iter().map(|l| l.count);
            return Some(Boxed {
                rows: (0, 1),
                dense: true,
                low: first as u64,
                high: end as u64,
                bytes: counts.fold(pattern.run, u64::saturating_mul),
                pattern,
            });
        }
        if !pattern.swizzle.is_off() {
            return None;
        }
        let (mut reach, mut bytes, mut dense, mut over_rows) = (0, pattern.run, true, 0);
        for l in pattern.loops {
            if is_over_rows(l, pitch) {
                reach += i128::from(l.stride.unsigned_abs()) * (i128::from(l.count) - 1);
                over_rows += 1;
                dense = over_rows == 1 && l.stride.unsigned_abs() == pitch;
            } else {
                bytes = bytes.saturating_mul(l.count);
            }
        }
        let (low, high) = (first as u64, (end - reach) as u64);
        let row = low / pitch;
        if (high - 1) / pitch != row {
            return None;
        }
        let more = u64::try_from(reach).ok()? / pitch;
        let rows = (
            u32::try_from(row).ok()?,
            u32::try_from(row.checked_add(more)?.checked_add(1)?).ok()?,
        );
        Some(Boxed {
            rows,
            dense,
            low: low % pitch,
            high: high - row * pitch,
            bytes,
            pattern,
        })
    }

    /// A pattern of whatever shape, as all columns of its rows.
    fn around(pattern: Strided<'a>, pitch: u64) -> Boxed<'a> {
        let (low, high) = pattern.extent();
        let row = |byte: i128| u32::try_from(byte / i128::from(pitch)).unwrap_or(u32::MAX - 1);
        let rows = (row(low), row(high - 1) + 1);
        Boxed {
            rows,
            dense: false,
            low: 0,
            high: pitch,
            bytes: 0,
            pattern,
        }
    }

    /// The loops over the columns of a row.
    fn loops(&self, pitch: u64) -> SmallVec<[Loop; 6]> {
        self.pattern
            .loops
            .iter()
            .copied()
            .filter(|l| !is_over_rows(l, pitch))
            .collect()
    }

    /// The columns of one row, with loops over them.
    fn columns<'l>(&self, loops: &'l [Loop]) -> Strided<'l>
    where
        'a: 'l,
    {
        if !self.pattern.swizzle.is_off() {
            return self.pattern;
        }
        Strided {
            offset: self.low,
            loops,
            ..self.pattern
        }
    }
}

/// Whether a loop goes from row to row.
fn is_over_rows(l: &Loop, pitch: u64) -> bool {
    l.stride != 0 && l.stride.unsigned_abs().is_multiple_of(pitch)
}

/// All accesses of one task to one buffer in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) task: TaskId,
    pub(crate) footprint: u32,
    pub(crate) direction: Direction,
    pub(crate) certainty: Certainty,
}

/// What is known of the pitch of a buffer.
#[derive(Clone, Debug, Default)]
struct Columns {
    /// The candidate, 0 where there is none, and how many accesses speak for it.
    pitch: u64,
    votes: u32,
    /// Patterns of the buffer, and those whose columns go on from row to row.
    patterns: u32,
    misses: u32,
}

impl Columns {
    /// Whether the candidate is the pitch, by what has been looked at so far.
    fn is_pitch(&self) -> bool {
        self.pitch > 0 && u64::from(self.misses) * 16 <= u64::from(self.patterns)
    }
}

/// A pattern in the table: offset, run, and which loops.
#[derive(Clone, Copy, Debug)]
struct Flat {
    offset: u64,
    run: u64,
    loops: (u32, u32),
    /// Which of the task's tensors it belongs to.
    tensor: u8,
    swizzle: Swizzle,
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
    /// Bytes of a row, by buffer.
    pitches: Vec<u64>,
}

impl Accesses {
    pub(crate) fn collect(program: &Program<'_>) -> Accesses {
        let mut accesses = Accesses {
            written: vec![false; program.buffers.len()],
            ..Accesses::default()
        };
        accesses.first.reserve(program.tasks.len() + 1);
        // Most tasks read and write one place.
        accesses.uses.reserve(2 * program.tasks.len());
        let mut known: HashTable<u32> = HashTable::new();
        let mut list: Vec<(Access, Swizzle)> = Vec::new();
        // The first task with each kernel.
        let mut known_kernels: IndexVec<KernelId, Option<TaskId>> =
            program.kernels.iter().map(|_| None).collect();
        for task in program.tasks.indices() {
            accesses.first.push(accesses.uses.len() as u32);
            let known_kernel = &mut known_kernels[program.tasks[task].kernel];
            if let Some(first) = *known_kernel {
                let uses = accesses.first[first.index()] as usize
                    ..accesses.first[first.index() + 1] as usize;
                accesses.uses.extend_from_within(uses);
                let added = accesses.first[task.index()] as usize;
                accesses.uses[added..]
                    .iter_mut()
                    .for_each(|entry| entry.task = task);
                continue;
            }
            *known_kernel = Some(task);
            program
                .kernel(task)
                .swizzled_accesses(&mut |access, swizzle| {
                    if access.buffer.index() < program.buffers.len()
                        && !access.pattern.extent().is_empty()
                    {
                        list.push((access, swizzle));
                    }
                });
            let kind =
                |(a, _): &(Access, Swizzle)| (a.direction, a.buffer, a.certainty == Certainty::May);
            if !list.is_sorted_by_key(kind) {
                list.sort_by_key(kind);
            }
            for group in list.chunk_by(|a, b| kind(a) == kind(b)) {
                let Access {
                    buffer,
                    direction,
                    certainty,
                    ..
                } = group[0].0;
                accesses.written[buffer.index()] |= direction == Direction::Write;
                let footprint = accesses.footprint(group, program.buffers[buffer].size, &mut known);
                accesses.uses.push(Use {
                    task,
                    footprint,
                    direction,
                    certainty,
                });
            }
            list.clear();
        }
        accesses.first.push(accesses.uses.len() as u32);
        accesses.measure(program);
        accesses
    }

    /// Finds the pitch of each buffer, and the extents of each footprint.
    fn measure(&mut self, program: &Program<'_>) {
        // A stride that most accesses share, if any: what is left after each has been set off against another one.
        let mut columns = vec![Columns::default(); program.buffers.len()];
        for footprint in &self.footprints {
            let found = &mut columns[footprint.buffer.index()];
            for pattern in self.patterns(footprint) {
                found.patterns += 1;
                let strides = pattern.loops.iter().map(|l| l.stride.unsigned_abs());
                match (strides.max(), found.votes) {
                    (None, _) => {}
                    (Some(stride), 0) => (found.pitch, found.votes) = (stride, 1),
                    (Some(stride), _) if found.pitch == stride => found.votes += 1,
                    (Some(_), _) => found.votes -= 1,
                }
            }
        }
        // It is the pitch if nearly all accesses stay in their columns.
        for footprint in &self.footprints {
            let found = &mut columns[footprint.buffer.index()];
            if found.is_pitch() {
                let patterns = self.fitting(footprint);
                let misses = patterns.filter(|p| Boxed::new(*p, found.pitch).is_none());
                found.misses += misses.count() as u32;
            }
        }
        let pitch = |c: &Columns| if c.is_pitch() { c.pitch } else { u64::MAX };
        self.pitches = columns.iter().map(pitch).collect();
        let mut footprints = std::mem::take(&mut self.footprints);
        let mut boxes = Vec::new();
        for footprint in &mut footprints {
            let pitch = self.pitches[footprint.buffer.index()];
            footprint.extents = extents(self.fitting(footprint), pitch, &mut boxes);
        }
        self.footprints = footprints;
    }

    /// Bytes of a row of a buffer.
    pub(crate) fn pitch(&self, buffer: BufferId) -> u64 {
        self.pitches[buffer.index()]
    }

    /// The footprint of accesses to one buffer.
    fn footprint(
        &mut self,
        group: &[(Access, Swizzle)],
        size: u64,
        known: &mut HashTable<u32>,
    ) -> u32 {
        let buffer = group[0].0.buffer;
        let (start, first) = (self.patterns.len(), self.loops.len());
        let (mut fits, mut span) = (true, None);
        for (access, swizzle) in group {
            let (low, high) = self.add(access, *swizzle, size);
            if low < 0 || high > i128::from(size) {
                fits = false;
                continue;
            }
            let (first, last) = span.unwrap_or((low as u64, high as u64));
            span = Some((first.min(low as u64), last.max(high as u64)));
        }
        let patterns = (start as u32, self.patterns.len() as u32);
        let parts = || self.parts(patterns);
        let hash = hash(buffer, parts());
        let is_same = |id: &u32| {
            let footprint = &self.footprints[*id as usize];
            footprint.buffer == buffer && self.parts(footprint.patterns).eq(parts())
        };
        if let Some(id) = known.find(hash, is_same).copied() {
            self.patterns.truncate(start);
            self.loops.truncate(first);
            return id;
        }
        let footprint = Footprint {
            buffer,
            size,
            fits,
            patterns,
            span: span.unwrap_or((0, 0)),
            extents: SmallVec::new(),
        };
        let id = self.footprints.len() as u32;
        self.footprints.push(footprint);
        known.insert_unique(hash, id, |id| {
            let footprint = &self.footprints[*id as usize];
            self::hash(footprint.buffer, self.parts(footprint.patterns))
        });
        id
    }

    /// Puts the pattern of an access into the table. First byte, and one past the last.
    fn add(&mut self, access: &Access, swizzle: Swizzle, size: u64) -> (i128, i128) {
        let pattern = Strided {
            swizzle,
            ..Strided::of(&access.pattern)
        };
        let (low, high) = pattern.extent();
        let first = self.loops.len();
        let mut offset = pattern.offset;
        if low < 0 || high > i128::from(size) {
            self.loops.extend_from_slice(pattern.loops);
        } else {
            // The same bytes with loops that walk forwards, the shortest step first.
            offset = pattern.logical_extent().0 as u64;
            let steps = pattern
                .loops
                .iter()
                .filter(|l| l.stride != 0 && l.count > 1);
            self.loops.extend(steps.map(|l| Loop {
                stride: l.stride.abs(),
                ..*l
            }));
            self.loops[first..].sort_unstable_by_key(|l| (l.stride, l.count));
        }
        self.patterns.push(Flat {
            offset,
            run: pattern.run,
            loops: (first as u32, self.loops.len() as u32),
            tensor: access.tensor,
            swizzle,
        });
        (low, high)
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
    pub(crate) fn patterns(
        &self,
        footprint: &Footprint,
    ) -> impl Iterator<Item = Strided<'_>> + Clone {
        self.parts(footprint.patterns).map(|(_, pattern)| pattern)
    }

    /// The patterns of a footprint that lie inside its buffer, each with the number of its tensor.
    pub(crate) fn tensors(
        &self,
        footprint: &Footprint,
    ) -> impl Iterator<Item = (u8, Strided<'_>)> + Clone {
        let (fits, size) = (footprint.fits, footprint.size);
        self.parts(footprint.patterns)
            .filter(move |(_, p)| fits || p.fits(size))
    }

    fn parts(&self, (start, end): (u32, u32)) -> impl Iterator<Item = (u8, Strided<'_>)> + Clone {
        self.patterns[start as usize..end as usize]
            .iter()
            .map(|flat| {
                let pattern = Strided {
                    offset: flat.offset,
                    run: flat.run,
                    loops: &self.loops[flat.loops.0 as usize..flat.loops.1 as usize],
                    swizzle: flat.swizzle,
                };
                (flat.tensor, pattern)
            })
    }

    /// The patterns of a footprint that lie inside its buffer.
    pub(crate) fn fitting(
        &self,
        footprint: &Footprint,
    ) -> impl Iterator<Item = Strided<'_>> + Clone {
        let (fits, size) = (footprint.fits, footprint.size);
        self.patterns(footprint)
            .filter(move |p| fits || p.fits(size))
    }
}

fn hash<'a>(buffer: BufferId, parts: impl Iterator<Item = (u8, Strided<'a>)>) -> u64 {
    let mut hasher = FxHasher::default();
    buffer.raw().hash(&mut hasher);
    for (tensor, pattern) in parts {
        let Strided {
            offset,
            run,
            loops,
            swizzle,
        } = pattern;
        (tensor, swizzle, offset, run, loops).hash(&mut hasher);
    }
    hasher.finish()
}

/// What patterns span, those joined that touch or overlap. `boxes` is room to work.
fn extents<'a>(
    patterns: impl Iterator<Item = Strided<'a>>,
    pitch: u64,
    boxes: &mut Vec<Boxed<'a>>,
) -> SmallVec<[Extent; 1]> {
    let boxed =
        |pattern| Boxed::new(pattern, pitch).unwrap_or_else(|| Boxed::around(pattern, pitch));
    boxes.clear();
    boxes.extend(patterns.map(boxed));
    let key = |b: &Boxed<'_>| (b.rows, b.low);
    if !boxes.is_sorted_by_key(key) {
        boxes.sort_by_key(key);
    }
    let mut extents: SmallVec<[Extent; 1]> = SmallVec::new();
    let mut rest = &boxes[..];
    while let Some(Boxed {
        rows, low, high, ..
    }) = rest.first()
    {
        let (mut high, mut count) = (*high, 1);
        while let Some(next) = rest
            .get(count)
            .filter(|next| next.rows == *rows && next.low <= high)
        {
            high = high.max(next.high);
            count += 1;
        }
        let (joined, others) = rest.split_at(count);
        let whole = joined.iter().all(|b| b.dense) && has_no_hole(joined, pitch, high - low);
        extents.push(Extent {
            rows: *rows,
            low: *low,
            high,
            whole,
        });
        rest = others;
    }
    if extents.len() > PIECES {
        extents.dedup_by(|next, last| {
            let size = |extent: &Extent| extent.high - extent.low;
            let joins = next.rows == last.rows
                && next.low - last.high <= GAP
                && [&*next, &*last].iter().all(|e| !e.whole || size(e) <= GAP);
            if joins {
                (last.high, last.whole) = (next.high, false);
            }
            joins
        });
    }
    extents
}

/// Whether boxes of the same rows that span this many bytes of each leave none of them out.
fn has_no_hole(joined: &[Boxed<'_>], pitch: u64, span: u64) -> bool {
    if joined
        .iter()
        .all(|b| b.bytes == b.high - b.low && b.pattern.run == b.bytes)
    {
        return true;
    }
    if joined.iter().fold(0, |n: u64, b| n.saturating_add(b.bytes)) < span {
        return false;
    }
    let loops: SmallVec<[SmallVec<[Loop; 6]>; 4]> = joined.iter().map(|b| b.loops(pitch)).collect();
    let columns = joined.iter().zip(&loops).map(|(b, loops)| b.columns(loops));
    union(columns, RUNS).is_some_and(|union| union.len() == 1)
}
