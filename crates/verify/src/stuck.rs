//! Why a program does not come to its end.

use crate::findings::Findings;
use crate::order::{End, Order};
use crate::rules;
use chipless_model::{Action, Condition, Finding, Place, Program, SyncId, Wait};
use chipless_sim::{Deadlock, Stop, Stuck, TimingOnly};

/// Related places that are worth printing.
const RELATED: usize = 6;

/// Reports a deadlock, or work that is left over.
pub(crate) fn check(program: &Program<'_>, order: &Order, findings: &mut Findings) {
    if order.end != End::Stuck {
        return;
    }
    let outcome = chipless_sim::run(program, &mut TimingOnly);
    match outcome.end {
        Err(Stop::Deadlock(deadlock)) => deadlocked(program, &deadlock, findings),
        // The engine's order is another one: what differs has been reported as an order that is not proven.
        Ok(()) | Err(Stop::Fault { .. }) => findings.add(&rules::DEADLOCK, (0, 0, 0), || {
            let message = format!("{} of {} tasks run in one legal order; then nothing can move", order.sequence.len(), program.tasks.len());
            rules::DEADLOCK.at(Place::file(), message)
        }),
    }
}

fn deadlocked(program: &Program<'_>, deadlock: &Deadlock, findings: &mut Findings) {
    if deadlock.cycle.is_empty() {
        // Those whose signal nobody can give any more are the cause; the others wait for them.
        let causes: Vec<&Stuck> = deadlock.stuck.iter().filter(|s| s.missing.is_empty()).collect();
        let causes = if causes.is_empty() { deadlock.stuck.iter().take(1).collect() } else { causes };
        for stuck in causes {
            let Some((wait, _)) = stuck.waits.first() else { continue };
            findings.add(&rules::DEADLOCK, (wait.sync.raw(), 0, 0), || starved(program, stuck));
        }
    } else {
        findings.add(&rules::DEADLOCK, (0, 0, 1), || ring(program, deadlock));
    }
    if deadlock.stuck.is_empty() {
        for (queue, count) in &deadlock.unreleased {
            findings.add(&rules::NEVER_RELEASED, (queue.raw(), 0, 0), || {
                let message = format!("{count} tasks of {} are never released", program.queues[*queue].name);
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

fn starved(program: &Program<'_>, stuck: &Stuck) -> Finding {
    let waits: Vec<String> = stuck.waits.iter().map(|(wait, state)| format!("{} ({state})", condition(program, wait))).collect();
    let mut message = format!("{} waits for {}", program.task_name(stuck.task), waits.join(" and "));
    if stuck.missing.is_empty() {
        message += ", and no task that has not run signals it";
        if let Some(sum) = stuck.waits.first().and_then(|(wait, _)| reachable(program, wait)) {
            message += &format!("; all signals of the program together give {sum}");
        }
    }
    let mut finding = rules::DEADLOCK.at(program.place(stuck.task), message);
    for task in stuck.missing.iter().take(RELATED) {
        finding = finding.with(program.place(*task), "would signal it, and has not run");
    }
    finding
}

fn ring(program: &Program<'_>, deadlock: &Deadlock) -> Finding {
    let names: Vec<String> = deadlock.cycle.iter().map(|t| program.task_name(*t)).collect();
    let first = deadlock.cycle[0];
    let message = format!("{} wait for each other in a ring", names.join(", "));
    let mut finding = rules::DEADLOCK.at(program.place(first), message);
    for (position, task) in deadlock.cycle.iter().enumerate().take(RELATED) {
        let Some(stuck) = deadlock.stuck.iter().find(|s| s.task == *task) else { continue };
        let next = &names[(position + 1) % names.len()];
        let wait = stuck.waits.first().map_or_else(String::new, |(wait, _)| condition(program, wait));
        let signaller = stuck.missing.first().map(|t| program.task_name(*t)).unwrap_or_default();
        let role = if signaller == *next {
            format!("{} waits for {wait}, which {next} signals", names[position])
        } else {
            format!("{} waits for {wait}, which {signaller} signals, which cannot run before {next}", names[position])
        };
        finding = finding.with(program.place(*task), role);
    }
    finding
}

fn condition(program: &Program<'_>, wait: &Wait) -> String {
    let name = &program.syncs[wait.sync].name;
    match wait.condition {
        Condition::Equal(n) => format!("{name} = {n}"),
        Condition::Greater(n) => format!("{name} > {n}"),
        Condition::AtLeast(n) => format!("{name} ≥ {n}"),
        Condition::Lit => name.clone(),
    }
}

/// The largest value that all signals of the program can give a counter that only rises.
fn reachable(program: &Program<'_>, wait: &Wait) -> Option<i64> {
    if wait.condition == Condition::Lit {
        return None;
    }
    let mut sum = match program.syncs[wait.sync].kind {
        chipless_model::SyncKind::Semaphore { initial, .. } => initial,
        _ => 0,
    };
    let of = |s: SyncId| s == wait.sync;
    for signal in &program.signals {
        match signal.action {
            Action::Add(s, n) if of(s) && n >= 0 => sum = sum.saturating_add(n),
            Action::Add(s, _) | Action::Set(s, _) if of(s) => return None,
            _ => {}
        }
    }
    Some(sum)
}
