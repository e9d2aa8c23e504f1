//! `chipless convert`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::{files, terminal};
use chipless_model::Limits;
use clap::Args;
use std::path::PathBuf;

/// Rewrite a file in the present form of its format.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// An IOSpec of either dialect, or a .femto container, whose IOSpec comes out (spu).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  chipless convert old.yaml -o iospec.yaml          the flat dialect of femtorun 1 in the present form
  chipless convert model.femto                      the IOSpec that a container holds

Exit status: 0 done, 2 the file cannot be read or has no other form.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let opened = Opened::open(&arguments.file)?;
    let converted = opened.with_document(&Limits::default(), |document| {
        document.convert().map_err(|findings| match findings.as_slice() {
            [] => {
                Failure::unusable(&opened.path, "expected an IOSpec or a .femto container to convert, found a file that has no other form")
            }
            findings => opened.refuse("cannot be converted", findings, Exit::Unusable),
        })
    })?;
    match &arguments.output {
        Some(path) => files::write(path, &[converted.as_bytes()])?,
        None => terminal::print(&converted)?,
    }
    Ok(Exit::Done)
}
