//! Who touched which bytes last: the accesses that a later one can race with, in cells of a buffer.
//!
//! A cell is a range of columns (of bytes, in a buffer of one row), with the accesses whose extent covers it and that are still of interest. An access that
//! covers the cell and comes after another makes the other superfluous: whatever races with the earlier one and conflicts
//! with the later one races with the later one too. So the first race of every byte is found, and a cell holds few accesses. Neighbours
//! that have come to hold the same become one cell again. What comes before all that is left to run is forgotten.

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

/// When an earlier access ended, seen from a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Before it and all that is left to run.
    Settled,
    /// Before it.
    Before,
    /// Nobody knows.
    Unordered,
}

type Records = SmallVec<[Record; 2]>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// First byte and one past the last; the same where the cell is no more.
    start: u64,
    end: u64,
    writes: Records,
    reads: Records,
}

impl Cell {
    /// What one access leaves, of no bytes yet.
    fn new(record: Record, write: bool) -> Cell {
        let mut cell = Cell::default();
        let list = if write {
            &mut cell.writes
        } else {
            &mut cell.reads
        };
        list.push(record);
        cell
    }

    /// The same of these bytes.
    fn over(&self, start: u64, end: u64) -> Cell {
        Cell {
            start,
            end,
            ..self.clone()
        }
    }

    /// Takes the bytes from here on away, and gives them as a cell of their own.
    fn cut(&mut self, at: u64) -> Cell {
        let rest = self.over(at, self.end);
        self.end = at;
        rest
    }

    /// Whether it has exactly these bytes.
    fn is(&self, low: u64, high: u64) -> bool {
        (self.start, self.end) == (low, high)
    }

    /// Whether another one holds the same.
    fn holds_as(&self, other: &Cell) -> bool {
        self.writes == other.writes && self.reads == other.reads
    }
}

/// The cells of a buffer; bytes outside all of them have not been touched.
#[derive(Debug, Default)]
pub(crate) enum Shadow {
    #[default]
    Untouched,
    /// Most buffers of a program that has many are touched as a whole.
    One(Box<Cell>),
    Many(Box<Table>),
}

/// Several cells.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// First byte of each cell, and where it is among `cells`.
    starts: BTreeMap<u64, u32>,
    cells: Vec<Cell>,
    /// Places of cells that are no more.
    free: Vec<u32>,
}

impl Shadow {
    /// Records an access to an extent. `place` is where the cell of such an access was before, a hint. `ended` says when an access ended that ends at a
    /// point; what is unordered and conflicts by extent is given to `suspect`, perhaps more than once, and what is settled is forgotten.
    pub(crate) fn touch(
        &mut self,
        record: Record,
        extent: Extent,
        place: &mut u32,
        write: bool,
        ended: impl Fn(Point) -> Ended,
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
            let ended = ended(other.end);
            if ended == Ended::Settled {
                return false;
            }
            if other.rows.0 >= rows.1 || rows.0 >= other.rows.1 {
                return true;
            }
            let before = ended == Ended::Before;
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
                cell.writes.retain(|other| {
                    look(other, true);
                    ended(other.end) != Ended::Settled
                });
                cell.reads.retain(|other| look(other, false));
                cell.reads.push(record);
            }
        };
        match self {
            Shadow::Untouched => {
                let fresh = Cell::new(record, write).over(low, high);
                *self = Shadow::One(Box::new(fresh));
                return;
            }
            Shadow::One(cell) if cell.is(low, high) => return visit(cell),
            Shadow::One(cell) => {
                let mut table = Box::<Table>::default();
                table.insert(std::mem::take(&mut **cell));
                *self = Shadow::Many(table);
            }
            Shadow::Many(_) => {}
        }
        if let Shadow::Many(table) = self {
            table.touch(low, high, place, &Cell::new(record, write), visit);
        }
    }
}

impl Table {
    /// Visits the cells of a range, and makes cells like `fresh` of bytes that nobody has touched.
    fn touch(
        &mut self,
        low: u64,
        high: u64,
        place: &mut u32,
        fresh: &Cell,
        mut visit: impl FnMut(&mut Cell),
    ) {
        // Most accesses are to bytes that others have touched together before.
        if let Some(cell) = self
            .cells
            .get_mut(*place as usize)
            .filter(|cell| cell.is(low, high))
        {
            return visit(cell);
        }
        // The cell that holds the first byte, or the one before it.
        if let Some((start, index)) = self.starts.range(..=low).next_back() {
            let cell = &mut self.cells[*index as usize];
            if cell.is(low, high) {
                *place = *index;
                return visit(cell);
            }
            if *start < low && low < cell.end {
                let rest = cell.cut(low);
                self.insert(rest);
            }
        }
        self.cross(low, high, fresh, visit);
    }

    /// Visits the cells of a range. Bytes that nobody has touched become cells that hold as much as `fresh`, and neighbours that have
    /// come to hold the same become one. No cell begins before the range and ends in it.
    fn cross(&mut self, low: u64, high: u64, fresh: &Cell, mut visit: impl FnMut(&mut Cell)) {
        let mut later: SmallVec<[Cell; 2]> = SmallVec::new();
        let mut joined: SmallVec<[u64; 16]> = SmallVec::new();
        let (mut last, mut behind) = (None, None);
        let mut fill = |cells: &mut [Cell], last: Option<u32>, low, high| {
            let before = last.map(|last| &mut cells[last as usize]);
            match before.filter(|before| before.end == low && before.holds_as(fresh)) {
                Some(before) => before.end = high,
                None if low < high => later.push(fresh.over(low, high)),
                None => {}
            }
        };
        let mut at = low;
        for (start, index) in self.starts.range(low..) {
            if *start >= high {
                break;
            }
            fill(&mut self.cells, last, at, *start);
            let cell = &mut self.cells[*index as usize];
            let rest = (cell.end > high).then(|| cell.cut(high));
            visit(cell);
            at = cell.end;
            match last {
                Some(before) if continues(&self.cells, before, *index) => {
                    self.cells[before as usize].end = at;
                    joined.push(*start);
                }
                _ => last = Some(*index),
            }
            behind = behind.or(rest);
        }
        fill(&mut self.cells, last, at, high);
        for start in joined {
            if let Some(index) = self.starts.remove(&start) {
                self.cells[index as usize] = Cell::default();
                self.free.push(index);
            }
        }
        for cell in later.into_iter().chain(behind) {
            self.insert(cell);
        }
    }

    fn insert(&mut self, cell: Cell) {
        let start = cell.start;
        let index = self.free.pop().unwrap_or(self.cells.len() as u32);
        match self.cells.get_mut(index as usize) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
        self.starts.insert(start, index);
    }
}

/// Whether a cell begins where another one ends and holds the same.
fn continues(cells: &[Cell], before: u32, next: u32) -> bool {
    let (before, next) = (&cells[before as usize], &cells[next as usize]);
    before.end == next.start && before.holds_as(next)
}
