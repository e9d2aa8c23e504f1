//! `chipless host`

use crate::failure::{Exit, Failure};
use crate::options::TargetOptions;
use crate::{files, terminal};
use chipless::spu::iospec::{Document, HostFile, RuleSet, host};
use clap::Args;
use std::path::{Path, PathBuf};

/// Write host firmware in C for an IOSpec.
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
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless host iospec.yaml -o firmware --program model.pt
  make -C firmware && firmware/app 3 < inputs > outputs

Written are Makefile, model.h and model.c (names and sizes), app.c (a skeleton of an application), spu.h and spu_mock.c (the \
two calls of the SPU library, ours and not the vendor's, which start the program that the environment variable CHIPLESS \
names), and iospec.yaml. `app ROUNDS` goes so many times through the simple sequences. In each round it reads their inputs from standard \
input, in the order in which the contract has the sequences, and writes their outputs to standard output, elements little-endian in 1, 2, 4 or 8 \
bytes. Latched inputs are written before the others, so that they count in their own round, unless an input belongs to several sequences.

Exit status: 0 done, 2 the contract cannot be used, or a file cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let document = super::drive::open(&arguments.spec, chipless::rule_set(&options))?;
    let directory = &arguments.output;
    files::make_directory(directory)?;
    let program = if let Some(path) = &arguments.program {
        // Refused here, rather than by an application that does not start.
        let name = path.display().to_string();
        let bytes = files::open(path).map_err(|error| Failure::unreadable(&name, error))?;
        let options = super::drive::for_program(&options, &name, &bytes);
        chipless::with_behind(&name, &bytes, &options, |behind| {
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
        super::drive::without_program(&options)?;
        None
    };
    let contract = directory.join("iospec.yaml");
    files::write(&contract, &[document.write().as_bytes()])?;
    let mut names = vec!["iospec.yaml"];
    for (name, text) in made(
        &arguments.spec,
        &document,
        &absolute(&contract)?,
        program
            .as_ref()
            .map(|(path, options)| (&**path, &**options)),
    )? {
        files::write(&directory.join(name), &[text.as_bytes()])?;
        names.push(name);
    }
    terminal::print(&format!(
        "{0}: {1}\nBuild them with `make -C {0}`.\n",
        directory.display(),
        names.join(", ")
    ))?;
    Ok(Exit::Done)
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
