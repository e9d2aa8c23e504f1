//! `chipless device`

use crate::commands::pool;
use crate::commands::run::outputs;
use crate::failure::{Exit, Failure, Told};
use crate::files::{self, Growing, Names};
use crate::output::OutputOptions;
use crate::terminal;
use chipless::device::{self, Record, Request};
use chipless::disk::Disk;
use chipless::{FailureKind, Options};
use chipless_model::{Program, Storage};
use clap::Args;
use std::path::{Path, PathBuf};

/// Simulate programs and contexts that share one NPU.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Workload file: contexts, job streams, changed parameters.
    #[arg(value_name = "WORKLOAD.yaml", required_unless_present = "calibrate")]
    workload: Option<PathBuf>,
    /// Write a line of JSON for each job.
    #[arg(long, value_name = "FILE.jsonl")]
    jobs: Option<PathBuf>,
    /// Add the start and end of each synthetic task to the jobs.
    #[arg(long, requires = "jobs")]
    job_tasks: bool,
    /// Execute file programs and write their outputs here.
    ///
    /// The outputs of the first job of each stream go to DIR/STREAM/NAME.npy. Default: programs are only timed.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Write a Perfetto trace, one process per context.
    #[arg(long, value_name = "FILE.pftrace")]
    trace: Option<PathBuf>,
    /// Write the result as a page.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Override a parameter, as `set` of the workload does.
    ///
    /// Repeatable. Example: --set ddr.bandwidth=60e9
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Simulate again with one parameter changed.
    ///
    /// A value or a factor, such as `ddr.bandwidth=0.5x`; several at once sweep a parameter: `agent.gpu.rate=10GB/s,20GB/s,40GB/s`.
    /// Repeatable; each change is simulated by itself.
    #[arg(long = "what-if", value_name = "KEY=VALUE")]
    what_if: Vec<String>,
    /// A machine file in place of the workload's machine.
    #[arg(long, value_name = "FILE.toml")]
    machine: Option<String>,
    /// Seed of arrivals, jitter and inputs.
    ///
    /// Default: the workload's own.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Stop arrivals after this time.
    ///
    /// Default: the workload's own duration.
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Number of simulation threads.
    ///
    /// Default: one per processor. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Fit parameters to published latencies.
    ///
    /// FILE is a table of networks, each with its program and its latency. See docs/npu-device.md.
    #[arg(long, value_name = "SILICON.json", conflicts_with = "workload")]
    calibrate: Option<PathBuf>,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless device workload.yaml
  chipless device workload.yaml --what-if cache.size=16MiB --what-if mmu.page=4KiB
  chipless device workload.yaml --jobs jobs.jsonl --trace device.pftrace
  chipless device --calibrate silicon.json --json

The workload file, the figures and the result are explained in docs/npu-device.md; `chipless machine npu` lists the figures, each with how \
much it is worth.

Exit status: 0 simulated, also when jobs missed deadlines, were refused or aborted; 1 a program was refused by the verifier, 2 the workload is \
wrong, a file cannot be used, or the command was misused.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    pool::start(arguments.threads)?;
    let options = Options::with_files(Disk);
    match (&arguments.calibrate, &arguments.workload) {
        (Some(table), _) => calibrate(arguments, table, &options),
        (None, Some(workload)) => simulate(arguments, workload, &options),
        (None, None) => Err(Failure::misuse("device", "expected a workload, found none")),
    }
}

/// The folder of a file, with a separator at its end.
fn folder(path: &Path) -> String {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(String::new, |parent| format!("{}/", parent.display()))
}

fn simulate(arguments: &Arguments, path: &Path, options: &Options) -> Result<Exit, Failure> {
    let request = Request {
        name: path.display().to_string(),
        text: files::read_text(path)?,
        folder: folder(path),
        set: arguments.set.clone(),
        what_if: arguments.what_if.clone(),
        machine: arguments.machine.clone(),
        seed: arguments.seed,
        duration: arguments.duration.clone(),
        with_tasks: arguments.job_tasks,
        with_traffic: arguments.report.is_some(),
    };
    let mut log = match &arguments.jobs {
        Some(path) => Some(Growing::create(path.clone())?),
        None => None,
    };
    let mut kept: Vec<Record> = Vec::new();
    // A trace has all jobs, a page the first ones.
    let keeps = match (&arguments.trace, &arguments.report) {
        (Some(_), _) => usize::MAX,
        (None, Some(_)) => chipless_report::device::JOBS,
        (None, None) => 0,
    };
    let mut lost = None;
    let mut observe = |record: &Record| {
        if let Some(log) = &mut log
            && lost.is_none()
        {
            let line = serde_json::to_vec(record).map_err(|error| Failure::misuse("--jobs", error));
            let put = line.and_then(|mut line| {
                line.push(b'\n');
                log.put(&line)
            });
            lost = put.err();
        }
        if kept.len() < keeps {
            kept.push(record.clone());
        }
    };
    let observe: Option<&mut dyn FnMut(&Record)> = if arguments.jobs.is_some() || keeps > 0 {
        Some(&mut observe)
    } else {
        None
    };
    let mut folders = Names::default();
    let mut put = |stream: &str, program: &Program<'_>, storage: &Storage<'_>| {
        let Some(directory) = &arguments.output_dir else {
            return Ok(());
        };
        let directory = folders.npy(directory, stream).with_extension("");
        let written = outputs::write(
            &request.name,
            program,
            storage,
            Some(&directory),
            &mut Names::default(),
        );
        written.map(|_| ()).map_err(|failure| match failure {
            Failure::Plain(failure) => *failure,
            failure => chipless::Failure::misuse("--output-dir", failure.text().trim_end()),
        })
    };
    let output: Option<device::Output<'_>> = if arguments.output_dir.is_some() {
        Some(&mut put)
    } else {
        None
    };
    let report = device::run(&request, options, observe, output)
        .map_err(|failure| told(&request.name, failure))?;
    if let Some(failure) = lost {
        return Err(failure);
    }
    if let Some(log) = log {
        log.finish()?;
    }
    if let Some(path) = &arguments.trace {
        files::write(path, &[&chipless_report::device::trace(&report, &kept)])?;
    }
    if let Some(path) = &arguments.report {
        files::write(
            path,
            &[chipless_report::device::page(&report, &kept).as_bytes()],
        )?;
    }
    if arguments.answer.is_json() {
        terminal::print_json(&report)?;
    } else {
        terminal::print(&chipless_report::device::text(&report, terminal::out()))?;
    }
    Ok(Exit::Done)
}

/// A failure; one about a place of the workload begins with it.
fn told(name: &str, failure: chipless::Failure) -> Failure {
    let Some(finding) = failure
        .findings
        .first()
        .filter(|_| failure.kind == FailureKind::Unreadable)
    else {
        return failure.into();
    };
    let (line, column) = finding.place.position.unwrap_or((1, 1));
    let details = serde_json::json!({
        "code": finding.rule.code, "line": line, "column": column, "message": finding.message,
    });
    Told {
        text: chipless_report::device::mistake(name, finding, terminal::err()),
        details: vec![("finding", details)],
        failure,
    }
    .into()
}

fn calibrate(arguments: &Arguments, path: &Path, options: &Options) -> Result<Exit, Failure> {
    let text = files::read_text(path)?;
    let name = path.display().to_string();
    let machine = arguments.machine.as_deref();
    let calibration = device::calibrate(&name, &text, &folder(path), machine, options)?;
    if arguments.answer.is_json() {
        terminal::print_json(&calibration)?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "calibrated on {} and {}\n",
        calibration.chosen[0], calibration.chosen[1]
    );
    for pair in &calibration.pairs {
        let errors: Vec<String> = pair
            .errors
            .iter()
            .map(|(name, error)| format!("{name} {:.1} %", error * 100.0))
            .collect();
        text.push_str(&format!(
            "  {} and {}: errors {}; median {:.1} %\n",
            pair.networks[0],
            pair.networks[1],
            errors.join(", "),
            pair.median_error * 100.0
        ));
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}
