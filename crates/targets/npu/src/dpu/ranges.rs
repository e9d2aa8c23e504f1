//! Lists of ranges of bytes, and how they become few strided patterns.

use chipless_model::{Loop, Pattern, Swizzle};
use std::ops::Range;

/// The bytes of a pattern of logical addresses where they stand, as patterns.
pub(crate) fn physical(pattern: Pattern, swizzle: Swizzle, mut visit: impl FnMut(Pattern)) {
    if swizzle.is_off() {
        return visit(pattern);
    }
    let mut ranges = Ranges::new(swizzle);
    for start in pattern.runs() {
        ranges.add(start, pattern.run);
    }
    strided(ranges.finish(), visit);
}

/// Ranges of logical bytes, and where in memory they stand: start and size, in no particular order. Those that follow each other
/// are one; a row that is needed whole is one range, however it is turned, and so are several in succession.
pub(super) struct Ranges {
    swizzle: Swizzle,
    /// What comes next, if it is not empty.
    logical: Range<u64>,
    found: Vec<(u64, u64)>,
}

impl Ranges {
    pub(super) fn new(swizzle: Swizzle) -> Ranges {
        Ranges {
            swizzle,
            logical: 0..0,
            found: Vec::new(),
        }
    }

    /// Adds `size` logical bytes from `address`.
    pub(super) fn add(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        if address == self.logical.end {
            self.logical.end = end;
            return;
        }
        self.turn();
        self.logical = address..end;
    }

    /// Where they stand in memory.
    pub(super) fn finish(mut self) -> Vec<(u64, u64)> {
        self.turn();
        self.found
    }

    fn turn(&mut self) {
        let (address, end) = (self.logical.start, self.logical.end);
        let (size, ranges) = (end - address, &mut self.found);
        if size == 0 {
            return;
        }
        if self.swizzle.is_off() {
            ranges.push((address, size));
            return;
        }
        // Many are a few bytes of one row, in one piece.
        if let Some(start) = self.swizzle.piece(address, size) {
            ranges.push((start, size));
            return;
        }
        let row = self.swizzle.row();
        let (first, last) = (address.div_ceil(row) * row, end / row * row);
        if first >= last {
            ranges.extend(self.swizzle.pieces(address, size));
        } else {
            ranges.extend(self.swizzle.pieces(address, first - address));
            ranges.push((first, last - first));
            ranges.extend(self.swizzle.pieces(last, end - last));
        }
    }
}

/// Ranges of bytes (start and size), in any order, as few strided patterns: ranges that touch or overlap are joined, ranges of one size at a
/// constant distance become a loop. The bytes stay exactly the same, each once; only their grouping is chosen here.
pub(super) fn strided(mut ranges: Vec<(u64, u64)>, mut emit: impl FnMut(Pattern)) {
    ranges.retain(|(_, size)| *size > 0);
    // Most lists are in order but for neighbours: the ranges of a turned row.
    ranges
        .chunk_by_mut(|(a, _), (b, _)| a / Swizzle::ROW == b / Swizzle::ROW)
        .for_each(<[_]>::sort_unstable);
    // Others are a few lists in order: a sort that finds these.
    ranges.sort_by_key(|(start, _)| *start);
    ranges.dedup_by(|(next, size), (first, length)| {
        let joins = *next <= *first + *length;
        if joins {
            *length = (*length).max(*next + *size - *first);
        }
        joins
    });
    let mut rest = &ranges[..];
    while let Some(((start, size), others)) = rest.split_first() {
        let stride = others.first().map_or(0, |(next, _)| next - start);
        let continues = |((last, _), (next, length)): &((u64, u64), (u64, u64))| {
            next - last == stride && length == size
        };
        let count = 1 + rest
            .iter()
            .copied()
            .zip(others.iter().copied())
            .take_while(continues)
            .count();
        emit(Pattern::new(
            *start,
            *size,
            [Loop {
                count: count as u64,
                stride: stride as i64,
            }],
        ));
        rest = &rest[count..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn collect(ranges: &[(u64, u64)]) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        strided(ranges.to_vec(), |pattern| patterns.push(pattern));
        patterns
    }

    #[test]
    fn equal_steps_become_one_loop() {
        assert_eq!(
            collect(&[(0, 8), (16, 8), (8, 8)]),
            [Pattern::contiguous(0, 24)]
        );
        assert_eq!(collect(&[(100, 8), (80, 8), (60, 8), (0, 8)]).len(), 2);
        assert_eq!(
            collect(&[(0, 8), (32, 8), (64, 8)]),
            [Pattern::new(
                0,
                8,
                [Loop {
                    count: 3,
                    stride: 32
                }]
            )]
        );
        assert_eq!(collect(&[(0, 8), (32, 8), (64, 4)]).len(), 2);
    }

    proptest! {
        #[test]
        fn turned_ranges_hold_each_byte_where_it_belongs(key in 0u32..=5, address in 0u64..70_000, size in 0u64..5_000) {
            let swizzle = Swizzle::from_key(key).expect("key exists");
            let want: Vec<u64> = swizzle.pieces(address, size).flat_map(|(start, size)| start..start + size).collect();
            let sorted = |mut bytes: Vec<u64>| { bytes.sort_unstable(); bytes };
            // The same bytes in three parts.
            let mut ranges = Ranges::new(swizzle);
            let cuts = [0, size / 3, size / 2, size];
            for part in cuts.windows(2) {
                ranges.add(address + part[0], part[1] - part[0]);
            }
            let ranges = ranges.finish();
            prop_assert!(ranges.len() <= 5, "{ranges:?}");
            // Backwards, and with a part that stands elsewhere.
            let mut parts = Ranges::new(swizzle);
            for part in cuts.windows(2).rev() {
                parts.add(address + part[0], part[1] - part[0]);
                parts.add(100_000, 7);
            }
            let elsewhere = |byte: &u64| *byte < 80_000;
            let mut bytes: Vec<u64> = parts.finish().into_iter().flat_map(|(start, size)| start..start + size).filter(elsewhere).collect();
            bytes.sort_unstable();
            prop_assert_eq!(&bytes, &sorted(want.clone()));
            prop_assert_eq!(sorted(ranges.into_iter().flat_map(|(start, size)| start..start + size).collect()), sorted(want));
        }

        #[test]
        fn bytes_stay_the_same(ranges in prop::collection::vec((0u64..200, 0u64..4), 0..40)) {
            let spread = |start: u64, size: u64| start..start + size;
            let want: BTreeSet<u64> = ranges.iter().flat_map(|(start, size)| spread(*start, *size)).collect();
            let got: Vec<u64> = collect(&ranges).iter()
                .flat_map(|p| p.runs().flat_map(|s| spread(s, p.run)).collect::<Vec<_>>()).collect();
            prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
        }
    }
}
