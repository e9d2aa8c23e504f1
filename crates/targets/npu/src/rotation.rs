//! Swizzle keys of producers and consumers: bytes that a DPU has put down rotated must be read rotated alike.
//!
//! What tasks write in CMX is followed in the order in which the walk ran them. Bytes of DMAs and SHAVEs have no key: constants come
//! rotated from the file, and a copy keeps what it copies. A SHAVE reads without any. Rows that two keys leave alike may be
//! written with one and read with the other.

use crate::dpu::{Operand, Workload, turn};
use chipless_model::{Access, Certainty, Direction, Finding, Place, Program, TaskId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

chipless_model::rules! {
    SWIZZLE_KEY Fault Error Hardware "npu-swizzle-key" "a tensor is read with another swizzle key than it was written with"
        "A DPU rotates 32-byte units inside rows of 1 KiB by an amount that the key and the row decide. A DPU that reads the tensor with another key, or a SHAVE, which knows no rotation, takes the bytes in another order: the numbers are those of other elements."
        "Give the output of the one (swizzle_key) and the input of the other (swizzle_key_offset) the same key."
        "NPU4 CMX swizzling; compiled programs";
}

/// Bytes of a row inside which addresses rotate.
const ROW: u64 = 1024;
/// Runs of an access that are followed one by one. What has more is not judged.
const RUNS: u64 = 256;

/// Keys of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Keys {
    /// Of what it writes.
    written: Option<u32>,
    /// Of its first and second tensor.
    read: [Option<u32>; 2],
}

/// What a task does to bytes of a tile.
#[derive(Debug)]
struct Event {
    /// The position of the task in the walk.
    walked: usize,
    /// Reads come before the writes of the same task.
    write: bool,
    tile: u8,
    bytes: Range<u64>,
    /// The key that it has, if any.
    key: Option<u32>,
}

/// Bytes with the key that they were put down with, and the position of the task that did it.
type Written = BTreeMap<u64, (u64, Option<u32>, usize)>;

/// Everything that tasks read and write in CMX.
#[derive(Debug, Default)]
pub(crate) struct Rotations {
    events: Vec<Event>,
    /// Keys of the task whose accesses come next.
    keys: Keys,
    /// Tasks by their position in the walk.
    tasks: HashMap<usize, TaskId>,
}

impl Rotations {
    /// Says that the task whose accesses come next is this workload.
    pub(crate) fn note_workload(&mut self, workload: &Workload) {
        let (written, [first, second]) = workload.swizzle_keys();
        self.keys = Keys {
            written: Some(written),
            read: [Some(first), Some(second)],
        };
    }

    /// Says that the task whose accesses come next is a SHAVE.
    pub(crate) fn note_shave(&mut self) {
        self.keys = Keys {
            written: None,
            read: [Some(0); 2],
        };
    }

    /// Notes an access of a task to a tile.
    pub(crate) fn add(&mut self, walked: usize, tile: u8, access: &Access) {
        let extent = access.pattern.extent();
        let (Ok(start), Ok(end)) = (u64::try_from(extent.start), u64::try_from(extent.end)) else {
            return;
        };
        let write = access.direction == Direction::Write;
        let runs = access.pattern.bytes().unwrap_or(u64::MAX) / access.pattern.run.max(1);
        let key = match access.tensor {
            _ if access.certainty == Certainty::May => None,
            _ if write => self.keys.written,
            tensor if tensor == Operand::Activations as u8 => self.keys.read[0],
            tensor if tensor == Operand::Second as u8 => self.keys.read[1],
            _ => None,
        };
        let mut event = |bytes: Range<u64>, key| {
            // What continues the access before is one with it.
            if let Some(last) = self.events.last_mut()
                && (last.walked, last.write, last.tile) == (walked, write, tile)
                && (last.key, last.bytes.end) == (key, bytes.start)
            {
                last.bytes.end = bytes.end;
            } else {
                self.events.push(Event {
                    walked,
                    write,
                    tile,
                    bytes,
                    key,
                });
            }
        };
        if runs <= 1 {
            if write || key.is_some() {
                event(start..end, key);
            }
        } else if key.is_some() && runs <= RUNS {
            let runs = access.pattern.runs();
            runs.for_each(|start| event(start..start + access.pattern.run, key));
        } else if write {
            event(start..end, None);
        }
    }

    /// Says which task it is whose accesses were noted.
    pub(crate) fn note_task(&mut self, walked: usize, task: TaskId) {
        self.tasks.insert(walked, task);
        self.keys = Keys::default();
    }

    /// The first input of each place that is read with another key than it was written with.
    pub(crate) fn check(mut self, program: &Program<'_>) -> Vec<Finding> {
        if self.events.iter().all(|e| e.key.is_none_or(|key| key == 0)) {
            return Vec::new();
        }
        let place = |walked: usize| {
            self.tasks
                .get(&walked)
                .map_or_else(Place::file, |task| program.place(*task))
        };
        self.events.sort_by_key(|event| (event.walked, event.write));
        let mut tiles: BTreeMap<u8, Written> = BTreeMap::new();
        let (mut findings, mut known) = (Vec::new(), HashSet::new());
        for event in self.events {
            let written = tiles.entry(event.tile).or_default();
            if event.write {
                put(written, event.bytes, event.key, event.walked);
                continue;
            }
            let Some(key) = event.key else { continue };
            let other =
                overlapping(written, &event.bytes).find_map(|(start, end, other, writer)| {
                    let common = start.max(event.bytes.start)..end.min(event.bytes.end);
                    let other = other.filter(|other| differ(*other, key, &common))?;
                    Some((start, other, writer))
                });
            if let Some((start, other, writer)) = other
                && known.insert((event.tile, start))
            {
                let message = format!(
                    "reads bytes {:#x}..{:#x} of tile {} with swizzle key {key}, they were written with key {other}",
                    event.bytes.start, event.bytes.end, event.tile
                );
                findings.push(
                    SWIZZLE_KEY
                        .at(place(event.walked), message)
                        .with(place(writer), "the workload that wrote them"),
                );
            }
        }
        findings
    }
}

/// Whether two keys put any of some bytes into different places.
fn differ(one: u32, other: u32, bytes: &Range<u64>) -> bool {
    one != other
        && (bytes.start / ROW..bytes.end.div_ceil(ROW))
            .any(|row| turn(one, row) != turn(other, row))
}

fn overlapping<'w>(
    written: &'w Written,
    bytes: &Range<u64>,
) -> impl Iterator<Item = (u64, u64, Option<u32>, usize)> + use<'w> {
    let start = bytes.start;
    let first = written
        .range(..=start)
        .next_back()
        .map_or(start, |(first, _)| *first);
    let range = written.range(first..bytes.end.max(first));
    range
        .map(|(start, (end, key, writer))| (*start, *end, *key, *writer))
        .filter(move |(_, end, ..)| *end > start)
}

/// Notes bytes; what stood there before is cut or forgotten.
fn put(written: &mut Written, bytes: Range<u64>, key: Option<u32>, writer: usize) {
    if bytes.is_empty() {
        return;
    }
    let old: Vec<u64> = overlapping(written, &bytes)
        .map(|(start, ..)| start)
        .collect();
    for start in old {
        let Some((end, key, writer)) = written.remove(&start) else {
            continue;
        };
        if end > bytes.end {
            written.insert(bytes.end, (end, key, writer));
        }
        if start < bytes.start {
            written.insert(start, (bytes.start, key, writer));
        }
    }
    written.insert(bytes.start, (bytes.end, key, writer));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_that_two_keys_leave_alike_do_not_differ() {
        assert!(!differ(5, 0, &(0..1024)));
        assert!(differ(5, 0, &(0..1025)));
        assert!(!differ(5, 0, &(32 * 1024..33 * 1024)));
        assert!(differ(4, 5, &(1024..1056)) && !differ(5, 5, &(0..9999)));
    }

    proptest! {
        /// Against a byte for each byte.
        #[test]
        fn the_last_writer_of_each_byte_is_known(writes in prop::collection::vec((0u64..60, 0u64..20, 0u32..6), 0..20), read in (0u64..80, 1u64..20)) {
            let (mut written, mut naive) = (Written::new(), vec![None; 100]);
            for (start, size, key) in writes {
                put(&mut written, start..start + size, Some(key), 0);
                naive[start as usize..(start + size) as usize].fill(Some(key));
            }
            let read = read.0..read.0 + read.1;
            let mut found = vec![None; 100];
            for (start, end, key, _) in overlapping(&written, &read) {
                found[start as usize..end as usize].fill(key);
            }
            let range = read.start as usize..read.end as usize;
            prop_assert_eq!(&found[range.clone()], &naive[range]);
        }
    }
}
