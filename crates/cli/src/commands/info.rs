//! `chipless info`

use super::{Opened, full};
use crate::failure::{Exit, Failure};
use crate::gather::Gathered;
use crate::options::TargetOptions;
use crate::output::{Format, OutputOptions};
use crate::terminal;
use chipless_report::SCHEMA_VERSION;
use chipless_report::info::{self, InfoReport};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Show a program's format, inputs, outputs and sizes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files or folders, patterns, or `-` for stdin.
    ///
    /// Chipless detects the format from a file's content.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file's own structures as a tree, with their offsets.
    #[arg(long)]
    raw: bool,
    /// Show the memory that a load takes on each core (neuron).
    ///
    /// Code, constants, tensors, scratchpad, rings.
    #[arg(long, conflicts_with = "raw")]
    memory: bool,
    /// Estimate FPGA and silicon area of a fabric, by part (dsa).
    #[arg(long, conflicts_with_all = ["raw", "memory"])]
    resources: bool,
    #[command(flatten)]
    options: TargetOptions,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless info model.blob
  chipless info --raw model.blob | less      every structure with its offset
  chipless info --memory model.neff          what a load takes on each core
  chipless info --format json model.blob | jq '.inputs[].name'

JSON has `schema_version`, `target`, `platform`, `format_version`, `name`, `inputs` and `outputs` (`name`, `dtype`, `shape`), `counts` \
(an object of integers), `facts` (an object of strings and numbers), `file`, `size`, and with --raw the tree `raw` \
(`name`, `value`, `offset`, `children`); of several files it is `{schema_version, files: [...]}`.

Exit status: 0 all files were read, 2 a file cannot be read.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    if arguments.resources {
        return full::resources(&arguments.files, &options, arguments.answer.format());
    }
    let mut exit = Exit::Done;
    let mut read = Vec::new();
    let gathered = Gathered::of(&arguments.files, &[])?;
    for path in &gathered.files {
        let opened = Opened::open(path);
        if let (Ok(opened), Format::Human) = (&opened, arguments.answer.format())
            && let Some(text) = full::network(&opened.path, &opened.bytes)
        {
            terminal::print(&text)?;
            continue;
        }
        let opened = opened.and_then(|opened| {
            let (info, raw, rest) = opened.with_file(&options, |file| {
                let document = file.part()?;
                let tree = if arguments.memory {
                    Some(document.capabilities().plans_memory()?.memory()?)
                } else {
                    arguments.raw.then(|| document.raw())
                };
                // What could be read is shown, and why the rest could not.
                Ok((document.info(), tree, file.read().err()))
            })?;
            if let Some(failure) = rest {
                let failure = opened.told(failure, None);
                terminal::complain(&failure.text());
                exit = exit.max(failure.exit());
            }
            let size = opened.bytes.len() as u64;
            Ok((opened.path, size, info, raw))
        });
        match opened {
            Ok(file) => read.push(file),
            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
            // In place of the answer.
            Err(failure) if !gathered.several => return Err(failure),
            Err(failure) => {
                terminal::complain(&failure.text());
                exit = exit.max(failure.exit());
            }
        }
    }
    match arguments.answer.format() {
        Format::Human => {
            let paint = terminal::out();
            for (i, (path, size, info, raw)) in read.iter().enumerate() {
                let gap = if i > 0 { "\n" } else { "" };
                let text = raw.as_ref().map_or_else(
                    || info::text(path, *size, info, paint),
                    |raw| info::tree(raw, paint),
                );
                terminal::print(&format!("{gap}{text}"))?;
            }
        }
        Format::Json => {
            let reports: Vec<InfoReport<'_>> = read
                .iter()
                .map(|(path, size, info, raw)| InfoReport::new(path, *size, info, raw.as_ref()))
                .collect();
            match (reports.as_slice(), gathered.several) {
                ([report], false) => terminal::print_json(report)?,
                (_, false) => {}
                (files, true) => terminal::print_json(&FilesReport {
                    schema_version: SCHEMA_VERSION,
                    files,
                })?,
            }
        }
    }
    if let Some(note) = gathered.note() {
        terminal::complain(&note);
    }
    Ok(exit)
}

/// The answer to `info --json` of several files.
#[derive(JsonSchema, Serialize)]
pub(super) struct FilesReport<'a> {
    /// Version of the form.
    schema_version: u32,
    /// One after the other, as of a file alone.
    files: &'a [InfoReport<'a>],
}
