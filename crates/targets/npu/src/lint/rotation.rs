//! Swizzle keys of producers and consumers: bytes that a DPU has put down rotated must be read rotated alike.
//!
//! What tasks write in CMX is followed in the order in which the walk ran them. Bytes of DMAs and SHAVEs have no key: constants come
//! rotated from the file, and a copy keeps what it copies. A SHAVE reads without any. Rows that two keys leave alike may be
//! written with one and read with the other. Remnants of a tensor that another has replaced in part have no key that could be the right one:
//! whether they count is the business of the proof of memory.

use super::Subject;
use crate::address;
use crate::dpu::Workload;
use crate::kernels::Knowledge;
use crate::schedule::Description;
use chipless_model::{Access, Certainty, Direction, Finding, Pattern, Swizzle};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

chipless_model::rules! {
    SWIZZLE_KEY Fault Error Hardware "npu-swizzle-key" "a tensor is read with another swizzle key than it was written with"
        "A DPU rotates 32-byte units inside rows of 1 KiB by an amount that the key and the row decide. A DPU that reads the tensor with another key, or a SHAVE or the host, which know no rotation, takes the bytes in another order: the numbers are those of other elements."
        "Give the output of the one (swizzle_key) and the input or the weights of the other (swizzle_key_offset, wt_swizzle_key) the same key."
        "NPU4 CMX swizzling; compiled programs";
}

/// Runs of an access that are followed one by one. What has more is not judged.
const RUNS: u64 = 1 << 13;

/// Bytes that have one state: outputs of a DPU begin at multiples of them (NPU4 DPU invariant, `ac_base`). Of a unit that is written in part
/// nothing is known.
const UNIT: u64 = 16;
/// Units that are looked at together.
const MANY: usize = 32;

/// The first input of each place that is read with another key than it was written with.
pub(super) fn check(subject: &Subject<'_, '_, '_>) -> Vec<Finding> {
    let is_turned = |(_, workload): &(usize, Arc<Workload>)| {
        let (written, [first, second]) = workload.swizzle_keys();
        let weights = workload.weight_swizzle().map_or(0, Swizzle::key);
        [written, first, second, weights] != [0; 4]
    };
    if !subject.workloads().iter().any(is_turned) {
        return Vec::new();
    }
    let workloads: HashMap<usize, &Workload> = subject
        .workloads()
        .iter()
        .map(|(walked, workload)| (*walked, &**workload))
        .collect();
    let mut tiles = Tiles {
        subject,
        written: BTreeMap::new(),
        workloads: &workloads,
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
            tiles.other(walked, is_plain);
        }
    }
    tiles.findings
}

struct Tiles<'t, 's, 'i, 'p> {
    subject: &'t Subject<'s, 'i, 'p>,
    written: BTreeMap<u8, Written>,
    /// By their position in the walk.
    workloads: &'t HashMap<usize, &'t Workload>,
    /// Places that have been reported.
    known: HashSet<(u8, u64)>,
    findings: Vec<Finding>,
}

impl Tiles<'_, '_, '_, '_> {
    fn workload(&mut self, walked: usize, workload: &Workload) {
        self.weights(walked, workload);
        // What is read comes before what is written.
        workload.activations(&mut |region| {
            let (tensor, key) = ((&region.pattern, region.swizzle), region.swizzle);
            if region.write {
                self.write(region.tile, tensor, state(key));
            } else {
                self.read(walked, region.tile, tensor, key);
            }
        });
    }

    /// The weights of a workload: those of a product of two activations are what a DPU has put down. Where they begin with bytes of another key, all
    /// are looked at.
    fn weights(&mut self, walked: usize, workload: &Workload) {
        let (Some(key), tile) = (workload.weight_swizzle(), workload.tile()) else {
            return;
        };
        let Some(written) = self.written.get(&tile) else {
            return;
        };
        let knowledge = Knowledge {
            constants: Arc::clone(&self.subject.constants),
            position: walked,
        };
        let known = |offset, size| knowledge.bytes(tile, offset, size);
        let first = workload.first_weight(&known);
        let first = first.filter(|first| *first < address::CMX_REACH);
        let found = first.and_then(|first| written.runs(&(first..first + 1)).next());
        if found.is_some_and(|(_, found)| found != NONE && found != state(key)) {
            workload.weights_read(&known, &mut |pattern| {
                self.read(walked, tile, (&pattern, Swizzle::OFF), key);
            });
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

    /// A task that knows no keys; `is_plain`: it takes its inputs for what is not turned.
    fn other(&mut self, walked: usize, is_plain: bool) {
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
            if is_plain
                && (access.direction, access.certainty) == (Direction::Read, Certainty::Exact)
                && (access.tensor != 0 || !is_shave)
            {
                let tensor = (&access.pattern, Swizzle::OFF);
                self.read(walked, *tile, tensor, Swizzle::OFF);
            }
        }
        for (tile, access) in accesses
            .iter()
            .filter(|(_, a)| a.direction == Direction::Write)
        {
            self.write(*tile, (&access.pattern, Swizzle::OFF), NONE);
        }
    }

    /// A task takes a tensor for one of this key.
    fn read(&mut self, walked: usize, tile: u8, tensor: Tensor<'_>, key: Swizzle) {
        let Some(written) = self.written.get(&tile) else {
            return;
        };
        let mut found = Vec::new();
        // Most tensors are as they are read in all rows that they have a part of.
        let (pattern, swizzle) = tensor;
        let extent = pattern.extent();
        if pattern.fits(address::CMX_REACH) {
            let (low, high) = (extent.start as u64, extent.end as u64);
            if written.is_readable(&swizzle.rows(low, high - low), state(key)) {
                return;
            }
        }
        each_run(tensor, |bytes| {
            if written.is_readable(&bytes, state(key)) {
                return;
            }
            let other = written.runs(&bytes).find_map(|(run, state)| {
                let other = Swizzle::from_key(u32::from(state.checked_sub(KEY)?))?;
                differ(other, key, &run).then_some((run.start, other))
            });
            found.extend(other.map(|(start, other)| (bytes, start, other)));
        });
        let mut replaced: HashMap<usize, bool> = HashMap::new();
        for (bytes, start, other) in found {
            if self.known.contains(&(tile, start)) {
                continue;
            }
            let writer = self.last_writer(walked, tile, start);
            if let Some(writer) = writer {
                let entry = replaced.entry(writer);
                if *entry.or_insert_with(|| self.is_replaced(writer, walked, tile, tensor)) {
                    continue;
                }
            }
            self.known.insert((tile, start));
            let message = format!(
                "reads bytes {:#x}..{:#x} of tile {tile} with swizzle key {}, they were written with key {}",
                bytes.start,
                bytes.end,
                key.key(),
                other.key()
            );
            let mut finding = SWIZZLE_KEY.at(self.subject.place(walked), message);
            if let Some(writer) = writer {
                let place = self.subject.place(writer);
                finding = finding.with(place, "the workload that wrote them");
            }
            self.findings.push(finding);
            // The rest of the tensor says the same.
            return;
        }
    }

    /// Whether bytes that a workload wrote have been read and then, where they lie in a tensor, been overwritten before a task reads that.
    fn is_replaced(&self, writer: usize, reader: usize, tile: u8, tensor: Tensor<'_>) -> bool {
        let mut own = HashSet::new();
        self.activations(writer, tile, |is_write, tensor| {
            if is_write {
                each_run(tensor, |bytes| own.extend(units(&bytes)));
            }
        });
        let touches = |tensor: Tensor<'_>, own: &HashSet<usize>| {
            let mut found = false;
            each_run(tensor, |bytes| {
                found = found || units(&bytes).any(|unit| own.contains(&unit));
            });
            found
        };
        let mut between = writer + 1..reader;
        let is_read = between.any(|task| {
            let mut found = false;
            self.activations(task, tile, |is_write, tensor| {
                found |= !is_write && touches(tensor, &own);
            });
            found
        });
        if !is_read {
            return false;
        }
        let mut read = HashSet::new();
        each_run(tensor, |bytes| read.extend(units(&bytes)));
        own.retain(|unit| read.contains(unit));
        between.any(|task| {
            let mut found = false;
            self.activations(task, tile, |is_write, tensor| {
                found |= is_write && touches(tensor, &own);
            });
            found
        })
    }

    /// What a task reads and writes of a tile's activations: of a workload, or of one that knows no keys.
    fn activations(&self, walked: usize, tile: u8, mut visit: impl FnMut(bool, Tensor<'_>)) {
        if let Some(workload) = self.workloads.get(&walked) {
            workload.activations(&mut |region| {
                if region.tile == tile {
                    visit(region.write, (&region.pattern, region.swizzle));
                }
            });
        } else if let Some(task) = self.subject.tasks[walked] {
            let program = self.subject.program;
            let buffer = self.subject.cmx.buffer(tile);
            program.kernel(task).accesses(&mut |access| {
                if Some(access.buffer) == buffer {
                    let tensor = (&access.pattern, Swizzle::OFF);
                    visit(access.direction == Direction::Write, tensor);
                }
            });
        }
    }

    /// The last workload before a task that writes a byte.
    fn last_writer(&self, walked: usize, tile: u8, byte: u64) -> Option<usize> {
        let writes = |earlier: &usize| {
            let mut found = false;
            if self.workloads.contains_key(earlier) {
                self.activations(*earlier, tile, |is_write, tensor| {
                    let (pattern, swizzle) = tensor;
                    found |= is_write && pattern.position(swizzle.logical(byte)).is_some();
                });
            }
            found
        };
        (0..walked).rev().find(writes)
    }

    /// What has too many runs is taken for its extent, and has no key.
    fn write(&mut self, tile: u8, tensor: Tensor<'_>, state: u8) {
        let written = self.written.entry(tile).or_default();
        let (pattern, swizzle) = tensor;
        if runs(pattern) <= RUNS {
            if swizzle.is_off() && are_units(pattern) && pattern.fits(address::CMX_REACH) {
                written.put_units(pattern, state);
            } else {
                each_range(tensor, |bytes| written.put(&bytes, state));
            }
        } else {
            let bound = |at: i128| at.clamp(0, i128::from(address::CMX_REACH)) as u64;
            let extent = pattern.extent();
            let (low, high) = (bound(extent.start), bound(extent.end));
            written.put(&swizzle.rows(low, high - low), NONE);
        }
    }
}

/// Bytes as they are addressed.
type Tensor<'p> = (&'p Pattern, Swizzle);

fn runs(pattern: &Pattern) -> u64 {
    pattern.bytes().unwrap_or(u64::MAX) / pattern.run.max(1)
}

/// Whether a pattern is made of whole units.
fn are_units(pattern: &Pattern) -> bool {
    let are = |bytes: u64| bytes.is_multiple_of(UNIT);
    let mut strides = pattern.loops.iter().map(|l| l.stride.unsigned_abs());
    are(pattern.offset) && are(pattern.run) && strides.all(are)
}

/// Where the runs of a tensor stand, if they are not too many and lie in a tile.
fn each_run((pattern, swizzle): Tensor<'_>, mut visit: impl FnMut(Range<u64>)) {
    if runs(pattern) <= RUNS && pattern.fits(address::CMX_REACH) {
        swizzle.each_piece(pattern, |start, size| visit(start..start + size));
    }
}

/// The same bytes in fewer pieces: rows that a run has as a whole are the same however they are turned.
fn each_range((pattern, swizzle): Tensor<'_>, mut visit: impl FnMut(Range<u64>)) {
    let row = swizzle.row();
    if swizzle.is_off() || pattern.run < 2 * row {
        return each_run((pattern, swizzle), visit);
    }
    if runs(pattern) > RUNS || !pattern.fits(address::CMX_REACH) {
        return;
    }
    for start in pattern.runs() {
        let end = start + pattern.run;
        let whole = start.next_multiple_of(row)..end / row * row;
        for (low, high) in [(start, whole.start), (whole.end, end)] {
            let pieces = swizzle.pieces(low, high - low);
            pieces.for_each(|(at, size)| visit(at..at + size));
        }
        visit(whole);
    }
}

/// Whether two keys put any of some bytes into different places.
fn differ(one: Swizzle, other: Swizzle, bytes: &Range<u64>) -> bool {
    let size = one.row().min(other.row());
    let mut rows = bytes.start / size..bytes.end.div_ceil(size);
    one != other && rows.any(|row| one.turn(row) != other.turn(row))
}

/// State of a unit that was not written with a key.
const NONE: u8 = 0;
/// State of a unit that was written with key 0; higher keys follow.
const KEY: u8 = 1;

/// State of a unit that was written with this key.
fn state(key: Swizzle) -> u8 {
    KEY + key.key() as u8
}

/// How each unit of a tile was written.
struct Written(Vec<u8>);

impl Default for Written {
    fn default() -> Written {
        Written(vec![NONE; address::CMX_REACH.div_ceil(UNIT) as usize])
    }
}

impl Written {
    /// Notes bytes.
    fn put(&mut self, bytes: &Range<u64>, state: u8) {
        if bytes.is_empty() {
            return;
        }
        let (outer, inner) = (units(bytes), bytes.start.div_ceil(UNIT)..bytes.end / UNIT);
        // Units that are written in part stand at the ends.
        for part in [outer.start, outer.end - 1] {
            self.0[part] = NONE;
        }
        if inner.start < inner.end {
            self.0[inner.start as usize..inner.end as usize].fill(state);
        }
    }

    /// Notes a pattern of whole units that lies in the tile. Most outputs are slices of the channels of a tensor, thousands of short runs at
    /// one distance.
    fn put_units(&mut self, pattern: &Pattern, state: u8) {
        let Some((inner, outer)) = pattern.loops.split_first() else {
            return self.put(&(pattern.offset..pattern.offset + pattern.run), state);
        };
        if inner.count == 0 {
            // The loops around it may have any number of turns.
            return;
        }
        // `Pattern::new` would join runs.
        let rows = Pattern {
            loops: outer.into(),
            ..*pattern
        };
        let (units, step) = ((pattern.run / UNIT) as usize, inner.stride / UNIT as i64);
        for row in rows.runs() {
            let mut at = (row / UNIT) as i64;
            for _ in 0..inner.count {
                for unit in &mut self.0[at as usize..at as usize + units] {
                    *unit = state;
                }
                at += step;
            }
        }
    }

    /// Whether all units of a range have this state, or have none: most do.
    fn is_readable(&self, bytes: &Range<u64>, state: u8) -> bool {
        let is_one = |other: &u8| *other == state || *other == NONE;
        let are = |many: &[u8]| many.iter().fold(true, |all, other| all & is_one(other));
        self.0[units(bytes)].chunks(MANY).all(are)
    }

    /// The bytes of a range, in runs of one state.
    fn runs(&self, bytes: &Range<u64>) -> impl Iterator<Item = (Range<u64>, u8)> {
        let Range { start, end } = units(bytes);
        let (all, mut at, bytes) = (&self.0[..end], start, bytes.clone());
        std::iter::from_fn(move || {
            let (first, rest) = all.get(at..)?.split_first()?;
            let alike = |many: &&[u8]| many.iter().fold(0, |d, other| d | (other ^ first)) == 0;
            let many = MANY * rest.chunks_exact(MANY).take_while(alike).count();
            let few = rest[many..].iter().take_while(|other| *other == first);
            let from = at as u64 * UNIT;
            at += 1 + many + few.count();
            let run = from.max(bytes.start)..(at as u64 * UNIT).min(bytes.end);
            Some((run, *first))
        })
    }
}

/// The units that hold any of some bytes.
fn units(bytes: &Range<u64>) -> Range<usize> {
    (bytes.start / UNIT) as usize..bytes.end.div_ceil(UNIT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_that_two_keys_leave_alike_do_not_differ() {
        let [off, four, five] = [0, 4, 5].map(|key| Swizzle::from_key(key).expect("key exists"));
        assert!(!differ(five, off, &(0..1024)));
        assert!(differ(five, off, &(0..1025)));
        assert!(!differ(five, off, &(32 * 1024..33 * 1024)));
        assert!(differ(four, five, &(1024..1056)) && !differ(five, five, &(0..9999)));
    }

    proptest! {
        #[test]
        fn fewer_pieces_are_the_same_bytes(key in 0u32..6, is_narrow: bool, offset in 0u64..5000, run in 1u64..6000, count in 1u64..4) {
            // Tiles of NPU3720 have half a MiB more than those of NPU4000.
            let (stride, last) = (7000, address::CMX_REACH - 32768);
            let swizzle = Swizzle::from_key(key).expect("key exists");
            let pattern = Pattern::new(last + offset, run, [chipless_model::Loop { count, stride }]);
            let tensor = (&pattern, if is_narrow { swizzle.narrow() } else { swizzle });
            let (mut ranges, mut each) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
            each_range(tensor, |bytes| ranges.extend(bytes));
            each_run(tensor, |bytes| each.extend(bytes));
            prop_assert_eq!(ranges, each);
        }

        #[test]
        fn patterns_of_whole_units_are_noted_run_by_run(offset in 0u64..40, run in 0u64..5, loops in prop::collection::vec((0u64..5, -2i64..9), 0..3)) {
            let unit = UNIT as i64;
            let loops = loops.into_iter().map(|(count, stride)| chipless_model::Loop { count, stride: stride * unit });
            let pattern = Pattern::new((200 + offset) * UNIT, run * UNIT, loops);
            prop_assert!(are_units(&pattern) && pattern.fits(address::CMX_REACH));
            let (mut units, mut each) = (Written::default(), Written::default());
            units.put_units(&pattern, 3);
            each_run((&pattern, Swizzle::OFF), |bytes| each.put(&bytes, 3));
            prop_assert!(units.0 == each.0);
        }

        #[test]
        fn empty_patterns_end_at_once(count in 1u64 << 40..1 << 60) {
            let loops = [(0, 32), (count, 16)].map(|(count, stride)| chipless_model::Loop { count, stride });
            let mut written = Written::default();
            written.put_units(&Pattern::new(0, 16, loops), 3);
            prop_assert!(written.0 == Written::default().0);
        }

        /// Against a state for each unit, of which one that is written in part has none.
        #[test]
        fn the_last_key_of_each_unit_is_known(writes in prop::collection::vec((0u64..3000, 0u64..900, 1u8..6), 0..20), read in (0u64..4000, 1u64..900)) {
            let (mut written, mut naive) = (Written::default(), vec![NONE; 400]);
            for (start, size, state) in writes {
                let bytes = start..start + size;
                written.put(&bytes, state);
                for (unit, known) in (0..).zip(&mut naive) {
                    let own = unit * UNIT..(unit + 1) * UNIT;
                    if !bytes.is_empty() && bytes.start <= own.start && own.end <= bytes.end {
                        *known = state;
                    } else if bytes.start.max(own.start) < bytes.end.min(own.end) {
                        *known = NONE;
                    }
                }
            }
            let read = read.0..read.0 + read.1;
            let mut at = read.start;
            let mut last = None;
            for (run, state) in written.runs(&read) {
                prop_assert_eq!(run.start, at);
                prop_assert_ne!(last, Some(state));
                prop_assert!(run.clone().all(|byte| naive[(byte / UNIT) as usize] == state));
                (at, last) = (run.end, Some(state));
            }
            prop_assert_eq!(at, read.end);
        }
    }
}
