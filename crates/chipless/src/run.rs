//! A run with data: what the host gives, what comes out, and what should be known of it.

use crate::failure::{Failure, FailureKind};
use crate::file::OpenDocument;
use crate::random;
use crate::target::Lowered;
use chipless_model::{
    Access, BufferId, Direction, Finding, Grade, NoRoom, Node, Place, Port, Program, Storage,
    TaskId, count, suggest, zeroed,
};
use chipless_report::attribution::Attribution;
use chipless_report::summary::{Output, Run};
use chipless_report::{Statistics, TimedBy};
use chipless_sim::{Functional, Order, Outcome, Stop, Timeline, TimingOnly, Verified};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// The data of an input; `None` where it should be random. Its arguments are the number of the input, the input, and its bytes.
pub trait Give<'b>: Fn(usize, &Port, u64) -> Result<Option<Cow<'b, [u8]>>, Failure> {}

impl<'b, F: Fn(usize, &Port, u64) -> Result<Option<Cow<'b, [u8]>>, Failure>> Give<'b> for F {}

/// The port and the file of an option `NAME=FILE`. Both may contain `=`, so every one of them is tried.
///
/// # Errors
/// A name of none of the ports; no `=`.
pub fn input_named<'o>(
    program: &str,
    ports: &[Port],
    option: &'o str,
) -> Result<(usize, &'o str), Failure> {
    let splits = option
        .match_indices('=')
        .map(|(at, _)| (&option[..at], &option[at + 1..]));
    let known = splits
        .clone()
        .find_map(|(name, path)| Some((Port::position(ports, name)?, path)));
    known.ok_or_else(|| {
        let names: Vec<&str> = ports.iter().map(|p| &*p.name).collect();
        if let Some((name, _)) = splits.clone().next() {
            let hint = suggest::hint(name, names.iter().copied());
            let listed = match &*names {
                [] => "there are none".to_owned(),
                names => names.join(", "),
            };
            let text =
                format_args!("expected the name of an input ({listed}), found \"{name}\"{hint}");
            return Failure::misuse(program, text);
        }
        let hint = match &*names {
            [] => "; the program has no inputs".to_owned(),
            [only] if Path::new(option).extension().is_some_and(|e| e == "npy") => {
                format!("; did you mean \"{only}={option}\"?")
            }
            [only] => format!("; the input is {only}"),
            several => format!("; the inputs are {}", several.join(", ")),
        };
        let text = format_args!("expected NAME=FILE.npy, found \"{option}\"{hint}");
        Failure::misuse("--input", text)
    })
}

/// Puts the data of every input into its buffer. Returns the names of the inputs whose data are random.
///
/// # Errors
/// What `data` says, and inputs that do not fit their buffers.
pub fn fill<'b>(
    program: &Program<'_>,
    data: impl Give<'b>,
    seed: u64,
    storage: &mut Storage<'b>,
) -> Result<Vec<String>, Failure> {
    fill_watched(program, data, seed, storage, &mut |_, _| {})
}

/// The same; `watch` is told how many bytes were drawn, of how many.
///
/// # Errors
/// As of [`fill`].
pub fn fill_watched<'b>(
    program: &Program<'_>,
    data: impl Give<'b>,
    seed: u64,
    storage: &mut Storage<'b>,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Vec<String>, Failure> {
    let mut made = Vec::new();
    let sizes = program
        .interface
        .inputs
        .iter()
        .map(chipless_model::Port::bytes);
    let total: u64 = sizes
        .map(Option::unwrap_or_default)
        .fold(0, u64::saturating_add);
    let mut done = 0;
    for (index, port) in program.interface.inputs.iter().enumerate() {
        let size = program.buffers[port.buffer].size;
        let bytes = port
            .bytes()
            .filter(|n| *n <= size)
            .ok_or_else(|| misfit("input", port, size))?;
        let given = if let Some(given) = data(index, port, bytes)? {
            given
        } else {
            let mut data = zeroed(bytes).map_err(no_room)?;
            for range in needed(program, port.buffer, data.len()) {
                let part = data.get_mut(range.clone()).unwrap_or_default();
                for (number, piece) in part.chunks_mut(PIECE).enumerate() {
                    let start = (range.start + number * PIECE) as u64;
                    random::fill(port.element, seed, index, start, piece)
                        .map_err(Failure::unsupported)?;
                    watch(done + start + piece.len() as u64, total);
                }
            }
            made.push(port.name.clone());
            Cow::Owned(data)
        };
        storage.set(port.buffer, given);
        done = done.saturating_add(bytes);
    }
    Ok(made)
}

pub(crate) fn misfit(side: &str, port: &Port, size: u64) -> Failure {
    let Port {
        name,
        element,
        shape,
        ..
    } = port;
    Failure::new(
        FailureKind::Refused,
        "",
        format_args!(
            "expected {side} \"{name}\" ({element} {shape:?}) to fit its buffer, found {size} bytes"
        ),
    )
}

/// The bytes of an output.
///
/// # Errors
/// An output that does not fit its buffer.
pub fn output<'s>(port: &Port, storage: &'s Storage<'_>) -> Result<&'s [u8], Failure> {
    let held = storage.bytes(port.buffer);
    port.bytes()
        .and_then(|n| held.get(..usize::try_from(n).ok()?))
        .ok_or_else(|| misfit("output", port, held.len() as u64))
}

/// What the tasks of a program rest on that is graded below this, a line for each rule: how many tasks, and the first of them.
pub fn unproven(program: &Program<'_>, below: Grade) -> Vec<String> {
    let mut rules: BTreeMap<String, (usize, TaskId)> = BTreeMap::new();
    for task in program.tasks.indices() {
        let kernel = program.kernel(task);
        if kernel.grade() < below
            && let Some(rule) = kernel.unproven()
        {
            rules.entry(rule.into_owned()).or_insert((0, task)).0 += 1;
        }
    }
    let line = |(rule, (n, first))| {
        let first = program.task_name(first);
        format!("{rule} ({}, first {first})", count(n, "task"))
    };
    rules.into_iter().map(line).collect()
}

/// Rules without a proof that a note names.
const NAMED: usize = 3;

/// What numbers rest on that no compiled program has proven, in one sentence.
pub fn unproven_note(program: &Program<'_>) -> Option<String> {
    let rules = unproven(program, Grade::Proven);
    match &*rules {
        [] => None,
        [only] => Some(format!("no compiled program has confirmed this: {only}")),
        _ => {
            let name = |rule: &String| {
                let (name, _) = rule.split_once(": ").unwrap_or((rule, ""));
                name.to_owned()
            };
            let mut names: Vec<String> = rules.iter().map(name).collect();
            names.dedup();
            let others = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
            let others = match others {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            let grades = program
                .tasks
                .indices()
                .map(|task| program.kernel(task).grade());
            let weakest = grades.min().unwrap_or(Grade::Proven);
            Some(format!(
                "no compiled program has confirmed {} that the outputs rest on: {}{others}; the weakest is {} (--evidence proven lists them)",
                count(rules.len(), "rule"),
                names.join(", "),
                weakest.phrase()
            ))
        }
    }
}

/// What kernels saw in the data of a run, a finding for each rule: at the first task, with the number of tasks.
pub fn remarked(program: &Program<'_>, storage: &Storage<'_>) -> Vec<Finding> {
    let remarks = storage.remarks().iter();
    let found = remarks.map(|remark| {
        let others = match remark.tasks - 1 {
            0 => String::new(),
            1 => "; 1 more task does the same".to_owned(),
            others => format!("; {others} more tasks do the same"),
        };
        let place = Place::file().at(program.task_name(remark.task));
        remark.rule.at(place, format!("{}{others}", remark.message))
    });
    found.collect()
}

/// What a run that came to its end left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) timeline: Timeline,
    pub(crate) timed_by: Option<TimedBy>,
    /// The compiler's own estimate for the same machine.
    pub(crate) estimate_ns: Option<f64>,
    pub(crate) is_timed: bool,
    /// Bytes of each output; none of a run without data.
    pub(crate) outputs: Vec<Vec<u8>>,
    /// What the values showed.
    pub(crate) findings: Vec<Finding>,
    pub(crate) facts: Vec<Node>,
    pub(crate) seed: Option<u64>,
    pub(crate) notes: Vec<String>,
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Finished<'l, 'd> {
    program: &'l Program<'d>,
    done: Done,
}

/// Runs a program that was verified, or is [taken for good](Verified::assume), on random inputs of this seed.
///
/// # Errors
/// Buffers beyond the limit, a fault or a deadlock, inputs and outputs that do not fit.
pub fn run<'l, 'd>(
    document: &OpenDocument<'_>,
    lowered: &'l Lowered<'d>,
    verified: &Verified<'l, 'd>,
    seed: u64,
) -> Result<Finished<'l, 'd>, Failure> {
    let done = execute(
        document,
        lowered,
        verified,
        |_, _, _| Ok(None),
        seed,
        Order::Timed,
    )?;
    Ok(Finished {
        program: verified.program(),
        done,
    })
}

/// Runs a program on what it is given; what is not given is random.
pub(crate) fn execute<'a>(
    document: &OpenDocument<'_>,
    lowered: &Lowered<'a>,
    verified: &Verified<'_, 'a>,
    data: impl Give<'a>,
    seed: u64,
    order: Order,
) -> Result<Done, Failure> {
    let program = verified.program();
    let mut storage = Storage::new(&program.buffers, document.limits()).map_err(no_room)?;
    let random = fill(program, data, seed, &mut storage)?;
    let Outcome { timeline, end } = chipless_sim::run_in(
        verified,
        order,
        &mut Functional::new(&mut storage).of(verified),
    );
    end.map_err(|stop| stopped(program, &stop))?;
    let findings = remarked(program, &storage);
    let outputs = outputs(program, storage)?;
    let mut notes = Vec::new();
    notes.extend(random_note(&random, seed));
    notes.extend(unproven_note(program));
    notes.extend(general_notes(document, lowered));
    notes.extend(order_note(program, order));
    let facts = document.facts(program, &timeline)?;
    notes.extend(document.remarks(&facts));
    Ok(Done {
        facts,
        timed_by: document.timed_by()?,
        estimate_ns: document.estimate_ns()?,
        is_timed: order == Order::Timed,
        findings,
        timeline,
        outputs,
        seed: (!random.is_empty()).then_some(seed),
        notes,
    })
}

/// Times a program.
pub(crate) fn time(
    document: &OpenDocument<'_>,
    lowered: &Lowered<'_>,
    verified: &Verified<'_, '_>,
) -> Result<Done, Failure> {
    let Outcome { timeline, end } = chipless_sim::run(verified, &mut TimingOnly);
    end.map_err(|stop| stopped(verified.program(), &stop))?;
    let facts = document.facts(verified.program(), &timeline)?;
    let mut notes = general_notes(document, lowered);
    notes.extend(document.remarks(&facts));
    Ok(Done {
        facts,
        timed_by: document.timed_by()?,
        estimate_ns: document.estimate_ns()?,
        is_timed: true,
        timeline,
        findings: Vec::new(),
        outputs: Vec::new(),
        seed: None,
        notes,
    })
}

/// What holds for every run of a program.
pub(crate) fn general_notes(document: &OpenDocument<'_>, lowered: &Lowered<'_>) -> Vec<String> {
    let mut notes = lowered.notes.clone();
    notes.extend(findings_note(document.name(), document.findings().len()));
    notes
}

/// The bytes of the outputs, taken out of the storage where nobody else needs them.
fn outputs(program: &Program<'_>, mut storage: Storage<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    let ports = &program.interface.outputs;
    let each = ports.iter().enumerate().map(|(index, port)| {
        let size = output(port, &storage)?.len();
        let again = ports[index + 1..].iter().any(|p| p.buffer == port.buffer);
        if again {
            return output(port, &storage).map(<[u8]>::to_vec);
        }
        let mut bytes = storage.take(port.buffer);
        bytes.truncate(size);
        Ok(bytes)
    });
    each.collect()
}

/// What to say about the times of an order; `None` where they mean something.
pub fn order_note(program: &Program<'_>, order: Order) -> Option<String> {
    let how = match order {
        Order::Timed => return None,
        Order::Random(seed) => format!("tasks ran in a random order (seed {seed})"),
        Order::Late(task) => format!(
            "{} ran as late as the waits let it (--order)",
            program.task_name(task)
        ),
    };
    Some(format!("{how}: the times mean nothing"))
}

/// What to say about findings that keep nothing from running.
pub fn findings_note(name: &str, findings: usize) -> Option<String> {
    let (count, them) = match findings {
        0 => return None,
        1 => ("1 finding".to_owned(), "it"),
        n => (format!("{n} findings"), "them"),
    };
    Some(format!("{count}; chipless check {name} shows {them}"))
}

/// What to say about random inputs.
pub fn random_note(random: &[String], seed: u64) -> Option<String> {
    let first = random.first()?;
    Some(format!(
        "random data (seed {seed}) for {}; --input {first}=FILE.npy gives real ones",
        random.join(", ")
    ))
}

/// Buffers beyond the limit, or beyond what the system gives.
pub fn no_room(error: NoRoom) -> Failure {
    Failure::new(FailureKind::Limit, "", error)
}

/// Why a program did not come to its end.
pub fn stopped(program: &Program<'_>, stop: &Stop) -> Failure {
    match stop {
        Stop::Fault { task, fault } => {
            let kind = if fault.unsupported {
                FailureKind::Unsupported
            } else {
                FailureKind::Fault
            };
            let text = format!("{}: {}", program.task_name(*task), fault.message);
            Failure::new(kind, "", text)
        }
        Stop::Deadlock(_) => {
            let text = "the program hangs: nothing can move and work is left";
            Failure::new(FailureKind::Deadlock, "", text)
        }
    }
}

impl Finished<'_, '_> {
    /// The bytes of an output.
    pub fn output(&self, name: &str) -> Option<&[u8]> {
        let outputs = &self.program.interface.outputs;
        let index = Port::position(outputs, name)?;
        self.done.outputs.get(index).map(Vec::as_slice)
    }

    /// What the values of the run showed: integers that lost digits, for example.
    pub fn findings(&self) -> &[Finding] {
        &self.done.findings
    }

    /// When everything was where it should be.
    pub fn timeline(&self) -> &Timeline {
        &self.done.timeline
    }

    /// What there is to say about it, as text or for programs.
    pub fn report(&self, file: &'_ str, then: impl FnOnce(&Run<'_, '_>)) {
        then(&self.done.report(self.program, file, 0.0));
    }
}

impl Done {
    /// What there is to say about it.
    pub(crate) fn report<'r, 'a>(
        &'r self,
        program: &'r Program<'a>,
        file: &'r str,
        wall_ms: f64,
    ) -> Run<'r, 'a> {
        let ports = program.interface.outputs.iter().zip(&self.outputs);
        let outputs = ports.enumerate().map(|(port, (declared, bytes))| {
            let elements = declared.shape.iter().product();
            Output {
                port,
                path: None,
                statistics: Statistics::of(declared.element, elements, bytes),
            }
        });
        Run {
            file,
            program,
            timeline: &self.timeline,
            timed_by: self.timed_by.clone(),
            estimate_ns: self.estimate_ns,
            is_timed: self.is_timed,
            outputs: outputs.collect(),
            attribution: Cow::Owned(Attribution::of(program, &self.timeline)),
            nodes: BTreeMap::new(),
            what_if: None,
            ranking: None,
            faster: None,
            budgets: None,
            against: None,
            compared: None,
            searched: None,
            findings: self.findings.clone(),
            facts: self.facts.clone(),
            seed: self.seed,
            notes: self.notes.clone(),
            wall_ms,
        }
    }
}

/// Inputs up to this size are filled whole.
const WHOLE: usize = 64 << 20;
/// Larger ones are filled by chunks of so many bytes, those that a task reads: the others are never committed.
const CHUNK: usize = 1 << 20;
/// Bytes that are drawn between two looks at the clock.
const PIECE: usize = 4 << 20;
/// Runs of an access that are looked at one by one. Of one with more, everything between its first and last byte counts.
const RUNS: u64 = 1 << 16;

/// The parts of the first `size` bytes of a buffer that tasks may read.
fn needed(program: &Program<'_>, buffer: BufferId, size: usize) -> Vec<Range<usize>> {
    if size <= WHOLE {
        return std::iter::once(0..size).collect();
    }
    let mut chunks = vec![false; size.div_ceil(CHUNK)];
    let mut mark = |low: usize, high: usize| {
        if let Some(read) = chunks.get_mut(low / CHUNK..high.div_ceil(CHUNK)) {
            read.fill(true);
        }
    };
    for kernel in &program.kernels {
        kernel.accesses(&mut |Access {
                                  buffer: touched,
                                  pattern,
                                  direction,
                                  ..
                              }| {
            if touched != buffer || direction != Direction::Read {
                return;
            }
            for Range { start, end } in pattern.ranges(size as u64, RUNS) {
                mark(start as usize, end as usize);
            }
        });
    }
    let read = chunks.iter().enumerate().filter(|(_, read)| **read);
    read.map(|(chunk, _)| chunk * CHUNK..((chunk + 1) * CHUNK).min(size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::{Fault, Kernel, Location, Loop, PartId, Pattern, Span, Task, Time};

    #[derive(Debug)]
    struct Reads(Pattern);

    impl Kernel for Reads {
        fn operation(&self) -> Cow<'static, str> {
            "read".into()
        }
        fn accesses(&self, visit: &mut dyn FnMut(Access)) {
            visit(Access::read(0usize.into(), self.0.clone()));
            visit(Access::write(
                0usize.into(),
                Pattern::contiguous(0, 1 << 40),
            ));
        }
        fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
            Ok(())
        }
    }

    #[test]
    fn only_what_is_read_of_a_large_input_is_made() {
        let mut program = Program::default();
        let pattern = Pattern::new(
            5 << 20,
            100,
            [Loop {
                count: 2,
                stride: 512 << 20,
            }],
        );
        let kernel = program.kernels.push(Box::new(Reads(pattern)));
        let (none, location) = (
            Span::default(),
            Location {
                part: PartId::from_raw(0),
                offset: 0,
                size: 0,
            },
        );
        let (waits, signals, demands) = (none, none, none);
        let queue = 0usize.into();
        program.tasks.push(Task {
            queue,
            index: 0,
            kernel,
            waits,
            signals,
            demands,
            fixed: Time::ZERO,
            location,
            label: None,
        });
        let chunk = |n: usize| n << 20..(n + 1) << 20;
        assert_eq!(
            needed(&program, 0usize.into(), 4 << 30),
            [chunk(5), chunk(517)]
        );
        assert_eq!(needed(&program, 0usize.into(), 1 << 20), [chunk(0)]);
        assert!(needed(&program, 1usize.into(), 4 << 30).is_empty());
    }
}
