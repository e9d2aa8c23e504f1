//! The one place that knows which targets there are, and what each of them can do with a file.

mod gemini;
mod neuron;
mod npu;

use crate::failure::Failure;
use crate::files;
use crate::suggest;
use chipless_model::{Finding, Info, Limits, Node, Program, Rule};
use chipless_sim::Timeline;
use clap::Args;
use std::collections::HashMap;
use std::path::PathBuf;

/// A family of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Npu,
    Neuron,
    Gemini,
}

impl Target {
    /// What a file must be, for the message about one that is not.
    pub(crate) const EXPECTED: &str =
        "an Intel NPU blob (ELF), an AWS NEFF (a header of 1024 bytes and a tarball) or a schedule (JSON) of Gemini, SET or IR-tiling";

    /// The target of a file, by its content.
    pub(crate) fn recognize(bytes: &[u8]) -> Option<Target> {
        if chipless_npu::recognize(bytes) {
            return Some(Target::Npu);
        }
        if chipless_neuron::recognize(bytes) {
            return Some(Target::Neuron);
        }
        chipless_gemini::FileKind::of(bytes).is_some().then_some(Target::Gemini)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Target::Npu => "npu",
            Target::Neuron => "neuron",
            Target::Gemini => "gemini",
        }
    }

    /// Rules of all targets.
    pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
        chipless_npu::rules().chain(chipless_neuron::rules::all()).chain(chipless_gemini::rules::all())
    }

    /// Reads a file of this target and does something with it; the findings say why it cannot be read.
    pub(crate) fn with_document<T>(
        self,
        source: Source<'_>,
        lowering: &Lowering,
        then: impl FnOnce(&dyn Document) -> T,
    ) -> Result<T, Vec<Finding>> {
        let (mut then, mut done) = (Some(then), None);
        let mut once = |document: &dyn Document| done = then.take().map(|then| then(document));
        match self {
            Target::Npu => npu::read(source, &mut once)?,
            Target::Neuron => neuron::read(source, &lowering.limits, &mut once)?,
            Target::Gemini => gemini::read(source, lowering, &mut once)?,
        }
        done.ok_or_else(Vec::new)
    }
}

/// A file as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'f> {
    /// As the user named it.
    pub(crate) path: &'f str,
    pub(crate) bytes: &'f [u8],
}

/// What is done with a document while it is there.
type Reader<'r> = &'r mut dyn FnMut(&dyn Document);

/// What is done with a program, and with what should be known of its numbers.
pub(crate) type Consumer<'c> = &'c mut dyn FnMut(&Program<'_>, Vec<String>);

/// A file that was read. What a target cannot do with it, it refuses by name.
pub(crate) trait Document {
    fn info(&self) -> Info;

    /// The file's own structures.
    fn raw(&self) -> Node;

    /// What was found while reading.
    fn findings(&self) -> &[Finding];

    /// The memory that a load takes; `None` for targets whose files do not say.
    fn memory(&self) -> Option<Node> {
        None
    }

    /// Why a runtime would refuse the file.
    fn refused_by(&self, _runtime: &str) -> Result<Vec<Finding>, Failure> {
        Err(Failure::unusable("--runtime", "runtimes are known for NEFFs only"))
    }

    /// What the target knows of a run of the program that [`lower`](Document::lower) made, besides what all targets do.
    fn facts(&self, _lowering: &Lowering, _program: &Program<'_>, _timeline: &Timeline) -> Result<Vec<Node>, Failure> {
        Ok(Vec::new())
    }

    /// The file in the main dialect of its target.
    fn convert(&self) -> Result<String, Failure> {
        Err(Failure::unusable("convert", "only schedules (gemini) have more than one dialect"))
    }

    /// Makes the program of the file and gives it to `then`. The findings say why there is none: Chipless does not support the
    /// file, or it is wrong.
    fn lower(&self, lowering: &Lowering, then: Consumer<'_>) -> Result<Result<(), Vec<Finding>>, Failure>;
}

impl dyn Document + '_ {
    /// Makes the program of the file and does something with it and with what should be known of its numbers.
    pub(crate) fn with_program<T>(
        &self,
        lowering: &Lowering,
        then: impl FnOnce(&Program<'_>, Vec<String>) -> T,
    ) -> Result<Result<T, Vec<Finding>>, Failure> {
        let (mut then, mut done) = (Some(then), None);
        let lowered = self.lower(lowering, &mut |program, notes| done = then.take().map(|then| then(program, notes)))?;
        Ok(lowered.and_then(|()| done.ok_or_else(Vec::new)))
    }
}

/// How a file becomes a program.
#[derive(Args, Debug)]
#[command(next_help_heading = "Machine and limits")]
pub(crate) struct LoweringOptions {
    /// Figures of the machine instead of the target's own: clocks, rates, latencies.
    #[arg(long, value_name = "FILE.toml")]
    machine: Option<PathBuf>,
    /// What a vendor kernel does, by the hash of its code (npu). May be given several times.
    #[arg(long = "kernel", value_name = "HASH=OPERATION")]
    kernels: Vec<String>,
    /// A table of vendor kernels (npu).
    #[arg(long, value_name = "FILE.toml")]
    kernel_table: Option<PathBuf>,
    /// The network from which a schedule was made: its front-end file (gemini).
    #[arg(long, value_name = "FILE.json")]
    network: Option<PathBuf>,
    /// The weights of the network: a directory with the arrays that the front-end file names, .npy (gemini).
    #[arg(long, value_name = "DIR", requires = "network")]
    weights: Option<PathBuf>,
    /// A trace of the program to compare the times with (gemini).
    #[arg(long, value_name = "TRACE.txt")]
    compare: Option<PathBuf>,
    /// The batch of a schedule, instead of what its file name says (gemini).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// A bound on what a file may ask for: `memory_bytes`, `tasks`. May be given several times.
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<String>,
}

/// The weights that a program is made with.
#[derive(Default)]
pub(crate) enum Weights {
    /// None: nobody will compute with them.
    #[default]
    None,
    /// Random ones.
    Seeded(u64),
    /// Arrays of the layers by name.
    Given(HashMap<String, chipless_gemini::Arrays>),
}

/// What the options of the command line amount to.
#[derive(Default)]
pub(crate) struct Lowering {
    machine: Option<(String, String)>,
    kernels: chipless_npu::KernelTable,
    network: Option<chipless_gemini::Network>,
    weights: Weights,
    trace: Option<(String, chipless_gemini::replay::Trace)>,
    batch: Option<u32>,
    limits: Limits,
}

impl LoweringOptions {
    /// Reads the files that the options name.
    pub(crate) fn load(&self) -> Result<Lowering, Failure> {
        let machine = match &self.machine {
            Some(path) => Some((path.display().to_string(), files::read_text(path)?)),
            None => None,
        };
        let mut kernels = chipless_npu::KernelTable::default();
        if let Some(path) = &self.kernel_table {
            kernels.extend_from_toml(&files::read_text(path)?).map_err(|error| Failure::unusable(path.display(), error))?;
        }
        for entry in &self.kernels {
            kernels.insert_entry(entry).map_err(|error| Failure::unusable("--kernel", error))?;
        }
        let limits = self.limits()?;
        let network = match &self.network {
            Some(path) => Some(gemini::network(path, &limits)?),
            None => None,
        };
        let weights = match (&self.weights, &network) {
            (Some(directory), Some(network)) => Weights::Given(gemini::weights(directory, network)?),
            _ => Weights::None,
        };
        let trace = match &self.compare {
            Some(path) => Some((path.display().to_string(), gemini::trace(path)?)),
            None => None,
        };
        Ok(Lowering { machine, kernels, network, weights, trace, batch: self.batch, limits })
    }

    fn limits(&self) -> Result<Limits, Failure> {
        let mut limits = Limits::default();
        for entry in &self.limits {
            let misused = |text: String| Failure::unusable("--limit", text);
            let (name, value) = entry.split_once('=').ok_or_else(|| misused(format!("expected NAME=VALUE, found \"{entry}\"")))?;
            let number = value.parse().map_err(|_| misused(format!("expected a whole number for {name}, found \"{value}\"")))?;
            if !limits.set(name, number) {
                let names = Limits::NAMES.iter().map(|(name, _)| *name);
                let known: Vec<&str> = names.clone().collect();
                let hint = suggest::hint(name, names);
                return Err(misused(format!("expected one of {}, found \"{name}\"{hint}", known.join(", "))));
            }
        }
        Ok(limits)
    }
}

impl Lowering {
    /// Makes up the weights that were not given.
    pub(crate) fn seed_weights(&mut self, seed: u64) {
        if matches!(self.weights, Weights::None) {
            self.weights = Weights::Seeded(seed);
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The machine file that was given, read as that of a target.
    fn machine<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, Failure> {
        let Some((path, text)) = &self.machine else { return Ok(None) };
        read(text).map(Some).map_err(|error| Failure::unusable(path, error.trim_end()))
    }
}
