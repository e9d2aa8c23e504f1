//! What the host gives: files that the user names, random data for the rest.

use crate::failure::Failure;
use crate::files::{self, Bytes};
use crate::progress::Bar;
use crate::terminal;
use chipless::npy;
use chipless_model::{Port, Program, Storage};
use std::borrow::Cow;
use std::path::Path;

/// A file that the user gave for an input.
pub(in crate::commands) struct Given {
    /// Which one of the interface's inputs.
    pub(super) port: usize,
    pub(super) path: String,
    pub(super) bytes: Bytes,
}

/// Opens the files of `NAME=FILE` options.
pub(in crate::commands) fn open(
    program_path: &str,
    program: &Program<'_>,
    options: &[String],
) -> Result<Vec<Given>, Failure> {
    let ports = &program.interface.inputs;
    let mut given: Vec<Given> = Vec::new();
    for option in options {
        let (port, path) = chipless::input_named(program_path, ports, option)?;
        if given.iter().any(|g| g.port == port) {
            return Err(Failure::misuse(
                program_path,
                format_args!(
                    "expected one file for input \"{}\", found another: {path}",
                    ports[port].name
                ),
            ));
        }
        let bytes =
            files::open(Path::new(path)).map_err(|error| Failure::unreadable(path, error))?;
        let Port { name, element, .. } = &ports[port];
        if npy::is_narrowed(&bytes, ports[port].host_element.unwrap_or(*element)) {
            terminal::complain(&format!(
                "{path}: note: input \"{name}\" is {element}, and this file is int64; its values are taken where all of them fit\n"
            ));
        }
        given.push(Given {
            port,
            path: path.to_owned(),
            bytes,
        });
    }
    Ok(given)
}

/// Puts the data of every input into its buffer; those of `zeros` become zero. Returns the names of the inputs whose data are random.
pub(in crate::commands) fn fill<'b>(
    program_path: &str,
    program: &Program<'_>,
    given: &'b [Given],
    zeros: &[usize],
    seed: u64,
    storage: &mut Storage<'b>,
) -> Result<Vec<String>, Failure> {
    let data = |index: usize, port: &Port, size: u64| {
        if zeros.contains(&index) {
            let zeros = chipless_model::zeroed(size).map_err(chipless::no_room)?;
            return Ok(Some(Cow::Owned(zeros)));
        }
        let Some(Given { path, bytes, .. }) = given.iter().find(|g| g.port == index) else {
            return Ok(None);
        };
        let refused = |error| {
            let text = format_args!("input \"{}\": {error}", port.name);
            chipless::Failure::misuse(path, text)
        };
        npy::read_port(bytes, port).map(Some).map_err(refused)
    };
    let bar = Bar::new("bytes of random inputs");
    let filled = chipless::fill_watched(program, data, seed, storage, &mut |done, total| {
        bar.at(done, total, "");
    });
    bar.clear();
    filled.map_err(|failure| failure.about(program_path).into())
}
