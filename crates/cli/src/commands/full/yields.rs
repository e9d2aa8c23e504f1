//! `chipless yield`

use crate::commands::Opened;
use crate::failure::{Exit, Failure};
use crate::output::OutputOptions;
use crate::terminal;
use chipless::Options;
use chipless::device::{self, Point, Yields};
use chipless::disk::Disk;
use chipless_model::Time;
use chipless_report::SCHEMA_VERSION;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Show when a program can be preempted and at what cost.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show what a preemption at this instant costs.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless yield model.blob
  chipless yield model.blob --at 350us

A preempted program starts no further task; tasks in flight run to their end. Times of tasks are those of `run --timing-only`; states \
are bytes on the chip that are still needed. Where tasks share resources, a drain may be shorter than worst and mean say.

Exit status: 0 done, 1 the program is refused, 2 the file cannot be used or the command was misused.";

/// The answer to `yield --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct YieldReport<'a> {
    /// Version of the form.
    schema_version: u32,
    /// The file.
    program: &'a str,
    #[serde(flatten)]
    yields: Yields,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let at = match &arguments.at {
        Some(text) => Some(device::time(text).ok_or_else(|| {
            Failure::misuse(
                "--at",
                format_args!("expected a time (350us), found \"{text}\""),
            )
        })?),
        None => None,
    };
    let options = Options::with_files(Disk);
    let opened = Opened::open(&arguments.file)?;
    let yields = device::with_program(&opened.path, &options, |program, timeline| {
        device::yields(program, timeline, at)
    })
    .map_err(|failure| opened.told(failure, None))?
    .map_err(|stopped| Failure::wrong(&opened.path, format_args!("{:?}", stopped.stop)))?;
    if arguments.answer.is_json() {
        terminal::print_json(&YieldReport {
            schema_version: SCHEMA_VERSION,
            program: &opened.path,
            yields,
        })?;
        return Ok(Exit::Done);
    }
    let time = Time::from_ns;
    let mut text = format!(
        "{}: {}\n  {} instants at which nothing is in flight\n  drain: {} on average, {} at most\n  state: {} bytes on average, {} at most\n",
        opened.path,
        time(yields.latency_ns),
        yields.points,
        time(yields.mean_drain_ns),
        time(yields.worst_drain_ns),
        yields.state_bytes.mean.round(),
        yields.state_bytes.max,
    );
    let line = |point: &Point| {
        format!(
            "  at {:>10}: drain {:>10}, state {} bytes\n",
            time(point.at_ns).to_string(),
            time(point.drain_ns).to_string(),
            point.state_bytes
        )
    };
    text.extend(yields.at.iter().map(line));
    text.push_str("  best instants, those with the least state first\n");
    text.extend(yields.best.iter().map(line));
    terminal::print(&text)?;
    Ok(Exit::Done)
}
