//! `chipless check`

use crate::failure::{Exit, Failure};
use crate::files::{self, Bytes};
use crate::options::TargetOptions;
use crate::policy::{Policy, PolicyOptions};
use crate::terminal;
use chipless::{Checked, Options};
use chipless_report::findings::{Checked as Shown, FileReport, Report};
use chipless_report::sarif;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// What is wrong with a program: its file, its tasks, its barriers.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Program files of any target.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to print what was found.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Every finding in full, instead of five of each kind.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    policy: PolicyOptions,
    #[command(flatten)]
    options: TargetOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people, with a picture of the place in the file.
    #[default]
    Human,
    /// One object with all files and findings.
    Json,
    /// SARIF 2.1.0, for code-scanning services and editors.
    Sarif,
}

const EXAMPLES: &str = "\
Examples:
  chipless check model.blob
  chipless check --format json *.blob | jq '.files[] | select(.findings != [])'
  chipless check --format sarif model.blob > model.sarif
  chipless check --allow npu-several-waits --deny race-duplicate-write model.blob
  chipless explain deadlock           what a finding means and how to mend it

JSON is `{files: [{path, target, findings: [{code, severity, message, location, related, hint}]}]}`; a location has \
`part`, `item`, `offset`, `size`, and `line` and `column` in a text.

Exit status: 0 clean or warnings only, 1 errors were found, 2 a file cannot be read or is not supported.";

/// A file and what was found in it.
struct Finished {
    path: String,
    bytes: Option<Bytes>,
    checked: Checked,
    exit: Exit,
}

impl Finished {
    fn shown(&self) -> Shown<'_> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        Shown {
            path: &self.path,
            target: self.checked.target,
            bytes,
            parts: &self.checked.parts,
            findings: &self.checked.findings,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let policy = arguments.policy.load()?;
    let mut exit = Exit::Done;
    let mut finished = Vec::new();
    for path in &arguments.files {
        let file = check(path, &options, &policy)?;
        exit = exit.max(file.exit);
        match arguments.format {
            Format::Human => {
                let paint = terminal::out();
                terminal::print(
                    &(file.shown().text(paint, arguments.all) + &file.shown().verdict(paint)),
                )?;
            }
            Format::Json | Format::Sarif => finished.push(file),
        }
    }
    let checked = finished.iter().map(Finished::shown);
    match arguments.format {
        Format::Human => {}
        Format::Json => terminal::print_json(&Report {
            files: checked.map(|file| FileReport::from(&file)).collect(),
        })?,
        Format::Sarif => terminal::print_json(&sarif::log(checked, exit != Exit::Unusable))?,
    }
    Ok(exit)
}

fn check(path: &Path, options: &Options, policy: &Policy) -> Result<Finished, Failure> {
    let path_shown = path.display().to_string();
    let bytes = match files::open(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return Ok(Finished {
                path: path_shown,
                bytes: None,
                checked: Checked::unreadable(error),
                exit: Exit::Unusable,
            });
        }
    };
    let mut checked = chipless::check(&path_shown, &bytes, options)?;
    policy.apply(&mut checked.findings);
    let exit = if checked.is_readable {
        Exit::of(&checked.findings)
    } else {
        // What every other command calls unreadable.
        Exit::Unusable
    };
    Ok(Finished {
        path: path_shown,
        bytes: Some(bytes),
        checked,
        exit,
    })
}
