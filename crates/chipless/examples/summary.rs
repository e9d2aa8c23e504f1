//! Opens a file, proves its program, runs it on random inputs, and prints what `chipless run FILE --json` prints.
//!
//! `cargo run -p chipless --example summary -- FILE [--network NETWORK.json]`

#![allow(
    clippy::print_stdout,
    reason = "an example talks to the person who runs it"
)]

use chipless::{Bytes, Failure, Files, Options};
use std::path::Path;

/// The files of this machine.
struct Disk;

impl Files for Disk {
    fn open(&self, name: &str) -> Result<Bytes, String> {
        let bytes = std::fs::read(name).map_err(|error| format!("cannot be read: {error}"))?;
        Ok(Box::new(bytes))
    }

    fn exists(&self, name: &str) -> bool {
        Path::new(name).is_file()
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments
        .next()
        .ok_or_else(|| Failure::misuse("summary", "expected a file, found none"))?;
    let mut options = Options::with_files(Disk);
    options.data.computes = true;
    while let (Some(option), Some(value)) = (arguments.next(), arguments.next()) {
        options.set(option.trim_start_matches('-'), value)?;
    }
    let bytes = options.open(&name)?.bytes;
    let file = chipless::open(&name, &bytes, &options)?;
    let document = file.read()?;
    let lowered = document.lower()?;
    let verified = lowered.verify().map_err(Failure::program)?;
    let finished = chipless::run(&document, &lowered, &verified, 0)?;
    finished.report(&name, |run| {
        let report = serde_json::to_string_pretty(&run.report());
        println!("{}", report.unwrap_or_default());
    });
    Ok(())
}
