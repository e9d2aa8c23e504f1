//! Strided patterns as the verifier looks at them.

use chipless_model::access::MAX_LOOPS;
use chipless_model::{Loop, Series, Swizzle};

/// Runs and loops of a pattern, without its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strided<'a> {
    pub(crate) offset: u64,
    pub(crate) run: u64,
    pub(crate) loops: &'a [Loop],
    /// Where its bytes stand.
    pub(crate) swizzle: Swizzle,
}

impl<'a> Strided<'a> {
    pub(crate) fn of(pattern: &'a chipless_model::Pattern) -> Strided<'a> {
        Strided {
            offset: pattern.offset,
            run: pattern.run,
            loops: &pattern.loops,
            swizzle: Swizzle::OFF,
        }
    }

    /// The bytes from `low` to before `high`.
    pub(crate) fn contiguous(low: u64, high: u64) -> Strided<'static> {
        Strided {
            offset: low,
            run: high - low,
            loops: &[],
            swizzle: Swizzle::OFF,
        }
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.loops.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.run == 0 || self.loops.iter().any(|l| l.count == 0)
    }

    /// Whether every byte lies inside a buffer of `size` bytes.
    pub(crate) fn fits(&self, size: u64) -> bool {
        let (low, high) = self.extent();
        low >= 0 && high <= i128::from(size)
    }

    /// First byte and one past the last, or those of whole rows where these are turned.
    pub(crate) fn extent(&self) -> (i128, i128) {
        let (low, high) = self.logical_extent();
        if self.swizzle.is_off() {
            return (low, high);
        }
        let row = i128::from(Swizzle::ROW);
        (low.div_euclid(row) * row, -(-high).div_euclid(row) * row)
    }

    /// First logical address and one past the last.
    pub(crate) fn logical_extent(&self) -> (i128, i128) {
        let (mut low, mut high) = (
            i128::from(self.offset),
            i128::from(self.offset) + i128::from(self.run),
        );
        for l in self.loops {
            let reach = i128::from(l.stride) * (i128::from(l.count) - 1);
            if reach < 0 {
                low += reach;
            } else {
                high += reach;
            }
        }
        (low, high)
    }

    /// The same bytes as few long runs, each once where that is easy to see. Runs come in no particular order. The loops must walk
    /// forwards, the shortest step first.
    pub(crate) fn runs(&self) -> Runs<'a> {
        let (run, loops) = self.joined();
        let total = loops.iter().fold(1u64, |n, l| n.saturating_mul(l.count));
        Runs {
            loops,
            index: [0; MAX_LOOPS],
            run,
            at: self.offset,
            total,
            left: if self.is_empty() { 0 } else { total },
            swizzle: self.swizzle,
            rest: (0, 0),
        }
    }

    /// The bytes of the [runs](Strided::runs), in the same order.
    pub(crate) fn series(&self) -> impl Iterator<Item = Series> + use<'a> {
        let (size, loops) = self.joined();
        let inner = loops.split_first().filter(|_| self.swizzle.is_off());
        let outer = inner.map_or(loops, |(_, outer)| outer);
        let total = outer.iter().fold(1u64, |n, l| n.saturating_mul(l.count));
        EachSeries {
            outer: Runs {
                loops: outer,
                total,
                left: if self.is_empty() { 0 } else { total },
                ..self.runs()
            },
            size,
            inner: inner.map(|(inner, _)| *inner),
        }
    }

    /// Run and loops, where those that continue a run are part of it: a step no longer than the run does.
    fn joined(&self) -> (u64, &'a [Loop]) {
        let (mut run, mut loops) = (self.run, self.loops);
        while let Some((l, rest)) = loops.split_first()
            && l.stride.unsigned_abs() <= run
        {
            run += l.stride.unsigned_abs() * (l.count - 1);
            loops = rest;
        }
        (run, loops)
    }
}

/// The runs of a pattern, those of an innermost loop at once.
struct EachSeries<'a> {
    outer: Runs<'a>,
    size: u64,
    inner: Option<Loop>,
}

impl Iterator for EachSeries<'_> {
    type Item = Series;

    fn next(&mut self) -> Option<Series> {
        let (low, high) = self.outer.next()?;
        Some(self.inner.map_or(Series::from(low..high), |l| Series {
            start: low,
            size: self.size,
            stride: l.stride.unsigned_abs(),
            count: l.count,
        }))
    }
}

/// The runs of a pattern.
#[derive(Debug)]
pub(crate) struct Runs<'a> {
    loops: &'a [Loop],
    index: [u64; MAX_LOOPS],
    /// Bytes of each run.
    run: u64,
    at: u64,
    /// How many there are; at the ends of turned rows they come in two.
    pub(crate) total: u64,
    left: u64,
    swizzle: Swizzle,
    /// Logical addresses that are left of a run: the first, and how many.
    rest: (u64, u64),
}

impl Iterator for Runs<'_> {
    /// First byte and one past the last.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.swizzle.is_off() {
            return self.logical();
        }
        if self.rest.1 == 0 {
            let (low, high) = self.logical()?;
            self.rest = (low, high - low);
        }
        let (low, left) = self.rest;
        // Whole rows hold the same bytes however they are turned.
        let rows = left / Swizzle::ROW * Swizzle::ROW;
        if rows > 0 && low.is_multiple_of(Swizzle::ROW) {
            self.rest = (low + rows, left - rows);
            return Some((low, low + rows));
        }
        let (at, size) = self.swizzle.pieces(low, left).next()?;
        self.rest = (low + size, left - size);
        Some((at, at + size))
    }
}

impl Runs<'_> {
    /// The next run, by logical addresses.
    fn logical(&mut self) -> Option<(u64, u64)> {
        self.left = self.left.checked_sub(1)?;
        let here = (self.at, self.at + self.run);
        for (index, l) in self.index.iter_mut().zip(self.loops) {
            *index += 1;
            if *index < l.count {
                self.at += l.stride.unsigned_abs();
                break;
            }
            *index = 0;
            self.at -= l.stride.unsigned_abs() * (l.count - 1);
        }
        Some(here)
    }
}

/// The bytes of several patterns as disjoint ranges in order; `None` beyond a number of runs.
pub(crate) fn union<'a>(
    patterns: impl Iterator<Item = Strided<'a>>,
    most: u64,
) -> Option<Vec<(u64, u64)>> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    let mut left = most;
    for pattern in patterns {
        let runs = pattern.runs();
        left = left.checked_sub(runs.total)?;
        all.extend(runs);
    }
    join(&mut all);
    Some(all)
}

/// Puts ranges in order and makes one of those that touch.
pub(crate) fn join(ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
}

/// Bytes of a buffer, as findings name them.
pub(crate) fn range(low: impl std::fmt::LowerHex, high: impl std::fmt::LowerHex) -> String {
    format!("{low:#x}..{high:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn series_are_the_runs(offset in 0u64..4096, run in 1u64..200, loops in prop::collection::vec((1u64..6, 1i64..600), 0..3), key in 0u32..6) {
            let mut loops: Vec<Loop> = loops.into_iter().map(|(count, stride)| Loop { count, stride }).collect();
            loops.sort_by_key(|l| l.stride);
            let swizzle = Swizzle::from_key(key).expect("key exists");
            let pattern = Strided { offset, run, loops: &loops, swizzle };
            let of_series: Vec<(u64, u64)> = pattern.series().flat_map(Series::runs).map(|run| (run.start, run.end)).collect();
            prop_assert_eq!(of_series, pattern.runs().collect::<Vec<_>>());
        }
    }
}
