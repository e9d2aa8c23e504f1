//! `chipless check`

use super::unknown;
use crate::failure::{Exit, Failure};
use crate::files::{self, Bytes};
use crate::targets::{Document, Lowering, LoweringOptions, Source, Target};
use crate::terminal;
use chipless_model::{Finding, Place, Rule, Severity};
use chipless_report::findings::{Checked, FileReport, Report};
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
    /// Whether this runtime would take the file: the name of a known one, or its mask of feature bits (neuron).
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    #[command(flatten)]
    lowering: LoweringOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people, with a picture of the place in the file.
    #[default]
    Human,
    /// One object with all files and findings.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  chipless check model.blob
  chipless check --format json *.blob | jq '.files[] | select(.findings != [])'
  chipless explain deadlock                         what a finding means and how to mend it

JSON is `{files: [{path, target, findings: [{code, severity, message, location, related, hint}]}]}`; a
location has `part`, `item`, `offset`, `size`.

Exit status: 0 clean or warnings only, 1 errors were found, 2 a file cannot be read or is not supported.";

/// Rules about files that no target gets to see.
pub(crate) static RULES: &[&Rule] = &[&UNREADABLE, &UNKNOWN];

static UNREADABLE: Rule = Rule {
    code: "file-unreadable",
    severity: Severity::Error,
    summary: "the file cannot be opened or read",
    explanation: "The operating system did not give the bytes of the file.",
    remedy: "check the name and the permissions",
    source: "the operating system",
};

static UNKNOWN: Rule = Rule {
    code: "file-unknown",
    severity: Severity::Error,
    summary: "no target recognises the file",
    explanation: "Chipless tells the kind of a program by the first bytes of its file, never by its name. These bytes begin none of \
                  the formats that it knows: the file is of another kind, is damaged at its start, or is packed.",
    remedy: "check that it is the compiled program, and unpack it if it is in an archive",
    source: "the formats of the targets",
};

/// A file and what was found in it.
struct Finished {
    path: String,
    target: Option<Target>,
    bytes: Option<Bytes>,
    findings: Vec<Finding>,
    exit: Exit,
}

impl Finished {
    fn checked(&self) -> Checked<'_> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        Checked { path: &self.path, target: self.target.map(Target::name), bytes, findings: &self.findings }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let lowering = arguments.lowering.load()?;
    let mut exit = Exit::Done;
    let mut finished = Vec::new();
    for path in &arguments.files {
        let file = check(path, &lowering, arguments.runtime.as_deref())?;
        exit = exit.max(file.exit);
        match arguments.format {
            Format::Human => {
                let paint = terminal::out();
                terminal::print(&(file.checked().text(paint, arguments.all) + &file.checked().verdict(paint)))?;
            }
            Format::Json => finished.push(file),
        }
    }
    if let Format::Json = arguments.format {
        let files = finished.iter().map(|file| FileReport::from(&file.checked())).collect();
        terminal::print_json(&Report { files })?;
    }
    Ok(exit)
}

fn check(path: &Path, lowering: &Lowering, runtime: Option<&str>) -> Result<Finished, Failure> {
    let mut file = Finished { path: path.display().to_string(), target: None, bytes: None, findings: Vec::new(), exit: Exit::Unusable };
    let bytes = match files::open(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            file.findings.push(UNREADABLE.at(Place::file(), error));
            return Ok(file);
        }
    };
    match Target::recognize(&bytes) {
        Some(target) => {
            file.target = Some(target);
            let checked = target
                .with_document(Source { path: &file.path, bytes: &bytes }, lowering, |document| check_program(document, lowering, runtime));
            (file.findings, file.exit) = match checked {
                Ok(checked) => checked?,
                Err(findings) => (findings, Exit::Unusable),
            };
        }
        None => file.findings.push(UNKNOWN.at(Place::bytes(0, 8), unknown(&bytes))),
    }
    file.bytes = Some(bytes);
    Ok(file)
}

fn check_program(document: &dyn Document, lowering: &Lowering, runtime: Option<&str>) -> Result<(Vec<Finding>, Exit), Failure> {
    let mut findings = document.findings().to_vec();
    if let Some(name) = runtime {
        findings.extend(document.refused_by(name)?);
    }
    let verify = |program: &chipless_model::Program<'_>, _| chipless_verify::verify(program).map(|v| v.warnings().to_vec());
    let verified = document.with_program(lowering, verify)?;
    match verified {
        Ok(Ok(found) | Err(found)) | Err(found) => findings.extend(found),
    }
    let exit = Exit::of(&findings);
    Ok((findings, exit))
}
