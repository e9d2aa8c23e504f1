//! Rules over the accesses: bounds, initialisation, races, outputs.

use crate::access::{Accesses, Entry, range};
use crate::clock::reaches;
use crate::findings::Findings;
use crate::order::Order;
use crate::overlap::{Overlap, overlap};
use crate::rules;
use crate::shadow::{Shadow, Touch};
use crate::written::Written;
use chipless_model::{Action, Certainty, Direction, Finding, IndexVec, Program, Role, TaskId};

/// Runs that are looked at one by one, in the whole program. Beyond, strided accesses are taken for their extent.
const RUNS: u64 = 1 << 26;

/// Reports accesses outside their buffers, of all tasks.
pub(crate) fn bounds(program: &Program<'_>, accesses: &Accesses, findings: &mut Findings) {
    for entry in accesses.iter().filter(|e| !e.fits) {
        let buffer = &program.buffers[entry.buffer];
        let (low, high) = accesses.pattern(entry).extent();
        if entry.certainty == Certainty::May && low < i128::from(buffer.size) && high > 0 {
            continue;
        }
        let queue = program.tasks[entry.task].queue;
        findings.add(&rules::OUT_OF_BOUNDS, (queue.raw(), entry.buffer.raw(), entry.direction as u32), || {
            let beyond = if low < 0 {
                format!("{} bytes before its start", -low)
            } else {
                format!("{} bytes beyond its end", high - i128::from(buffer.size))
            };
            let message = format!(
                "{} {} {} {}; the buffer has {:#x} bytes, so that it reaches {beyond}",
                program.task_name(entry.task),
                verb(entry.direction),
                buffer.name,
                signed_range(low, high),
                buffer.size
            );
            rules::OUT_OF_BOUNDS.at(program.place(entry.task), message)
        });
    }
}

fn signed_range(low: i128, high: i128) -> String {
    if low < 0 { format!("from {low} to {high}") } else { range(low as u128, high as u128) }
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}

/// Reports races, uninitialised reads and outputs that are not there when the program is done.
pub(crate) fn check(program: &Program<'_>, accesses: &Accesses, order: &Order, is_complete: bool, findings: &mut Findings) {
    let mut memory = Memory {
        program,
        accesses,
        order,
        findings,
        shadows: program.buffers.iter().map(|_| Shadow::default()).collect(),
        written: program.buffers.iter().map(|_| Written::default()).collect(),
        runs: RUNS,
        suspects: Vec::new(),
    };
    for (id, buffer) in program.buffers.iter_enumerated() {
        memory.written[id].insert(0, (buffer.initial.len() as u64).min(buffer.size));
    }
    for task in &order.sequence {
        memory.task(*task);
    }
    if is_complete {
        memory.outputs();
    }
}

struct Memory<'m, 'p, 'a> {
    program: &'p Program<'a>,
    accesses: &'m Accesses,
    order: &'m Order,
    findings: &'m mut Findings,
    shadows: IndexVec<chipless_model::BufferId, Shadow>,
    written: IndexVec<chipless_model::BufferId, Written>,
    /// Runs that may still be looked at.
    runs: u64,
    /// Accesses that the current one may race with.
    suspects: Vec<u32>,
}

impl Memory<'_, '_, '_> {
    fn task(&mut self, task: TaskId) {
        let accesses = self.accesses;
        for direction in [Direction::Read, Direction::Write] {
            for index in accesses.of(task) {
                let entry = accesses.entry(index);
                if entry.direction != direction || !entry.fits {
                    continue;
                }
                if entry.certainty == Certainty::Exact {
                    if direction == Direction::Read {
                        self.initialised(entry);
                    } else {
                        self.allowed(entry);
                    }
                    if accesses.is_written(entry.buffer) {
                        self.races(index, entry);
                    }
                }
                if direction == Direction::Write {
                    self.write(entry);
                }
            }
        }
        if let Some(completion) = self.order.completion.as_ref()
            && !reaches(completion, self.order.completion(task))
        {
            self.after_completion(task);
        }
    }

    /// Every byte of a read must have been written.
    fn initialised(&mut self, entry: &Entry) {
        let buffer = &self.program.buffers[entry.buffer];
        if matches!(buffer.role, Role::Input | Role::Constant | Role::State) {
            return;
        }
        let written = &self.written[entry.buffer];
        let pattern = self.accesses.pattern(entry);
        let (low, high) = pattern.extent();
        if written.first_missing(low as u64, high as u64).is_none() {
            return;
        }
        let runs = pattern.runs();
        let Some(left) = self.runs.checked_sub(runs.total) else { return self.too_hard(entry, None) };
        self.runs = left;
        let (mut first, mut missing) = (None, 0);
        for (low, high) in runs {
            let mut at = low;
            while let Some(gap) = written.first_missing(at, high) {
                at = written.gap_end(gap, high);
                missing += at - gap;
                first.get_or_insert((gap, at));
            }
        }
        let Some((low, high)) = first else { return };
        let (program, accesses, queue) = (self.program, self.accesses, self.program.tasks[entry.task].queue);
        self.findings.add(&rules::READ_BEFORE_WRITE, (queue.raw(), entry.buffer.raw(), 0), || {
            let all = pattern.loops.iter().fold(pattern.run, |n, l| n.saturating_mul(l.count));
            let message = format!(
                "{} ({}) reads {} {}, which no task before it has written ({missing} of the {all} bytes that it reads there)",
                program.task_name(entry.task),
                program.kernel(entry.task).operation(),
                buffer.name,
                range(low, high),
            );
            let finding = rules::READ_BEFORE_WRITE.at(program.place(entry.task), message);
            later_writer(program, accesses, entry, finding)
        });
    }

    /// Constants and inputs stay as they are.
    fn allowed(&mut self, entry: &Entry) {
        let program = self.program;
        let buffer = &program.buffers[entry.buffer];
        if !matches!(buffer.role, Role::Input | Role::Constant) {
            return;
        }
        let queue = program.tasks[entry.task].queue;
        self.findings.add(&rules::CONSTANT_WRITTEN, (queue.raw(), entry.buffer.raw(), 0), || {
            let (low, high) = self.accesses.pattern(entry).extent();
            let message =
                format!("{} writes {} {}, which is {}", program.task_name(entry.task), buffer.name, signed_range(low, high), buffer.role.name());
            rules::CONSTANT_WRITTEN.at(program.place(entry.task), message)
        });
    }

    /// Compares an access with those that touched the same bytes before it in the reference order.
    fn races(&mut self, index: u32, entry: &Entry) {
        let (accesses, order) = (self.accesses, self.order);
        let pattern = accesses.pattern(entry);
        let (low, high) = pattern.extent();
        let start = order.start(entry.task);
        let is_before = |other: u32| {
            let other = accesses.entry(other);
            let end = if other.direction == Direction::Read { order.read(other.task) } else { order.completion(other.task) };
            other.task == entry.task || reaches(start, end)
        };
        let covers = |other: u32| {
            let other = accesses.pattern(accesses.entry(other));
            (other.offset, other.run, other.loops) == (pattern.offset, pattern.run, pattern.loops)
        };
        let touch = Touch {
            index,
            low: low as u64,
            high: high as u64,
            write: entry.direction == Direction::Write,
            whole: pattern.is_contiguous(),
        };
        let mut suspects = std::mem::take(&mut self.suspects);
        self.shadows[entry.buffer].touch(touch, &is_before, &covers, &mut |other| suspects.push(other));
        suspects.sort_unstable();
        suspects.dedup();
        for other in suspects.drain(..) {
            let other = accesses.entry(other);
            match overlap(accesses.pattern(other), pattern) {
                Overlap::Disjoint => {}
                Overlap::Common(low, high) => self.race(other, entry, low, high),
                Overlap::TooHard => self.too_hard(entry, Some(other)),
            }
        }
        self.suspects = suspects;
    }

    fn race(&mut self, first: &Entry, second: &Entry, low: u64, high: u64) {
        let (program, accesses) = (self.program, self.accesses);
        let both = first.direction == Direction::Write && second.direction == Direction::Write;
        let rule = if both { &rules::RACE_WRITE_WRITE } else { &rules::RACE_READ_WRITE };
        let queues = (program.tasks[first.task].queue, program.tasks[second.task].queue);
        let cause = (queues.0.min(queues.1).raw(), queues.0.max(queues.1).raw(), first.buffer.raw());
        self.findings.add(rule, cause, || {
            let (one, two) = (program.task_name(first.task), program.task_name(second.task));
            let operation = |task| program.kernel(task).operation();
            let is_exact = accesses.pattern(first).is_contiguous() && accesses.pattern(second).is_contiguous();
            let message = format!(
                "{two} ({}) {} {} {}{} and {one} ({}) {} them, and nothing orders the two",
                operation(second.task),
                verb(second.direction),
                program.buffers[first.buffer].name,
                range(low, high),
                if is_exact { "" } else { " (and perhaps more)" },
                operation(first.task),
                verb(first.direction),
            );
            rule.at(program.place(second.task), message)
                .with(program.place(first.task), format!("{one} {}", connections(program, first.task)))
                .with(program.place(second.task), format!("{two} {}", connections(program, second.task)))
        });
    }

    fn write(&mut self, entry: &Entry) {
        let pattern = self.accesses.pattern(entry);
        let (low, high) = pattern.extent();
        let written = &mut self.written[entry.buffer];
        if pattern.is_contiguous() {
            return written.insert(low as u64, high as u64);
        }
        let runs = pattern.runs();
        match self.runs.checked_sub(runs.total) {
            Some(left) => {
                self.runs = left;
                runs.for_each(|(low, high)| written.insert(low, high));
            }
            None => {
                written.insert(low as u64, high as u64);
                self.too_hard(entry, None);
            }
        }
    }

    fn too_hard(&mut self, entry: &Entry, other: Option<&Entry>) {
        let program = self.program;
        self.findings.add(&rules::OVERLAP_BOUND, (0, 0, 0), || {
            let name = program.task_name(entry.task);
            let finding = |message| rules::OVERLAP_BOUND.at(program.place(entry.task), message);
            match other {
                Some(other) => finding(format!("{name} and {} are not ordered, and may touch the same bytes", program.task_name(other.task)))
                    .with(program.place(other.task), "the other one"),
                None => finding(format!("{name} has too many runs to follow byte by byte; its extent is taken instead")),
            }
        });
    }

    /// A task that does not come before the report that the program is done.
    fn after_completion(&mut self, task: TaskId) {
        let (program, accesses) = (self.program, self.accesses);
        let output = accesses.of(task).map(|index| accesses.entry(index)).find(|e| {
            e.direction == Direction::Write && matches!(program.buffers[e.buffer].role, Role::Output | Role::State)
        });
        let queue = program.tasks[task].queue;
        let completion = program.completion.map(|c| &program.configurations[c]);
        let place = completion.map(|c| c.place.clone()).unwrap_or_default();
        let barrier = completion.map_or_else(String::new, |c| format!("{} (use {})", program.syncs[c.barrier].name, c.number));
        let name = program.task_name(task);
        match output {
            Some(entry) => self.findings.add(&rules::COMPLETION_BEFORE_OUTPUT, (queue.raw(), entry.buffer.raw(), 0), || {
                let (low, high) = accesses.pattern(entry).extent();
                let message = format!(
                    "{name} writes {} {}, but {barrier}, which reports the end of the program, can be lit before it has done so",
                    program.buffers[entry.buffer].name,
                    signed_range(low, high),
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
            let Some(buffer) = program.buffers.get(port.buffer).filter(|b| !matches!(b.role, Role::Input | Role::Constant)) else { continue };
            let size = port.bytes().unwrap_or(u64::MAX).min(buffer.size);
            let Some(low) = self.written[port.buffer].first_missing(0, size) else { continue };
            let high = self.written[port.buffer].gap_end(low, size);
            self.findings.add(&rules::OUTPUT_NOT_WRITTEN, (port.buffer.raw(), 0, 0), || {
                let message = format!("no task writes {} of output {}, which has {size} bytes", range(low, high), port.name);
                let place = chipless_model::Place::file().in_part(buffer.name.clone());
                rules::OUTPUT_NOT_WRITTEN.at(place, message)
            });
        }
    }
}

/// Names a task that writes what another one reads too early.
fn later_writer(program: &Program<'_>, accesses: &Accesses, read: &Entry, finding: Finding) -> Finding {
    let pattern = accesses.pattern(read);
    let writes = accesses.iter().filter(|e| e.buffer == read.buffer && e.direction == Direction::Write && e.fits);
    let found = writes.filter(|e| e.task != read.task).find(|e| matches!(overlap(accesses.pattern(e), pattern), Overlap::Common(..)));
    match found {
        Some(write) => {
            let name = program.task_name(write.task);
            finding.with(program.place(write.task), format!("{name} writes bytes of these; {}", connections(program, write.task)))
        }
        None => finding.hint("no task of the program writes these bytes: look for a wrong address on either side"),
    }
}

/// How a task hangs together with others.
fn connections(program: &Program<'_>, task: TaskId) -> String {
    let list = |names: Vec<String>, none: &str| if names.is_empty() { none.to_owned() } else { names.join(", ") };
    let waits = program.waits(task).iter().map(|w| program.syncs[w.sync].name.clone()).collect();
    let signals = program.signals(task).iter().filter_map(|s| match s.action {
        Action::Add(sync, _) | Action::Set(sync, _) | Action::Produce(sync) => Some(program.syncs[sync].name.clone()),
        Action::Consume(_) | Action::Configure(_) | Action::Release(_) => None,
    });
    format!("waits for {}, and signals {}", list(waits, "nothing but its queue"), list(signals.collect(), "nothing"))
}
