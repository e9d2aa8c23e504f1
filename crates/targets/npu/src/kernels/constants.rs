//! Which constant bytes stand in CMX when a task runs: weight tables and sparsity maps say where weights stand, so that
//! the accesses of a workload are exact where these are known.

use crate::address::{CMX_REACH, TILES};
use crate::dpu::{Workload, physical};
use chipless_model::Pattern;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Bytes of CMX that have a list of arrivals of their own: who asks for a few bytes looks at what came near them.
const PART: u64 = 16 << 10;

/// What tasks bring into the CMX of each tile. It is filled while the program is lowered, and looked at once that is done.
#[derive(Debug, Default)]
pub(crate) struct Constants<'i> {
    /// What was told.
    told: Arrivals<'i>,
    workloads: Vec<(usize, Arc<Workload>)>,
    /// With what workloads write, once somebody asks: to time a program nobody does.
    all: OnceLock<Arrivals<'i>>,
}

/// Bytes that tasks write into CMX.
#[derive(Clone, Debug, Default)]
struct Arrivals<'i> {
    /// Parts of each tile, and the arrivals in each.
    tiles: [Vec<Vec<Arrival<'i>>>; TILES as usize],
    count: usize,
}

impl<'i> Constants<'i> {
    /// The task at this position of the walk writes these bytes of a tile: all of them if that is exact, or else some. `bytes` are what it
    /// writes, where the file has them.
    pub(crate) fn arrive(
        &mut self,
        tile: u8,
        position: usize,
        pattern: &Pattern,
        is_exact: bool,
        bytes: Option<&'i [u8]>,
    ) {
        self.told.add(tile, position, pattern, is_exact, bytes);
    }

    /// Puts what was told into the order of the walk, once it is all there.
    pub(crate) fn settle(&mut self) {
        self.told = std::mem::take(&mut self.told).finish();
    }

    /// The last task that was told to write a byte of a tile before the task at a position runs: its position and the first byte that it
    /// wrote there, once it is [settled](Constants::settle). What workloads write does not count.
    pub(crate) fn brought_by(&self, tile: u8, position: usize, byte: u64) -> Option<(usize, u64)> {
        let parts = self.told.tiles.get(tile as usize)?;
        let part = parts.get((byte / PART) as usize)?;
        let before = part.partition_point(|a| a.position < position);
        let touching = |a: &&Arrival<'_>| (a.low..a.high).contains(&byte);
        let last = part[..before].iter().rev().find(touching)?;
        Some((last.position, last.low))
    }

    /// Bytes of a tile that tasks are told to have brought before the task at a position runs, once it is
    /// [settled](Constants::settle).
    pub(crate) fn brought(
        &self,
        tile: u8,
        position: usize,
        offset: u64,
        size: u64,
    ) -> Option<Vec<u8>> {
        Some(self.told.known(tile, position, offset, size)?.to_vec())
    }

    /// The task at this position of the walk is a workload.
    pub(crate) fn compute(&mut self, position: usize, workload: Arc<Workload>) {
        self.workloads.push((position, workload));
    }

    /// The workloads, by their position in the walk.
    pub(crate) fn workloads(&self) -> &[(usize, Arc<Workload>)] {
        &self.workloads
    }

    fn all(&self) -> &Arrivals<'i> {
        self.all.get_or_init(|| {
            let mut all = self.told.clone();
            for (position, workload) in &self.workloads {
                workload.written(&mut |region| {
                    // Of rows with gaps, what they span will do.
                    let (extent, is_whole) =
                        (region.pattern.extent(), region.pattern.loops.is_empty());
                    let size = (extent.end - extent.start) as u64;
                    let span = Pattern::contiguous(extent.start as u64, size);
                    physical(span, region.swizzle, |pattern| {
                        all.add(region.tile, *position, &pattern, is_whole, None);
                    });
                });
            }
            all.finish()
        })
    }

    /// Who was the last to write bytes from `low` to before `high` before the task at a position runs: the position of each such
    /// task, with bytes of which the first is its own. `None` for bytes of which a task may have written some only.
    pub(crate) fn sources(
        &self,
        tile: u8,
        position: usize,
        low: u64,
        high: u64,
    ) -> impl Iterator<Item = (Option<usize>, Range<u64>)> {
        self.all().sources(tile, position, low, high)
    }

    /// Who may have written a byte of a tile before the task at a position runs, latest first, some of them more than once.
    pub(crate) fn writers(
        &self,
        tile: u8,
        position: usize,
        byte: u64,
    ) -> impl Iterator<Item = usize> {
        let parts = self.all().tiles.get(tile as usize);
        let arrivals = parts.and_then(|parts| parts.get((byte / PART) as usize));
        let arrivals = arrivals.map_or(&[][..], Vec::as_slice);
        let before = arrivals.partition_point(|a| a.position < position);
        let touching = arrivals[..before].iter().rev();
        touching
            .filter(move |a| (a.low..a.high).contains(&byte))
            .map(|a| a.position)
    }
}

/// Bytes that a task writes into CMX.
#[derive(Clone, Copy, Debug)]
struct Arrival<'i> {
    /// Position of the task in the order of the walk.
    position: usize,
    /// Which of all arrivals it is.
    number: usize,
    low: u64,
    high: u64,
    /// The bytes, where the file has them.
    bytes: Option<&'i [u8]>,
    /// Whether the task surely writes all of them, rather than some.
    is_whole: bool,
}

impl<'i> Arrivals<'i> {
    fn add(
        &mut self,
        tile: u8,
        position: usize,
        pattern: &Pattern,
        is_exact: bool,
        bytes: Option<&'i [u8]>,
    ) {
        let is_run = pattern.loops.is_empty();
        let extent = pattern.extent();
        let bound = |at: i128| at.clamp(0, i128::from(CMX_REACH)) as u64;
        let range = bound(extent.start)..bound(extent.end);
        let bytes = bytes.filter(|_| is_run);
        self.arrive(tile, position, range, bytes, is_exact && is_run);
    }

    /// The task at this position of the walk writes bytes of a range: these, or unknown ones; all of the range, or some of it.
    fn arrive(
        &mut self,
        tile: u8,
        position: usize,
        Range {
            start: low,
            end: high,
        }: Range<u64>,
        bytes: Option<&'i [u8]>,
        is_whole: bool,
    ) {
        let Some(parts) = self.tiles.get_mut(tile as usize) else {
            return;
        };
        self.count += 1;
        let end = high.min(CMX_REACH).div_ceil(PART) as usize;
        if parts.len() < end {
            parts.resize_with(end, Vec::new);
        }
        for arrivals in parts.iter_mut().take(end).skip((low / PART) as usize) {
            match arrivals.last_mut() {
                // Unknown bytes of one task, one after the other.
                Some(last)
                    if last.bytes.is_none()
                        && bytes.is_none()
                        && last.is_whole == is_whole
                        && last.position == position
                        && last.high == low =>
                {
                    last.high = high;
                }
                _ => arrivals.push(Arrival {
                    position,
                    number: self.count,
                    low,
                    high,
                    bytes,
                    is_whole,
                }),
            }
        }
    }

    /// Puts the arrivals into the order of the walk.
    fn finish(mut self) -> Arrivals<'i> {
        self.tiles
            .iter_mut()
            .flatten()
            .for_each(|arrivals| arrivals.sort_by_key(|a| (a.position, a.number)));
        self
    }

    /// As [`Constants::sources`].
    fn sources(
        &self,
        tile: u8,
        position: usize,
        low: u64,
        high: u64,
    ) -> impl Iterator<Item = (Option<usize>, Range<u64>)> {
        let mut found = Vec::new();
        let mut at = low;
        while at < high {
            let end = high.min((at / PART + 1) * PART);
            let parts = self.tiles.get(tile as usize);
            if let Some(arrivals) = parts.and_then(|parts| parts.get((at / PART) as usize)) {
                let before = arrivals.partition_point(|a| a.position < position);
                // First byte, and one past the last, of what nobody has been found for.
                let mut left = vec![(at, end)];
                for arrival in arrivals[..before].iter().rev() {
                    if left.is_empty() {
                        break;
                    }
                    let is_own = |gap: &&(u64, u64)| gap.0 < arrival.high && arrival.low < gap.1;
                    if let Some((low, high)) = left.iter().find(is_own) {
                        let own = (*low).max(arrival.low)..(*high).min(arrival.high);
                        found.push((arrival.is_whole.then_some(arrival.position), own));
                    }
                    let rest = left.into_iter().flat_map(|(low, high)| {
                        [(low, high.min(arrival.low)), (low.max(arrival.high), high)]
                    });
                    left = rest.filter(|(low, high)| low < high).collect();
                }
            }
            at = end;
        }
        found.into_iter()
    }

    fn known(&self, tile: u8, position: usize, offset: u64, size: u64) -> Option<&'i [u8]> {
        let parts = self.tiles.get(tile as usize)?;
        let end = offset.checked_add(size)?;
        let touched = parts
            .get((offset / PART) as usize..)?
            .iter()
            .take((end.div_ceil(PART) - offset / PART) as usize);
        let last_of = |arrivals: &Vec<Arrival<'i>>| {
            let before = arrivals.partition_point(|a| a.position < position);
            arrivals[..before]
                .iter()
                .rev()
                .find(|a| a.low < end && offset < a.high)
                .copied()
        };
        let last = touched
            .filter_map(last_of)
            .max_by_key(|a| (a.position, a.number))?;
        let start = usize::try_from(offset.checked_sub(last.low)?).ok()?;
        last.bytes?.get(start..)?.get(..usize::try_from(size).ok()?)
    }
}

/// What a task can know of the constants of its tile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge<'i> {
    pub(crate) constants: Arc<OnceLock<Constants<'i>>>,
    /// Position of the task in the order of the walk.
    pub(crate) position: usize,
}

impl Knowledge<'_> {
    /// Bytes of a tile that are certain to stand there when the task runs.
    pub(crate) fn bytes(&self, tile: u8, offset: u64, size: u64) -> Option<Vec<u8>> {
        Some(
            self.constants
                .get()?
                .all()
                .known(tile, self.position, offset, size)?
                .to_vec(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against what each byte holds after every task before.
        #[test]
        fn the_last_arrival_decides(arrivals in prop::collection::vec((0usize..12, 0u64..400, 1u64..120, any::<bool>()), 0..24),
                                    (position, offset, size) in (0usize..14, 0u64..500, 1u64..40)) {
            const SCALE: u64 = PART / 100;
            let file: Vec<u8> = (0..SCALE as usize * 120).map(|i| (i * 7 % 251) as u8).collect();
            // Some tasks write on where they stopped.
            let mut arrivals = arrivals;
            for i in 1..arrivals.len() {
                if arrivals[i].2 % 3 == 0 {
                    (arrivals[i].0, arrivals[i].1) = (arrivals[i - 1].0, arrivals[i - 1].1 + arrivals[i - 1].2);
                }
            }
            arrivals.retain(|(_, start, size, _)| start + size < 600);
            let mut constants = Arrivals::default();
            // The number of the arrival that each byte is from.
            let mut sorted: Vec<_> = arrivals.iter().enumerate().collect();
            sorted.sort_by_key(|(_, (position, ..))| *position);
            for (position, start, size, is_known) in &arrivals {
                let bytes = is_known.then(|| &file[..(size * SCALE) as usize]);
                constants.arrive(1, *position, start * SCALE..(start + size) * SCALE, bytes, true);
            }
            let constants = constants.finish();
            let mut last = vec![None; 600];
            for (number, (at, start, size, is_known)) in sorted {
                if *at < position {
                    last[*start as usize..(start + size) as usize].fill(Some((number, *start, *is_known)));
                }
            }
            let range = offset as usize..(offset + size) as usize;
            let want = match last[offset as usize] {
                Some((number, start, true)) if last[range].iter().all(|l| l.is_some_and(|(n, ..)| n == number)) => {
                    let first = ((offset - start) * SCALE) as usize;
                    Some(&file[first..first + (size * SCALE) as usize])
                }
                _ => None,
            };
            prop_assert_eq!(constants.known(1, position, offset * SCALE, size * SCALE), want);
            prop_assert_eq!(constants.known(0, position, offset * SCALE, size * SCALE), None);
        }
    }
}
