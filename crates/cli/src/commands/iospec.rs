//! `chipless iospec`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::targets::LoweringOptions;
use crate::{files, terminal};
use chipless_spu::{iospec, yaml};
use clap::Args;
use std::path::PathBuf;

/// The IOSpec of a program's interface.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
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
  chipless iospec model.blob                        inputs, outputs, and the one sequence that joins them
  chipless iospec model.neff -o model.yaml
  chipless run model.neff --iospec model.yaml       a run that keeps to it

The contract is that of a program before compilation for an SPU: lengths in elements, no addresses. Shape and type
of each tensor stand in its comments.

Exit status: 0 done, 2 the file cannot be read or holds no program.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let lowering = arguments.lowering.load()?;
    let opened = Opened::open(&arguments.file)?;
    let text = opened.with_document(&lowering, |document| {
        let written = document.with_program(&lowering, |program, _| yaml::write(&iospec::of_interface(&program.interface)))?;
        written.map_err(|findings| opened.refuse_program(&findings))
    })?;
    match &arguments.output {
        Some(path) => files::write(path, &[text.as_bytes()])?,
        None => terminal::print(&text)?,
    }
    Ok(Exit::Done)
}
