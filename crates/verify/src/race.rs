//! Two accesses that nothing orders: whether they conflict, and what to say about it.

use crate::access::{Strided, range, union};
use crate::bounds::verb;
use crate::findings::{Cause, Findings};
use crate::footprint::{Accesses, Extent, Use};
use crate::mends::{Raise, late, raises};
use crate::overlap::{Overlap, overlap};
use crate::rules;
use crate::stuck::condition;
use chipless_model::{
    Action, Condition, Counter, Direction, Finding, Moment, Pattern, PieceOrder, Program, Role,
    SyncId, SyncKind, TaskId, Wait,
};
use std::ops::Range;

/// Pairs of patterns that are compared one by one; footprints with more are compared run by run.
const PAIRS: usize = 1 << 12;

/// Runs of one footprint, at most, where footprints are compared run by run.
const RUNS: u64 = 1 << 16;

#[derive(Clone, Copy)]
pub(crate) struct Race<'r, 'p, 'a> {
    pub(crate) program: &'p Program<'a>,
    pub(crate) accesses: &'r Accesses,
}

impl Race<'_, '_, '_> {
    /// Reports a race if two accesses have bytes in common; whether they are writes that look like duplicates. `of_one_tensor`: both tasks
    /// read parts of the same tensors.
    pub(crate) fn check(
        self,
        first: &Use,
        second: &Use,
        overlap: Overlap,
        of_one_tensor: bool,
        findings: &mut Findings,
    ) -> bool {
        match overlap {
            Overlap::Disjoint => false,
            Overlap::Common(low, high) => {
                self.report(first, second, (low, high), of_one_tensor, findings)
            }
            Overlap::TooHard => {
                self.too_hard(first, second, findings);
                false
            }
        }
    }

    /// Whether two accesses have bytes in common.
    pub(crate) fn overlap(self, first: &Use, second: &Use) -> Overlap {
        let accesses = self.accesses;
        let (a, b) = (accesses.footprint_of(first), accesses.footprint_of(second));
        let (ours, theirs) = (accesses.fitting(a), accesses.fitting(b));
        if a.buffer != b.buffer {
            return Overlap::Disjoint;
        }
        if ours.clone().count().saturating_mul(theirs.clone().count()) > PAIRS {
            return match (union(ours, RUNS), union(theirs, RUNS)) {
                (Some(ours), Some(theirs)) => common(&ours, &theirs),
                _ => Overlap::TooHard,
            };
        }
        let mut found = Overlap::Disjoint;
        for ours in ours {
            for theirs in theirs.clone() {
                match overlap(ours, theirs) {
                    Overlap::Disjoint => {}
                    Overlap::TooHard => found = Overlap::TooHard,
                    common @ Overlap::Common(..) => return common,
                }
            }
        }
        found
    }

    fn report(
        self,
        first: &Use,
        second: &Use,
        (low, high): (u64, u64),
        of_one_tensor: bool,
        findings: &mut Findings,
    ) -> bool {
        let Race { program, accesses } = self;
        let both = first.direction == Direction::Write && second.direction == Direction::Write;
        // Two engines that work on one job: whichever comes last, it writes what the other one wrote.
        let function = |entry: &Use| program.kernel(entry.task).function();
        if both && function(first).is_some_and(|one| function(second) == Some(one)) {
            return false;
        }
        if self.in_lanes(first, second) || (both && self.nobody_reads(first, second, (low, high))) {
            return false;
        }
        let is_duplicate =
            both && program.copies_halos && self.is_duplicate(first, second, of_one_tensor);
        let rule = match both {
            true if is_duplicate => &rules::RACE_DUPLICATE,
            true => &rules::RACE_WRITE_WRITE,
            false => &rules::RACE_READ_WRITE,
        };
        let buffer = accesses.footprint_of(first).buffer;
        let names = || {
            (
                program.task_name(first.task),
                program.task_name(second.task),
            )
        };
        let message = || {
            let (one, two) = names();
            let operation = |task| program.kernel(task).operation();
            format!(
                "{two} ({}) {} {} {}{} and {one} ({}) {} them, and nothing orders the two",
                operation(second.task),
                verb(second.direction),
                program.buffers[buffer].name,
                range(low, high),
                self.beyond(first, second),
                operation(first.task),
                verb(first.direction),
            )
        };
        findings.add_with(rule, self.cause(first, second), message, |message| {
            let (one, two) = names();
            let known = |task, other| connections_to(program, task, other);
            let mut finding = rule
                .at(program.place(second.task), message)
                .with(
                    program.place(first.task),
                    format!("{one} {}", known(first.task, second.task)),
                )
                .with(
                    program.place(second.task),
                    format!("{two} {}", known(second.task, first.task)),
                );
            // Mostly a read comes too early.
            let pair = match first.direction {
                Direction::Write => [first.task, second.task],
                Direction::Read => [second.task, first.task],
            };
            finding.hint = Some(either(program, pair));
            finding
        });
        is_duplicate
    }

    /// What two accesses have in common beside one range, in words.
    fn beyond(self, first: &Use, second: &Use) -> String {
        let Race { accesses, .. } = self;
        let [first, second] = [first, second].map(|entry| accesses.footprint_of(entry));
        let pairs = first.extents.iter();
        let pairs = pairs.flat_map(|one| second.extents.iter().map(move |other| (one, other)));
        let rows = |one: &Extent, other: &Extent| {
            one.rows.0.max(other.rows.0)..one.rows.1.min(other.rows.1)
        };
        let mut common = pairs.filter(|(one, other)| {
            let columns = one.low.max(other.low)..one.high.min(other.high);
            !rows(one, other).is_empty() && !columns.is_empty()
        });
        match (common.next(), common.next()) {
            (Some((one, other)), None) if one.whole && other.whole => {
                let more = rows(one, other).len() - 1;
                let (plural, pitch) = (
                    if more == 1 { "" } else { "s" },
                    accesses.pitch(first.buffer),
                );
                match more {
                    0 => String::new(),
                    more => {
                        format!(" (likewise in {more} more row{plural}, {pitch:#x} bytes apart)")
                    }
                }
            }
            _ => " (and perhaps more)".to_owned(),
        }
    }

    /// What races have in common that are reported as one.
    pub(crate) fn cause(self, first: &Use, second: &Use) -> Cause {
        let queue = |entry: &Use| self.program.tasks[entry.task].queue.raw();
        let (one, two) = (queue(first), queue(second));
        let buffer = self.accesses.footprint_of(first).buffer.raw();
        (one.min(two), one.max(two), buffer)
    }

    /// Whether two tasks of a queue with lanes touch their common bytes in the same order: each byte is in one lane, which takes the tasks
    /// one after the other.
    fn in_lanes(self, first: &Use, second: &Use) -> bool {
        let Race { program, accesses } = self;
        let queue = program.tasks[first.task].queue;
        if queue != program.tasks[second.task].queue
            || !matches!(program.queues[queue].order, PieceOrder::Lanes(_))
        {
            return false;
        }
        let buffer = accesses.footprint_of(first).buffer;
        let patterns = |entry: &Use| {
            let mut patterns = Vec::new();
            program.kernel(entry.task).accesses(&mut |access| {
                if access.buffer == buffer && access.direction == entry.direction {
                    patterns.push(access.pattern);
                }
            });
            patterns
        };
        let apart = |a: &Pattern, b: &Pattern| {
            let (a, b) = (a.extent(), b.extent());
            a.end <= b.start || b.end <= a.start
        };
        let ours = patterns(first);
        let agree = |b: &Pattern| ours.iter().all(|a| a == b || apart(a, b));
        patterns(second).iter().all(agree)
    }

    /// Whether the bytes that two writes have in common are never looked at: calls that only warm a cache leave their
    /// results in one place.
    fn nobody_reads(self, first: &Use, second: &Use, (low, high): (u64, u64)) -> bool {
        let Race { program, accesses } = self;
        let buffer = accesses.footprint_of(first).buffer;
        let is_whole = |entry: &Use| matches!(&accesses.footprint_of(entry).extents[..], [extent] if extent.whole);
        let common = Strided::contiguous(low, high);
        let reads = |entry: &Use| {
            let footprint = accesses.footprint_of(entry);
            entry.direction == Direction::Read
                && footprint.buffer == buffer
                && accesses
                    .fitting(footprint)
                    .any(|pattern| overlap(pattern, common) != Overlap::Disjoint)
        };
        program.buffers[buffer].role == Role::Scratch
            && is_whole(first)
            && is_whole(second)
            && !accesses.iter().any(reads)
    }

    /// Whether two writes look like one transfer that was cut by tiles with common rows: same operation, sources in different
    /// memories that are parts of one tensor, or at least the same steps. Pieces without steps may differ in length, since those at the
    /// edges of a tensor have fewer common rows: they then follow one another, and stand at the same address of each memory.
    fn is_duplicate(self, first: &Use, second: &Use, of_one_tensor: bool) -> bool {
        let Race { program, accesses } = self;
        let same_steps = |a: Strided<'_>, b: Strided<'_>| {
            (a.run, a.swizzle) == (b.run, b.swizzle)
                && a.loops.len() == b.loops.len()
                && a.loops
                    .iter()
                    .zip(b.loops)
                    .all(|(a, b)| a.stride == b.stride)
        };
        let patterns = |entry: &Use| accesses.patterns(accesses.footprint_of(entry));
        let source = |entry: &Use| {
            let reads = accesses
                .of(entry.task)
                .map(|index| accesses.entry(index))
                .filter(|e| e.direction == Direction::Read)
                .filter(|e| program.buffers[accesses.footprint_of(e).buffer].role == Role::Scratch);
            only(reads)
        };
        let (Some(a), Some(b)) = (source(first), source(second)) else {
            return false;
        };
        let alike = || {
            patterns(first).count() == patterns(second).count()
                && patterns(first)
                    .zip(patterns(second))
                    .all(|(a, b)| same_steps(a, b))
        };
        let consecutive = || {
            let piece = |entry: &Use| {
                let pattern = only(patterns(entry))?;
                pattern.is_contiguous().then(|| pattern.extent())
            };
            let address = |read| piece(read).map(|(low, _)| low);
            let (Some(one), Some(two)) = (piece(first), piece(second)) else {
                return false;
            };
            (one.0 < two.0) == (one.1 < two.1)
                && one.0 != two.0
                && one.1 != two.1
                && address(a).is_some_and(|at| address(b) == Some(at))
        };
        let memory = |read| program.buffers[accesses.footprint_of(read).buffer].memory;
        program.kernel(first.task).operation() == program.kernel(second.task).operation()
            && (of_one_tensor || alike() || consecutive())
            && memory(a) != memory(b)
    }

    fn too_hard(self, first: &Use, second: &Use, findings: &mut Findings) {
        let program = self.program;
        findings.add(&rules::OVERLAP_BOUND, (0, 0, 0), || {
            let (one, two) = (
                program.task_name(first.task),
                program.task_name(second.task),
            );
            let message = format!("{two} and {one} are not ordered, and may touch the same bytes");
            rules::OVERLAP_BOUND
                .at(program.place(second.task), message)
                .with(program.place(first.task), "the other one")
        });
    }

    /// Names a task that writes bytes which another one reads too early.
    pub(crate) fn later_writer(self, read: &Use, bytes: &Range<u64>, finding: Finding) -> Finding {
        let Race { program, accesses } = self;
        let buffer = accesses.footprint_of(read).buffer;
        let bytes = Strided::contiguous(bytes.start, bytes.end);
        let writes = |entry: &&Use| {
            let footprint = accesses.footprint_of(entry);
            entry.direction == Direction::Write
                && entry.task != read.task
                && footprint.buffer == buffer
                && accesses
                    .fitting(footprint)
                    .any(|pattern| matches!(overlap(pattern, bytes), Overlap::Common(..)))
        };
        match accesses.iter().find(writes) {
            Some(write) => {
                let name = program.task_name(write.task);
                let mut finding = finding.with(
                    program.place(write.task),
                    format!("{name} writes bytes of these; {}", connections(program, write.task)),
                );
                finding.hint = signal_of(program, write.task).map(|sync| {
                    let sync = &program.syncs[sync].name;
                    format!("If it reads what {name} writes, let it wait for {sync}, which {name} signals.")
                });
                finding
            }
            None => finding.hint("No task of the program writes these bytes: look for a wrong address in this read or in the write that it needs, or for a transfer that is missing."),
        }
    }
}

/// What orders two tasks of which the first probably comes first.
fn either(program: &Program<'_>, [one, two]: [TaskId; 2]) -> String {
    let (first, second) = (program.task_name(one), program.task_name(two));
    let awaited = |sync: &SyncId| program.waits(two).iter().any(|wait| wait.sync == *sync);
    if let Some(sync) = early_signals(program, one).find(awaited) {
        return late(program, one, sync);
    }
    match (signal_of(program, one), signal_of(program, two)) {
        (Some(sync), _) => format!(
            "Let {second} wait for {}, which {first} signals; or {first} for a signal of {second}, if that has to come first.",
            program.syncs[sync].name
        ),
        (None, Some(sync)) => format!(
            "Let {second} wait for a signal of {first}, which gives none so far; or {first} for {}, which {second} signals, if that has to come first.",
            program.syncs[sync].name
        ),
        (None, None) => format!(
            "Let {second} wait for a signal of {first}, or {first} for one of {second}: so far they give none."
        ),
    }
}

/// What a task raises when it is done.
pub(crate) fn signals_of(program: &Program<'_>, task: TaskId) -> impl Iterator<Item = SyncId> {
    program
        .signals(task)
        .iter()
        .filter_map(|signal| match signal.action {
            Action::Add(sync, _) | Action::Produce(sync) => Some(sync),
            Action::Consume(_) | Action::Configure(_) | Action::Release(_) => None,
        })
}

/// What a task raises when it has read its sources, before it has written its results.
pub(crate) fn early_signals(program: &Program<'_>, task: TaskId) -> impl Iterator<Item = SyncId> {
    let signals = program.signals(task).iter();
    signals.filter_map(|signal| match (signal.moment, signal.action) {
        (Moment::Read, Action::Add(sync, _)) => Some(sync),
        _ => None,
    })
}

/// The tasks whose waits for a counter delay a task: itself, and those in front of it in its queue, the nearest first.
pub(crate) fn waiting(program: &Program<'_>, task: TaskId, sync: SyncId) -> Vec<TaskId> {
    let task = holder(program, task).unwrap_or(task);
    let queue = program.tasks[task].queue;
    let waits = |of: &TaskId| program.waits(*of).iter().any(|wait| wait.sync == sync);
    let ahead = program
        .tasks
        .indices()
        .filter(|other| *other <= task && program.tasks[*other].queue == queue && waits(other));
    let mut found: Vec<TaskId> = ahead.collect();
    found.reverse();
    found
}

/// The task that releases a task, where another one does, such as the instruction that starts a transfer: its waits delay that one too.
pub(crate) fn holder(program: &Program<'_>, task: TaskId) -> Option<TaskId> {
    let piece = program
        .pieces
        .position(|piece| piece.tasks().any(|of| of == task))?;
    program.tasks.indices().find(|of| {
        let mut signals = program.signals(*of).iter();
        signals.any(|signal| signal.action == Action::Release(piece))
    })
}

/// The instruction that starts what a task waits for, where neither of the two is an instruction: a transfer waits until its queue has started it.
fn starter(program: &Program<'_>, wait: &Wait) -> Option<TaskId> {
    if program.syncs[wait.sync].kind != SyncKind::Counter(Counter::FLAG) {
        return None;
    }
    let raises = |task: &TaskId| signals_of(program, *task).any(|sync| sync == wait.sync);
    holder(program, program.tasks.indices().find(raises)?)
}

/// Who ends a wait for a counter that the tasks of one queue alone raise: the task whose signal is the one that it is for, and parts of those behind it
/// where they may be done before it is.
fn reached_by(program: &Program<'_>, wait: &Wait) -> Option<String> {
    let (Condition::AtLeast(least) | Condition::Equal(least)) = wait.condition else {
        return None;
    };
    let raises = raises(program).into_iter();
    let mut own = raises.filter(|raise| raise.sync == wait.sync);
    let reaches =
        |raise: &Raise| raise.value.saturating_sub(raise.amount) < least && least <= raise.value;
    let by = own.find(reaches)?.task;
    let queue = &program.queues[program.tasks[by].queue];
    let is_spread = matches!(queue.order, PieceOrder::Lanes(lanes) if lanes > 1);
    Some(if is_spread && own.next().is_some() {
        format!(
            "{}, or parts of transfers behind it, each of which adds as it completes",
            program.task_name(by)
        )
    } else {
        program.task_name(by)
    })
}

fn signal_of(program: &Program<'_>, task: TaskId) -> Option<SyncId> {
    signals_of(program, task).next()
}

/// The item of an iterator that has one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let item = items.next()?;
    items.next().is_none().then_some(item)
}

/// The first common range of two lists of disjoint ranges in order.
fn common(a: &[(u64, u64)], b: &[(u64, u64)]) -> Overlap {
    let (mut i, mut j) = (0, 0);
    while let (Some(one), Some(two)) = (a.get(i), b.get(j)) {
        let (low, high) = (one.0.max(two.0), one.1.min(two.1));
        if low < high {
            return Overlap::Common(low, high);
        }
        if one.1 <= two.1 { i += 1 } else { j += 1 }
    }
    Overlap::Disjoint
}

/// How a task hangs together with others, and the nearest wait in front of it in its queue for a counter that the other task raises.
fn connections_to(program: &Program<'_>, task: TaskId, other: TaskId) -> String {
    let ahead = signals_of(program, other).find_map(|sync| {
        let nearest = *waiting(program, task, sync).first()?;
        let mut waits = program.waits(nearest).iter();
        let wait = waits.find(|wait| wait.sync == sync)?;
        (nearest != task).then_some((nearest, wait))
    });
    let own = connections(program, task);
    let Some((nearest, wait)) = ahead else {
        return own;
    };
    let (name, condition) = (program.task_name(nearest), condition(program, wait));
    match holder(program, task) {
        Some(_) => format!("{own}; {name}, at or before its start, waits for {condition}"),
        None => format!("{own}; {name}, before it in its queue, waits for {condition}"),
    }
}

/// How a task hangs together with others.
pub(crate) fn connections(program: &Program<'_>, task: TaskId) -> String {
    let waits = program.waits(task).iter();
    let waits = waits.map(|wait| {
        if let Some(starter) = starter(program, wait) {
            return format!("its start (by {})", program.task_name(starter));
        }
        let by = reached_by(program, wait).map(|by| format!(" (by {by})"));
        condition(program, wait) + &by.unwrap_or_default()
    });
    let waits: Vec<String> = waits.collect();
    let signals = program.signals(task).iter().filter_map(|s| match s.action {
        Action::Add(sync, _) | Action::Produce(sync) => {
            let name = &program.syncs[sync].name;
            Some(match s.moment {
                Moment::Read => format!("{name} when it has read its sources"),
                Moment::Completion => name.clone(),
            })
        }
        Action::Consume(_) | Action::Configure(_) | Action::Release(_) => None,
    });
    let signals: Vec<String> = signals.collect();
    match (waits.join(", "), signals.join(", ")) {
        (waits, signals) if waits.is_empty() && signals.is_empty() => {
            "has no waits of its own and gives no signal".to_owned()
        }
        (waits, signals) if waits.is_empty() => {
            format!("has no waits of its own; signals {signals}")
        }
        (waits, signals) if signals.is_empty() => format!("waits for {waits}; gives no signal"),
        (waits, signals) => format!("waits for {waits}; signals {signals}"),
    }
}
