//! `chipless run`

pub(super) mod calibrate;
mod compared_with;
mod contract;
mod counted;
mod diagnosis;
mod driven;
pub(super) mod inputs;
pub(super) mod outputs;
mod refused;
mod steps;
mod summary;
mod tables;

use super::Opened;
use super::list::task_named;
use super::order::{Asked, ORDERS};
use super::pool;
use super::retime::Changes;
use crate::failure::{Exit, Failure, Told};
use crate::options::{InputOptions, TargetOptions};
use crate::output::OutputOptions;
use crate::policy::PolicyOptions;
use crate::progress::Bar;
use crate::{files, terminal};
use chipless::disk;
use chipless::spu::fqir::Runner;
use chipless::spu::iospec::{self, RuleSet};
use chipless::{Budget, FailureKind, OpenDocument, Options, Policy};
use chipless_model::{Finding, Grade, Program, Storage, TaskId};
use chipless_report::attribution::Attribution;
use chipless_report::summary::Output;
use chipless_report::{Comparison, Searched, Statistics, Tolerance};
use chipless_sim::{Functional, Order, Outcome, Stop, Timeline, TimingOnly};
use clap::Args;
use compared_with::{ComparedWith, ModelOptions, compared_with};
pub(crate) use compared_with::{Model, ModelOutput};
use contract::Contract;
use counted::Counted;
use diagnosis::Search;
use driven::Driven;
use inputs::Given;
use outputs::Dumps;
use refused::stopped;
pub(super) use refused::{refusal, verify};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;
use steps::Steps;
use tables::Tables;

/// Execute a program and estimate its timing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    data: InputOptions,
    /// Enforce this IOSpec.
    ///
    /// All inputs are required; latched inputs default to 0.
    #[arg(long, value_name = "SPEC.yaml", conflicts_with = "timing_only")]
    iospec: Option<PathBuf>,
    /// Write each output to NAME.npy in this directory.
    ///
    /// A character of the name other than a letter, a digit, `.`, `_` or `-` becomes `_`.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Write what a task wrote to TASK.npy. Repeatable.
    ///
    /// The file goes to --output-dir, or to the working directory.
    #[arg(long = "dump", value_name = "TASK")]
    dumps: Vec<String>,
    /// Compare with expected arrays, a model, or planned times.
    ///
    /// A directory or one FILE.npy is compared with the outputs. In a directory, the file of an output is `NAME.npy`, `output_NAME.npy` or `output_N.npy`,
    /// where N counts the outputs from 0, in the order of `info`; the first of these that exists counts. In NAME, a character other than a letter, a
    /// digit, `.`, `_` or `-` may stand as `_`. A model's name of an output serves as its own. An ONNX model is computed for the inputs of the
    /// run, in single precision (it may have the operators of docs/onnx-operators.md). The text of a trace (gemini), the compiler's schedule trace in JSON
    /// (npu) or the JSON of neuron-profile and neuron-explorer (neuron) is compared with the times. A schedule trace also names the tasks, as --names
    /// does.
    #[arg(long, value_name = "DIR|FILE.npy|MODEL.onnx|TRACE")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    model: ModelOptions,
    /// Exit with 1 if an output is off by more than this.
    ///
    /// For --compare with arrays. A percentage of the expected element, or of the root mean square of the reference where that is more. Example:
    /// --tolerance 0.1%. Default: 1 % for floating-point outputs (more for those of 8 bits), one step for integers of up to 16 bits, none for
    /// longer ones; and differences do not change the exit status.
    #[arg(long, value_name = "PERCENT", value_parser = super::percent, requires = "compare")]
    tolerance: Option<f64>,
    /// Find the first task that writes a NaN or an infinity.
    ///
    /// Also counts the results that float16 clips: the model may have larger ones there, and outputs that differ from it.
    #[arg(long, conflicts_with = "timing_only")]
    find_nan: bool,
    /// Refuse numbers that rest on weaker evidence than this.
    ///
    /// `proven` by compiled programs, `documented` by the vendor, `quoted` by third parties, or `assumed`.
    #[arg(long, value_name = "WORD", value_parser = grade)]
    evidence: Option<Grade>,
    /// Estimate timing only; skip computing values.
    ///
    /// DSA programs still need inputs, whose length sets the trip count.
    #[arg(long, conflicts_with_all = ["output_dir", "dumps"])]
    timing_only: bool,
    /// Report clipping and overflow of each node (spu).
    ///
    /// For each node: clipped values, out-of-range table indices, accumulator overflow, and the error at its scales. The file holds the inputs of each
    /// step: {"steps": [{"inputs": {"x": [1, 2, 3]}}]}. Where a step also has `outputs`, they are compared: exit 1 if any differs.
    #[arg(long, value_name = "INPUTS.json", conflicts_with_all = ["inputs", "iospec", "output_dir", "dumps", "timing_only", "trace", "order"])]
    calibrate: Option<PathBuf>,
    /// Write the profiling buffer of the run (npu).
    ///
    /// The program must have been compiled with `PERF_COUNT`.
    #[arg(long, value_name = "FILE.bin")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    answer: OutputOptions,
    /// Run the program even if errors are found before.
    #[arg(long)]
    no_verify: bool,
    /// Number of compute threads. Default: one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Task order: `timed`, `random:SEED`, or `late:TASK`.
    ///
    /// `timed` follows the simulated times; `random` picks any order that the program allows; `late` runs one task as late as the waits let it,
    /// which shows a race of it: with --no-verify, give the one task of the race, then the other. Compare with the outputs of the
    /// timed order and the same --fill, `--compare DIR --tolerance 0%`: a race may change bits only, and neither need be right. Parts of a DMA transfer are not run apart. A verified program gives the same outputs in all
    /// orders.
    #[arg(long, value_name = ORDERS, default_value = "timed", conflicts_with = "timing_only")]
    order: Asked,
    /// Exit with 1 if the run takes more than this.
    ///
    /// `latency=TIME`, `peak.MEMORY=SIZE` or a percentage of it, `moved=SIZE`; separate several by commas. Example: --budget
    /// latency=2ms,peak.cmx=95%
    #[arg(long = "budget", value_name = "QUANTITY=LIMIT", value_parser = Budget::parse)]
    budgets: Vec<Vec<Budget>>,
    /// Fill memory with this byte before the run.
    ///
    /// What a chip's memory holds before a program writes it is anything. Here it is 0, which can hide that a task reads it; with 255, numbers in
    /// floating point that nothing has written are NaN. The outputs of a verified program do not depend on it.
    #[arg(long, value_name = "BYTE", default_value_t = 0, conflicts_with_all = ["timing_only", "calibrate"])]
    fill: u8,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    tables: Tables,
    #[command(flatten)]
    policy: PolicyOptions,
    #[command(flatten)]
    options: TargetOptions,
}

fn grade(text: &str) -> Result<Grade, String> {
    Grade::from_name(text)
        .ok_or_else(|| "expected proven, documented, quoted or assumed".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  chipless run model.blob --input x=x.npy --output-dir out
  chipless run model.blob --timing-only --trace model.pftrace
  chipless run model.blob --dump 'dpu0[3]'   what one task wrote
  chipless run model.blob --json | jq .latency_ns
  chipless run model.blob --timing-only --rank   what bounds it
  chipless run model.blob --timing-only --what-if clock.dpu=1.2x
  chipless run model.blob --timing-only --budget latency=2ms   for CI: exit 1 if it takes more
  chipless run model.blob --compare model.onnx   does it compute the model?
  chipless run model.neff --input x=x.npy --compare expected   do outputs agree, and where not
  chipless run model.blob --order random:7   another order, the same outputs
  chipless run model.neff --no-verify --order 'late:dve[1]' --fill 255   does the race show?
  chipless run plan.json --iospec iospec.yaml --input x=steps.npy
  chipless run model.pt --calibrate steps.json   what is clipped, and where

Inputs are .npy files of the type and shape that `info` gives; of a schedule with --network, those of the model. numpy has no bfloat16 and no 8-bit floats: give them as \
ml_dtypes writes them (V2, V1) or as raw bits (uint16, uint8); outputs come back as raw bits. Types of less than a \
byte have a byte for each element. An input of an FQIR plan may have one dimension more: a row for each step, state \
carried from step to step. Under an IOSpec of several sequences, or of complex ones, a row is what is written at a \
time, and outputs have a row for each time that they come.

The summary shows the outputs, how long the program takes, how busy each engine is, the longest tasks, and the longest \
waits. JSON is explained in docs/json.md.

Exit status: 0 done (--compare without --tolerance shows differences and ends so, too), 1 the program faulted, hung, was refused, exceeds a budget or is off by more than --tolerance, 2 a file cannot be used, something in it is not \
supported, or the command was misused.";

pub(crate) fn run(arguments: &Arguments, started: Instant) -> Result<Exit, Failure> {
    // Before anything computes: long files are read by several threads. A timing run leaves it to rayon to start threads where they are
    // needed: to start them can take longer than to prove a small program.
    if !arguments.timing_only || arguments.threads.is_some() {
        pool::start_with_caller(arguments.threads)?;
    }
    refused::times_of_another_order(arguments)?;
    arguments.tables.check()?;
    if arguments.timing_only && arguments.evidence.is_some() {
        let expected = "expected a run with data: evidence is asked of what tasks compute, and --timing-only computes nothing. `chipless machine` grades the parameters behind times";
        return Err(Failure::misuse("--evidence", expected));
    }
    let mut options = arguments.options.load()?;
    options.data = arguments.data.data(!arguments.timing_only);
    let trace = arguments.compare.as_ref();
    if let Some(path) = trace.filter(|path| !path.exists()) {
        return Err(Failure::unreadable(
            path.display(),
            format_args!("no such file or directory{}", disk::beside(path)),
        ));
    }
    if let Some(path) = trace.filter(|path| compared_with(path) == ComparedWith::Trace) {
        options.set("compare", path.to_string_lossy())?;
    }
    let policy = arguments.policy.load()?;
    let opened = Opened::open(&arguments.file)?;
    // A schedule trace names what it plans. By order alone, tasks that run side by side would be taken for each other.
    if let Some(path) = trace.filter(|path| compared_with(path) == ComparedWith::Schedule)
        && options.value(NAMES).is_none()
        && opened.has_option(NAMES)
    {
        options.set(NAMES, path.to_string_lossy())?;
    }
    opened.with_document(&options, |document| {
        if arguments.timing_only && !arguments.data.inputs.is_empty() && !document.depends_on_data()
        {
            let text = "expected no inputs with --timing-only: this program takes as long with any";
            return Err(Failure::misuse("--input", text));
        }
        if !arguments.timing_only
            && let Some(why) = document.no_values()
        {
            return Err(Failure::new(FailureKind::Unsupported, &opened.path, why));
        }
        let times_only = document.times_only().filter(|_| !arguments.timing_only);
        // The process ends with it: to take it apart would be work for nobody.
        let lowered = ManuallyDrop::new(document.lower()?);
        if let Some(why) = times_only {
            if arguments.wants_values() {
                return Err(Failure::new(FailureKind::Unsupported, &opened.path, why));
            }
            terminal::complain(&format!("{}: note: times only: {why}\n", opened.path));
        }
        let mut findings = document.findings().to_vec();
        policy.apply(&opened.path, &mut findings);
        Session {
            arguments,
            opened: &opened,
            document,
            options: &options,
            policy: &policy,
            findings,
            program: &lowered.program,
            notes: lowered.notes.clone(),
            attribution: OnceLock::new(),
            order: arguments.order.of(&opened, &lowered.program)?,
            timing_only: arguments.timing_only || times_only.is_some(),
            started,
        }
        .run()
    })
}

impl Arguments {
    /// Whether something was asked for that only a run with data gives.
    fn wants_values(&self) -> bool {
        let compares = self.compare.as_deref();
        !self.data.inputs.is_empty()
            || self.output_dir.is_some()
            || !self.dumps.is_empty()
            || self.iospec.is_some()
            || compares.is_some_and(|path| compared_with(path).is_of_values())
    }
}

/// The option that names tasks after a schedule trace.
const NAMES: &str = "names";

/// What is said of a run besides its times.
#[derive(Default)]
struct Outcomes {
    written: Vec<Output>,
    compared: Option<Vec<Comparison>>,
    searched: Option<Searched>,
    /// What the values showed.
    findings: Vec<Finding>,
}

impl From<Vec<Output>> for Outcomes {
    fn from(written: Vec<Output>) -> Outcomes {
        Outcomes {
            written,
            ..Outcomes::default()
        }
    }
}

/// A program that is about to run.
struct Session<'s, 'p> {
    arguments: &'s Arguments,
    opened: &'s Opened,
    document: &'s OpenDocument<'s>,
    options: &'s Options,
    /// What was found while reading.
    findings: Vec<Finding>,
    policy: &'s Policy,
    program: &'s Program<'p>,
    /// What should be known of the numbers.
    notes: Vec<String>,
    /// The run taken apart, once somebody asks.
    attribution: OnceLock<Attribution>,
    order: Order,
    /// Whether nothing is computed: asked for, or all that can be done.
    timing_only: bool,
    started: Instant,
}

impl<'p> Session<'_, 'p> {
    fn run(&self) -> Result<Exit, Failure> {
        let program = self.program;
        if let Some(path) = &self.arguments.compare {
            let expected = match (compared_with(path), self.timing_only) {
                (ComparedWith::Trace, _) if program.target != "gemini" => Some(
                    "expected a directory, a .npy file or a schedule trace in .json: text is the form of Gemini's traces only",
                ),
                (ComparedWith::Values | ComparedWith::Model, true) => {
                    Some("expected a run with data: there are no outputs with --timing-only")
                }
                _ => None,
            };
            if let Some(expected) = expected {
                return Err(Failure::misuse("--compare", expected));
            }
            if self.arguments.tolerance.is_some() && !compared_with(path).is_of_values() {
                let expected =
                    "expected --compare with arrays: times are shown beside each other, not judged";
                return Err(Failure::misuse("--tolerance", expected));
            }
        }
        if let Some(evidence) = self.arguments.evidence {
            diagnosis::demand(program, &self.opened.path, evidence)?;
        }
        // Names that the program does not have are misuse, with data or without, whatever is wrong with the program.
        let given = inputs::open(&self.opened.path, program, &self.arguments.data.inputs)?;
        let keep_time =
            || chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly);
        match (self.timing_only, self.arguments.no_verify) {
            (true, true) => self.keep_time(keep_time()),
            (true, false) => {
                // A timing run touches no data, so it may start before the proof is there.
                let (findings, outcome) = if program.tasks.len() < chipless_verify::LARGE {
                    (verify(program), keep_time())
                } else {
                    rayon::join(|| verify(program), keep_time)
                };
                self.refuse(findings)?;
                self.keep_time(outcome)
            }
            (false, no_verify) => {
                let mut verified = chipless_sim::Verified::assume(program);
                if !no_verify {
                    let findings = match chipless_verify::verify(program) {
                        Ok(proven) => {
                            verified = proven;
                            verified.warnings().to_vec()
                        }
                        Err(findings) => findings,
                    };
                    self.refuse(findings)?;
                }
                self.execute(&verified, &given)
            }
        }
    }

    /// Refuses a program in which errors were found before it runs. One that hangs or breaks a protocol shows where.
    fn refuse(&self, errors: Vec<Finding>) -> Result<(), Failure> {
        let Some((failure, timeline)) = refusal(
            self.opened,
            self.document,
            self.program,
            self.policy,
            &self.findings,
            errors,
        ) else {
            return Ok(());
        };
        if let Some(timeline) = timeline {
            self.trace(&timeline)?;
        }
        Err(failure)
    }

    fn keep_time(&self, outcome: Outcome) -> Result<Exit, Failure> {
        let Outcome { timeline, end } = outcome;
        self.trace(&timeline)?;
        end.map_err(|stop| self.stopped(&timeline, &stop))?;
        self.summarise(&timeline, Outcomes::default(), None, self.notes())
    }

    fn execute(
        &self,
        verified: &chipless_sim::Verified<'_, 'p>,
        given: &[Given],
    ) -> Result<Exit, Failure> {
        if let Some(path) = &self.arguments.calibrate {
            return self.calibrate(path);
        }
        let seed = self.arguments.data.seed;
        let mut dumps = Dumps::new(self.tasks_to_dump()?);
        let mut storage =
            Storage::new(&self.program.buffers, &self.options.limits).map_err(chipless::no_room)?;
        if self.arguments.fill != 0 {
            storage.fill_undefined(&self.program.buffers, self.arguments.fill);
        }
        let contract = match &self.arguments.iospec {
            Some(path) => {
                let document = super::contract::open(path, RuleSet::Spec)?;
                if !contract::is_plain(&document) {
                    if self.arguments.fill != 0 {
                        let text = "expected a program that runs as one: under this IOSpec it is called sequence by sequence";
                        return Err(Failure::misuse("--fill", text));
                    }
                    return self.execute_driven(path, &document, given);
                }
                Some(Contract::of(path, document, self.program)?)
            }
            None => None,
        };
        let mut zeros = contract.as_ref().map_or_else(
            || Ok(Vec::new()),
            |contract| contract.zeros(self.program, given),
        )?;
        let steps = Steps::of(self.program, given)?;
        // Rows come step by step.
        zeros.extend(
            (0..self.program.interface.inputs.len())
                .filter(|port| steps.as_ref().is_some_and(|s| s.has(*port))),
        );
        let random = inputs::fill(
            &self.opened.path,
            self.program,
            given,
            &zeros,
            seed,
            &mut storage,
        )?;
        if let Some(contract) = &contract {
            for port in &self.program.interface.inputs {
                contract.in_range(port, storage.bytes(port.buffer))?;
            }
        }
        if let Some(steps) = steps {
            return self.execute_steps(&steps, storage, contract.as_ref(), &random);
        }
        let progress = Bar::new("tasks");
        let mut search = self.arguments.find_nan.then(Search::default);
        let looks_on = search.is_some() || !dumps.is_empty();
        let mut observe = |task: TaskId, storage: &Storage<'_>| {
            dumps.observe(self.program, task, storage);
            if let Some(search) = &mut search {
                search.observe(self.program, task, storage);
            }
        };
        let functional = Functional::new(&mut storage).of(verified);
        let functional = if looks_on {
            functional.observed_by(&mut observe)
        } else {
            functional.side_by_side()
        };
        let mut counted = Counted::new(functional, &progress);
        let outcome = chipless_sim::run_in(verified, self.order, &mut counted);
        progress.clear();
        let searched = search.map(Search::found);
        self.executed(outcome, &storage, dumps, searched, &random)
    }

    /// Writes what an execution gave, compares it and tells of it.
    fn executed(
        &self,
        outcome: Outcome,
        storage: &Storage<'p>,
        dumps: Dumps,
        searched: Option<Searched>,
        random: &[String],
    ) -> Result<Exit, Failure> {
        let Outcome { timeline, end } = outcome;
        self.trace(&timeline)?;
        let mut names = files::Names::default();
        // Outputs have the first choice of names.
        let written = match &end {
            Ok(()) => outputs::write(
                &self.opened.path,
                self.program,
                storage,
                self.arguments.output_dir.as_deref(),
                &mut names,
            )?,
            Err(_) => Vec::new(),
        };
        let dumped = dumps.write(
            self.program,
            self.arguments.output_dir.as_deref(),
            &mut names,
        )?;
        if let Err(stop) = end {
            for line in dumped {
                terminal::complain(&format!("{}: {line}\n", self.opened.path));
            }
            return Err(self.stopped(&timeline, &stop).into());
        }
        let mut notes = dumped;
        notes.extend(chipless::random_note(random, self.arguments.data.seed));
        notes.extend(chipless::unproven_note(self.program));
        notes.extend(self.notes());
        let values = self
            .arguments
            .compare
            .as_ref()
            .filter(|path| compared_with(path).is_of_values());
        let compared = values
            .map(|path| {
                let tolerance = self.arguments.tolerance.map(|percent| percent / 100.0);
                let tolerance = tolerance.map(Tolerance::relative);
                let model = self.arguments.model.of(path);
                diagnosis::compare(self.program, storage, &timeline, model, tolerance)
            })
            .transpose()?;
        let mut findings = chipless::remarked(self.program, storage);
        self.policy.apply(&self.opened.path, &mut findings);
        let outcomes = Outcomes {
            written,
            compared,
            searched,
            findings,
        };
        self.summarise(
            &timeline,
            outcomes,
            (!random.is_empty()).then_some(self.arguments.data.seed),
            notes,
        )
    }

    /// Many steps. The timeline is that of one.
    fn execute_steps(
        &self,
        steps: &Steps<'_>,
        storage: Storage<'p>,
        contract: Option<&Contract>,
        random: &[String],
    ) -> Result<Exit, Failure> {
        let directory = self.arguments.output_dir.as_deref();
        if let Some(directory) = directory {
            files::make_directory(directory)?;
        }
        self.refuse_many_steps()?;
        let program = chipless_sim::Verified::assume(self.program);
        let mut session = chipless_sim::Session::new(&program, storage);
        session.set_order(self.order);
        let paths = steps.run(&self.opened.path, &mut session, contract, directory)?;
        let Outcome { timeline, end } = chipless_sim::run(
            &chipless_sim::Verified::assume(self.program),
            &mut TimingOnly,
        );
        self.trace(&timeline)?;
        end.map_err(|stop| self.stopped(&timeline, &stop))?;
        let mut written = outputs::write(
            &self.opened.path,
            self.program,
            session.storage(),
            None,
            &mut files::Names::default(),
        )?;
        for (output, path) in written.iter_mut().zip(paths) {
            output.path = Some(path.display().to_string());
        }
        let mut notes = vec![format!(
            "{} steps; times are those of one, outputs shown are those of the last",
            steps.count
        )];
        if !random.is_empty() {
            notes.push(format!(
                "random data, the same for every step (seed {}) for {}",
                self.arguments.data.seed,
                random.join(", ")
            ));
        }
        notes.extend(self.notes());
        self.summarise(
            &timeline,
            written.into(),
            (!random.is_empty()).then_some(self.arguments.data.seed),
            notes,
        )
    }

    /// A contract that says itself what comes when. The timeline is that of one step.
    fn execute_driven(
        &self,
        path: &Path,
        document: &iospec::Document,
        given: &[Given],
    ) -> Result<Exit, Failure> {
        if self.program.target != "spu" {
            let expected = "expected one simple sequence with outputs: only an FQIR plan can be run under any other contract";
            return Err(Failure::wrong(path.display(), expected));
        }
        let directory = self.arguments.output_dir.as_deref();
        if let Some(directory) = directory {
            files::make_directory(directory)?;
        }
        let driven = Driven::new(path, document, self.program, given)?;
        self.refuse_many_steps()?;
        let run = |mut runner: Runner<'_>| {
            runner.set_order(self.order);
            driven.run(self.program, runner, directory)
        };
        let (writes, outputs) =
            chipless::with_runner(&self.opened.path, &self.opened.bytes, self.options, run)?;
        let Outcome { timeline, end } = chipless_sim::run(
            &chipless_sim::Verified::assume(self.program),
            &mut TimingOnly,
        );
        self.trace(&timeline)?;
        end.map_err(|stop| self.stopped(&timeline, &stop))?;
        let mut notes = vec![format!(
            "{writes} vectors written; times are those of one step, outputs shown are the last ones"
        )];
        let mut written = Vec::new();
        for (port, path, count, last) in outputs {
            let declared = &self.program.interface.outputs[port];
            notes.push(format!("{} came {count} times", declared.name));
            let statistics =
                Statistics::of(declared.element, declared.shape.iter().product(), &last);
            written.push(Output {
                port,
                path: path.map(|p| p.display().to_string()),
                statistics,
            });
        }
        notes.extend(self.notes());
        self.summarise(&timeline, written.into(), None, notes)
    }

    /// What a task left is written once, and bytes are followed through one run; many steps leave them many times.
    fn refuse_many_steps(&self) -> Result<(), Failure> {
        let asked = [
            ("--dump", !self.arguments.dumps.is_empty()),
            ("--compare", self.arguments.compare.is_some()),
            ("--find-nan", self.arguments.find_nan),
        ];
        let Some((option, _)) = asked.iter().find(|(_, asked)| *asked) else {
            return Ok(());
        };
        let instead = match *option {
            "--compare" => {
                ". To compare all steps, write their inputs and `outputs` to a file: --calibrate STEPS.json"
            }
            _ => ". Pass inputs of one step",
        };
        let text = format!("expected a run of one step, found one of several{instead}");
        Err(Failure::misuse(option, text))
    }

    fn tasks_to_dump(&self) -> Result<Vec<TaskId>, Failure> {
        self.arguments
            .dumps
            .iter()
            .map(|name| task_named(self.opened, self.program, name, "a task"))
            .collect()
    }

    fn stopped(&self, timeline: &Timeline, stop: &Stop) -> Told {
        stopped(self.opened, self.program, timeline, stop)
    }

    /// What holds for every run.
    fn notes(&self) -> Vec<String> {
        let warnings = self.document.findings().len();
        let mut notes = self.notes.clone();
        notes.extend(chipless::findings_note(&self.opened.path, warnings));
        notes.extend(chipless::order_note(self.program, self.order));
        if self.arguments.no_verify {
            let values = if self.timing_only {
                ""
            } else {
                ": where `check` finds a race, other orders (--order late:TASK) may give other values"
            };
            notes.push(format!("not verified (--no-verify){values}"));
        }
        notes
    }
}
