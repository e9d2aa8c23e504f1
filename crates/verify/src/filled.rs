//! Which bytes of a buffer have been written, where tasks write the same columns of many rows: nearly always of the same rows, so that
//! their columns alone tell whether others of these rows may be read.

use crate::footprint::Extent;
use crate::written::Written;
use rustc_hash::FxHashMap;

/// Sets of rows, at most, of which the columns are kept.
const SETS: usize = 16;

/// The written bytes of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    /// Byte by byte, without what is pending.
    bytes: Written,
    /// Most buffers have one row, and none of this.
    rows: Option<Box<Rows>>,
}

/// What has been written of several rows at a time.
#[derive(Debug, Default)]
struct Rows {
    /// Columns that have been written of all of these rows.
    columns: FxHashMap<(u32, u32), Written>,
    /// Columns of rows that are not among the bytes yet.
    pending: Vec<Extent>,
}

impl Filled {
    /// A buffer of which these bytes are written.
    pub(crate) fn new(bytes: Written) -> Filled {
        Filled {
            bytes,
            ..Filled::default()
        }
    }

    /// Adds the bytes from `low` to before `high`.
    pub(crate) fn insert(&mut self, low: u64, high: u64) {
        self.bytes.insert(low, high);
    }

    /// Adds the bytes of some runs.
    pub(crate) fn extend(&mut self, runs: impl IntoIterator<Item = (u64, u64)>) {
        self.bytes.extend(runs);
    }

    /// Adds all bytes of an extent, in a buffer of this pitch.
    pub(crate) fn fill(&mut self, extent: Extent, pitch: u64) {
        let is_kept =
            |rows: &Rows| rows.columns.len() < SETS || rows.columns.contains_key(&extent.rows);
        let is_one = extent.rows.1 - extent.rows.0 == 1;
        if is_one || !self.rows.as_deref().is_none_or(is_kept) {
            let ranges = extent.ranges(pitch);
            return self.extend(ranges);
        }
        let rows = self.rows.get_or_insert_default();
        let columns = rows.columns.entry(extent.rows).or_default();
        columns.insert(extent.low, extent.high);
        rows.pending.push(extent);
    }

    /// Whether all bytes of an extent have been written.
    pub(crate) fn covers(&mut self, extent: Extent, pitch: u64) -> bool {
        let rows = self.rows.as_ref();
        let columns = rows.and_then(|rows| rows.columns.get(&extent.rows));
        let is_known = columns.is_some_and(|c| c.first_missing(extent.low, extent.high).is_none());
        if is_known {
            return true;
        }
        let bytes = self.bytes(pitch);
        extent
            .ranges(pitch)
            .all(|(low, high)| bytes.first_missing(low, high).is_none())
    }

    /// Byte by byte, where that has been [found out](Filled::bytes) since the last bytes were added.
    pub(crate) fn settled(&self) -> &Written {
        &self.bytes
    }

    /// Byte by byte.
    pub(crate) fn bytes(&mut self, pitch: u64) -> &mut Written {
        let rows = self.rows.iter_mut();
        for extent in rows.flat_map(|rows| rows.pending.drain(..)) {
            let ranges = extent.ranges(pitch);
            self.bytes.extend(ranges);
        }
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PITCH: u64 = 64;

    fn extent() -> impl Strategy<Value = Extent> {
        (0u32..20, 1u32..6, 0u64..60, 1u64..40).prop_map(|(row, count, low, size)| Extent {
            rows: (row, row + count),
            low,
            high: (low + size).min(PITCH),
            whole: true,
        })
    }

    proptest! {
        /// Of few sets of rows and of many.
        #[test]
        fn agrees_with_a_flag_for_each_byte(steps in prop::collection::vec((any::<bool>(), extent()), 0..60)) {
            let mut filled = Filled::default();
            let mut flags = vec![false; 32 * PITCH as usize];
            for (writes, extent) in steps {
                let bytes = || extent.ranges(PITCH).flat_map(|(low, high)| low as usize..high as usize);
                if writes {
                    filled.fill(extent, PITCH);
                    bytes().for_each(|byte| flags[byte] = true);
                } else {
                    prop_assert_eq!(filled.covers(extent, PITCH), bytes().all(|byte| flags[byte]));
                }
            }
        }
    }
}
