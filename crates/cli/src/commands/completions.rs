//! `chipless completions`

use crate::CommandLine;
use crate::failure::{Exit, Failure};
use crate::terminal;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// A script that lets a shell complete commands and options.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  chipless completions bash >> ~/.bash_completion
  chipless completions zsh > \"${fpath[1]}/_chipless\"
  chipless completions fish > ~/.config/fish/completions/chipless.fish

Exit status: 0 done.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(
        arguments.shell,
        &mut CommandLine::command(),
        "chipless",
        &mut script,
    );
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
