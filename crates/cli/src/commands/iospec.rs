//! `chipless iospec`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::targets::{Data, LoweringOptions};
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
    /// Data of an input, for programs that are as long as their inputs (dsa); may be given several times. Without any, a dataflow graph is
    /// taken with 256 rows, or fewer if they are very wide.
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    inputs: Vec<String>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    lowering: LoweringOptions,
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
    let lowering = arguments.lowering.load()?.with_data(Data {
        arrays: arguments.inputs.clone(),
        seed: 0,
    });
    let opened = Opened::open(&arguments.file)?;
    let text = opened.with_document(&lowering, |document| {
        let written = document.with_program(&lowering, |program, _| {
            yaml::write(&iospec::of_interface(&program.interface))
        })?;
        written.map_err(|findings| opened.refuse_program(&findings))
    })?;
    match &arguments.output {
        Some(path) => files::write(path, &[text.as_bytes()])?,
        None => terminal::print(&text)?,
    }
    Ok(Exit::Done)
}
