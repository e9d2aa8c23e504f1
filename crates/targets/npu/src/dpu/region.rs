//! Byte regions that a workload touches, and how lists of runs become few strided patterns.

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
}

/// Collects runs of bytes into patterns: runs that continue each other are joined, runs of one size at a constant
/// distance become a loop. The bytes stay exactly the same; only their grouping is chosen here.
pub(super) struct Runs<F: FnMut(Pattern)> {
    current: Option<(u64, u64, i64, u64)>,
    emit: F,
}

impl<F: FnMut(Pattern)> Runs<F> {
    pub(super) fn new(emit: F) -> Runs<F> {
        Runs { current: None, emit }
    }

    /// Adds `size` bytes from `start`.
    pub(super) fn push(&mut self, start: u64, size: u64) {
        let Some((first, length, stride, count)) = &mut self.current else {
            self.current = Some((start, size, 0, 1));
            return;
        };
        let distance = start as i64 - *first as i64;
        if *count == 1 && start == *first + *length {
            *length += size;
        } else if *count == 1 && *length == size {
            (*stride, *count) = (distance, 2);
        } else if *length == size && distance == *stride * *count as i64 {
            *count += 1;
        } else {
            self.flush();
            self.current = Some((start, size, 0, 1));
        }
    }

    /// Emits what is left.
    pub(super) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        if let Some((first, length, stride, count)) = self.current.take() {
            (self.emit)(Pattern::new(first, length, [Loop { count, stride }]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(runs: &[(u64, u64)]) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        let mut collector = Runs::new(|pattern| patterns.push(pattern));
        for (start, size) in runs {
            collector.push(*start, *size);
        }
        collector.finish();
        patterns
    }

    #[test]
    fn equal_steps_become_one_loop() {
        assert_eq!(collect(&[(0, 8), (8, 8), (16, 8)]), [Pattern::contiguous(0, 24)]);
        assert_eq!(collect(&[(100, 8), (80, 8), (60, 8), (0, 8)]).len(), 2);
        assert_eq!(collect(&[(0, 8), (32, 8), (64, 8)]), [Pattern::new(0, 8, [Loop { count: 3, stride: 32 }])]);
    }

    proptest! {
        #[test]
        fn bytes_stay_the_same(runs in prop::collection::vec((0u64..200, 1u64..4), 0..40)) {
            let spread = |start: u64, size: u64| start..start + size;
            let want: Vec<u64> = runs.iter().flat_map(|(start, size)| spread(*start, *size)).collect();
            let got: Vec<u64> = collect(&runs).iter()
                .flat_map(|p| p.runs().flat_map(|s| spread(s, p.run)).collect::<Vec<_>>()).collect();
            prop_assert_eq!(got, want);
        }
    }
}
