//! `chipless machine`

use crate::failure::{Exit, Failure};
use crate::files;
use crate::output::OutputOptions;
use crate::terminal;
use chipless::{
    Completed, Figure, OF_MESHES, TARGETS, built_in, built_in_machines, completed, figures,
    nearest, suggest, unknown,
};
use chipless_report::{SCHEMA_VERSION, quantity, widest};
use chipless_schedule::emit::replay_machine;
use chipless_schedule::machine::Machine;
use chipless_schedule::mesh;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Print a target's machine parameters with sources.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A target, one of its machines, a mesh, or a machine file.
    ///
    /// A mesh such as `mesh4x4` has 4 columns and 4 rows of cores; `chipless schedule` and `chipless run` take it as --machine. A machine file
    /// of an earlier version may lack parameters: those that are built in count, and are marked.
    #[arg(value_name = "TARGET")]
    target: String,
    /// Only parameters whose key holds this text.
    ///
    /// Example: `chipless machine npu dma` prints `dma.latency` and all others of the DMA engines.
    #[arg(value_name = "KEY", conflicts_with = "template")]
    key: Option<String>,
    /// Print the machine file, to edit and pass with --machine.
    ///
    /// It is TOML; that of a mesh is JSON.
    #[arg(long, alias = "toml", conflicts_with_all = ["format", "json"])]
    template: bool,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless machine npu
  chipless machine npu dma.latency                 one parameter
  chipless machine trn1                            another machine of a target
  chipless machine gemini --template > mine.toml   a machine file to edit
  chipless machine mesh4x4 --template > mesh.json   a mesh for schedule and run
  chipless machine old.toml --template > new.toml   a file of an earlier version, with what it lacks
  chipless run model.blob --set dma.latency=800    the same program with another figure

JSON is `{schema_version, target, machine, figures: [{key, value, unit, better, source}]}`; `better` is `higher`, `lower` or null. Figures of NPUs have a `grade`: silicon, \
driver, cost model, seed or assumed. Those that a machine file lacks have `defaulted`: true. A target with several machines prints the one that is taken \
for files that name none.

Exit status: 0 done, 2 there is no such target.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let asked = &*arguments.target;
    if let Some(file) = mesh::file(asked) {
        return answer(arguments, "gemini", asked, &file, &BTreeSet::new(), of_mesh);
    }
    let Some((target, name, text)) = built_in_machines()
        .find(|(target, ..)| *target == asked)
        .or_else(|| built_in(asked))
    else {
        if Path::new(asked).is_file() {
            return of_file(arguments, asked);
        }
        let names = || TARGETS.iter().map(|target| target.name());
        let machines = built_in_machines().map(|(_, machine, _)| machine);
        let hint = suggest::hint(asked, names().chain(machines));
        let text = format!(
            "expected one of {}, one of their machines (`chipless targets` lists them), a machine file, or a mesh such as mesh4x4, found \"{asked}\"{hint}",
            names().collect::<Vec<_>>().join(", ")
        );
        return Err(Failure::misuse("machine", text));
    };
    answer(arguments, target, name, text, &BTreeSet::new(), figures)
}

/// The figures of a machine file, with those that it lacks.
fn of_file(arguments: &Arguments, path: &str) -> Result<Exit, Failure> {
    let text = files::read_text(Path::new(path))?;
    if text.trim_start().starts_with('{') {
        super::mesh::read(path, &text)?;
        return answer(arguments, "gemini", path, &text, &BTreeSet::new(), of_mesh);
    }
    let (target, _, own) =
        nearest(&text).map_err(|error| Failure::unreadable(path, error.trim_end()))?;
    if let Some(wrong) = unknown(&text, own) {
        return Err(Failure::unreadable(path, wrong));
    }
    let Completed { text, defaulted } = completed(&text, own);
    answer(arguments, target, path, &text, &defaulted, figures)
}

/// Where the values of a ready-made mesh come from, and how to change them.
const MESH: &str = "\
Values are the defaults of SET's published code where nothing else is said: an estimate, not a chip. All keys are required
that do not say otherwise.
--template prints the file, to edit and pass as --machine to `chipless schedule` and `chipless run`.
";

/// The keys of a mesh, as figures, each with the name that a run has for it.
fn of_mesh(file: &str) -> Vec<Figure> {
    let figure = |(field, value): (mesh::Field, Value)| Figure {
        key: field.key.to_owned(),
        value: value.to_string(),
        unit: field.unit.to_owned(),
        better: None,
        source: match of_run(field.key) {
            Some("core.macs_per_cycle") => format!(
                "{}; a run takes the times of units from the schedule",
                field.meaning
            ),
            Some("clock_mhz") => format!(
                "{}; `clock_mhz` of a run, where `--set clock_hz` changes the bandwidth of DRAM with it, and `--set clock_mhz` does not",
                field.meaning
            ),
            Some(own) => format!("{}; `{own}` of a run", field.meaning),
            None => field.meaning.to_owned(),
        },
        grade: None,
    };
    mesh::values(file).into_iter().map(figure).collect()
}

/// What a run has in place of a key of a mesh.
fn of_run(key: &str) -> Option<&'static str> {
    let mut known = OF_MESHES.iter();
    known.find(|(mesh, _)| *mesh == key).map(|(_, own)| *own)
}

/// Parameters of a run by a mesh that no key of the mesh gives.
fn of_runs_alone(text: &str) -> Vec<Figure> {
    let Ok((mesh, _)) = Machine::read(text) else {
        return Vec::new();
    };
    let (own, changes) = replay_machine(&mesh);
    let mut all = figures(own);
    all.retain(|figure| OF_MESHES.iter().all(|(_, own)| *own != figure.key));
    for figure in &mut all {
        let value = |change: &'_ String| {
            change
                .strip_prefix(&figure.key)?
                .strip_prefix('=')
                .map(str::to_owned)
        };
        if let Some(value) = changes.iter().find_map(value) {
            figure.value = value;
        }
    }
    all
}

/// In place of a source that is that of the parameter above.
const AS_ABOVE: &str = "as above";

/// Prints a machine file, or its figures.
fn answer(
    arguments: &Arguments,
    target: &str,
    name: &str,
    text: &str,
    defaulted: &BTreeSet<String>,
    figures: impl Fn(&str) -> Vec<Figure>,
) -> Result<Exit, Failure> {
    if arguments.template {
        terminal::print(text)?;
        return Ok(Exit::Done);
    }
    let mut figures = figures(text);
    if let Some(key) = &arguments.key {
        let known = figures.clone();
        if mesh::values(text).is_empty() {
            figures.retain(|figure| figure.key.contains(&**key));
        } else {
            // Runs print their own names.
            figures.retain(|figure| {
                let own = of_run(&figure.key);
                figure.key.contains(&**key) || own.is_some_and(|own| own.contains(&**key))
            });
            if figures.is_empty() {
                figures = of_runs_alone(text);
                figures.retain(|figure| figure.key.contains(&**key));
            }
        }
        if figures.is_empty() {
            let hint = suggest::hint(key, known.iter().map(|figure| &*figure.key));
            let text = format!(
                "expected a parameter of {name}, or a part of its key, found \"{key}\"{hint}"
            );
            return Err(Failure::misuse("machine", text));
        }
    }
    if arguments.answer.is_json() {
        terminal::print_json(&MachineReport {
            schema_version: SCHEMA_VERSION,
            target,
            machine: name,
            figures: figures
                .iter()
                .map(|figure| FigureReport::of(figure, defaulted.contains(&figure.key)))
                .collect(),
        })?;
        return Ok(Exit::Done);
    }
    let width = widest(figures.iter().map(|f| &*f.key));
    let mut text = format!("{target}: {name}\n");
    if mesh::file(name).is_some() {
        text.push_str(MESH);
    }
    let mut above = None;
    for Figure {
        key,
        value,
        unit,
        source,
        grade,
        ..
    } in &figures
    {
        let value = quantity(value, unit);
        let grade = grade.map(|grade| format!("{}: ", grade.name()));
        let grade = grade.unwrap_or_default();
        let source = format!("{grade}{source}");
        let is_repeated = above.as_ref() == Some(&source) && source.len() > AS_ABOVE.len();
        let shown = if is_repeated { AS_ABOVE } else { &source };
        let built_in = if defaulted.contains(key) {
            "(built-in: the file lacks it) "
        } else {
            ""
        };
        text.push_str(&format!("  {key:width$}  {value}  {built_in}{shown}\n"));
        above = Some(source);
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// The answer to `machine TARGET --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct MachineReport<'a> {
    /// Version of the form.
    schema_version: u32,
    /// The target.
    target: &'a str,
    /// The machine file.
    machine: &'a str,
    /// Its figures, in its order.
    figures: Vec<FigureReport<'a>>,
}

/// A figure of a machine.
#[derive(JsonSchema, Serialize)]
struct FigureReport<'a> {
    /// What `--set KEY=VALUE` takes.
    key: &'a str,
    /// A number, or a text where the figure is one.
    value: Value,
    /// The unit of the value; `1` of a ratio.
    unit: &'a str,
    /// `higher` or `lower`, whichever makes the machine faster; null where neither does.
    better: Option<&'static str>,
    /// Where the value comes from.
    source: &'a str,
    /// How sure it is: `silicon`, `driver`, `cost model`, `seed` or `assumed`; only of figures of NPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<&'static str>,
    /// Whether the machine file lacks it, so that the built-in value counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    defaulted: bool,
}

impl<'a> FigureReport<'a> {
    fn of(figure: &'a Figure, defaulted: bool) -> FigureReport<'a> {
        // Numbers of TOML are numbers of JSON, but for what JSON has none of.
        let value = serde_json::from_str(&figure.value)
            .unwrap_or_else(|_| Value::String(figure.value.clone()));
        FigureReport {
            key: &figure.key,
            value,
            unit: &figure.unit,
            better: figure.better.map(chipless::Better::name),
            source: &figure.source,
            grade: figure.grade.map(chipless::FigureGrade::name),
            defaulted,
        }
    }
}
