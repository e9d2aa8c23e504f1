//! The binary `chipless`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(chipless_cli::main(std::env::args_os()))
}
