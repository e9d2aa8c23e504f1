//! What stands still in an engine that cannot go on.

use super::Engine;
use crate::deadlock::{Deadlock, Stuck};
use crate::timeline::State;
use chipless_model::{Action, PieceId, Program, SyncId, SyncKind, TaskId, Wait};

impl Engine<'_, '_> {
    /// What stands still, and why.
    pub(super) fn deadlock(&self) -> Deadlock {
        let engine = self;
        let program = engine.program;
        let heads: Vec<TaskId> = engine
            .servers
            .iter()
            .filter(|s| s.task != s.end)
            .map(|s| TaskId::from_raw(s.task))
            .collect();
        let stuck: Vec<Stuck> = heads
            .iter()
            .map(|&task| {
                let waits: Vec<(Wait, String)> = program
                    .waits_and_uses(task)
                    .filter(|(wait, meant)| !engine.holds(wait, *meant))
                    .map(|(wait, _)| (*wait, state(engine, wait.sync)))
                    .collect();
                let missing = waits
                    .iter()
                    .flat_map(|(wait, _)| signallers(engine, wait.sync))
                    .collect();
                Stuck {
                    task,
                    waits,
                    missing,
                }
            })
            .collect();
        let unreleased = program
            .queues
            .indices()
            .filter_map(|queue| {
                let pieces = program
                    .pieces
                    .iter_enumerated()
                    .filter(|(id, p)| p.queue == queue && !engine.is_released(*id));
                let tasks: usize = pieces.map(|(_, p)| p.count as usize).sum();
                (tasks > 0).then_some((queue, tasks))
            })
            .collect();
        let cycle = cycle(program, &stuck);
        Deadlock {
            stuck,
            unreleased,
            cycle,
        }
    }
}

fn state(engine: &Engine<'_, '_>, sync: SyncId) -> String {
    match (&engine.program.syncs[sync].kind, engine.barrier(sync)) {
        (SyncKind::Barrier { .. }, Some(barrier)) => match barrier.active() {
            Some(active) => {
                let (producers, consumers) = barrier.left();
                let configuration = &engine.program.configurations[*active];
                format!(
                    "in use {} it still needs {producers} of {} producers, and {consumers} of {} consumers",
                    configuration.number, configuration.producers, configuration.consumers
                )
            }
            None => "it has no configuration".to_owned(),
        },
        _ => format!("its value is {}", engine.value(sync)),
    }
}

/// Tasks that have not completed and signal this sync.
fn signallers(engine: &Engine<'_, '_>, sync: SyncId) -> Vec<TaskId> {
    let program = engine.program;
    let signals = |action: &Action| match *action {
        Action::Add(s, n) => s == sync && n > 0,
        Action::Produce(s) => s == sync,
        Action::Configure(c) => program.configurations[c].barrier == sync,
        Action::Consume(_) | Action::Release(_) => false,
    };
    let pending = |task: &TaskId| engine.timeline.tasks[*task].state != State::Done;
    program
        .tasks
        .indices()
        .filter(pending)
        .filter(|task| program.signals(*task).iter().any(|s| signals(&s.action)))
        .collect()
}

/// Follows, from each stuck task, the first missing signaller to the stuck task that blocks it, until a task repeats.
fn cycle(program: &Program<'_>, stuck: &[Stuck]) -> Vec<TaskId> {
    let piece_of = |task: TaskId| -> Option<PieceId> {
        program
            .pieces
            .position(|p| (p.first.raw()..p.first.raw() + p.count).contains(&task.raw()))
    };
    let blocker = |task: TaskId| {
        let queue = program.tasks[task].queue;
        let same_piece =
            |s: &&Stuck| piece_of(s.task).is_some() && piece_of(s.task) == piece_of(task);
        let on_queue = |s: &&Stuck| program.tasks[s.task].queue == queue;
        stuck
            .iter()
            .find(same_piece)
            .or_else(|| stuck.iter().find(on_queue))
    };
    for start in stuck {
        let mut path: Vec<TaskId> = Vec::new();
        let mut at = start;
        loop {
            if let Some(first) = path.iter().position(|t| *t == at.task) {
                return path.split_off(first);
            }
            path.push(at.task);
            match at.missing.iter().find_map(|m| blocker(*m)) {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    Vec::new()
}
