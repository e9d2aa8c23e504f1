//! Which bytes a task touches: strided patterns over a buffer.
//!
//! A [`Pattern`] is a base offset, a contiguous run of bytes, and loops around it: the bytes touched are, for every
//! choice of indices `i_d < count_d`, the `run` bytes from `offset + Σ i_d · stride_d`. The first loop is the innermost
//! one. Bytes are enumerated run by run, innermost loop first; two patterns of equal length therefore describe a copy.
//! Every target's addressing lowers to it: the 6-D descriptors of the NPU (a width and five loops), the steps and
//! sizes of a NEFF, the boxes of the Gemini IR, the streams of a dataflow graph.

use crate::id::BufferId;
use smallvec::SmallVec;
use std::ops::Range;

/// Loops around a run, at most. Six-dimensional transfers are a run and five loops; one more is left for targets whose innermost step is not one byte.
pub const MAX_LOOPS: usize = 6;

/// One loop of a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// Iterations; a loop of zero iterations makes the whole pattern empty.
    pub count: u64,
    /// Bytes from one iteration to the next; zero repeats the same bytes, negative walks backwards.
    pub stride: i64,
}

/// A strided set of bytes in one buffer. See the [module docs](self).
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// First byte of the first run, from the start of the buffer.
    pub offset: u64,
    /// Contiguous bytes at each step of the loops.
    pub run: u64,
    /// Loops around the run, innermost first.
    pub loops: SmallVec<[Loop; MAX_LOOPS]>,
}

/// Bytes that accesses read and bytes that they write, repeats counted.
pub fn traffic(accesses: impl FnOnce(&mut dyn FnMut(Access))) -> (u64, u64) {
    let (mut read, mut written) = (0u64, 0u64);
    accesses(&mut |access| {
        let sum = match access.direction {
            Direction::Read => &mut read,
            Direction::Write => &mut written,
        };
        *sum = sum.saturating_add(access.pattern.bytes().unwrap_or(u64::MAX));
    });
    (read, written)
}

impl Clone for Pattern {
    /// Loops are plain numbers and copied at once; the derived clone would take them one by one.
    fn clone(&self) -> Pattern {
        Pattern {
            loops: SmallVec::from_slice(&self.loops),
            ..*self
        }
    }
}

impl Pattern {
    /// `size` contiguous bytes from `offset`.
    pub fn contiguous(offset: u64, size: u64) -> Pattern {
        Pattern {
            offset,
            run: size,
            loops: SmallVec::new(),
        }
    }

    /// A run with loops around it, innermost first. Loops that change nothing are dropped and loops that continue
    /// their run are folded into it, so that equal sets in equal order compare equal more often and copies see long runs.
    pub fn new(offset: u64, run: u64, loops: impl IntoIterator<Item = Loop>) -> Pattern {
        let mut pattern = Pattern::contiguous(offset, run);
        for l in loops {
            if l.count == 1 {
                continue;
            }
            let last = pattern.loops.last_mut();
            match last {
                None if l.stride >= 0
                    && l.stride as u64 == pattern.run
                    && pattern.run.checked_mul(l.count).is_some() =>
                {
                    pattern.run *= l.count;
                }
                Some(inner)
                    if i128::from(inner.stride) * i128::from(inner.count)
                        == i128::from(l.stride)
                        && inner.count.checked_mul(l.count).is_some() =>
                {
                    inner.count *= l.count;
                }
                _ => pattern.loops.push(l),
            }
        }
        pattern
    }

    /// Bytes enumerated, repeats counted; `None` beyond 2^64.
    pub fn bytes(&self) -> Option<u64> {
        self.loops
            .iter()
            .try_fold(self.run, |n, l| n.checked_mul(l.count))
    }

    /// The smallest range of offsets that holds every byte touched; empty patterns touch none.
    /// The bounds are wide enough for any loop: a hostile stride cannot wrap them.
    pub fn extent(&self) -> Range<i128> {
        let base = i128::from(self.offset);
        if self.run == 0 || self.loops.iter().any(|l| l.count == 0) {
            return base..base;
        }
        let (mut low, mut high) = (base, base + i128::from(self.run));
        for l in &self.loops {
            let reach = i128::from(l.stride) * i128::from(l.count - 1);
            if reach < 0 {
                low += reach;
            } else {
                high += reach;
            }
        }
        low..high
    }

    /// The part of [`extent`](Pattern::extent) that lies inside a buffer of `size` bytes.
    pub fn inside(&self, size: u64) -> Range<u64> {
        let extent = self.extent();
        let bound = |at: i128| u64::try_from(at.max(0)).unwrap_or(u64::MAX).min(size);
        bound(extent.start)..bound(extent.end)
    }

    /// Runs enumerated, at most 2^64 − 1.
    pub fn count(&self) -> u64 {
        let counts = self.loops.iter().map(|l| l.count);
        counts.fold(1, u64::saturating_mul)
    }

    /// The bytes touched in a buffer of `size` bytes, as ranges in the order of the runs; runs that continue one another are one, and none is empty.
    /// Of a pattern with more than `most` runs, those that lie nearest are joined with what is between them; of one that does not fit, all that
    /// is [`inside`](Pattern::inside).
    pub fn ranges(&self, size: u64, most: u64) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        if !self.fits(size) {
            ranges.push(self.inside(size));
            ranges.retain(|range| !range.is_empty());
            return ranges;
        }
        if self.run > 0 && self.count() > most && !self.loops.is_empty() {
            return self.joined().ranges(size, most);
        }
        for start in self.runs() {
            let end = start + self.run;
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    /// The same without the loop of the shortest stride: what this one spans, holes and all, is a run. Only for patterns that fit a buffer.
    fn joined(&self) -> Pattern {
        let mut joined = self.clone();
        let strides = joined.loops.iter().enumerate();
        let nearest = strides.min_by_key(|(_, l)| l.stride.unsigned_abs());
        if let Some((at, _)) = nearest {
            let Loop { count, stride } = joined.loops.remove(at);
            let reach = stride.unsigned_abs() * count.saturating_sub(1);
            if stride < 0 {
                joined.offset -= reach;
            }
            joined.run += reach;
        }
        joined
    }

    /// Whether every byte touched lies inside a buffer of `size` bytes.
    pub fn fits(&self, size: u64) -> bool {
        if self.loops.is_empty() {
            let end = self.offset.checked_add(self.run);
            return self.run == 0 || end.is_some_and(|end| end <= size);
        }
        let extent = self.extent();
        extent.is_empty() || (extent.start >= 0 && extent.end <= i128::from(size))
    }

    /// Offsets of the runs in order. Only for patterns that [fit](Pattern::fits) their buffer.
    pub fn runs(&self) -> Runs<'_> {
        let empty = self.run == 0 || self.loops.iter().any(|l| l.count == 0);
        Runs {
            pattern: self,
            index: [0; MAX_LOOPS],
            at: self.offset as i64,
            done: empty,
        }
    }

    /// The runs from one of them on.
    fn runs_from(&self, run: u64) -> Runs<'_> {
        let (mut runs, mut rest) = (self.runs(), run);
        for (index, l) in runs.index.iter_mut().zip(&self.loops) {
            *index = rest % l.count;
            rest /= l.count;
            let step = l.stride.wrapping_mul(*index as i64);
            runs.at = runs.at.wrapping_add(step);
        }
        runs
    }

    /// The last position at which the pattern enumerates the byte at an offset; `None` where it does not touch it, or has more
    /// than 2^64 bytes.
    pub fn position(&self, at: u64) -> Option<u64> {
        self.bytes()?;
        find(
            &self.loops,
            self.run,
            i128::from(at) - i128::from(self.offset),
        )
    }

    /// The offset of the byte at a position; `None` behind the end of a pattern.
    pub fn offset_of(&self, position: u64) -> Option<u64> {
        if position >= self.bytes()? {
            return None;
        }
        let (mut rest, mut at) = (
            position / self.run,
            i128::from(self.offset) + i128::from(position % self.run),
        );
        for l in &self.loops {
            at += i128::from(rest % l.count) * i128::from(l.stride);
            rest /= l.count;
        }
        u64::try_from(at).ok()
    }

    /// Start and size of each piece of the bytes at these positions, as far as the pattern has them. Only for patterns that
    /// [fit](Pattern::fits) their buffer.
    pub fn pieces(&self, positions: Range<u64>, mut visit: impl FnMut(u64, u64)) {
        let (mut at, end) = (
            positions.start,
            positions.end.min(self.bytes().unwrap_or(0)),
        );
        if at >= end {
            return;
        }
        for start in self.runs_from(at / self.run) {
            let within = at % self.run;
            let size = (self.run - within).min(end - at);
            visit(start + within, size);
            at += size;
            if at >= end {
                break;
            }
        }
    }

    /// Where a copy from `source` to this pattern takes the byte at an offset from; `None` where it does not write it.
    pub fn counterpart(&self, at: u64, source: &Pattern) -> Option<u64> {
        source.offset_of(self.position(at)?)
    }

    /// The same bytes, `by` further on; `None` where the offset leaves 64 bits.
    pub fn shifted(&self, by: i64) -> Option<Pattern> {
        Some(Pattern {
            offset: self.offset.checked_add_signed(by)?,
            ..self.clone()
        })
    }
}

/// The last position of a byte, counted from where the loops start, in runs with loops around them.
fn find(loops: &[Loop], run: u64, at: i128) -> Option<u64> {
    let Some((outer, inner)) = loops.split_last() else {
        return u64::try_from(at).ok().filter(|at| *at < run);
    };
    let inside = Pattern {
        offset: 0,
        run,
        loops: inner.into(),
    };
    let (extent, size) = (inside.extent(), inside.bytes()?);
    if extent.is_empty() || outer.count == 0 {
        return None;
    }
    // Only these iterations reach the byte.
    let last = i128::from(outer.count) - 1;
    let (nearest, farthest) = (at - (extent.end - 1), at - extent.start);
    let stride = i128::from(outer.stride);
    let (first, last) = match stride {
        0 => (last, last),
        1.. => (
            -(-nearest).div_euclid(stride),
            farthest.div_euclid(stride).min(last),
        ),
        _ => (
            -farthest.div_euclid(-stride),
            (-nearest).div_euclid(-stride).min(last),
        ),
    };
    (first.max(0)..=last).rev().find_map(|index| {
        let position = find(inner, run, at - index * stride)?;
        Some(index as u64 * size + position)
    })
}

/// Iterator over the starts of a pattern's runs.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    pattern: &'a Pattern,
    index: [u64; MAX_LOOPS],
    at: i64,
    done: bool,
}

impl Iterator for Runs<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.done {
            return None;
        }
        let here = self.at as u64;
        for (index, l) in self.index.iter_mut().zip(&self.pattern.loops) {
            *index += 1;
            if *index < l.count {
                self.at = self.at.wrapping_add(l.stride);
                return Some(here);
            }
            *index = 0;
            self.at = self
                .at
                .wrapping_sub(l.stride.wrapping_mul(l.count as i64 - 1));
        }
        self.done = true;
        Some(here)
    }
}

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// The task takes these bytes.
    Read,
    /// The task puts these bytes.
    Write,
}

/// Whether the program alone fixes the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Exactly these bytes, on every run.
    Exact,
    /// A subset of these bytes: data decides (a gather, a table of addresses).
    May,
}

/// One strided piece of what a task reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Where.
    pub buffer: BufferId,
    /// Which bytes.
    pub pattern: Pattern,
    /// Read or write.
    pub direction: Direction,
    /// Exact, or a bound.
    pub certainty: Certainty,
    /// Which of the task's tensors the bytes belong to: what it reads under one number is one tensor.
    pub tensor: u8,
}

impl Access {
    /// The number of what is no tensor but the task's own description, which stands in memory (NPU4 descriptors). It is full of addresses.
    pub const DESCRIPTION: u8 = u8::MAX;

    /// An exact read.
    pub fn read(buffer: BufferId, pattern: Pattern) -> Access {
        Access {
            buffer,
            pattern,
            direction: Direction::Read,
            certainty: Certainty::Exact,
            tensor: 0,
        }
    }

    /// An exact write.
    pub fn write(buffer: BufferId, pattern: Pattern) -> Access {
        Access {
            buffer,
            pattern,
            direction: Direction::Write,
            certainty: Certainty::Exact,
            tensor: 0,
        }
    }

    /// The same access as a bound: the task touches a subset that data decides.
    #[must_use]
    pub fn may(self) -> Access {
        Access {
            certainty: Certainty::May,
            ..self
        }
    }

    /// The same access as a part of the task's tensor of this number.
    #[must_use]
    pub fn of(self, tensor: u8) -> Access {
        Access { tensor, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, loop by loop.
    fn naive(offset: u64, loops: &[Loop]) -> Vec<u64> {
        let mut starts = vec![offset as i64];
        for l in loops {
            starts = (0..l.count as i64)
                .flat_map(|i| starts.iter().map(move |s| (i, *s)).collect::<Vec<_>>())
                .map(|(i, s)| s + i * l.stride)
                .collect();
        }
        starts.into_iter().map(|s| s as u64).collect()
    }

    proptest! {
        #[test]
        fn folding_keeps_every_byte_in_order(run in 1u64..9, loops in prop::collection::vec((0u64..5, -40i64..40), 0..6)) {
            let loops: Vec<Loop> = loops.into_iter().map(|(count, stride)| Loop { count, stride }).collect();
            let spread = |starts: Vec<u64>, run: u64| starts.into_iter().flat_map(move |s| s..s + run).collect::<Vec<_>>();
            let want = spread(naive(10_000, &loops), run);
            let pattern = Pattern::new(10_000, run, loops.iter().copied());
            let got = spread(pattern.runs().collect(), pattern.run);
            prop_assert_eq!(&want, &got);
            prop_assert_eq!(pattern.bytes(), Some(want.len() as u64));
            for at in 9_990..10_100 {
                let last = want.iter().rposition(|byte| *byte == at).map(|position| position as u64);
                prop_assert_eq!(pattern.position(at), last);
                prop_assert_eq!(last.and_then(|position| pattern.offset_of(position)), last.map(|_| at));
            }
            prop_assert_eq!(pattern.offset_of(want.len() as u64), None);
            let (from, to) = (want.len() as u64 / 3, want.len() as u64 * 2 / 3);
            let mut pieces = Vec::new();
            pattern.pieces(from..to, |start, size| pieces.extend(start..start + size));
            prop_assert_eq!(&pieces, &want[from as usize..to as usize]);
            let ranges = pattern.ranges(20_000, u64::MAX);
            prop_assert!(ranges.iter().all(|range| !range.is_empty()));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end != pair[1].start));
            prop_assert_eq!(&want, &ranges.into_iter().flatten().collect::<Vec<_>>());
            // Joined runs hold all bytes, and are no more than were asked for.
            for most in [1, 3, 8] {
                let joined = pattern.ranges(20_000, most);
                prop_assert!(joined.len() as u64 <= most);
                prop_assert!(want.iter().all(|at| joined.iter().any(|range| range.contains(at))));
            }
            let inside: Vec<u64> = want.iter().copied().filter(|at| *at < 10_050).collect();
            for range in pattern.ranges(10_050, 0) {
                prop_assert_eq!(&range, &pattern.inside(10_050));
                prop_assert!(range.end <= 10_050 && inside.iter().all(|at| range.contains(at)));
            }
            let extent = pattern.extent();
            if let (Some(low), Some(high)) = (want.iter().min(), want.iter().max()) {
                prop_assert_eq!(extent, i128::from(*low)..i128::from(*high) + 1);
            } else {
                prop_assert!(extent.is_empty());
            }
        }
    }

    #[test]
    fn hostile_strides_do_not_wrap() {
        let pattern = Pattern::new(
            u64::MAX,
            u64::MAX,
            [Loop {
                count: u64::MAX,
                stride: i64::MIN,
            }],
        );
        assert!(!pattern.fits(u64::MAX));
        assert_eq!(pattern.bytes(), None);
        assert_eq!(pattern.count(), u64::MAX);
        assert_eq!(pattern.ranges(64, u64::MAX), vec![0..64]);
    }
}
