//! `chipless schedule`

mod compared;
mod evaluated;
pub(super) mod model;
mod samples;
mod searched;
mod told;

use super::interrupted::interrupted;
use super::mesh::{NO_MESH, read as read_mesh};
use super::search_time::search_time;
use crate::failure::{Exit, Failure};
use crate::output::OutputOptions;
use crate::{files, terminal};
use chipless::FailureKind;
use chipless_report::SCHEMA_VERSION;
use chipless_schedule::calibrate::{self, Method};
use chipless_schedule::compare::Inputs;
use chipless_schedule::emit;
use chipless_schedule::front::Front;
use chipless_schedule::machine::Machine;
use chipless_schedule::mesh;
use chipless_schedule::model::{Bounds, Cost, Impossible, Objective};
use chipless_schedule::reading::{self, Network, Reading};
use chipless_schedule::report::{Figures, Improvement, ModelFigures, Report, Segments};
use chipless_schedule::search;
use chipless_schedule::tree::Tree;
use clap::{Args, ValueEnum};
use compared::prepared;
use evaluated::evaluate;
use searched::Job;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Schedule a network (ONNX) on a mesh of cores.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "chipless schedule [OPTIONS] --machine <M.json|meshCxR> --output <FILE.json> <NET>"
)]
pub(crate) struct Arguments {
    /// The network: ONNX, or a front-end file (JSON).
    #[arg(value_name = "NET")]
    network: PathBuf,
    /// The machine: a mesh of cores as JSON, or such as mesh4x4.
    ///
    /// `mesh4x4` has 4 columns and 4 rows; `chipless machine mesh4x4` explains each key, and with --template prints the file, to edit. Pass the same
    /// to `run --machine`: a schedule does not name its machine, and `run` times it by another one otherwise.
    #[arg(long, value_name = "M.json|meshCxR")]
    machine: PathBuf,
    /// Write the schedule to this file.
    #[arg(long, short, value_name = "FILE", required_unless_present = "evaluate")]
    output: Option<PathBuf>,
    /// Number of images that are computed at once.
    ///
    /// Replaces an open first dimension of the inputs, or one of 1. Weights are loaded once for all images.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_hyphen_values = true
    )]
    batch: String,
    /// Type of the numbers. Default: int8 where it is supported.
    ///
    /// A network with layers that int8 does not support is scheduled in fp16. With fp16, nearly every ONNX operation is supported, and inputs and outputs have the names, shapes and types of the model.
    /// With int8, the scales of a quantised network (QDQ) are kept; those of a floating-point network follow from data that --calibrate names, or else from bounds.
    #[arg(long, value_enum, value_name = "TYPE")]
    precision: Option<Precision>,
    /// Choose int8 scales from these inputs (int8 only).
    ///
    /// A .npz file, or a directory of .npy files. Each array holds images for the input of its name; its first axis counts them. For a network with one input, every array is for it.
    #[arg(long, value_name = "DIR|FILE.npz")]
    calibrate: Option<PathBuf>,
    /// How ranges follow from the inputs of --calibrate.
    #[arg(
        long,
        value_enum,
        value_name = "METHOD",
        default_value_t,
        requires = "calibrate"
    )]
    calibration: Calibration,
    /// Shape of an input, with the batch.
    ///
    /// Its extents replace open dimensions, and a first dimension of 1: the batch. Without --precision and --calibrate, the network is then scheduled in
    /// fp16.
    #[arg(long, value_name = "NAME=1,3,224,224")]
    shape: Vec<String>,
    /// Fix an input at a number, or at an array.
    ///
    /// It is a constant of the scheduled network then, and no input. An input that decides what is computed (the condition of an `If`) has to be
    /// fixed: `silero_vad.onnx` is scheduled with --constant sr=16000.
    #[arg(long, value_name = "NAME=NUMBER|FILE.npy")]
    constant: Vec<String>,
    /// Write the scheduled network, for `run --network`.
    #[arg(long, value_name = "FILE")]
    network_out: Option<PathBuf>,
    /// Write the arrays of the network, for `run --weights`.
    #[arg(long, value_name = "DIR")]
    weights_out: Option<PathBuf>,
    /// Write the tree of the schedule.
    #[arg(long, value_name = "FILE")]
    tree: Option<PathBuf>,
    /// Form of the schedule.
    ///
    /// With `set`, SET's cost model is minimised; otherwise the replayed time.
    #[arg(long, value_enum, value_name = "DIALECT", default_value_t)]
    dialect: Dialect,
    /// What is minimised.
    #[arg(long, value_enum, value_name = "FIGURE", default_value_t)]
    objective: Figure,
    /// Stop after so many seconds, or such as `10m`.
    ///
    /// Default: 10 seconds unless --trees is given.
    /// How many trees are evaluated in that time depends on the computer and its load. To compare machines, pass --trees N, or use `chipless tune`.
    /// Writing the schedule and comparing it come on top.
    #[arg(long, alias = "time", value_name = "TIME", value_parser = search_time)]
    seconds: Option<Duration>,
    /// Stop after this many evaluated trees.
    ///
    /// Without --seconds, the result does not depend on the clock.
    #[arg(long, value_name = "N")]
    trees: Option<u64>,
    /// Seed of the search.
    ///
    /// Seeds differ by several percent, and by much more after few trees or where L2 is short: of a few, take the best.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of threads. Default: one per processor.
    ///
    /// It changes how long the search takes, not its result for a number of trees.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Evaluate this tree instead of searching for one.
    ///
    /// A tree file of Chipless, or a tree or scheme file of SET. Its cost is printed in SET's model and by the replay; with --dialect set, in SET's model alone. -o writes its schedule.
    #[arg(long, value_name = "TREE")]
    evaluate: Option<PathBuf>,
    /// Input of the comparison with the floating-point network.
    ///
    /// The written schedule is executed, and its outputs are compared with those of the network in single precision. An input that you do not pass is filled with seeded random data.
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    inputs: Vec<String>,
    /// Do not compare with the floating-point network.
    ///
    /// Networks of more than 2 billion multiplications are compared only if you pass --input.
    #[arg(long, conflicts_with = "inputs")]
    no_compare: bool,
    /// Write a report for people.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless machine mesh4x4 --template > mesh.json   a machine to edit
  chipless schedule net.onnx --machine mesh4x4 --precision int8 --batch 4 -o schedule.json
  chipless schedule net.onnx --machine mesh4x4 --precision fp16 --shape x=1,3,8,8 -o s.json
  chipless schedule net.onnx --machine mesh4x4 -o s.json --network-out net.json --weights-out w
  chipless run s.json --machine mesh4x4 --network net.json --weights w --input x=x.npy
  chipless schedule net.onnx --machine mesh4x4 --calibrate images.npz -o schedule.json
  chipless schedule net.onnx --machine mesh4x4 --evaluate tree.json

Ctrl-C ends the search: the best schedule so far is written.

Exit status: 0 done, 1 no schedule exists, 2 the network or the machine cannot be used, or the command was misused.";

/// The form of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Dialect {
    /// The scheduler IR with addresses, tiles and the order of DRAM.
    #[default]
    Spec,
    /// SET's.
    Set,
}

/// How the range of a tensor follows from what it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Calibration {
    /// From the least number to the greatest.
    #[default]
    MinMax,
    /// Without a ten-thousandth of the numbers at either end.
    Percentile,
    /// The range with the least mean square error.
    Mse,
}

impl From<Calibration> for Method {
    fn from(calibration: Calibration) -> Method {
        match calibration {
            Calibration::MinMax => Method::MinMax,
            Calibration::Percentile => Method::Percentile,
            Calibration::Mse => Method::MeanSquare,
        }
    }
}

/// What numbers are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// 8-bit integers with a scale for each tensor.
    Int8,
    /// Half precision.
    Fp16,
}

impl From<Precision> for reading::Precision {
    fn from(precision: Precision) -> reading::Precision {
        match precision {
            Precision::Int8 => reading::Precision::Int8,
            Precision::Fp16 => reading::Precision::Half,
        }
    }
}

/// What is minimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Energy times delay.
    #[default]
    Edp,
    /// Delay.
    Delay,
    /// Energy.
    Energy,
}

impl From<Figure> for Objective {
    fn from(figure: Figure) -> Objective {
        match figure {
            Figure::Edp => Objective::Edp,
            Figure::Delay => Objective::Delay,
            Figure::Energy => Objective::Energy,
        }
    }
}

/// Seconds of a search where nothing else says when it ends.
const SECONDS: f64 = 10.0;
/// Images of a batch, at most.
const LARGEST_BATCH: i64 = 1 << 16;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let batch = checked(arguments)?;
    let machine = machine(&arguments.machine)?;
    let mut read = network(arguments, batch)?;
    let mut inputs = inputs(&arguments.inputs)?;
    let first = calibrated(arguments, &mut read.front)?;
    if inputs.is_empty() {
        inputs = first;
    }
    let read = read;
    let (front, batch) = (&read.front, read.batch);
    if !arguments.inputs.is_empty()
        && (arguments.dialect == Dialect::Set || arguments.evaluate.is_some())
    {
        let text = "expected a schedule that is executed and compared: with --dialect set or --evaluate, none is";
        return Err(Failure::misuse("--input", text));
    }
    if let Some(tree) = &arguments.evaluate {
        return evaluate(arguments, &read, &machine, tree);
    }
    let lowered = lowered(arguments, &read)?;
    let prepared = prepared(arguments, (front, batch), &inputs)?;
    let options = search::Options {
        batch,
        objective: arguments.objective.into(),
        seconds: seconds(arguments),
        trees: arguments.trees,
        seed: arguments.seed,
        threads: threads(arguments),
        latest: None,
        one_pass: false,
    };
    told::begun(arguments, front, &machine);
    let output = arguments
        .output
        .as_deref()
        .unwrap_or(Path::new("schedule.json"));
    let job = Job {
        arguments,
        read: &read,
        machine: &machine,
        options: &options,
        output,
    };
    let searched = match (arguments.dialect, &lowered) {
        (Dialect::Spec, Some(lowered)) => job.replayed(lowered, prepared.as_ref())?,
        _ => job.modelled()?,
    };
    let found = &searched.found;
    told::few_trees(arguments, &searched, front.network.layers.len());
    told::hardly_better(arguments, &searched);
    write_beside(arguments, lowered.as_ref(), &found.tree)?;
    let history = found.history.iter();
    let report = Report {
        seed: options.seed,
        seconds: found.seconds,
        trees: found.trees,
        replayed_trees: searched.replayed,
        trees_per_second: found.trees as f64 / found.seconds.max(1e-9),
        stopped: found.stopped.name(),
        history: history
            .map(|step| Improvement {
                seconds: step.seconds,
                edp: step.edp,
            })
            .collect(),
        replay: searched.replay,
        layer_by_layer: searched.layer_by_layer,
        replay_floor: searched.floor,
        replay_dram: searched.dram,
        runner_up: searched.runner_up,
        comparison: searched.comparison,
        ..report(arguments, (&read, &machine), &found.cost, &found.bounds)
    };
    if let Some(path) = &arguments.report {
        let modelled;
        let segments = match arguments.dialect {
            Dialect::Spec => Segments::Replayed(&searched.segments),
            Dialect::Set => {
                modelled = chipless_schedule::segments(&front.network, &machine, &found.tree)
                    .map_err(|impossible| refused(&arguments.network, &impossible))?;
                Segments::Modelled(&modelled)
            }
        };
        let batch = told::larger_batch(&read);
        let page = chipless_schedule::report::page(&report, segments, batch.as_deref());
        files::write(path, &[page.as_bytes()])?;
    }
    let done = answer(arguments, &report)?;
    if !arguments.answer.is_json() {
        terminal::print(&told::next(
            arguments,
            output,
            front,
            lowered.as_ref(),
            read.images,
        ))?;
    }
    Ok(done)
}

/// After how many seconds the search stops, if it does not stop after so many trees.
fn seconds(arguments: &Arguments) -> Option<f64> {
    let told = arguments.seconds.map(|time| time.as_secs_f64());
    told.or_else(|| arguments.trees.is_none().then_some(SECONDS))
}

/// The batch, once options are in range and every output can be written.
fn checked(arguments: &Arguments) -> Result<i64, Failure> {
    let batch = match arguments.batch.parse() {
        Ok(batch) if (1..=LARGEST_BATCH).contains(&batch) => batch,
        _ => {
            let text = format!(
                "expected a batch of 1 to {LARGEST_BATCH} images, found {}",
                arguments.batch
            );
            return Err(Failure::misuse("--batch", text));
        }
    };
    let outputs = [
        &arguments.output,
        &arguments.network_out,
        &arguments.tree,
        &arguments.report,
    ];
    outputs
        .into_iter()
        .flatten()
        .try_for_each(|path| files::can_write(path))?;
    if let Some(directory) = &arguments.weights_out {
        files::can_fill(directory)?;
    }
    Ok(batch)
}

/// The network as the schedule's format has it, where something of it is written. What cannot be is said before the search.
fn lowered(arguments: &Arguments, read: &Network) -> Result<Option<emit::Written>, Failure> {
    let front = &read.front;
    let is_computed = arguments.dialect == Dialect::Spec
        || arguments.network_out.is_some()
        || arguments.weights_out.is_some();
    if !is_computed {
        return Ok(None);
    }
    let lowered = emit::Written::of(front, read.batch, arguments.weights_out.is_some())
        .map_err(|error| Failure::unreadable(arguments.network.display(), error))?;
    if !front.is_quantised && !front.is_calibrated && front.bits() == 8 {
        terminal::complain(&format!(
            "{}: note: a floating-point network is quantised to int8 without calibration data, which costs accuracy. For accurate results, schedule it with --precision fp16, pass inputs with --calibrate, or pass a quantised network (QDQ)\n",
            arguments.network.display()
        ));
    }
    Ok(Some(lowered))
}

/// Writes what belongs to the schedule: the network, its arrays, the tree.
fn write_beside(
    arguments: &Arguments,
    lowered: Option<&emit::Written>,
    tree: &Tree,
) -> Result<(), Failure> {
    if let (Some(lowered), Some(path)) = (lowered, &arguments.network_out) {
        files::write(path, &[lowered.network_text().as_bytes()])?;
    }
    if let (Some(lowered), Some(directory)) = (lowered, &arguments.weights_out) {
        files::make_directory(directory)?;
        for (name, bytes) in lowered
            .arrays()
            .map_err(|error| Failure::unreadable(arguments.network.display(), error))?
        {
            files::write(&directory.join(name), &[bytes])?;
        }
    }
    if let Some(path) = &arguments.tree {
        files::write(path, &[tree_text(tree).as_bytes()])?;
    }
    Ok(())
}

/// Arrays for the comparison, as `--input` names them.
fn inputs(given: &[String]) -> Result<Inputs, Failure> {
    given
        .iter()
        .map(|option| {
            let (name, file) = option.split_once('=').ok_or_else(|| {
                let text = format!("expected NAME=FILE.npy, found \"{option}\"");
                Failure::misuse("--input", text)
            })?;
            let bytes = files::open(Path::new(file))
                .and_then(|bytes| chipless::npy::reals(&bytes))
                .map_err(|error| Failure::unreadable(file, error))?;
            Ok((name.to_owned(), bytes))
        })
        .collect()
}

fn threads(arguments: &Arguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    arguments.threads.unwrap_or_else(cores).max(1)
}

fn machine(path: &Path) -> Result<Machine, Failure> {
    let ready_made = path.to_str().and_then(mesh::file);
    if ready_made.is_none() && !path.exists() && path != Path::new("-") {
        let name = path.to_string_lossy();
        let is_built_in = chipless::TARGETS.iter().any(|target| {
            target.name() == name || target.machines().iter().any(|(own, _)| *own == name)
        });
        let text = if is_built_in {
            "expected the mesh to schedule for, such as mesh4x4, or a machine file. This is a machine for `run`, which does not say how many cores the mesh has"
        } else {
            NO_MESH
        };
        return Err(Failure::unreadable(path.display(), text));
    }
    let text = ready_made.map_or_else(|| files::read_text(path), Ok)?;
    read_mesh(path.display(), &text)
}

/// The network.
fn network(arguments: &Arguments, batch: i64) -> Result<Network, Failure> {
    let path = arguments.network.as_path();
    let wrong = |error: &dyn std::fmt::Display| Failure::unreadable(path.display(), error);
    let is_calibrated = arguments.calibrate.is_some();
    let reading = Reading {
        batch,
        precision: arguments
            .precision
            .or(is_calibrated.then_some(Precision::Int8))
            .map(reading::Precision::from),
        shapes: model::shapes(&arguments.shape)?,
    };
    let bytes = files::open(path).map_err(|error| wrong(&error))?;
    let bytes = model::fixed((path, &bytes), &arguments.constant)?;
    let beside = |name: &str| model::beside(path, name);
    let network = reading.read(&bytes, &beside).map_err(|error| {
        match chipless::kind_of(&path.to_string_lossy(), &bytes) {
            Some(found) if !reading::is_front_end(&bytes) => wrong(&format_args!(
                "expected an ONNX model or a front-end file (JSON), found {found}"
            )),
            _ => wrong(&error),
        }
    })?;
    if let Some(note) = &network.note {
        terminal::complain(&format!("{}: note: {note}\n", path.display()));
    }
    for (layer, constant) in network.front.vanishing() {
        // As the model writes it, a number of 32 bits.
        let constant = constant as f32;
        terminal::complain(&format!(
            "{}: warning: layer `{layer}` adds {constant:e}, which is 0 in fp16: what takes a logarithm of its results or divides by them may become infinite, with quiet inputs if not with random ones. Compare on real data (--input)\n",
            path.display()
        ));
    }
    if let [first, others @ ..] = &network.front.integer_arithmetic()[..] {
        let more = match others.len() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        terminal::complain(&format!(
            "{}: warning: layer `{first}`{more} computes with integers, which the format keeps in 16 bits: results beyond ±32767 are wrong. Compare on inputs as large as yours (--input)\n",
            path.display()
        ));
    }
    if let Some(why) = &network.repeated {
        terminal::complain(&format!(
            "{}: warning: {why}. So layers are repeated for each of the {} images, and most load their weights again: compare the latency of an image with that of a schedule for one. --precision int8 has real batches where it supports the network\n",
            path.display(),
            network.images,
        ));
    }
    Ok(network)
}

/// No schedule exists.
fn refused(network: &Path, impossible: &Impossible) -> Failure {
    match impossible {
        Impossible::Room { .. } | Impossible::WeightBuffer { .. } | Impossible::Mapping(_) => {
            Failure::new(FailureKind::Fault, network.display(), impossible)
        }
        Impossible::Rule(_) => Failure::unreadable(network.display(), impossible),
    }
}

fn short(network: &Path, error: &emit::Unwritten) -> Failure {
    match error {
        emit::Unwritten::Impossible(impossible) => refused(network, impossible),
        emit::Unwritten::Unsupported(text) => Failure::unreadable(network.display(), text),
        emit::Unwritten::Refused(_) => {
            Failure::new(FailureKind::Unsupported, network.display(), error)
        }
    }
}

fn tree_text(tree: &Tree) -> String {
    format!("{}\n", tree.to_json())
}

/// What is told of a tree, however it was found.
fn report(
    arguments: &Arguments,
    (read, machine): (&Network, &Machine),
    cost: &Cost,
    bounds: &Bounds,
) -> Report {
    let network = &read.front.network;
    let file = arguments.network.file_name().unwrap_or_default();
    Report {
        schema_version: SCHEMA_VERSION,
        file: file.to_string_lossy().into_owned(),
        network: network.name.clone(),
        machine: machine.name.clone(),
        clock_hz: machine.clock,
        layers: network.layers.len(),
        batch: read.images,
        layers_repeated: read.repeated.is_some(),
        objective: Objective::from(arguments.objective).name(),
        seed: arguments.seed,
        threads: threads(arguments),
        seconds: 0.0,
        trees: 1,
        replayed_trees: None,
        trees_per_second: 0.0,
        stopped: "evaluated",
        model: ModelFigures::from(cost),
        lower_bound: Figures::new(bounds.energy, bounds.delay),
        history: Vec::new(),
        replay: None,
        layer_by_layer: None,
        replay_floor: None,
        replay_dram: None,
        runner_up: None,
        comparison: None,
    }
}

/// Sets how numbers are stored from data, where there are some; gives the first image.
fn calibrated(arguments: &Arguments, front: &mut Front) -> Result<Inputs, Failure> {
    let Some(path) = &arguments.calibrate else {
        return Ok(Inputs::new());
    };
    let text = if front.is_quantised {
        "expected a floating-point network, found a quantised one (QDQ), which says how its numbers are stored: leave --calibrate out"
    } else if front.bits() != 8 {
        "expected --precision int8: only int8 has scales to choose. fp16 needs no calibration: leave --calibrate out"
    } else {
        ""
    };
    if !text.is_empty() {
        return Err(Failure::misuse("--calibrate", text));
    }
    let samples = samples::read(path, front)?;
    calibrate::calibrate(front, &samples.images, arguments.calibration.into())
        .map_err(|text| Failure::unreadable(path.display(), text))?;
    Ok(samples.first)
}

fn answer(arguments: &Arguments, report: &Report) -> Result<Exit, Failure> {
    if arguments.answer.is_json() {
        terminal::print_json(report)?;
        return Ok(Exit::Done);
    }
    terminal::print(&chipless_schedule::report::text(report))?;
    Ok(Exit::Done)
}
