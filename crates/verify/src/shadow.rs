//! Who touched which bytes last: the accesses that a later one can race with, in cells of a buffer.
//!
//! A cell is a range of columns (of bytes, in a buffer of one row), with the accesses whose extent covers it and that are still of interest. An access that
//! covers the cell and comes after another makes the other superfluous: whatever races with the earlier one and conflicts
//! with the later one races with the later one too. So the first race of every byte is found, and a cell holds few accesses.

use crate::clock::Point;
use crate::footprint::Extent;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// An access that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its number in the table of uses.
    pub(crate) entry: u32,
    /// The bytes that it touches, and in which rows.
    pub(crate) footprint: u32,
    pub(crate) rows: (u32, u32),
    /// When it is over.
    pub(crate) end: Point,
}

type Records = SmallVec<[Record; 2]>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cell {
    /// First byte and one past the last; the same where the cell is no more.
    start: u64,
    end: u64,
    writes: Records,
    reads: Records,
}

/// The cells of a buffer; bytes outside all of them have not been touched.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// First byte of each cell, and where it is among `cells`.
    starts: BTreeMap<u64, u32>,
    cells: Vec<Cell>,
    /// Places of cells that are no more.
    free: Vec<u32>,
}

impl Shadow {
    /// Records an access to an extent. `place` is where the cell of such an access was before, a hint. `is_before(end)` says whether another access that ends there comes before it; those that do not
    /// and that conflict by extent are given to `suspect`, perhaps more than once.
    pub(crate) fn touch(
        &mut self,
        record: Record,
        extent: Extent,
        place: &mut u32,
        write: bool,
        is_before: impl Fn(Point) -> bool,
        mut suspect: impl FnMut(Record),
    ) {
        let Extent {
            rows,
            low,
            high,
            whole,
        } = extent;
        // Whether a recorded access stays. What is unordered and conflicts is reported, and need not stay either.
        let mut look = |other: &Record, conflicts: bool| {
            if other.rows.0 >= rows.1 || rows.0 >= other.rows.1 {
                return true;
            }
            let before = is_before(other.end);
            if conflicts && !before {
                suspect(*other);
            }
            let is_inside = whole && rows.0 <= other.rows.0 && other.rows.1 <= rows.1;
            let is_same = (other.footprint, other.rows) == (record.footprint, rows);
            !((before || conflicts) && (is_inside || is_same))
        };
        let mut visit = |cell: &mut Cell| {
            if write {
                cell.writes.retain(|other| look(other, true));
                cell.reads.retain(|other| look(other, true));
                cell.writes.push(record);
            } else {
                cell.writes.iter().for_each(|other| {
                    look(other, true);
                });
                cell.reads.retain(|other| look(other, false));
                cell.reads.push(record);
            }
        };
        // Most accesses are to bytes that others have touched together before.
        let is_whole = |cell: &Cell| (cell.start, cell.end) == (low, high);
        if let Some(cell) = self
            .cells
            .get_mut(*place as usize)
            .filter(|cell| is_whole(cell))
        {
            return visit(cell);
        }
        if let Some(index) = self.starts.get(&low) {
            *place = *index;
            let cell = &mut self.cells[*index as usize];
            if is_whole(cell) {
                return visit(cell);
            }
        }
        self.split(low);
        self.split(high);
        let mut at = low;
        let mut gaps: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        let mut cells = 0;
        let mut is_covered = write && whole;
        for (start, index) in self.starts.range(low..high) {
            let cell = &mut self.cells[*index as usize];
            if *start > at {
                gaps.push((at, *start));
            }
            at = cell.end;
            cells += 1;
            visit(cell);
            is_covered &= cell.writes.len() == 1 && cell.reads.is_empty();
        }
        if at < high {
            gaps.push((at, high));
        }
        let fresh = |start, end| {
            let mut cell = Cell {
                start,
                end,
                ..Cell::default()
            };
            let list = if write {
                &mut cell.writes
            } else {
                &mut cell.reads
            };
            list.push(record);
            cell
        };
        // A write that leaves nothing of what was there makes one cell of all.
        if is_covered && cells > 1 {
            let mut inner: SmallVec<[u64; 16]> = SmallVec::new();
            inner.extend(self.starts.range(low..high).map(|(start, _)| *start));
            for start in inner {
                if let Some(index) = self.starts.remove(&start) {
                    self.cells[index as usize] = Cell::default();
                    self.free.push(index);
                }
            }
            return self.insert(fresh(low, high));
        }
        for (low, high) in gaps {
            self.insert(fresh(low, high));
        }
    }

    fn insert(&mut self, cell: Cell) {
        if self.cells.is_empty() {
            // Most buffers of a program that has many are touched as a whole.
            self.cells.reserve_exact(1);
        }
        let start = cell.start;
        let index = self.free.pop().unwrap_or(self.cells.len() as u32);
        match self.cells.get_mut(index as usize) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
        self.starts.insert(start, index);
    }

    /// Makes a cell start at this byte if one spans it.
    fn split(&mut self, at: u64) {
        if let Some((_, index)) = self.starts.range(..at).next_back()
            && self.cells[*index as usize].end > at
        {
            let cell = &mut self.cells[*index as usize];
            let right = Cell {
                start: at,
                ..cell.clone()
            };
            cell.end = at;
            self.insert(right);
        }
    }
}
