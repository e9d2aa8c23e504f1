//! One change of a program, made and taken back.

use chipless_model::{
    Action, Condition, Counter, Moment, Program, Signal, Span, Sync, SyncId, SyncKind, TaskId, Wait,
};

/// One change of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Edit {
    /// The task waits for a value, instead of a smaller one of the same counter.
    Wait(TaskId, SyncId, i64),
    /// The wait of a task is for something else.
    Replace(TaskId, Wait, Wait),
    /// The task does not wait.
    Remove(TaskId, Wait),
    /// The task raises a counter when it is done.
    Signal(TaskId, SyncId, i64),
    /// The task raises another counter instead.
    Instead(TaskId, SyncId, SyncId),
    /// The task raises a counter when it is done, not when it has read its sources.
    Late(TaskId, SyncId),
    /// The first task raises a counter that nothing uses so far; the second one waits for it.
    Edge(TaskId, TaskId),
}

impl Edit {
    /// The tasks that it changes.
    pub(super) fn tasks(self) -> Vec<TaskId> {
        match self {
            Edit::Wait(task, ..)
            | Edit::Replace(task, ..)
            | Edit::Remove(task, _)
            | Edit::Signal(task, ..)
            | Edit::Instead(task, ..)
            | Edit::Late(task, _) => vec![task],
            Edit::Edge(giver, taker) => vec![giver, taker],
        }
    }
}

/// Makes a change, asks, and takes it back.
pub(super) fn with<T>(
    program: &mut Program<'_>,
    edit: Edit,
    ask: impl FnOnce(&Program<'_>) -> T,
) -> T {
    let (waits, signals, syncs) = (
        program.waits.len(),
        program.signals.len(),
        program.syncs.len(),
    );
    let mut kept: Vec<(TaskId, Span, Span)> = Vec::new();
    let mut keep = |program: &Program<'_>, task: TaskId| {
        kept.push((task, program.tasks[task].waits, program.tasks[task].signals));
    };
    let set_waits = |program: &mut Program<'_>, task: TaskId, entries: Vec<Wait>| {
        program.tasks[task].waits = Span::push(&mut program.waits, entries);
    };
    let raise = |program: &mut Program<'_>, task: TaskId, sync: SyncId, amount: i64| {
        let mut entries = program.signals(task).to_vec();
        entries.push(Signal::on_completion(Action::Add(sync, amount)));
        program.tasks[task].signals = Span::push(&mut program.signals, entries);
    };
    let at_least = |sync, value| Wait {
        sync,
        condition: Condition::AtLeast(value),
    };
    match edit {
        Edit::Wait(task, sync, value) => {
            keep(program, task);
            let others = program.waits(task).iter().filter(|wait| wait.sync != sync);
            let entries = others.copied().chain([at_least(sync, value)]).collect();
            set_waits(program, task, entries);
        }
        Edit::Replace(task, old, new) => {
            keep(program, task);
            let own = program.waits(task).iter();
            let entries = own.map(|wait| if *wait == old { new } else { *wait });
            let entries = entries.collect();
            set_waits(program, task, entries);
        }
        Edit::Remove(task, old) => {
            keep(program, task);
            let own = program.waits(task).iter();
            let entries = own.filter(|wait| **wait != old).copied().collect();
            set_waits(program, task, entries);
        }
        Edit::Signal(task, sync, amount) => {
            keep(program, task);
            raise(program, task, sync, amount);
        }
        Edit::Instead(task, old, new) => {
            keep(program, task);
            let mut entries = program.signals(task).to_vec();
            for signal in &mut entries {
                if let Action::Add(sync, _) = &mut signal.action
                    && *sync == old
                {
                    *sync = new;
                }
            }
            program.tasks[task].signals = Span::push(&mut program.signals, entries);
        }
        Edit::Late(task, late) => {
            keep(program, task);
            let mut entries = program.signals(task).to_vec();
            for signal in &mut entries {
                if matches!(signal.action, Action::Add(sync, _) if sync == late) {
                    signal.moment = Moment::Completion;
                }
            }
            program.tasks[task].signals = Span::push(&mut program.signals, entries);
        }
        Edit::Edge(giver, taker) => {
            keep(program, giver);
            keep(program, taker);
            let sync = program.syncs.push(Sync {
                name: String::new(),
                kind: SyncKind::Counter(Counter::FLAG),
            });
            raise(program, giver, sync, 1);
            let entries = program.waits(taker).iter().copied();
            let entries = entries.chain([at_least(sync, 1)]).collect();
            set_waits(program, taker, entries);
        }
    }
    let answer = ask(program);
    for (task, waits, signals) in kept {
        program.tasks[task].waits = waits;
        program.tasks[task].signals = signals;
    }
    program.waits.truncate(waits);
    program.signals.truncate(signals);
    program.syncs.truncate(syncs);
    answer
}
