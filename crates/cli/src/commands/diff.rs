//! `chipless diff`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::options::TargetOptions;
use crate::output::{self, OutputOptions};
use crate::terminal;
use chipless::diff::Wanted;
use chipless_report::diff::Difference;
use clap::Args;
use std::path::PathBuf;

/// What changed between two programs of one target: tasks by meaning, constants, interface, memory.
///
/// Tasks are matched by what they do and where their data come from. Dates, names of builds, addresses and orders that no result depends on
/// do not count. Contracts (`IOSpecs`) and other files without tasks are compared entry by entry.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The one program, of any target.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The other one, of the same target.
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Tell why the one takes longer, layer by layer; the parts add up to the difference.
    #[arg(long)]
    time: bool,
    /// Execute both on the same inputs and find the first task that writes other numbers.
    #[arg(long)]
    values: bool,
    /// Seed of the random inputs of --values.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// An option that holds for B only: `map=b.json`, `set=clock.dpu=2x`. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    other: Vec<String>,
    #[command(flatten)]
    answer: OutputOptions,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless diff old.blob new.blob
  chipless diff old.blob new.blob --time       which layers became slower, and why
  chipless diff old.neff new.neff --values     the first task with other numbers
  chipless diff a.dfg b.dfg --map a.json --other map=b.json
  chipless diff a.yaml b.yaml                  two IOSpecs
  chipless report old.blob --against new.blob -o ab.html

JSON is explained in docs/json.md.

Exit status: 0 they mean the same, 1 they differ, 2 they cannot be compared.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // Whatever keeps the two from being compared, even what is wrong with one of them, is no difference.
    let difference = match compare(arguments) {
        Ok(difference) => difference,
        Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
        Err(failure) => {
            terminal::complain(&failure.text());
            if arguments.answer.is_json() {
                output::print_failure(&failure)?;
            }
            return Ok(Exit::Unusable);
        }
    };
    let names = [&arguments.first, &arguments.second].map(|path| path.display().to_string());
    if arguments.answer.is_json() {
        terminal::print_json(&difference)?;
    } else {
        terminal::print(&difference.text(&names[0], &names[1], terminal::out()))?;
    }
    Ok(if difference.equal {
        Exit::Done
    } else {
        Exit::Wrong
    })
}

fn compare(arguments: &Arguments) -> Result<Difference, Failure> {
    let mut options = arguments.options.load()?;
    options.data.computes = arguments.values;
    options.data.seed = arguments.seed;
    let mut others = options.clone();
    for option in &arguments.other {
        let (name, value) = option.split_once('=').ok_or_else(|| {
            let text = format!("expected NAME=VALUE, found \"{option}\"");
            Failure::misuse("--other", text)
        })?;
        others.set(name, value)?;
    }
    let (first, second) = (
        Opened::open(&arguments.first)?,
        Opened::open(&arguments.second)?,
    );
    let target = first.target().unwrap_or_default();
    if !target.is_empty() {
        second.expect(target, &format!("a second file of target {target}"))?;
    }
    let wanted = Wanted {
        time: arguments.time,
        values: arguments.values.then_some(arguments.seed),
    };
    first.with_document(&options, |a| {
        second.with_document(&others, |b| Ok(chipless::diff::diff(a, b, wanted)?))
    })
}
