//! Swizzle keys of producers and consumers: bytes that a DPU has put down rotated must be read rotated alike.
//!
//! What tasks write in CMX is followed in the order in which the walk ran them. Bytes of DMAs and SHAVEs have no key: constants come
//! rotated from the file, and a copy keeps what it copies.

use crate::advice::SWIZZLE_KEY;
use crate::dpu::Workload;
use chipless_model::{Access, Direction, Finding, Place, Program, TaskId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// Bytes of an element of activations, at most.
const ELEMENT_BYTES: u64 = 2;

/// Keys of a DPU workload, and where its dense input stands.
#[derive(Clone, Debug)]
struct Keys {
    /// Of what it writes.
    written: u32,
    /// Of what it reads as activations: one key, or two of an elementwise operation.
    read: [u32; 2],
    /// Bytes of the tile among which the input lies.
    input: Range<u64>,
}

impl Keys {
    fn of(workload: &Workload) -> Keys {
        let (written, read) = workload.swizzle_keys();
        let (start, elements) = workload.dense_input();
        Keys {
            written,
            read,
            input: start..start + elements * ELEMENT_BYTES,
        }
    }
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
    /// Keys that it has, or may have.
    keys: Option<[u32; 2]>,
}

/// Bytes with the key that they were put down with, and the position of the task that did it.
type Written = BTreeMap<u64, (u64, Option<u32>, usize)>;

/// Everything that tasks read and write in CMX.
#[derive(Debug, Default)]
pub(crate) struct Rotations {
    events: Vec<Event>,
    /// The last DPU workload: its position in the walk.
    workload: Option<(usize, Keys)>,
    /// Tasks by their position in the walk.
    tasks: HashMap<usize, TaskId>,
}

impl Rotations {
    /// Says that the task whose accesses come next is this workload.
    pub(crate) fn note_workload(&mut self, walked: usize, workload: &Workload) {
        self.workload = Some((walked, Keys::of(workload)));
    }

    /// Notes an access of a task to a tile.
    pub(crate) fn add(&mut self, walked: usize, tile: u8, access: &Access) {
        let extent = access.pattern.extent();
        let (Ok(start), Ok(end)) = (u64::try_from(extent.start), u64::try_from(extent.end)) else {
            return;
        };
        let write = access.direction == Direction::Write;
        let keys = match self
            .workload
            .as_ref()
            .filter(|(position, _)| *position == walked)
            .map(|(_, keys)| keys)
        {
            Some(keys) if write => Some([keys.written; 2]),
            Some(keys) if keys.input.contains(&start) => Some(keys.read),
            _ if write => None,
            _ => return,
        };
        // What continues the access before is one with it.
        if let Some(last) = self.events.last_mut()
            && (
                last.walked,
                last.write,
                last.tile,
                last.keys,
                last.bytes.end,
            ) == (walked, write, tile, keys, start)
        {
            last.bytes.end = end;
        } else {
            self.events.push(Event {
                walked,
                write,
                tile,
                bytes: start..end,
                keys,
            });
        }
    }

    /// Says which task it is whose accesses were noted.
    pub(crate) fn note_task(&mut self, walked: usize, task: TaskId) {
        self.tasks.insert(walked, task);
    }

    /// The first input of each place that is read with another key than it was written with.
    pub(crate) fn check(mut self, program: &Program<'_>) -> Vec<Finding> {
        if self
            .events
            .iter()
            .all(|event| event.keys.is_none_or(|keys| keys == [0; 2]))
        {
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
                put(
                    written,
                    event.bytes,
                    event.keys.map(|keys| keys[0]),
                    event.walked,
                );
                continue;
            }
            let Some(keys) = event.keys else { continue };
            let other = overlapping(written, &event.bytes).find_map(|(start, _, key, writer)| {
                let key = key.filter(|key| !keys.contains(key))?;
                Some((start, key, writer))
            });
            if let Some((start, key, writer)) = other
                && known.insert((event.tile, start))
            {
                let message = format!(
                    "reads bytes {:#x}..{:#x} of tile {} with swizzle key {}, they were written with key {key}",
                    event.bytes.start, event.bytes.end, event.tile, keys[0]
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
