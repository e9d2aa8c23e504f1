//! The compiled half of the Python package `chipless`: it takes and gives plain values, the Python half gives them names and types.

#![allow(
    clippy::needless_pass_by_value,
    reason = "Python's arguments come as values"
)]

mod failure;
mod pool;
mod program;
mod run;
mod session;
mod sweep;
mod table;
mod tune;

use pyo3::prelude::*;
use std::ffi::OsString;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::command_line;
    #[pymodule_export]
    use super::program::{Checked, Program, diff, open};
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::sweep::{sweep, sweep_carry, sweep_merge, sweep_shard};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::tune::{tune, tune_carry, tune_shard};

    /// The version of Chipless.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python has for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Does what the command `chipless` does with these arguments, its own name first. Returns the exit status.
#[pyfunction]
fn command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| chipless_cli::main(arguments))
}
