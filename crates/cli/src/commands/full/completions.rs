//! `chipless completions`

use crate::failure::{Exit, Failure};
use crate::{CommandLine, GROUPS};
use crate::{files, terminal};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use std::path::{Path, PathBuf};

/// Print shell completions, or write manual pages.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which shell.
    #[arg(value_enum, required_unless_present_any = ["man", "codes", "markdown"])]
    shell: Option<Shell>,
    /// Write a manual page for each command to this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    man: Option<PathBuf>,
    /// Print the codes of all findings, a line each.
    #[arg(long, conflicts_with_all = ["shell", "man"])]
    codes: bool,
    /// Print the help of every command, as docs/commands.md has it.
    #[arg(long, conflicts_with_all = ["shell", "man", "codes"])]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  chipless completions bash >> ~/.bash_completion
  chipless completions zsh > \"${fpath[1]}/_chipless\"
  chipless completions fish > ~/.config/fish/completions/chipless.fish
  chipless completions --man ~/.local/share/man/man1

Exit status: 0 done, 2 the pages cannot be written.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(directory) = &arguments.man {
        return man(directory).map(|()| Exit::Done);
    }
    if arguments.codes {
        let codes: String = codes().iter().map(|code| format!("{code}\n")).collect();
        return terminal::print(&codes).map(|()| Exit::Done);
    }
    if arguments.markdown {
        return terminal::print(&markdown()).map(|()| Exit::Done);
    }
    let mut script = Vec::new();
    if let Some(shell) = arguments.shell {
        generate(shell, &mut with_codes(), "chipless", &mut script);
    }
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

fn codes() -> Vec<&'static str> {
    let mut codes: Vec<&str> = chipless::rules().map(|rule| rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The command line as a shell should know it: codes of findings stand where they may be given.
fn with_codes() -> Command {
    let known = |argument: Arg| argument.value_parser(PossibleValuesParser::new(codes()));
    let mut command = CommandLine::command();
    for name in ["check", "run"] {
        command = command.mut_subcommand(name, |command| {
            command.mut_arg("allow", known).mut_arg("deny", known)
        });
    }
    command.mut_subcommand("explain", |command| command.mut_arg("code", known))
}

/// Writes the manual pages.
fn man(directory: &Path) -> Result<(), Failure> {
    files::make_directory(directory)?;
    let mut command = CommandLine::command().disable_help_subcommand(true);
    command.build();
    let commands = command.get_subcommands().cloned();
    for command in std::iter::once(command.clone()).chain(commands) {
        let name = match command.get_name() {
            "chipless" => "chipless".to_owned(),
            name => format!("chipless-{name}"),
        };
        let mut page = Vec::new();
        let manual = clap_mangen::Man::new(command.display_name(name.clone()));
        manual
            .render(&mut page)
            .map_err(|error| Failure::misuse(directory.display(), error))?;
        files::write(&directory.join(format!("{name}.1")), &[&page])?;
    }
    Ok(())
}

/// Columns of the help in the page of all commands.
const COLUMNS: usize = 110;

/// The help of every command, one after another.
fn markdown() -> String {
    let mut command = CommandLine::command()
        .disable_help_subcommand(true)
        .term_width(COLUMNS);
    command.build();
    let mut page = "# Commands\n\nWhat `chipless COMMAND --help` prints. This page is written by `cargo xtask reference`.\n".to_owned();
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    for command in names.filter_map(|name| command.find_subcommand(name)) {
        describe(&mut page, command, "##");
    }
    page
}

fn describe(page: &mut String, command: &Command, heading: &str) {
    if command.is_hide_set() {
        return;
    }
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!(
        "\n{heading} {name}\n\n```text\n{}\n```\n",
        lines.join("\n").trim_end()
    ));
    for command in command.get_subcommands() {
        describe(page, command, &format!("{heading}#"));
    }
}
