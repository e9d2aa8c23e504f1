//! `chipless explore`

mod output;
mod workloads;

use super::interrupted::interrupted;
use super::map::read_adg;
use super::search_time::search_time;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::output::OutputOptions;
use crate::terminal;
use chipless::dsa::Graph;
use chipless::dsa::adg::Adg;
use chipless::dsa::adg::mesh::{self, Shape};
use chipless::dsa::graph::{NodeKind, Port};
use chipless::dsa_explore::{Budget, Explorer, Freeze, Kernel, Options};
use chipless::dsa_mapper as mapper;
use chipless_model::Limits;
use clap::Args;
use output::Directory;
pub(super) use output::Summary;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Search for the best fabric within a budget.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Kernels to optimise for (YAML).
    ///
    /// `workloads: [{name, weight, variants: [FILE.dfg, …]}]`
    #[arg(value_name = "WORKLOADS.yaml")]
    workloads: PathBuf,
    /// Fabric to start from.
    ///
    /// Default: a mesh of 5 × 5 elements, or larger, that knows every operation of the kernels.
    #[arg(long, value_name = "FILE.json")]
    start: Option<PathBuf>,
    /// Resources that a design may use.
    ///
    /// `vu9p`, or bounds such as `lut=200000,dsp=500` or `mm2=1.5,mw=400`.
    #[arg(long, value_name = "BUDGET")]
    budget: String,
    /// How long to search: `90s`, `10m`, `2h`.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = search_time)]
    time: Duration,
    /// Stop after this many changes.
    ///
    /// The result then does not depend on time. Default: until --time is up.
    #[arg(long, value_name = "N")]
    moves: Option<u64>,
    /// Seed of the random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of threads.
    ///
    /// With --moves the result does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Parts that must not change.
    ///
    /// Any of `elements`, `switches`, `links`, `operations`, `widths`, `depths`, `ports`, `memories`, `system`.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    freeze: Vec<String>,
    /// Continue the exploration in the output directory.
    #[arg(long)]
    resume: bool,
    /// Do not search: only score the starting fabric.
    #[arg(long, conflicts_with_all = ["resume", "moves"])]
    score: bool,
    /// Directory for the fabric, mappings, log and report.
    #[arg(long, short, value_name = "DIR", required_unless_present = "score")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: TargetOptions,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless explore workloads.yaml --budget vu9p --time 10m -o found
  chipless explore workloads.yaml --start mesh.json --budget mm2=1.5,mw=400 -o found
  chipless explore workloads.yaml --start mesh.json --budget vu9p --score --format json

The directory holds best.json (the fabric with its system), mappings/NAME.json, pareto.csv and pareto.svg, moves.jsonl, report.html \
and summary.json: `objective`, `start_objective`, `cores`, `banks`, `bus`, `seed`, `moves`, `seconds`, `proved`, `resources`, `budget`, \
`kernels` (`name`, `weight`, `variant`, `performance`, `mapping`).

Exit status: 0 done, 1 a kernel cannot be mapped onto the start or the budget has no room for it, 2 a file cannot be used.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let started = Instant::now();
    let limits = arguments.options.load()?.limits;
    let time = arguments.time;
    let misuse = |option: &'static str| move |text: String| Failure::misuse(option, text);
    let budget = Budget::parse(&arguments.budget).map_err(misuse("--budget"))?;
    let mut freeze = Freeze::default();
    for kind in &arguments.freeze {
        if !freeze.add(kind) {
            let known = Freeze::NAMES.join(", ");
            let text = format!("expected one of {known}, found \"{kind}\"");
            return Err(Failure::misuse("--freeze", text));
        }
    }
    if let Some(path) = arguments.output.as_ref().filter(|_| !arguments.score) {
        files::can_fill(path)?;
    }
    let kernels = workloads::read(&arguments.workloads, &limits)?;
    let start = match &arguments.start {
        Some(path) => read_adg(path, &limits)?,
        None => default_start(&kernels)?,
    };
    let options = Options {
        budget: budget.clone(),
        freeze,
        seed: arguments.seed,
        jobs: arguments.jobs.max(1),
        stop: interrupted(),
    };
    let name = arguments.workloads.display().to_string();
    let mut explorer =
        Explorer::new(&kernels, &start, options).map_err(|text| Failure::wrong(&name, text))?;
    let facts = output::Facts {
        kernels: &kernels,
        budget: &budget,
        seed: arguments.seed,
    };
    let Some(path) = arguments.output.as_ref().filter(|_| !arguments.score) else {
        let summary = facts.summary(&explorer, started.elapsed());
        tell(arguments, &summary)?;
        return Ok(Exit::Done);
    };
    let mut directory = Directory::open(path, arguments.resume)?;
    if arguments.resume
        && let Some(state) = directory.state()?
    {
        resume(
            &mut explorer,
            &kernels,
            &state,
            &limits,
            &directory.path("state.json"),
        )?;
    }
    directory.keep(&facts, &explorer)?;
    let enough = |explorer: &Explorer<'_>| match arguments.moves {
        Some(moves) => explorer.moves() >= moves,
        None => started.elapsed() >= time,
    };
    while !enough(&explorer) && !interrupted().load(Ordering::Relaxed) {
        let before = explorer.best().clone();
        let log = explorer.round();
        // What the log says is there when it says it.
        if explorer.best().is_better(&before) {
            directory.keep(&facts, &explorer)?;
        }
        directory.log(&log)?;
    }
    let summary = directory.finish(&facts, &explorer, started.elapsed())?;
    tell(arguments, &summary)?;
    Ok(Exit::Done)
}

fn tell(arguments: &Arguments, summary: &Summary) -> Result<(), Failure> {
    if arguments.answer.is_json() {
        return terminal::print_json(summary);
    }
    let mut text = format!(
        "objective {:.4} (the start has {:.4}): {} cores, {} banks, a bus of {} bytes; {} changes in {:.1} s\n",
        summary.objective,
        summary.start_objective,
        summary.cores,
        summary.banks,
        summary.bus,
        summary.moves,
        summary.seconds,
    );
    for kernel in &summary.kernels {
        text.push_str(&format!(
            "  {} ({}): {:.3} operations a cycle\n",
            kernel.name, kernel.variant, kernel.performance,
        ));
    }
    terminal::print(&text)
}

/// A mesh whose elements know every operation of the kernels, with as many elements, ports and lanes as the largest of them needs.
fn default_start(kernels: &[Kernel]) -> Result<Adg, Failure> {
    let graphs = || {
        kernels
            .iter()
            .flat_map(|kernel| &kernel.variants)
            .map(|v| &v.graph)
    };
    let operations: BTreeSet<String> = graphs()
        .flat_map(chipless::dsa::Graph::instructions)
        .map(|(_, _, instruction)| instruction.operation.clone())
        .collect();
    let largest = |of: &dyn Fn(&Graph) -> usize| graphs().map(of).max().unwrap_or(0) as u32;
    let ports = |graph: &Graph, incoming: bool| -> Vec<Port> {
        let ports = graph.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Input(port) if incoming => Some(port.clone()),
            NodeKind::Output(port) if !incoming => Some(port.clone()),
            _ => None,
        });
        ports.collect()
    };
    let count = |incoming: bool, stated: bool| {
        largest(&|graph| {
            let ports = ports(graph, incoming);
            ports.iter().filter(|port| !stated || port.stated).count()
        })
    };
    let lanes = |incoming| {
        largest(&|graph| {
            let ports = ports(graph, incoming);
            ports.iter().map(|port| port.lanes).max().unwrap_or(0) as usize
        })
    };
    // A third of the elements stays free, so that values find their ways.
    let instructions = largest(&|graph| graph.instructions().count());
    let side = (f64::from(instructions) * 1.5).sqrt().ceil() as u32;
    let shape = Shape {
        columns: side.max(5),
        rows: side.max(5),
        operations: operations.into_iter().collect(),
        delay_depth: 8,
        inputs: count(true, false).max(8),
        outputs: count(false, false).max(5),
        stated: [count(true, true), count(false, true)],
        lanes: lanes(true).max(lanes(false)).max(4),
        slots: 1,
    };
    mesh::mesh(&shape).map_err(|text| Failure::misuse("--start", text))
}

/// Goes on from a state that an earlier run kept.
fn resume(
    explorer: &mut Explorer<'_>,
    kernels: &[Kernel],
    state: &Value,
    limits: &Limits,
    path: &Path,
) -> Result<(), Failure> {
    let wrong = |text: &str| Failure::unreadable(path.display(), text);
    let (adg, _) = Adg::read(state["adg"].to_string().as_bytes(), limits)
        .map_err(|finding| Failure::unreadable(path.display(), finding))?;
    let kept = state["kernels"]
        .as_array()
        .ok_or_else(|| wrong("expected kernels, found none"))?;
    if kept.len() != kernels.len() {
        return Err(wrong(
            "expected the kernels of these workloads, found others",
        ));
    }
    let mut mappings = Vec::new();
    for (kernel, kept) in kernels.iter().zip(kept) {
        let variant = kernel
            .variants
            .iter()
            .position(|v| kept["variant"] == v.name);
        let variant =
            variant.ok_or_else(|| wrong("expected a variant of these workloads, found another"))?;
        let graph = &kernel.variants[variant].graph;
        let text = kept["mapping"].to_string();
        let mapping = mapper::read(text.as_bytes(), graph, &adg, limits)
            .map_err(|finding| Failure::unreadable(path.display(), finding))?;
        mappings.push((variant, mapping));
    }
    let moves = state["moves"].as_u64().unwrap_or(0);
    explorer.resume(&adg, &mappings, moves);
    Ok(())
}

/// The text of a file that has to be there.
fn read_text(path: &Path) -> Result<String, Failure> {
    files::read_text(path)
}
