//! `chipless convert`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::targets::LoweringOptions;
use clap::Args;
use std::path::PathBuf;

/// Writes a program in the main dialect of its target: schedules of SET, GEMINI and IR-tiling become scheduler IR.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A schedule of any dialect, gzipped or not.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    lowering: LoweringOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless convert set.json -o schedule.json
  chipless convert set.json.gz -o schedule.json --network network.json

What the file lacks is made as plainly as possible: one tile for each workload, addresses where there are none. The
network says the shape of weights, of which SET has only the output channels and the bytes.

Exit status: 0 done, 2 the file cannot be read, its target has one dialect only, or the result cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let lowering = arguments.lowering.load()?;
    let opened = Opened::open(&arguments.file)?;
    opened.with_document(&lowering, |document| {
        files::write(&arguments.output, &[document.convert()?.as_bytes()])?;
        Ok(Exit::Done)
    })
}
