//! What can be checked of the use of barriers before anything runs: who signals how often, and what is configured.

use crate::findings::Findings;
use crate::rules;
use chipless_model::{
    Action, ConfigurationId, Finding, IndexVec, Program, Rule, SyncId, SyncKind, TaskId,
};

/// What tasks do to one barrier.
#[derive(Clone, Debug, Default)]
struct Uses {
    producers: u64,
    consumers: u64,
    first: Option<TaskId>,
    last: Option<TaskId>,
    configurations: Vec<ConfigurationId>,
}

/// Reports barriers whose configurations and signals do not add up. Where the program is `stuck`, tasks that were to come later may
/// be unknown: the barrier that lacks least is shown, and the others count for it.
pub(crate) fn check(program: &Program<'_>, stuck: bool, findings: &mut Findings) {
    let mut lacking: Vec<(u64, &'static Rule, Finding)> = Vec::new();
    let uses = uses_of(program, findings);
    for (sync, uses) in uses.iter_enumerated() {
        if !matches!(program.syncs[sync].kind, SyncKind::Barrier { .. }) {
            continue;
        }
        if uses.configurations.is_empty() {
            if let Some(task) = uses.first {
                findings.add(&rules::UNPROGRAMMED, (sync.raw(), 0, 0), || {
                    let message = format!(
                        "{} waits for or signals {}, which nobody configures",
                        program.task_name(task),
                        program.syncs[sync].name
                    );
                    rules::UNPROGRAMMED.at(program.place(task), message)
                });
            }
            continue;
        }
        let total = |count: fn(&chipless_model::Configuration) -> u32| -> u64 {
            uses.configurations
                .iter()
                .map(|c| u64::from(count(&program.configurations[*c])))
                .sum()
        };
        let (producers, consumers) = (total(|c| c.producers), total(|c| c.consumers));
        if producers != uses.producers {
            let finding = || {
                let message = mismatch(
                    program,
                    sync,
                    uses,
                    producers,
                    "producer",
                    uses.producers,
                    "signal",
                );
                relate(
                    rules::PRODUCER_COUNT.at(place(program, uses), message),
                    program,
                    uses,
                )
            };
            match producers.checked_sub(uses.producers).filter(|_| stuck) {
                Some(lacks) => lacking.push((lacks, &rules::PRODUCER_COUNT, finding())),
                None => findings.add(&rules::PRODUCER_COUNT, (sync.raw(), 0, 0), finding),
            }
        }
        // Whoever waits for the end of the program is not one of its tasks.
        let outside = uses
            .configurations
            .iter()
            .filter(|c| program.completion == Some(**c));
        let outside: u64 = outside
            .map(|c| u64::from(program.configurations[*c].consumers))
            .sum();
        if !(consumers - outside..=consumers).contains(&uses.consumers) {
            let finding = || {
                let message = mismatch(
                    program,
                    sync,
                    uses,
                    consumers,
                    "consumer",
                    uses.consumers,
                    "consume",
                );
                relate(
                    rules::CONSUMER_COUNT.at(place(program, uses), message),
                    program,
                    uses,
                )
            };
            match (consumers - outside)
                .checked_sub(uses.consumers)
                .filter(|_| stuck)
            {
                Some(lacks) => lacking.push((lacks, &rules::CONSUMER_COUNT, finding())),
                None => findings.add(&rules::CONSUMER_COUNT, (sync.raw(), 0, 0), finding),
            }
        }
    }
    lacking.sort_by_key(|(lacks, ..)| *lacks);
    for (_, rule, finding) in lacking {
        findings.add(rule, (u32::MAX, 0, 0), || finding);
    }
}

/// What each barrier is used for. Configurations that nobody gives are reported.
fn uses_of(program: &Program<'_>, findings: &mut Findings) -> IndexVec<SyncId, Uses> {
    let mut uses: IndexVec<SyncId, Uses> =
        IndexVec::from_vec(vec![Uses::default(); program.syncs.len()]);
    let mut given = vec![false; program.configurations.len()];
    for sync in &program.syncs {
        if let SyncKind::Barrier { preloaded, .. } = &sync.kind {
            for configuration in preloaded {
                given[configuration.index()] = true;
            }
        }
    }
    for task in program.tasks.indices() {
        for wait in program.waits(task) {
            uses[wait.sync].first.get_or_insert(task);
        }
        for signal in program.signals(task) {
            match signal.action {
                Action::Produce(sync) => {
                    uses[sync].producers += 1;
                    uses[sync].first.get_or_insert(task);
                    uses[sync].last = Some(task);
                }
                Action::Consume(sync) => {
                    uses[sync].consumers += 1;
                    uses[sync].first.get_or_insert(task);
                }
                Action::Configure(configuration) => given[configuration.index()] = true,
                Action::Add(..) | Action::Release(_) => {}
            }
        }
    }
    for (id, configuration) in program.configurations.iter_enumerated() {
        if given[id.index()] {
            uses[configuration.barrier].configurations.push(id);
        } else {
            findings.add(&rules::NEVER_CONFIGURED, (id.raw(), 0, 0), || {
                let name = &program.syncs[configuration.barrier].name;
                let message = format!("use {} of {name} is never configured", configuration.number);
                rules::NEVER_CONFIGURED.at(configuration.place.clone(), message)
            });
        }
    }
    uses
}

fn place(program: &Program<'_>, uses: &Uses) -> chipless_model::Place {
    uses.configurations
        .first()
        .map(|c| program.configurations[*c].place.clone())
        .unwrap_or_default()
}

fn relate(finding: Finding, program: &Program<'_>, uses: &Uses) -> Finding {
    let mut finding = finding;
    for configuration in uses.configurations.iter().skip(1).take(3) {
        let configuration = &program.configurations[*configuration];
        finding = finding.with(
            configuration.place.clone(),
            format!("use {} of the same barrier", configuration.number),
        );
    }
    match uses.last {
        Some(task) => finding.with(program.place(task), "the last task that signals it"),
        None => finding,
    }
}

fn mismatch(
    program: &Program<'_>,
    sync: SyncId,
    uses: &Uses,
    says: u64,
    role: &str,
    found: u64,
    verb: &str,
) -> String {
    let name = &program.syncs[sync].name;
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let tasks = match found {
        0 => format!("no task {verb}s it"),
        1 => format!("1 signal of a task {verb}s it"),
        n => format!("{n} signals of tasks {verb} it"),
    };
    match &uses.configurations[..] {
        [only] => {
            let number = program.configurations[*only].number;
            format!(
                "{name} (use {number}) expects {says} {role}{}, and {tasks}",
                s(says)
            )
        }
        several => format!(
            "the {} uses of {name} expect {says} {role}{} together, and {tasks}",
            several.len(),
            s(says)
        ),
    }
}
