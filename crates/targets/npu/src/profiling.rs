//! What a program that was compiled with `PERF_COUNT` says of its tasks (section `.profiling`), and the buffer that the device leaves.
//!
//! The section is u32 1, u32 length, then a flatbuffer: of the tasks that write records their names, workload identifiers and
//! places. The buffer holds 32 bytes for each DPU workload and SHAVE call, and the clocks. Source: `profiling.fbs` and the parser of
//! `openvinotoolkit/npu_compiler`.

use crate::machine::Machine;
use crate::read::Document;
use crate::structures::{Layout, TaskKind};
use chipless_model::{Program, TaskId, Time};
use chipless_sim::Timeline;
use std::collections::HashMap;

/// Types of the parts of the buffer.
const DPU: u32 = 1;
const SHAVE: u32 = 3;
const CLOCKS: u32 = 5;
/// Bytes of a record.
const RECORD: u64 = 32;
/// Bytes of a buffer, at most.
const MAX_BYTES: u64 = 1 << 30;
/// Ticks of the device's clock in a microsecond.
const TICKS: f64 = 19.2;
/// MHz of the DPU clock for each unit of its multiplier.
const CLOCK_UNIT: f64 = 25.0;

/// The section, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profiling {
    /// Bytes of the buffer.
    pub bytes: u64,
    /// Its parts.
    pub parts: Vec<Part>,
    /// DPU tasks.
    pub dpu: Vec<DpuRecord>,
    /// SHAVE tasks.
    pub shave: Vec<ShaveRecord>,
    /// DMA tasks; no blob for NPU4 was seen to have any.
    pub dma: usize,
}

/// A part of the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it holds.
    pub kind: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A DPU task: an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpuRecord {
    /// The compiler's name.
    pub name: String,
    /// Order of the records: buffer, tile, task.
    pub order: (u32, u32, u32),
    /// Records that have room.
    pub room: u64,
    /// Identifiers of its workloads.
    pub workloads: Vec<u32>,
}

/// A SHAVE task: an invocation that writes a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaveRecord {
    /// The compiler's name.
    pub name: String,
    /// Its tile.
    pub tile: u32,
    /// Number of its record.
    pub record: u64,
}

impl Profiling {
    /// Reads the section; `None` where the file has none, or one that cannot be read.
    pub fn read(document: &Document<'_>) -> Option<Profiling> {
        let (_, bytes) = document.section(".profiling")?;
        let table = Flat(bytes.get(8..)?);
        if word(bytes, 0)? != 1 {
            return None;
        }
        let root = table.word(0)? as usize;
        let buffer = table.pointer(root, 3)?;
        let part = |at: usize| Part {
            kind: table.number(at, 0, 4),
            offset: table.number(at, 1, 4).into(),
            size: table.number(at, 2, 4).into(),
        };
        let dpu = |at: usize| {
            let workloads = table.numbers(at, 8);
            let used = table.number(at, 4, 2) as usize;
            DpuRecord {
                name: table.text(at, 0),
                order: (
                    table.number(at, 1, 2),
                    table.number(at, 2, 2),
                    table.number(at, 3, 2),
                ),
                room: table.number(at, 5, 2).into(),
                workloads: workloads.into_iter().take(used).collect(),
            }
        };
        let shave = |at: usize| {
            let [offset, size, index, cluster] =
                [5, 6, 7, 9].map(|field| u64::from(table.number(at, field, 4)));
            ShaveRecord {
                name: table.text(at, 0),
                tile: cluster as u32,
                record: offset + size * cluster + index,
            }
        };
        Some(Profiling {
            bytes: table.number(buffer, 1, 4).into(),
            parts: table.tables(buffer, 0).into_iter().map(part).collect(),
            dma: table.tables(root, 4).len(),
            dpu: table.tables(root, 5).into_iter().map(dpu).collect(),
            shave: table.tables(root, 6).into_iter().map(shave).collect(),
        })
    }

    /// The DPU tasks of a tile in the order of its variants.
    fn dpu_of(&self, tile: usize) -> Vec<&DpuRecord> {
        let mut tasks: Vec<&DpuRecord> = self
            .dpu
            .iter()
            .filter(|task| task.order.1 as usize == tile)
            .collect();
        tasks.sort_by_key(|task| task.order);
        tasks
    }

    /// The SHAVE tasks of a tile in the order of its invocations.
    fn shave_of(&self, tile: usize) -> Vec<&ShaveRecord> {
        let mut tasks: Vec<&ShaveRecord> = self
            .shave
            .iter()
            .filter(|task| task.tile as usize == tile)
            .collect();
        tasks.sort_by_key(|task| task.record);
        tasks
    }

    /// Names of variants and invocations, by section and number.
    pub fn labels(&self, document: &Document<'_>) -> Labels {
        let mut labels = Labels::default();
        for (section, kind, tile, list) in sections(document) {
            let count = document
                .section(section)
                .map_or(0, |(_, bytes)| bytes.len())
                / kind.record_size();
            match kind {
                TaskKind::Variant => {
                    let tasks = self.dpu_of(tile);
                    let names = tasks.iter().flat_map(|task| {
                        (0..task.workloads.len()).map(|n| format!("{}/variant_{n}", task.name))
                    });
                    let names: Vec<String> = names.collect();
                    if names.len() == count {
                        labels.put(section, names.into_iter().enumerate());
                    }
                }
                TaskKind::Invocation if list == 0 => {
                    let recording = recording(document, section);
                    let tasks = self.shave_of(tile);
                    if tasks.len() == recording.len() {
                        let names = tasks.iter().map(|task| task.name.clone());
                        labels.put(section, recording.into_iter().zip(names));
                    }
                }
                _ => {}
            }
        }
        labels
    }

    /// The buffer as the device leaves it after this run, and the number of its records.
    ///
    /// # Errors
    /// What of the section does not fit the program, in words.
    pub fn buffer(
        &self,
        document: &Document<'_>,
        program: &Program<'_>,
        timeline: &Timeline,
        machine: &Machine,
    ) -> Result<(Vec<u8>, usize), String> {
        if self.bytes > MAX_BYTES || self.dma > 0 {
            return Err(format!(
                "a profiling buffer of {} bytes with {} DMA records is not supported",
                self.bytes, self.dma
            ));
        }
        let layout = document.generation().map(|generation| generation.layout);
        if layout == Some(Layout::Npu3720) {
            return Err(format!(
                "the profiling buffer of a program for {} is not supported; those for NPU4000 and NPU5010 are",
                document.platform()
            ));
        }
        let mut out = Out {
            bytes: vec![0; self.bytes as usize],
            records: 0,
        };
        let tasks = by_place(document, program);
        let find = |section: String, index: usize| {
            let task = tasks.get(&(section.as_str(), index)).copied();
            task.ok_or_else(|| format!("descriptor {index} of {section} is no task of the program"))
        };
        let multiplier = (machine.clock.dpu() / CLOCK_UNIT).round();
        let ticks = |time: Time| (time.0 as f64 * 1e-6 * TICKS).round() as u64;
        let cycles =
            |length: Time, mhz: f64| ((length.0 as f64 * 1e-6 * mhz).round() as u32).max(1);
        for part in &self.parts {
            match part.kind {
                DPU => {
                    let mut next: HashMap<u32, usize> = HashMap::new();
                    let mut sorted: Vec<&DpuRecord> = self.dpu.iter().collect();
                    sorted.sort_by_key(|task| task.order);
                    let (mut slot, mut after) = (0, 0);
                    let mut last = None;
                    for task in sorted {
                        let tile = task.order.1;
                        // The parts of a batch have one record: what the last of them leaves there.
                        if last.replace(task.order) != Some(task.order) {
                            slot = after;
                            after += task.room;
                        }
                        for (number, workload) in task.workloads.iter().enumerate() {
                            let at = next.entry(tile).or_default();
                            let record =
                                timeline.tasks[find(format!("task.dpu.variant.{tile}.0"), *at)?];
                            *at += 1;
                            let length = cycles(record.end - record.start, CLOCK_UNIT * multiplier);
                            let end = ticks(record.end);
                            let half = [length.to_le_bytes(), workload.to_le_bytes()].concat();
                            let half = [half, end.to_le_bytes().to_vec()].concat();
                            out.put(part, slot + number as u64, &[half.clone(), half].concat())?;
                        }
                    }
                }
                SHAVE => {
                    for tile in 0..crate::structures::TILES {
                        let section = format!("task.shave.invocation.{tile}.0");
                        let recording = recording(document, &section);
                        let records = self.shave_of(tile);
                        if records.len() != recording.len() {
                            return Err(format!(
                                "{} records for {} calls of {section}",
                                records.len(),
                                recording.len()
                            ));
                        }
                        for (task, index) in records.into_iter().zip(recording) {
                            let record = timeline.tasks[find(section.clone(), index)?];
                            let begin = ticks(record.start).max(1);
                            let length = ticks(record.end).saturating_sub(begin) as u32;
                            let clock = cycles(record.end - record.start, machine.clock.shave());
                            let words = [length, 0, 0, clock, 0].map(u32::to_le_bytes).concat();
                            let bytes: Vec<u8> =
                                begin.to_le_bytes().into_iter().chain(words).collect();
                            out.put(part, task.record, &bytes)?;
                        }
                    }
                }
                CLOCKS if part.size >= 8 => {
                    let setting = (multiplier as u16).to_le_bytes();
                    let both = [setting, [0; 2], setting, [0; 2]].concat();
                    out.put(part, 0, &both)?;
                    out.records -= 1;
                }
                _ => {}
            }
        }
        Ok((out.bytes, out.records))
    }
}

/// Names of tasks by the section and the number of their descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(HashMap<String, HashMap<usize, String>>);

impl Labels {
    pub(crate) fn put(&mut self, section: &str, names: impl Iterator<Item = (usize, String)>) {
        self.0.entry(section.to_owned()).or_default().extend(names);
    }

    /// The name of a descriptor's task.
    pub fn get(&self, section: &str, index: u64) -> Option<&str> {
        let name = self.0.get(section)?.get(&usize::try_from(index).ok()?)?;
        Some(name)
    }
}

/// Sections of task descriptors that hold those of one tile or engine: name, kind, tile or engine, list.
pub(crate) fn sections<'d>(
    document: &'d Document<'_>,
) -> impl Iterator<Item = (&'d str, TaskKind, usize, usize)> {
    document.sections().iter().filter_map(|section| {
        let list = TaskKind::of_section(section.name)?;
        (list.layout == Layout::Npu4000).then_some((section.name, list.kind, list.unit, list.list))
    })
}

/// Invocations that write a record: those that say where.
fn recording(document: &Document<'_>, section: &str) -> Vec<usize> {
    let bytes = document
        .section(section)
        .map_or(&[][..], |(_, bytes)| bytes);
    // NPU4 SHAVE invocation, perf_packet_out.
    let records = bytes.chunks_exact(TaskKind::Invocation.record_size());
    let writes = |record: &[u8]| {
        record
            .get(24..32)
            .is_some_and(|address| address.iter().any(|b| *b != 0))
    };
    records
        .enumerate()
        .filter(|(_, record)| writes(record))
        .map(|(index, _)| index)
        .collect()
}

/// Tasks by the section and the number of their descriptor.
fn by_place<'p>(
    document: &Document<'_>,
    program: &'p Program<'_>,
) -> HashMap<(&'p str, usize), TaskId> {
    let starts: HashMap<&str, (u64, usize)> = document
        .sections()
        .iter()
        .filter_map(|section| {
            let list = TaskKind::of_section(section.name)?;
            Some((section.name, (section.offset, list.record_size())))
        })
        .collect();
    let place = |(id, task): (TaskId, &chipless_model::Task)| {
        let part = program.parts[task.location.part].as_str();
        let (start, size) = starts.get(part)?;
        let offset = task.location.offset.checked_sub(*start)?;
        Some(((part, (offset as usize) / size), id))
    };
    program.tasks.iter_enumerated().filter_map(place).collect()
}

struct Out {
    bytes: Vec<u8>,
    records: usize,
}

impl Out {
    fn put(&mut self, part: &Part, record: u64, bytes: &[u8]) -> Result<(), String> {
        let start = record
            .checked_mul(RECORD)
            .filter(|start| start + bytes.len() as u64 <= part.size);
        let range = start
            .and_then(|start| usize::try_from(part.offset + start).ok())
            .and_then(|start| self.bytes.get_mut(start..start.checked_add(bytes.len())?));
        let Some(range) = range else {
            return Err(format!(
                "record {record} lies outside of the {} bytes of its part",
                part.size
            ));
        };
        self.records += usize::from(range.iter().all(|byte| *byte == 0));
        range.copy_from_slice(bytes);
        Ok(())
    }
}

/// A flatbuffer. What leads outside reads as absent.
#[derive(Clone, Copy)]
struct Flat<'f>(&'f [u8]);

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

impl Flat<'_> {
    fn word(self, at: usize) -> Option<u32> {
        word(self.0, at)
    }

    fn half(self, at: usize) -> Option<usize> {
        let half = self.0.get(at..at.checked_add(2)?)?;
        Some(u16::from_le_bytes(half.try_into().ok()?).into())
    }

    /// Where a field of a table stands.
    fn field(self, table: usize, number: usize) -> Option<usize> {
        let back = self.word(table)? as i32;
        let entries = usize::try_from(i64::try_from(table).ok()? - i64::from(back)).ok()?;
        let entry = 4 + 2 * number;
        if entry >= self.half(entries)? {
            return None;
        }
        let offset = self.half(entries + entry)?;
        (offset != 0).then_some(table + offset)
    }

    /// A number of 2 or 4 bytes; 0 where it is absent.
    fn number(self, table: usize, number: usize, bytes: usize) -> u32 {
        let at = self.field(table, number);
        let value = match bytes {
            2 => at.and_then(|at| self.half(at)).map(|half| half as u32),
            _ => at.and_then(|at| self.word(at)),
        };
        value.unwrap_or(0)
    }

    fn pointer(self, table: usize, number: usize) -> Option<usize> {
        let at = self.field(table, number)?;
        at.checked_add(self.word(at)? as usize)
    }

    fn text(self, table: usize, number: usize) -> String {
        let bytes = self.pointer(table, number).and_then(|at| {
            let length = self.word(at)? as usize;
            self.0.get(at + 4..)?.get(..length)
        });
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }

    fn numbers(self, table: usize, number: usize) -> Vec<u32> {
        let Some(at) = self.pointer(table, number) else {
            return Vec::new();
        };
        let words = self.0.get(at + 4..).unwrap_or_default().chunks_exact(4);
        let count = self.word(at).unwrap_or(0) as usize;
        words
            .take(count)
            .filter_map(|bytes| word(bytes, 0))
            .collect()
    }

    /// The tables of a vector.
    fn tables(self, table: usize, number: usize) -> Vec<usize> {
        let Some(at) = self.pointer(table, number) else {
            return Vec::new();
        };
        let count = (self.word(at).unwrap_or(0) as usize).min(self.0.len() / 4);
        (0..count)
            .filter_map(|n| {
                let entry = at + 4 + 4 * n;
                entry.checked_add(self.word(entry)? as usize)
            })
            .collect()
    }
}
