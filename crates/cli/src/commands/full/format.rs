//! `chipless format`

use crate::commands::Opened;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::terminal;
use chipless_model::Limits;
use clap::Args;
use std::path::{Path, PathBuf};

/// Format a dataflow graph (DFG).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// DFG files. More than one needs --check or --write.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write nothing: name the files that are not formatted.
    #[arg(long)]
    check: bool,
    /// Format the files in place.
    #[arg(long, short, conflicts_with = "check")]
    write: bool,
}

const EXAMPLES: &str = "\
Examples:
  chipless format kernel.dfg                        prints the canonical form
  chipless format --check *.dfg                     for continuous integration
  chipless format --write *.dfg

Older forms of the language become the modern one; comments stay. The graph is the same, but for one old form: slices as \
width and index, `v:16:32`. They become the bits that they mean, and that is said; `run` takes them as the real tool does, \
for the range of bits 16 to 32, so that results before and after formatting differ.

Exit status: 0 done, 1 with --check a file is not in the canonical form, 2 a file cannot be read.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.files.len() > 1 && !arguments.check && !arguments.write {
        return Err(Failure::misuse(
            "format",
            "expected one file, or --check or --write with several",
        ));
    }
    let mut exit = Exit::Done;
    for path in &arguments.files {
        match one(path, arguments) {
            Ok(status) => exit = exit.max(status),
            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
            Err(failure) => {
                terminal::complain(&failure.text());
                exit = exit.max(failure.exit());
            }
        }
    }
    Ok(exit)
}

fn one(path: &Path, arguments: &Arguments) -> Result<Exit, Failure> {
    let opened = Opened::open(path)?;
    opened.expect("dsa", "a dataflow graph (DFG)")?;
    let document = chipless::dsa::Document::read(&opened.bytes, &Limits::default());
    let Some(text) = document.format() else {
        return Err(opened.told(chipless::Failure::reading(document.findings), None));
    };
    let canonical = text.as_bytes() == &*opened.bytes;
    if document.slices_by_width() && !arguments.check {
        terminal::complain(&format!(
            "{}: slices as width and index become ranges of bits, which is what they mean; the real tool, and `chipless run` on the file as it \
             was, takes the two numbers for a range, so that the formatted file may compute something else\n",
            opened.path
        ));
    }
    match (arguments.check, arguments.write) {
        (true, _) if canonical => Ok(Exit::Done),
        (true, _) => Err(Failure::wrong(
            &opened.path,
            "not in the canonical form; `chipless format --write` changes it",
        )),
        (_, true) if canonical => Ok(Exit::Done),
        (_, true) => files::rewrite(path, &[text.as_bytes()]).map(|()| Exit::Done),
        _ => terminal::print(&text).map(|()| Exit::Done),
    }
}
