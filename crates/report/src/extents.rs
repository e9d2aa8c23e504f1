//! Ranges of bytes with a value each; what is put over others cuts them.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(crate) struct Extents<T> {
    /// By start: end and value. No two overlap.
    of: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Extents<T> {
    fn default() -> Extents<T> {
        Extents {
            of: BTreeMap::new(),
        }
    }
}

impl<T: Copy> Extents<T> {
    /// Puts a value over a range; `over` is told what it covers.
    pub(crate) fn put(&mut self, range: Range<u64>, value: T, mut over: impl FnMut(Range<u64>, T)) {
        let first = self.first(range.start);
        let covered: Vec<(u64, u64, T)> = self
            .of
            .range(first..range.end)
            .filter(|(_, (end, _))| *end > range.start)
            .map(|(start, (end, value))| (*start, *end, *value))
            .collect();
        for (start, end, old) in covered {
            self.of.remove(&start);
            if start < range.start {
                self.of.insert(start, (range.start, old));
            }
            if end > range.end {
                self.of.insert(range.end, (end, old));
            }
            over(start.max(range.start)..end.min(range.end), old);
        }
        self.of.insert(range.start, (range.end, value));
    }

    /// The values that a range meets, with the part of it that each covers.
    pub(crate) fn meeting(
        &mut self,
        range: Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, &mut T)> {
        let first = self.first(range.start);
        let met = self.of.range_mut(first..range.end);
        met.filter(move |(_, (end, _))| *end > range.start)
            .map(|(start, (end, value))| (*start..*end, value))
    }

    /// All values by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, &T)> {
        self.of
            .iter()
            .map(|(start, (end, value))| (*start..*end, value))
    }

    /// Start of the last range that starts at or before an offset.
    fn first(&self, at: u64) -> u64 {
        self.of
            .range(..=at)
            .next_back()
            .map_or(at, |(start, _)| *start)
    }
}
