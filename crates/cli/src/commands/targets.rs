//! `chipless targets`

use crate::failure::{Exit, Failure};
use crate::output::OutputOptions;
use crate::terminal;
use chipless::{OptionSpec, TARGETS};
use chipless_report::SCHEMA_VERSION;
use clap::Args;
use serde_json::{Value, json};

/// Which targets there are: their files, and the options that only they have.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The options of all targets as one page of Markdown.
    #[arg(long, conflicts_with_all = ["format", "json"])]
    markdown: bool,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
JSON is `{schema_version, targets: [{name, files, machines, options: [{name, help, kind, commands}]}]}`, options that all targets have \
included.

Exit status: 0.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.answer.is_json() {
        let targets: Vec<Value> = TARGETS.iter().map(|target| report(*target)).collect();
        terminal::print_json(&json!({ "schema_version": SCHEMA_VERSION, "targets": targets }))?;
        return Ok(Exit::Done);
    }
    if arguments.markdown {
        return terminal::print(&page()).map(|()| Exit::Done);
    }
    let mut text = String::new();
    for target in TARGETS {
        text.push_str(&format!(
            "{:7} {}\n",
            target.name(),
            target.files().join(", ")
        ));
        for option in target.options() {
            text.push_str(&format!(
                "          --{} {}  {} ({})\n",
                option.name,
                option.value,
                option.help,
                option.commands.join(", ")
            ));
        }
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}

fn report(target: &dyn chipless::Target) -> Value {
    let machines: Vec<&str> = target.machines().iter().map(|(name, _)| *name).collect();
    let options = chipless::COMMON.iter().chain(target.options());
    let options: Vec<Value> = options
        .map(|option| {
            json!({
                "name": option.name, "help": option.help, "kind": option.kind.name(), "commands": option.commands,
            })
        })
        .collect();
    json!({ "name": target.name(), "files": target.files(), "machines": machines, "options": options })
}

/// The page of all options.
fn page() -> String {
    let mut text = "# Options\n\nOptions that come with programs, beside those of the commands themselves (`--help`).\n"
        .to_owned();
    let mut section = |title: &str, options: &[OptionSpec]| {
        if options.is_empty() {
            return;
        }
        text.push_str(&format!(
            "\n## {title}\n\n| option | does | commands |\n|---|---|---|\n"
        ));
        for option in options {
            let (name, value, help) = (
                option.name,
                option.value.replace('|', "\\|"),
                option.help.replace('|', "\\|"),
            );
            text.push_str(&format!(
                "| `--{name} {value}` | {help} | {} |\n",
                option.commands.join(", ")
            ));
        }
    };
    section("All targets", chipless::COMMON);
    for target in TARGETS {
        section(&format!("`{}`", target.name()), target.options());
    }
    text
}
