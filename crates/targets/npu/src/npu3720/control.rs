//! The control structures: lists of descriptors, barrier counts, and when the firmware starts what.

use super::BARRIERS;
use super::structures::{Barrier, MappedInference};
use crate::bytes::Record;
use crate::dma::Descriptor;
use crate::document::Document;
use crate::image::Image;
use crate::lint::limits;
use crate::rules;
use crate::schedule::rules as faults;
use crate::schedule::{
    Control, Description, Fetched, Listed, Slice, Task, Unit, VirtualBarrier, WorkItem,
};
use crate::structures::{Layout, NO_BARRIER, Reference, TaskKind, TaskSection};
use crate::trailer::PackedVersion;
use chipless_model::{Finding, Place, Rule};
use std::collections::HashMap;
use zerocopy::FromBytes;

/// A program with more faults than this is not worth a longer list.
const MOST_FINDINGS: usize = 32;

/// Reads the control structures. All faults that can be told apart are returned together.
pub(crate) fn read(document: &Document<'_>, image: &Image<'_>) -> Result<Control, Vec<Finding>> {
    let (section, offset) = image.entry();
    let mapped = usize::try_from(offset)
        .ok()
        .and_then(|offset| image.bytes(section).get(offset..))
        .and_then(|bytes| MappedInference::ref_from_prefix(bytes).ok());
    let Some((mapped, _)) = mapped else {
        let message = format!(
            "the mapped inference takes 448 bytes from {offset:#x}; the section has {}",
            image.bytes(section).len()
        );
        return Err(vec![
            rules::PROGRAM_REFERENCE.at(image.place(section, offset, 0), message),
        ]);
    };
    let mut reader = Reader {
        image,
        findings: crate::inference::interface(image, document),
        control: Control::listed(document, image),
        lists: HashMap::new(),
    };
    reader.version(document, mapped);
    reader.lists(mapped);
    let barriers = reader.barriers(mapped);
    let mut tasks = Vec::new();
    if reader.findings.is_empty() {
        reader.dma(&mut tasks);
        reader.dpu(&mut tasks);
        reader.shave(&mut tasks);
    }
    if reader.findings.is_empty() {
        reader.pieces(tasks, barriers);
    }
    if reader.findings.is_empty() {
        Ok(reader.control)
    } else {
        Err(reader.findings)
    }
}

/// A task of a list, and from which virtual barrier on the firmware does not yet start it.
struct Entry {
    unit: Unit,
    /// Address of its descriptor.
    address: u64,
    start_after: u32,
    task: Task,
    uses: Vec<(usize, u64)>,
}

struct Reader<'r, 'i> {
    image: &'r Image<'i>,
    findings: Vec<Finding>,
    control: Control,
    /// Section of each list, by kind and engine.
    lists: HashMap<(TaskKind, usize), (usize, TaskSection)>,
}

impl<'r> Reader<'r, '_> {
    fn fault(&mut self, rule: &'static Rule, place: Place, message: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(rule.at(place, message));
        }
    }

    fn version(&mut self, document: &Document<'_>, mapped: &MappedInference) {
        let version = PackedVersion::from(mapped.api_version.get());
        let Some(note) = document.mapped_inference() else {
            return;
        };
        if (u32::from(version.major), u32::from(version.minor)) != (note.major, note.minor) {
            let (section, offset) = self.image.entry();
            let place = self.image.place(section, offset, 4).at("vpu_nnrt_api_ver");
            let message =
                format!("the mapped inference has API version {version}; the note says {note}");
            self.findings.push(
                rules::PROGRAM_VERSION
                    .at(place, message)
                    .with(document.mapped_inference_place(), "the note"),
            );
        }
    }

    /// Finds the lists, and checks that the mapped inference leads to them.
    fn lists(&mut self, mapped: &MappedInference) {
        for (index, section) in self.image.sections().iter().enumerate() {
            let Some(list) = TaskKind::of_section(&section.name) else {
                continue;
            };
            if list.layout != Layout::Npu3720 {
                continue;
            }
            let (size, bytes) = (list.record_size(), section.bytes.len());
            let place = self.image.place(index, 0, bytes as u64);
            if !bytes.is_multiple_of(size) {
                let message = format!(
                    "{bytes} bytes are not a whole number of {size}-byte {}s",
                    list.kind.record_name()
                );
                self.fault(&rules::PROGRAM_RECORD_SIZE, place, message);
                continue;
            }
            if self
                .lists
                .insert((list.kind, list.unit), (index, list))
                .is_some()
            {
                let message = format!("a second section is called {}", section.name);
                self.fault(&rules::PROGRAM_REFERENCE, place, message);
            }
        }
        for kind in [
            TaskKind::DmaDdr,
            TaskKind::Invariant,
            TaskKind::Variant,
            TaskKind::Range,
            TaskKind::Invocation,
        ] {
            let units = if kind == TaskKind::DmaDdr { 2 } else { 1 };
            for unit in 0..units {
                let (reference, name, field) = mapped.reference(kind, unit);
                let list = self.lists.get(&(kind, unit)).copied();
                let found = list.map(|(index, list)| {
                    let records = self.image.bytes(index).len() / list.record_size();
                    (index, records)
                });
                self.reference(reference, name, field, found);
            }
        }
    }

    /// Whether a reference leads to the start of a section and counts its records.
    fn reference(
        &mut self,
        reference: &Reference,
        name: &str,
        field: usize,
        found: Option<(usize, usize)>,
    ) {
        let (section, offset) = self.image.entry();
        let place = self
            .image
            .place(
                section,
                offset + field as u64,
                size_of::<Reference>() as u64,
            )
            .at(name);
        let (count, address) = (reference.count.get(), reference.address.get());
        let records = found.map_or(0, |(_, records)| records as u64);
        if count != records {
            let message = format!("{name} counts {count}; its section holds {records}");
            return self.fault(&rules::PROGRAM_TASK_COUNT, place, message);
        }
        let start = found.and_then(|(index, _)| self.image.sections().get(index)?.address);
        if count != 0 && start != Some(address) {
            let message =
                format!("{name} should be the address of its section; it is {address:#x}");
            self.fault(&rules::PROGRAM_REFERENCE, place, message);
        }
    }

    /// The barrier counts, and which configurations follow each other.
    fn barriers(&mut self, mapped: &MappedInference) -> &'r [Barrier] {
        let image = self.image;
        let index = image.section(BARRIERS);
        let bytes = index.map_or(&[][..], |index| image.bytes(index));
        let Ok(barriers) = <[Barrier]>::ref_from_bytes(bytes) else {
            let place = image.place(index.unwrap_or_default(), 0, bytes.len() as u64);
            let message = format!(
                "{} bytes are not a whole number of 12-byte barriers",
                bytes.len()
            );
            self.fault(&rules::PROGRAM_RECORD_SIZE, place, message);
            return &[];
        };
        let field = std::mem::offset_of!(MappedInference, barriers);
        self.reference(
            &mapped.barriers,
            "barrier_configs",
            field,
            index.map(|index| (index, barriers.len())),
        );
        let section = index.unwrap_or_default();
        let place = |id: usize| {
            image
                .place(section, id as u64 * 12, 12)
                .at(format!("barrier {id}"))
        };
        let limit = self.control.barrier_limit();
        let mut before = vec![None; barriers.len()];
        for (id, barrier) in barriers.iter().enumerate() {
            let (physical, next) = (barrier.real_id, barrier.next_same_id.get());
            if u32::from(physical) >= limit {
                let message = format!("uses physical barrier {physical}; the program has {limit}");
                self.fault(&faults::BARRIER_ID, place(id), message);
            }
            let (producers, consumers) = (
                u32::from(barrier.producers.get()),
                u32::from(barrier.consumers.get()),
            );
            self.findings
                .extend(limits::barrier(producers, consumers, &place(id)));
            self.control.barriers.push(VirtualBarrier {
                producers,
                consumers,
                physical,
                releases: 0..0,
                place: place(id),
            });
            if next == NO_BARRIER {
                continue;
            }
            let follower = barriers
                .get(next as usize)
                .filter(|later| next as usize > id && later.real_id == physical);
            match before.get_mut(next as usize) {
                Some(slot @ None) if follower.is_some() => *slot = Some(id),
                _ => {
                    let message = format!(
                        "next_same_id {next} is not a later use of physical barrier {physical}, or another barrier's"
                    );
                    self.fault(&rules::PROGRAM_BARRIER_INDEX, place(id), message);
                }
            }
        }
        let mut in_use = [false; 256];
        for (id, barrier) in barriers.iter().enumerate() {
            if before.get(id).copied().flatten().is_some() {
                continue;
            }
            if std::mem::replace(&mut in_use[usize::from(barrier.real_id)], true) {
                let message = format!(
                    "is a second first use of physical barrier {}",
                    barrier.real_id
                );
                self.fault(&faults::BOOTSTRAP, place(id), message);
                continue;
            }
            let next = |id: &usize| {
                let next = barriers.get(*id)?.next_same_id.get() as usize;
                (next > *id && next < barriers.len()).then_some(next)
            };
            let chain = std::iter::successors(Some(id), next).collect();
            self.control.chains.push(chain);
        }
        barriers
    }

    /// The records of a list, each with its bytes in the image and its address.
    fn records(&self, kind: TaskKind, unit: usize) -> Vec<(Slice, u64, Record<'r>)> {
        let Some((section, list)) = self.lists.get(&(kind, unit)).copied() else {
            return Vec::new();
        };
        let size = list.record_size();
        let start = self.image.sections().get(section).and_then(|s| s.address);
        let records = self.image.bytes(section).chunks_exact(size).enumerate();
        records
            .map(|(index, bytes)| {
                let offset = (index * size) as u64;
                let slice = Slice {
                    section,
                    offset,
                    size: size as u64,
                };
                (slice, start.unwrap_or_default() + offset, Record(bytes))
            })
            .collect()
    }

    fn place(&self, slice: Slice, item: String) -> Place {
        self.image
            .place(slice.section, slice.offset, slice.size)
            .at(item)
    }

    fn dma(&mut self, tasks: &mut Vec<Entry>) {
        for engine in 0..2 {
            let records = self.records(TaskKind::DmaDdr, engine);
            let count = records.len();
            for (index, (slice, address, record)) in records.into_iter().enumerate() {
                let place = self.place(slice, format!("descriptor {index}"));
                // The link names a slot of the runtime's memory, whose number is that of the next descriptor modulo 256.
                let link = record.u64(0) & 0xff_ffff_ffff;
                let number = link.wrapping_sub(self.slots(engine)) / 128;
                let is_last = index + 1 == count;
                if is_last != (link == 0) || !is_last && number != (index as u64 + 1) % 256 {
                    let message = format!(
                        "its link {link:#x} does not name the slot of descriptor {}, and the list has {count}",
                        index + 1
                    );
                    self.fault(&faults::DMA_LINK, place, message);
                    continue;
                }
                let descriptor = Descriptor::decode_3720(record.0);
                if let Some((read, written)) = descriptor.lengths()
                    && read != written
                {
                    let message = format!("reads {read} bytes and writes {written}");
                    self.fault(&faults::DMA_LENGTHS, place.clone(), message);
                }
                self.findings
                    .extend(limits::transfer(&descriptor, self.image, &place));
                let (waits, posts) = (descriptor.waits, descriptor.posts);
                let description = Description::Dma {
                    descriptor: Box::new(descriptor),
                    bytes: slice,
                };
                let unit = Unit::Dma {
                    engine: engine as u8,
                    list: None,
                };
                self.add(
                    tasks,
                    unit,
                    address,
                    record.u32(80),
                    description,
                    waits,
                    posts,
                );
            }
        }
    }

    fn slots(&self, engine: usize) -> u64 {
        let symbol = super::runtime_symbol(3 + engine as u32, self.control.tiles);
        symbol.map_or(0, |symbol| symbol.value)
    }

    fn dpu(&mut self, tasks: &mut Vec<Entry>) {
        let invariants = self.records(TaskKind::Invariant, 0);
        let variants = self.records(TaskKind::Variant, 0);
        for (index, (slice, address, record)) in variants.into_iter().enumerate() {
            let place = self.place(slice, format!("variant {index}"));
            let (number, tile) = (record.u32(0x30), record.u8(0x3c));
            let Some((invariant, _, shared)) = invariants.get(number as usize).copied() else {
                let message = format!(
                    "is of invariant {number}; the program has {}",
                    invariants.len()
                );
                self.fault(&faults::INVARIANT_POINTER, place, message);
                continue;
            };
            if !self.has_tile(tile, place) {
                continue;
            }
            let description = Description::Dpu {
                tile,
                variant: Fetched {
                    from: slice,
                    offset: None,
                },
                invariant: Fetched {
                    from: invariant,
                    offset: None,
                },
            };
            let (waits, posts) = (u128::from(shared.u64(0x108)), u128::from(shared.u64(0x110)));
            let start_after = shared.u32(0x120);
            self.add(
                tasks,
                Unit::Dpu(tile),
                address,
                start_after,
                description,
                waits,
                posts,
            );
        }
    }

    fn shave(&mut self, tasks: &mut Vec<Entry>) {
        let ranges = self.records(TaskKind::Range, 0);
        let invocations = self.records(TaskKind::Invocation, 0);
        for (index, (slice, address, record)) in invocations.into_iter().enumerate() {
            let place = self.place(slice, format!("invocation {index}"));
            let (number, tile) = (record.u32(56), record.u32(52));
            let Some((range, ..)) = ranges.get(number as usize).copied() else {
                let message = format!("is of range {number}; the program has {}", ranges.len());
                self.fault(&faults::RANGE_POINTER, place, message);
                continue;
            };
            let tile = u8::try_from(tile).unwrap_or(u8::MAX);
            if !self.has_tile(tile, place) {
                continue;
            }
            let description = Description::Shave {
                tile,
                invocation: Fetched {
                    from: slice,
                    offset: None,
                },
                range: Fetched {
                    from: range,
                    offset: None,
                },
            };
            let unit = Unit::Shave { tile, list: None };
            let (waits, posts) = (u128::from(record.u64(16)), u128::from(record.u64(24)));
            self.add(
                tasks,
                unit,
                address,
                record.u32(40),
                description,
                waits,
                posts,
            );
        }
    }

    fn has_tile(&mut self, tile: u8, place: Place) -> bool {
        let tiles = self.control.tiles;
        if tile >= tiles {
            let message = format!("is for tile {tile}; the program uses {tiles}");
            self.fault(&faults::TILE, place, message);
        }
        tile < tiles
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a record, each once"
    )]
    fn add(
        &mut self,
        tasks: &mut Vec<Entry>,
        unit: Unit,
        address: u64,
        start_after: u32,
        description: Description,
        waits: u128,
        posts: u128,
    ) {
        let limit = self.control.barrier_limit();
        let names = crate::schedule::barriers_of(waits | posts);
        let bytes = description.bytes();
        if let Some(barrier) = names
            .into_iter()
            .find(|barrier| u32::from(*barrier) >= limit)
        {
            let message = format!("names physical barrier {barrier}; the program has {limit}");
            let place = self.place(bytes, unit.name());
            return self.fault(&faults::BARRIER_ID, place, message);
        }
        let count = self.control.barriers.len();
        if start_after as usize > count {
            let message = format!(
                "start_after_: expected at most {count}, the number of barriers, found {start_after}"
            );
            let place = self.place(bytes, unit.name());
            return self.fault(&rules::PROGRAM_BARRIER_INDEX, place, message);
        }
        let used = |slice: Slice| (slice.section, slice.offset / slice.size);
        let mut uses = vec![used(bytes)];
        if let Description::Dpu { invariant, .. } = &description {
            uses.push(used(invariant.from));
        }
        tasks.push(Entry {
            unit,
            address,
            start_after,
            task: Task::new(description, waits, posts),
            uses,
        });
    }

    /// Puts the tasks into pieces: those that the firmware starts at once, and those that it starts once all virtual barriers below their
    /// `start_after` have been loaded. The firmware loads barriers in the order of their numbers, each when the use of its physical barrier
    /// before it has been consumed; a queue of its own stands for it, with a task for each barrier that is not loaded at the start.
    fn pieces(&mut self, tasks: Vec<Entry>, barriers: &[Barrier]) {
        let mut freed_by = vec![None; barriers.len()];
        for (id, barrier) in barriers.iter().enumerate() {
            if let Some(slot) = freed_by.get_mut(barrier.next_same_id.get() as usize) {
                *slot = Some(id);
            }
        }
        // The last barrier below each number that is loaded later.
        let mut latest = vec![None; barriers.len() + 1];
        for id in 0..barriers.len() {
            latest[id + 1] = freed_by[id].map_or(latest[id], |_| Some(id));
        }
        let mut units: Vec<(Unit, Vec<Entry>)> = Vec::new();
        for entry in tasks {
            match units.iter_mut().find(|(unit, _)| *unit == entry.unit) {
                Some((_, entries)) => entries.push(entry),
                None => units.push((entry.unit, vec![entry])),
            }
        }
        // By the barrier that must have been loaded.
        let mut pieces: Vec<(Option<usize>, WorkItem)> = Vec::new();
        for (unit, entries) in units {
            let mut opened = None;
            let mut previous: Option<u64> = None;
            for entry in entries {
                let needed = latest
                    .get(entry.start_after as usize)
                    .or_else(|| latest.last())
                    .copied()
                    .flatten();
                // Two SHAVEs take the tasks of one list, each the next one when it is free.
                let before = previous
                    .filter(|_| needed <= opened && unit.servers() == 1)
                    .and_then(|previous| self.control.listed.get_mut(&previous));
                opened = opened.max(needed);
                if let Some(listed) = before {
                    listed.next = entry.address;
                } else {
                    let place = self.place(entry.task.description.bytes(), unit.name());
                    let address = entry.address;
                    pieces.push((
                        opened,
                        WorkItem {
                            unit,
                            address,
                            place,
                        },
                    ));
                }
                previous = Some(entry.address);
                let listed = Listed {
                    task: entry.task,
                    next: 0,
                    uses: entry.uses,
                };
                self.control.listed.insert(entry.address, listed);
            }
        }
        pieces.sort_by_key(|(opened, _)| *opened);
        let mut pieces = pieces.into_iter().peekable();
        while let Some((_, item)) = pieces.next_if(|(opened, _)| opened.is_none()) {
            self.control.work_items.push(item);
        }
        self.control.bootstrap_work_items = self.control.work_items.len();
        for (id, freed) in freed_by.into_iter().enumerate() {
            let Some(freed) = freed.and_then(|freed| self.control.barriers.get_mut(freed)) else {
                continue;
            };
            let number = self.control.work_items.len();
            freed.releases = number..number + 1;
            let (item, mut task) = self.loading(id);
            let address = item.address;
            self.control.work_items.push(item);
            while let Some((_, item)) = pieces.next_if(|(opened, _)| *opened <= Some(id)) {
                task.releases.push(self.control.work_items.len());
                self.control.work_items.push(item);
            }
            let listed = Listed {
                task,
                next: 0,
                uses: Vec::new(),
            };
            self.control.listed.insert(address, listed);
        }
    }

    /// The firmware's task of loading a barrier.
    fn loading(&self, id: usize) -> (WorkItem, Task) {
        let section = self.image.section(BARRIERS).unwrap_or_default();
        let bytes = Slice {
            section,
            offset: id as u64 * size_of::<Barrier>() as u64,
            size: size_of::<Barrier>() as u64,
        };
        let start = self.image.sections().get(section).and_then(|s| s.address);
        let item = WorkItem {
            unit: Unit::Firmware,
            address: start.unwrap_or_default() + bytes.offset,
            place: self.place(bytes, format!("barrier {id}")),
        };
        let descriptor = Box::new(Descriptor::synchronise());
        (
            item,
            Task::new(Description::Dma { descriptor, bytes }, 0, 0),
        )
    }
}
