//! `chipless host`

use crate::commands::{Opened, contract};
use crate::failure::{Exit, Failure};
use crate::options::TargetOptions;
use crate::{files, terminal};
use chipless::Options;
use chipless::spu::iospec::{Document, HostFile, RuleSet, Verdict, drivable, host};
use chipless_model::Severity;
use clap::Args;
use std::path::{Path, PathBuf};

/// Write host firmware in C for an IOSpec.
///
/// Your files are kept: app.c, Makefile and the files of the library are written where they are absent. model.h, model.c and iospec.yaml are renewed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// An IOSpec (YAML), or a .femto container, whose own is taken.
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// The directory that the files are written to.
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Program behind the contract, of any target.
    ///
    /// Options of `chipless run` for that program are accepted. Default: outputs are zeros.
    #[arg(long, short, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Overwrite files that you changed.
    ///
    /// Without it, a changed app.c, Makefile or file of the library is kept, and a model.h, model.c or iospec.yaml that you wrote or changed is an
    /// error.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless host iospec.yaml -o firmware --program model.pt
  make -C firmware && firmware/app 3 < inputs > outputs
  CHIPLESS=/opt/chipless firmware/app 3 < inputs > outputs    Chipless is not in PATH

Written are Makefile, model.h and model.c (names and sizes), app.c (a skeleton of an application), spu.h and spu_mock.c (the \
two calls of the SPU library, ours and not the vendor's, which start the program that the environment variable CHIPLESS \
names), and iospec.yaml. `app ROUNDS` goes so many times through the simple sequences. In each round it reads their inputs from standard \
input, in the order in which the contract has the sequences, and writes their outputs to standard output, elements little-endian in 1, 2, 4 or 8 \
bytes. model.c names the contract and the program by their absolute paths: write the files again where these move. Latched inputs are written before the others, so that they count in their own round, unless an input belongs to several sequences.

Exit status: 0 done, 2 the contract cannot be used, or a file cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let document = contract::open(&arguments.spec, chipless::rule_set(&options))?;
    refuse_useless(&arguments.spec, &document, chipless::rule_set(&options))?;
    let directory = &arguments.output;
    files::make_directory(directory)?;
    let program = if let Some(path) = &arguments.program {
        // Refused here, rather than by an application that does not start.
        let program = Opened::open(path)?;
        let options = contract::for_program(&options, &program);
        program.with_behind(&options, |behind| {
            // The code has the scales of the contract.
            super::drive::same_scales(&arguments.spec, &document, &options, &behind.expected)?;
            let session = chipless::spu::iospec::Session::new(&document, RuleSet::Spec);
            let matched = session.with_behind(behind.program).map(drop);
            matched.map_err(|v| Failure::unreadable(arguments.spec.display(), v))
        })?;
        let options = options.arguments(|path| {
            let path = absolute(Path::new(path))?;
            Ok::<_, Failure>(path.to_string_lossy().into_owned())
        })?;
        Some((absolute(path)?, options))
    } else {
        without_program(&options)?;
        None
    };
    let contract = directory.join("iospec.yaml");
    let mut files = vec![(
        "iospec.yaml",
        format!(
            "# {MADE} from {}.\n{}",
            arguments.spec.display().to_string().escape_default(),
            document.write()
        ),
    )];
    files.extend(made(
        &arguments.spec,
        &document,
        &absolute(&contract)?,
        program
            .as_ref()
            .map(|(path, options)| (&**path, &**options)),
    )?);
    for (name, text) in &mut files {
        if RENEWED.contains(name) {
            *text = sealed(text);
        }
    }
    let (mut written, mut kept) = (Vec::new(), Vec::new());
    for (name, text) in &files {
        if is_kept(&directory.join(name), text, arguments.force)? {
            kept.push(*name);
        } else {
            written.push((*name, text));
        }
    }
    // Nothing is written where one of them is refused.
    for (name, text) in &written {
        files::rewrite(&directory.join(name), &[text.as_bytes()])?;
    }
    let names: Vec<&str> = written.iter().map(|(name, _)| *name).collect();
    let mut said = format!("{}: {}\n", directory.display(), names.join(", "));
    if !kept.is_empty() {
        said += &format!(
            "Kept, as they are not what Chipless would write: {} (--force overwrites them)\n",
            kept.join(", ")
        );
    }
    if program.is_none() {
        said += "No program stands behind the contract, so outputs are zeros (--program FILE computes them).\n";
    }
    said += &format!("Build them with `make -C {}`.\n", directory.display());
    terminal::print(&said)?;
    Ok(Exit::Done)
}

/// Refuses a contract that no application can drive, and says where the one that is written has to be changed.
fn refuse_useless(path: &Path, document: &Document, rules: RuleSet) -> Result<(), Failure> {
    let shown = path.display();
    let mut findings = chipless::spu::iospec::lint(document, rules);
    // What can be driven at first is something to begin with.
    let verdict = drivable(document, rules);
    if matches!(&verdict, Verdict::Stuck { calls, .. } if calls.is_empty()) {
        findings.extend(verdict.finding(document, rules));
    }
    let mut errors = findings.iter().filter(|f| f.severity == Severity::Error);
    if let Some(first) = errors.next() {
        let text = format!(
            "expected a contract that can be driven, found a fault (`chipless check {shown}` shows all): {}",
            first.message
        );
        return Err(Failure::unreadable(shown, text));
    }
    let complain = |text: &str| terminal::complain(&format!("{shown}: warning: {text}\n"));
    if document.simple_sequences().next().is_none() {
        complain(
            "the application does nothing: it drives simple sequences, and the contract has none. Write the calls of the others into app.c",
        );
    }
    let takers = |input: &str| {
        let sequences = document
            .simple_sequences()
            .filter(|s| !s.outputs.is_empty());
        let taking = sequences.filter(|s| s.inputs.iter().any(|member| member.key == input));
        taking.count()
    };
    let shared = document.inputs.iter().find(|input| takers(&input.key) > 1);
    if let Some(input) = shared {
        complain(&format!(
            "the input `{}` belongs to several sequences with outputs: one write of it fires all of them, while app.c writes it for each. Change app.c: write it once, then read every output",
            input.key
        ));
    }
    Ok(())
}

/// What a file says in its first line that nobody is meant to change; the sum of the rest follows.
const MADE: &str = "Made by chipless host";
/// Characters of the sum, which stands in brackets behind a space.
const SUM: usize = 11;
/// Those files.
const RENEWED: [&str; 3] = ["iospec.yaml", "model.h", "model.c"];

/// Whether the file that a new one would replace stays, as somebody changed it.
fn is_kept(path: &Path, text: &str, force: bool) -> Result<bool, Failure> {
    if force || !path.is_file() {
        return Ok(false);
    }
    let there = files::open(path).map_err(|error| Failure::unreadable(path.display(), error))?;
    if *there == *text.as_bytes() {
        return Ok(false);
    }
    let name = path.file_name().unwrap_or_default();
    if !RENEWED.iter().any(|renewed| name == *renewed) {
        return Ok(true);
    }
    if std::str::from_utf8(&there).is_ok_and(is_as_made) {
        return Ok(false);
    }
    let text = "expected a file as `chipless host` wrote it, or none, found another, whose changes would be lost. Pass another directory with -o, or --force to overwrite it";
    Err(Failure::misuse(path.display(), text))
}

/// A text with its sum in the first line, so that changes of it are seen.
fn sealed(text: &str) -> String {
    let sum = crc32fast::hash(text.as_bytes());
    text.replacen(MADE, &format!("{MADE} ({sum:08x})"), 1)
}

/// Whether nobody has changed a text since it was sealed.
fn is_as_made(text: &str) -> bool {
    let sum = text.split_once(MADE).and_then(|(_, rest)| rest.get(..SUM));
    sum.is_some_and(|sum| sealed(&text.replacen(sum, "", 1)) == *text)
}

/// Prints the application alone.
pub(crate) fn application(path: &Path, document: &Document) -> Result<Exit, Failure> {
    let files = made(path, document, path, None)?;
    for (_, text) in files.iter().filter(|(name, _)| *name == "app.c") {
        terminal::print(text)?;
    }
    Ok(Exit::Done)
}

fn made(
    path: &Path,
    document: &Document,
    spec: &Path,
    program: Option<(&Path, &[String])>,
) -> Result<Vec<HostFile>, Failure> {
    host(document, spec, program).map_err(|v| Failure::unreadable(path.display(), v))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::unreadable(path.display(), error))
}

/// Refuses options of programs where there is none.
pub(super) fn without_program(options: &Options) -> Result<(), Failure> {
    chipless::target("spu").map_or(Ok(()), |target| Ok(options.fit(target)?))
}
