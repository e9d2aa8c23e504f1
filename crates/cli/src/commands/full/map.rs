//! `chipless map`

use super::interrupted::interrupted;
use super::search_time::search_time;
use crate::commands::Opened;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::output::{Format, OutputOptions};
use crate::terminal;
use chipless::dsa::adg::Adg;
use chipless::dsa::graph::Graph;
use chipless::dsa_mapper::judge::{Verdict, judge};
use chipless::dsa_mapper::performance::{Estimate, Model, estimate};
use chipless::dsa_mapper::pictures;
use chipless::dsa_mapper::{self as mapping, Mapping, Objective, Options, Outcome, Progress, bits};
use chipless_model::{Finding, Limits};
use chipless_report::SCHEMA_VERSION;
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Place and route a dataflow graph, or check a mapping.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The dataflow graph (DFG).
    #[arg(value_name = "FILE.dfg")]
    file: PathBuf,
    /// The accelerator's architecture graph.
    #[arg(long, value_name = "FILE.json")]
    adg: PathBuf,
    /// Judge this mapping instead of searching for one.
    ///
    /// The scheduler's `sched_adg.json`, or a header of configuration words.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "jobs", "time_limit", "objective"])]
    check: Option<PathBuf>,
    /// Seed of the random choices.
    ///
    /// The same seed gives the same mapping.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of threads. The mapping does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Stop after so many seconds, or such as `10m`.
    ///
    /// The best mapping found is the result.
    #[arg(long, alias = "time", value_name = "TIME", default_value = "60s", value_parser = search_time)]
    time_limit: Duration,
    /// What to minimise once a mapping is legal.
    #[arg(long, value_enum, default_value_t)]
    objective: Goal,
    /// How long to search, as a multiple of the default.
    #[arg(long, value_name = "N", default_value_t = 1)]
    effort: u32,
    /// Formulas of the performance estimate.
    ///
    /// `peer` is the scheduler's own; the default corrects its known errors.
    #[arg(long, value_enum, default_value_t)]
    model: Formulas,
    /// Write the mapping as `sched_adg.json`.
    #[arg(long, short, value_name = "FILE.json")]
    output: Option<PathBuf>,
    /// Write the configuration words as a C header.
    ///
    /// With --model peer they are encoded as the scheduler does.
    #[arg(long, value_name = "FILE.bits.h")]
    bits: Option<PathBuf>,
    /// Draw the mapping over the fabric.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
    #[command(flatten)]
    answer: OutputOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Goal {
    /// Nothing: take the first legal mapping.
    Legal,
    /// A short initiation interval.
    Interval,
    /// Few cycles from the first input to the last output.
    #[default]
    Latency,
    /// Few links.
    Links,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Formulas {
    Peer,
    #[default]
    Chipless,
}

const EXAMPLES: &str = "\
Examples:
  chipless map kernel.dfg --adg mesh.json
  chipless map kernel.dfg --adg mesh.json -o mapping.json --svg mapping.svg
  chipless map kernel.dfg --adg mesh.json --check mapping.json
  chipless map kernel.dfg --adg mesh.json --bits kernel.dfg.bits.h

JSON has `mapped`, `legal`, `latency`, `mismatch`, `initiation_interval`, `interval_bound`, `interval_proved`, `links`, \
`latency_bound`, `trials`, `seconds`, `performance`, and where there is something to explain `reason` and `proved`; \
with --check `legal`, `latency`, `mismatch`, `initiation_interval`, `overprovision`, `performance`, `faults` and `reason`.

Exit status: 0 mapped and legal, 1 no mapping (the reason says why) or an illegal one, 2 a file cannot be used, \
130 interrupted before there was a mapping.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let limits = arguments.options.load()?.limits;
    let opened = Opened::open(&arguments.file)?;
    opened.expect("dsa", "a dataflow graph (DFG)")?;
    if chipless::dsa::adg::recognize(&opened.bytes) {
        let text = "expected a dataflow graph (DFG), found an architecture graph";
        return Err(Failure::unreadable(&opened.path, text));
    }
    let document = chipless::dsa::Document::read(&opened.bytes, &limits);
    if !document.is_complete() {
        return Err(opened.told(chipless::Failure::reading(document.findings), None));
    }
    let outputs = [&arguments.output, &arguments.bits, &arguments.svg];
    outputs
        .into_iter()
        .flatten()
        .try_for_each(|path| files::can_write(path))?;
    let adg = read_adg(&arguments.adg, &limits)?;
    let graph = &document.graph;
    match &arguments.check {
        Some(path) => check(arguments, graph, &adg, path, &limits),
        None => map(arguments, graph, &adg),
    }
}

pub(super) fn read_adg(path: &Path, limits: &Limits) -> Result<Adg, Failure> {
    let name = path.display().to_string();
    let bytes = files::open(path).map_err(|error| Failure::unreadable(&name, error))?;
    let (adg, findings) =
        Adg::read(&bytes, limits).map_err(|finding| Failure::unreadable(&name, finding))?;
    match findings.iter().find(|finding| finding.is_error()) {
        Some(error) => Err(Failure::unreadable(&name, error)),
        None => Ok(adg),
    }
}

fn check(
    arguments: &Arguments,
    graph: &Graph,
    adg: &Adg,
    path: &Path,
    limits: &Limits,
) -> Result<Exit, Failure> {
    let name = path.display().to_string();
    let bytes = files::open(path).map_err(|error| Failure::unreadable(&name, error))?;
    let is_words =
        bytes.starts_with(b"#pragma") || bytes.starts_with(b"//") || bytes.starts_with(b"#define");
    let mut faults = Vec::new();
    let mapping = if is_words {
        let text =
            std::str::from_utf8(&bytes).map_err(|error| Failure::unreadable(&name, error))?;
        let header =
            bits::read(text, graph, adg).map_err(|error| Failure::unreadable(&name, error))?;
        faults = header.faults;
        header.mapping
    } else {
        mapping::read(&bytes, graph, adg, limits)
            .map_err(|finding: Box<Finding>| Failure::unreadable(&name, finding))?
    };
    let mut verdict = judge(graph, adg, &mapping);
    verdict.faults.extend(faults);
    let estimate = estimate(graph, adg, &mapping, &verdict, arguments.model.into());
    write_files(arguments, graph, adg, &mapping, &estimate)?;
    match arguments.answer.format() {
        Format::Json => {
            terminal::print_json(&JudgedReport {
                schema_version: SCHEMA_VERSION,
                legal: verdict.is_legal(),
                latency: verdict.latency,
                mismatch: verdict.mismatch,
                initiation_interval: verdict.initiation_interval,
                overprovision: verdict.overprovision,
                performance: estimate,
                reason: verdict.reason(),
                faults: &verdict.faults,
            })?;
        }
        Format::Human => {
            let mut text = if verdict.is_legal() {
                "legal\n".to_owned()
            } else {
                format!("not legal: {} faults\n", verdict.faults.len())
            };
            for fault in &verdict.faults {
                text.push_str(&format!("  {fault}\n"));
            }
            text.push_str(&figures(&verdict, &estimate));
            terminal::print(&text)?;
        }
    }
    Ok(if verdict.is_legal() {
        Exit::Done
    } else {
        Exit::Wrong
    })
}

/// The answer to `map --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct MapReport<'a> {
    /// Version of the form.
    schema_version: u32,
    /// Whether there is a mapping.
    mapped: bool,
    /// Whether the judge finds no rule broken.
    legal: bool,
    #[serde(flatten)]
    found: Option<Found>,
    /// Why there is no mapping, or what the search ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Whether it is certain that there is no mapping; only where none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    proved: Option<bool>,
    /// How many placements were tried.
    trials: u32,
    /// How long it was searched.
    seconds: f64,
}

/// What a mapping that was found is like.
#[derive(JsonSchema, Serialize)]
struct Found {
    /// Cycles from the first input to the last output.
    latency: u32,
    /// What no mapping at this interval and without mismatch can be below.
    latency_bound: u32,
    /// Cycles by which operands of one node miss each other at worst.
    mismatch: u32,
    /// Cycles from row to row.
    initiation_interval: u32,
    /// The least interval that is proven.
    interval_bound: u32,
    /// Whether no mapping has a smaller interval.
    interval_proved: bool,
    /// Links that carry something.
    links: u32,
    /// An estimate of the rate.
    performance: Estimate,
}

/// The answer to `map --check --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct JudgedReport<'a> {
    /// Version of the form.
    schema_version: u32,
    /// Whether the mapping breaks no rule.
    legal: bool,
    /// Cycles from the first input to the last output.
    latency: u32,
    /// Cycles by which operands of one node miss each other at worst.
    mismatch: u32,
    /// Cycles from row to row.
    initiation_interval: u32,
    /// Values or nodes too many in one place at worst.
    overprovision: u32,
    /// An estimate of the rate.
    performance: Estimate,
    /// The first faults in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// A sentence for each rule that is broken.
    faults: &'a [String],
}

fn map(arguments: &Arguments, graph: &Graph, adg: &Adg) -> Result<Exit, Failure> {
    let options = Options {
        seed: arguments.seed,
        jobs: arguments.jobs.max(1),
        time_limit: arguments.time_limit,
        objective: match arguments.objective {
            Goal::Legal => Objective::Legal,
            Goal::Interval => Objective::Interval,
            Goal::Latency => Objective::Latency,
            Goal::Links => Objective::Links,
        },
        effort: arguments.effort,
        rounds: None,
        begin: None,
        stop: interrupted(),
    };
    let watched = std::io::stderr().is_terminal();
    let started = Instant::now();
    let outcome = mapping::map(graph, adg, &options, &mut |progress: Progress| {
        if watched {
            let found = progress.latency.map_or_else(
                || "nothing legal yet".to_owned(),
                |latency| format!("latency {latency}"),
            );
            let seconds = started.elapsed().as_secs_f64();
            terminal::complain(&format!(
                "\r\x1b[Kmapping: {} trials, {found}, {seconds:.0} s",
                progress.trials
            ));
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    if watched {
        terminal::complain("\r\x1b[K");
    }
    if outcome.mapping.is_some() {
        return found(arguments, graph, adg, outcome, seconds);
    }
    refused(arguments, &outcome, seconds)?;
    Ok(if options.stop.load(Ordering::Relaxed) {
        Exit::Interrupted
    } else {
        Exit::Wrong
    })
}

/// Says why there is no mapping.
fn refused(arguments: &Arguments, outcome: &Outcome, seconds: f64) -> Result<(), Failure> {
    let reason = outcome.reason.as_deref().unwrap_or("no mapping was found");
    match arguments.answer.format() {
        Format::Json => terminal::print_json(&MapReport {
            schema_version: SCHEMA_VERSION,
            mapped: false,
            legal: false,
            found: None,
            reason: Some(reason),
            proved: Some(outcome.proved),
            trials: outcome.trials,
            seconds,
        }),
        Format::Human => {
            let certain = if outcome.proved {
                "cannot be mapped"
            } else {
                "was not mapped"
            };
            terminal::print(&format!("{certain}: {reason}\n"))
        }
    }
}

/// Judges, writes and shows a mapping.
fn found(
    arguments: &Arguments,
    graph: &Graph,
    adg: &Adg,
    mut outcome: Outcome,
    seconds: f64,
) -> Result<Exit, Failure> {
    let proved = outcome.is_interval_proved();
    let Some(mut mapping) = outcome.mapping.take() else {
        return Ok(Exit::Wrong);
    };
    mapping.name = arguments
        .file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    // The mapper's word is not taken for it.
    let verdict = judge(graph, adg, &mapping);
    let estimate = estimate(graph, adg, &mapping, &verdict, arguments.model.into());
    write_files(arguments, graph, adg, &mapping, &estimate)?;
    let reason = verdict
        .reason()
        .map(|fault| {
            format!("the judge rejects the mapping, which is a defect of the mapper: {fault}")
        })
        .or(outcome.reason.clone());
    match arguments.answer.format() {
        Format::Json => {
            terminal::print_json(&MapReport {
                schema_version: SCHEMA_VERSION,
                mapped: true,
                legal: verdict.is_legal(),
                found: Some(Found {
                    latency: verdict.latency,
                    latency_bound: outcome.latency_bound,
                    mismatch: verdict.mismatch,
                    initiation_interval: outcome.initiation_interval,
                    interval_bound: outcome.interval_bound,
                    interval_proved: proved,
                    links: outcome.links,
                    performance: estimate,
                }),
                reason: reason.as_deref(),
                proved: None,
                trials: outcome.trials,
                seconds,
            })?;
        }
        Format::Human => {
            let mapped = pictures::Mapped {
                graph,
                mapping: &mapping,
            };
            let mut text = pictures::text(adg, Some(mapped));
            text.push('\n');
            text.push_str(&figures(&verdict, &estimate));
            text.push_str(&in_words(adg, &mapping, &outcome, proved, seconds));
            if let Some(reason) = reason {
                text.push_str(&format!("{reason}\n"));
            }
            terminal::print(&text)?;
        }
    }
    Ok(if verdict.is_legal() {
        Exit::Done
    } else {
        Exit::Wrong
    })
}

/// How often a row starts, what is proven of it, and what the mapping uses.
fn in_words(adg: &Adg, mapping: &Mapping, outcome: &Outcome, proved: bool, seconds: f64) -> String {
    let (links, trials, interval) = (outcome.links, outcome.trials, outcome.initiation_interval);
    let used = mapping
        .nodes
        .iter()
        .flatten()
        .map(|place| place.element)
        .collect::<BTreeSet<_>>()
        .len();
    let every = if interval == 1 {
        "cycle".to_owned()
    } else {
        format!("{interval} cycles")
    };
    let least = if proved {
        "no mapping has a smaller one".to_owned()
    } else {
        format!("the least that is proven is {}", outcome.interval_bound)
    };
    format!(
        "a row every {every} (the initiation interval; {least}); at that interval and without mismatch no mapping has a latency below {} cycles\n\
         {used} of {} elements and {links} of {} links are used; found in {trials} trials, {seconds:.3} s\n",
        outcome.latency_bound,
        adg.elements.len(),
        adg.links.len(),
    )
}

impl From<Formulas> for Model {
    fn from(formulas: Formulas) -> Model {
        match formulas {
            Formulas::Peer => Model::Peer,
            Formulas::Chipless => Model::Chipless,
        }
    }
}

fn figures(verdict: &Verdict, estimate: &Estimate) -> String {
    let (operations, scratchpad, l2, dram) = (
        estimate.operations_per_cycle,
        estimate.scratchpad,
        estimate.l2,
        estimate.dram,
    );
    format!(
        "latency {} cycles, mismatch {}, overprovision {}\n\
         estimated {operations:.2} operations a cycle (scratchpad {scratchpad:.3}, L2 {l2:.3}, DRAM {dram:.3} of the full rate)\n",
        verdict.latency, verdict.mismatch, verdict.overprovision
    )
}

fn write_files(
    arguments: &Arguments,
    graph: &Graph,
    adg: &Adg,
    mapping: &Mapping,
    estimate: &Estimate,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        let figures = [
            ("Performance", estimate.operations_per_cycle),
            ("SPM Performance", estimate.scratchpad),
            ("L2 Performance", estimate.l2),
            ("DRAM Performance", estimate.dram),
        ];
        let mut value = mapping::write(mapping, graph, adg, &figures);
        // The fabric stands beside the mapping, so that a run needs no other file.
        if let (serde_json::Value::Object(file), serde_json::Value::Object(fabric)) =
            (&mut value, adg.to_json())
        {
            file.extend(fabric);
        }
        let text = serde_json::to_string_pretty(&value)
            .map_err(|error| Failure::unreadable(path.display(), error))?;
        files::write(path, &[text.as_bytes(), b"\n"])?;
    }
    if let Some(path) = &arguments.bits {
        let name: String = arguments
            .file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let encoding = if arguments.model == Formulas::Peer {
            bits::Encoding::Scheduler
        } else {
            bits::Encoding::Hardware
        };
        let text = bits::write(mapping, graph, adg, &name, encoding)
            .map_err(|error| Failure::wrong(path.display(), error))?;
        files::write(path, &[text.as_bytes()])?;
    }
    if let Some(path) = &arguments.svg {
        let drawn = pictures::svg(adg, Some(pictures::Mapped { graph, mapping }));
        files::write(path, &[drawn.as_bytes()])?;
    }
    Ok(())
}
