//! How answers are printed: for people or as JSON, and what a failure prints in place of an answer.

use crate::failure::Failure;
use crate::terminal;
use chipless_report::SCHEMA_VERSION;
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Output format.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Short for --format json.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    #[value(alias = "text")]
    Human,
    /// JSON.
    Json,
}

impl OutputOptions {
    /// For whom.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Whether a program reads the answer.
    pub(crate) fn is_json(&self) -> bool {
        self.format() == Format::Json
    }
}

/// Whether a command line asks for JSON, be it understood or not.
pub(crate) fn asks_for_json(arguments: &[OsString]) -> bool {
    let arguments = arguments.split(|argument| argument == "--").next();
    let arguments = arguments.unwrap_or_default();
    let pair = |pair: &[OsString]| pair[0] == "--format" && pair[1] == "json";
    let alone = |argument: &OsString| argument == "--json" || argument == "--format=json";
    arguments.iter().any(alone) || arguments.windows(2).any(pair)
}

/// What a command that was asked for JSON prints when it fails; the exit status is the same as without.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Failed<'a> {
    /// Version of the form.
    schema_version: u32,
    /// The file or the option that it is about; null where the command line was not understood.
    program: Option<&'a str>,
    /// What happened.
    failure: Reason<'a>,
}

/// Why a command failed.
#[derive(JsonSchema, Serialize)]
struct Reason<'a> {
    /// `unreadable`, `refused` (errors were found), `unsupported`, `limit`, `deadlock`, `fault` (while it ran) or `misuse`.
    kind: &'static str,
    /// What was expected and what was found.
    message: &'a str,
    /// `findings` as in `check`; `deadlock`: who waits for what; `finding` of a workload file: code, line, column and message.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    details: BTreeMap<&'static str, Value>,
}

/// What a failure prints in place of the answer.
pub(crate) fn print_failure(failure: &Failure) -> Result<(), Failure> {
    let Some(what) = failure.what() else {
        return Ok(());
    };
    let details = failure.details().into_iter().collect();
    terminal::print_json(&Failed {
        schema_version: SCHEMA_VERSION,
        program: Some(&what.subject),
        failure: Reason {
            kind: what.kind.name(),
            message: &what.message,
            details,
        },
    })
}

/// What a command line that was not understood prints in place of the answer.
pub(crate) fn print_misuse(text: &str) -> Result<(), Failure> {
    let message = text.lines().next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    terminal::print_json(&Failed {
        schema_version: SCHEMA_VERSION,
        program: None,
        failure: Reason {
            kind: chipless::FailureKind::Misuse.name(),
            message,
            details: BTreeMap::new(),
        },
    })
}
