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

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::{
        Access, Action, Buffer, BufferId, Condition, Fault, Kernel, Location, MemoryId, Pattern, Piece, Queue, Role, Signal, Span, Storage,
        Sync, SyncId, SyncKind, Task, Time, Wait,
    };
    use std::borrow::Cow;

    #[derive(Debug)]
    struct Writes(Vec<Access>);

    impl Kernel for Writes {
        fn operation(&self) -> Cow<'static, str> {
            "write".into()
        }
        fn accesses(&self, visit: &mut dyn FnMut(Access)) {
            self.0.iter().cloned().for_each(visit);
        }
        fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
            Ok(())
        }
    }

    /// One queue for each task; a task waits for a semaphore and adds to another, and writes some bytes of a buffer of 64.
    fn program(tasks: &[(Option<u32>, Option<u32>, Access)]) -> Program<'static> {
        let mut p = Program::default();
        p.parts.push("tasks".into());
        p.memories.push(chipless_model::Memory { name: "ddr".into(), size: 64, kind: chipless_model::MemoryKind::Dram });
        let memory = MemoryId::from_raw(0);
        p.buffers.push(Buffer { name: "y".into(), memory, address: None, size: 64, role: Role::Output, initial: Cow::Borrowed(&[]) });
        for (i, (wait, signal, access)) in tasks.iter().enumerate() {
            p.syncs.push(Sync { name: format!("S[{i}]"), kind: SyncKind::Semaphore { initial: 0, low: 0, high: 1 } });
            let queue = p.queues.push(Queue { name: format!("q{i}"), servers: 1 });
            let sync = |s: &u32| SyncId::from_raw(*s);
            let waits = wait.iter().map(|s| Wait { sync: sync(s), condition: Condition::AtLeast(1) });
            let signals = signal.iter().map(|s| Signal::on_completion(Action::Add(sync(s), 1)));
            let (waits, signals) = (Span::push(&mut p.waits, waits), Span::push(&mut p.signals, signals));
            let kernel = p.kernels.push(Box::new(Writes(vec![access.clone()])));
            let location = Location { part: 0usize.into(), offset: 16 * i as u64, size: 16 };
            let demands = Span::default();
            let first = p.tasks.push(Task { queue, index: 0, kernel, waits, signals, demands, fixed: Time(1), location, label: None });
            let piece = p.pieces.push(Piece { queue, first, count: 1 });
            p.initial.push(piece);
        }
        p
    }

    fn bytes(offset: u64, size: u64) -> Access {
        Access::write(BufferId::from_raw(0), Pattern::contiguous(offset, size))
    }

    fn said(program: &Program<'_>) -> Vec<String> {
        findings(program).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn accesses_end_with_their_buffer() {
        let p = program(&[(None, None, bytes(0, 64)), (None, None, bytes(32, 33)), (None, None, bytes(32, 99).may())]);
        assert_eq!(
            said(&p),
            ["tasks, q1[0], offset 0x10: q1[0] writes bytes 0x20 to 0x41 of y, which has 0x40 bytes [access-out-of-bounds]"]
        );
    }

    #[test]
    fn a_ring_of_waits_is_one_finding_with_every_place() {
        let p = program(&[(Some(1), Some(0), bytes(0, 1)), (Some(0), Some(1), bytes(0, 1)), (Some(1), None, bytes(0, 1))]);
        let found = findings(&p);
        assert_eq!(said(&p), ["tasks, q0[0], offset 0x0: nothing can move: q0[0] waits for S[1]: its value is 0, in a ring [deadlock]"]);
        let related: Vec<String> = found[0].related.iter().map(|(place, role)| format!("{place}: {role}")).collect();
        assert_eq!(related, ["tasks, q1[0], offset 0x10: q1[0] waits for S[0]: its value is 0"]);
    }

    #[test]
    fn a_signal_too_many_is_told_with_its_task() {
        let p = program(&[(None, Some(0), bytes(0, 1)), (None, Some(0), bytes(0, 1))]);
        let said = said(&p);
        assert!(said.len() == 1 && said[0].starts_with("tasks, q1[0], offset 0x10: q1[0]: S[0] leaves its range"), "{said:?}");
    }
}
