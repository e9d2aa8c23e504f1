//! Costs that nobody knows: a figure of the machine file whose source begins with `guess: ` holds their place, and the rest of the source says why.

use super::{Figure, figures};
use chipless_model::{Program, Time, count};
use std::collections::BTreeMap;

const MARK: &str = "guess: ";

/// What of a program's times rests on costs that nobody knows.
#[derive(Default)]
pub(crate) struct Guesses {
    /// A sentence for each cost.
    pub(crate) notes: Vec<String>,
    /// Tasks of operations that such a cost is named after.
    pub(crate) tasks: usize,
}

/// `documented` is the machine file with its comments, `machine` what runs use: a cost that somebody has set is no guess.
pub(crate) fn guesses(program: &Program<'_>, documented: &str, machine: &str) -> Guesses {
    // Most programs use none, which needs no reading of the whole file.
    let mut names = marked(documented);
    if !names.any(|name| {
        program
            .figures
            .iter()
            .any(|key| key.split('.').any(|part| part == name))
    }) {
        return Guesses::default();
    }
    let used = figures(machine);
    let mut costs: BTreeMap<String, Vec<Figure>> = BTreeMap::new();
    for figure in figures(documented) {
        if figure.source.starts_with(MARK)
            && let Some((cost, _)) = figure.key.rsplit_once('.')
        {
            costs.entry(cost.to_owned()).or_default().push(figure);
        }
    }
    costs.retain(|_, parts| {
        let is_used = |part: &Figure| program.figures.contains(&part.key);
        let is_set = |part: &Figure| {
            let now = used.iter().find(|figure| figure.key == part.key);
            now.is_none_or(|figure| figure.value != part.value)
        };
        parts.iter().any(is_used) && !parts.iter().any(is_set)
    });
    let mut guesses = Guesses::default();
    for (cost, parts) in costs {
        let Some((last, why)) = parts
            .last()
            .and_then(|last| Some((last, last.source.strip_prefix(MARK)?)))
        else {
            continue;
        };
        let why = why.split_once(". ").map_or(why, |(first, _)| first);
        let (tasks, said) = timed(program, &cost)
            .unwrap_or_else(|| (0, format!("some tasks take what {cost} says")));
        guesses.tasks += tasks;
        guesses.notes.push(format!(
            "{said}, which is a guess: {why} (--set {}=VALUE, in {})",
            last.key, last.unit
        ));
    }
    guesses
}

/// Names in a machine file whose sources have the mark: behind them, or in the lines above.
fn marked(documented: &str) -> impl Iterator<Item = &str> {
    let mut is_marked = false;
    documented.lines().filter_map(move |line| {
        is_marked |= line.contains(MARK);
        let (name, _) = line.split_once('=')?;
        let is_name = !line.trim_start().starts_with('#');
        (is_name && std::mem::take(&mut is_marked)).then(|| name.trim())
    })
}

/// How many tasks have the operation that a cost is named after, and what each takes; `None` where it has no such name.
fn timed(program: &Program<'_>, cost: &str) -> Option<(usize, String)> {
    let operation = cost.rsplit('.').next().unwrap_or(cost);
    let tasks = program.tasks.indices();
    let own = tasks.filter(|task| program.kernel(*task).operation() == operation);
    let times: Vec<Time> = own.map(|task| program.tasks[task].fixed).collect();
    let task = format!("{operation} task");
    let (least, most) = (times.iter().min()?, times.iter().max()?);
    let tasks = count(times.len(), &task);
    let said = match times.len() {
        1 => format!("{tasks} takes {least}"),
        _ if least == most => format!("{tasks} take {least} each"),
        _ => format!("{tasks} take {least} to {most}"),
    };
    Some((times.len(), said))
}
