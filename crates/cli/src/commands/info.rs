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
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What a file is: target, version, inputs and outputs, how many of what.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Program files of any target (which one it is is seen from the content), folders of them, patterns, or `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file's own structures as a tree, with their offsets.
    #[arg(long)]
    raw: bool,
    /// The memory that a load takes on each core: code, constants, tensors, scratchpad, rings (neuron).
    #[arg(long, conflicts_with = "raw")]
    memory: bool,
    /// What an architecture graph takes of an FPGA (Xilinx VU9P) and as silicon, by part: an estimate (dsa).
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
    let gathered = Gathered::of(&arguments.files)?;
    for path in &gathered.files {
        let opened = Opened::open(path).and_then(|opened| {
            let (info, raw) = opened.with_document(&options, |document| {
                let tree = if arguments.memory {
                    Some(document.memory()?)
                } else {
                    arguments.raw.then(|| document.raw())
                };
                Ok((document.info(), tree))
            })?;
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
                (reports, true) => terminal::print_json(&json!({
                    "schema_version": SCHEMA_VERSION,
                    "files": reports,
                }))?,
            }
        }
    }
    if let Some(note) = gathered.note() {
        terminal::complain(&note);
    }
    Ok(exit)
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
                let fields = |usage: &Usage| -> Map<String, Value> {
                    let figures = FIELDS.iter().zip(usage.0);
                    figures
                        .map(|(name, figure)| ((*name).to_owned(), json!(figure)))
                        .collect()
                };
                let by_part: Map<String, Value> = parts
                    .0
                    .iter()
                    .map(|(name, usage)| ((*name).to_owned(), Value::Object(fields(usage))))
                    .collect();
                let size = std::fs::metadata(path).map_or(0, |file| file.len());
                let info = adg.info();
                let name = path.display().to_string();
                let report = InfoReport::new(&name, size, &info, None);
                let mut value = serde_json::to_value(report).unwrap_or_default();
                value["resources"] = json!({
                    "cores": system.cores, "banks": system.banks, "bus": system.bus_width, "parts": by_part,
                    "total": fields(&total), "area_mm2": area, "power_mw": power,
                });
                terminal::print_json(&value)?;
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
