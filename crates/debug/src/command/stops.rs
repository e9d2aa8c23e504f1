//! Commands that say where to stop.

use super::{Answer, Console};
use crate::debugger::Catch;
use crate::touches::Kind;
use chipless::suggest;

/// What stands before ` if `, and the condition behind it.
pub(crate) fn condition(text: &str) -> (&str, Option<&str>) {
    match text.split_once(" if ") {
        Some((target, condition)) => (target.trim(), Some(condition)),
        None => (text.trim(), None),
    }
}

pub(super) fn set_break(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    set(console, arguments, false)
}

pub(super) fn set_temporary(
    console: &mut Console<'_, '_>,
    arguments: &str,
) -> Result<Answer, String> {
    set(console, arguments, true)
}

fn set(console: &mut Console<'_, '_>, arguments: &str, temporary: bool) -> Result<Answer, String> {
    let debugger = &mut console.debugger;
    let (mut target, condition) = condition(arguments);
    let current = debugger
        .session
        .current()
        .map(|t| debugger.session.program().task_name(t));
    if target.is_empty() {
        target = current
            .as_deref()
            .ok_or("expected a task, found the end of the run")?;
    }
    let number = debugger.add_break(target, condition, temporary)?;
    let text = format!(
        "breakpoint {number}: {}\n",
        debugger.breakpoints()[&number].text
    );
    Ok(Answer::said(text).with("number", number))
}

pub(super) fn watch(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let (target, condition) = condition(arguments);
    let kinds = [Kind::Read, Kind::Write, Kind::Access];
    let spoken = kinds.into_iter().find_map(|kind| {
        let range = target.strip_suffix(kind.name())?;
        range
            .ends_with(char::is_whitespace)
            .then_some((range, kind))
    });
    let (range, kind) = spoken.unwrap_or((target, Kind::Write));
    let debugger = &mut console.debugger;
    let number = debugger.add_watch(range.trim(), kind, condition)?;
    let text = format!(
        "watchpoint {number}: {}\n",
        debugger.breakpoints()[&number].text
    );
    Ok(Answer::said(text).with("number", number))
}

pub(super) fn catch(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let Some(catch) = Catch::ALL
        .into_iter()
        .find(|catch| catch.name() == arguments)
    else {
        let hint = suggest::hint(arguments, Catch::ALL.iter().map(|c| c.name()));
        return Err(format!(
            "expected nan, inf, fault or deadlock, found \"{arguments}\"{hint}"
        ));
    };
    let number = console.debugger.add_catch(catch);
    let text = format!("catchpoint {number}: {}\n", catch.name());
    Ok(Answer::said(text).with("number", number))
}

pub(super) fn delete(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let debugger = &mut console.debugger;
    let numbers: Vec<u32> = if arguments.is_empty() {
        let caught = debugger.catches().values();
        debugger
            .breakpoints()
            .keys()
            .chain(caught)
            .copied()
            .collect()
    } else {
        let each = arguments.split_whitespace().map(|word| {
            word.parse()
                .map_err(|_| format!("expected the number of a breakpoint, found \"{word}\""))
        });
        each.collect::<Result<_, _>>()?
    };
    for number in &numbers {
        if !debugger.remove(*number) {
            return Err(format!(
                "expected the number of a breakpoint, found {number}; `info breakpoints` shows them"
            ));
        }
    }
    Ok(Answer::said("").with("numbers", numbers))
}
