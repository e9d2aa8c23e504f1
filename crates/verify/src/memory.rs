//! Rules over the bytes: initialisation, races, constants, outputs.

use crate::access::range;
use crate::clock::reaches;
use crate::doubt;
use crate::filled::Filled;
use crate::findings::Findings;
use crate::footprint::{Accesses, Footprint, Use};
use crate::order::Order;
use crate::overlap::Overlap;
use crate::race::{Race, connections};
use crate::remnants::Lives;
use crate::rules;
use crate::shadow::{Record, Shadow};
use crate::written::Written;
use chipless_model::{Buffer, BufferId, Certainty, Direction, IndexVec, Program, Role, TaskId};
use rustc_hash::FxHashMap;

/// Runs that are looked at one by one, in the whole program. Beyond, strided accesses are taken for their extent.
const RUNS: u64 = 1 << 26;

/// What has been written before the first task: what the host gives and what the file holds.
pub(crate) fn initial(program: &Program<'_>) -> IndexVec<BufferId, Written> {
    let written = |buffer: &Buffer<'_>| {
        let known = if buffer.role == Role::Input {
            buffer.size
        } else {
            buffer.initial.len() as u64
        };
        let mut written = Written::default();
        written.insert(0, known.min(buffer.size));
        written
    };
    program.buffers.iter().map(written).collect()
}

/// Reports races, reads of bytes that hold nothing of worth, and outputs that are not there when the program is done.
pub(crate) fn check(
    program: &Program<'_>,
    accesses: &Accesses,
    order: &Order,
    is_complete: bool,
    findings: &mut Findings,
) {
    let mut memory = Memory {
        program,
        accesses,
        order,
        findings,
        shadows: program.buffers.iter().map(|_| Shadow::default()).collect(),
        written: initial(program).into_iter().map(Filled::new).collect(),
        known: vec![Known::default(); accesses.footprints()],
        places: vec![0; accesses.footprints()],
        runs: RUNS,
        suspects: Vec::new(),
        overlaps: FxHashMap::default(),
        lives: Lives::new(program, accesses),
        reads_unwritten: false,
    };
    for task in &order.sequence {
        memory.task(*task);
    }
    if !is_complete {
        return;
    }
    memory.outputs();
    let remnants = memory.lives.as_ref().map(Lives::remnants);
    let remnants = remnants.unwrap_or_default();
    if memory.reads_unwritten || !remnants.is_empty() {
        doubt::check(program, accesses, order, &remnants, findings);
    }
}

/// What is known of a footprint. Bytes that have been written stay written.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// All of it has been written: it may be read.
    readable: bool,
    /// It is among the written bytes.
    written: bool,
}

struct Memory<'m, 'p, 'a> {
    program: &'p Program<'a>,
    accesses: &'m Accesses,
    order: &'m Order,
    findings: &'m mut Findings,
    shadows: IndexVec<BufferId, Shadow>,
    written: IndexVec<BufferId, Filled>,
    /// By footprint.
    known: Vec<Known>,
    /// By footprint, where the shadow has the cell of its first extent, perhaps.
    places: Vec<u32>,
    /// Runs that may still be looked at.
    runs: u64,
    /// Accesses that the current one may race with.
    suspects: Vec<u32>,
    /// What is known of pairs of footprints.
    overlaps: FxHashMap<(u32, u32), Overlap>,
    lives: Option<Lives<'m>>,
    /// Whether any task reads bytes that none before it has written.
    reads_unwritten: bool,
}

impl Memory<'_, '_, '_> {
    fn task(&mut self, task: TaskId) {
        let accesses = self.accesses;
        for index in accesses.of(task) {
            let entry = accesses.entry(index);
            let footprint = accesses.footprint_of(entry);
            if entry.certainty == Certainty::Exact {
                if entry.direction == Direction::Read {
                    self.initialised(entry, footprint);
                } else {
                    self.allowed(entry, footprint);
                }
                if accesses.is_written(footprint.buffer) {
                    self.races(index, entry, footprint);
                }
            }
            if let Some(lives) = self.lives.as_mut() {
                lives.task(accesses, entry, footprint);
            }
            if entry.direction == Direction::Write {
                self.write(entry, footprint);
            }
        }
        if let Some(completion) = self.order.completion.as_ref()
            && !reaches(completion, self.order.completion(task))
        {
            self.after_completion(task);
        }
    }

    /// Whether every byte of a read has been written.
    fn initialised(&mut self, entry: &Use, footprint: &Footprint) {
        let buffer = &self.program.buffers[footprint.buffer];
        if matches!(buffer.role, Role::Constant | Role::State)
            || self.reads_unwritten
            || self.known[entry.footprint as usize].readable
        {
            return;
        }
        let written = &mut self.written[footprint.buffer];
        let pitch = self.accesses.pitch(footprint.buffer);
        let mut extents = footprint.extents.iter();
        if extents.all(|extent| written.covers(*extent, pitch)) {
            self.known[entry.footprint as usize].readable = true;
            return;
        }
        let patterns = self.accesses.fitting(footprint);
        let total = patterns
            .clone()
            .fold(0u64, |n, p| n.saturating_add(p.runs().total));
        let Some(left) = self.runs.checked_sub(total) else {
            return self.too_hard(entry);
        };
        self.runs = left;
        let written = written.bytes(pitch);
        let is_missing = |(low, high)| written.first_missing(low, high).is_some();
        if patterns.flat_map(|p| p.runs()).any(is_missing) {
            self.reads_unwritten = true;
        } else {
            self.known[entry.footprint as usize].readable = true;
        }
    }

    /// Constants and inputs stay as they are.
    fn allowed(&mut self, entry: &Use, footprint: &Footprint) {
        let program = self.program;
        let buffer = &program.buffers[footprint.buffer];
        if !matches!(buffer.role, Role::Input | Role::Constant) {
            return;
        }
        let queue = program.tasks[entry.task].queue;
        self.findings.add(
            &rules::CONSTANT_WRITTEN,
            (queue.raw(), footprint.buffer.raw(), 0),
            || {
                let (low, high) = footprint.span;
                let message = format!(
                    "{} writes {} {}, which is {}",
                    program.task_name(entry.task),
                    buffer.name,
                    range(low, high),
                    buffer.role.name()
                );
                rules::CONSTANT_WRITTEN.at(program.place(entry.task), message)
            },
        );
    }

    /// Compares an access with those that touched the same bytes before it in the reference order.
    fn races(&mut self, index: u32, entry: &Use, footprint: &Footprint) {
        let (accesses, order, task) = (self.accesses, self.order, entry.task);
        let start = order.start(task);
        let write = entry.direction == Direction::Write;
        let end = if write {
            order.completion(task)
        } else {
            order.read(task)
        };
        // The accesses of one task are ordered.
        let (thread, own) = (order.thread[task], order.read(task).epoch);
        let is_before = |end: crate::clock::Point| {
            (end.thread == thread && end.epoch >= own) || reaches(start, end)
        };
        let mut suspects = std::mem::take(&mut self.suspects);
        let mut place = self.places[entry.footprint as usize];
        for extent in &footprint.extents {
            let record = Record {
                entry: index,
                footprint: entry.footprint,
                rows: extent.rows,
                end,
            };
            self.shadows[footprint.buffer].touch(
                record,
                *extent,
                &mut place,
                write,
                is_before,
                |other| suspects.push(other.entry),
            );
        }
        self.places[entry.footprint as usize] = place;
        suspects.sort_unstable();
        suspects.dedup();
        for other in suspects.drain(..) {
            let other = accesses.entry(other);
            let race = Race {
                program: self.program,
                accesses,
            };
            let overlap = *self
                .overlaps
                .entry((other.footprint, entry.footprint))
                .or_insert_with(|| race.overlap(other, entry));
            let of_one_tensor = write
                && other.direction == Direction::Write
                && matches!(overlap, Overlap::Common(..))
                && self.lives.as_ref().is_some_and(|lives| {
                    let sources = lives.sources(task);
                    !sources.is_empty() && sources == lives.sources(other.task)
                });
            race.check(other, entry, overlap, of_one_tensor, self.findings);
        }
        self.suspects = suspects;
    }

    fn write(&mut self, entry: &Use, footprint: &Footprint) {
        let known = &mut self.known[entry.footprint as usize];
        if std::mem::replace(&mut known.written, true) {
            return;
        }
        known.readable = true;
        let written = &mut self.written[footprint.buffer];
        let pitch = self.accesses.pitch(footprint.buffer);
        let extents = footprint.extents.iter();
        if extents.clone().all(|extent| extent.whole) {
            return extents.for_each(|extent| written.fill(*extent, pitch));
        }
        let patterns = self.accesses.fitting(footprint);
        let total = patterns
            .clone()
            .fold(0u64, |n, p| n.saturating_add(p.runs().total));
        if let Some(left) = self.runs.checked_sub(total) {
            self.runs = left;
            for (low, high) in patterns.flat_map(|p| p.runs()) {
                written.insert(low, high);
            }
        } else {
            extents.for_each(|extent| written.fill(*extent, pitch));
            self.too_hard(entry);
        }
    }

    fn too_hard(&mut self, entry: &Use) {
        let program = self.program;
        self.findings.add(&rules::OVERLAP_BOUND, (0, 0, 0), || {
            let name = program.task_name(entry.task);
            let message = format!(
                "{name} has too many runs to follow byte by byte; its extent is taken instead"
            );
            rules::OVERLAP_BOUND.at(program.place(entry.task), message)
        });
    }

    /// A task that does not come before the report that the program is done.
    fn after_completion(&mut self, task: TaskId) {
        let (program, accesses) = (self.program, self.accesses);
        let output = accesses
            .of(task)
            .map(|index| accesses.entry(index))
            .filter(|e| e.direction == Direction::Write)
            .map(|e| accesses.footprint_of(e))
            .find(|f| matches!(program.buffers[f.buffer].role, Role::Output | Role::State));
        let queue = program.tasks[task].queue;
        let completion = program.completion.map(|c| &program.configurations[c]);
        let place = completion.map(|c| c.place.clone()).unwrap_or_default();
        let barrier = completion.map_or_else(String::new, |c| {
            format!("{} (use {})", program.syncs[c.barrier].name, c.number)
        });
        let name = program.task_name(task);
        match output {
            Some(footprint) => self.findings.add(&rules::COMPLETION_BEFORE_OUTPUT, (queue.raw(), footprint.buffer.raw(), 0), || {
                let (low, high) = footprint.span;
                let message = format!(
                    "{name} writes {} {}, but {barrier}, which reports the end of the program, can be lit before it has done so",
                    program.buffers[footprint.buffer].name,
                    range(low, high),
                );
                rules::COMPLETION_BEFORE_OUTPUT
                    .at(program.place(task), message)
                    .with(place, "reports the end of the program")
                    .with(program.place(task), format!("{name} {}", connections(program, task)))
            }),
            None => self.findings.add(&rules::WORK_AFTER_COMPLETION, (queue.raw(), 0, 0), || {
                let message = format!("{name} may still run when {barrier} reports the end of the program");
                rules::WORK_AFTER_COMPLETION.at(program.place(task), message).with(place, "reports the end of the program")
            }),
        }
    }

    /// Every byte of the host's outputs must have been written.
    fn outputs(&mut self) {
        let program = self.program;
        for port in &program.interface.outputs {
            let Some(buffer) = program
                .buffers
                .get(port.buffer)
                .filter(|b| !matches!(b.role, Role::Input | Role::Constant))
            else {
                continue;
            };
            let size = port.bytes().unwrap_or(u64::MAX).min(buffer.size);
            let written = self.written[port.buffer].bytes(self.accesses.pitch(port.buffer));
            let Some(low) = written.first_missing(0, size) else {
                continue;
            };
            let high = written.gap_end(low, size);
            self.findings.add(
                &rules::OUTPUT_NOT_WRITTEN,
                (port.buffer.raw(), 0, 0),
                || {
                    let message = format!(
                        "no task writes {} of output {}, which has {size} bytes",
                        range(low, high),
                        port.name
                    );
                    let place = chipless_model::Place::file().in_part(buffer.name.clone());
                    rules::OUTPUT_NOT_WRITTEN.at(place, message)
                },
            );
        }
    }
}
