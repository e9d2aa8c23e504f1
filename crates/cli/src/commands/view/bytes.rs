//! The bytes at an address and an instant, for the page that `view` serves: the program is executed up to then.

use super::super::{Opened, run::inputs};
use crate::failure::Failure;
use chipless::Options;
use chipless_model::{Program, Storage, Time};
use chipless_report::attribution::lives;
use chipless_report::instant::{Instant, done_by, place};
use chipless_sim::{Effects, Functional, TimingOnly, Verified};

/// What the page asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    memory: u64,
    address: u64,
    at: Time,
}

impl Question {
    /// Reads `memory=1&address=4096&ps=1200`, in any order.
    pub(super) fn of(query: &str) -> Result<Question, String> {
        let number = |name: &str| {
            let mut values = query.split('&').filter_map(|part| part.strip_prefix(name));
            let found = values.find_map(|value| value.strip_prefix('='));
            let value = found.and_then(|value| value.parse::<u64>().ok());
            value.ok_or_else(|| {
                let found = found.unwrap_or("none");
                format!("expected {name}=N with a whole number of at most 64 bits, found {found}")
            })
        };
        Ok(Question {
            memory: number("memory")?,
            address: number("address")?,
            at: Time(number("ps")?),
        })
    }
}

/// Whether the data of the inputs are what the program takes.
pub(super) fn check_inputs(opened: &Opened, options: &Options) -> Result<(), Failure> {
    opened.with_document(options, |document| {
        let lowered = document.lower()?;
        let given = inputs::open(&opened.path, &lowered.program, &options.data.arrays)?;
        filled(opened, &lowered.program, &given, options)?;
        Ok(())
    })
}

/// The memory before the first task, and what of it is random.
fn filled<'b>(
    opened: &Opened,
    program: &Program<'b>,
    given: &'b [inputs::Given],
    options: &Options,
) -> Result<(Storage<'b>, Vec<String>), Failure> {
    let mut storage = Storage::new(&program.buffers, &options.limits).map_err(chipless::no_room)?;
    let (path, seed) = (&opened.path, options.data.seed);
    let random = inputs::fill(path, program, given, &[], seed, &mut storage)?;
    Ok((storage, random))
}

/// Executes the program up to the instant. The answer is JSON.
pub(super) fn answer(
    opened: &Opened,
    options: &Options,
    question: &Question,
) -> Result<String, Failure> {
    opened.with_document(options, |document| {
        let lowered = document.lower()?;
        if let Err(findings) = lowered.verify() {
            let text = "can only be timed: errors were found, so its bytes mean nothing";
            return Err(chipless::Failure {
                message: text.to_owned(),
                ..chipless::Failure::program(findings)
            }
            .into());
        }
        let program = &lowered.program;
        let outcome = chipless_sim::run(&Verified::assume(program), &mut TimingOnly);
        let timeline = outcome.timeline;
        let mut memories = program.memories.iter_enumerated();
        let asked = memories.find(|(id, _)| id.index() as u64 == question.memory);
        let Some((id, memory)) = asked else {
            let (found, all) = (question.memory, program.memories.len());
            let text = format!("expected one of {all} memories, found number {found}");
            return Err(Failure::misuse("memory", text));
        };
        let (address, at) = (question.address, question.at.min(timeline.end));
        let place = place(program, &lives(program, &timeline), id, address, at);
        let Some(place) = place else {
            let name = &memory.name;
            let text = format!("expected an address of a buffer in {name}, found {address:#x}");
            return Err(Failure::misuse("address", text));
        };
        let given = inputs::open(&opened.path, program, &options.data.arrays)?;
        let (mut storage, random) = filled(opened, program, &given, options)?;
        let mut effects = Functional::new(&mut storage);
        for task in done_by(&timeline, at) {
            effects.apply(program, task).map_err(|fault| {
                let text = format!("the run stops before this instant: {fault}");
                Failure::wrong(program.task_name(task), text)
            })?;
        }
        let notes = chipless::random_note(&random, options.data.seed)
            .into_iter()
            .collect();
        let instant = Instant::of(program, &timeline, &storage, place, at, notes);
        serde_json::to_string(&instant).map_err(|error| Failure::misuse("bytes", error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_say_what_is_wrong_with_them() {
        let asked = Question::of("ps=1200&memory=1&address=4096");
        let expected = Question {
            memory: 1,
            address: 4096,
            at: Time(1200),
        };
        assert_eq!(asked, Ok(expected));
        for (query, found) in [
            (
                "",
                "memory=N with a whole number of at most 64 bits, found none",
            ),
            (
                "memory=1&address=-4&ps=0",
                "address=N with a whole number of at most 64 bits, found -4",
            ),
            (
                "memory=1&address=0&ps=18446744073709551616",
                "ps=N with a whole number of at most 64 bits, found 18446744073709551616",
            ),
        ] {
            assert_eq!(Question::of(query), Err(format!("expected {found}")));
        }
    }
}
