//! Who touched which bytes last: the accesses that a later one can race with, in cells of a buffer.
//!
//! A cell is a range of bytes, with the accesses whose extent covers it and that are still of interest. An access that
//! covers the cell and comes after another makes the other superfluous: whatever races with the earlier one and conflicts
//! with the later one races with the later one too. So the first race of every byte is found, and a cell holds few accesses.

use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Indices into the table of accesses.
type Indices = SmallVec<[u32; 4]>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cell {
    end: u64,
    writes: Indices,
    reads: Indices,
}

/// The cells of a buffer; bytes outside all of them have not been touched.
#[derive(Debug, Default)]
pub(crate) struct Shadow(BTreeMap<u64, Cell>);

/// An access that is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) index: u32,
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) write: bool,
    /// Whether it touches every byte from `low` to `high`.
    pub(crate) whole: bool,
}

impl Shadow {
    /// Records an access. `is_before(other)` says whether another access comes before it; those that do not and that
    /// conflict by extent are given to `suspect`, perhaps more than once. `covers(other)` says whether the access touches every
    /// byte that another one touches.
    pub(crate) fn touch(
        &mut self,
        touch: Touch,
        is_before: &dyn Fn(u32) -> bool,
        covers: &dyn Fn(u32) -> bool,
        suspect: &mut dyn FnMut(u32),
    ) {
        self.split(touch.low);
        self.split(touch.high);
        let mut at = touch.low;
        let mut gaps: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        let mut merged = 0;
        // Whether a recorded access stays. What is unordered and conflicts is reported, and need not stay either.
        let mut look = |other: u32, conflicts: bool| {
            let before = is_before(other);
            if conflicts && !before {
                suspect(other);
            }
            !((before || conflicts) && (touch.whole || covers(other)))
        };
        for (start, cell) in self.0.range_mut(touch.low..touch.high) {
            if *start > at {
                gaps.push((at, *start));
            }
            at = cell.end;
            merged += 1;
            if touch.write {
                cell.writes.retain(|other| look(*other, true));
                cell.reads.retain(|other| look(*other, true));
                cell.writes.push(touch.index);
            } else {
                for other in &cell.writes {
                    look(*other, true);
                }
                cell.reads.retain(|other| look(*other, false));
                cell.reads.push(touch.index);
            }
        }
        if at < touch.high {
            gaps.push((at, touch.high));
        }
        let fresh = |end| {
            let mut cell = Cell { end, ..Cell::default() };
            let list = if touch.write { &mut cell.writes } else { &mut cell.reads };
            list.push(touch.index);
            cell
        };
        if touch.write && touch.whole && merged > 0 && self.is_uniform(touch.low, touch.high) {
            let inner: SmallVec<[u64; 16]> = self.0.range(touch.low..touch.high).map(|(start, _)| *start).collect();
            for start in inner {
                self.0.remove(&start);
            }
            self.0.insert(touch.low, fresh(touch.high));
            return;
        }
        for (low, high) in gaps {
            self.0.insert(low, fresh(high));
        }
    }

    /// Whether all cells of a range hold one write and nothing else.
    fn is_uniform(&self, low: u64, high: u64) -> bool {
        self.0.range(low..high).all(|(_, cell)| cell.writes.len() == 1 && cell.reads.is_empty())
    }

    /// Makes a cell start at this byte if one spans it.
    fn split(&mut self, at: u64) {
        if let Some((start, cell)) = self.0.range_mut(..at).next_back()
            && *start < at
            && cell.end > at
        {
            let right = cell.clone();
            cell.end = at;
            self.0.insert(at, right);
        }
    }
}
