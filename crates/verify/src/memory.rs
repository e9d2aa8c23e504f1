//! Rules over the bytes: initialisation, races, constants, outputs.

use crate::access::range;
use crate::clock::{Point, reaches};
use crate::doubt::{self, Duplicates, Sources};
use crate::findings::Findings;
use crate::footprint::{Accesses, Footprint, Use};
use crate::order::Order;
use crate::overlap::Overlap;
use crate::race::{Race, connections};
use crate::remnants::{Lives, Remnants};
use crate::rules;
use crate::shadow::{Ended, Record, Shadow};
use crate::writes::{TooManyRuns, Writes};
use chipless_model::{BufferId, Certainty, Direction, IndexVec, Program, Role, TaskId};
use rustc_hash::FxHashMap;
use std::ops::Range;

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
        writes: Writes::new(program, accesses),
        gaps: Vec::new(),
        duplicates: Duplicates::default(),
        places: vec![0; accesses.footprints()],
        suspects: Vec::new(),
        overlaps: FxHashMap::default(),
        lives: Lives::new(program, accesses),
    };
    let settled = order.settled();
    for (place, task) in order.sequence.iter().enumerate() {
        memory.task(*task, settled.at(place));
    }
    if !is_complete {
        return;
    }
    let (gaps, duplicates, remnants) = memory.finish();
    if !gaps.is_empty() || !remnants.is_empty() {
        let found = Sources {
            gaps: &gaps,
            remnants: &remnants,
            duplicates: &duplicates,
        };
        doubt::check(program, accesses, order, &found, findings);
    }
}

struct Memory<'m, 'p, 'a> {
    program: &'p Program<'a>,
    accesses: &'m Accesses,
    order: &'m Order,
    findings: &'m mut Findings,
    shadows: IndexVec<BufferId, Shadow>,
    writes: Writes<'p>,
    /// Uses that read bytes which none before them has written, in the reference order.
    gaps: Vec<u32>,
    /// By task, those before it in the reference order that write duplicates of what it writes, and that nothing orders with it.
    duplicates: Duplicates,
    /// By footprint, where the shadow has the cell of its first extent, perhaps.
    places: Vec<u32>,
    /// Accesses that the current one may race with.
    suspects: Vec<u32>,
    /// What is known of pairs of footprints.
    overlaps: FxHashMap<(u32, u32), Overlap>,
    lives: Option<Lives<'m>>,
}

impl Memory<'_, '_, '_> {
    /// A task; `settled` comes before it and all later ones.
    fn task(&mut self, task: TaskId, settled: &[u32]) {
        let accesses = self.accesses;
        for index in accesses.of(task) {
            let entry = accesses.entry(index);
            let footprint = accesses.footprint_of(entry);
            let is_exact = entry.certainty == Certainty::Exact;
            match entry.direction {
                Direction::Read if is_exact => match self.lacks(index, entry, footprint) {
                    Ok(false) => {}
                    Ok(true) => self.gaps.push(index),
                    Err(TooManyRuns) => self.too_hard(entry),
                },
                Direction::Write if is_exact => self.allowed(entry, footprint),
                _ => {}
            }
            if is_exact && accesses.is_written(footprint.buffer) {
                self.races(index, entry, footprint, settled);
            }
        }
        for index in accesses.of(task) {
            let entry = accesses.entry(index);
            if entry.direction == Direction::Write
                && let Err(TooManyRuns) = self.write(index, entry, accesses.footprint_of(entry))
            {
                self.too_hard(entry);
            }
        }
        if let Some(completion) = self.order.completion.as_ref()
            && !reaches(completion, self.order.completion(task))
        {
            self.after_completion(task);
        }
    }

    /// Whether a read finds bytes that nobody has written. Where lives of tensors are followed, they tell when all is done.
    fn lacks(
        &mut self,
        index: u32,
        entry: &Use,
        footprint: &Footprint,
    ) -> Result<bool, TooManyRuns> {
        let lives = self.lives.as_mut();
        match lives.filter(|lives| lives.follows(footprint.buffer)) {
            Some(lives) => lives.read(index).map(|()| false),
            None => self.writes.lacks(entry, footprint),
        }
    }

    /// Notes what is written.
    fn write(&mut self, index: u32, entry: &Use, footprint: &Footprint) -> Result<(), TooManyRuns> {
        let lives = self.lives.as_mut();
        match lives.filter(|lives| lives.follows(footprint.buffer)) {
            Some(lives) => lives.write(index),
            None => self.writes.add(entry, footprint),
        }
    }

    /// When all tasks ran: reports outputs that are not there, and tells where doubtful bytes come from.
    fn finish(mut self) -> (Vec<u32>, Duplicates, Remnants) {
        let mut remnants = Remnants::default();
        if let Some(lives) = self.lives.as_mut() {
            let mut gaps = lives.finish();
            if !gaps.is_empty() {
                gaps.extend(self.gaps.drain(..));
                let tasks = self.order.sequence.iter();
                let uses = tasks.flat_map(|task| self.accesses.of(*task));
                self.gaps = uses.filter(|index| gaps.contains(index)).collect();
            }
            remnants = lives.remnants();
        }
        self.outputs();
        (self.gaps, self.duplicates, remnants)
    }

    /// The first bytes of a range of a buffer that no task has written.
    fn first_missing(&mut self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let lives = self.lives.as_ref();
        if let Some(lives) = lives.filter(|lives| lives.follows(buffer)) {
            return lives.first_missing(buffer, bytes);
        }
        let written = self.writes.bytes(buffer);
        let low = written.first_missing(bytes.start, bytes.end)?;
        Some(low..written.gap_end(low, bytes.end))
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
    fn races(&mut self, index: u32, entry: &Use, footprint: &Footprint, settled: &[u32]) {
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
        let ended = |end: Point| {
            if reaches(settled, end) {
                Ended::Settled
            } else if (end.thread == thread && end.epoch >= own) || reaches(start, end) {
                Ended::Before
            } else {
                Ended::Unordered
            }
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
                ended,
                |other| suspects.push(other.entry),
            );
        }
        self.places[entry.footprint as usize] = place;
        suspects.sort_unstable();
        suspects.dedup();
        for number in suspects.drain(..) {
            let other = accesses.entry(number);
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
                && self.lives.as_mut().is_some_and(|lives| {
                    let sources = lives.sources(task);
                    !sources.is_empty() && sources == lives.sources(other.task)
                });
            if write && matches!(overlap, Overlap::Common(..)) {
                self.name_first_reader(race, number, other, entry);
            }
            if race.check(other, entry, overlap, of_one_tensor, self.findings) {
                self.duplicates.entry(task).or_default().insert(other.task);
            }
        }
        self.suspects = suspects;
    }

    /// Reports the race of a write with the first task that reads its bytes too early, where the reader at hand comes after that one: the shadow remembers
    /// the last of such readers, which waits for the first one, and is in order when that one is.
    fn name_first_reader(
        &mut self,
        race: Race<'_, '_, '_>,
        number: u32,
        reader: &Use,
        write: &Use,
    ) {
        let (accesses, order, rule) = (self.accesses, self.order, &rules::RACE_READ_WRITE);
        let cause = race.cause(reader, write);
        if reader.direction != Direction::Read
            || self.findings.has(rule, cause)
            || !self.gaps.contains(&number)
        {
            return;
        }
        let start_of_write = order.start(write.task);
        let first = self.gaps.iter().find_map(|gap| {
            let first = accesses.entry(*gap);
            let end = order.read(first.task);
            let comes_first =
                reaches(order.start(reader.task), end) && !reaches(start_of_write, end);
            if first.task == write.task || !comes_first {
                return None;
            }
            let overlap = race.overlap(first, write);
            matches!(overlap, Overlap::Common(..)).then_some((first, overlap))
        });
        if let Some((first, overlap)) = first {
            race.check(first, write, overlap, false, self.findings);
            self.findings.follow(rule, cause, race.cause(first, write));
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
            .find(|f| program.buffers[f.buffer].role.outlives_run());
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
            let Some(Range {
                start: low,
                end: high,
            }) = self.first_missing(port.buffer, 0..size)
            else {
                continue;
            };
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
