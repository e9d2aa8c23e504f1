//! Why a program does not come to its end.

use crate::findings::Findings;
use crate::order::{End, Order};
use crate::rules;
use chipless_model::{
    Action, Condition, Counter, Finding, IndexVec, PieceId, Place, Program, SyncId, SyncKind,
    TaskId, Wait,
};
use chipless_sim::{Deadlock, Stop, Stuck, TimingOnly};
use std::fmt::Write;

/// Related places that are worth printing.
const RELATED: usize = 6;

/// Reports a deadlock, or work that is left over.
pub(crate) fn check(program: &Program<'_>, order: &Order, findings: &mut Findings) {
    if order.end != End::Stuck {
        return;
    }
    let outcome = chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly);
    match outcome.end {
        Err(Stop::Deadlock(deadlock)) => deadlocked(program, order, &deadlock, findings),
        // The engine's order is another one: what differs has been reported as an order that is not proven.
        // And where a count is wrong, that is the cause.
        Ok(()) | Err(Stop::Fault { .. }) if findings.has_errors() => {}
        Ok(()) | Err(Stop::Fault { .. }) => findings.add(&rules::DEADLOCK, (0, 0, 0), || {
            let message = format!(
                "{} of {} tasks run in one legal order; then nothing can move",
                order.sequence.len(),
                program.tasks.len()
            );
            rules::DEADLOCK.at(Place::file(), message)
        }),
    }
}

fn deadlocked(program: &Program<'_>, order: &Order, deadlock: &Deadlock, findings: &mut Findings) {
    let chain = Chain::new(program, order, deadlock);
    // Those whose signal nobody can give any more are the cause; the others wait for them.
    let mut causes: Vec<&Stuck> = deadlock
        .stuck
        .iter()
        .filter(|s| s.missing.is_empty())
        .collect();
    if causes.is_empty() {
        if let Some(ring) = deadlock.stuck.iter().find_map(|s| chain.ring(s.task)) {
            return findings.add(&rules::DEADLOCK, (0, 0, 1), || in_ring(program, &ring));
        }
        causes.extend(deadlock.stuck.first());
    }
    for stuck in causes {
        let Some((wait, _)) = stuck.waits.first() else {
            continue;
        };
        findings.add(&rules::DEADLOCK, (wait.sync.raw(), 0, 0), || {
            starved(program, stuck)
        });
    }
    if deadlock.stuck.is_empty() {
        for (queue, count) in &deadlock.unreleased {
            findings.add(&rules::NEVER_RELEASED, (queue.raw(), 0, 0), || {
                let message = format!(
                    "{count} tasks of {} are never released",
                    program.queues[*queue].name
                );
                rules::NEVER_RELEASED.at(Place::file(), message)
            });
        }
        if let (true, Some(completion)) = (deadlock.unreleased.is_empty(), program.completion) {
            let configuration = &program.configurations[completion];
            findings.add(&rules::DEADLOCK, (0, 0, 2), || {
                let name = &program.syncs[configuration.barrier].name;
                let message = format!(
                    "every task has run, and {name} (use {}), which reports the end of the program, is not lit: it expects {} producers",
                    configuration.number, configuration.producers
                );
                rules::DEADLOCK.at(configuration.place.clone(), message)
            });
        }
    }
}

/// Why tasks that have not run cannot run: for each, another one that has to run first.
struct Chain<'c, 'p, 'a> {
    program: &'p Program<'a>,
    order: &'c Order,
    deadlock: &'c Deadlock,
    piece_of: IndexVec<TaskId, Option<PieceId>>,
}

impl<'c, 'p, 'a> Chain<'c, 'p, 'a> {
    fn new(program: &'p Program<'a>, order: &'c Order, deadlock: &'c Deadlock) -> Self {
        let mut piece_of = IndexVec::from_vec(vec![None; program.tasks.len()]);
        for (id, piece) in program.pieces.iter_enumerated() {
            piece.tasks().for_each(|task| piece_of[task] = Some(id));
        }
        Chain {
            program,
            order,
            deadlock,
            piece_of,
        }
    }

    /// A task that has to run before this one, and why.
    fn before(&self, task: TaskId) -> Option<(TaskId, String)> {
        let program = self.program;
        if let Some(stuck) = self.deadlock.stuck.iter().find(|s| s.task == task) {
            let (wait, _) = stuck.waits.first()?;
            let next = *stuck.missing.first()?;
            return Some((
                next,
                format!(
                    "waits for {}, which {} signals",
                    condition(program, wait),
                    program.task_name(next)
                ),
            ));
        }
        let piece = self.piece_of[task]?;
        let ahead = program.pieces[piece]
            .tasks()
            .take_while(|t| *t != task)
            .find(|t| !self.order.ran(*t));
        if let Some(ahead) = ahead {
            return Some((
                ahead,
                format!("is queued behind {}", program.task_name(ahead)),
            ));
        }
        let waiting = |t: &TaskId| !self.order.ran(*t) && *t != task;
        let releaser = program.tasks.indices().filter(waiting).find(|t| {
            program
                .signals(*t)
                .iter()
                .any(|s| s.action == Action::Release(piece))
        });
        if let Some(next) = releaser {
            return Some((next, format!("is released by {}", program.task_name(next))));
        }
        if let Some(configuration) = program
            .configurations
            .iter()
            .find(|c| c.releases.contains(&piece))
        {
            let takes_part = |t: &TaskId| {
                program
                    .signals(*t)
                    .iter()
                    .any(|s| matches!(s.action, Action::Produce(b) | Action::Consume(b) if b == configuration.barrier))
            };
            let next = program.tasks.indices().filter(waiting).find(takes_part)?;
            let name = &program.syncs[configuration.barrier].name;
            return Some((
                next,
                format!(
                    "is released when {name} (use {}) retires, which needs {}",
                    configuration.number,
                    program.task_name(next)
                ),
            ));
        }
        let queue = program.tasks[task].queue;
        let next = self
            .deadlock
            .stuck
            .iter()
            .map(|s| s.task)
            .find(|t| program.tasks[*t].queue == queue && *t != task)?;
        Some((
            next,
            format!("is queued behind {}", program.task_name(next)),
        ))
    }

    /// Tasks that wait for each other, each with the reason why it waits for the next.
    fn ring(&self, start: TaskId) -> Option<Vec<(TaskId, String)>> {
        let mut path: Vec<(TaskId, String)> = Vec::new();
        let mut at = start;
        loop {
            if let Some(first) = path.iter().position(|(task, _)| *task == at) {
                return Some(path.split_off(first));
            }
            let (next, why) = self.before(at)?;
            path.push((at, why));
            at = next;
        }
    }
}

fn in_ring(program: &Program<'_>, ring: &[(TaskId, String)]) -> Finding {
    let names: Vec<String> = ring
        .iter()
        .take(RELATED)
        .map(|(task, _)| program.task_name(*task))
        .collect();
    let more = ring.len().saturating_sub(RELATED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let message = match ring {
        [_] => format!("{} waits for itself", names.join("")),
        _ => format!("{}{more} wait for each other in a ring", names.join(", ")),
    };
    let place = ring
        .first()
        .map(|(task, _)| program.place(*task))
        .unwrap_or_default();
    let mut finding = rules::DEADLOCK.at(place, message);
    let waits = ring.iter().filter_map(|(task, _)| {
        let wait = program.waits(*task).first()?;
        let (name, condition) = (program.task_name(*task), condition(program, wait));
        Some(format!("{name} for {condition}"))
    });
    let waits: Vec<String> = waits.take(RELATED).collect();
    if !waits.is_empty() {
        let waits = waits.join(", ");
        finding = finding.hint(format!(
            "Remove one of these waits, or give its signal earlier: {waits}."
        ));
    }
    ring.iter()
        .take(RELATED)
        .fold(finding, |finding, (task, why)| {
            finding.with(
                program.place(*task),
                format!("{} {why}", program.task_name(*task)),
            )
        })
}

fn starved(program: &Program<'_>, stuck: &Stuck) -> Finding {
    let waits: Vec<String> = stuck
        .waits
        .iter()
        .map(|(wait, state)| format!("{} ({state})", condition(program, wait)))
        .collect();
    let mut message = format!(
        "{} waits for {}",
        program.task_name(stuck.task),
        waits.join(" and ")
    );
    if stuck.missing.is_empty() {
        message += ", and no task that has not run signals it";
        if let Some(sum) = stuck
            .waits
            .first()
            .and_then(|(wait, _)| reachable(program, wait))
        {
            let _ = write!(message, "; all signals of the program together give {sum}");
        }
    }
    let mut finding = rules::DEADLOCK.at(program.place(stuck.task), message);
    if let (true, Some((wait, _))) = (stuck.missing.is_empty(), stuck.waits.first()) {
        let name = &program.syncs[wait.sync].name;
        let waited = condition(program, wait);
        finding = match reachable(program, wait) {
            Some(sum) if sum > 0 => finding.hint(format!(
                "Let it wait for {name} ≥ {sum} or less, or add the signal that is missing."
            )),
            _ if wait.condition == Condition::Lit => finding.hint(format!(
                "Set the producer count of {name} to the number of tasks that signal it in this use, or remove the wait."
            )),
            _ => finding.hint(format!(
                "Remove the wait for {waited}, or let a task that runs before it signal {name}."
            )),
        };
    }
    for task in stuck.missing.iter().take(RELATED) {
        finding = finding.with(program.place(*task), "would signal it, and has not run");
    }
    finding
}

/// What a wait is for: `sg00 $S[7] ≥ 2`, or the name alone of what is there or not.
pub(crate) fn condition(program: &Program<'_>, wait: &Wait) -> String {
    let name = &program.syncs[wait.sync].name;
    match wait.condition {
        Condition::Equal(1) | Condition::AtLeast(1)
            if program.syncs[wait.sync].kind == SyncKind::Counter(Counter::FLAG) =>
        {
            name.clone()
        }
        Condition::Equal(n) => format!("{name} = {n}"),
        Condition::AtLeast(n) => format!("{name} ≥ {n}"),
        Condition::Lit => name.clone(),
    }
}

/// The largest value that all signals of the program can give a counter that only rises.
fn reachable(program: &Program<'_>, wait: &Wait) -> Option<i64> {
    let SyncKind::Counter(Counter { initial, .. }) = program.syncs[wait.sync].kind else {
        return None;
    };
    let mut sum = initial;
    let of = |s: SyncId| s == wait.sync;
    for signal in &program.signals {
        match signal.action {
            Action::Add(s, n) if of(s) && n >= 0 => sum = sum.saturating_add(n),
            Action::Add(s, _) if of(s) => return None,
            _ => {}
        }
    }
    Some(sum)
}
