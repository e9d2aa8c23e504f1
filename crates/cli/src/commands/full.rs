//! What a build without the feature `full` leaves out: the commands that need more than programs of NPUs and SPUs to be read, checked and run.
//! `left_out.rs` stands in for it there.

mod adg;
mod completions;
mod convert;
mod debug;
mod device;
mod drive;
mod explore;
mod fix;
mod format;
mod host;
mod interrupted;
mod iospec;
mod kernels;
mod lsp;
mod machine;
mod map;
mod mesh;
mod model;
mod network;
mod pack;
mod resources;
mod schedule;
mod schema;
mod search_time;
mod sweep;
mod tune;
mod yields;

pub(crate) use chipless_lsp::check;
pub(crate) use fix::fix;
pub(crate) use mesh::take_mesh;
pub(crate) use model::{left_out_of, model_outputs};
pub(crate) use network::network;
pub(crate) use pack::program;
pub(crate) use resources::resources;

use crate::failure::{Exit, Failure};
use chipless_report::findings::FileReport;
use clap::Subcommand;
use std::io;

/// Endings of tables.
pub(crate) const TABLES: &str = "`.csv`, `.json` or `.parquet`";

/// Findings as JUnit has them.
pub(crate) fn junit(reports: &[FileReport<'_>]) -> Result<String, Failure> {
    chipless_report::junit::report(reports)
        .map_err(|error| Failure::output(&io::Error::other(error)))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Machine(machine::Arguments),
    Debug(debug::Arguments),
    Format(format::Arguments),
    Lsp(lsp::Arguments),
    Map(map::Arguments),
    Adg(adg::Arguments),
    Explore(explore::Arguments),
    Unpack(pack::UnpackArguments),
    Pack(pack::PackArguments),
    Convert(convert::Arguments),
    Drive(drive::Arguments),
    Device(device::Arguments),
    Yield(yields::Arguments),
    Host(host::Arguments),
    Iospec(iospec::Arguments),
    Kernels(kernels::Arguments),
    Schedule(schedule::Arguments),
    Schema(schema::Arguments),
    Sweep(sweep::Arguments),
    Tune(tune::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Command::Machine(arguments) => machine::run(arguments),
            Command::Debug(arguments) => debug::run(arguments),
            Command::Format(arguments) => format::run(arguments),
            Command::Lsp(arguments) => lsp::run(arguments),
            Command::Map(arguments) => map::run(arguments),
            Command::Adg(arguments) => adg::run(arguments),
            Command::Explore(arguments) => explore::run(arguments),
            Command::Unpack(arguments) => pack::unpack(arguments),
            Command::Pack(arguments) => pack::pack(arguments),
            Command::Convert(arguments) => convert::run(arguments),
            Command::Drive(arguments) => drive::run(arguments),
            Command::Device(arguments) => device::run(arguments),
            Command::Yield(arguments) => yields::run(arguments),
            Command::Host(arguments) => host::run(arguments),
            Command::Iospec(arguments) => iospec::run(arguments),
            Command::Kernels(arguments) => kernels::run(arguments),
            Command::Schedule(arguments) => schedule::run(arguments),
            Command::Schema(arguments) => schema::run(arguments),
            Command::Sweep(arguments) => sweep::run(arguments),
            Command::Tune(arguments) => tune::run(arguments),
            Command::Completions(arguments) => completions::run(arguments),
        }
    }
}
