//! Costs that nobody knows: a figure of the machine file whose source begins with `guess: ` holds their place, and the rest of the source says why.

use super::{Figure, figures};
use crate::failure::Failure;
use chipless_model::{Direction, Program, QueueId, TaskId, Time, count};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const MARK: &str = "guess: ";

/// A cost that nobody knows, of which times of a program are made.
pub(crate) struct Guess {
    /// The tasks that take it, if the target says which.
    pub(crate) tasks: Vec<TaskId>,
    /// A sentence.
    pub(crate) note: String,
    /// What it leaves out of the time of a unit.
    pub(crate) lacks: Time,
    /// The change of the machine with which it counts the bytes that it leaves out, if it leaves out any.
    pub(crate) with_bytes: Option<String>,
}

/// Behind the rate at which a cost that counts no bytes may count them, in the unit of the figure.
const WOULD_BE: &str = " would be ";

/// Whether a machine file that comes with Chipless has any.
pub(crate) fn has_guesses(own: &str) -> bool {
    own.contains(MARK)
}

/// `documented` is the machine file with its comments, `used` makes what runs use of it: a cost that somebody has set is no guess.
pub(crate) fn guesses(
    program: &Program<'_>,
    documented: &str,
    used: impl FnOnce() -> Result<String, Failure>,
) -> Result<Vec<Guess>, Failure> {
    // Each run comes here: the whole file is read where somebody changed it, and otherwise the lines that count.
    let counts = |name: &str| {
        let mut keys = program.figures.iter();
        keys.any(|key| key.split('.').any(|part| part == name))
    };
    let marked = marked(documented, counts);
    if marked.is_empty() {
        return Ok(Vec::new());
    }
    let used = used()?;
    let changed = (used != documented).then(|| figures(&used));
    let mut costs: BTreeMap<String, Vec<Figure>> = BTreeMap::new();
    for figure in figures(&marked) {
        if figure.source.starts_with(MARK)
            && let Some((cost, _)) = figure.key.rsplit_once('.')
        {
            costs.entry(cost.to_owned()).or_default().push(figure);
        }
    }
    costs.retain(|_, parts| {
        let is_used = |part: &Figure| program.figures.contains(&part.key);
        let is_set = |part: &Figure| {
            changed.as_ref().is_some_and(|changed| {
                let now = changed.iter().find(|figure| figure.key == part.key);
                now.is_none_or(|figure| figure.value != part.value)
            })
        };
        parts.iter().any(is_used) && !parts.iter().any(is_set)
    });
    let mut guesses = Vec::new();
    for (cost, parts) in costs {
        let Some((last, why)) = parts
            .last()
            .and_then(|last| Some((last, last.source.strip_prefix(MARK)?)))
        else {
            continue;
        };
        let why = why.split_once(". ").map_or(why, |(first, _)| first);
        let tasks = program.costs.get(&cost).cloned().unwrap_or_default();
        let said = match took(program, &tasks) {
            Some((_, said)) => said,
            None => format!("some tasks take what {cost} says"),
        };
        let lacks = lacks(program, &tasks, &parts, why);
        let busy = lacks.map_or_else(String::new, |time| {
            format!(", and {time} more for the busiest unit")
        });
        guesses.push(Guess {
            note: format!(
                "{said}, which is a guess: {why}{busy} (--set {}=VALUE, in {})",
                last.key, last.unit
            ),
            tasks,
            lacks: lacks.unwrap_or(Time::ZERO),
            with_bytes: lacks.and_then(|_| Some(format!("{}={:e}", last.key, rate(why)?))),
        });
    }
    let total = |guess: &Guess| took(program, &guess.tasks).map(|(total, _)| total);
    guesses.sort_by_key(|guess| Reverse(total(guess)));
    Ok(guesses)
}

/// The rate that the source of a figure names for bytes that it leaves out.
fn rate(why: &str) -> Option<f64> {
    let (before, _) = why.split_once(WOULD_BE)?;
    before.rsplit(' ').next()?.parse().ok()
}

/// How much longer the busiest unit would be at work if the bytes that tasks write counted at the rate that the source of a figure names.
fn lacks(program: &Program<'_>, tasks: &[TaskId], parts: &[Figure], why: &str) -> Option<Time> {
    let rate = rate(why)?;
    // The clock stands in what a task takes now.
    let is_fixed = |part: &&Figure| part.key.rsplit('.').next() == Some("fixed");
    let fixed = parts.iter().find(is_fixed)?;
    let fixed: f64 = fixed.value.parse().ok()?;
    let mut by_queue: BTreeMap<QueueId, f64> = BTreeMap::new();
    for task in tasks {
        let mut bytes = None;
        program.kernel(*task).accesses(&mut |access| {
            if access.direction == Direction::Write && bytes.is_none() {
                bytes = access.pattern.bytes();
            }
        });
        let times = bytes.unwrap_or(0) as f64 * rate / fixed;
        let task = &program.tasks[*task];
        *by_queue.entry(task.queue).or_default() += task.fixed.ns() * times;
    }
    let each = by_queue.into_iter();
    let each = each.map(|(queue, ns)| ns / f64::from(program.queues[queue].servers.max(1)));
    let most = each.fold(0.0, f64::max);
    (most > 0.0 && most.is_finite()).then(|| Time::from_ns(most))
}

/// The lines of a machine file that have the mark, behind them or in the lines above, and a name that counts; with their sections and comments.
fn marked(documented: &str, counts: impl Fn(&str) -> bool) -> String {
    let (mut text, mut section, mut comments) = (String::new(), None, Vec::new());
    for line in documented.lines() {
        let code = line.split_once('#').map_or(line, |(code, _)| code).trim();
        comments.push(line);
        if code.starts_with('[') {
            section = Some(line);
        } else if let Some((name, _)) = code.split_once('=') {
            if comments.iter().any(|line| line.contains(MARK)) && counts(name.trim()) {
                for line in section.take().into_iter().chain(comments.iter().copied()) {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        } else {
            continue;
        }
        comments.clear();
    }
    text
}

/// What tasks take in all, and what each takes; `None` of no tasks.
fn took(program: &Program<'_>, tasks: &[TaskId]) -> Option<(Time, String)> {
    let times: Vec<Time> = tasks
        .iter()
        .map(|task| program.tasks[*task].fixed)
        .collect();
    let operations: BTreeSet<Cow<'_, str>> = tasks
        .iter()
        .map(|task| program.kernel(*task).operation())
        .collect();
    let operations: Vec<&str> = operations.iter().map(|name| &**name).collect();
    let (least, most) = (times.iter().min()?, times.iter().max()?);
    let task = match *operations {
        [operation] => format!("{operation} task"),
        _ => "task".to_owned(),
    };
    let tasks = count(times.len(), &task);
    let said = match times.len() {
        1 => format!("{tasks} takes {least}"),
        _ if least == most => format!("{tasks} take {least} each"),
        _ => format!("{tasks} take {least} to {most}"),
    };
    let said = match *operations {
        [_] => said,
        _ => format!("{said} ({})", operations.join(", ")),
    };
    let total = times.iter().fold(Time::ZERO, |total, time| total + *time);
    Some((total, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine files that come with Chipless name a rate for each kernel whose bytes they leave out.
    #[test]
    fn kernels_without_bytes_have_a_rate() {
        let machines = crate::target("npu").expect("is built in").machines();
        for (name, text) in machines {
            let figures = figures(text).into_iter();
            let left_out = figures.filter(|figure| {
                let of_kernel = figure.key.starts_with("shave.operations.");
                let per_byte = figure.key.rsplit('.').next() == Some("per_byte");
                of_kernel && per_byte && figure.value == "0.0" && figure.source.contains(MARK)
            });
            for figure in left_out {
                let rate = rate(&figure.source);
                assert!(
                    rate.is_some_and(|rate| rate > 1e-4),
                    "{name}: {}",
                    figure.key
                );
            }
        }
    }

    #[test]
    fn only_lines_with_the_mark_and_a_name_that_counts_are_read() {
        let text = "name = \"N\" # guess: not asked for\n[dma]\n# ns: known\nlatency = 1.0\n[shave]\n# us [assumed]: guess: the first,\n# in two lines\n\
            default = { fixed = 1.0, per_byte = 0.0 }\n[shave.operations]\nswish = { fixed = 0.0, per_byte = 2.0 } # us [assumed]: guess: by name only\n\
            gelu = { fixed = 0.0, per_byte = 2.0 } # us [assumed]: guess: by name only\n";
        let all = marked(text, |name| name != "name");
        assert!(!all.contains("latency") && !all.contains("name ="), "{all}");
        let some = marked(text, |name| name == "swish" || name == "latency");
        assert!(some.starts_with("[shave.operations]\nswish = "), "{some}");
        assert_eq!(some.lines().count(), 2);
        let read = |text: &str| {
            let found = figures(text).into_iter();
            let found = found.filter(|figure| figure.source.starts_with(MARK));
            found
                .map(|figure| (figure.key, figure.source))
                .collect::<Vec<_>>()
        };
        assert_eq!(read(&all), read(text), "as in the whole file");
        assert_eq!(marked(text, |_| false), "");
    }
}
