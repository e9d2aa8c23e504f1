//! `chipless iospec`

use crate::commands::Opened;
use crate::failure::{Exit, Failure};
use crate::options::TargetOptions;
use crate::{files, terminal};
use clap::Args;
use std::path::PathBuf;

/// Print the IOSpec of a program's interface.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Input data, for programs whose length follows it (dsa).
    ///
    /// NAME=FILE.npy, repeatable. Default: 256 rows, or fewer if rows are very wide.
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    inputs: Vec<String>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless iospec model.blob                    inputs, outputs, one sequence
  chipless iospec model.neff -o model.yaml
  chipless run model.neff --iospec model.yaml   a run that keeps to it
  chipless iospec dot.dfg --input a=a.npy --input b=b.npy

The contract is that of a program before compilation for an SPU: lengths in elements, no addresses. Shape and type of \
each tensor stand in its comments.

Exit status: 0 done, 2 the file cannot be read or holds no program.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut options = arguments.options.load()?;
    options.data.arrays.clone_from(&arguments.inputs);
    let opened = Opened::open(&arguments.file)?;
    let text = opened.with_document(&options, |document| Ok(document.contract()?))?;
    match &arguments.output {
        Some(path) => files::write(path, &[text.as_bytes()])?,
        None => terminal::print(&text)?,
    }
    Ok(Exit::Done)
}
