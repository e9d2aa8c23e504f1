//! `chipless convert`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::targets::LoweringOptions;
use crate::{files, terminal};
use clap::Args;
use std::path::PathBuf;

/// Write a file in the present form of its format.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A schedule of any dialect (gemini), an IOSpec of either dialect or a .femto container, whose IOSpec comes out (spu).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    lowering: LoweringOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless convert set.json.gz -o schedule.json --network network.json
  chipless convert old.yaml -o iospec.yaml   from the flat dialect of femtorun 1
  chipless convert model.femto               the IOSpec that a container holds

What a schedule lacks is made as plainly as possible: one tile for each workload, addresses where there are none. The \
network says the shape of weights, of which SET has only the output channels and the bytes.

Exit status: 0 done, 2 the file cannot be read or has no other form, or the result cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let lowering = arguments.lowering.load()?;
    let opened = Opened::open(&arguments.file)?;
    let converted = opened.with_document(&lowering, |document| {
        document.convert().map_err(|findings| match findings.as_slice() {
            [] => Failure::unusable(&opened.path, "expected a file of a format that has several forms, found one that has no other"),
            findings => opened.refuse("cannot be converted", findings, Exit::Unusable),
        })
    })?;
    match &arguments.output {
        Some(path) => files::write(path, &[converted.as_bytes()])?,
        None => terminal::print(&converted)?,
    }
    Ok(Exit::Done)
}
