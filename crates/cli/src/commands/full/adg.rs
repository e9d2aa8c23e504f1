//! `chipless adg`

use super::map::read_adg;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::output::{Format, OutputOptions};
use crate::terminal;
use chipless::dsa::adg::Adg;
use chipless::dsa::adg::edit::{Change, Difference, apply, diff};
use chipless::dsa::adg::mesh::{self, Shape};
use chipless_model::Limits;
use chipless_report::SCHEMA_VERSION;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Create, modify and compare fabrics (ADG).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  chipless adg new mesh 5x5 --operations Add_I64,Mul_I64 -o mesh.json
  chipless adg edit mesh.json -o deeper.json --set ProcessingElement.3.maxFifoDepth=8
  chipless adg edit mesh.json -o fewer.json --remove OutputVectorPort.1
  chipless adg diff mesh.json deeper.json

Exit status: 0 done (diff: the same), 1 the fabrics differ, 2 a file cannot be used or the command was misused.";

#[derive(Debug, Subcommand)]
enum Command {
    New(NewArguments),
    Edit(EditArguments),
    Diff(DiffArguments),
}

/// Create a fabric.
#[derive(Args, Debug)]
struct NewArguments {
    /// Shape of the fabric.
    #[arg(value_enum)]
    shape: Kind,
    /// Columns and rows of processing elements, such as 5x5.
    #[arg(value_name = "COLUMNSxROWS")]
    size: String,
    /// Operations that every element knows.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_values_t = ["Add_I64".to_owned(), "Mul_I64".to_owned()])]
    operations: Vec<String>,
    /// Cycles that an operand can be delayed.
    #[arg(long, value_name = "N", default_value_t = 8)]
    fifo: u32,
    /// Input ports.
    #[arg(long, value_name = "N", default_value_t = 4)]
    inputs: u32,
    /// Output ports.
    #[arg(long, value_name = "N", default_value_t = 4)]
    outputs: u32,
    /// Links of each port.
    #[arg(long, value_name = "N", default_value_t = 4)]
    lanes: u32,
    /// Instructions that share each element in time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    slots: u32,
    /// Write the fabric to this file.
    #[arg(long, short, value_name = "FILE.json")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Elements between switches, each switch linked with its neighbours.
    Mesh,
}

/// Modify a fabric; changes apply in order.
#[derive(Args, Debug)]
struct EditArguments {
    /// The fabric.
    #[arg(value_name = "FILE.json")]
    file: PathBuf,
    /// Write the changed fabric to this file.
    #[arg(long, short, value_name = "FILE.json")]
    output: PathBuf,
    #[command(flatten)]
    changes: Changes,
}

/// The changes, in the order of the command line.
#[derive(Debug)]
struct Changes(Vec<(&'static str, String)>);

const CHANGES: [(&str, &str, &str); 3] = [
    (
        "add-link",
        "FROM:TO",
        "Add a link, behind those that both elements have",
    ),
    ("remove", "ELEMENT", "Remove an element and its links"),
    (
        "set",
        "ELEMENT.KEY=VALUE",
        "Set a field of an element, named as in the file",
    ),
];

impl Args for Changes {
    fn augment_args(command: clap::Command) -> clap::Command {
        CHANGES
            .iter()
            .fold(command, |command, (name, value, help)| {
                command.arg(
                    clap::Arg::new(*name)
                        .long(*name)
                        .value_name(*value)
                        .help(*help)
                        .action(clap::ArgAction::Append),
                )
            })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Changes::augment_args(command)
    }
}

impl FromArgMatches for Changes {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Changes, clap::Error> {
        let mut all = Vec::new();
        for (name, ..) in CHANGES {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            all.extend(
                places
                    .zip(values)
                    .map(|(place, value)| (place, name, value.clone())),
            );
        }
        all.sort();
        let all = all.into_iter().map(|(_, name, value)| (name, value));
        Ok(Changes(all.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Changes::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Compare two fabrics.
#[derive(Args, Debug)]
struct DiffArguments {
    /// A fabric.
    #[arg(value_name = "FIRST.json")]
    first: PathBuf,
    /// Another one.
    #[arg(value_name = "SECOND.json")]
    second: PathBuf,
    #[command(flatten)]
    answer: OutputOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::New(arguments) => new(arguments),
        Command::Edit(arguments) => edit(arguments),
        Command::Diff(arguments) => compare(arguments),
    }
}

fn new(arguments: &NewArguments) -> Result<Exit, Failure> {
    let Kind::Mesh = arguments.shape;
    let size = arguments.size.split_once('x');
    let size = size.and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    let Some((columns, rows)) = size else {
        let text = format_args!("expected COLUMNSxROWS, found \"{}\"", arguments.size);
        return Err(Failure::misuse("size", text));
    };
    for name in &arguments.operations {
        if chipless::dsa::operations::lookup(name).is_none() {
            let text = format_args!("expected operations, found \"{name}\", which no table knows");
            return Err(Failure::misuse("--operations", text));
        }
    }
    let shape = Shape {
        columns,
        rows,
        operations: arguments.operations.clone(),
        delay_depth: arguments.fifo,
        inputs: arguments.inputs,
        outputs: arguments.outputs,
        stated: [0, 0],
        lanes: arguments.lanes,
        slots: arguments.slots,
    };
    let adg = mesh::mesh(&shape).map_err(|text| Failure::misuse("adg new", text))?;
    write(&arguments.output, &adg)?;
    Ok(Exit::Done)
}

fn edit(arguments: &EditArguments) -> Result<Exit, Failure> {
    let changes = arguments
        .changes
        .0
        .iter()
        .map(|(name, value)| change(name, value))
        .collect::<Result<Vec<Change>, Failure>>()?;
    let limits = Limits::default();
    let mut file = read_adg(&arguments.file, &limits)?.to_json();
    apply(&mut file, &changes).map_err(|text| Failure::misuse("adg edit", text))?;
    // What is written is a fabric.
    let (adg, findings) = Adg::read(file.to_string().as_bytes(), &limits)
        .map_err(|finding| Failure::misuse("adg edit", finding.message))?;
    if let Some(error) = findings.iter().find(|finding| finding.is_error()) {
        return Err(Failure::misuse("adg edit", &error.message));
    }
    write(&arguments.output, &adg)?;
    Ok(Exit::Done)
}

fn change(name: &str, value: &str) -> Result<Change, Failure> {
    let found = match name {
        "remove" => Some(Change::Remove(value.to_owned())),
        "add-link" => value
            .split_once(':')
            .map(|(from, to)| Change::AddLink(from.to_owned(), to.to_owned())),
        _ => value.split_once('=').and_then(|(field, value)| {
            let (element, key) = field.rsplit_once('.')?;
            Some(Change::Set(
                element.to_owned(),
                key.to_owned(),
                value.to_owned(),
            ))
        }),
    };
    found.ok_or_else(|| {
        let form = CHANGES.iter().find(|(known, ..)| *known == name);
        let form = form.map_or("", |(_, form, _)| form);
        Failure::misuse(
            format_args!("--{name}"),
            format_args!("expected {form}, found \"{value}\""),
        )
    })
}

/// The answer to `adg diff --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct FabricDifference<'a> {
    /// Version of the form.
    schema_version: u32,
    #[serde(flatten)]
    difference: &'a Difference,
}

fn compare(arguments: &DiffArguments) -> Result<Exit, Failure> {
    let limits = Limits::default();
    let found = diff(
        &read_adg(&arguments.first, &limits)?,
        &read_adg(&arguments.second, &limits)?,
    );
    match arguments.answer.format() {
        Format::Json => {
            terminal::print_json(&FabricDifference {
                schema_version: SCHEMA_VERSION,
                difference: &found,
            })?;
        }
        Format::Human => {
            let mut text = String::new();
            for (sign, what, names) in [
                ('+', "", &found.added),
                ('-', "", &found.removed),
                ('+', "link ", &found.links_added),
                ('-', "link ", &found.links_removed),
            ] {
                for name in names {
                    text.push_str(&format!("{sign} {what}{name}\n"));
                }
            }
            for c in &found.changed {
                text.push_str(&format!(
                    "~ {}.{}: {} → {}\n",
                    c.element, c.key, c.from, c.to
                ));
            }
            if found.is_empty() {
                text.push_str("the same\n");
            }
            terminal::print(&text)?;
        }
    }
    Ok(if found.is_empty() {
        Exit::Done
    } else {
        Exit::Wrong
    })
}

fn write(path: &Path, adg: &Adg) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&adg.to_json())
        .map_err(|error| Failure::unreadable(path.display(), error))?;
    files::write(path, &[text.as_bytes(), b"\n"])
}
