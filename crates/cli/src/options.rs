//! The options that targets have, as arguments of a command: those that some target has for it, and no others.

use crate::commands::{full, retime::OF_PROGRAMS};
use crate::failure::Failure;
use chipless::disk::Disk;
use chipless::{Data, OptionKind, OptionSpec, Options, TARGETS, suggest};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// What was given of the options of targets.
#[derive(Debug)]
pub(crate) struct TargetOptions {
    given: Vec<(&'static str, String)>,
}

impl TargetOptions {
    /// The options for the library, which opens the files that they name on disk.
    pub(crate) fn load(&self) -> Result<Options, Failure> {
        let mut options = Options::with_files(Disk);
        for (name, value) in &self.given {
            options.set(name, value)?;
        }
        full::take_mesh(&mut options)?;
        Ok(options)
    }
}

/// The data that a program computes with.
#[derive(clap::Args, Debug)]
pub(crate) struct InputOptions {
    /// Input data: NAME=FILE.npy, repeatable.
    ///
    /// `chipless info` lists the names. An input that you do not pass is filled with seeded random data.
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    pub(crate) inputs: Vec<String>,
    /// Seed of the random data.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

impl InputOptions {
    /// For targets whose programs depend on their inputs.
    pub(crate) fn data(&self, computes: bool) -> Data {
        Data {
            computes,
            arrays: self.inputs.clone(),
            seed: self.seed,
            ..Data::default()
        }
    }
}

/// Options of the second of two files.
#[derive(clap::Args, Debug)]
pub(crate) struct OtherOptions {
    /// Set an option for the second program only.
    ///
    /// Repeatable. All other options hold for both programs. Examples: --other machine=npu5, --other map=b.json, --other set=clock.dpu=2x
    #[arg(long, value_name = "NAME=VALUE")]
    other: Vec<String>,
}

/// Options that change nothing but times.
const TIMING: [&str; 3] = ["machine", "set", "calibration"];

impl OtherOptions {
    /// Whether any was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.other.is_empty()
    }

    /// As they were given.
    pub(crate) fn changes(&self) -> &[String] {
        &self.other
    }

    /// Whether the second program is timed by other figures.
    pub(crate) fn changes_times(&self) -> bool {
        let mut options = self
            .other
            .iter()
            .filter_map(|option| option.split_once('='));
        options.any(|(name, _)| TIMING.contains(&name))
    }

    /// The options of the second file: those of the first one, and what a command was told of the other.
    pub(crate) fn load(&self, first: &Options, command: &str) -> Result<Options, Failure> {
        let mut others = first.clone();
        for option in &self.other {
            let (name, value) = option.split_once('=').ok_or_else(|| {
                let text = format!("expected NAME=VALUE, found \"{option}\"");
                Failure::misuse("--other", text)
            })?;
            refuse_other(name, command)?;
            others.set(name, value)?;
        }
        full::take_mesh(&mut others)?;
        Ok(others)
    }
}

/// Refuses what a command has no option for, with the options that it has.
fn refuse_other(name: &str, command: &str) -> Result<(), Failure> {
    let own = chipless::options();
    let own = own.iter().map(|(spec, _)| spec);
    let own: Vec<&str> = own
        .filter(|spec| spec.commands.contains(&command))
        .map(|spec| spec.name)
        .collect();
    if own.contains(&name) {
        return Ok(());
    }
    let more = if name == "what-if" || OF_PROGRAMS.contains(&name) {
        ". `chipless run FILE --what-if KEY=VALUE` times a program as if it were compiled otherwise"
            .to_owned()
    } else {
        suggest::hint(name, own.iter().copied())
    };
    let text = format!(
        "expected an option of this command ({}), found \"{name}\"{more}",
        own.join(", ")
    );
    Err(Failure::misuse("--other", text))
}

impl clap::FromArgMatches for TargetOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<TargetOptions, clap::Error> {
        let mut given = Vec::new();
        for (spec, _) in chipless::options() {
            // Options that the command does not have are none of its arguments.
            let values = matches.try_get_many::<String>(spec.name).ok().flatten();
            given.extend(values.into_iter().flatten().map(|v| (spec.name, v.clone())));
        }
        let limits = given.iter().filter(|(name, _)| *name == "limit");
        for (_, limit) in limits {
            // What is wrong with it is said when the options are loaded.
            if let Some(Ok(bytes)) = limit.strip_prefix("pipe_bytes=").map(str::parse) {
                chipless::disk::set_pipe_bytes(bytes);
            }
        }
        Ok(TargetOptions { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = TargetOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for TargetOptions {
    fn augment_args(command: Command) -> Command {
        let name = command.get_name().to_owned();
        // A program behind a contract takes the options of a run. Those of single targets are shown there.
        let has_program = ["drive", "host"].contains(&&*name);
        chipless::options()
            .iter()
            .filter_map(|(spec, owners)| {
                let is_own = spec.commands.contains(&&*name);
                let is_programs = has_program && spec.commands.contains(&"run");
                (is_own || is_programs).then(|| argument(spec, owners).hide(!is_own))
            })
            .fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        TargetOptions::augment_args(command)
    }
}

fn argument(spec: &'static OptionSpec, owners: &[&'static str]) -> Arg {
    // The first sentence is the short help.
    let (first, details) = spec.help.split_once(". ").unwrap_or((spec.help, ""));
    let (heading, help) = if owners.len() == TARGETS.len() {
        ("Machine and limits", first.to_owned())
    } else {
        let help = format!("{first} ({})", owners.join(", "));
        ("Options of single targets", help)
    };
    let long = if details.is_empty() {
        help.clone()
    } else {
        format!("{help}\n\n{details}")
    };
    let argument = Arg::new(spec.name)
        .long(spec.name)
        .value_name(spec.value)
        .help(help)
        .long_help(long)
        .help_heading(heading)
        .action(if spec.is_repeated {
            ArgAction::Append
        } else {
            ArgAction::Set
        });
    match spec.kind {
        OptionKind::Choice(choices) => {
            let values = choices
                .iter()
                .map(|(name, help)| PossibleValue::new(*name).help(*help));
            argument.value_parser(PossibleValuesParser::new(values))
        }
        OptionKind::File => argument.value_hint(clap::ValueHint::FilePath),
        OptionKind::Directory => argument.value_hint(clap::ValueHint::DirPath),
        OptionKind::Flag => argument.num_args(0).default_missing_value("true"),
        OptionKind::Text | OptionKind::Count => argument,
    }
}
