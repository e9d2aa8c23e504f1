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

/// Bytes that a gap between written bytes may have to count as padding: channels are padded to 16 elements of at most 4 bytes.
const PADDING: u64 = 64;

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

/// Reports accesses that lie in the buffer of an input or output, and beyond the host's tensor.
pub(crate) fn tensors(program: &Program<'_>, accesses: &Accesses, findings: &mut Findings) {
    let mut sizes: IndexVec<chipless_model::BufferId, u64> = program.buffers.iter().map(|_| u64::MAX).collect();
    let ports = || program.interface.inputs.iter().chain(&program.interface.outputs).filter(|p| p.buffer.index() < program.buffers.len());
    ports().for_each(|port| sizes[port.buffer] = 0);
    ports().for_each(|port| sizes[port.buffer] = sizes[port.buffer].max(port.bytes().unwrap_or(u64::MAX)));
    for entry in accesses.iter().filter(|e| e.fits && e.certainty == Certainty::Exact) {
        let (low, high) = accesses.pattern(entry).extent();
        let size = sizes[entry.buffer];
        if high <= i128::from(size) {
            continue;
        }
        let queue = program.tasks[entry.task].queue;
        findings.add(&rules::OUT_OF_BOUNDS, (queue.raw(), entry.buffer.raw(), 2 + entry.direction as u32), || {
            let message = format!(
                "{} {} {} {}; the tensor that the host shares there has {size:#x} bytes, {} fewer",
                program.task_name(entry.task),
                verb(entry.direction),
                program.buffers[entry.buffer].name,
                signed_range(low, high),
                high - i128::from(size),
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
        let known = if buffer.role == Role::Input { buffer.size } else { buffer.initial.len() as u64 };
        memory.written[id].insert(0, known.min(buffer.size));
    }
    for task in &order.sequence {
        memory.task(*task);
    }
    if is_complete {
        memory.outputs();
    }
}

/// Gaps of one access that may be padding.
#[derive(Debug, Default)]
struct Padding {
    bytes: u64,
    size: u64,
    /// The only gap so far.
    single: Option<(u64, u64)>,
}

impl Padding {
    /// Adds a gap; `false` where it is not padding.
    fn add(&mut self, low: u64, high: u64) -> bool {
        let size = high - low;
        if size >= PADDING || (self.bytes > 0 && size > self.size) {
            return false;
        }
        self.single = (self.bytes == 0).then_some((low, high));
        self.size = self.size.max(size);
        self.bytes += size;
        true
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
        if matches!(buffer.role, Role::Constant | Role::State) {
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
        // A gap between written bytes is padding if it is small and comes again and again.
        let (mut first, mut missing, mut padding) = (None, 0, Padding::default());
        for (start, end) in runs {
            let mut at = start;
            while let Some(gap) = written.first_missing(at, end) {
                at = written.gap_end(gap, end);
                let follows = gap > 0 && written.first_missing(gap - 1, gap).is_none();
                let whole = if at == high as u64 { at } else { written.gap_end(gap, gap + PADDING) };
                if !(follows && padding.add(gap, whole)) {
                    missing += at - gap;
                    first.get_or_insert((gap, at));
                }
            }
        }
        if let (None, Some(gap)) = (first, padding.single) {
            first = Some(gap);
            missing += gap.1 - gap.0;
        }
        let padding = padding.bytes;
        let (program, accesses, queue) = (self.program, self.accesses, self.program.tasks[entry.task].queue);
        let all = pattern.loops.iter().fold(pattern.run, |n, l| n.saturating_mul(l.count));
        let reader = || format!("{} ({})", program.task_name(entry.task), program.kernel(entry.task).operation());
        if let Some((low, high)) = first {
            self.findings.add(&rules::READ_BEFORE_WRITE, (queue.raw(), entry.buffer.raw(), 0), || {
                let (reader, bytes) = (reader(), range(low, high));
                let message = format!(
                    "{reader} reads {} {bytes}, which no task before it has written ({missing} of the {all} bytes that it reads there)",
                    buffer.name,
                );
                let finding = rules::READ_BEFORE_WRITE.at(program.place(entry.task), message);
                later_writer(program, accesses, entry, finding)
            });
        } else if padding > 0 {
            self.findings.add(&rules::PADDING_READ, (0, 0, 0), || {
                let message = format!(
                    "{} reads {all} bytes of {}, {padding} of which are gaps of less than {PADDING} bytes between others that nothing has written",
                    reader(),
                    buffer.name
                );
                rules::PADDING_READ.at(program.place(entry.task), message)
            });
        }
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
            let message = format!(
                "{} writes {} {}, which is {}",
                program.task_name(entry.task),
                buffer.name,
                signed_range(low, high),
                buffer.role.name()
            );
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
        let touch =
            Touch { index, low: low as u64, high: high as u64, write: entry.direction == Direction::Write, whole: pattern.is_contiguous() };
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
        let rule = match both {
            true if self.is_duplicate(first, second) => &rules::RACE_DUPLICATE,
            true => &rules::RACE_WRITE_WRITE,
            false => &rules::RACE_READ_WRITE,
        };
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

    /// Whether two writes look like one transfer that was cut by tiles with common rows: same operation, same steps,
    /// sources in different memories.
    fn is_duplicate(&self, first: &Entry, second: &Entry) -> bool {
        let (program, accesses) = (self.program, self.accesses);
        let steps = |entry: &Entry| {
            let pattern = accesses.pattern(entry);
            (pattern.run, pattern.loops.iter().map(|l| l.stride).collect::<Vec<_>>())
        };
        let sources = |entry: &Entry| -> Vec<chipless_model::BufferId> {
            let reads = accesses.of(entry.task).map(|index| accesses.entry(index)).filter(|e| e.direction == Direction::Read);
            reads.map(|e| e.buffer).filter(|b| program.buffers[*b].role == Role::Scratch).collect()
        };
        let (a, b) = (sources(first), sources(second));
        program.kernel(first.task).operation() == program.kernel(second.task).operation()
            && steps(first) == steps(second)
            && matches!((&a[..], &b[..]), ([a], [b]) if program.buffers[*a].memory != program.buffers[*b].memory)
    }

    fn write(&mut self, entry: &Entry) {
        let pattern = self.accesses.pattern(entry);
        let (low, high) = pattern.extent();
        let written = &mut self.written[entry.buffer];
        if pattern.is_contiguous() {
            return written.insert(low as u64, high as u64);
        }
        let runs = pattern.runs();
        if let Some(left) = self.runs.checked_sub(runs.total) {
            self.runs = left;
            for (low, high) in runs {
                written.insert(low, high);
            }
        } else {
            written.insert(low as u64, high as u64);
            self.too_hard(entry, None);
        }
    }

    fn too_hard(&mut self, entry: &Entry, other: Option<&Entry>) {
        let program = self.program;
        self.findings.add(&rules::OVERLAP_BOUND, (0, 0, 0), || {
            let name = program.task_name(entry.task);
            let finding = |message| rules::OVERLAP_BOUND.at(program.place(entry.task), message);
            match other {
                Some(other) => {
                    finding(format!("{name} and {} are not ordered, and may touch the same bytes", program.task_name(other.task)))
                        .with(program.place(other.task), "the other one")
                }
                None => finding(format!("{name} has too many runs to follow byte by byte; its extent is taken instead")),
            }
        });
    }

    /// A task that does not come before the report that the program is done.
    fn after_completion(&mut self, task: TaskId) {
        let (program, accesses) = (self.program, self.accesses);
        let output = accesses
            .of(task)
            .map(|index| accesses.entry(index))
            .find(|e| e.direction == Direction::Write && matches!(program.buffers[e.buffer].role, Role::Output | Role::State));
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
            let Some(buffer) = program.buffers.get(port.buffer).filter(|b| !matches!(b.role, Role::Input | Role::Constant)) else {
                continue;
            };
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
