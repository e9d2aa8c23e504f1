//! What a program that was compiled with `PERF_COUNT` says of its tasks (section `.profiling`), and the buffer that the device leaves.
//!
//! The section is u32 1, u32 length, then a flatbuffer: of the tasks that write records their names, workload identifiers and
//! places. The buffer holds 32 bytes for each DPU workload and SHAVE call, and the clocks. Source: `profiling.fbs` and the parser of
//! `openvinotoolkit/npu_compiler`.

use crate::document::Document;
use crate::generation::{Durations, Profile};
use crate::kernels::FILL;
use crate::machine::Machine;
use crate::structures::{Layout, TaskKind};
use chipless_model::{Direction, Program, TaskId, Time};
use chipless_sim::Timeline;
use std::collections::HashMap;

/// Types of the parts of the buffer.
const DPU: u32 = 1;
const SHAVE: u32 = 3;
const CLOCKS: u32 = 5;
/// Times of transfers, which the program takes itself (NPU3720).
const DMA: u32 = 4;
/// Bytes of a SHAVE's record.
const RECORD: u64 = 32;
/// Bytes of a buffer, at most.
const MAX_BYTES: u64 = 1 << 30;

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
    /// Transfers that the program times, in the order of their records; no blob for NPU4 was seen to have any.
    pub dma: Vec<DmaRecord>,
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

/// A transfer between two readings of the timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaRecord {
    /// The compiler's name.
    pub name: String,
    /// Number of its record.
    pub record: u32,
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
        // Each transfer stands there twice, for the reading before it and for the one after it, which has the number.
        let ends = table.tables(root, 4).into_iter();
        let ends = ends.filter(|at| table.byte(*at, 5) == 0);
        let mut dma: Vec<DmaRecord> = ends
            .map(|at| DmaRecord {
                name: table.text(at, 0),
                record: table.number(at, 4, 2),
            })
            .collect();
        dma.sort_by_key(|task| task.record);
        Some(Profiling {
            bytes: table.number(buffer, 1, 4).into(),
            parts: table.tables(buffer, 0).into_iter().map(part).collect(),
            dma,
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
                    let writers = writers(document, section);
                    let tasks = self.shave_of(tile);
                    if tasks.len() == writers.len() {
                        let names = tasks.iter().map(|task| task.name.clone());
                        labels.put(section, writers.into_iter().zip(names));
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
        let Some(generation) = document.generation() else {
            return Err(format!("{} is not supported", document.platform()));
        };
        let has_dma = generation.profile.dma_record.is_some();
        if self.bytes > MAX_BYTES || (!self.dma.is_empty() && !has_dma) {
            return Err(format!(
                "a profiling buffer of {} bytes with {} DMA records is not supported",
                self.bytes,
                self.dma.len()
            ));
        }
        let mut out = Out {
            bytes: vec![0; self.bytes as usize],
            records: 0,
            program,
            timeline,
            machine,
            profile: generation.profile,
        };
        for part in &self.parts {
            match part.kind {
                DPU => self.dpu_part(&mut out, part)?,
                SHAVE => self.shave_part(&mut out, part, document)?,
                DMA => self.dma_part(&mut out, part)?,
                CLOCKS if part.size >= 8 => out.clocks(part)?,
                _ => {}
            }
        }
        Ok((out.bytes, out.records))
    }

    fn dpu_part(&self, out: &mut Out<'_>, part: &Part) -> Result<(), String> {
        let mut queues: HashMap<u32, std::vec::IntoIter<TaskId>> = HashMap::new();
        let mut sorted: Vec<&DpuRecord> = self.dpu.iter().collect();
        sorted.sort_by_key(|task| task.order);
        let (mut slot, mut after) = (0, 0);
        let mut last = None;
        for record in sorted {
            let tile = record.order.1;
            // The parts of a batch have one record: what the last of them leaves there.
            if last.replace(record.order) != Some(record.order) {
                slot = after;
                after += record.room;
            }
            for (number, workload) in record.workloads.iter().enumerate() {
                let queue = queues
                    .entry(tile)
                    .or_insert_with(|| tasks_of(out.program, &format!("dpu{tile}")).into_iter());
                let task = queue
                    .next()
                    .ok_or_else(|| format!("more records of dpu{tile} than it has workloads"))?;
                let bytes = out.dpu_record(task, *workload);
                out.put(part, out.profile.dpu_record, slot + number as u64, &bytes)?;
            }
        }
        Ok(())
    }

    fn shave_part(
        &self,
        out: &mut Out<'_>,
        part: &Part,
        document: &Document<'_>,
    ) -> Result<(), String> {
        for tile in 0..crate::structures::TILES {
            let records = self.shave_of(tile);
            let tasks = recording(document, out.program, tile);
            if records.len() != tasks.len() {
                return Err(format!(
                    "{} records for {} calls of shave{tile}",
                    records.len(),
                    tasks.len()
                ));
            }
            for (record, task) in records.into_iter().zip(tasks) {
                let span = out.timeline.tasks[task];
                let begin = out.ticks(span.start).max(1);
                let length = out.ticks(span.end).saturating_sub(begin) as u32;
                let clock = cycles(span.end - span.start, out.machine.clock.shave());
                let words = [length, 0, 0, clock, 0].map(u32::to_le_bytes).concat();
                let bytes: Vec<u8> = begin.to_le_bytes().into_iter().chain(words).collect();
                out.put(part, RECORD, record.record, &bytes)?;
            }
        }
        Ok(())
    }

    fn dma_part(&self, out: &mut Out<'_>, part: &Part) -> Result<(), String> {
        let Some(size) = out.profile.dma_record else {
            return Ok(());
        };
        let tasks = timed_transfers(out.program);
        if tasks.len() != self.dma.len() {
            return Err(format!(
                "{} records for {} transfers between readings of the timer",
                self.dma.len(),
                tasks.len()
            ));
        }
        for (number, task) in tasks.into_iter().enumerate() {
            let span = out.timeline.tasks[task];
            let times = [out.ticks(span.start).max(1), out.ticks(span.end)];
            let bytes = times.map(u64::to_le_bytes).concat();
            out.put(part, size, number as u64, &bytes)?;
        }
        Ok(())
    }

    /// Names the tasks of a program whose descriptors no section of a tile lists (NPU3720): by queue, in order, where there are as many.
    pub(crate) fn name_by_queue(&self, program: &mut Program<'_>) {
        let mut names: Vec<(Vec<TaskId>, Vec<String>)> = Vec::new();
        for tile in 0..crate::structures::TILES {
            let dpu = self.dpu_of(tile);
            let variants = dpu.iter().flat_map(|task| {
                (0..task.workloads.len()).map(|n| format!("{}/variant_{n}", task.name))
            });
            names.push((tasks_of(program, &format!("dpu{tile}")), variants.collect()));
            let shave = self.shave_of(tile);
            let calls = shave.iter().map(|task| task.name.clone());
            names.push((tasks_of(program, &format!("shave{tile}")), calls.collect()));
        }
        let transfers = self.dma.iter().map(|task| task.name.clone());
        names.push((timed_transfers(program), transfers.collect()));
        for (tasks, names) in names {
            if tasks.len() == names.len() {
                for (task, name) in tasks.into_iter().zip(names) {
                    program.tasks[task].label = Some(name.into());
                }
            }
        }
    }
}

/// The tasks of a queue, in the order of their descriptors; none where there is no such queue.
fn tasks_of(program: &Program<'_>, queue: &str) -> Vec<TaskId> {
    let Some(queue) = program.queues.position(|known| known.name == queue) else {
        return Vec::new();
    };
    let mut tasks: Vec<TaskId> = (program.tasks.iter_enumerated())
        .filter(|(_, task)| task.queue == queue)
        .map(|(id, _)| id)
        .collect();
    tasks.sort_by_key(|id| program.tasks[*id].location.offset);
    tasks
}

/// Transfers of NPU3720 that the program times itself, those of the first engine first: before and after each of them it copies eight bytes of a timer.
fn timed_transfers(program: &Program<'_>) -> Vec<TaskId> {
    let mut found = Vec::new();
    for engine in ["dma0", "dma1"] {
        let mut begun: Option<Vec<TaskId>> = None;
        for task in tasks_of(program, engine) {
            if reads_timer(program, task) {
                match begun.take() {
                    Some(between) => found.extend(between),
                    None => begun = Some(Vec::new()),
                }
            } else if let Some(between) = &mut begun {
                between.push(task);
            }
        }
    }
    found
}

fn reads_timer(program: &Program<'_>, task: TaskId) -> bool {
    let kernel = program.kernel(task);
    let mut written = 0;
    kernel.accesses(&mut |access| {
        if access.direction == Direction::Write {
            written += access.pattern.bytes().unwrap_or(0);
        }
    });
    kernel.operation() == FILL && written == 8
}

/// Cycles of a clock, at least one.
fn cycles(length: Time, mhz: f64) -> u32 {
    ((length.0 as f64 * 1e-6 * mhz).round() as u32).max(1)
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

/// Numbers of the invocations that write a record: those that say where.
fn writers(document: &Document<'_>, section: &str) -> Vec<usize> {
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

/// The calls of a tile that write a record, in order. On NPU3720 all of them do.
fn recording(document: &Document<'_>, program: &Program<'_>, tile: usize) -> Vec<TaskId> {
    let tasks = tasks_of(program, &format!("shave{tile}"));
    let name = format!("task.shave.invocation.{tile}.0");
    let Some((section, _)) = document.section(&name) else {
        return tasks;
    };
    let writers = writers(document, &name);
    let number = |task: &TaskId| {
        let place = program.tasks[*task].location.offset;
        let record = TaskKind::Invocation.record_size() as u64;
        Some((place.checked_sub(section.offset)? / record) as usize)
    };
    tasks
        .into_iter()
        .filter(|task| number(task).is_some_and(|number| writers.contains(&number)))
        .collect()
}

struct Out<'p> {
    bytes: Vec<u8>,
    records: usize,
    program: &'p Program<'p>,
    timeline: &'p Timeline,
    machine: &'p Machine,
    profile: Profile,
}

impl Out<'_> {
    /// A time on the device's timer.
    fn ticks(&self, time: Time) -> u64 {
        (time.0 as f64 * 1e-6 * self.profile.timer).round() as u64
    }

    /// The multiplier of the device's clock, and the DPU clock in MHz that it stands for.
    fn clock(&self) -> (u16, f64) {
        let unit = self.profile.clock_unit;
        let multiplier = (self.machine.clock.dpu() / unit).round();
        (multiplier as u16, multiplier * unit)
    }

    fn dpu_record(&self, task: TaskId, workload: u32) -> Vec<u8> {
        let span = self.timeline.tasks[task];
        let length = span.end - span.start;
        let (_, clock) = self.clock();
        let half = match self.profile.durations {
            Durations::DpuCycles { bits: None } => {
                [cycles(length, clock), workload].map(u32::to_le_bytes)
            }
            Durations::Ticks => {
                [cycles(length, self.profile.timer), workload].map(u32::to_le_bytes)
            }
            // NPU3720: two fields of 28 bits, a length in DPU cycles and the end in cycles of the VPU's clock, which is slower by a third.
            Durations::DpuCycles { bits: Some(bits) } => {
                let mask = (1u64 << bits) - 1;
                let end = (span.end.0 as f64 * 1e-6 * clock * 0.75).round() as u64;
                let word = u64::from(cycles(length, clock)) & mask | (end & mask) << bits;
                let bytes = word.to_le_bytes();
                return [bytes, bytes].concat();
            }
        };
        let end = self.ticks(span.end).to_le_bytes();
        let half = [&half[0][..], &half[1], &end].concat();
        [half.clone(), half].concat()
    }

    fn clocks(&mut self, part: &Part) -> Result<(), String> {
        let setting = self.clock().0.to_le_bytes();
        let both = [setting, [0; 2], setting, [0; 2]].concat();
        self.put(part, RECORD, 0, &both)?;
        self.records -= 1;
        Ok(())
    }

    fn put(&mut self, part: &Part, size: u64, record: u64, bytes: &[u8]) -> Result<(), String> {
        let start = record
            .checked_mul(size)
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

    /// A number of one byte; 0 where it is absent.
    fn byte(self, table: usize, number: usize) -> u8 {
        let at = self.field(table, number);
        at.and_then(|at| self.0.get(at).copied()).unwrap_or(0)
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
