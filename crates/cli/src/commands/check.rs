//! `chipless check`

use super::{Opened, full};
use crate::failure::{Exit, Failure};
use crate::files::{self, Bytes};
use crate::gather::Gathered;
use crate::options::TargetOptions;
use crate::policy::PolicyOptions;
use crate::terminal;
use chipless::spu::iospec::{self, Document, Expected};
use chipless::{Checked, Options, Policy};
use chipless_report::findings::{Checked as Shown, CodeCounts, FileReport, Report};
use chipless_report::{github, gitlab, sarif};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Check a program for errors.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Arguments {
    /// Files or folders to check, patterns, or `-` for stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Check IOSpecs against this program.
    ///
    /// Names, lengths, precisions and scales must agree. The program may be of any target.
    #[arg(long, short, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print every finding, not five of each kind.
    ///
    /// Findings of one cause, such as the races of two queues over one buffer, are one finding: its pairs follow it, each on a line.
    #[arg(long)]
    all: bool,
    /// Show the encoded bytes of each task that a finding names.
    #[arg(long, short)]
    verbose: bool,
    /// Fix the files, where a finding has one mechanical fix.
    ///
    /// Misspelt names, padded lengths, line ends, older forms: only texts, and never what a valid program computes. The findings that remain
    /// are printed.
    #[arg(long, conflicts_with_all = ["statistics", "program"])]
    fix: bool,
    /// With --fix: print the changes, write nothing.
    #[arg(long, requires = "fix", conflicts_with_all = ["json", "format"])]
    diff: bool,
    /// Print how often each code was found, not the findings.
    #[arg(long)]
    statistics: bool,
    /// Exit with 0 even if errors are found.
    ///
    /// Files that cannot be read still end with 2.
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    policy: PolicyOptions,
    #[command(flatten)]
    options: TargetOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Text, with the place in the file.
    #[default]
    Human,
    /// One object with all files and findings.
    Json,
    /// SARIF 2.1.0, for code-scanning services and editors.
    Sarif,
    /// Lines that GitHub shows beside the files of a pull request.
    Github,
    /// JUnit XML, a test suite for each file.
    Junit,
    /// GitLab Code Quality (JSON).
    Gitlab,
}

const EXAMPLES: &str = "\
Examples:
  chipless check model.blob
  chipless check --format json *.blob | jq '.files[] | select(.findings != [])'
  chipless check --format sarif model.blob > model.sarif
  chipless check models/                             every program in a folder
  chipless check --allow 'npu-several-*' --deny race-duplicate-write model.blob
  chipless check --format junit models/ > chipless.xml   for CI systems that read JUnit
  chipless check --statistics models/                how often each code was found
  chipless check --allow-file known.txt model.blob   lines of `CODE [GLOB]  # reason`
  chipless check --fix --diff kernel.dfg             what --fix would change
  chipless check --fix *.dfg *.yaml
  chipless explain deadlock           what a finding means and how to mend it
  chipless check iospec.yaml --program model.pt    does the contract fit its program

JSON is `{schema_version, files: [{path, target, left_out, findings: [{code, severity, class, message, location, related, hint, alike}]}]}`; a location has \
`part`, `item`, `offset`, `size`, and `line` and `column` in a text. `alike` has the findings of the same cause, such as the other pairs of a race.

Exit status: 0 nothing is wrong, 1 a fault was found, 2 a file cannot be read, is not supported, or is beyond a limit.";

/// A file and what was found in it.
struct Finished {
    path: String,
    bytes: Option<Bytes>,
    checked: Checked,
    left_out: usize,
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

impl Finished {
    fn report(&self) -> FileReport<'_> {
        FileReport {
            drivable: self.checked.drivable.clone(),
            left_out: self.left_out,
            ..FileReport::from(&self.shown())
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let format = if arguments.json {
        Format::Json
    } else {
        arguments.format
    };
    if arguments.statistics && !matches!(format, Format::Human | Format::Json) {
        return Err(Failure::misuse(
            "--statistics",
            "expected --format human or json beside it: the other formats have a place for each finding",
        ));
    }
    let options = arguments.options.load()?;
    let policy = arguments.policy.load()?;
    let mut exit = Exit::Done;
    let mut finished = Vec::new();
    let mut left_out = 0;
    let (mut contracts, mut programs) = (Vec::new(), Vec::new());
    let gathered = Gathered::of(&arguments.files, &["asm"])?;
    for path in &gathered.files {
        if arguments.fix {
            full::fix(path, &options, &policy, arguments.diff)?;
        }
        // The one file that does not exist is a failure in JSON; beside others it is a finding, so that theirs are kept.
        if matches!(format, Format::Json)
            && !gathered.several
            && path != Path::new("-")
            && let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Err(Failure::unreadable(path.display(), error));
        }
        let file = check(path, &options, &policy, arguments.program.as_deref())?;
        exit = exit.max(file.exit);
        if arguments.diff {
            continue;
        }
        left_out += file.left_out;
        if file.checked.target == Some("spu") {
            let of = if file.checked.drivable.is_some() {
                &mut contracts
            } else {
                &mut programs
            };
            of.push(file.path.clone());
        }
        match format {
            _ if arguments.statistics => finished.push(file),
            Format::Human => {
                let paint = terminal::out();
                terminal::print(
                    &(file.shown().text(paint, arguments.all, arguments.verbose)
                        + &file.shown().verdict(paint, file.checked.unchecked)),
                )?;
            }
            Format::Github => terminal::print(&github::annotations(&file.report()))?,
            Format::Json | Format::Sarif | Format::Junit | Format::Gitlab => finished.push(file),
        }
    }
    if arguments.exit_zero && exit == Exit::Wrong {
        exit = Exit::Done;
    }
    if arguments.statistics {
        let findings = finished.iter().flat_map(|file| &file.checked.findings);
        let counts = CodeCounts::of(findings);
        match format {
            Format::Json => terminal::print_json(&counts)?,
            _ => terminal::print(&counts.text(terminal::out()))?,
        }
        return Ok(exit);
    }
    let checked = finished.iter().map(Finished::shown);
    match (format, left_out) {
        (Format::Human, 1) => terminal::print("1 finding left out\n")?,
        (Format::Human, n) if n > 1 => terminal::print(&format!("{n} findings left out\n"))?,
        _ => {}
    }
    if let Some(note) = gathered.note() {
        terminal::complain(&note);
    }
    if arguments.program.is_none() && matches!(format, Format::Human) {
        uncompared(&contracts, &programs);
    }
    match format {
        Format::Human | Format::Github => {}
        Format::Json => terminal::print_json(&Report::new(
            finished.iter().map(Finished::report).collect(),
        ))?,
        Format::Sarif => terminal::print_json(&sarif::log(checked, exit != Exit::Unusable))?,
        Format::Junit => {
            let reports: Vec<_> = finished.iter().map(Finished::report).collect();
            terminal::print(&full::junit(&reports)?)?;
        }
        Format::Gitlab => {
            let reports: Vec<_> = finished.iter().map(Finished::report).collect();
            terminal::print_json(&gitlab::issues(&reports))?;
        }
    }
    Ok(exit)
}

/// Says that a contract and a program that were given side by side were not compared.
fn uncompared(contracts: &[String], programs: &[String]) {
    if let ([contract], [program]) = (contracts, programs) {
        terminal::complain(&format!(
            "note: each was checked by itself; `chipless check {contract} --program {program}` compares them\n"
        ));
    }
}

/// What a program says of its inputs and outputs, over as many elements as a contract has.
fn expected(path: &Path, options: &Options, contract: &Document) -> Result<Vec<Expected>, Failure> {
    let program = Opened::open(path)?;
    let mut options = super::contract::for_program(options, &program);
    options.data.shapes = super::contract::shapes(contract);
    program.with_behind(&options, |behind| Ok(behind.expected))
}

fn check(
    path: &Path,
    options: &Options,
    policy: &Policy,
    program: Option<&Path>,
) -> Result<Finished, Failure> {
    let path_shown = path.display().to_string();
    let bytes = match files::open(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return Ok(Finished {
                path: path_shown,
                bytes: None,
                checked: Checked::unreadable(error),
                left_out: 0,
                exit: Exit::Unusable,
            });
        }
    };
    let mut checked = full::check(&path_shown, &bytes, options)?;
    if let Some(program) = program {
        checked
            .findings
            .extend(against(&path_shown, &bytes, options, program)?);
    }
    let left_out = policy.apply(&path_shown, &mut checked.findings);
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
        left_out,
        exit,
    })
}

/// Where a contract and its program differ. What cannot be read as one has its findings already.
fn against(
    name: &str,
    bytes: &[u8],
    options: &Options,
    program: &Path,
) -> Result<Vec<chipless_model::Finding>, Failure> {
    let rules = chipless::rule_set(options);
    match chipless::spu::File::read(bytes, rules, &options.limits) {
        Ok(chipless::spu::File::Contract(document)) => {
            let expected = expected(program, options, &document)?;
            Ok(iospec::against(&document, rules, &expected))
        }
        Ok(_) => Err(Failure::misuse(
            "--program",
            format_args!("expected a contract (IOSpec) beside it, found {name}, which is none"),
        )),
        Err(_) => Ok(Vec::new()),
    }
}
