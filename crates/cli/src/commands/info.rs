//! `chipless info`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::gather::Gathered;
use crate::options::TargetOptions;
use crate::output::{Format, OutputOptions};
use crate::terminal;
use chipless::Options;
use chipless::dsa_explore::resources::{ALONE, FIELDS, Usage, silicon};
use chipless_report::SCHEMA_VERSION;
use chipless_report::info::{self, InfoReport};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
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
        return resources(arguments, &options);
    }
    let mut exit = Exit::Done;
    let mut read = Vec::new();
    let gathered = Gathered::of(&arguments.files, &[])?;
    for path in &gathered.files {
        let opened = Opened::open(path).and_then(|opened| {
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

/// The answer to `info --resources --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct FabricReport<'a> {
    #[serde(flatten)]
    info: InfoReport<'a>,
    /// What the fabric takes: an estimate.
    resources: Resources,
}

/// Figures of an FPGA by name.
type Figures = BTreeMap<&'static str, f64>;

/// What a fabric takes.
#[derive(JsonSchema, Serialize)]
struct Resources {
    /// Cores of the system.
    cores: u32,
    /// Banks of its L2.
    banks: u32,
    /// Bytes that its bus carries a cycle.
    bus: u32,
    /// Lookup tables, flip-flops, DSP slices and block RAM of a Xilinx VU9P, by part.
    parts: BTreeMap<&'static str, Figures>,
    /// Of all parts together.
    total: Figures,
    /// Area as silicon (28 nm).
    area_mm2: f64,
    /// Power as silicon.
    power_mw: f64,
}

fn named(usage: &Usage) -> Figures {
    FIELDS.into_iter().zip(usage.0).collect()
}

/// What fabrics take.
fn resources(arguments: &Arguments, options: &Options) -> Result<Exit, Failure> {
    for path in &arguments.files {
        let adg = super::map::read_adg(path, &options.limits)?;
        let system = adg.system.unwrap_or(ALONE);
        let parts = chipless::dsa_explore::parts(&adg, system);
        let (area, power) = silicon(&adg);
        let (area, power) = (
            area * f64::from(system.cores),
            power * f64::from(system.cores),
        );
        let total = parts.total();
        match arguments.answer.format() {
            Format::Json => {
                let size = std::fs::metadata(path).map_or(0, |file| file.len());
                let (info, name) = (adg.info(), path.display().to_string());
                terminal::print_json(&FabricReport {
                    info: InfoReport::new(&name, size, &info, None),
                    resources: Resources {
                        cores: system.cores,
                        banks: system.banks,
                        bus: system.bus_width,
                        parts: parts
                            .0
                            .iter()
                            .map(|(part, of)| (*part, named(of)))
                            .collect(),
                        total: named(&total),
                        area_mm2: area,
                        power_mw: power,
                    },
                })?;
            }
            Format::Human => {
                let mut text = format!(
                    "{}: {} cores, {} banks, a bus of {} bytes\n{:14}",
                    path.display(),
                    system.cores,
                    system.banks,
                    system.bus_width,
                    "part"
                );
                for field in FIELDS {
                    text.push_str(&format!(" {field:>11}"));
                }
                for (name, usage) in parts.0.iter().chain([&("total", total)]) {
                    text.push_str(&format!("\n{name:14}"));
                    for figure in usage.0 {
                        text.push_str(&format!(" {figure:>11.0}"));
                    }
                }
                text.push_str(&format!(
                    "\nas silicon (28 nm): {area:.3} mm², {power:.1} mW\n\
                     Estimates; docs/dsa-exploration.md says how far they are off.\n"
                ));
                terminal::print(&text)?;
            }
        }
    }
    Ok(Exit::Done)
}
