//! `chipless report`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::terminal;
use chipless::Picture;
use clap::Args;
use std::path::{Path, PathBuf};

/// Pictures: the L2 memories and the mesh of a schedule, the fabric of a spatial accelerator.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A schedule (gemini) or an architecture graph (dsa).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the pictures as SVG: to this file if its name ends in .svg and there is one picture, else each to NAME.svg in this directory.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless report schedule.json               as text: L2 over time, links
  chipless report schedule.json -o pictures   the same as SVG
  chipless report fabric.json -o fabric.svg

A mapping is drawn over its fabric by chipless map --svg.

Exit status: 0 done, 1 the program is wrong, 2 the file cannot be read, has no pictures, or they cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let opened = Opened::open(&arguments.file)?;
    let pictures = opened.with_document(&options, |document| Ok(document.pictures()?))?;
    match &arguments.output {
        Some(output) => write(output, &pictures)?,
        None => {
            for (index, picture) in pictures.iter().enumerate() {
                let gap = if index > 0 { "\n" } else { "" };
                terminal::print(&format!("{gap}{}\n{}", picture.title, picture.text))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn write(output: &Path, pictures: &[Picture]) -> Result<(), Failure> {
    if let ([picture], true) = (
        pictures,
        output
            .extension()
            .is_some_and(|extension| extension == "svg"),
    ) {
        files::write(output, &[picture.svg.as_bytes()])?;
        return terminal::print(&format!("{}: {}\n", output.display(), picture.title));
    }
    files::make_directory(output)?;
    for picture in pictures {
        let path = output.join(format!("{}.svg", picture.name));
        files::write(&path, &[picture.svg.as_bytes()])?;
        terminal::print(&format!("{}: {}\n", path.display(), picture.title))?;
    }
    Ok(())
}
