//! The program as the runtime finds it: from the entry to task lists, barriers and work items, each checked to be where
//! and as large as the mapped inference says.
//!
//! What the descriptors themselves say is decoded elsewhere; here they are records in a section.

use crate::document::Document;
use crate::image::Image;
use crate::rules;
use crate::structures::{
    Barrier, ManagedInference, MappedInference, NO_BARRIER, Reference, RuntimeConfiguration, TILES,
    TaskKind, TaskSection, WorkItem,
};
use crate::trailer::PackedVersion;
use chipless_model::{Finding, Place, Rule};
use std::mem::offset_of;
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Base of on-chip addresses.
const CMX: u64 = 0x4000_0000;
/// The lowest tile bit of an on-chip address.
const TILE_SHIFT: usize = 21;
/// The offset inside a tile.
const OFFSET: u64 = (1 << TILE_SHIFT) - 1;
/// A program with more faults than this is not worth a longer list.
const MOST_FINDINGS: usize = 32;

/// An array of descriptors in one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records<'i> {
    /// The section's index; 0 where there is none.
    pub section: usize,
    /// The section's bytes, relocated.
    pub bytes: &'i [u8],
    /// Bytes of one record.
    pub size: usize,
}

impl<'i> Records<'i> {
    /// Number of records.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.size.max(1)
    }

    /// The records in their order.
    pub fn each(&self) -> std::slice::ChunksExact<'i, u8> {
        self.bytes.chunks_exact(self.size.max(1))
    }
}

/// The program's structures. It borrows the image.
#[derive(Clone, Copy, Debug)]
pub struct Inference<'i> {
    /// The section of the mapped inference, and its offset there.
    pub entry: (usize, u64),
    /// The root.
    pub mapped: &'i MappedInference,
    /// Its second half.
    pub managed: &'i ManagedInference,
    /// Virtual barriers and their section.
    pub barriers: (usize, &'i [Barrier]),
    /// Work items and their section.
    pub work_items: (usize, &'i [WorkItem]),
    /// Virtual barriers to configure before the start, and their section; empty where the schedule does it.
    pub bootstrap: (usize, &'i [U32]),
    /// How the runtime is configured, and its section.
    pub runtime: Option<(usize, &'i RuntimeConfiguration)>,
    tasks: [[Records<'i>; TILES]; TaskKind::ALL.len()],
}

impl<'i> Inference<'i> {
    /// Finds everything. All faults that can be told apart are returned together.
    ///
    /// Checked: sizes of records; counts and addresses of the mapped inference against the sections; versions; indices
    /// of barriers and work items; kinds and targets of work items. Not checked: what descriptors say, barrier counts.
    pub fn read(
        document: &Document<'_>,
        image: &'i Image<'_>,
    ) -> Result<Inference<'i>, Vec<Finding>> {
        let (section, offset) = image.entry();
        let Some(mapped) = structure::<MappedInference>(image, section, offset) else {
            let place = image.place(section, offset, 0);
            let message = format!(
                "the mapped inference takes 1728 bytes from {offset:#x}; the section has {}",
                image.bytes(section).len()
            );
            return Err(vec![rules::PROGRAM_REFERENCE.at(place, message)]);
        };
        let mut reader = Reader {
            image,
            findings: Vec::new(),
            entry: (section, offset),
        };
        let tasks = reader.tasks(mapped);
        let managed_at = image.locate(mapped.managed.address.get());
        let managed = managed_at
            .and_then(|(section, offset)| structure::<ManagedInference>(image, section, offset));
        let (Some(managed), Some(managed_at)) = (managed, managed_at) else {
            let address = mapped.managed.address.get();
            let message =
                format!("{address:#x} is not the address of a managed inference of 704 bytes");
            reader.fault(
                &rules::PROGRAM_REFERENCE,
                offset_of!(MappedInference, managed),
                "managed_inference",
                message,
            );
            return Err(reader.findings);
        };
        for finding in interface(image, document) {
            reader.push(finding);
        }
        reader.versions(document, mapped, managed, managed_at);
        let field = offset_of!(MappedInference, barriers);
        reader.array::<Barrier>(
            &mapped.barriers,
            "program.managedBarrier",
            field,
            "barrier_configs",
        );
        reader.entry = managed_at;
        let field = offset_of!(ManagedInference, barriers);
        let barriers = reader.array(
            &managed.barriers,
            "program.managedBarrier",
            field,
            "task_configs",
        );
        let field = offset_of!(ManagedInference, work_items);
        let work_items = reader.array(&managed.work_items, "program.workItem", field, "work_items");
        let field = offset_of!(ManagedInference, bootstrap);
        let bootstrap = reader.array(
            &managed.bootstrap,
            "program.bootstrap",
            field,
            "initial_barriers",
        );
        let field = offset_of!(ManagedInference, runtime);
        let (at, runtime) = reader.array(
            &managed.runtime,
            "program.nnrt_config",
            field,
            "nnrt_config",
        );
        let runtime = runtime.first().map(|runtime| (at, runtime));
        let inference = Inference {
            entry: (section, offset),
            mapped,
            managed,
            barriers,
            work_items,
            bootstrap,
            runtime,
            tasks,
        };
        if reader.findings.is_empty() {
            reader.barrier_indices(&inference);
            reader.work_item_targets(&inference);
        }
        if reader.findings.is_empty() {
            Ok(inference)
        } else {
            Err(reader.findings)
        }
    }

    /// The task list of an engine (DMA) or tile (DPU, SHAVE); empty where the program has none.
    pub fn tasks(&self, kind: TaskKind, unit: usize) -> Records<'i> {
        let list = self
            .tasks
            .get(kind as usize)
            .and_then(|units| units.get(unit));
        list.copied().unwrap_or(none(kind))
    }

    /// Tiles that hold tasks or that the runtime is told to use: one more than the last of them.
    pub fn tiles(&self) -> usize {
        let used = self.managed.dpu_used | self.managed.shave_used;
        let kinds = [TaskKind::Variant, TaskKind::Invocation];
        let busy = |tile: &usize| {
            used >> tile & 1 != 0
                || kinds
                    .iter()
                    .any(|kind| self.tasks(*kind, *tile).count() != 0)
        };
        (0..TILES).rfind(busy).map_or(0, |tile| tile + 1)
    }

    /// Where a record lies in the file, named `descriptor 7`.
    pub fn record_place(
        &self,
        image: &Image<'_>,
        kind: TaskKind,
        unit: usize,
        index: usize,
    ) -> Place {
        let size = kind.record_size();
        let place = image.place(
            self.tasks(kind, unit).section,
            index as u64 * size as u64,
            size as u64,
        );
        place.at(format!("{} {index}", kind.record_name()))
    }
}

fn none<'i>(kind: TaskKind) -> Records<'i> {
    Records {
        section: 0,
        bytes: &[],
        size: kind.record_size(),
    }
}

/// A structure at an offset of a section.
fn structure<'i, T: FromBytes + Immutable + KnownLayout + Unaligned>(
    image: &'i Image<'_>,
    section: usize,
    offset: u64,
) -> Option<&'i T> {
    let bytes = image.bytes(section).get(usize::try_from(offset).ok()?..)?;
    T::ref_from_prefix(bytes).ok().map(|(value, _)| value)
}

/// Collects faults; places are fields of the structure at `entry`.
struct Reader<'i, 'f> {
    image: &'i Image<'f>,
    findings: Vec<Finding>,
    entry: (usize, u64),
}

impl<'i> Reader<'i, '_> {
    fn fault(
        &mut self,
        rule: &'static Rule,
        field: usize,
        item: impl Into<String>,
        message: String,
    ) {
        let (section, offset) = self.entry;
        let place = self
            .image
            .place(section, offset.saturating_add(field as u64), 8);
        self.push(rule.at(place.at(item), message));
    }

    fn push(&mut self, finding: Finding) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// The bytes of a section of records, unless the last record is cut.
    fn records(&mut self, section: usize, size: usize, what: &str) -> Option<&'i [u8]> {
        let bytes = self.image.bytes(section);
        if bytes.len().is_multiple_of(size) {
            return Some(bytes);
        }
        let message = format!(
            "{} bytes are not a whole number of {size}-byte {what}s",
            bytes.len()
        );
        self.push(
            rules::PROGRAM_RECORD_SIZE
                .at(self.image.place(section, 0, bytes.len() as u64), message),
        );
        None
    }

    /// Whether a reference leads to the start of a section and counts its records.
    fn check(
        &mut self,
        reference: &Reference,
        section: Option<usize>,
        records: usize,
        field: usize,
        item: &str,
    ) {
        let count = reference.count.get();
        let placed = section.and_then(|index| self.image.sections().get(index));
        let name = placed.map_or("no section", |section| &*section.name);
        if count != records as u64 {
            let message = format!("{item} counts {count}; {name} holds {records}");
            let count_field = field + offset_of!(Reference, count);
            self.fault(
                &rules::PROGRAM_TASK_COUNT,
                count_field,
                format!("{item}.count"),
                message,
            );
        } else if count != 0
            && placed.and_then(|section| section.address) != Some(reference.address.get())
        {
            let address = reference.address.get();
            let found = match self.image.locate(address) {
                Some((other, offset)) => format!(
                    "{} + {offset:#x}",
                    self.image
                        .sections()
                        .get(other)
                        .map_or("", |section| &*section.name)
                ),
                None => "in no section".to_owned(),
            };
            let message =
                format!("{item} should be the address of {name}; {address:#x} is {found}");
            let address_field = field + offset_of!(Reference, address);
            self.fault(
                &rules::PROGRAM_REFERENCE,
                address_field,
                format!("{item}.address"),
                message,
            );
        }
    }

    fn tasks(&mut self, mapped: &MappedInference) -> [[Records<'i>; TILES]; TaskKind::ALL.len()] {
        let mut tasks = TaskKind::ALL.map(|kind| [none(kind); TILES]);
        for (index, section) in self.image.sections().iter().enumerate() {
            let Some(TaskSection {
                kind, unit, list, ..
            }) = TaskKind::of_section(&section.name)
            else {
                continue;
            };
            let Some(bytes) = self.records(index, kind.record_size(), kind.record_name()) else {
                continue;
            };
            // Its tasks are found by what the program's DMAs write into the SHAVE's FIFO.
            if kind.has_second_list() && list == 1 {
                continue;
            }
            let Some(list) = tasks
                .get_mut(kind as usize)
                .and_then(|units| units.get_mut(unit))
            else {
                continue;
            };
            if list.section != 0 {
                let first = self.image.place(list.section, 0, 0);
                let message = format!("a second section is called {}", section.name);
                self.push(
                    rules::PROGRAM_REFERENCE
                        .at(self.image.place(index, 0, 0), message)
                        .with(first, "the first one"),
                );
                continue;
            }
            *list = Records {
                section: index,
                bytes,
                size: kind.record_size(),
            };
        }
        if self.findings.is_empty() {
            for (kind, units) in TaskKind::ALL.into_iter().zip(&tasks) {
                let (references, name) = kind.references(mapped);
                let start = kind.field();
                for (unit, (reference, records)) in references.iter().zip(units).enumerate() {
                    let section = (records.section != 0).then_some(records.section);
                    let field = start + unit * size_of::<Reference>();
                    self.check(
                        reference,
                        section,
                        records.count(),
                        field,
                        &format!("{name}[{unit}]"),
                    );
                }
            }
        }
        tasks
    }

    /// An array that a reference leads to and that is the whole section of this name.
    fn array<T: FromBytes + Immutable + KnownLayout + Unaligned>(
        &mut self,
        reference: &Reference,
        name: &str,
        field: usize,
        item: &str,
    ) -> (usize, &'i [T]) {
        let section = self.image.section(name);
        let Some(bytes) = self.records(section.unwrap_or_default(), size_of::<T>(), "record")
        else {
            return (0, &[]);
        };
        let values = <[T]>::ref_from_bytes(bytes).unwrap_or_default();
        self.check(reference, section, values.len(), field, item);
        (section.unwrap_or_default(), values)
    }

    fn versions(
        &mut self,
        document: &Document<'_>,
        mapped: &MappedInference,
        managed: &ManagedInference,
        managed_at: (usize, u64),
    ) {
        let Some(note) = document.mapped_inference() else {
            return;
        };
        let root = self.entry;
        for (what, packed, at) in [
            ("mapped", mapped.api_version.get(), root),
            ("managed", managed.api_version.get(), managed_at),
        ] {
            let version = PackedVersion::from(packed);
            if (u32::from(version.major), u32::from(version.minor)) != (note.major, note.minor) {
                let place = self.image.place(at.0, at.1, 4).at("vpu_nnrt_api_ver");
                let message =
                    format!("the {what} inference has API version {version}; the note says {note}");
                self.push(
                    rules::PROGRAM_VERSION
                        .at(place, message)
                        .with(document.mapped_inference_place(), "the note"),
                );
            }
        }
    }

    fn barrier_indices(&mut self, inference: &Inference<'i>) {
        let (section, barriers) = inference.barriers;
        let count = barriers.len();
        let (bootstrap_section, bootstrap) = inference.bootstrap;
        for (index, barrier) in bootstrap
            .iter()
            .enumerate()
            .filter(|(_, barrier)| barrier.get() as usize >= count)
        {
            let place = self
                .image
                .place(bootstrap_section, index as u64 * 4, 4)
                .at(format!("entry {index}"));
            let message = format!(
                "barrier {barrier} is to be configured before the start; the program has {count}"
            );
            self.push(rules::PROGRAM_BARRIER_INDEX.at(place, message));
        }
        let last = inference.managed.final_barrier.get();
        if last as usize >= count {
            let message = format!("the final barrier is {last}; the program has {count}");
            self.fault(
                &rules::PROGRAM_BARRIER_INDEX,
                offset_of!(ManagedInference, final_barrier),
                "final_barrier",
                message,
            );
        }
        let items = inference.work_items.1.len() as u64;
        for (index, barrier) in barriers.iter().enumerate() {
            let place = |field: usize, size| {
                self.image
                    .place(section, (index * size_of::<Barrier>() + field) as u64, size)
                    .at(format!("barrier {index}"))
            };
            let next = barrier.next_same_id.get();
            if next != NO_BARRIER {
                let real = barriers
                    .get(next as usize)
                    .filter(|_| next as usize > index)
                    .map(|later| later.real_id);
                if real != Some(barrier.real_id) {
                    let found = real.map_or_else(
                        || format!("not one of the later ones up to {}", count - 1),
                        |id| format!("of physical barrier {id}"),
                    );
                    let message = format!(
                        "next_same_id {next} is {found}; this is physical barrier {}",
                        barrier.real_id
                    );
                    self.push(rules::PROGRAM_BARRIER_INDEX.at(place(0, 4), message));
                    continue;
                }
            }
            let (first, number) = (
                u64::from(barrier.work_item.get()),
                u64::from(barrier.enqueue_count.get()),
            );
            if number != 0 && first + number > items {
                let message = format!(
                    "barrier {index} enqueues work items {first}..{}; the program has {items}",
                    first + number
                );
                let finding = rules::PROGRAM_WORK_ITEM_RANGE.at(place(12, 8), message);
                self.push(finding);
            }
        }
        let started = u64::from(inference.managed.bootstrap_work_items.get());
        if started > items {
            let field = offset_of!(ManagedInference, bootstrap_work_items);
            let message =
                format!("the start enqueues {started} work items; the program has {items}");
            self.fault(
                &rules::PROGRAM_WORK_ITEM_RANGE,
                field,
                "bootstrap_workitems_count",
                message,
            );
        }
    }

    fn work_item_targets(&mut self, inference: &Inference<'i>) {
        let (section, items) = inference.work_items;
        for (index, item) in items.iter().enumerate() {
            let address = item.descriptor.get();
            let unit = usize::from(item.unit);
            let fault = match (item.kind, item.sub_unit) {
                (0 | 2 | 4, _) if unit < TILES => (address != CMX | 1 << (TILE_SHIFT + unit) | address & OFFSET).then(|| {
                    let message = format!("work item {index} of tile {unit} points to {address:#x}, which is not in the CMX of that tile");
                    (&rules::PROGRAM_WORK_ITEM_ADDRESS, message)
                }),
                (1, sub @ (0 | 1)) if unit < TILES => {
                    let kind = if sub == 0 { TaskKind::DmaDdr } else { TaskKind::DmaCmx };
                    let list = inference.tasks(kind, unit);
                    let found = self.image.locate(address);
                    let hit = found.is_some_and(|(at, offset)| at == list.section && offset.is_multiple_of(list.size as u64));
                    (!hit).then(|| {
                        let found = found.map_or_else(
                            || format!("{address:#x}, in no section"),
                            |(at, offset)| format!("{} + {offset:#x}", self.image.sections().get(at).map_or("", |section| &*section.name)),
                        );
                        let message =
                            format!("work item {index} should point to a descriptor of task.dma.{unit}.{sub}; it points to {found}");
                        (&rules::PROGRAM_WORK_ITEM_ADDRESS, message)
                    })
                }
                (3, _) => None,
                (kind, sub) => {
                    let message = format!("work item {index} is for an engine of kind {kind}, unit {unit}, sub unit {sub}");
                    Some((&rules::PROGRAM_WORK_ITEM_KIND, message))
                }
            };
            if let Some((rule, message)) = fault {
                let place = self.image.place(
                    section,
                    (index * size_of::<WorkItem>()) as u64,
                    size_of::<WorkItem>() as u64,
                );
                self.push(rule.at(place.at(format!("work item {index}")), message));
            } else if item.next.get() as usize >= items.len() {
                let place = self.image.place(
                    section,
                    (index * size_of::<WorkItem>() + offset_of!(WorkItem, next)) as u64,
                    4,
                );
                let message = format!(
                    "work item {index} is followed by {}; the program has {}",
                    item.next,
                    items.len()
                );
                self.push(
                    rules::PROGRAM_WORK_ITEM_RANGE
                        .at(place.at(format!("work item {index}")), message),
                );
            }
        }
    }
}

/// Whether the program has a large enough section for each input and output.
pub(crate) fn interface(image: &Image<'_>, document: &Document<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let metadata = document.metadata();
    let sides = [
        ("io.NetworkInput.", metadata.inputs),
        ("io.NetworkOutput.", metadata.outputs),
        ("io.ProfilingOutput.", metadata.profiling_outputs),
    ];
    for (prefix, tensors) in sides {
        let mut sizes = vec![0; tensors.len()];
        let mut count = 0;
        for section in image
            .sections()
            .iter()
            .filter(|section| section.address.is_some())
        {
            let Some(number) = section.name.strip_prefix(prefix) else {
                continue;
            };
            count += 1;
            if let Some(size) = number
                .parse()
                .ok()
                .and_then(|number: usize| sizes.get_mut(number))
            {
                *size = section.size;
            }
        }
        if count != tensors.len() {
            let message = format!(
                "the network's description lists {}; the program has {count} sections {prefix}N",
                tensors.len()
            );
            findings.push(rules::PROGRAM_INTERFACE.at(document.metadata_place(), message));
            continue;
        }
        for (index, (tensor, size)) in tensors.iter().zip(sizes).enumerate() {
            if tensor.bytes().is_none_or(|bytes| bytes > size) {
                let bytes = tensor
                    .bytes()
                    .map_or_else(|| "more than 2^61".to_owned(), |bytes| bytes.to_string());
                let name = tensor.name.text().unwrap_or_default();
                let message = format!("{name} takes {bytes} bytes; {prefix}{index} has {size}");
                findings
                    .push(rules::PROGRAM_INTERFACE.at(document.metadata_place().at(name), message));
            }
        }
    }
    findings
}

/// Where the symbol of an input or output gives it another size than its description.
pub(crate) fn interface_sizes(document: &Document<'_>) -> Vec<Finding> {
    let metadata = document.metadata();
    let sides = [
        ("io.NetworkInput.", metadata.inputs),
        ("io.NetworkOutput.", metadata.outputs),
        ("io.ProfilingOutput.", metadata.profiling_outputs),
    ];
    let mut findings = Vec::new();
    for (_, _, section, declared) in crate::image::interface_symbols(document) {
        let tensor = sides.iter().find_map(|(prefix, tensors)| {
            let number = section.strip_prefix(prefix)?.parse::<usize>().ok()?;
            tensors.get(number)
        });
        let Some((tensor, bytes)) = tensor.and_then(|tensor| Some((tensor, tensor.bytes()?)))
        else {
            continue;
        };
        if bytes != declared && findings.len() < MOST_FINDINGS {
            let name = tensor.name.text().unwrap_or_default();
            let message =
                format!("{name} takes {bytes} bytes; the symbol of {section} says {declared}");
            let place = document.metadata_place().at(name);
            findings.push(rules::PROGRAM_INTERFACE_SIZE.at(place, message));
        }
    }
    findings
}
