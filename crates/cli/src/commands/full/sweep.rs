//! `chipless sweep`

use crate::failure::{Exit, Failure};
use crate::files;
use crate::progress::Bar;
use crate::terminal;
use chipless::disk::Disk;
use chipless_report::tables::Form;
use chipless_sweep::{Plan, Progress, Request, Results, Shard, forget, pareto};
use clap::Args;
use std::path::{Path, PathBuf};

/// Run many variants from a plan; one row per run.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plan; with --merge, the Parquet files of shards.
    #[arg(required = true, value_name = "PLAN.yaml")]
    files: Vec<PathBuf>,
    /// Write the results to this file.
    #[arg(long, short, value_name = "FILE.parquet|.csv")]
    output: PathBuf,
    #[command(flatten)]
    sharded: Sharded,
    /// Print the Pareto front of two columns; less is better.
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pareto: Option<(String, String)>,
    /// Draw the front of --pareto among all runs.
    #[arg(long, value_name = "FILE.svg", requires = "pareto")]
    svg: Option<PathBuf>,
}

/// Which runs are done, and how.
#[derive(Args, Debug)]
pub(super) struct Sharded {
    /// Do only shard I of N.
    ///
    /// Shards can run on different machines; --merge joins their results.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE, hide_default_value = true)]
    shard: Shard,
    /// Join the files of all shards into one.
    #[arg(long, conflicts_with_all = ["shard", "jobs", "restart"])]
    merge: bool,
    /// Number of threads. Default: one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Discard what an earlier process left and begin anew.
    #[arg(long)]
    restart: bool,
    /// Show no progress.
    #[arg(long)]
    pub(super) quiet: bool,
}

impl Sharded {
    /// Whether it is about all runs.
    pub(super) fn is_whole(&self) -> bool {
        self.shard == Shard::WHOLE
    }

    /// Makes results, or merges those of the files, and writes them. Their journal is needed no more then.
    pub(super) fn written(
        &self,
        files: &[PathBuf],
        output: &Path,
        make: impl FnOnce() -> Result<Results, Failure>,
    ) -> Result<Results, Failure> {
        let Some(form @ (Form::Csv | Form::Parquet)) = Form::of(&output.to_string_lossy()) else {
            let text = format!(
                "expected a name that ends in .parquet or .csv, found {}",
                output.display()
            );
            return Err(Failure::misuse("--output", text));
        };
        files::can_write(output)?;
        let results = if self.merge { merge(files)? } else { make()? };
        files::write(output, &[&results.write(form)])?;
        forget(output);
        Ok(results)
    }

    /// With the journal beside the output.
    pub(super) fn request<'r>(&self, output: &'r Path, progress: Progress<'r>) -> Request<'r> {
        Request {
            shard: self.shard,
            jobs: self.jobs.map_or(0, usize::from),
            journal: Some(output),
            restart: self.restart,
            progress: Some(progress),
        }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text
        .split_once(',')
        .filter(|(a, b)| !a.is_empty() && !b.is_empty());
    pair.map(|(a, b)| (a.to_owned(), b.to_owned()))
        .ok_or_else(|| "expected two columns, such as `latency_ns,moved_bytes`".to_owned())
}

const EXAMPLES: &str = "\
A plan:
  version: 1
  programs: [model.blob, \"more/*.blob\"]         # relative to the plan
  machine:
    dma.latency: [510, 1625]
    dma.ddr_bytes_per_second: {from: 10e9, to: 160e9, steps: 5, scale: log}
  options: {timing_only: true}
  columns: [latency_ns, moved_bytes, queues.dpu0.busy_ns]

Examples:
  chipless sweep plan.yaml -o results.parquet
  chipless sweep plan.yaml -o part3.parquet --shard 3/16       one of 16 jobs of a batch system
  chipless sweep --merge part*.parquet -o results.parquet      the same file as without shards
  chipless sweep plan.yaml -o results.csv --pareto latency_ns,moved_bytes --svg front.svg

To continue a sweep that was stopped, give the same command again. docs/sweeps.md explains plans and shards.

Exit status: 0 all runs were made (what went wrong in one is in its row), 2 the plan cannot be used.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (output, sharded) = (&arguments.output, &arguments.sharded);
    arguments
        .svg
        .iter()
        .try_for_each(|path| files::can_write(path))?;
    let results = sharded.written(&arguments.files, output, || sweep(arguments))?;
    if let Some((a, b)) = &arguments.pareto {
        let front = pareto(results.table(), &[a, b], None, None)?;
        terminal::print(&front.text(results.table()))?;
        if let Some(path) = &arguments.svg {
            files::write(path, &[front.svg().as_bytes()])?;
        }
    }
    said(output, &results, sharded);
    Ok(Exit::Done)
}

/// Reasons of failed runs that are named, at most.
const REASONS: usize = 4;

/// Says how many rows were written, and why runs failed.
pub(super) fn said(output: &Path, results: &Results, sharded: &Sharded) {
    if sharded.quiet {
        return;
    }
    let what = match results.failed() {
        0 => String::new(),
        failed => format!(", {failed} of them failed"),
    };
    terminal::complain(&format!(
        "{}: {} runs{what}\n",
        output.display(),
        results.rows()
    ));
    let reasons = results.reasons();
    for (number, reason) in reasons.iter().take(REASONS) {
        let runs = if *number == 1 { "run" } else { "runs" };
        terminal::complain(&format!("  {number} {runs}: {reason}\n"));
    }
    if reasons.len() > REASONS {
        terminal::complain("  The column `message` has the other reasons.\n");
    }
}

fn sweep(arguments: &Arguments) -> Result<Results, Failure> {
    let [path] = arguments.files.as_slice() else {
        return Err(Failure::misuse(
            "sweep",
            "expected one plan, found several files (--merge makes one of shards)",
        ));
    };
    let text = files::read_text(path)?;
    let plan = Plan::read(&path.display().to_string(), &text, &|pattern| {
        found(pattern)
    })?;
    if let Some((a, b)) = &arguments.pareto {
        plan.has_columns("--pareto", &[a, b])?;
    }
    let bar = (!arguments.sharded.quiet).then(|| Bar::new("runs"));
    let progress = |done, total, best: &str| {
        if let Some(bar) = &bar {
            bar.at(done, total, best);
        }
    };
    let request = arguments.sharded.request(&arguments.output, &progress);
    let results = chipless_sweep::run(&plan, Disk, &request)?;
    if let Some(bar) = bar {
        bar.clear();
    }
    Ok(results)
}

fn merge(paths: &[PathBuf]) -> Result<Results, Failure> {
    let mut shards = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let bytes = files::open(path).map_err(|why| Failure::unreadable(&name, why))?;
        let results = Results::read(&name, &bytes)?;
        shards.push((name, results));
    }
    Ok(Results::merge(shards)?)
}

/// The files that a pattern fits, sorted.
fn found(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    chipless::disk::matching(pattern)
}
