//! `chipless tune`

use super::sweep::{Sharded, said};
use crate::failure::{Exit, Failure};
use crate::files;
use crate::progress::Bar;
use crate::terminal;
use chipless::disk::Disk;
use chipless_sweep::Results;
use chipless_sweep::tune::{self, Space};
use clap::Args;
use std::path::PathBuf;

/// Schedule networks on many machines; one row per point.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "chipless tune [OPTIONS] --space <SPACE.yaml> --output <FILE.parquet|.csv> <NET.onnx>...\n       \
                      chipless tune [OPTIONS] --merge --output <FILE.parquet|.csv> <SHARD>..."
)]
pub(crate) struct Arguments {
    /// The networks (ONNX); with --merge, the files of shards.
    #[arg(required = true, value_name = "NET.onnx")]
    files: Vec<PathBuf>,
    /// The machines, and how networks are scheduled on them.
    #[arg(long, value_name = "SPACE.yaml", required_unless_present = "merge")]
    space: Option<PathBuf>,
    /// Write the results to this file.
    #[arg(long, short, value_name = "FILE.parquet|.csv")]
    output: PathBuf,
    #[command(flatten)]
    sharded: Sharded,
    /// Draw the front among all points.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write a page with the picture and the front.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
A space:
  version: 1
  base: mesh.json                                # relative to the space
  machine:                                       # keys of the machine file
    mesh: [2x2, 4x4]
    stride: 2                                    # must divide the columns of every mesh
    l2.bytes: [262144, 1048576]
    dram.bytes_per_cycle: {from: 8, to: 64, steps: 4, scale: log}
  schedule: {precision: fp16, trees: 2000, objective: edp}
  price: {process: 12nm, memory: gddr6x}
  front: [latency_ns, energy_pj, cost_usd]       # less is better

Keys that the space does not vary are those of the base, also DRAM's. A ready-made mesh (`schedule --machine mesh8x8`) has 1 byte of DRAM a cycle
for each core: another machine than a point `mesh: 8x8` of a base made from mesh4x4.

Examples:
  chipless machine mesh4x4 --template > mesh.json   a base
  chipless tune net.onnx --space space.yaml -o front.parquet
  chipless tune net.onnx other.onnx --space space.yaml -o front.csv --report front.html
  chipless tune net.onnx --space space.yaml -o part3.parquet --shard 3/16   one of 16 jobs
  chipless tune --merge part*.parquet -o front.parquet   the same file as without shards

If a search was stopped, the same command continues where it was. docs/tuning.md explains spaces, columns and prices.

Exit status: 0 all points were tried (an error of one is in its row), 2 the space or a network cannot be used.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (output, sharded) = (&arguments.output, &arguments.sharded);
    let drawn = arguments.svg.iter().chain(&arguments.report);
    drawn
        .into_iter()
        .try_for_each(|path| files::can_write(path))?;
    let results = sharded.written(&arguments.files, output, || tuned(arguments))?;
    let names: Vec<&str> = results.front().iter().map(String::as_str).collect();
    // A shard has no front: its points are few of many.
    if !names.is_empty() && sharded.is_whole() {
        let front = results.pareto()?;
        let (shown, all) = (front.rows().count(), results.rows() - results.failed());
        let title = format!(
            "{shown} of {all} points, which no other beats in all of {}:\n",
            names.join(", ")
        );
        terminal::print(&(title + &front.text(results.table())))?;
        if let Some(path) = &arguments.svg {
            files::write(path, &[front.svg().as_bytes()])?;
        }
        if let Some(path) = &arguments.report {
            let title = format!("Front of {}", names.join(", "));
            files::write(path, &[front.page(&title, results.table()).as_bytes()])?;
        }
    }
    said(output, &results, sharded);
    Ok(Exit::Done)
}

fn tuned(arguments: &Arguments) -> Result<Results, Failure> {
    let (sharded, output) = (&arguments.sharded, &arguments.output);
    let Some(path) = &arguments.space else {
        return Err(Failure::misuse("--space", "expected a space, found none"));
    };
    let space = Space::read(&path.display().to_string(), &files::read_text(path)?)?;
    if !sharded.is_whole() && (arguments.svg.is_some() || arguments.report.is_some()) {
        let text = "expected no --svg and no --report: the front is made when shards are merged";
        return Err(Failure::misuse("--shard", text));
    }
    let networks = arguments.files.iter();
    let networks: Vec<String> = networks.map(|path| path.display().to_string()).collect();
    let bar = (!sharded.quiet).then(|| Bar::new("points"));
    let progress = |done, total, best: &str| {
        if let Some(bar) = &bar {
            bar.at(done, total, best);
        }
    };
    let request = sharded.request(output, &progress);
    let results = tune::run(&space, &networks, Disk, &request)?;
    if let Some(bar) = bar {
        bar.clear();
    }
    Ok(results)
}
