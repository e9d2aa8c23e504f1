//! What becomes of bytes that hold nothing of worth: those that nobody has written, and remnants of older tensors.
//!
//! Sound programs read such bytes: channels that pad a tensor, whose weights are absent; calls that warm a cache; records of
//! profiling that stay empty. Such a byte is a fault where it can change an output or what a task does. So it is followed, as memcheck does,
//! from task to task by what the kernels say of their [dependences](Kernel::dependence).

use crate::access::range;
use crate::findings::Findings;
use crate::footprint::{Accesses, Use};
use crate::marks::Marks;
use crate::order::Order;
use crate::race::Race;
use crate::remnants::{Lives, Remnants};
use crate::rules;
use crate::written::Written;
use chipless_model::{
    BufferId, Certainty, Dependence, Direction, Doubt, IndexVec, Pattern, Program, Role, TaskId,
    Zero,
};
use rustc_hash::FxHashSet;
use std::cell::Cell;
use std::ops::Range;

/// Bytes that are looked at when one of them is asked for.
const AHEAD: u64 = 1024;

/// Causes that are told apart; further ones count for the last.
const CAUSES: usize = u16::MAX as usize - 1;

/// Follows doubtful bytes through a program that completes. `remnants` are the readings of remnants that there are.
pub(crate) fn check(
    program: &Program<'_>,
    accesses: &Accesses,
    order: &Order,
    remnants: &Remnants,
    findings: &mut Findings,
) {
    let follow = |zeros| {
        let mut trace = Trace::new(program, accesses, remnants, zeros);
        for task in &order.sequence {
            trace.task(*task);
        }
        trace.conclude();
        trace
    };
    let trace = follow(None);
    if trace.matters.is_empty() {
        return;
    }
    // Remnants that are multiplied by zero change nothing. To follow zeros takes its time, so that it is done where it can matter.
    follow(Some(Zeros::new(program))).report_all(findings);
}

/// A task that reads doubtful bytes which nobody has brought there by a computation.
#[derive(Debug)]
struct Cause {
    task: TaskId,
    /// Its use of the buffer.
    entry: u32,
    bytes: Range<u64>,
    /// What is wrong with them.
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NeverWritten,
    /// Left over from one writer, whose tensor another one ended.
    Remnant {
        old: u32,
        new: u32,
    },
}

/// Where doubt ends up.
#[derive(Debug)]
enum Effect {
    /// An output, by its number.
    Output(usize),
    State(BufferId),
    /// What a task does.
    Control(TaskId),
}

/// What is known of the bytes of all buffers at some point.
struct State<'m> {
    program: &'m Program<'m>,
    written: IndexVec<BufferId, Written>,
    lives: Option<Lives<'m>>,
    remnants: &'m Remnants,
    marks: Marks,
    /// Where they are followed.
    zeros: Option<Zeros<'m>>,
}

/// Bytes that are zero whatever the data are.
struct Zeros<'m> {
    program: &'m Program<'m>,
    marks: Marks,
}

impl<'m> Zeros<'m> {
    fn new(program: &'m Program<'m>) -> Zeros<'m> {
        Zeros {
            program,
            marks: Marks::default(),
        }
    }
}

impl Zero for Zeros<'_> {
    fn first_other(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let known = self.program.buffers.get(buffer);
        let Some(constant) = known.filter(|b| b.role == Role::Constant) else {
            return self.marks.first_without(buffer, bytes);
        };
        let Some(held) = constant
            .initial
            .get(bytes.start as usize..bytes.end as usize)
        else {
            return Some(bytes);
        };
        let low = held.iter().position(|byte| *byte != 0)?;
        let count = held[low..].iter().take_while(|byte| **byte != 0).count();
        let low = bytes.start + low as u64;
        Some(low..low + count as u64)
    }
}

/// The bytes that are doubtful to one task.
struct View<'s, 'm> {
    state: &'s State<'m>,
    /// Numbers of the old writers whose bytes are remnants to it.
    old: &'s [u32],
    /// The answer before.
    seen: Cell<Option<Seen>>,
}

/// What was seen of some bytes of a buffer: none is doubtful from `start` to before `doubt`, all are from there to before `end`.
#[derive(Clone, Copy)]
struct Seen {
    buffer: BufferId,
    start: u64,
    doubt: u64,
    end: u64,
}

impl Seen {
    /// Whether it tells the first doubtful run of some bytes.
    fn knows(&self, buffer: BufferId, bytes: &Range<u64>) -> bool {
        let sees = self.buffer == buffer && (self.start..self.end).contains(&bytes.start);
        sees && (bytes.end <= self.doubt || self.doubt < self.end)
    }

    fn first(&self, bytes: &Range<u64>) -> Option<Range<u64>> {
        let run = bytes.start.max(self.doubt)..self.end.min(bytes.end);
        (!run.is_empty()).then_some(run)
    }
}

impl<'s, 'm> View<'s, 'm> {
    fn new(state: &'s State<'m>, old: &'s [u32]) -> View<'s, 'm> {
        View {
            state,
            old,
            seen: Cell::new(None),
        }
    }

    /// The first doubtful run of some bytes, and what was seen on the way.
    fn look(&self, buffer: BufferId, bytes: Range<u64>) -> Seen {
        let state = self.state;
        let mark = state.marks.first(buffer, bytes.clone());
        let gap = state.unwritten(buffer, bytes.clone());
        let remnant = state.remnant(buffer, bytes.clone(), self.old);
        let runs = [mark, gap, remnant].into_iter().flatten();
        let first = runs.min_by_key(|run| run.start);
        let first = first.unwrap_or(bytes.end..bytes.end);
        Seen {
            buffer,
            start: bytes.start,
            doubt: first.start,
            end: first.end,
        }
    }
}

impl Doubt for View<'_, '_> {
    fn first(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let size = self.state.program.buffers.get(buffer)?.size;
        let bytes = bytes.start.min(size)..bytes.end.min(size);
        if bytes.is_empty() {
            return None;
        }
        let known = self.seen.get().filter(|seen| seen.knows(buffer, &bytes));
        let seen = known.unwrap_or_else(|| {
            // Kernels ask for one element after the other.
            let end = bytes.end.max(bytes.start.saturating_add(AHEAD).min(size));
            self.look(buffer, bytes.start..end)
        });
        self.seen.set(Some(seen));
        seen.first(&bytes)
    }

    fn zero(&self) -> Option<&dyn Zero> {
        let zeros = self.state.zeros.as_ref()?;
        Some(zeros)
    }
}

impl State<'_> {
    /// The first bytes of a range that nobody has written.
    fn unwritten(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        if matches!(
            self.program.buffers[buffer].role,
            Role::Constant | Role::State
        ) {
            return None;
        }
        let written = &self.written[buffer];
        let low = written.first_missing(bytes.start, bytes.end)?;
        Some(low..written.gap_end(low, bytes.end))
    }

    /// The first bytes of a range that one of these writers wrote last.
    fn remnant(&self, buffer: BufferId, bytes: Range<u64>, old: &[u32]) -> Option<Range<u64>> {
        let lives = self.lives.as_ref().filter(|_| !old.is_empty())?;
        let mut at = bytes.start;
        while at < bytes.end {
            let end = lives.same_until(buffer, at, bytes.end);
            if old.contains(&lives.last(buffer, at)) {
                return Some(at..end);
            }
            at = end;
        }
        None
    }
}

struct Trace<'m> {
    program: &'m Program<'m>,
    accesses: &'m Accesses,
    state: State<'m>,
    /// By footprint: all of it has been written.
    settled: Vec<bool>,
    causes: Vec<Cause>,
    /// Causes that have been found to matter.
    reported: FxHashSet<u16>,
    matters: Vec<(u16, Effect)>,
}

impl<'m> Trace<'m> {
    fn new(
        program: &'m Program<'m>,
        accesses: &'m Accesses,
        remnants: &'m Remnants,
        zeros: Option<Zeros<'m>>,
    ) -> Trace<'m> {
        Trace {
            program,
            accesses,
            state: State {
                program,
                written: crate::memory::initial(program),
                lives: Lives::new(program, accesses),
                remnants,
                marks: Marks::default(),
                zeros,
            },
            settled: vec![false; accesses.footprints()],
            causes: Vec::new(),
            reported: FxHashSet::default(),
            matters: Vec::new(),
        }
    }

    fn task(&mut self, task: TaskId) {
        let accesses = self.accesses;
        let uses = || {
            accesses
                .of(task)
                .map(|index| (index, accesses.entry(index)))
        };
        let mut old = Vec::new();
        let mut cause = None;
        for (index, entry) in uses().filter(|(_, e)| e.direction == Direction::Read) {
            cause = cause.or(self.read(index, entry, &mut old));
        }
        let mut dependent: Vec<(BufferId, Pattern)> = Vec::new();
        if let Some(cause) = cause {
            let view = View::new(&self.state, &old);
            let kernel = self.program.kernel(task);
            let told = kernel.dependence(&view, &mut |buffer, pattern| {
                if self.fits(buffer, &pattern) {
                    dependent.push((buffer, pattern));
                }
            });
            match told {
                Dependence::Bytes => {}
                Dependence::Everything => {
                    dependent.clear();
                    for (_, entry) in uses().filter(|(_, e)| e.direction == Direction::Write) {
                        let footprint = accesses.footprint_of(entry);
                        let patterns = accesses.fitting(footprint).map(|p| {
                            let loops = p.loops.iter().copied();
                            (footprint.buffer, Pattern::new(p.offset, p.run, loops))
                        });
                        dependent.extend(patterns);
                    }
                }
                Dependence::Control => self.matter(cause, Effect::Control(task)),
            }
            if self.causes.len() > CAUSES {
                self.causes.truncate(CAUSES);
            }
        }
        let zeros = self.zeros(task);
        for (_, entry) in uses() {
            self.apply(entry);
        }
        if let Some(followed) = &mut self.state.zeros {
            for (buffer, pattern) in zeros {
                let runs = crate::access::Strided::of(&pattern).runs();
                runs.for_each(|(low, high)| followed.marks.set(buffer, low..high, 1));
            }
        }
        if let Some(cause) = cause {
            for (buffer, pattern) in dependent {
                let runs = crate::access::Strided::of(&pattern).runs();
                runs.for_each(|(low, high)| self.state.marks.set(buffer, low..high, cause));
            }
        }
    }

    fn fits(&self, buffer: BufferId, pattern: &Pattern) -> bool {
        let buffer = self.program.buffers.get(buffer);
        buffer.is_some_and(|buffer| pattern.fits(buffer.size))
    }

    /// What a task writes that is zero, where that is followed.
    fn zeros(&self, task: TaskId) -> Vec<(BufferId, Pattern)> {
        let mut found = Vec::new();
        if let Some(zeros) = &self.state.zeros {
            self.program
                .kernel(task)
                .zeros(zeros, &mut |buffer, pattern| {
                    if self.fits(buffer, &pattern) {
                        found.push((buffer, pattern));
                    }
                });
        }
        found
    }

    /// Looks for doubtful bytes that a task reads; their cause. Adds the old writers whose bytes are remnants to it.
    fn read(&mut self, index: u32, entry: &Use, old: &mut Vec<u32>) -> Option<u16> {
        let accesses = self.accesses;
        let footprint = accesses.footprint_of(entry);
        let buffer = footprint.buffer;
        let is_settled = self.settled[entry.footprint as usize]
            || matches!(
                self.program.buffers[buffer].role,
                Role::Constant | Role::State
            );
        let is_exact = entry.certainty == Certainty::Exact;
        let (mut found, mut has_gap) = (None, false);
        for (tensor, pattern) in accesses.tensors(footprint) {
            let own: Vec<(u32, u32)> = match self.state.lives.as_ref() {
                Some(lives) if is_exact => {
                    let reading = lives.reading(entry.task, tensor);
                    self.state
                        .remnants
                        .get(&reading)
                        .map(|list| list.to_vec())
                        .unwrap_or_default()
                }
                _ => Vec::new(),
            };
            let writers: Vec<u32> = own.iter().map(|(writer, _)| *writer).collect();
            let marked = self.state.marks.has(buffer);
            if !marked && writers.is_empty() && (is_settled || !is_exact) {
                continue;
            }
            for (low, high) in pattern.runs() {
                let bytes = low..high;
                if marked && found.is_none() {
                    let mark = self.state.marks.first(buffer, bytes.clone());
                    found = mark.map(|m| self.state.marks.at(buffer, m.start));
                }
                if is_exact && !is_settled && !(has_gap && found.is_some()) {
                    let gap = self.state.unwritten(buffer, bytes.clone());
                    if let Some(gap) = gap {
                        has_gap = true;
                        found = found.or_else(|| {
                            Some(self.cause(entry.task, index, gap, Kind::NeverWritten))
                        });
                    }
                }
                if !writers.is_empty() && (found.is_none() || !old.contains(&writers[0])) {
                    let remnant = self.state.remnant(buffer, bytes, &writers);
                    if let Some(remnant) = remnant {
                        old.extend(
                            writers
                                .iter()
                                .filter(|w| !old.contains(w))
                                .collect::<Vec<_>>(),
                        );
                        found = found.or_else(|| {
                            let lives = self.state.lives.as_ref();
                            let writer = lives.map_or(0, |l| l.last(buffer, remnant.start));
                            let (old, new) = own
                                .iter()
                                .copied()
                                .find(|(old, _)| *old == writer)
                                .unwrap_or((writer, 0));
                            Some(self.cause(entry.task, index, remnant, Kind::Remnant { old, new }))
                        });
                    }
                }
            }
        }
        if is_exact && !is_settled && !has_gap {
            self.settled[entry.footprint as usize] = true;
        }
        found
    }

    fn cause(&mut self, task: TaskId, entry: u32, bytes: Range<u64>, kind: Kind) -> u16 {
        // Neighbours of one list that read the same tensor have one cause.
        let cause = Cause {
            task,
            entry,
            bytes,
            kind,
        };
        if self.causes.len() < CAUSES {
            self.causes.push(cause);
        }
        self.causes.len() as u16
    }

    /// What a task leaves behind.
    fn apply(&mut self, entry: &Use) {
        let footprint = self.accesses.footprint_of(entry);
        if let Some(lives) = self.state.lives.as_mut() {
            lives.task(self.accesses, entry, footprint);
        }
        if entry.direction == Direction::Read {
            return;
        }
        let buffer = footprint.buffer;
        let is_settled = std::mem::replace(&mut self.settled[entry.footprint as usize], true);
        let clears = entry.certainty == Certainty::Exact && self.state.marks.has(buffer);
        let zeros = self.state.zeros.as_ref();
        let ends_zeros = zeros.is_some_and(|zeros| zeros.marks.has(buffer));
        if is_settled && !clears && !ends_zeros {
            return;
        }
        for (low, high) in self.accesses.fitting(footprint).flat_map(|p| p.runs()) {
            if !is_settled {
                self.state.written[buffer].insert(low, high);
            }
            if clears {
                self.state.marks.clear(buffer, low..high);
            }
            if let Some(zeros) = self.state.zeros.as_mut().filter(|_| ends_zeros) {
                zeros.marks.clear(buffer, low..high);
            }
        }
    }

    fn matter(&mut self, cause: u16, effect: Effect) {
        if self.reported.insert(cause) {
            self.matters.push((cause, effect));
        }
    }

    /// Looks for doubt that has reached something that matters.
    fn conclude(&mut self) {
        let program = self.program;
        for (number, port) in program.interface.outputs.iter().enumerate() {
            let Some(buffer) = program.buffers.get(port.buffer) else {
                continue;
            };
            let size = port.bytes().unwrap_or(u64::MAX).min(buffer.size);
            for cause in self.state.marks.all(port.buffer, 0..size) {
                self.matter(cause, Effect::Output(number));
            }
        }
        for (id, buffer) in program.buffers.iter_enumerated() {
            if buffer.role == Role::State {
                for cause in self.state.marks.all(id, 0..buffer.size) {
                    self.matter(cause, Effect::State(id));
                }
            }
        }
        // Nobody knows what matters in a program that gives nothing.
        if program.interface.outputs.is_empty()
            && !program.buffers.iter().any(|b| b.role == Role::State)
        {
            for cause in 1..=self.causes.len() as u16 {
                let task = self.causes[usize::from(cause) - 1].task;
                self.matter(cause, Effect::Control(task));
            }
        }
        self.matters.sort_by_key(|(cause, _)| *cause);
    }

    fn report_all(&self, findings: &mut Findings) {
        for (cause, effect) in &self.matters {
            self.report(&self.causes[usize::from(*cause) - 1], effect, findings);
        }
    }

    fn report(&self, cause: &Cause, effect: &Effect, findings: &mut Findings) {
        let (program, accesses) = (self.program, self.accesses);
        let entry = accesses.entry(cause.entry);
        let footprint = accesses.footprint_of(entry);
        let buffer = &program.buffers[footprint.buffer];
        let queue = program.tasks[cause.task].queue;
        let name = program.task_name(cause.task);
        let operation = program.kernel(cause.task).operation();
        let bytes = range(cause.bytes.start, cause.bytes.end);
        let effect = match effect {
            Effect::Output(number) => {
                format!(
                    "output {} depends on them",
                    program.interface.outputs[*number].name
                )
            }
            Effect::State(id) => format!("state {} depends on them", program.buffers[*id].name),
            Effect::Control(task) if *task == cause.task => "what it does depends on them".into(),
            Effect::Control(task) => {
                format!("what {} does depends on them", program.task_name(*task))
            }
        };
        let place = program.place(cause.task);
        match cause.kind {
            Kind::NeverWritten => findings.add(
                &rules::READ_BEFORE_WRITE,
                (queue.raw(), footprint.buffer.raw(), 0),
                || {
                    let message = format!(
                        "{name} ({operation}) reads {} {bytes}, which no task before it has written, and {effect}",
                        buffer.name,
                    );
                    let finding = rules::READ_BEFORE_WRITE.at(place, message);
                    Race { program, accesses }.later_writer(entry, finding)
                },
            ),
            Kind::Remnant { old, new } => findings.add(
                &rules::STALE_READ,
                (queue.raw(), footprint.buffer.raw(), 0),
                || {
                    let message = format!(
                        "{name} ({operation}) reads {} {bytes}, left over from an older tensor, together with a newer one, and {effect}",
                        buffer.name,
                    );
                    let mut finding = rules::STALE_READ.at(place, message);
                    for (writer, role) in [(old, "wrote the older tensor"), (new, "wrote the newer one over a part of it")] {
                        if let Some(task) = self.task_of(writer) {
                            finding = finding.with(program.place(task), format!("{} {role}", program.task_name(task)));
                        }
                    }
                    finding
                },
            ),
        }
    }

    /// A task that writes the tensor of this number.
    fn task_of(&self, writer: u32) -> Option<TaskId> {
        let tensors = self.program.tensors.as_ref()?;
        let number = writer.checked_sub(1)?;
        tensors.writers.position(|n| *n == number)
    }
}
