//! Commands that move.

use super::{Answer, Console, nothing};
use crate::debugger::Reason;
use chipless_model::QueueId;
use std::cmp::Ordering;

/// A number of times; one without.
fn times(arguments: &str) -> Result<usize, String> {
    match arguments {
        "" => Ok(1),
        text => text
            .parse()
            .map_err(|_| format!("expected a number of effects, found \"{text}\"")),
    }
}

fn forward(console: &mut Console<'_, '_>, target: usize, reason: Reason) -> Answer {
    let interrupt = console.interrupt.clone();
    let stop = console.debugger.run_to(target, reason, &interrupt);
    console.stopped(&stop)
}

fn backward(console: &mut Console<'_, '_>, target: usize) -> Answer {
    let interrupt = console.interrupt.clone();
    let stop = console
        .debugger
        .run_back_to(target, Reason::Step, &interrupt);
    console.stopped(&stop)
}

/// The queue of the current task; at the end, that of the last one.
fn queue(console: &Console<'_, '_>) -> Option<QueueId> {
    let session = &console.debugger.session;
    let last = || session.task(session.effects().checked_sub(1)?);
    let task = session.current().or_else(last)?;
    Some(session.program().tasks[task].queue)
}

pub(super) fn run(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    nothing(arguments)?;
    console.debugger.restart();
    go(console, "")
}

pub(super) fn go(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    nothing(arguments)?;
    let interrupt = console.interrupt.clone();
    let stop = console.debugger.go(&interrupt);
    Ok(console.stopped(&stop))
}

pub(super) fn step(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let target = console
        .debugger
        .session
        .at()
        .saturating_add(times(arguments)?);
    console.debugger.seen();
    Ok(forward(console, target, Reason::Step))
}

pub(super) fn next(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let count = times(arguments)?;
    let target = match queue(console) {
        Some(queue) => console.debugger.after(queue, count),
        None => console.debugger.session.effects(),
    };
    console.debugger.seen();
    Ok(forward(console, target, Reason::Step))
}

pub(super) fn finish(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    nothing(arguments)?;
    let session = &console.debugger.session;
    let Some(task) = session.current() else {
        return Err("expected a current task, found the end of the run".to_owned());
    };
    let Some(layer) = session.program().layer(task) else {
        return Err(format!(
            "expected a task of a layer, found {}, which names none; `until TASK` goes on to a task",
            session.program().task_name(task)
        ));
    };
    let last = console
        .debugger
        .layers()
        .get(layer)
        .map(|(_, last)| last + 1);
    Ok(forward(console, last.unwrap_or(0), Reason::Step))
}

pub(super) fn until(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let effect = effect_of(console, arguments)?;
    let at = console.debugger.session.at();
    if effect < at {
        return Err(format!(
            "expected a task that is still to come, found {arguments}, effect {effect} of the past; `goto {arguments}` goes back"
        ));
    }
    let interrupt = console.interrupt.clone();
    let mut stop = console.debugger.run_to(effect, Reason::Step, &interrupt);
    if console.debugger.session.at() == effect {
        if stop.reason == Reason::Step {
            stop.detail = format!("reached {arguments}");
        }
    } else if stop.reason == Reason::Catch {
        return Err(format!("{arguments} is not reached: {}", stop.detail));
    } else {
        let why = if stop.detail.is_empty() { "" } else { "; " };
        stop.detail = format!("{}{why}{arguments} is not reached yet", stop.detail);
    }
    Ok(console.stopped(&stop))
}

/// `1 effect`, `2 effects`.
fn effects_text(count: usize) -> String {
    format!("{count} effect{}", if count == 1 { "" } else { "s" })
}

/// The effect of a task by name.
fn effect_of(console: &Console<'_, '_>, name: &str) -> Result<usize, String> {
    let task = console.debugger.task(name)?;
    console.debugger.session.effect_of(task).ok_or_else(|| {
        format!("expected a task that runs, found {name}: the run ends before its effect")
    })
}

pub(super) fn reverse_go(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    nothing(arguments)?;
    Ok(backward(console, 0))
}

pub(super) fn reverse_step(
    console: &mut Console<'_, '_>,
    arguments: &str,
) -> Result<Answer, String> {
    let target = console
        .debugger
        .session
        .at()
        .saturating_sub(times(arguments)?);
    Ok(backward(console, target))
}

pub(super) fn reverse_next(
    console: &mut Console<'_, '_>,
    arguments: &str,
) -> Result<Answer, String> {
    let count = times(arguments)?;
    let target = queue(console).map_or(0, |queue| console.debugger.before(queue, count));
    Ok(backward(console, target))
}

pub(super) fn goto(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let effects = console.debugger.session.effects();
    let mut target = arguments.to_owned();
    let effect = match arguments {
        "end" => effects,
        text => match text.parse::<usize>() {
            Ok(effect) if effect <= effects => {
                target = format!("effect {effect}");
                effect
            }
            Ok(effect) => {
                return Err(format!(
                    "expected an effect up to {effects}, found {effect}"
                ));
            }
            Err(_) => effect_of(console, text)?,
        },
    };
    let from = console.debugger.session.at();
    let mut stop = console.debugger.goto(effect);
    if console.debugger.session.at() < effect {
        return Err(format!("effect {effect} is not reached: {}", stop.detail));
    }
    if stop.detail.is_empty() {
        let way = match from.cmp(&effect) {
            Ordering::Less => format!("went forward {} to", effects_text(effect - from)),
            Ordering::Equal => "stayed at".to_owned(),
            Ordering::Greater => format!("went back {} to", effects_text(from - effect)),
        };
        stop.detail = format!("{way} {target}");
    }
    Ok(console.stopped(&stop))
}
