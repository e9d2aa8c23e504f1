//! How answers are printed: for people or as JSON, and what a failure prints in place of an answer.

use crate::failure::Failure;
use crate::terminal;
use chipless_report::SCHEMA_VERSION;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::ffi::OsString;

/// How to print the answer.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// How to print the answer.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    #[value(alias = "text")]
    Human,
    /// One object.
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

/// What a failure prints in place of the answer.
pub(crate) fn print_failure(failure: &Failure) -> Result<(), Failure> {
    let Some(what) = failure.what() else {
        return Ok(());
    };
    let mut object = json!({
        "schema_version": SCHEMA_VERSION,
        "program": what.subject,
        "failure": { "kind": what.kind.name(), "message": what.message },
    });
    for (key, value) in failure.details() {
        object["failure"][key] = value;
    }
    terminal::print_json(&object)
}

/// What a command line that was not understood prints in place of the answer.
pub(crate) fn print_misuse(error: &clap::Error) -> Result<(), Failure> {
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    terminal::print_json(&json!({
        "schema_version": SCHEMA_VERSION,
        "program": Value::Null,
        "failure": { "kind": chipless::FailureKind::Misuse.name(), "message": message },
    }))
}
