//! What becomes of bytes that hold nothing of worth: those that nobody has written, and remnants of older tensors.
//!
//! Sound programs read such bytes: channels that pad a tensor, whose weights are absent; calls that warm a cache; records of
//! profiling that stay empty. Such a byte is a fault where it can change an output or what a task does. So it is followed, as memcheck does,
//! from task to task by what the kernels say of their [dependences](Kernel::dependence).

mod view;

use crate::access::{Strided, range};
use crate::findings::Findings;
use crate::footprint::{Accesses, Use};
use crate::marks::Marks;
use crate::order::Order;
use crate::race::Race;
use crate::remnants::{Remains, Remnants};
use crate::rules;
use crate::writes::Writes;
use chipless_model::{
    BufferId, Certainty, Dependence, Direction, IndexVec, Loop, Pattern, Program, Role, Series,
    TaskId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;
use view::{State, View, Zeros};

/// Causes that are told apart; further ones count for the last.
const CAUSES: usize = u16::MAX as usize - 1;

/// Where doubtful bytes come from, and where they stay.
pub(crate) struct Sources<'s> {
    /// Uses that read bytes which nobody has written, in the reference order.
    pub(crate) gaps: &'s [u32],
    /// The readings of remnants that there are.
    pub(crate) remnants: &'s Remnants,
    /// Who writes duplicates of what a task writes, and comes before it in the reference order, though not in every one.
    pub(crate) duplicates: &'s Duplicates,
}

/// Of each task, others.
pub(crate) type Duplicates = FxHashMap<TaskId, BTreeSet<TaskId>>;

/// Follows doubtful bytes through a program that completes.
pub(crate) fn check(
    program: &Program<'_>,
    accesses: &Accesses,
    order: &Order,
    sources: &Sources<'_>,
    findings: &mut Findings,
) {
    let mut places: IndexVec<TaskId, usize> = program.tasks.iter().map(|_| usize::MAX).collect();
    for (place, task) in order.sequence.iter().enumerate() {
        places[*task] = place;
    }
    let follow = |zeros| {
        let mut trace = Trace::new(program, accesses, sources, &places, zeros);
        let mut gaps = sources.gaps;
        for (place, task) in order.sequence.iter().enumerate() {
            trace.state.writes.go_to(place);
            let uses = accesses.of(*task);
            let count = gaps.iter().take_while(|gap| uses.contains(gap)).count();
            let (own, rest) = gaps.split_at(count);
            trace.task(*task, own);
            gaps = rest;
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

/// Bytes that a task writes and that depend on doubtful ones.
#[derive(Default)]
struct Dependent {
    runs: Vec<(BufferId, Range<u64>)>,
    strided: Vec<(BufferId, Pattern)>,
}

impl Dependent {
    /// Adds the bytes of a pattern of the verifier's.
    fn add_strided(&mut self, buffer: BufferId, strided: Strided<'_>) {
        if strided.swizzle.is_off() {
            let loops = strided.loops.iter().copied();
            return self.add(buffer, Pattern::new(strided.offset, strided.run, loops));
        }
        for (low, high) in strided.runs() {
            self.add(buffer, Pattern::contiguous(low, high - low));
        }
    }

    fn add(&mut self, buffer: BufferId, pattern: Pattern) {
        if !pattern.loops.is_empty() {
            return self.strided.push((buffer, pattern));
        }
        let bytes = pattern.offset..pattern.offset + pattern.run;
        match self.runs.last_mut() {
            Some((last, before)) if *last == buffer && before.end == bytes.start => {
                before.end = bytes.end;
            }
            _ => self.runs.push((buffer, bytes)),
        }
    }
}

/// Follows doubtful bytes from task to task.
struct Trace<'m> {
    program: &'m Program<'m>,
    accesses: &'m Accesses,
    state: State<'m>,
    causes: Vec<Cause>,
    duplicates: &'m Duplicates,
    /// What tasks wrote that was in doubt, with its cause, where others write duplicates of it later: nothing yet.
    unordered: FxHashMap<TaskId, Option<(Dependent, u32)>>,
    /// Causes that have been found to matter.
    reported: FxHashSet<u32>,
    matters: Vec<(u32, Effect)>,
}

impl<'m> Trace<'m> {
    fn new(
        program: &'m Program<'m>,
        accesses: &'m Accesses,
        sources: &Sources<'m>,
        places: &IndexVec<TaskId, usize>,
        zeros: Option<Zeros<'m>>,
    ) -> Trace<'m> {
        // Elsewhere no task meets bytes that nobody has written.
        let mut writes = Writes::new(program, accesses);
        let bounds = accesses.iter().filter(|entry| {
            (entry.direction, entry.certainty) == (Direction::Read, Certainty::May)
        });
        let gaps = sources.gaps.iter();
        let gaps = gaps.map(|index| accesses.entry(*index));
        let asking = gaps.chain(bounds);
        writes.follow_only(asking.map(|e| (places[e.task], accesses.footprint_of(e))));
        let first = sources.duplicates.values().flatten();
        Trace {
            program,
            accesses,
            state: State {
                program,
                writes,
                remains: Remains::new(program, accesses, sources.remnants, places),
                marks: Marks::default(),
                zeros,
            },
            causes: Vec::new(),
            duplicates: sources.duplicates,
            unordered: first.map(|task| (*task, None)).collect(),
            reported: FxHashSet::default(),
            matters: Vec::new(),
        }
    }

    /// A task; `gaps` are its uses that read bytes which nobody has written.
    fn task(&mut self, task: TaskId, gaps: &[u32]) {
        let accesses = self.accesses;
        let uses = || {
            accesses
                .of(task)
                .map(|index| (index, accesses.entry(index)))
        };
        let mut old = Vec::new();
        let mut cause = None;
        for (index, entry) in uses().filter(|(_, e)| e.direction == Direction::Read) {
            let found = self.read(index, entry, gaps.contains(&index), &mut old);
            let found = [cause, found].into_iter().flatten();
            // The first reader, in the reference order; what others read too follows from it.
            cause = found.min();
        }
        let mut dependent = Dependent::default();
        if let Some(cause) = cause {
            for (_, entry) in uses() {
                let buffer = accesses.footprint_of(entry).buffer;
                self.state.writes.bytes(buffer);
            }
            let view = View::new(&self.state, &old);
            let kernel = self.program.kernel(task);
            let told = kernel.dependence(&view, &mut |buffer, pattern| {
                if self.fits(buffer, &pattern) {
                    dependent.add(buffer, pattern);
                }
            });
            match told {
                Dependence::Bytes => {}
                Dependence::Everything => {
                    dependent = Dependent::default();
                    for (_, entry) in uses().filter(|(_, e)| e.direction == Direction::Write) {
                        let footprint = accesses.footprint_of(entry);
                        for p in accesses.fitting(footprint) {
                            dependent.add_strided(footprint.buffer, p);
                        }
                    }
                }
                Dependence::Control => self.matter(cause, Effect::Control(task)),
            }
            if self.causes.len() > CAUSES {
                self.causes.truncate(CAUSES);
            }
        }
        let zeros = self.zeros(task);
        let kept = self.kept(task);
        for (_, entry) in uses().filter(|(_, e)| e.direction == Direction::Write) {
            self.write(entry);
        }
        for (buffer, bytes, cause) in kept {
            let marks = &mut self.state.marks;
            marks.set(buffer, [Series::from(bytes)], cause);
        }
        if let Some(followed) = &mut self.state.zeros {
            for (buffer, pattern) in zeros {
                followed
                    .marks
                    .set(buffer, runs(&pattern).map(Series::from), 1);
            }
        }
        if let Some(cause) = cause {
            self.mark(&dependent, cause);
            if let Some(unordered) = self.unordered.get_mut(&task) {
                *unordered = Some((dependent, cause));
            }
        }
    }

    /// Marks what depends on doubtful bytes.
    fn mark(&mut self, dependent: &Dependent, cause: u32) {
        let marks = &mut self.state.marks;
        for of_one in dependent.runs.chunk_by(|(one, _), (other, _)| one == other) {
            let runs = of_one.iter().map(|(_, bytes)| Series::from(bytes.clone()));
            marks.set(of_one[0].0, runs, cause);
        }
        for (buffer, pattern) in &dependent.strided {
            match series(pattern) {
                Some(series) => marks.set(*buffer, [series], cause),
                None => marks.set(*buffer, runs(pattern).map(Series::from), cause),
            }
        }
    }

    /// What is in doubt, and stays so though a task overwrites it: another task, which may as well come last, wrote it.
    fn kept(&self, task: TaskId) -> Vec<(BufferId, Range<u64>, u32)> {
        let mut kept = Vec::new();
        let others = self.duplicates.get(&task).into_iter().flatten();
        for (dependent, cause) in others.filter_map(|other| self.unordered.get(other)?.as_ref()) {
            let strided = dependent
                .strided
                .iter()
                .flat_map(|(buffer, pattern)| runs(pattern).map(|bytes| (*buffer, bytes)));
            for (buffer, mut bytes) in dependent.runs.iter().cloned().chain(strided) {
                while let Some(found) = self.state.marks.first(buffer, bytes.clone()) {
                    bytes.start = found.end;
                    kept.push((buffer, found, *cause));
                }
            }
        }
        kept
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
    fn read(&mut self, index: u32, entry: &Use, has_gap: bool, old: &mut Vec<u32>) -> Option<u32> {
        let accesses = self.accesses;
        let footprint = accesses.footprint_of(entry);
        let buffer = footprint.buffer;
        let is_marked = self.state.marks.has(buffer);
        let (mut found, mut is_older) = (None, false);
        for (tensor, pattern) in accesses.tensors(footprint) {
            let remains = self.state.remains.as_ref();
            let remains = remains.filter(|_| entry.certainty == Certainty::Exact);
            let own = remains.and_then(|remains| remains.of(entry.task, tensor));
            let own: Vec<(u32, u32)> = own.unwrap_or_default().to_vec();
            let writers: Vec<u32> = own.iter().map(|(writer, _)| *writer).collect();
            if !is_marked && !has_gap && writers.is_empty() {
                continue;
            }
            // Most patterns meet no doubt at all, which their extent tells.
            let (low, high) = pattern.extent();
            let extent = low as u64..high as u64;
            let is_marked = is_marked && self.state.marks.first(buffer, extent.clone()).is_some();
            let has_remnant =
                !writers.is_empty() && self.state.remnant(buffer, extent, &writers).is_some();
            if !is_marked && !has_gap && !has_remnant {
                continue;
            }
            for (low, high) in pattern.runs() {
                let bytes = low..high;
                // Doubt that another task has brought here is older than that of this one.
                if is_marked
                    && !is_older
                    && let Some(mark) = self.state.marks.first(buffer, bytes.clone())
                {
                    found = Some(self.state.marks.at(buffer, mark.start));
                    is_older = true;
                }
                if has_gap && found.is_none() {
                    self.state.writes.bytes(buffer);
                    let gap = self.state.writes.first_gap(buffer, bytes.clone());
                    found = gap.map(|gap| self.cause(entry.task, index, gap, Kind::NeverWritten));
                }
                if !writers.is_empty() && (found.is_none() || !old.contains(&writers[0])) {
                    let Some(remnant) = self.state.remnant(buffer, bytes, &writers) else {
                        continue;
                    };
                    old.extend(
                        writers
                            .iter()
                            .filter(|w| !old.contains(w))
                            .collect::<Vec<_>>(),
                    );
                    found = found.or_else(|| {
                        let remains = self.state.remains.as_ref();
                        let writer = remains.map_or(0, |r| r.at(buffer, remnant.start));
                        let mut pairs = own.iter().copied();
                        let pair = pairs.find(|(old, _)| *old == writer);
                        let (old, new) = pair.unwrap_or((writer, 0));
                        Some(self.cause(entry.task, index, remnant, Kind::Remnant { old, new }))
                    });
                } else if found.is_some() && writers.is_empty() && (is_older || !is_marked) {
                    break;
                }
            }
        }
        found
    }

    fn cause(&mut self, task: TaskId, entry: u32, bytes: Range<u64>, kind: Kind) -> u32 {
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
        self.causes.len() as u32
    }

    /// What a task writes has been written, and what it overwrites is forgotten.
    fn write(&mut self, entry: &Use) {
        let footprint = self.accesses.footprint_of(entry);
        let buffer = footprint.buffer;
        // What has too many runs was reported when it was looked at first.
        _ = self.state.writes.add(entry, footprint);
        let patterns = || self.accesses.fitting(footprint).flat_map(|p| p.series());
        let span = footprint.span.0..footprint.span.1;
        if let Some(remains) = &mut self.state.remains {
            remains.overwrite(self.state.writes.place(), entry, buffer, &span, patterns());
        }
        if entry.certainty == Certainty::Exact {
            self.state.marks.clear(buffer, &span, patterns());
        }
        if let Some(zeros) = &mut self.state.zeros {
            zeros.marks.clear(buffer, &span, patterns());
        }
    }

    fn matter(&mut self, cause: u32, effect: Effect) {
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
            for cause in 1..=self.causes.len() as u32 {
                let task = self.causes[cause as usize - 1].task;
                self.matter(cause, Effect::Control(task));
            }
        }
        self.matters.sort_by_key(|(cause, _)| *cause);
    }

    fn report_all(&self, findings: &mut Findings) {
        for (cause, effect) in &self.matters {
            self.report(&self.causes[*cause as usize - 1], effect, findings);
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
                    Race { program, accesses }.later_writer(entry, &cause.bytes, finding)
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

/// The runs of a pattern with one loop that walks forwards.
fn series(pattern: &Pattern) -> Option<Series> {
    let [Loop { count, stride }] = pattern.loops[..] else {
        return None;
    };
    (stride > 0 && stride as u64 > pattern.run).then_some(Series {
        start: pattern.offset,
        size: pattern.run,
        stride: stride as u64,
        count,
    })
}

/// The runs of a pattern that lies inside its buffer.
fn runs(pattern: &Pattern) -> impl Iterator<Item = Range<u64>> {
    let starts = pattern.runs();
    starts.map(|start| start..start + pattern.run)
}
