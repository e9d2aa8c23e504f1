//! A program timed again with other figures of the machine.

use super::Opened;
use super::list::{begins, numbered, queues_like};
use crate::failure::Failure;
use chipless::{Options, suggest};
use chipless_model::{Program, Span, Task, TaskId, Time};
use chipless_report::attribution::Attribution;
use chipless_report::why::{self, Ranked, WhatIf};
use chipless_report::{Carries, REPEATED};
use chipless_sim::{Outcome, TimingOnly, Verified};
use clap::Args;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a program takes with changes of the machine or of itself; `None` where it does not come to its end.
fn latency(opened: &Opened, options: &Options, changes: &str) -> Result<Option<Time>, Failure> {
    let mut options = options.clone();
    options.data.computes = false;
    let mut without = Vec::new();
    let each = each_change(changes);
    let mut seen = BTreeSet::new();
    let mut keys = each.iter().map(|change| key_of(change));
    if let Some(twice) = keys.find(|key| *key != "without" && !seen.insert(*key)) {
        let text = format!("expected one value of {twice} at a time, found two: \"{changes}\"");
        return Err(Failure::misuse("--what-if", text));
    }
    for change in each {
        match change.split_once('=') {
            Some(("without", name)) => without.push(name),
            Some((quantity @ ("tiles" | "precision"), value)) => {
                let figures = opened.with_document(&options, |document| {
                    let recompiles = document.capabilities().recompiles()?;
                    Ok(recompiles.recompiled(quantity, value)?)
                })?;
                for figure in figures {
                    options.set("set", figure)?;
                }
            }
            _ => options.set("set", change)?,
        }
    }
    opened.with_document(&options, |document| {
        let mut lowered = document.lower()?;
        let can_name = document.capabilities().names_nodes.is_some();
        let mut meant = Vec::new();
        for name in without {
            meant.extend(named(&lowered.program, name, can_name)?);
        }
        for task in meant {
            let task = &mut lowered.program.tasks[task];
            (task.fixed, task.demands) = (Time::ZERO, Span::default());
        }
        let outcome = time(&lowered.program);
        Ok(outcome.end.is_ok().then_some(outcome.timeline.end))
    })
}

/// What a change changes.
fn key_of(change: &str) -> &str {
    change.split('=').next().unwrap_or_default()
}

/// The changes that commas join. Names of layers may hold commas, and so may lists of figures: a change begins where a key does.
fn each_change(changes: &str) -> Vec<&str> {
    let is_change = |rest: &str| {
        let key = rest.split_once('=').map_or("", |(key, _)| key.trim());
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_of_key)
    };
    let commas = changes.match_indices(',').map(|(comma, _)| comma);
    let starts = commas.filter(|comma| is_change(&changes[comma + 1..]));
    let mut each = Vec::new();
    let mut first = 0;
    for comma in starts {
        each.push(changes[first..comma].trim());
        first = comma + 1;
    }
    each.push(changes[first..].trim());
    each
}

fn time(program: &Program<'_>) -> Outcome {
    chipless_sim::run(&Verified::assume(program), &mut TimingOnly)
}

/// What a name means where it is both of a layer and of a kind of task.
const LAYER: &str = "layer:";
const KIND: &str = "kind:";

/// The tasks of a layer, with the transfers that data flow gives to it; or those of an operation, as lists name it, or the transfers that carry
/// one thing: kinds of tasks. `*` stands for any characters of a layer or an operation, `?` for one. Or `queue`, `queue[n]` and `queue[a..b]`, with `*` in the queue's name. `can_name`: the user
/// can give the tasks of such programs names.
fn named(program: &Program<'_>, name: &str, can_name: bool) -> Result<Vec<TaskId>, Failure> {
    let attribution = Attribution::of(program, &time(program).timeline);
    let tasks = |is_meant: &dyn Fn(TaskId) -> bool| -> Vec<TaskId> {
        let rows = attribution.rows.iter().map(|row| row.task);
        rows.filter(|task| is_meant(*task)).collect()
    };
    let layer = |task| attribution.layer(program, task);
    let operation = |task| program.kernel(task).operation();
    let carries = |task| Carries::of(program, task).map(Carries::name);
    if let Some((queues, indices)) = numbered(program, name) {
        let of_program = program.tasks.iter_enumerated();
        let is_meant = |task: &Task| queues.contains(&task.queue) && indices.contains(&task.index);
        let meant: Vec<TaskId> = of_program
            .filter(|(_, task)| is_meant(task))
            .map(|(id, _)| id)
            .collect();
        if !meant.is_empty() {
            return Ok(meant);
        }
    }
    if name.strip_prefix(KIND).unwrap_or(name) == REPEATED {
        let rows = attribution.rows.iter().map(|row| row.task);
        let repeated = chipless_report::repeated(program, rows);
        if !repeated.is_empty() {
            return Ok(tasks(&|task| repeated.contains(&task)));
        }
    }
    let (is_layer, is_kind, name) = match (name.strip_prefix(LAYER), name.strip_prefix(KIND)) {
        (Some(layer), _) => (true, false, layer),
        (None, Some(kind)) => (false, true, kind),
        (None, None) => (true, true, name),
    };
    let of_layer = tasks(&|task| is_layer && layer(task) == Some(name));
    let mut of_kind = tasks(&|task| is_kind && operation(task) == name);
    if of_kind.is_empty() {
        of_kind = tasks(&|task| is_kind && carries(task) == Some(name));
    }
    if !of_layer.is_empty() && !of_kind.is_empty() && of_layer != of_kind {
        let text = format!(
            "expected without={LAYER}{name} or without={KIND}{name}, found without={name}: a layer and a kind of task have this name"
        );
        return Err(Failure::misuse("--what-if", text));
    }
    let mut meant = if of_layer.is_empty() {
        of_kind
    } else {
        of_layer
    };
    if meant.is_empty() {
        meant = tasks(&|task| is_kind && begins(&operation(task), name));
    }
    // Names have brackets of their own.
    let pattern = glob::Pattern::new(&name.replace('[', "[[]")).ok();
    if let Some(pattern) = pattern.filter(|_| meant.is_empty()) {
        let is_layer = |task| is_layer && layer(task).is_some_and(|layer| pattern.matches(layer));
        let is_kind = |task| {
            is_kind
                && (pattern.matches(&operation(task))
                    || carries(task).is_some_and(|of| pattern.matches(of)))
        };
        meant = tasks(&|task| is_layer(task) || is_kind(task));
    }
    if meant.is_empty() && is_layer && is_kind {
        let queues = queues_like(program, name).unwrap_or_default();
        meant = tasks(&|task| queues.contains(&program.tasks[task].queue));
    }
    if meant.is_empty() {
        return Err(Failure::misuse(
            "--what-if",
            nothing(program, &attribution, name, (is_kind, can_name)),
        ));
    }
    Ok(meant)
}

/// What to say where a program has nothing of this name: what can be left out.
fn nothing(
    program: &Program<'_>,
    attribution: &Attribution,
    name: &str,
    (may_be_kind, can_name): (bool, bool),
) -> String {
    let tasks = program.tasks.indices();
    let operations = tasks.clone().map(|task| program.kernel(task).operation());
    let carried = tasks.filter_map(|task| Some(Carries::of(program, task)?.name().into()));
    let kinds: BTreeSet<String> = operations.chain(carried).map(Into::into).collect();
    let layers = why::layers(program, attribution);
    if !may_be_kind && kinds.contains(name) {
        return format!(
            "expected a layer of the program, found \"{name}\", which is a kind of task: {KIND}{name}"
        );
    }
    // The beginning of a layer's name is no mistake of spelling in a kind's.
    let is_start = layers.iter().any(|known| known.layer.starts_with(name));
    let mut hint = if is_start && !name.is_empty() {
        format!("; did you mean \"{name}*\", all layers that begin so?")
    } else {
        suggest::hint(name, kinds.iter().map(String::as_str))
    };
    if hint.is_empty() {
        hint = suggest::hint(name, layers.iter().map(|known| known.layer));
    }
    if !hint.is_empty() {
        return format!(
            "expected a layer or a kind of task of the program, found \"{name}\"{hint}"
        );
    }
    let kinds: Vec<String> = kinds.into_iter().collect();
    let kinds = kinds.join(", ");
    if layers.is_empty() {
        let how = if can_name {
            ": compile it with PERF_COUNT=YES, or pass the compiler's schedule trace with --names"
        } else {
            ""
        };
        format!(
            "expected a kind of task of the program, found \"{name}\". It has {kinds}. Its tasks have no layers{how}"
        )
    } else {
        format!(
            "expected a layer or a kind of task of the program, found \"{name}\". Its kinds of tasks are {kinds}. `chipless run FILE --timing-only` shows its layers"
        )
    }
}

/// Kinds of tasks and layers that `--rank` leaves out, so many, one at a time.
const PARTS: usize = 8;
/// The part of a run from which on the second of them is left out together with the first.
const PAIR: f64 = 0.1;

/// Changes of a program rather than of its machine.
pub(crate) const OF_PROGRAMS: [&str; 3] = ["tiles", "precision", "without"];

/// Other machine parameters that a run is timed with.
#[derive(Args, Debug)]
#[command(next_help_heading = "What if")]
pub(super) struct Changes {
    /// Re-run with one change of the machine or the program.
    ///
    /// A machine parameter with a value or a factor, such as `clock.dpu=2x`; `without=NAME`: a layer, or a kind of task such as `spill`, that takes
    /// no time (`*` stands for any characters; `layer:NAME` and `kind:NAME` tell apart what has one name), or tasks as `list` names them, such as `dpu0[2]`, `shave*[2..5]` and `shave*`; npu: `tiles=N` and `precision=int8`, as if the compiler had been asked for that. Repeatable: each is
    /// timed by itself, on top of those of --set. Commas join changes that are timed together: `tiles=6,without=swish`.
    #[arg(long, value_name = "KEY=VALUE")]
    what_if: Vec<String>,
    /// Re-run with each parameter improved 2x and rank speed-ups.
    ///
    /// It also times what --what-if offers: the kinds of tasks and the layers with the most time on the critical path, each as if it took none; for an NPU
    /// program, more tiles and int8, and guessed costs with the bytes that they leave out.
    #[arg(long)]
    rank: bool,
}

impl Changes {
    /// Whether the run is timed again.
    pub(super) fn are_asked_for(&self) -> bool {
        self.rank || !self.what_if.is_empty()
    }

    /// Runs with one change each, beside the latency without it, where any was asked for.
    pub(super) fn what_if(
        &self,
        opened: &Opened,
        options: &Options,
        (program, attribution, base): (&Program<'_>, &Attribution, Time),
    ) -> Result<Option<Vec<WhatIf>>, Failure> {
        let mut changes = self.what_if.clone();
        let mut guesses_with_bytes = None;
        if self.rank {
            guesses_with_bytes = opened.with_document(options, |document| {
                let recompiles = document.capabilities().recompiles;
                changes.extend(recompiles.map_or_else(Vec::new, |of| of.compilations(program)));
                Ok(document.guesses_with_bytes(program)?)
            })?;
            changes.extend(dearest(program, attribution, base));
            changes.extend(guesses_with_bytes.clone());
        }
        if changes.is_empty() {
            return Ok(None);
        }
        // What was asked for may be among what is offered.
        let mut seen = BTreeSet::new();
        changes.retain(|change| seen.insert(change.clone()));
        let machine = opened.with_document(options, |document| Ok(document.machine_text()?))?;
        let figures = machine.map_or_else(Vec::new, |text| chipless::figures(&text));
        // A machine that was changed has lost its comments, and with them the units.
        let own = opened.target().and_then(chipless::target);
        let own = own.and_then(|target| target.machines().first());
        let documented = own.map_or_else(Vec::new, |(_, text)| chipless::figures(text));
        let unit = |key: &str| {
            let mut all = documented.iter().chain(&figures);
            all.find(|figure| figure.key == key)
                .map_or("1", |figure| &*figure.unit)
        };
        // How to ask for each, and whether it is told last.
        let told = opened.with_document(options, |document| {
            let recompiles = document.capabilities().recompiles;
            let of = |change: &String| {
                let each = each_change(change);
                let how = |change: &&str| recompiles.and_then(|of| of.how(change));
                let last = |change: &&str| recompiles.is_some_and(|of| of.gains_nothing(change));
                let mut hows: Vec<String> = each.iter().filter_map(how).collect();
                if guesses_with_bytes.as_ref() == Some(change) {
                    hows.push(
                        "if what is a guess took what the notes name for its bytes".to_owned(),
                    );
                }
                let how = (!hows.is_empty()).then(|| hows.join("; "));
                (how, each.iter().any(last))
            };
            Ok(changes.iter().map(of).collect::<Vec<_>>())
        })?;
        let mut runs: Vec<(bool, WhatIf)> = Vec::new();
        for (change, (how, gains_nothing)) in changes.iter().zip(told) {
            let key = key_of(change);
            let latency = latency(opened, options, change).map_err(|failure| match failure {
                Failure::Plain(mut plain) if plain.subject == "--set" => {
                    "--what-if".clone_into(&mut plain.subject);
                    // Of several, the one that the message is about.
                    let mut keys = each_change(change).into_iter().map(key_of);
                    let key = keys.find(|key| plain.message.contains(*key)).unwrap_or(key);
                    let meant = suggest::hint(key, OF_PROGRAMS);
                    if OF_PROGRAMS.contains(&key) {
                        plain.message += ", such as tiles=6, precision=int8 or without=LAYER";
                    } else if !meant.is_empty() {
                        // Few words stand for changes of the program; what is close to one is hardly a parameter.
                        let (found, _) = plain
                            .message
                            .split_once("; did you mean")
                            .unwrap_or((&plain.message, ""));
                        plain.message = format!("{found}{meant}");
                    }
                    Failure::Plain(plain)
                }
                failure => failure,
            })?;
            let is_one = each_change(change).len() == 1;
            let figure = figures.iter().find(|figure| is_one && figure.key == key);
            let run = latency.map(|latency| WhatIf {
                change: change.clone(),
                how,
                was: figure.map(|figure| match unit(key) {
                    "1" => figure.value.clone(),
                    unit => format!("{} {unit}", figure.value),
                }),
                latency_ns: latency.ns(),
                speedup: ratio(base, latency),
            });
            runs.extend(run.map(|run| (gains_nothing, run)));
        }
        runs.sort_by(|(a, one), (b, other)| {
            a.cmp(b).then(one.latency_ns.total_cmp(&other.latency_ns))
        });
        Ok(Some(runs.into_iter().map(|(_, run)| run).collect()))
    }

    /// The ranking, where it was asked for.
    pub(super) fn ranking(
        &self,
        opened: &Opened,
        options: &Options,
        (program, base): (&Program<'_>, Time),
    ) -> Option<Vec<Ranked>> {
        self.rank.then(|| rank(opened, options, (program, base)))
    }
}

/// The kinds of tasks and the layers that take the most time on the critical path, each as if it took none.
fn dearest(program: &Program<'_>, attribution: &Attribution, end: Time) -> Vec<String> {
    let layers = why::layers(program, attribution);
    let layers = layers
        .iter()
        .map(|layer| (layer.layer.to_owned(), layer.critical_ns));
    let mut operations: BTreeMap<String, f64> = BTreeMap::new();
    for of in why::critical(program, attribution, end).by_operation {
        *operations.entry(of.name().to_owned()).or_default() += of.ns;
    }
    // What is the name of both is said with what it is of.
    let shared: BTreeSet<String> = (layers.clone().map(|(layer, _)| layer))
        .filter(|layer| operations.contains_key(layer))
        .collect();
    let full = |of: &str, (name, ns): (String, f64)| {
        if shared.contains(&name) {
            (format!("{of}{name}"), ns)
        } else {
            (name, ns)
        }
    };
    let operations = operations.into_iter().map(|part| full(KIND, part));
    let mut operations: Vec<(String, f64)> = operations.collect();
    operations.sort_by(|a, b| b.1.total_cmp(&a.1));
    let layers = layers.map(|part| full(LAYER, part));
    let mut parts: Vec<(String, f64)> = operations.iter().cloned().chain(layers).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.truncate(PARTS);
    let mut dearest: Vec<String> = (parts.iter())
        .map(|(name, _)| format!("without={name}"))
        .collect();
    let repeated = chipless_report::repeated(program, attribution.rows.iter().map(|row| row.task));
    if !repeated.is_empty() {
        dearest.push(format!("without={REPEATED}"));
    }
    // What leaves the chip and comes back does both or neither.
    let both = [Carries::Spill, Carries::Reload].map(Carries::name);
    if both
        .iter()
        .all(|name| parts.iter().any(|(part, _)| part == name))
    {
        dearest.push(both.map(|name| format!("without={name}")).join(","));
    }
    // The two that take the most, of one kind of engine, may be parts of one function that the compiler took apart.
    if let [first, second, ..] = &operations[..]
        && second.1 >= PAIR * end.ns()
        && engines_of(program, &first.0)
            .is_some_and(|of| Some(of) == engines_of(program, &second.0))
    {
        dearest.push(format!("without={},without={}", first.0, second.0));
    }
    dearest
}

/// The kind of engine that does an operation, by the names of the queues: `shave` of `shave0`.
fn engines_of<'p>(program: &'p Program<'_>, operation: &str) -> Option<&'p str> {
    let mut tasks = program.tasks.iter_enumerated();
    let (_, task) = tasks.find(|(id, _)| program.kernel(*id).operation() == operation)?;
    let queue = &program.queues[task.queue].name;
    queue.split(|c: char| c.is_ascii_digit()).next()
}

/// Runs with each figure of the machine twice as good, the best first. Figures that cannot be are left out.
pub(super) fn rank(
    opened: &Opened,
    options: &Options,
    (program, base): (&Program<'_>, Time),
) -> Vec<Ranked> {
    let machines = opened.target().and_then(chipless::target);
    let machine = machines.and_then(|target| target.machines().first());
    let figures = machine.map_or_else(Vec::new, |(_, text)| chipless::figures(text));
    let mut ranking: Vec<Ranked> = figures
        .par_iter()
        .filter_map(|figure| {
            let change = figure.better?.twice();
            // Where the program says what its times rest on, nothing else changes them.
            let takes_part = program.figures.is_empty() || program.figures.contains(&figure.key);
            let latency = if takes_part {
                latency(opened, options, &format!("{}={change}", figure.key)).ok()??
            } else {
                base
            };
            Some(Ranked {
                figure: figure.key.clone(),
                change: change.to_owned(),
                latency_ns: latency.ns(),
                gain: ratio(base, latency),
            })
        })
        .collect();
    ranking.sort_by(|a, b| a.latency_ns.total_cmp(&b.latency_ns));
    ranking
}

/// By how much the second is the faster one; 1 where neither takes time.
fn ratio(base: Time, latency: Time) -> f64 {
    if base == latency {
        1.0
    } else {
        base.ns() / latency.ns()
    }
}
