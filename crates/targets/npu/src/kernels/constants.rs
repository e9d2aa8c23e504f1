//! Which constant bytes stand in CMX when a task runs: weight tables and sparsity maps say where weights stand, so that
//! the accesses of a workload are exact where these are known.

use crate::address::TILES;
use std::sync::{Arc, OnceLock};

/// What tasks bring into the CMX of each tile. It is filled while the program is lowered, and complete once that is done.
#[derive(Debug, Default)]
pub(crate) struct Constants<'i> {
    tiles: [Vec<Arrival<'i>>; TILES as usize],
}

/// Bytes that a task writes into CMX.
#[derive(Debug)]
struct Arrival<'i> {
    /// Position of the task in the order of the walk.
    position: usize,
    low: u64,
    high: u64,
    /// The bytes, where the file has them.
    bytes: Option<&'i [u8]>,
}

impl<'i> Constants<'i> {
    /// The task at this position of the walk writes bytes from `low` to before `high`: these, or unknown ones.
    pub(crate) fn arrive(&mut self, tile: u8, position: usize, low: u64, high: u64, bytes: Option<&'i [u8]>) {
        if let Some(arrivals) = self.tiles.get_mut(tile as usize) {
            arrivals.push(Arrival { position, low, high, bytes });
        }
    }

    /// Puts the arrivals into the order of the walk.
    pub(crate) fn finish(mut self) -> Constants<'i> {
        self.tiles.iter_mut().for_each(|arrivals| arrivals.sort_by_key(|a| a.position));
        self
    }

    fn known(&self, tile: u8, position: usize, offset: u64, size: u64) -> Option<&'i [u8]> {
        let arrivals = self.tiles.get(tile as usize)?;
        let end = offset.checked_add(size)?;
        let before = arrivals.partition_point(|a| a.position < position);
        let last = arrivals[..before].iter().rev().find(|a| a.low < end && offset < a.high)?;
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
        Some(self.constants.get()?.known(tile, self.position, offset, size)?.to_vec())
    }
}
