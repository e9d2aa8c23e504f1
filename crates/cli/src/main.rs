//! The binary `chipless`.

use std::process::ExitCode;

/// Runs touch tens of megabytes once: large pages spare a fault for each 4 KiB of them, a quarter of the time of a small network.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(chipless_cli::main(std::env::args_os()))
}
