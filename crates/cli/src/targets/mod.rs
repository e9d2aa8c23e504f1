//! The one place that knows which targets there are, and what each of them can do with a file.

mod dsa;
mod gemini;
mod neuron;
mod npu;
pub(crate) mod spu;

use crate::failure::Failure;
use crate::files;
use crate::suggest;
use chipless_model::{Finding, Info, Limits, Node, Program, Rule, TaskId};
use chipless_sim::Timeline;
use chipless_spu::iospec::RuleSet;
use clap::Args;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// A family of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Npu,
    Neuron,
    Gemini,
    Dsa,
    Spu,
}

impl Target {
    /// What a file must be, for the message about one that is not.
    pub(crate) const EXPECTED: &str = "an Intel NPU blob (ELF), an AWS NEFF (a header of 1024 bytes and a tarball), a schedule (JSON) of \
                                       Gemini, SET or IR-tiling, a dataflow graph (DFG text), an architecture graph (ADG, JSON), an IOSpec (YAML), an FQIR \
                                       plan (JSON) or a .femto container";

    /// The target of a file: by its content, or by its name where the content is too damaged to tell.
    pub(crate) fn recognize(path: &Path, bytes: &[u8]) -> Option<Target> {
        type Recognize = fn(&[u8]) -> bool;
        let known: [(Target, Recognize); 5] = [
            (Target::Npu, chipless_npu::recognize),
            (Target::Neuron, chipless_neuron::recognize),
            (Target::Gemini, |bytes| {
                chipless_gemini::FileKind::of(bytes).is_some()
            }),
            (Target::Spu, chipless_spu::recognize),
            (Target::Dsa, |bytes| {
                chipless_dsa::adg::recognize(bytes) || chipless_dsa::recognize(bytes)
            }),
        ];
        let by_content = known
            .iter()
            .find(|(_, recognize)| recognize(bytes))
            .map(|(target, _)| *target);
        by_content.or_else(|| match path.extension()?.to_str()? {
            "blob" => Some(Target::Npu),
            "neff" => Some(Target::Neuron),
            "dfg" => Some(Target::Dsa),
            _ => None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Target::Npu => "npu",
            Target::Neuron => "neuron",
            Target::Gemini => "gemini",
            Target::Spu => "spu",
            Target::Dsa => "dsa",
        }
    }

    /// Rules of all targets.
    pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
        let machines = chipless_npu::rules().chain(chipless_neuron::rules::all());
        machines
            .chain(chipless_gemini::rules::all())
            .chain(chipless_spu::rules())
            .chain(chipless_dsa::rules())
    }

    /// The parts that findings are about and that are packed into the file, so that places in them count from their own start.
    pub(crate) fn parts(self, source: Source<'_>, limits: &Limits, findings: &[Finding]) -> Parts {
        let places = findings.iter().flat_map(|f| {
            std::iter::once(&f.place).chain(f.related.iter().map(|(place, _)| place))
        });
        let names: BTreeSet<&str> = places.map(|place| &*place.part).collect();
        match self {
            Target::Neuron => neuron::parts(source, limits, &names),
            _ => Parts::new(),
        }
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
            Target::Dsa => dsa::read(source, &lowering.limits, &mut once)?,
            Target::Spu => spu::read(source, &lowering.limits, &mut once)?,
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
    /// Whose rules an IOSpec is read by, where the user says.
    pub(crate) rules: Option<RuleSet>,
}

/// A picture as SVG and as plain text.
pub(crate) struct Picture {
    /// Short, fit for a file name.
    pub(crate) name: String,
    /// One line.
    pub(crate) title: String,
    pub(crate) svg: String,
    pub(crate) text: String,
}

/// Names and bytes of parts that are packed into a file.
pub(crate) type Parts = Vec<(String, Vec<u8>)>;

/// What is done with a document while it is there.
type Reader<'r> = &'r mut dyn FnMut(&dyn Document);

/// What is done with a program, and with what should be known of its numbers.
pub(crate) type Consumer<'c> = &'c mut dyn FnMut(&Program<'_>, Vec<String>);

/// A file that was read. What a target cannot do with it, it refuses by name.
pub(crate) trait Document: Sync {
    fn info(&self) -> Info;

    /// The file's own structures.
    fn raw(&self) -> Node;

    /// What was found while reading.
    fn findings(&self) -> &[Finding];

    /// Whether the document is all that the file says; otherwise findings say what is missing, and only `check` goes on.
    fn is_complete(&self) -> bool {
        true
    }

    /// The memory that a load takes; `None` for targets whose files do not say.
    fn memory(&self) -> Option<Node> {
        None
    }

    /// The file in the present form of its format; no findings mean that the format has one form only.
    fn convert(&self) -> Result<String, Vec<Finding>> {
        Err(Vec::new())
    }

    /// Pictures of the file, or of a replay of its program; none for targets that have no pictures.
    fn pictures(
        &self,
        _lowering: &Lowering,
    ) -> Result<Result<Vec<Picture>, Vec<Finding>>, Failure> {
        Ok(Ok(Vec::new()))
    }

    /// Why a runtime would refuse the file.
    fn refused_by(&self, _runtime: &str) -> Result<Vec<Finding>, Failure> {
        Err(Failure::unusable(
            "--runtime",
            "runtimes are known for NEFFs only",
        ))
    }

    /// Instructions of another file that belong to tasks of the program that [`lower`](Document::lower) made, a line each.
    fn beside(&self, _lowering: &Lowering) -> Result<HashMap<TaskId, Vec<String>>, Failure> {
        Ok(HashMap::new())
    }

    /// What the target knows of a run of the program that [`lower`](Document::lower) made, besides what all targets do.
    fn facts(
        &self,
        _lowering: &Lowering,
        _program: &Program<'_>,
        _timeline: &Timeline,
    ) -> Result<Vec<Node>, Failure> {
        Ok(Vec::new())
    }

    /// Makes the program of the file and gives it to `then`. The findings say why there is none: Chipless does not support the
    /// file, or it is wrong.
    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure>;
}

impl dyn Document + '_ {
    /// Makes the program of the file and does something with it and with what should be known of its numbers.
    pub(crate) fn with_program<T>(
        &self,
        lowering: &Lowering,
        then: impl FnOnce(&Program<'_>, Vec<String>) -> T,
    ) -> Result<Result<T, Vec<Finding>>, Failure> {
        let (mut then, mut done) = (Some(then), None);
        let lowered = self.lower(lowering, &mut |program, notes| {
            done = then.take().map(|then| then(program, notes))
        })?;
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
    /// A mapping of the graph onto its fabric, whose time the program then takes (dsa).
    #[arg(long = "map", value_name = "FILE.json")]
    mapping: Option<PathBuf>,
    /// The network from which a schedule was made: its front-end file (gemini).
    #[arg(long, value_name = "FILE.json")]
    network: Option<PathBuf>,
    /// The weights of the network: a directory with the arrays that the front-end file names, .npy (gemini).
    #[arg(long, value_name = "DIR", requires = "network")]
    weights: Option<PathBuf>,
    /// A trace of the program to compare the times with (gemini).
    #[arg(long, value_name = "TRACE.txt")]
    compare: Option<PathBuf>,
    /// The assembly of a schedule, for `list`; without it asm.txt beside the schedule, if there is one (gemini).
    #[arg(long, value_name = "ASM.txt")]
    assembly: Option<PathBuf>,
    /// Another figure of the machine, by its place in the machine file: `dram.bytes_per_second=8e9`. May be given several times;
    /// targets other than gemini need --machine beside it.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    figures: Vec<String>,
    /// The batch that a schedule should be for (gemini).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// A bound on what a file may ask for: `memory_bytes`, `tasks`, `inflated_bytes`, `inflate_ratio`, `entries`, `path_bytes`,
    /// `json_bytes`, `text_bytes`, `transfers`, `declarations` or `findings`. May be given several times.
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
    mapping: Option<PathBuf>,
    network: Option<chipless_gemini::Network>,
    weights: Weights,
    trace: Option<(String, chipless_gemini::replay::Trace)>,
    assembly: Option<PathBuf>,
    figures: Vec<String>,
    batch: Option<u32>,
    limits: Limits,
    data: Data,
}

/// The data of a run, for targets whose programs are as long as their inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    /// `NAME=FILE.npy`.
    pub(crate) arrays: Vec<String>,
    /// Of the random data for inputs without an array.
    pub(crate) seed: u64,
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
            kernels
                .extend_from_toml(&files::read_text(path)?)
                .map_err(|error| Failure::unusable(path.display(), error))?;
        }
        for entry in &self.kernels {
            kernels
                .insert_entry(entry)
                .map_err(|error| Failure::unusable("--kernel", error))?;
        }
        let limits = self.limits()?;
        let network = match &self.network {
            Some(path) => Some(gemini::network(path, &limits)?),
            None => None,
        };
        let weights = match (&self.weights, &network) {
            (Some(directory), Some(network)) => {
                Weights::Given(gemini::weights(directory, network)?)
            }
            _ => Weights::None,
        };
        let trace = match &self.compare {
            Some(path) => Some((path.display().to_string(), gemini::trace(path)?)),
            None => None,
        };
        Ok(Lowering {
            machine,
            kernels,
            network,
            weights,
            trace,
            assembly: self.assembly.clone(),
            figures: self.figures.clone(),
            batch: self.batch,
            mapping: self.mapping.clone(),
            limits,
            data: Data::default(),
        })
    }

    fn limits(&self) -> Result<Limits, Failure> {
        let mut limits = Limits::default();
        for entry in &self.limits {
            let misused = |text: String| Failure::unusable("--limit", text);
            let (name, value) = entry
                .split_once('=')
                .ok_or_else(|| misused(format!("expected NAME=VALUE, found \"{entry}\"")))?;
            let number = value.parse().map_err(|_| {
                misused(format!(
                    "expected a whole number for {name}, found \"{value}\""
                ))
            })?;
            if !limits.set(name, number) {
                let names = Limits::NAMES.iter().map(|(name, _)| *name);
                let known: Vec<&str> = names.clone().collect();
                let hint = suggest::hint(name, names);
                return Err(misused(format!(
                    "expected one of {}, found \"{name}\"{hint}",
                    known.join(", ")
                )));
            }
        }
        Ok(limits)
    }
}

impl Lowering {
    /// The same for a run with these data.
    pub(crate) fn with_data(self, data: Data) -> Lowering {
        Lowering { data, ..self }
    }

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
    fn machine<T>(
        &self,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        let Some((path, text)) = &self.machine else {
            return match self.figures.first() {
                Some(figure) => Err(Failure::unusable(
                    "--set",
                    format_args!("expected --machine FILE.toml beside \"{figure}\", found none"),
                )),
                None => Ok(None),
            };
        };
        let text = with_figures(text, &self.figures)?;
        read(&text)
            .map(Some)
            .map_err(|error| Failure::unusable(path, error.trim_end()))
    }

    /// The machine file that was given, or else the target's own with some figures that the program's file says.
    fn machine_or<T>(
        &self,
        own: &str,
        figures: &[String],
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let (path, text) = match &self.machine {
            Some((path, text)) => (path.as_str(), text.clone()),
            None => ("--set", with_figures(own, figures)?),
        };
        let text = with_figures(&text, &self.figures)?;
        read(&text).map_err(|error| Failure::unusable(path, error.trim_end()))
    }
}

/// A machine file with other figures: `KEY=VALUE`, where the key is a path of names and the value is TOML.
fn with_figures(text: &str, figures: &[String]) -> Result<String, Failure> {
    if figures.is_empty() {
        return Ok(text.to_owned());
    }
    let misused = |text: String| Failure::unusable("--set", text);
    let mut machine: toml::Table =
        toml::from_str(text).map_err(|error| misused(error.to_string()))?;
    for figure in figures {
        let (key, value) = figure
            .split_once('=')
            .ok_or_else(|| misused(format!("expected KEY=VALUE, found \"{figure}\"")))?;
        let value = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"));
        let value = value.ok_or_else(|| {
            misused(format!(
                "expected a number or a \"text\" for {key}, found \"{figure}\""
            ))
        })?;
        let mut names = key.split('.');
        let first = names.next().and_then(|name| machine.get_mut(name));
        let slot = names
            .try_fold(first, |slot, name| {
                Some(slot?.as_table_mut()?.get_mut(name))
            })
            .flatten();
        match slot {
            Some(slot) if !slot.is_table() => *slot = value,
            _ => {
                let known: Vec<String> = machine
                    .iter()
                    .flat_map(|(name, value)| keys(name, value))
                    .collect();
                let hint = suggest::hint(key, known.iter().map(String::as_str));
                return Err(misused(format!(
                    "expected a figure of the machine such as {}, found \"{key}\"{hint}",
                    known.join(", ")
                )));
            }
        }
    }
    Ok(machine.to_string())
}

/// Paths of the figures under a name.
fn keys(name: &str, value: &toml::Value) -> Vec<String> {
    match value.as_table() {
        Some(table) => table
            .iter()
            .flat_map(|(inner, value)| keys(inner, value))
            .map(|inner| format!("{name}.{inner}"))
            .collect(),
        None => vec![name.to_owned()],
    }
}
