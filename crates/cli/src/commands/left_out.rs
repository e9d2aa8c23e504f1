//! What is said in place of what a build without the feature `full` leaves out.

pub(crate) use chipless::check;

use super::run::{Model, ModelOutput};
use crate::failure::{Exit, Failure};
use crate::files::Bytes;
use crate::output::Format;
use chipless::{Options, Policy};
use chipless_model::Port;
use chipless_report::findings::FileReport;
use clap::Subcommand;
use std::path::{Path, PathBuf};

/// Endings of tables.
pub(crate) const TABLES: &str = "`.csv` or `.json` (Parquet is not in this build)";

/// No command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match *self {}
    }
}

pub(crate) fn fix(_: &Path, _: &Options, _: &Policy, _: bool) -> Result<(), Failure> {
    Err(left_out("--fix"))
}

pub(crate) fn resources(_: &[PathBuf], _: &Options, _: Format) -> Result<Exit, Failure> {
    Err(left_out("--resources"))
}

pub(crate) fn junit(_: &[FileReport<'_>]) -> Result<String, Failure> {
    Err(left_out("--format junit"))
}

/// Assembler text is none here.
#[expect(clippy::unnecessary_wraps, reason = "that of a full build may fail")]
pub(crate) fn program(_: &Path, bytes: Bytes) -> Result<Bytes, Failure> {
    Ok(bytes)
}

/// Networks are described by what schedules them.
pub(crate) fn network(_: &str, _: &[u8]) -> Option<String> {
    None
}

/// Models are computed by what schedules them.
pub(crate) fn model_outputs(
    _: Model<'_>,
    _: (&str, &[Port]),
    _: &dyn Fn(&Port) -> Result<Vec<f64>, String>,
) -> Result<Vec<ModelOutput>, Failure> {
    Err(left_out("--compare MODEL.onnx"))
}

/// Nothing is compared with a model.
pub(crate) fn left_out_of(_: &Path, _: &str) -> Option<&'static str> {
    None
}

/// There are no meshes: a machine is a machine file of its target.
#[expect(clippy::unnecessary_wraps, reason = "that of a full build may fail")]
pub(crate) fn take_mesh(_: &mut Options) -> Result<(), Failure> {
    Ok(())
}

fn left_out(option: &str) -> Failure {
    Failure::misuse(option, crate::LEFT_OUT)
}
