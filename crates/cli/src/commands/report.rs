//! `chipless report`

use super::Opened;
use super::page::{self, AgainstOptions, Second};
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::terminal;
use chipless::{Options, Picture};
use chipless_report::page::Served;
use clap::Args;
use std::path::{Path, PathBuf};

/// Write a page that shows where time goes, or pictures.
///
/// Pass `-o PAGE.html` for the page: summary, timeline, network, memory, tables, pictures. It is self-contained: it loads nothing from the network.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Program to report on.
    ///
    /// A page is made of any program; pictures of schedules (gemini), fabrics and graphs (dsa), contracts and their programs (spu).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Page (.html), picture (.svg), or directory for pictures.
    ///
    /// A program with several pictures, such as a schedule, needs a directory. A page is one self-contained file with summary, timeline, network, memory and tables. Default: pictures as text on stdout.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    against: AgainstOptions,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless report model.blob -o model.html                  the page of a run
  chipless report old.blob --against new.blob -o ab.html    two runs side by side
  chipless report a.blob --against a.blob --other machine=npu5 -o ab.html   two machines
  chipless report schedule.json               as text: L2 over time, links
  chipless report schedule.json -o pictures   the same as SVG
  chipless report fabric.json -o fabric.svg
  chipless report iospec.yaml                 what goes between host and cores, in order

A mapping is drawn over its fabric by chipless map --svg.

Exit status: 0 done, 1 the program is wrong, 2 the file cannot be read, has no pictures, or they cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let second = arguments.against.load(&options, "report")?;
    let opened = Opened::open(&arguments.file)?;
    let is_page = |path: &&PathBuf| {
        path.extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("html"))
    };
    if let Some(path) = arguments.output.as_ref().filter(is_page) {
        return write_page(&opened, &options, second.as_ref(), path);
    }
    if second.is_some() {
        let text =
            "expected -o PAGE.html beside it: two runs are shown side by side on a page only";
        return Err(Failure::misuse("--against", text));
    }
    let pictures = opened.with_document(&options, |document| {
        let Some(draws) = document.capabilities().draws else {
            if let Some(output) = &arguments.output {
                let text = format!(
                    "expected a name that ends in .html, found {}: a file of this target has a page, and no pictures of its own",
                    output.display()
                );
                return Err(Failure::misuse("--output", text));
            }
            return Err(Failure::misuse(
                &opened.path,
                "a file of this target has no pictures of its own. Pass `-o PAGE.html` to write its page, or run `chipless view` to see it in a browser",
            ));
        };
        if let (Some(by), Some(_)) = (document.timed_by()?, &arguments.output) {
            terminal::complain(&format!("{}: note: timed by {by}\n", opened.path));
        }
        Ok(draws.pictures()?)
    })?;
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

fn write_page(
    opened: &Opened,
    options: &Options,
    against: Option<&Second<'_>>,
    path: &Path,
) -> Result<Exit, Failure> {
    let html = page::html(opened, options, against, Served::No)?;
    files::write(path, &[html.as_bytes()])?;
    let beside = against.map_or_else(String::new, |second| {
        format!(" beside that of {}", second.name())
    });
    terminal::print(&format!(
        "{}: the page of {}{beside}\n",
        path.display(),
        opened.path
    ))?;
    Ok(Exit::Done)
}

fn write(output: &Path, pictures: &[Picture]) -> Result<(), Failure> {
    let is_file = output
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    match pictures {
        [picture] if is_file => {
            files::write(output, &[picture.svg.as_bytes()])?;
            return terminal::print(&format!("{}: {}\n", output.display(), picture.title));
        }
        several if is_file => {
            let text = format!(
                "expected a directory for {} pictures, found {}: pass -o {}",
                several.len(),
                output.display(),
                output.with_extension("").display()
            );
            return Err(Failure::misuse("--output", text));
        }
        _ => {}
    }
    let is_of_file = |extension: &&std::ffi::OsStr| {
        let known = [
            "csv", "gif", "jpeg", "jpg", "json", "md", "pdf", "png", "txt",
        ];
        known
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    };
    let extension = output.extension().filter(is_of_file);
    if let Some(extension) = extension.filter(|_| !output.is_dir()) {
        let text = format!(
            "expected a name that ends in .html (the page), or a directory for the pictures, found {}: pictures are SVG, and nothing is written as .{}",
            output.display(),
            extension.display()
        );
        return Err(Failure::misuse("--output", text));
    }
    files::make_directory(output)?;
    for picture in pictures {
        let path = output.join(format!("{}.svg", picture.name));
        files::write(&path, &[picture.svg.as_bytes()])?;
        terminal::print(&format!("{}: {}\n", path.display(), picture.title))?;
    }
    Ok(())
}
