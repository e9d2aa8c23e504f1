//! What is reported of signals and waits.

use super::{Faulted, Replay};
use crate::clock::{Clock, reaches};
use crate::rules;
use chipless_model::{Action, Counter, Finding, Program, Rule, SyncId, TaskId};

impl Replay<'_, '_> {
    pub(super) fn leaves_range(
        &mut self,
        sync: SyncId,
        counter: &Counter,
        n: i64,
        task: TaskId,
    ) -> Faulted {
        let is_set_twice = (counter.low, counter.high) == (0, 1) && n > 0;
        let rule = if is_set_twice {
            &rules::EVENT_TWICE
        } else {
            &rules::SEMAPHORE_RANGE
        };
        let (program, before) = (self.program, self.values[sync]);
        self.findings.add(rule, (sync.raw(), 0, 0), || {
            let (name, task_name) = (&program.syncs[sync].name, program.task_name(task));
            let (after, Counter { low, high, .. }) = (i128::from(before) + i128::from(n), counter);
            rule.at(
                program.place(task),
                format!(
                    "{task_name} takes {name} from {before} to {after}; it holds {low} to {high}"
                ),
            )
        });
        Faulted
    }

    /// Participants of a barrier's previous use that nothing orders before a point.
    pub(super) fn unordered(&self, sync: SyncId, clock: &Clock) -> Vec<TaskId> {
        let barrier = self.barriers[sync].as_ref();
        let previous = barrier.into_iter().flat_map(|b| b.previous.iter().copied());
        previous
            .filter(|t| !reaches(clock, self.order.completion(*t)))
            .collect()
    }

    pub(super) fn reuse(&mut self, sync: SyncId, task: TaskId, culprits: &[TaskId], what: &str) {
        let program = self.program;
        let number = self.barriers[sync]
            .as_ref()
            .and_then(|b| b.active())
            .map(|c| program.configurations[c].number);
        // Whoever is late only consumes: it holds the previous use, and hands nothing on.
        let only_consumes = |t: &TaskId| {
            let signals = program.signals(*t);
            signals
                .iter()
                .all(|s| matches!(s.action, Action::Consume(_)))
                && signals.iter().any(|s| s.action == Action::Consume(sync))
        };
        let is_late =
            !program.meant.is_empty() && !culprits.is_empty() && culprits.iter().all(only_consumes);
        let rule: &'static Rule = if is_late {
            &rules::REUSE_LATE
        } else {
            &rules::REUSE
        };
        let culprit = culprits.first().copied();
        self.findings
            .add(rule, (sync.raw(), number.unwrap_or(u32::MAX), 0), || {
                let (name, task_name) = (&program.syncs[sync].name, program.task_name(task));
                let number = number.map_or_else(String::new, |n| format!(" (use {n})"));
                let because = culprit.map_or_else(String::new, |c| {
                    format!(": nothing orders it after {}", program.task_name(c))
                });
                let finding = rule.at(
                    program.place(task),
                    format!("{task_name} {what} of {name}{number}{because}"),
                );
                relate(program, finding, culprit, "takes part in the previous use")
            });
    }

    pub(super) fn barrier_fault(&mut self, sync: SyncId, task: TaskId, what: &str) -> Faulted {
        let program = self.program;
        let active = self.barriers[sync].as_ref().and_then(|b| b.active());
        self.findings
            .add(&rules::BARRIER_FAULT, (sync.raw(), 0, 0), || {
                let (name, task_name) = (&program.syncs[sync].name, program.task_name(task));
                let finding = rules::BARRIER_FAULT.at(
                    program.place(task),
                    format!("{task_name} {}", what.replace("{}", name)),
                );
                match active {
                    Some(active) => finding.with(
                        program.configurations[active].place.clone(),
                        "its configuration",
                    ),
                    None => finding,
                }
            });
        Faulted
    }

    pub(super) fn unproven(&mut self, sync: SyncId, task: TaskId, what: &str) {
        let rule: &'static Rule = &rules::CONSERVATIVE;
        self.findings.add(rule, (sync.raw(), 0, 0), || {
            let (name, task_name) = (&self.program.syncs[sync].name, self.program.task_name(task));
            rule.at(
                self.program.place(task),
                format!("{task_name} {what} ({name}) in an order that is not proven"),
            )
        });
    }
}

pub(super) fn relate(
    program: &Program<'_>,
    finding: Finding,
    task: Option<TaskId>,
    role: &str,
) -> Finding {
    match task {
        Some(task) => finding.with(program.place(task), role),
        None => finding,
    }
}
