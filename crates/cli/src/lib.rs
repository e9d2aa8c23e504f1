//! `chipless`: opens, checks, runs and times compiled AI-accelerator programs without the chip.
//!
//! The command line as a function, for the binary and for the Python package that brings it along: it reads the files, writes the outputs and prints.
//! What can be done with a file is the business of the library `chipless`, what there is to say is put into words by `chipless-report`.

mod commands;
mod failure;
mod files;
mod gather;
mod options;
mod output;
mod policy;
mod progress;
mod terminal;
#[cfg(test)]
mod words;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use failure::Exit;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

/// Run compiled AI-accelerator programs without the chip.
///
/// Chipless opens compiled programs, checks them, executes them to compute their outputs, and estimates how long they take and why.
#[derive(Debug, Parser)]
#[command(name = "chipless", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
#[command(override_usage = "chipless [OPTIONS] <COMMAND>")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    /// When to colour the output.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: terminal::Colour,
}

const EXAMPLES: &str = "\
Examples:
  chipless info model.blob                 format, inputs and outputs
  chipless check model.blob                find errors without running it
  chipless run model.blob --input x=x.npy --output-dir out
  chipless run model.blob --timing-only --trace model.pftrace
  chipless list model.blob 'dpu0[3]'       one task: waits, accesses, signals

Exit status: 0 done, 1 something is wrong with the program, 2 the file cannot be used or the command was misused.";

#[derive(Debug, Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, and not in every build is it large"
)]
enum Command {
    Info(commands::info::Arguments),
    Check(commands::check::Arguments),
    Explain(commands::explain::Arguments),
    Targets(commands::targets::Arguments),
    Run(commands::run::Arguments),
    Diff(commands::diff::Arguments),
    List(commands::list::Arguments),
    Report(commands::report::Arguments),
    View(commands::view::Arguments),
    #[command(flatten)]
    Full(commands::full::Command),
}

/// Headings of the commands in `chipless --help`, each with its commands.
const GROUPS: &[(&str, &[&str])] = &[
    ("Inspect", &["info", "list", "targets", "machine"]),
    ("Verify", &["check", "explain", "format", "lsp"]),
    ("Run", &["run", "debug", "view", "report"]),
    ("Compare", &["diff", "sweep"]),
    (
        "Explore",
        &[
            "schedule", "tune", "map", "adg", "explore", "device", "yield",
        ],
    ),
    ("Host", &["drive", "host", "iospec"]),
    (
        "Files",
        &[
            "unpack",
            "pack",
            "convert",
            "kernels",
            "schema",
            "completions",
        ],
    ),
];

/// What to say of all that a build without the feature `full` lacks.
const LEFT_OUT: &str = "not in this build, which was made without the feature `full`; `cargo build --release` makes one with everything";

fn others_left_out() -> String {
    format!("Other commands, options and targets are {LEFT_OUT}.")
}

/// The command line, with its commands under headings.
pub(crate) fn command() -> clap::Command {
    let command = CommandLine::command();
    let about = |name: &str| {
        let found = command.get_subcommands().find(|c| c.get_name() == name);
        found.and_then(|c| c.get_about()).map(ToString::to_string)
    };
    let mut listed = String::new();
    for (heading, names) in GROUPS {
        let line = |name: &&str| about(name).map(|about| format!("  {name:12} {about}\n"));
        let lines: String = names.iter().filter_map(line).collect();
        if !lines.is_empty() {
            listed.push_str(&format!("{heading}:\n{lines}\n"));
        }
    }
    if !cfg!(feature = "full") {
        listed.push_str(&format!("{}\n\n", others_left_out()));
    }
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// Does what a command line asks for, its first argument being the name of the program. Returns the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let started = Instant::now();
    terminal::survive_file_limits();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command()
        .try_get_matches_from(&arguments)
        .and_then(|matches| CommandLine::from_arg_matches(&matches))
        .map_err(|error| with_the_command_that_has_it(error, &arguments));
    let command_line = match parsed {
        Ok(command_line) => command_line,
        Err(error) => {
            // Help that was asked for goes to stdout, everything else to stderr. Nobody may be listening to either.
            let hint = file_in_place_of_a_command(&error, &arguments)
                .or_else(|| command_left_out(&error, &arguments));
            if let Some(hint) = &hint {
                terminal::complain(hint);
            } else {
                drop(error.print());
                if error.use_stderr() && !cfg!(feature = "full") {
                    terminal::complain(&format!("\nnote: {}\n", others_left_out()));
                }
            }
            if error.use_stderr() && output::asks_for_json(&arguments) {
                let text = hint.unwrap_or_else(|| error.render().to_string());
                let _ = output::print_misuse(&text);
            }
            return u8::try_from(error.exit_code()).unwrap_or(Exit::Unusable as u8);
        }
    };
    command_line.color.apply();
    let ended = match command_line.command {
        Command::Info(arguments) => commands::info::run(&arguments),
        Command::Check(arguments) => commands::check::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Targets(arguments) => commands::targets::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments, started),
        Command::Diff(arguments) => commands::diff::run(&arguments),
        Command::List(arguments) => commands::list::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::View(arguments) => commands::view::run(&arguments),
        Command::Full(command) => command.run(),
    };
    match ended {
        Ok(exit) => exit as u8,
        Err(failure) => {
            terminal::complain(&failure.text());
            if output::asks_for_json(&arguments) {
                let _ = output::print_failure(&failure);
            }
            failure.exit() as u8
        }
    }
}

/// Says what was meant by a command that there is not, or by an option that a command does not have: an option of other commands, another name of one of its own, or another command.
fn with_the_command_that_has_it(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if let Some(command) = command_of_another_name(&error, arguments) {
        let tip = match command.split_once("  ") {
            Some((command, what)) => format!("`chipless {command}` {}", what.trim()),
            None => format!("did you mean `chipless {command}`?"),
        };
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.clone(),
        _ => return error,
    };
    let command = CommandLine::command();
    let tip = if let Some(name) = option.strip_prefix("--") {
        let has_it = |command: &&clap::Command| {
            let mut arguments = command.get_arguments();
            arguments.any(|argument| argument.get_long() == Some(name))
        };
        let owners = command.get_subcommands().filter(has_it);
        let owners: Vec<String> = owners
            .map(|owner| format!("`chipless {}`", owner.get_name()))
            .collect();
        if let Some(tip) = without_data(name, arguments) {
            Some(tip)
        } else if owners.is_empty() {
            elsewhere(name).and_then(|command| {
                let (command, what) = command.split_once("  ")?;
                Some(format!("`chipless {command}` {}", what.trim()))
            })
        } else {
            Some(format!("`--{name}` is an option of {}", owners.join(", ")))
        }
    } else {
        of_another_name(&command, &option, arguments)
    };
    // clap's own tip for a short option, and for one of other commands, is to take it for a file's name: that helps nobody.
    let is_short = !option.starts_with("--");
    if tip.is_some() || is_short || error.get(ContextKind::SuggestedArg).is_none() {
        error.remove(ContextKind::Suggested);
    }
    if let Some(tip) = tip {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Why a command that computes no values takes no data, and which one does.
fn without_data(option: &str, arguments: &[OsString]) -> Option<String> {
    let is_report = arguments.get(1).is_some_and(|command| command == "report");
    (is_report && ["input", "seed"].contains(&option)).then(|| {
        format!(
            "`chipless report` times a program and computes no values; `chipless view FILE --{option} …` shows the same page with data"
        )
    })
}

/// The long options of a command that mean what a short one does elsewhere: `-o` is `--output` there, and `--output-dir` here.
fn of_another_name(
    command: &clap::Command,
    option: &str,
    arguments: &[OsString],
) -> Option<String> {
    let short = option.strip_prefix('-')?.chars().next()?;
    let all = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments);
    let meant: Vec<&str> = all
        .filter(|argument| argument.get_short() == Some(short))
        .filter_map(|argument| argument.get_long())
        .collect();
    let own = command.find_subcommand(arguments.get(1)?.to_str()?)?;
    let own = own
        .get_arguments()
        .filter_map(|argument| argument.get_long());
    let own: Vec<String> = own
        .filter(|long| meant.iter().any(|meant| long.starts_with(meant)))
        .map(|long| format!("`--{long}`"))
        .collect();
    (!own.is_empty()).then(|| format!("this command has {}", own.join(", ")))
}

/// What other tools call our commands, and what they are here.
const ELSEWHERE: [(&[&str], &str); 10] = [
    (
        &[
            "time",
            "profile",
            "optimize",
            "bench",
            "benchmark",
            "simulate",
            "exec",
            "execute",
        ],
        "run FILE              executes and times a program; --rank says what would make it faster",
    ),
    (
        &["verify", "validate", "lint"],
        "check FILE            finds errors",
    ),
    (
        &["rules", "rule", "codes"],
        "explain               lists the rules; `chipless explain CODE` explains one",
    ),
    (
        &[
            "ls",
            "lst",
            "dump",
            "objdump",
            "disassemble",
            "dis",
            "disasm",
        ],
        "list FILE             lists tasks; --asm and --registers show more",
    ),
    (
        &["compile", "build"],
        "schedule NET.onnx     makes a schedule of a network",
    ),
    (
        &["mesh", "cores", "grid"],
        "schedule NET.onnx --machine mesh4x4 -o OUT.json    is for a mesh of 4 × 4 cores",
    ),
    (
        &["show", "draw", "plot", "graph"],
        "report FILE -o page.html    writes the page of a run",
    ),
    (
        &["compare"],
        "diff A B              says where two runs differ",
    ),
    (
        &["asm", "assemble"],
        "pack FILE.asm OUT.neff    assembles a text",
    ),
    (
        &["gdb", "lldb", "dbg", "step"],
        "debug FILE            executes a program step by step",
    ),
];

/// The command that does what a word means elsewhere, and what it does.
fn command_of_another_name(error: &clap::Error, arguments: &[OsString]) -> Option<&'static str> {
    let word = arguments.get(1)?.to_str()?;
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    // Letters in another order are a slip that clap does not see.
    let of_slip = || {
        let names: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let has_tip = error.get(ContextKind::SuggestedSubcommand).is_some();
        chipless::suggest::closest(word, names).filter(|_| !has_tip)
    };
    elsewhere(word).or_else(of_slip)
}

/// The command that does what a word means elsewhere, and what it does.
fn elsewhere(word: &str) -> Option<&'static str> {
    let mut known = ELSEWHERE.iter();
    let (_, command) = known.find(|(words, _)| words.contains(&word))?;
    Some(command)
}

/// What to say of a command that this build has not.
fn command_left_out(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let name = arguments.get(1)?.to_str()?;
    let is_ours = GROUPS.iter().any(|(_, names)| names.contains(&name));
    (error.kind() == ErrorKind::InvalidSubcommand && is_ours)
        .then(|| format!("{name}: {LEFT_OUT}\n"))
}

/// What to say to someone who gives a file where a command should stand.
fn file_in_place_of_a_command(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let first = Path::new(arguments.get(1)?);
    let is_file = error.kind() == ErrorKind::InvalidSubcommand && first.is_file();
    let name = first.display();
    is_file.then(|| {
        format!(
            "chipless: expected a command, found the file {name}\n\n  chipless info {name}     show its format, inputs and outputs\n  \
             chipless check {name}    find errors\n  chipless run {name}      execute and time it\n\n\
             `chipless --help` lists all commands.\n"
        )
    })
}
