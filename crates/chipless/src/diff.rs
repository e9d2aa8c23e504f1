//! Two files of one target: what changed from the one to the other.

use crate::failure::{Failure, FailureKind};
use crate::file::OpenDocument;
use crate::machine::{Figure, figures};
use crate::target::Lowered;
use crate::values::{Inputs, values};
use chipless_model::Program;
use chipless_report::diff::{self, Difference, MachineFigure, Side};
use chipless_sim::{Timeline, TimingOnly, Verified};

/// What to find out besides what differs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Why the one takes longer, layer by layer.
    pub time: bool,
    /// The first task that writes other numbers, on the first document's [arrays](crate::Data::arrays) and on inputs drawn from this seed.
    pub values: Option<u64>,
}

/// Compares two files of one target: programs task by task, by what they do and where their data come from; contracts and other files without
/// tasks entry by entry.
///
/// # Errors
/// A program beside a file without tasks; what keeps either from being lowered; a deadlock; for values, other inputs or a fault.
pub fn diff(
    a: &OpenDocument<'_>,
    b: &OpenDocument<'_>,
    wanted: Wanted,
) -> Result<Difference, Failure> {
    match (a.is_program(), b.is_program()) {
        (true, true) => programs(a, b, wanted),
        (false, false) => Ok(documents(a, b)),
        _ => {
            let text = "expected two programs, or two files without one, found one of each";
            Err(Failure::unreadable(b.name(), text))
        }
    }
}

fn programs(
    a: &OpenDocument<'_>,
    b: &OpenDocument<'_>,
    wanted: Wanted,
) -> Result<Difference, Failure> {
    let (of_a, of_b) = (a.lower()?, b.lower()?);
    let times = (timeline(a, &of_a)?, timeline(b, &of_b)?);
    let side_a = Side {
        program: &of_a.program,
        timeline: &times.0,
        order: &times.0.order,
    };
    // One program on two machines has one data flow, also where tasks write the same bytes and nothing orders them.
    let side_b = Side {
        program: &of_b.program,
        timeline: &times.1,
        order: if are_ordered_alike(&of_a.program, &of_b.program) {
            &times.0.order
        } else {
            &times.1.order
        },
    };
    let (mut difference, pairs) = diff::diff(side_a, side_b);
    if wanted.time {
        let mut time = diff::time(side_a, side_b);
        time.program = diff::facts(&a.info(), &b.info());
        time.notes = notes(&of_a, &of_b);
        time.machine = machines(a, b)?;
        let operations = diff::changed(side_a, side_b);
        let rests_on =
            |key: &String| of_a.program.figures.contains(key) || of_b.program.figures.contains(key);
        // What explains the difference comes first.
        time.machine.sort_by_cached_key(|figure| {
            let key = &figure.figure;
            let mut operations = operations.iter();
            let cost_of = operations.position(|of| key.split('.').any(|part| part == of));
            let place = cost_of.filter(|_| rests_on(key));
            (place.unwrap_or(usize::MAX), !rests_on(key))
        });
        difference.time = Some(time);
    }
    if let Some(seed) = wanted.values {
        let inputs = Inputs::of(a, &of_a.program, seed)?;
        difference.values = Some(values(side_a, side_b, &pairs, &inputs)?);
    }
    Ok(difference)
}

/// Whether tasks stand in the same queues and wait for the same: an order of one program is one of the other, too.
fn are_ordered_alike(a: &Program<'_>, b: &Program<'_>) -> bool {
    a.tasks.len() == b.tasks.len()
        && a.tasks.indices().all(|task| {
            let place =
                |program: &Program<'_>| (program.tasks[task].queue, program.tasks[task].index);
            place(a) == place(b)
                && a.waits(task) == b.waits(task)
                && a.signals(task) == b.signals(task)
        })
}

/// What `run` notes of one side only.
fn notes(a: &Lowered<'_>, b: &Lowered<'_>) -> Vec<String> {
    let of = |name: &str, own: &Lowered<'_>, other: &Lowered<'_>| -> Vec<String> {
        let own = own.notes.iter();
        let alone = own.filter(|note| !other.notes.contains(note));
        alone.map(|note| format!("{name}: {note}")).collect()
    };
    [of("A", a, b), of("B", b, a)].concat()
}

/// Figures of the machines that are not the same.
fn machines(a: &OpenDocument<'_>, b: &OpenDocument<'_>) -> Result<Vec<MachineFigure>, Failure> {
    let of = |document: &OpenDocument<'_>| -> Result<Vec<Figure>, Failure> {
        Ok(figures(&document.machine_text()?.unwrap_or_default()))
    };
    let (of_a, mut of_b) = (of(a)?, of(b)?);
    let mut differ = Vec::new();
    for figure in of_a {
        let other = of_b.iter().position(|other| other.key == figure.key);
        let other = other.map(|at| of_b.remove(at).value);
        if other.as_ref() != Some(&figure.value) {
            differ.push(MachineFigure {
                figure: figure.key,
                unit: figure.unit,
                a: Some(figure.value),
                b: other,
            });
        }
    }
    differ.extend(of_b.into_iter().map(|figure| MachineFigure {
        figure: figure.key,
        unit: figure.unit,
        a: None,
        b: Some(figure.value),
    }));
    Ok(differ)
}

/// When everything happens. Findings do not matter here: faulty programs can be compared.
fn timeline(document: &OpenDocument<'_>, lowered: &Lowered<'_>) -> Result<Timeline, Failure> {
    let outcome = chipless_sim::run(&Verified::assume(&lowered.program), &mut TimingOnly);
    if outcome.end.is_ok() {
        return Ok(outcome.timeline);
    }
    let text = "does not come to its end: `chipless run` says why";
    Err(Failure::new(FailureKind::Deadlock, document.name(), text))
}

/// Files without tasks: their structures, entry by entry. Contracts are compared in the present form of their format.
fn documents(a: &OpenDocument<'_>, b: &OpenDocument<'_>) -> Difference {
    match (a.contract(), b.contract()) {
        (Ok(a), Ok(b)) => Difference::of_texts(&a, &b),
        _ => Difference::of_nodes(&a.raw(), &b.raw()),
    }
}
