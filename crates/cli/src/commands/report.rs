//! `chipless report`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::terminal;
use chipless::{OpenDocument, Options, Picture};
use chipless_model::Program;
use chipless_report::attribution::{Attribution, lives};
use chipless_report::diff::{self, Side};
use chipless_report::page;
use chipless_sim::{Timeline, TimingOnly, Verified};
use clap::Args;
use std::path::{Path, PathBuf};

/// A page that shows where the time of a run goes, or pictures of a schedule or a fabric.
///
/// A name that ends in .html gets one self-contained page: summary, timeline, memory, tables, pictures. It asks for nothing from any network.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target; for pictures a schedule (gemini) or an architecture graph (dsa).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a page (.html) or pictures: as SVG to this file if its name ends in .svg and there is one picture, else each to NAME.svg in
    /// this directory.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// A second program of the same target, shown beside the first (only for a page).
    #[arg(long, value_name = "OTHER")]
    against: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless report model.blob -o model.html                  the page of a run
  chipless report old.blob --against new.blob -o ab.html    two runs side by side
  chipless report schedule.json               as text: L2 over time, links
  chipless report schedule.json -o pictures   the same as SVG
  chipless report fabric.json -o fabric.svg

A mapping is drawn over its fabric by chipless map --svg.

Exit status: 0 done, 1 the program is wrong, 2 the file cannot be read, has no pictures, or they cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let opened = Opened::open(&arguments.file)?;
    let is_page = |path: &&PathBuf| {
        path.extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("html"))
    };
    if let Some(path) = arguments.output.as_ref().filter(is_page) {
        return write_page(&opened, &options, arguments.against.as_deref(), path);
    }
    if arguments.against.is_some() {
        let text =
            "expected -o PAGE.html beside it: two runs are shown side by side on a page only";
        return Err(Failure::misuse("--against", text));
    }
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

fn write_page(
    opened: &Opened,
    options: &Options,
    against: Option<&Path>,
    path: &Path,
) -> Result<Exit, Failure> {
    let html = opened.with_document(options, |document| {
        let shown = Shown::of(opened, document)?;
        let lowered = document.lower()?;
        let run = shown.run(&opened.path, &lowered.program);
        let Some(other) = against else {
            return Ok(page::page(&run, None, false));
        };
        let other = Opened::open(other)?;
        let target = opened.target().unwrap_or_default();
        other.expect(target, &format!("a second program of target {target}"))?;
        other.with_document(options, |document| {
            let beside = Shown::of(&other, document)?;
            let lowered_beside = document.lower()?;
            let run_beside = beside.run(&other.path, &lowered_beside.program);
            let sides = [
                Side {
                    program: run.program,
                    timeline: run.timeline,
                },
                Side {
                    program: run_beside.program,
                    timeline: run_beside.timeline,
                },
            ];
            let difference = diff::time(sides[0], sides[1]).layers;
            Ok(page::page(&run, Some((&run_beside, &difference)), false))
        })
    })?;
    files::write(path, &[html.as_bytes()])?;
    terminal::print(&format!(
        "{}: the page of {}\n",
        path.display(),
        opened.path
    ))?;
    Ok(Exit::Done)
}

/// What a page shows of a program besides the program itself.
struct Shown {
    timeline: Timeline,
    attribution: Attribution,
    lives: chipless_report::attribution::Lives,
    findings: Vec<chipless_model::Finding>,
    facts: Vec<chipless_model::Node>,
    notes: Vec<String>,
    pictures: Vec<(String, String, String)>,
}

impl Shown {
    fn of(opened: &Opened, document: &OpenDocument<'_>) -> Result<Shown, Failure> {
        let lowered = document.lower()?;
        let program = &lowered.program;
        let verified = match chipless_verify::verify(program) {
            Ok(verified) => verified.warnings().to_vec(),
            Err(findings) => findings,
        };
        let findings = document
            .findings()
            .iter()
            .cloned()
            .chain(verified)
            .collect();
        let outcome = run_timing(program);
        if outcome.end.is_err() {
            let text = "does not come to its end: `chipless run` says why";
            return Err(Failure::wrong(&opened.path, text));
        }
        let timeline = outcome.timeline;
        let pictures = document.pictures().unwrap_or_default();
        Ok(Shown {
            attribution: Attribution::of(program, &timeline),
            lives: lives(program, &timeline),
            facts: document.facts(program, &timeline)?,
            findings,
            notes: lowered.notes,
            pictures: pictures
                .into_iter()
                .map(|p| (p.name, p.title, p.svg))
                .collect(),
            timeline,
        })
    }

    fn run<'s, 'a>(&'s self, file: &'s str, program: &'s Program<'a>) -> page::Run<'s, 'a> {
        page::Run {
            file,
            program,
            timeline: &self.timeline,
            attribution: &self.attribution,
            lives: &self.lives,
            estimate_ns: None,
            findings: &self.findings,
            facts: &self.facts,
            notes: &self.notes,
            pictures: &self.pictures,
            ranking: &[],
        }
    }
}

fn run_timing(program: &Program<'_>) -> chipless_sim::Outcome {
    chipless_sim::run(&Verified::assume(program), &mut TimingOnly)
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
