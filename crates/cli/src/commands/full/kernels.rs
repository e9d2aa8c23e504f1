//! `chipless kernels`

use crate::failure::{Exit, Failure};
use crate::{files, terminal};
use chipless::npu::shave::{LibraryKernel, Operation, import, table_text};
use clap::{Args, Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Manage tables of vendor kernels.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(Import),
}

/// Import SHAVE kernel names from a compiler or driver.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Import {
    /// Library with the kernels, such as the vendor's compiler.
    #[arg(value_name = "LIBRARY")]
    library: PathBuf,
    /// Write the table to this file.
    #[arg(long, short, value_name = "TABLE.toml")]
    output: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// One object.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  chipless kernels import openvino_intel_npu_compiler.dll -o kernels.toml
  chipless run model.blob --kernel-table kernels.toml

The table names each kernel by the SHA-1 over its code, as the library does: it holds facts, no code. What Chipless can compute has an \
operation besides. The kernels of the releases 2026.0 to 2026.4 need no import.

Exit status: 0 done, 2 the file cannot be used or holds no kernel.";

/// The answer to `kernels import --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct Report<'k> {
    /// Version of the form.
    schema_version: u32,
    /// Kernels of the library.
    kernels: Vec<Row<'k>>,
}

/// A kernel.
#[derive(JsonSchema, Serialize)]
struct Row<'k> {
    /// SHA-1 over its code.
    sha1: &'k str,
    /// Bytes of its code.
    size: u64,
    /// The library's name for it.
    name: &'k str,
    /// What Chipless computes for it; null where it cannot.
    operation: Option<&'static str>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Command::Import(arguments) = &arguments.command;
    let shown = arguments.library.display().to_string();
    let library =
        files::open(&arguments.library).map_err(|error| Failure::unreadable(&shown, error))?;
    let kernels = import(&library);
    if kernels.is_empty() {
        let text = "expected a library with SHAVE kernels (ELF files of 32 bits whose entry has a name), found none";
        return Err(Failure::unreadable(shown, text));
    }
    files::write(&arguments.output, &[table_text(&kernels).as_bytes()])?;
    if arguments.json || arguments.format == Format::Json {
        terminal::print_json(&Report {
            schema_version: 1,
            kernels: kernels.iter().map(row).collect(),
        })?;
    } else {
        let known = kernels.iter().filter(|kernel| kernel.operation.is_some());
        terminal::print(&format!(
            "{}: {} kernels, {} of them with an operation that Chipless knows\n",
            arguments.output.display(),
            kernels.len(),
            known.count()
        ))?;
    }
    Ok(Exit::Done)
}

fn row(kernel: &LibraryKernel) -> Row<'_> {
    Row {
        sha1: &kernel.sha1,
        size: kernel.size,
        name: &kernel.name,
        operation: kernel.operation.map(Operation::name),
    }
}
