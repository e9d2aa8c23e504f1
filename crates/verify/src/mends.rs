//! What would make a program right: changes of one wait or one signal, each of which is tried before it is advised.
//!
//! A finding knows which tasks take part, not what their author meant. So every change near them that could be meant is made to the program, which is
//! verified again; what leaves the fewest errors is advised. Signals that nothing waits for come first: they show what somebody forgot.

mod edit;

use edit::{Edit, with};

use crate::needs::{Need, needs};
use crate::race::{connections, early_signals, holder, signals_of, waiting};
use crate::replay::find_order;
use crate::rules;
use crate::stuck::condition;
use chipless_model::{Action, Condition, Finding, Program, SyncId, SyncKind, TaskId, Wait};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Findings whose mends are looked for; others of a program that is wrong in many places may follow from them.
const FINDINGS: usize = 4;
/// Changes that are tried for one finding.
const CHANGES: usize = 128;
/// Tasks of a program beyond which its changes are not tried.
const LARGEST: usize = 20_000;
/// Tasks that are verified again for one finding, all changes together.
const TASKS: usize = 200_000;
/// Tasks in front of one, in its queue, that may be the place of a wait that is missing.
const AHEAD: usize = 8;
/// Signals that nothing awaits for which every task is tried.
const FORGOTTEN: usize = 4;
/// Signals of a queue, from a task on, that may be the one to wait for.
const LATER: usize = 8;
/// Places of a signal that is missing.
const GIVERS: usize = 32;

/// A change in words.
struct Change {
    edit: Edit,
    text: String,
}

/// What a change leaves.
struct Tried {
    edit: Edit,
    text: String,
    errors: usize,
    /// Whether a task reads bytes before the only task that writes them.
    is_reversed: bool,
    /// A change of another kind that leaves no error either, where that was looked for.
    other: Option<String>,
}

impl Tried {
    /// What is better comes first: no error, then no read before its write, then fewer errors.
    fn rank(&self) -> (bool, bool, usize) {
        (self.errors > 0, self.is_reversed, self.errors)
    }

    fn is_best(&self) -> bool {
        self.rank() == (false, false, 0)
    }
}

/// A program as it is.
struct Before {
    errors: Signature,
    needs: Vec<Need>,
}

/// Puts into the hints of races, of reads before writes and of deadlocks what was found to mend them. The program is the one that the findings are about,
/// and is the same afterwards.
pub fn advise(program: &mut Program<'_>, findings: &mut [Finding]) {
    // Which use of a barrier a wait means is noted wait by wait: a change would have to know it.
    if !program.meant.is_empty() || program.tasks.len() > LARGEST {
        return;
    }
    let before = Before {
        errors: signature(program),
        needs: needs(program, &racing(program, findings)),
    };
    let errors = findings.iter_mut().filter(|finding| finding.is_error());
    let mut mended: Vec<(&mut Finding, Option<Advice>)> = Vec::new();
    for finding in errors.take(FINDINGS) {
        let advice = match finding.rule.code {
            code if code == rules::DEADLOCK.code => Some(deadlock(program, finding, &before)),
            code if code == rules::RACE_READ_WRITE.code
                || code == rules::RACE_WRITE_WRITE.code
                || code == rules::READ_BEFORE_WRITE.code =>
            {
                race(program, finding, &before)
            }
            _ => continue,
        };
        mended.push((finding, advice));
    }
    // What leaves no error mends the other findings as well.
    let mut all = mended.iter().filter_map(|(_, advice)| advice.as_ref());
    let all = all.find(|advice| advice.errors == 0).cloned();
    for (finding, advice) in mended {
        let own = match (advice, &all) {
            (Some(advice), Some(all)) if advice.errors > 0 => Some(all.clone()),
            (None, Some(all)) => Some(all.clone()),
            (advice, _) => advice,
        };
        let Some(own) = own else { continue };
        let named = tasks_of(program, finding);
        let changed = own.edit.map_or_else(Vec::new, Edit::tasks);
        for task in changed.into_iter().filter(|task| !named.contains(task)) {
            let (name, known) = (program.task_name(task), connections(program, task));
            let role = format!("{name} (which the help changes) {known}");
            finding.related.push((program.place(task), role));
        }
        finding.hint = Some(own.text);
    }
}

/// What to do about a finding, and how many errors it leaves.
#[derive(Clone)]
struct Advice {
    text: String,
    errors: usize,
    /// The change that was tried; nothing where none helps.
    edit: Option<Edit>,
}

/// How many errors of each kind a program has, by the tasks that they are about.
type Signature = BTreeMap<(&'static str, String), usize>;

fn signature(program: &Program<'_>) -> Signature {
    let mut found = Signature::new();
    for finding in crate::verify(program).err().unwrap_or_default() {
        if finding.is_error() {
            *found.entry(key(&finding)).or_default() += 1;
        }
    }
    found
}

/// What a finding is about: its place, or both tasks of a race, of which either may be the one at its place.
fn key(finding: &Finding) -> (&'static str, String) {
    let code = finding.rule.code;
    if code != rules::RACE_READ_WRITE.code && code != rules::RACE_WRITE_WRITE.code {
        return (code, finding.place.item.clone());
    }
    let related = finding.related.iter();
    let mut tasks: Vec<&str> = related.map(|(place, _)| &*place.item).collect();
    tasks.sort_unstable();
    (code, tasks.join(" "))
}

/// The pairs of tasks of which one reads what the other one writes, and that nothing orders.
fn racing(program: &Program<'_>, findings: &[Finding]) -> Vec<(TaskId, TaskId)> {
    let races = findings
        .iter()
        .filter(|finding| finding.rule.code == rules::RACE_READ_WRITE.code);
    races
        .filter_map(|finding| match tasks_of(program, finding)[..] {
            [one, two, ..] => Some((one, two)),
            _ => None,
        })
        .collect()
}

/// Whether errors came up that were not there before. Of the reads before writes that follow one from the other, the first is reported: where that one is
/// mended, the next one is no new error.
fn has_new(before: &Signature, after: &Signature) -> bool {
    let unwritten = |errors: &Signature| -> usize {
        let of_rule = errors
            .iter()
            .filter(|((code, _), _)| *code == rules::READ_BEFORE_WRITE.code);
        of_rule.map(|(_, number)| number).sum()
    };
    let is_known = |key: &(&'static str, String), number: &usize| {
        before.get(key).is_some_and(|known| number <= known)
            || (key.0 == rules::READ_BEFORE_WRITE.code && unwritten(after) <= unwritten(before))
    };
    !after.iter().all(|(key, number)| is_known(key, number))
}

/// The tasks that a finding names, each once, that at its place first.
fn tasks_of(program: &Program<'_>, finding: &Finding) -> Vec<TaskId> {
    let related = finding.related.iter().map(|(place, _)| place);
    let mut tasks = Vec::new();
    for place in std::iter::once(&finding.place).chain(related) {
        if let Some(task) = program.task_named(&place.item)
            && !tasks.contains(&task)
        {
            tasks.push(task);
        }
    }
    tasks
}

/// Tries changes in turn: what remains of the errors after each, where the finding is gone and nothing new came up. Stops at the first that leaves none and
/// lets no task read what is written later; for several `kinds` of changes, at the first of another kind.
fn tried(
    program: &mut Program<'_>,
    finding: &Finding,
    before: &Before,
    kinds: impl IntoIterator<Item = Vec<Change>>,
) -> Option<Tried> {
    let most = (TASKS / program.tasks.len().max(1)).min(CHANGES);
    let key = key(finding);
    let mut best: Option<Tried> = None;
    let mut of_best = None;
    let kinds = kinds.into_iter().enumerate();
    let changes = kinds.flat_map(|(kind, changes)| changes.into_iter().map(move |of| (kind, of)));
    for (kind, Change { edit, text }) in changes.take(most) {
        let is_mended = best.as_ref().is_some_and(Tried::is_best);
        if is_mended && of_best == Some(kind) {
            continue;
        }
        let after = with(program, edit, signature);
        if after.get(&key) >= before.errors.get(&key) || has_new(&before.errors, &after) {
            continue;
        }
        let is_reversed = !before.needs.is_empty()
            && with(program, edit, |program| {
                let (order, _) = find_order(program);
                before.needs.iter().any(|need| need.is_reversed(&order))
            });
        let new = Tried {
            edit,
            text,
            errors: after.values().sum(),
            is_reversed,
            other: None,
        };
        // Where errors are left, a read before its write is one of them, or hides one.
        if new.is_reversed && new.errors > 0 {
            continue;
        }
        match &mut best {
            Some(best) if is_mended && new.is_best() => {
                best.other = Some(new.text);
                break;
            }
            known if known.as_ref().is_none_or(|known| new.rank() < known.rank()) => {
                of_best = Some(kind);
                best = Some(new);
            }
            _ => {}
        }
    }
    best
}

/// A signal that raises a counter of one queue: the value after it, and whether some wait is for what it completes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raise {
    pub(crate) task: TaskId,
    pub(crate) sync: SyncId,
    pub(crate) value: i64,
    pub(crate) amount: i64,
    is_awaited: bool,
}

/// The signals of counters that the tasks of one queue raise, in order: those of others have no value that is theirs in every order.
pub(crate) fn raises(program: &Program<'_>) -> Vec<Raise> {
    let mut of_sync: BTreeMap<SyncId, Option<Vec<Raise>>> = BTreeMap::new();
    for task in program.tasks.indices() {
        for signal in program.signals(task) {
            let Action::Add(sync, amount) = signal.action else {
                continue;
            };
            let SyncKind::Counter(counter) = &program.syncs[sync].kind else {
                continue;
            };
            let list = of_sync.entry(sync).or_insert_with(|| Some(Vec::new()));
            let queue = program.tasks[task].queue;
            let same = |last: &Raise| program.tasks[last.task].queue == queue;
            let is_one_queue = amount > 0
                && list
                    .as_ref()
                    .is_some_and(|list| list.last().is_none_or(same));
            if !is_one_queue {
                *list = None;
                continue;
            }
            if let Some(list) = list {
                let value = list.last().map_or(counter.initial, |last| last.value);
                list.push(Raise {
                    task,
                    sync,
                    value: value.saturating_add(amount),
                    amount,
                    is_awaited: false,
                });
            }
        }
    }
    let mut awaited: FxHashMap<SyncId, BTreeSet<i64>> = FxHashMap::default();
    for wait in &program.waits {
        if let Condition::AtLeast(n) | Condition::Equal(n) = wait.condition {
            awaited.entry(wait.sync).or_default().insert(n);
        }
    }
    let mut all: Vec<Raise> = of_sync.into_values().flatten().flatten().collect();
    for raise in &mut all {
        let least = raise.value.saturating_sub(raise.amount);
        let values = awaited.get(&raise.sync);
        raise.is_awaited = values.is_some_and(|values| {
            let completed = (Bound::Excluded(least), Bound::Included(raise.value));
            values.range(completed).next().is_some()
        });
    }
    all
}

/// The part of a machine that a queue belongs to, by its name: `sg00` of `sg00.act`. What a part waits for and raises is its own.
fn part<'p>(program: &'p Program<'_>, task: TaskId) -> &'p str {
    let name = &*program.queues[program.tasks[task].queue].name;
    name.split_once('.').map_or("", |(part, _)| part)
}

/// Whether a task can wait for a counter, or raise it: its part of the machine does so already, or no other does.
fn is_within_reach(program: &Program<'_>, task: TaskId, sync: SyncId) -> bool {
    let own = part(program, task);
    let waiting = |of: &TaskId| program.waits(*of).iter().any(|wait| wait.sync == sync);
    let raising = |of: &TaskId| signals_of(program, *of).any(|of| of == sync);
    let parts = |uses: &dyn Fn(&TaskId) -> bool| -> Vec<&str> {
        let tasks = program.tasks.indices().filter(uses);
        tasks.map(|of| part(program, of)).collect()
    };
    match parts(&waiting) {
        waiting if waiting.is_empty() => parts(&raising).contains(&own),
        waiting => waiting.contains(&own),
    }
}

/// The places of a wait that would let a task wait: itself, then those in front of it in its queue that wait for nothing, the nearest first.
fn takers(program: &Program<'_>, task: TaskId) -> Vec<TaskId> {
    let task = holder(program, task).unwrap_or(task);
    let queue = program.tasks[task].queue;
    let ahead = program.tasks.indices().filter(|other| {
        *other < task && program.tasks[*other].queue == queue && program.waits(*other).is_empty()
    });
    let ahead: Vec<TaskId> = ahead.collect();
    let mut places: Vec<TaskId> = ahead.into_iter().rev().take(AHEAD).collect();
    // Where it waits already, a wait of another one says the same in fewer instructions.
    if program.waits(task).is_empty() {
        places.insert(0, task);
    } else {
        places.push(task);
    }
    places
}

/// Lets a task wait for a signal, in words.
fn wait(program: &Program<'_>, taker: TaskId, raise: &Raise) -> Option<Change> {
    if !is_within_reach(program, taker, raise.sync) {
        return None;
    }
    let (name, taker_name) = (&program.syncs[raise.sync].name, program.task_name(taker));
    let waits = program.waits(taker);
    let own = waits.iter().find(|wait| wait.sync == raise.sync);
    let text = match (own.map(|wait| wait.condition), waits) {
        (Some(Condition::AtLeast(n)), _) if n < raise.value => format!(
            "Let {taker_name} wait for {name} ≥ {} instead of ≥ {n}.",
            raise.value
        ),
        (Some(_), _) => return None,
        (None, []) => format!("Let {taker_name} wait for {name} ≥ {}.", raise.value),
        (None, [..]) => format!(
            "Insert an instruction before {taker_name} that waits for {name} ≥ {}, since {taker_name} has a wait of its own.",
            raise.value
        ),
    };
    Some(Change {
        edit: Edit::Wait(taker, raise.sync, raise.value),
        text,
    })
}

/// What to do about a signal that comes too early.
pub(crate) fn late(program: &Program<'_>, giver: TaskId, sync: SyncId) -> String {
    format!(
        "Let {} signal {} when it completes, not when it has read its sources.",
        program.task_name(giver),
        program.syncs[sync].name
    )
}

/// The changes that let one task wait for another, those with a signal that nothing awaits first.
fn after(program: &Program<'_>, raises: &[Raise], giver: TaskId, taker: TaskId) -> Vec<Change> {
    let queue = program.tasks[giver].queue;
    // What it raises itself, and what its queue does later; then signals of others that somebody forgot to wait for.
    let own = raises
        .iter()
        .filter(|raise| raise.task >= giver && program.tasks[raise.task].queue == queue);
    let mut given: Vec<&Raise> = own.collect();
    given.sort_by_key(|raise| raise.task);
    // Whoever waits for the last value of a counter waits for all that raise it, in whichever order they complete.
    let is_last = |raise: &&Raise| {
        let counts = signals_of(program, giver).any(|sync| sync == raise.sync);
        let same = raises.iter().filter(|other| other.sync == raise.sync);
        counts && same.map(|other| other.value).max() == Some(raise.value)
    };
    let last: Vec<&Raise> = given.iter().skip(LATER).copied().filter(is_last).collect();
    given.truncate(LATER);
    given.extend(last);
    given.sort_by_key(|raise| (raise.is_awaited, raise.task));
    let forgotten = raises.iter().filter(|raise| {
        !raise.is_awaited
            && !given
                .iter()
                .any(|own| (own.task, own.sync) == (raise.task, raise.sync))
    });
    let forgotten: Vec<&Raise> = forgotten.take(LATER).collect();
    given.extend(forgotten);
    let takers = takers(program, taker);
    // Whoever is waited for at the wrong moment needs no other wait.
    let early = early_signals(program, giver).map(|sync| Change {
        edit: Edit::Late(giver, sync),
        text: late(program, giver, sync),
    });
    let mut changes: Vec<Change> = early.collect();
    for raise in given {
        // A wait for too little of a counter changes a number; a second wait is one more instruction for who has to execute it.
        let mut known = waiting(program, taker, raise.sync);
        known.truncate(AHEAD);
        if !raise.is_awaited {
            // A task that it waits for may be the one that waits for too little.
            let waits = |of: &TaskId| program.waits(*of).iter().any(|of| of.sync == raise.sync);
            let others = program.tasks.indices().filter(waits);
            let others: Vec<TaskId> = others.filter(|of| !known.contains(of)).collect();
            known.extend(others.into_iter().take(AHEAD));
        }
        let new = takers.iter().filter(|taker| !known.contains(taker));
        let all = known.iter().chain(new);
        changes.extend(all.filter_map(|taker| wait(program, *taker, raise)));
    }
    let is_quiet = program.signals(giver).is_empty();
    for taker in takers {
        if !is_quiet || part(program, giver) != part(program, taker) {
            continue;
        }
        let (giver_name, name) = (program.task_name(giver), program.task_name(taker));
        let text = if program.waits(taker).is_empty() {
            format!("Give {giver_name} a signal, and let {name} wait for it.")
        } else {
            format!(
                "Give {giver_name} a signal, and insert an instruction before {name} that waits for it, since {name} has a wait of its own."
            )
        };
        changes.push(Change {
            edit: Edit::Edge(giver, taker),
            text,
        });
    }
    changes
}

/// Waits for signals that nothing awaits, of all tasks that have none: where somebody else waits, both tasks of a race may come later.
fn anywhere(program: &Program<'_>, raises: &[Raise]) -> Vec<Change> {
    let free = |task: &TaskId| program.waits(*task).is_empty();
    let forgotten = raises.iter().filter(|raise| !raise.is_awaited);
    forgotten
        .take(FORGOTTEN)
        .flat_map(|raise| {
            let tasks = program.tasks.indices().filter(free).take(GIVERS);
            tasks.filter_map(|task| wait(program, task, raise))
        })
        .collect()
}

/// What orders two tasks of which nothing orders the one before the other.
fn race(program: &mut Program<'_>, finding: &Finding, before: &Before) -> Option<Advice> {
    let raises = raises(program);
    let tasks = tasks_of(program, finding);
    let [place, other, ..] = tasks[..] else {
        return None;
    };
    let mut orders = vec![(other, place)];
    if finding.rule.code != rules::READ_BEFORE_WRITE.code {
        orders.push((place, other));
        // The signal that nobody awaits shows which of the two was meant to come first.
        let is_unheard = |giver: TaskId| {
            raises
                .iter()
                .any(|raise| raise.task == giver && !raise.is_awaited)
        };
        orders.sort_by_key(|(giver, _)| !is_unheard(*giver));
    }
    let mut found: Vec<(Option<TaskId>, Tried)> = Vec::new();
    for (giver, taker) in orders {
        let changes = after(program, &raises, giver, taker);
        if let Some(best) = tried(program, finding, before, [changes]) {
            let best = least(program, finding, before, &raises, best);
            found.push((Some(giver), best));
        }
    }
    if !found.iter().any(|(_, best)| best.errors == 0) {
        let changes = anywhere(program, &raises);
        let best = tried(program, finding, before, [changes]);
        found.extend(best.map(|best| (None, best)));
    }
    found.sort_by_key(|(_, best)| best.rank());
    let ((giver, best), others) = found.split_first()?;
    let mut text = format!("{} {}", best.text, outcome(best, before));
    if let Some((first, other)) = others
        .first()
        .filter(|(other, tried)| {
            other != giver && tried.errors == best.errors && tried.text != best.text
        })
        .and_then(|(other, tried)| Some(((*other)?, tried)))
    {
        text.push_str(&format!(
            " If {} has to come first, which gives other values: {}",
            program.task_name(first),
            other.text
        ));
    }
    Some(Advice {
        text,
        errors: best.errors,
        edit: Some(best.edit),
    })
}

/// The same with the least value of the counter that leaves no error either: a task that waits for more loses time.
fn least(
    program: &mut Program<'_>,
    finding: &Finding,
    before: &Before,
    raises: &[Raise],
    best: Tried,
) -> Tried {
    let Edit::Wait(taker, sync, value) = best.edit else {
        return best;
    };
    if !best.is_best() {
        return best;
    }
    let less = raises
        .iter()
        .filter(|raise| raise.sync == sync && raise.value < value);
    let changes: Vec<Change> = less
        .filter_map(|raise| wait(program, taker, raise))
        .collect();
    match tried(program, finding, before, [changes]) {
        Some(less) if less.is_best() => less,
        _ => best,
    }
}

/// What a change that was tried leads to.
fn outcome(tried: &Tried, before: &Before) -> String {
    let all: usize = before.errors.values().sum();
    match tried.errors {
        0 => "With that, no error is left.".to_owned(),
        1 => format!("With that, 1 of {all} errors is left."),
        left => format!("With that, {left} of {all} errors are left."),
    }
}

/// What lets tasks go on that wait for what never comes.
fn deadlock(program: &mut Program<'_>, finding: &Finding, before: &Before) -> Advice {
    let raises = raises(program);
    let waiting = tasks_of(program, finding);
    let unheard = raises.iter().filter(|raise| !raise.is_awaited);
    let unheard: Vec<Raise> = unheard.take(GIVERS).copied().collect();
    let (mut replaced, mut instead, mut lowered) = (vec![], vec![], vec![]);
    let (mut given, mut removed) = (vec![], vec![]);
    for task in &waiting {
        for old in program.waits(*task).to_vec() {
            let (Condition::AtLeast(n) | Condition::Equal(n)) = old.condition else {
                continue;
            };
            let (name, of) = (program.task_name(*task), condition(program, &old));
            let replace = |raise: &Raise, value: i64| {
                let new = Wait {
                    sync: raise.sync,
                    condition: Condition::AtLeast(value),
                };
                let wanted = condition(program, &new);
                Change {
                    edit: Edit::Replace(*task, old, new),
                    text: format!("Let {name} wait for {wanted} instead of {of}."),
                }
            };
            let reaches = |raise: &&Raise| is_within_reach(program, *task, raise.sync);
            let others = unheard.iter().filter(|raise| raise.sync != old.sync);
            let others = others.filter(reaches);
            replaced.extend(others.map(|raise| replace(raise, raise.value)));
            instead.extend(other_signals(program, &raises, *task, &old));
            let smaller = raises
                .iter()
                .filter(|raise| raise.sync == old.sync && raise.value < n);
            lowered.extend(smaller.rev().map(|raise| replace(raise, raise.value)));
            given.extend(missing_signals(program, &raises, *task, &old));
            removed.push(Change {
                edit: Edit::Remove(*task, old),
                text: format!("Remove the wait of {name} for {of}."),
            });
        }
    }
    // A wait or a signal of another counter, or another number, changes less than one more or one fewer.
    let kinds = [replaced, instead, lowered, given, removed];
    if let Some(best) = tried(program, finding, before, kinds) {
        let mut text = format!("{} {}", best.text, outcome(&best, before));
        if let Some(other) = &best.other {
            text.push_str(&format!(
                " This leaves none either, and may give other values: {other}"
            ));
        }
        return Advice {
            text,
            errors: best.errors,
            edit: Some(best.edit),
        };
    }
    let unheard: Vec<String> = unheard
        .iter()
        .take(FINDINGS)
        .map(|raise| {
            let name = &program.syncs[raise.sync].name;
            format!("{name} of {}", program.task_name(raise.task))
        })
        .collect();
    let forgotten = match &unheard[..] {
        [] => "look for a signal that is missing".to_owned(),
        names => format!("these signals are awaited by nobody: {}", names.join(", ")),
    };
    Advice {
        text: format!(
            "No change of one wait or one signal near these tasks leaves a program without errors; {forgotten}."
        ),
        errors: usize::MAX,
        edit: None,
    }
}

/// Signals of other counters that may have been meant for the one that a task waits for: first of counters that several queues raise, which is rare, then
/// those that nothing awaits.
fn other_signals(program: &Program<'_>, raises: &[Raise], task: TaskId, old: &Wait) -> Vec<Change> {
    let (sync, name) = (old.sync, &program.syncs[old.sync].name);
    let own = program.tasks.indices();
    let own = own.filter(|giver| part(program, *giver) == part(program, task));
    let given = own.flat_map(|giver| signals_of(program, giver).map(move |of| (giver, of)));
    let is_counter = |of: SyncId| matches!(program.syncs[of].kind, SyncKind::Counter(_));
    let mut others: Vec<(TaskId, SyncId)> = given
        .filter(|(_, of)| *of != sync && is_counter(*of))
        .collect();
    let known: FxHashMap<(TaskId, SyncId), bool> = raises
        .iter()
        .map(|raise| ((raise.task, raise.sync), raise.is_awaited))
        .collect();
    others.sort_by_key(|of| known.get(of).copied());
    others.truncate(GIVERS);
    others
        .into_iter()
        .map(|(giver, of)| Change {
            edit: Edit::Instead(giver, of, sync),
            text: format!(
                "Let {} raise {name} instead of {}.",
                program.task_name(giver),
                program.syncs[of].name
            ),
        })
        .collect()
}

/// Signals that would complete what a task waits for, one for each task that could give it: those of the queues that raise the counter first.
fn missing_signals(
    program: &Program<'_>,
    raises: &[Raise],
    task: TaskId,
    old: &Wait,
) -> Vec<Change> {
    let (sync, name) = (old.sync, &program.syncs[old.sync].name);
    let queues: Vec<_> = raises
        .iter()
        .filter(|raise| raise.sync == sync)
        .map(|raise| program.tasks[raise.task].queue)
        .collect();
    let amount = raises.iter().find(|raise| raise.sync == sync);
    let amount = amount.map_or_else(
        || match old.condition {
            Condition::AtLeast(n) | Condition::Equal(n) => n,
            Condition::Lit => 1,
        },
        |raise| raise.amount,
    );
    let is_quiet = |of: &TaskId| {
        *of != task && part(program, *of) == part(program, task) && program.signals(*of).is_empty()
    };
    let mut givers: Vec<TaskId> = program.tasks.indices().filter(is_quiet).collect();
    givers.sort_by_key(|of| !queues.contains(&program.tasks[*of].queue));
    givers.truncate(GIVERS);
    givers
        .into_iter()
        .map(|giver| Change {
            edit: Edit::Signal(giver, sync, amount),
            text: format!("Let {} raise {name} by {amount}.", program.task_name(giver)),
        })
        .collect()
}
