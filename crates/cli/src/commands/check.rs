//! `chipless check`

use super::drive::Rules;
use super::unknown;
use crate::failure::{Exit, Failure};
use crate::files::{self, Bytes};
use crate::policy::{Policy, PolicyOptions};
use crate::targets::{Document, Lowering, LoweringOptions, Parts, Source, Target};
use crate::terminal;
use chipless_model::{Class, Evidence, Finding, Place, Rule, Severity};
use chipless_report::findings::{Checked, FileReport, Report};
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
    /// Whether this runtime would take the file: the name of a known one, or its mask of feature bits (neuron).
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// Whose rules an IOSpec is judged by (spu).
    #[arg(long, value_enum, value_name = "RULES")]
    rules: Option<Rules>,
    #[command(flatten)]
    policy: PolicyOptions,
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
    /// SARIF 2.1.0, for code-scanning services and editors.
    Sarif,
}

const EXAMPLES: &str = "\
Examples:
  chipless check model.blob
  chipless check --format json *.blob | jq '.files[] | select(.findings != [])'
  chipless check --format sarif model.blob > model.sarif
  chipless check --allow padding-read --deny race-duplicate-write model.blob
  chipless explain deadlock           what a finding means and how to mend it

JSON is `{files: [{path, target, findings: [{code, severity, message, location, related, hint}]}]}`; a location has \
`part`, `item`, `offset`, `size`, and `line` and `column` in a text.

Exit status: 0 clean or warnings only, 1 errors were found, 2 a file cannot be read or is not supported.";

/// Rules about files that no target gets to see.
pub(crate) static RULES: &[&Rule] = &[&UNREADABLE, &UNKNOWN];

static UNREADABLE: Rule = Rule {
    code: "file-unreadable",
    class: Class::Unsupported,
    evidence: Evidence::Chipless,
    severity: Severity::Error,
    summary: "the file cannot be opened or read",
    explanation: "The operating system did not give the bytes of the file.",
    remedy: "check the name and the permissions",
    source: "the operating system",
};

static UNKNOWN: Rule = Rule {
    code: "file-unknown",
    class: Class::Unsupported,
    evidence: Evidence::Chipless,
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
    parts: Parts,
    findings: Vec<Finding>,
    exit: Exit,
}

impl Finished {
    fn checked(&self) -> Checked<'_> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        Checked {
            path: &self.path,
            target: self.target.map(Target::name),
            bytes,
            parts: &self.parts,
            findings: &self.findings,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let lowering = arguments.lowering.load()?;
    let policy = arguments.policy.load()?;
    let mut exit = Exit::Done;
    let mut finished = Vec::new();
    for path in &arguments.files {
        let file = check(path, &lowering, &policy, arguments)?;
        exit = exit.max(file.exit);
        match arguments.format {
            Format::Human => {
                let paint = terminal::out();
                terminal::print(
                    &(file.checked().text(paint, arguments.all) + &file.checked().verdict(paint)),
                )?;
            }
            Format::Json | Format::Sarif => finished.push(file),
        }
    }
    let checked = finished.iter().map(Finished::checked);
    match arguments.format {
        Format::Human => {}
        Format::Json => terminal::print_json(&Report {
            files: checked.map(|file| FileReport::from(&file)).collect(),
        })?,
        Format::Sarif => terminal::print_json(&sarif::log(checked, exit != Exit::Unusable))?,
    }
    Ok(exit)
}

fn check(
    path: &Path,
    lowering: &Lowering,
    policy: &Policy,
    arguments: &Arguments,
) -> Result<Finished, Failure> {
    let mut file = Finished {
        path: path.display().to_string(),
        target: None,
        bytes: None,
        parts: Parts::new(),
        findings: Vec::new(),
        exit: Exit::Unusable,
    };
    let bytes = match files::open(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            file.findings.push(UNREADABLE.at(Place::file(), error));
            return Ok(file);
        }
    };
    let (rules, runtime) = (
        arguments.rules.map(Rules::set),
        arguments.runtime.as_deref(),
    );
    match Target::recognize(path, &bytes).or(rules.map(|_| Target::Spu)) {
        Some(target) => {
            file.target = Some(target);
            let name = file.path.clone();
            let source = Source {
                path: &name,
                bytes: &bytes,
                rules,
            };
            match target.with_document(source, lowering, |document| {
                (
                    check_program(document, lowering, runtime),
                    document.is_complete(),
                )
            }) {
                Ok((checked, is_complete)) => {
                    file.findings = checked?;
                    policy.apply(&mut file.findings);
                    file.exit = Exit::of(&file.findings);
                    if !is_complete && file.exit == Exit::Wrong {
                        // What every other command calls unreadable.
                        file.exit = Exit::Unusable;
                    }
                }
                Err(findings) => file.findings = findings,
            }
            file.parts = target.parts(source, lowering.limits(), &file.findings);
        }
        None => file
            .findings
            .push(UNKNOWN.at(Place::bytes(0, 8), unknown(&bytes))),
    }
    file.bytes = Some(bytes);
    Ok(file)
}

fn check_program(
    document: &dyn Document,
    lowering: &Lowering,
    runtime: Option<&str>,
) -> Result<Vec<Finding>, Failure> {
    let mut findings = document.findings().to_vec();
    if let Some(name) = runtime {
        findings.extend(document.refused_by(name)?);
    }
    let verify = |program: &chipless_model::Program<'_>, _| {
        chipless_verify::verify(program).map(|v| v.warnings().to_vec())
    };
    let verified = document.with_program(lowering, verify)?;
    match verified {
        Ok(Ok(found) | Err(found)) | Err(found) => findings.extend(found),
    }
    Ok(findings)
}
