//! `chipless diff`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::options::{InputOptions, OtherOptions, TargetOptions};
use crate::output::{self, OutputOptions};
use crate::terminal;
use chipless::diff::Wanted;
use chipless_model::Time;
use chipless_report::diff::Difference;
use clap::Args;
use std::path::PathBuf;

/// Compare two programs of one target by meaning.
///
/// Shows changed tasks, constants, interface and memory.
///
/// Tasks are matched by what they do and where their data come from. Dates, names of builds, addresses and orders that no result depends on
/// do not count. Contracts (`IOSpecs`) and other files without tasks are compared entry by entry.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// First program, of any target.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Second program, of the same target.
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Show which layers take longer and why.
    ///
    /// The contributions add up to the difference of the latencies. `--other` with a machine, or a change of one, implies it.
    #[arg(long)]
    time: bool,
    /// Exit with 1 only if B is slower by more than this.
    ///
    /// A gate for CI; implies --time. Example: --max-regression 3%
    #[arg(long, value_name = "PERCENT", value_parser = super::percent)]
    max_regression: Option<f64>,
    /// Execute both and find the first task that differs.
    ///
    /// Both programs get the same inputs: those of --input, and seeded random data for the others.
    #[arg(long)]
    values: bool,
    #[command(flatten)]
    data: InputOptions,
    #[command(flatten)]
    other: OtherOptions,
    #[command(flatten)]
    answer: OutputOptions,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless diff old.blob new.blob
  chipless diff old.blob new.blob --time       which layers became slower, and why
  chipless diff old.blob new.blob --max-regression 3%   for CI: exit 1 if slower by more
  chipless diff model.blob model.blob --other machine=npu5   one program on two machines
  chipless diff old.neff new.neff --values     the first task with other numbers
  chipless diff old.neff new.neff --values --input x=x.npy
  chipless diff a.dfg b.dfg --map a.json --other map=b.json
  chipless diff a.yaml b.yaml                  two IOSpecs
  chipless report old.blob --against new.blob -o ab.html

JSON is explained in docs/json.md.

Exit status: 0 they mean the same, 1 they differ, 2 they cannot be compared. With --max-regression: 0 B is not slower by more than that, 1 it is.";

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
    if let Some(most) = arguments.max_regression {
        return Ok(regression(&names, &difference, most));
    }
    Ok(if difference.equal {
        Exit::Done
    } else {
        Exit::Wrong
    })
}

/// Whether the second program takes too long, which is said.
fn regression(names: &[String; 2], difference: &Difference, most: f64) -> Exit {
    let Some(time) = &difference.time else {
        let text = "--max-regression: expected two programs that can be timed, found files without tasks\n";
        terminal::complain(text);
        return Exit::Unusable;
    };
    let (before, after) = (time.latency_a_ns, time.latency_b_ns);
    let [a, b] = names;
    // What rounding adds is no regression.
    if after <= before * (1.0 + most / 100.0 + 1e-11) {
        if after == 0.0 {
            let text = format!("{b}: takes no time, which is never a regression\n");
            terminal::complain(&text);
        }
        return Exit::Done;
    }
    let longer = if before == 0.0 {
        format!("{}, {a} no time", Time::from_ns(after))
    } else {
        format!("{:.1} % longer than {a}", (after / before - 1.0) * 100.0)
    };
    terminal::complain(&format!(
        "{b}: takes {longer}; --max-regression allows {most} %\n"
    ));
    Exit::Wrong
}

fn compare(arguments: &Arguments) -> Result<Difference, Failure> {
    let mut options = arguments.options.load()?;
    if !arguments.values && !arguments.data.inputs.is_empty() {
        let text = "expected --values beside it: only programs that are executed take inputs";
        return Err(Failure::misuse("--input", text));
    }
    options.data = arguments.data.data(arguments.values);
    let others = arguments.other.load(&options, "diff")?;
    let (first, second) = (
        Opened::open(&arguments.first)?,
        Opened::open(&arguments.second)?,
    );
    let target = first.target().unwrap_or_default();
    if !target.is_empty() {
        second.expect(target, &format!("a second file of target {target}"))?;
    }
    let wanted = Wanted {
        time: arguments.time
            || arguments.max_regression.is_some()
            || arguments.other.changes_times(),
        values: arguments.values.then_some(arguments.data.seed),
    };
    first.with_document(&options, |a| {
        second.with_document(&others, |b| Ok(chipless::diff::diff(a, b, wanted)?))
    })
}
