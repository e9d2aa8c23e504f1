//! `chipless convert`

use crate::commands::Opened;
use crate::failure::{Exit, Failure};
use crate::options::TargetOptions;
use crate::{files, terminal};
use clap::Args;
use std::path::PathBuf;

/// Convert a file to the current form of its format.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File to convert.
    ///
    /// A schedule of any dialect (gemini); an IOSpec of either dialect; a .femto container, which gives its IOSpec; a graph (.pt), which gives its
    /// plan (spu).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the contract of the file (an IOSpec) to this one.
    #[arg(long, value_name = "SPEC.yaml")]
    iospec: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless convert set.json.gz -o schedule.json --network network.json
  chipless convert old.yaml -o iospec.yaml   from the flat dialect of femtorun 1
  chipless convert model.femto               the IOSpec that a container holds
  chipless convert revel.sbmodel -o fabric.json   a fabric of 2016 to 2020 as today's JSON
  chipless convert model.pt -o plan.json --iospec iospec.yaml

What a schedule lacks is made as plainly as possible: one tile for each workload, addresses where there are none. The \
network says the shape of weights, of which SET has only the output channels and the bytes.

Exit status: 0 done, 2 the file cannot be read or has no other form, or the result cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let opened = Opened::open(&arguments.file)?;
    let (converted, contract) = opened.with_document(&options, |document| {
        let contract = match &arguments.iospec {
            Some(_) => Some(document.contract()?),
            None => None,
        };
        // The contract alone, where it alone was asked for.
        let converted = match (&arguments.output, &contract) {
            (None, Some(_)) => None,
            _ => Some(document.capabilities().converts()?.convert()?),
        };
        Ok((converted, contract))
    })?;
    if let (Some(path), Some(contract)) = (&arguments.iospec, contract) {
        files::write(path, &[contract.as_bytes()])?;
    }
    match (&arguments.output, converted) {
        (Some(path), Some(converted)) => files::write(path, &[converted.as_bytes()])?,
        (None, Some(converted)) => terminal::print(&converted)?,
        (_, None) => {}
    }
    Ok(Exit::Done)
}
