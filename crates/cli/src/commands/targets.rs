//! `chipless targets`

use crate::failure::{Exit, Failure};
use crate::output::OutputOptions;
use crate::terminal;
use chipless::{OptionSpec, TARGETS};
use chipless_report::SCHEMA_VERSION;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

/// List targets, their files, abilities and options.
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
        terminal::print_json(&TargetsReport {
            schema_version: SCHEMA_VERSION,
            targets: TARGETS.iter().map(|t| TargetReport::new(*t)).collect(),
        })?;
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
        let machines: Vec<&str> = target.machines().iter().map(|(name, _)| *name).collect();
        if !machines.is_empty() {
            let machines = machines.join(", ");
            text.push_str(&format!("        machines {machines} (--machine)\n"));
        }
        for capability in target.capabilities() {
            text.push_str(&format!(
                "        offers {} ({})\n",
                capability.what(),
                capability.with()
            ));
        }
        for option in in_use(target.options()) {
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

/// The answer to `targets --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct TargetsReport {
    /// Version of the form.
    schema_version: u32,
    /// All targets.
    targets: Vec<TargetReport>,
}

/// A target.
#[derive(JsonSchema, Serialize)]
struct TargetReport {
    /// Its name.
    name: &'static str,
    /// The kinds of files that it reads.
    files: &'static [&'static str],
    /// Machine files that are built in.
    machines: Vec<&'static str>,
    /// What can be done with its files, or some of them, beyond what every file can be asked.
    capabilities: Vec<CapabilityReport>,
    /// Options that its files take, those of all targets included.
    options: Vec<OptionReport>,
}

/// Something that not every target can do.
#[derive(JsonSchema, Serialize)]
struct CapabilityReport {
    /// In words.
    what: &'static str,
    /// The command or option that uses it.
    with: &'static str,
}

/// An option of a target.
#[derive(JsonSchema, Serialize)]
struct OptionReport {
    /// Without the dashes.
    name: &'static str,
    /// What it does.
    help: &'static str,
    /// `text`, `count`, `file`, `directory` or `choice`.
    kind: &'static str,
    /// The commands that take it.
    commands: &'static [&'static str],
}

impl TargetReport {
    fn new(target: &dyn chipless::Target) -> TargetReport {
        let options = chipless::COMMON.iter().chain(target.options());
        TargetReport {
            name: target.name(),
            files: target.files(),
            machines: target.machines().iter().map(|(name, _)| *name).collect(),
            capabilities: target
                .capabilities()
                .iter()
                .map(|capability| CapabilityReport {
                    what: capability.what(),
                    with: capability.with(),
                })
                .collect(),
            options: options
                .map(|option| OptionReport {
                    name: option.name,
                    help: option.help,
                    kind: option.kind.name(),
                    commands: option.commands,
                })
                .collect(),
        }
    }
}

/// Options that some command takes under their own name.
fn in_use(options: &'static [OptionSpec]) -> impl Iterator<Item = &'static OptionSpec> {
    options.iter().filter(|option| !option.commands.is_empty())
}

/// The page of all options.
fn page() -> String {
    let mut text = "# Options\n\nOptions that come with programs, beside those of the commands themselves (`--help`).\n"
        .to_owned();
    let mut section = |title: &str, options: &'static [OptionSpec]| {
        let options: Vec<&OptionSpec> = in_use(options).collect();
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
