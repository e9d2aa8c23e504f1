//! What can be said about a program before any of its bytes are moved: its accesses stay inside their buffers, and it comes to its end.
//!
//! The second is tried by a run that only keeps time. It shows what happens on this machine; it proves nothing about
//! others.

use chipless_model::{Certainty, Direction, Finding, Place, Program, Rule, Severity};
use chipless_sim::{Deadlock, Stop, TimingOnly};

/// Rules of this module.
pub(crate) static RULES: &[&Rule] = &[&OUT_OF_BOUNDS, &DEADLOCK, &PROTOCOL];

static OUT_OF_BOUNDS: Rule = Rule {
    code: "access-out-of-bounds",
    severity: Severity::Error,
    summary: "a task reads or writes outside the buffer that it names",
    explanation: "Every task names the bytes that it reads and writes as an offset into a buffer, a run of bytes and strides. Here the \
                  first or the last of these bytes lies outside the buffer. On the hardware the task would read or overwrite whatever \
                  stands there, or fault.",
    remedy: "check the address, the sizes and the strides of the task, and the size of the buffer",
    source: "the program model: every access lies inside its buffer",
};

static DEADLOCK: Rule = Rule {
    code: "deadlock",
    severity: Severity::Error,
    summary: "the program stops before its end: nothing can move and work is left",
    explanation: "Every task that could run next waits for a signal, and every task that would give one of these signals waits itself, \
                  was never released, or does not exist. On the hardware the inference hangs until a watchdog resets the device.\n\
                  `chipless run --timing-only` shows every stuck queue, and the ring in which the tasks wait if there is one.",
    remedy: "make sure that each signal that a task waits for is given by a task that can run before it",
    source: "a run that only keeps time",
};

static PROTOCOL: Rule = Rule {
    code: "sync-protocol",
    severity: Severity::Error,
    summary: "a barrier or semaphore is used against its protocol",
    explanation: "A barrier counts its producers and consumers down and moves on to its next configuration when both are zero; a semaphore \
                  has a range. Here a signal comes that the object has no place for: one producer or consumer too many, a barrier that \
                  has no configuration, a count beyond its range, work that is released twice.",
    remedy: "make the counts of the configuration match the tasks that signal it, and order the tasks of one use before those of the next",
    source: "a run that only keeps time",
};

/// Errors that a program would meet.
pub(crate) fn findings(program: &Program<'_>) -> Vec<Finding> {
    let mut findings = out_of_bounds(program);
    if let Err(stop) = chipless_sim::run(program, &mut TimingOnly).end {
        findings.push(stopped(program, &stop));
    }
    findings
}

/// Accesses that leave their buffers. What data decides is a bound that may reach further than the data does.
pub(crate) fn out_of_bounds(program: &Program<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in program.tasks.indices() {
        program.kernel(task).accesses(&mut |access| {
            let buffer = &program.buffers[access.buffer];
            if access.certainty == Certainty::Exact && !access.pattern.fits(buffer.size) {
                let does = if access.direction == Direction::Read { "reads" } else { "writes" };
                let extent = access.pattern.extent();
                let message = format!(
                    "{} {does} bytes {:#x} to {:#x} of {}, which has {:#x} bytes",
                    program.task_name(task),
                    extent.start,
                    extent.end,
                    buffer.name,
                    buffer.size
                );
                findings.push(OUT_OF_BOUNDS.at(program.place(task), message));
            }
        });
    }
    findings
}

fn stopped(program: &Program<'_>, stop: &Stop) -> Finding {
    match stop {
        Stop::Fault { task, fault } => PROTOCOL.at(program.place(*task), format!("{}: {fault}", program.task_name(*task))),
        Stop::Deadlock(deadlock) => deadlocked(program, deadlock),
    }
}

/// The task to begin with, and the others that are stuck: those of the ring where there is one.
fn deadlocked(program: &Program<'_>, deadlock: &Deadlock) -> Finding {
    let of_ring = |s: &&chipless_sim::Stuck| deadlock.cycle.is_empty() || deadlock.cycle.contains(&s.task);
    let mut stuck = deadlock.stuck.iter().filter(of_ring).map(|s| {
        let name = |wait: &chipless_model::Wait| &program.syncs[wait.sync].name;
        let waits: Vec<String> = s.waits.iter().map(|(wait, state)| format!("{}: {state}", name(wait))).collect();
        (program.place(s.task), format!("{} waits for {}", program.task_name(s.task), waits.join("; ")))
    });
    let unreleased: usize = deadlock.unreleased.iter().map(|(_, tasks)| tasks).sum();
    let left = if unreleased == 0 { String::new() } else { format!(", and {unreleased} tasks are never released") };
    let ring = if deadlock.cycle.is_empty() { "" } else { ", in a ring" };
    match stuck.next() {
        Some((place, message)) => {
            let finding = DEADLOCK.at(place, format!("nothing can move: {message}{ring}{left}"));
            stuck.fold(finding, |finding, (place, role)| finding.with(place, role))
        }
        None => DEADLOCK.at(Place::file(), format!("nothing can move{left}")),
    }
}
