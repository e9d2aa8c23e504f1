//! Swizzle keys of producers and consumers: bytes that a DPU has put down rotated must be read rotated alike.
//!
//! What tasks write in CMX is followed in the order in which the walk ran them. Bytes of DMAs and SHAVEs have no key: constants come
//! rotated from the file, and a copy keeps what it copies. A SHAVE reads without any. Rows that two keys leave alike may be
//! written with one and read with the other.

use super::Subject;
use crate::address;
use crate::dpu::{Operand, Workload, turn};
use crate::schedule::Description;
use chipless_model::{Access, Certainty, Direction, Finding, Pattern};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

chipless_model::rules! {
    SWIZZLE_KEY Fault Error Hardware "npu-swizzle-key" "a tensor is read with another swizzle key than it was written with"
        "A DPU rotates 32-byte units inside rows of 1 KiB by an amount that the key and the row decide. A DPU that reads the tensor with another key, or a SHAVE or the host, which know no rotation, takes the bytes in another order: the numbers are those of other elements."
        "Give the output of the one (swizzle_key) and the input of the other (swizzle_key_offset) the same key."
        "NPU4 CMX swizzling; compiled programs";
}

/// Bytes of a row inside which addresses rotate.
const ROW: u64 = 1024;
/// Runs of an access that are followed one by one. What has more is not judged.
const RUNS: u64 = 256;

/// Bytes with the key that they were put down with, and the position of the task that did it.
type Written = BTreeMap<u64, (u64, Option<u32>, usize)>;

/// The first input of each place that is read with another key than it was written with.
pub(super) fn check(subject: &Subject<'_, '_>) -> Vec<Finding> {
    let is_turned = |(_, workload): &(usize, Arc<Workload>)| {
        let (written, read) = workload.swizzle_keys();
        [written, read[0], read[1]] != [0; 3]
    };
    if !subject.workloads.iter().any(is_turned) {
        return Vec::new();
    }
    let workloads: HashMap<usize, &Workload> = subject
        .workloads
        .iter()
        .map(|(walked, workload)| (*walked, &**workload))
        .collect();
    let mut tiles = Tiles {
        subject,
        written: BTreeMap::new(),
        known: HashSet::new(),
        findings: Vec::new(),
    };
    for (walked, task) in subject.schedule.tasks.iter().enumerate() {
        if let Some(workload) = workloads.get(&walked) {
            tiles.workload(walked, workload);
        } else {
            // A SHAVE reads as if nothing were turned, and so does the host; a DMA takes bytes as they stand.
            let is_plain = match task.description {
                Description::Shave { .. } => true,
                Description::Dma { .. } => tiles.is_output(walked),
                Description::Dpu { .. } => false,
            };
            tiles.other(walked, is_plain.then_some(0));
        }
    }
    tiles.findings
}

struct Tiles<'t, 's, 'i> {
    subject: &'t Subject<'s, 'i>,
    written: BTreeMap<u8, Written>,
    /// Places that have been reported.
    known: HashSet<(u8, u64)>,
    findings: Vec<Finding>,
}

impl Tiles<'_, '_, '_> {
    fn workload(&mut self, walked: usize, workload: &Workload) {
        let (written, read) = workload.swizzle_keys();
        let mut writes = Vec::new();
        workload.activations(&mut |region| {
            if region.write {
                writes.push((region.tile, region.pattern));
                return;
            }
            let key = read[usize::from(region.tensor == Operand::Second)];
            each_run(&region.pattern, |bytes| {
                self.read(walked, region.tile, &bytes, key);
            });
        });
        for (tile, pattern) in writes {
            self.write(walked, tile, &pattern, Some(written));
        }
    }

    /// Whether a task writes what the host reads.
    fn is_output(&self, walked: usize) -> bool {
        let program = self.subject.program;
        let mut found = false;
        if let Some(task) = self.subject.tasks[walked] {
            let outputs = &program.interface.outputs;
            program.kernel(task).accesses(&mut |access| {
                found |= access.direction == Direction::Write
                    && outputs.iter().any(|port| port.buffer == access.buffer);
            });
        }
        found
    }

    /// A task that knows no keys; `key` is what it takes its inputs for.
    fn other(&mut self, walked: usize, key: Option<u32>) {
        let Some(task) = self.subject.tasks[walked] else {
            return;
        };
        let (program, cmx) = (self.subject.program, self.subject.cmx);
        let mut accesses: Vec<(u8, Access)> = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            let tile = (0..address::TILES).find(|tile| cmx.buffer(*tile) == Some(access.buffer));
            accesses.extend(tile.map(|tile| (tile, access)));
        });
        // A SHAVE reads its descriptors as well.
        let is_shave = matches!(
            self.subject.schedule.tasks[walked].description,
            Description::Shave { .. }
        );
        for (tile, access) in &accesses {
            if let Some(key) = key
                && (access.direction, access.certainty) == (Direction::Read, Certainty::Exact)
                && (access.tensor != 0 || !is_shave)
            {
                each_run(&access.pattern, |bytes| {
                    self.read(walked, *tile, &bytes, key);
                });
            }
        }
        for (tile, access) in accesses
            .iter()
            .filter(|(_, a)| a.direction == Direction::Write)
        {
            self.write(walked, *tile, &access.pattern, None);
        }
    }

    fn read(&mut self, walked: usize, tile: u8, bytes: &Range<u64>, key: u32) {
        let Some(written) = self.written.get(&tile) else {
            return;
        };
        let other = overlapping(written, bytes).find_map(|(start, end, other, writer)| {
            let common = start.max(bytes.start)..end.min(bytes.end);
            let other = other.filter(|other| differ(*other, key, &common))?;
            Some((start, other, writer))
        });
        if let Some((start, other, writer)) = other
            && self.known.insert((tile, start))
        {
            let message = format!(
                "reads bytes {:#x}..{:#x} of tile {tile} with swizzle key {key}, they were written with key {other}",
                bytes.start, bytes.end
            );
            self.findings.push(
                SWIZZLE_KEY
                    .at(self.subject.place(walked), message)
                    .with(self.subject.place(writer), "the workload that wrote them"),
            );
        }
    }

    /// What has too many runs is taken for its extent, and has no key.
    fn write(&mut self, walked: usize, tile: u8, pattern: &Pattern, key: Option<u32>) {
        let written = self.written.entry(tile).or_default();
        if runs(pattern) <= RUNS {
            each_run(pattern, |bytes| put(written, bytes, key, walked));
        } else {
            let bound = |at: i128| at.clamp(0, i128::from(address::CMX_SIZE)) as u64;
            let extent = pattern.extent();
            put(
                written,
                bound(extent.start)..bound(extent.end),
                None,
                walked,
            );
        }
    }
}

fn runs(pattern: &Pattern) -> u64 {
    pattern.bytes().unwrap_or(u64::MAX) / pattern.run.max(1)
}

/// The runs of a pattern, if they are not too many and lie in a tile.
fn each_run(pattern: &Pattern, mut visit: impl FnMut(Range<u64>)) {
    if runs(pattern) <= RUNS && pattern.fits(address::CMX_SIZE) {
        pattern
            .runs()
            .for_each(|start| visit(start..start + pattern.run));
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
