//! `chipless lsp`

use crate::failure::{Exit, Failure};
use chipless::Options;
use chipless::disk::Disk;
use clap::Args;
use lsp_server::Connection;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Serve an editor: the Language Server Protocol over stdio.
///
/// The editor starts the command and speaks with it over stdin and stdout.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Speak over stdin and stdout (the only transport).
    ///
    /// Editors pass it because other servers want it.
    #[arg(long)]
    stdio: bool,
}

const EXAMPLES: &str = "\
Examples:
  chipless lsp                        started by an editor: docs/editor.md has the set-up of each

Files: dataflow graphs (.dfg), IOSpecs, device workloads and sweep plans (.yaml), machine files (.toml), NEFF assembler (.asm), \
networks, schedules and architecture graphs (.json). The server shows what `chipless check` finds as you type, and mends what \
`chipless check --fix` mends.

Exit status: 0 the editor said goodbye, 2 it did not follow the protocol.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // Accepted, and without effect.
    let _ = arguments.stdio;
    let (connection, threads) = Connection::stdio();
    let served = chipless_lsp::serve(&connection, &Options::with_files(Disk));
    drop(connection);
    // What was said last is still to be written. A check that takes longer is nobody's any more.
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let _ = threads.join();
        let _ = done.send(());
    });
    let _ = ended.recv_timeout(Duration::from_secs(1));
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::misuse("lsp", error)),
    }
}
