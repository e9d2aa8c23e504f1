//! The binary `chipless`.

use std::process::ExitCode;
use std::thread::{Builder, JoinHandle};

/// Runs touch tens of megabytes once: large pages spare a fault for each 4 KiB of them, a quarter of the time of a small network. It is C code,
/// which a first look can do without.
#[cfg(feature = "full")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of stack: how deeply a file may nest is for the limits to say, not for `ulimit -s`.
const STACK: usize = 8 << 20;

/// The status of a process that panicked.
const PANICKED: u8 = 101;

fn work() -> u8 {
    chipless_cli::main(std::env::args_os())
}

fn main() -> ExitCode {
    let thread = Builder::new()
        .name("main".to_owned())
        .stack_size(STACK)
        .spawn(work);
    ExitCode::from(match thread.map(JoinHandle::join) {
        Ok(done) => done.unwrap_or(PANICKED),
        // Where the system gives no other stack, the one at hand has to do.
        Err(_) => work(),
    })
}
