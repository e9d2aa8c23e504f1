//! Why a program stopped: which tasks are stuck, on what, who should have signalled, and the ring in which they wait.

use crate::bars::widest;
use crate::style::{Paint, clean, count, wait as wait_text};
use chipless_model::{Fault, Program, Severity, TaskId};
use chipless_sim::{Deadlock, Stop, Stuck, Timeline};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// Stuck tasks and missing signallers that are named; the rest is counted.
const NAMED_TASKS: usize = 16;
const NAMED_SIGNALLERS: usize = 4;

/// The report about a run that did not come to its end.
pub fn text(
    file: &str,
    program: &Program<'_>,
    timeline: &Timeline,
    stop: &Stop,
    paint: Paint,
) -> String {
    match stop {
        Stop::Deadlock(deadlock) => deadlock_text(file, program, timeline, deadlock, paint),
        Stop::Fault { task, fault } => fault_text(file, program, timeline, *task, fault, paint),
    }
}

/// A deadlock for programs: `failure.deadlock` of `run --json`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DeadlockReport {
    /// Tasks that cannot start.
    pub stuck: Vec<StuckReport>,
    /// Queues with tasks that were never released, and how many.
    pub unreleased: Vec<UnreleasedReport>,
    /// Tasks that wait for each other in a ring.
    pub cycle: Vec<String>,
}

/// A task that cannot start.
#[derive(Debug, JsonSchema, Serialize)]
pub struct StuckReport {
    /// Its name.
    pub task: String,
    /// The syncs that it waits for, each with its state in words.
    pub waits: Vec<WaitReport>,
    /// Tasks that have not run and whose signals it needs.
    pub missing: Vec<String>,
}

/// A condition that does not hold.
#[derive(Debug, JsonSchema, Serialize)]
pub struct WaitReport {
    /// Name of the sync.
    pub sync: String,
    /// Its state in words.
    pub state: String,
}

/// A queue with tasks that were never released.
#[derive(Debug, JsonSchema, Serialize)]
pub struct UnreleasedReport {
    /// Name of the queue.
    pub queue: String,
    /// How many tasks.
    pub tasks: usize,
}

/// A deadlock for programs.
pub fn report(program: &Program<'_>, deadlock: &Deadlock) -> DeadlockReport {
    let names = |tasks: &[TaskId]| tasks.iter().map(|t| program.task_name(*t)).collect();
    let stuck = deadlock.stuck.iter().map(|stuck| StuckReport {
        task: program.task_name(stuck.task),
        waits: stuck
            .waits
            .iter()
            .map(|(wait, state)| WaitReport {
                sync: program.syncs[wait.sync].name.clone(),
                state: state.clone(),
            })
            .collect(),
        missing: names(&stuck.missing),
    });
    let unreleased = deadlock.unreleased.iter();
    DeadlockReport {
        stuck: stuck.collect(),
        unreleased: unreleased
            .map(|(queue, tasks)| UnreleasedReport {
                queue: program.queues[*queue].name.clone(),
                tasks: *tasks,
            })
            .collect(),
        cycle: names(&deadlock.cycle),
    }
}

fn fault_text(
    file: &str,
    program: &Program<'_>,
    timeline: &Timeline,
    task: TaskId,
    fault: &Fault,
    paint: Paint,
) -> String {
    let title = if fault.unsupported {
        "not supported"
    } else {
        "fault"
    };
    let head = paint.severity(
        Severity::Error,
        format!("{title} in {}", program.task_name(task)),
    );
    let mut out = format!("{file}: {head}: {}\n", clean(&fault.message));
    let _ = writeln!(
        out,
        "  {} {}",
        paint.frame("-->"),
        what(program, task, paint)
    );
    let _ = writeln!(
        out,
        "   {} {}",
        paint.frame("="),
        progress(program, timeline)
    );
    out
}

fn deadlock_text(
    file: &str,
    program: &Program<'_>,
    timeline: &Timeline,
    deadlock: &Deadlock,
    paint: Paint,
) -> String {
    let mut out = format!(
        "{file}: {}: nothing can move, {}\n",
        paint.severity(Severity::Error, "deadlock"),
        progress(program, timeline)
    );
    if !deadlock.stuck.is_empty() {
        let _ = writeln!(out, "\n{}", paint.strong("stuck"));
        for stuck in deadlock.stuck.iter().take(NAMED_TASKS) {
            stuck_task(&mut out, program, stuck, paint);
        }
        if let more @ 1.. = deadlock.stuck.len().saturating_sub(NAMED_TASKS) {
            let _ = writeln!(out, "  and {}", count(more, "more task"));
        }
    }
    if !deadlock.unreleased.is_empty() {
        let _ = writeln!(out, "\n{}", paint.strong("never released"));
        let width = widest(
            deadlock
                .unreleased
                .iter()
                .map(|(queue, _)| &*program.queues[*queue].name),
        );
        for (queue, tasks) in &deadlock.unreleased {
            let _ = writeln!(
                out,
                "  {:width$}  {}",
                program.queues[*queue].name,
                count(*tasks, "task")
            );
        }
    }
    if !deadlock.cycle.is_empty() {
        let _ = writeln!(out, "\n{}", paint.strong("they wait for each other"));
        ring(&mut out, program, deadlock, paint);
    }
    out
}

/// `14 of 28 tasks ran in 9.68 µs`
fn progress(program: &Program<'_>, timeline: &Timeline) -> String {
    format!(
        "{} of {} ran in {}",
        timeline.completed(),
        count(program.tasks.len(), "task"),
        timeline.end
    )
}

/// A task with its operation and its place in the file.
fn what(program: &Program<'_>, task: TaskId, paint: Paint) -> String {
    let operation = program.kernel(task).operation();
    let label = program.tasks[task]
        .label
        .as_deref()
        .map(|l| format!("  \"{}\"", clean(l)))
        .unwrap_or_default();
    let place = program.place(task);
    let place = match (place.position, place.offset) {
        (Some((line, column)), _) => format!("{}:{line}:{column}", place.part),
        (None, Some(offset)) => format!("{}, offset {offset:#x}", place.part),
        (None, None) => place.part.to_string(),
    };
    format!(
        "{}  {}{label}  {}",
        paint.strong(program.task_name(task)),
        paint.operation(clean(&operation)),
        paint.dim(clean(&place))
    )
}

fn stuck_task(out: &mut String, program: &Program<'_>, stuck: &Stuck, paint: Paint) {
    let _ = writeln!(out, "  {}", what(program, stuck.task, paint));
    for (wait, state) in &stuck.waits {
        let _ = writeln!(
            out,
            "      waits for {}: {state}",
            paint.strong(wait_text(program, wait))
        );
    }
    if stuck.missing.is_empty() {
        let _ = writeln!(out, "      no task is left that would signal it");
    } else {
        let _ = writeln!(
            out,
            "      should be signalled by {}",
            names(program, &stuck.missing)
        );
    }
}

fn names(program: &Program<'_>, tasks: &[TaskId]) -> String {
    let named: Vec<String> = tasks
        .iter()
        .take(NAMED_SIGNALLERS)
        .map(|t| program.task_name(*t))
        .collect();
    match tasks.len().saturating_sub(NAMED_SIGNALLERS) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// One line for each task of the ring, joined at the left.
fn ring(out: &mut String, program: &Program<'_>, deadlock: &Deadlock, paint: Paint) {
    let tasks: Vec<String> = deadlock
        .cycle
        .iter()
        .map(|t| program.task_name(*t))
        .collect();
    let width = widest(tasks.iter().map(String::as_str));
    for (i, (name, task)) in tasks.iter().zip(&deadlock.cycle).enumerate() {
        let edge = match (i == 0, i + 1 == tasks.len()) {
            (true, true) => "╶─▶",
            (true, false) => "╭─▶",
            (false, false) => "│  ",
            (false, true) => "╰──",
        };
        let stuck = deadlock.stuck.iter().find(|s| s.task == *task);
        let on: Vec<String> = stuck
            .into_iter()
            .flat_map(|s| &s.waits)
            .map(|(wait, _)| wait_text(program, wait))
            .collect();
        let next = &tasks[(i + 1) % tasks.len()];
        let on = on.join(" and ");
        let _ = writeln!(
            out,
            "  {} {}  waits for {on}, which {next} holds up",
            paint.frame(edge),
            paint.strong(format_args!("{name:width$}"))
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use chipless_sim::TimingOnly;

    fn report(program: &Program<'_>) -> String {
        let outcome = chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly);
        text(
            "model.blob",
            program,
            &outcome.timeline,
            &outcome.end.unwrap_err(),
            Paint::PLAIN,
        )
    }

    #[test]
    fn a_forgotten_signal() {
        insta::assert_snapshot!(report(&example::forgetful()));
    }

    #[test]
    fn a_ring_is_drawn() {
        insta::assert_snapshot!(report(&example::ring()));
    }

    #[test]
    fn a_fault_names_its_task() {
        let program = example::pipeline();
        let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
        let stop = |fault| Stop::Fault {
            task: TaskId::from_raw(3),
            fault,
        };
        let said = |fault| {
            text(
                "model.blob",
                &program,
                &outcome.timeline,
                &stop(fault),
                Paint::PLAIN,
            )
        };
        insta::assert_snapshot!(said(Fault::program(
            "reads y at 0x1000, beyond its 4096 bytes"
        )));
        assert!(
            said(Fault::unsupported("sparse weights"))
                .starts_with("model.blob: not supported in dpu0[1]: sparse weights\n")
        );
    }
}
