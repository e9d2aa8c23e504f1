//! Byte regions that a workload touches, and how lists of ranges become few strided patterns.

use super::swizzle::ROW;
use chipless_model::{Loop, Pattern};

/// Bytes of CMX behind each tile's 2 MiB of address space (`cmx_slice_size`); a bound where pointers are data.
pub const TILE_BYTES: u64 = 0x18_0000;

/// Bytes of address space of a tile.
pub(super) const ADDRESS_SPACE: u64 = 0x20_0000;

/// Strided bytes of one tile that a workload reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Which tile.
    pub tile: u8,
    /// Which bytes, from the start of the tile's address space.
    pub pattern: Pattern,
    /// Written, or else read.
    pub write: bool,
    /// A bound: data decides which of these bytes are touched.
    pub may: bool,
    /// Which of the workload's tensors, if it is read.
    pub tensor: Operand,
}

/// A tensor that a workload reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Activations, with their pointers and map where they are sparse.
    Activations = 1,
    /// The second operand of an elementwise operation.
    Second = 2,
    /// The weight table, and what it points to.
    Weights = 3,
}

/// Ranges of bytes (start and size), in any order, as few strided patterns: ranges that touch or overlap are joined, ranges of one size at a
/// constant distance become a loop. The bytes stay exactly the same, each once; only their grouping is chosen here.
pub(super) fn strided(mut ranges: Vec<(u64, u64)>, mut emit: impl FnMut(Pattern)) {
    ranges.retain(|(_, size)| *size > 0);
    // Most lists are in order but for neighbours: the ranges of a turned row.
    ranges
        .chunk_by_mut(|(a, _), (b, _)| a / ROW == b / ROW)
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
        fn bytes_stay_the_same(ranges in prop::collection::vec((0u64..200, 0u64..4), 0..40)) {
            let spread = |start: u64, size: u64| start..start + size;
            let want: BTreeSet<u64> = ranges.iter().flat_map(|(start, size)| spread(*start, *size)).collect();
            let got: Vec<u64> = collect(&ranges).iter()
                .flat_map(|p| p.runs().flat_map(|s| spread(s, p.run)).collect::<Vec<_>>()).collect();
            prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
        }
    }
}
