//! `chipless schema`

use super::{adg, drive, explore, kernels, machine, map, resources, yields};
use crate::commands::list::Listed;
use crate::commands::{info, run, targets};
use crate::failure::{Exit, Failure};
use crate::output::Failed;
use crate::terminal;
use chipless::device::{Calibration, Record, Report as DeviceReport};
use chipless_report::diff::Difference;
use chipless_report::explain::RulesReport;
use chipless_report::findings::{CodeCounts, Report as CheckReport};
use chipless_report::info::InfoReport;
use chipless_report::summary::RunReport;
use chipless_schedule::report::Report as ScheduleReport;
use clap::Args;
use clap::builder::PossibleValuesParser;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};
use std::fmt::Write;

/// Print JSON Schemas of the outputs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which output; without one, all are listed.
    #[arg(value_name = "OUTPUT", value_parser = PossibleValuesParser::new(OUTPUTS.map(|output| output.name)))]
    output: Option<String>,
    /// Print all outputs as one Markdown page.
    #[arg(long, conflicts_with = "output")]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  chipless schema                    the names of all outputs
  chipless schema run > run.schema.json

Keys are only added. When one changes its meaning or goes away, `schema_version` grows.

Exit status: 0, 2 the command was misused.";

/// A form of JSON that Chipless prints.
struct JsonOutput {
    name: &'static str,
    command: &'static str,
    schema: fn() -> Schema,
}

const fn output<T: JsonSchema>(name: &'static str, command: &'static str) -> JsonOutput {
    JsonOutput {
        name,
        command,
        schema: schema::<T>,
    }
}

const OUTPUTS: [JsonOutput; 24] = [
    output::<Failed<'_>>("failure", "any command with --json that fails"),
    output::<InfoReport<'_>>("info", "info FILE --json"),
    output::<info::FilesReport<'_>>("info-files", "info FILE FILE --json"),
    output::<resources::FabricReport<'_>>("info-resources", "info ADG --resources --json"),
    output::<CheckReport<'_>>("check", "check FILE --json"),
    output::<CodeCounts>("check-statistics", "check FILE --statistics --json"),
    output::<RulesReport>("explain", "explain --json"),
    output::<targets::TargetsReport>("targets", "targets --json"),
    output::<machine::MachineReport<'_>>("machine", "machine TARGET --json"),
    output::<RunReport<'_>>("run", "run FILE --json"),
    output::<run::calibrate::Calibrated<'_>>("run-calibrate", "run FILE --calibrate STEPS --json"),
    output::<Difference>("diff", "diff A B --json"),
    output::<kernels::Report<'_>>("kernels", "kernels import LIBRARY --json"),
    output::<Listing<'_>>("list", "list FILE --json"),
    output::<map::MapReport<'_>>("map", "map FILE --json"),
    output::<map::JudgedReport<'_>>("map-check", "map FILE --check MAPPING --json"),
    output::<adg::FabricDifference<'_>>("adg-diff", "adg diff A B --json"),
    output::<explore::Summary>("explore", "explore WORKLOADS --json"),
    output::<drive::Driven>("drive", "drive SPEC --json"),
    output::<DeviceReport>("device", "device WORKLOAD --json"),
    output::<Record>("device-jobs", "a line of device WORKLOAD --jobs FILE"),
    output::<Calibration>("device-calibrate", "device --calibrate FILE --json"),
    output::<yields::YieldReport<'_>>("yield", "yield FILE --json"),
    output::<ScheduleReport>("schedule", "schedule NET --json"),
];

/// The answer to `list --json`, which is written a task a line.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "for its schema alone")]
struct Listing<'t> {
    /// Version of the form.
    schema_version: u32,
    /// The tasks that were asked for, queue by queue.
    tasks: Vec<Listed<'t>>,
}

fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.markdown {
        return terminal::print(&page()).map(|()| Exit::Done);
    }
    let asked = arguments.output.as_deref();
    if let Some(output) = OUTPUTS.iter().find(|output| asked == Some(output.name)) {
        terminal::print_json(&(output.schema)())?;
    } else {
        let width = chipless_report::widest(OUTPUTS.iter().map(|output| output.name));
        let line = |output: &JsonOutput| format!("{:width$}  {}\n", output.name, output.command);
        terminal::print(&OUTPUTS.iter().map(line).collect::<String>())?;
    }
    Ok(Exit::Done)
}

/// Every output with its keys.
fn page() -> String {
    let mut page = String::from(
        "# JSON reference\n\nThe keys of everything that Chipless prints as JSON; `chipless schema OUTPUT` prints the same as JSON Schema. \
         [json.md](json.md) says what holds for all of them. This page is written by `cargo xtask reference`.\n",
    );
    let mut described: Vec<(&str, Value)> = Vec::new();
    for output in &OUTPUTS {
        let schema = (output.schema)().to_value();
        let _ = write!(page, "\n## {}\n\n`{}`", output.name, output.command);
        page.push_str(if output.command.contains(' ') {
            ": "
        } else {
            ""
        });
        describe(&mut page, &schema);
        let parts = schema["$defs"].as_object().into_iter().flatten();
        for (name, part) in parts {
            if let Some((first, _)) = described.iter().find(|(_, known)| known == part) {
                let _ = writeln!(page, "\n{name}: as of [{first}](#{first}).");
            } else {
                let _ = write!(page, "\n### {name} of {}\n\n", output.name);
                describe(&mut page, part);
                described.push((output.name, part.clone()));
            }
        }
    }
    page
}

/// A sentence about a type, and its keys.
fn describe(page: &mut String, schema: &Value) {
    let text = schema["description"].as_str().unwrap_or_default();
    let _ = writeln!(page, "{}", sentence(text));
    let Some(keys) = schema["properties"].as_object() else {
        let _ = writeln!(page, "\n{}", kind(schema));
        return;
    };
    page.push_str("\n| key | type | |\n|---|---|---|\n");
    let required = schema["required"].as_array();
    for (key, value) in keys {
        let always = required.is_some_and(|names| names.iter().any(|name| name == key));
        let text = value["description"].as_str().unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{key}`{} | {} | {} |",
            if always { "" } else { "?" },
            kind(value),
            sentence(text).replace('|', "\\|"),
        );
    }
    if let Some(values) = schema.get("additionalProperties") {
        let values = if *values == Value::Bool(true) {
            "anything".to_owned()
        } else {
            kind(values)
        };
        let _ = writeln!(page, "| others | {values} | What the target adds. |");
    }
}

/// The type of a value in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = schema[key].as_array() {
            let options: Vec<String> = options.iter().map(kind).collect();
            return options.join(" or ");
        }
    }
    let exact = |value: &Value| format!("`{value}`");
    if let Some(value) = schema.get("const") {
        return exact(value);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(exact).collect::<Vec<_>>().join(", ");
    }
    let of = |name: &str| match name {
        "array" => match schema["prefixItems"].as_array() {
            Some(items) => format!(
                "[{}]",
                items.iter().map(kind).collect::<Vec<_>>().join(", ")
            ),
            None => format!("[{}]", kind(&schema["items"])),
        },
        "object" => object(schema),
        name => name.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => of(name),
        Value::Array(names) => {
            let names: Vec<String> = names.iter().filter_map(Value::as_str).map(of).collect();
            names.join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

/// An object without keys of its own: a map, or one variant of several.
fn object(schema: &Value) -> String {
    match (
        &schema["additionalProperties"],
        schema["properties"].as_object(),
    ) {
        (values @ Value::Object(_), _) => format!("{{name: {}}}", kind(values)),
        (_, Some(keys)) => members(keys),
        _ => "object".to_owned(),
    }
}

fn members(keys: &Map<String, Value>) -> String {
    let members = keys
        .iter()
        .map(|(key, value)| format!("{key}: {}", kind(value)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

/// A description on one line; links to items of the source are plain words here.
fn sentence(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace("[`SCHEMA_VERSION`]", "Version of the form")
}
