//! The one place that knows which targets there are.

use crate::failure::Failure;
use crate::files;
use crate::suggest;
use chipless_model::{Finding, Info, Limits, Node, Program, Rule};
use clap::Args;
use std::path::PathBuf;

/// A family of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Npu,
    Neuron,
}

impl Target {
    /// What a file must be, for the message about one that is not.
    pub(crate) const EXPECTED: &str = "an Intel NPU blob (ELF) or an AWS NEFF (a header of 1024 bytes and a tarball)";

    /// The target of a file, by its content.
    pub(crate) fn recognize(bytes: &[u8]) -> Option<Target> {
        if chipless_npu::recognize(bytes) {
            return Some(Target::Npu);
        }
        chipless_neuron::recognize(bytes).then_some(Target::Neuron)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Target::Npu => "npu",
            Target::Neuron => "neuron",
        }
    }

    /// Rules of all targets.
    pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
        chipless_npu::rules().chain(chipless_neuron::rules::all())
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
    /// A bound on what a file may ask for: `memory_bytes`, `tasks`. May be given several times.
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<String>,
}

/// What the options of the command line amount to.
pub(crate) struct Lowering {
    machine: Option<(String, String)>,
    kernels: chipless_npu::KernelTable,
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
        Ok(Lowering { machine, kernels, limits: self.limits()? })
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
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The machine file that was given, read as that of a target.
    fn machine<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, Failure> {
        let Some((path, text)) = &self.machine else { return Ok(None) };
        read(text).map(Some).map_err(|error| Failure::unusable(path, error.trim_end()))
    }
}

/// A file that was read.
pub(crate) enum Document<'f> {
    Npu(Box<chipless_npu::Document<'f>>),
    Neuron { container: Box<chipless_neuron::Container<'f>>, findings: Vec<Finding>, limits: Limits },
}

impl<'f> Document<'f> {
    /// Reads a file of a target; the findings say why it cannot be read.
    pub(crate) fn read(target: Target, bytes: &'f [u8], limits: &Limits) -> Result<Document<'f>, Vec<Finding>> {
        match target {
            Target::Npu => chipless_npu::Document::read(bytes).map(|document| Document::Npu(Box::new(document))),
            Target::Neuron => {
                let container = Box::new(chipless_neuron::Container::open(bytes, limits).map_err(|finding| vec![*finding])?);
                let neff = chipless_neuron::Neff::read(&container, limits).map_err(|finding| vec![*finding])?;
                let findings = chipless_neuron::lint(&neff, limits);
                drop(neff);
                Ok(Document::Neuron { container, findings, limits: limits.clone() })
            }
        }
    }

    pub(crate) fn info(&self) -> Info {
        match self {
            Document::Npu(document) => document.info(),
            Document::Neuron { container, limits, .. } => {
                chipless_neuron::Neff::read(container, limits).map(|neff| chipless_neuron::info(&neff)).unwrap_or_default()
            }
        }
    }

    /// The file's own structures.
    pub(crate) fn raw(&self) -> Node {
        match self {
            Document::Npu(document) => document.raw(),
            Document::Neuron { container, .. } => chipless_neuron::raw(container),
        }
    }

    /// The memory that a load takes; `None` for targets whose files do not say.
    pub(crate) fn memory(&self) -> Option<Node> {
        let Document::Neuron { container, limits, .. } = self else { return None };
        let neff = chipless_neuron::Neff::read(container, limits).ok()?;
        Some(chipless_neuron::MemoryPlan::new(&neff, chipless_neuron::memory::SCRATCHPAD_PAGE).node())
    }

    /// Why a runtime would refuse the file.
    pub(crate) fn refused_by(&self, name: &str) -> Result<Vec<Finding>, Failure> {
        let Some(runtime) = chipless_neuron::Runtime::named(name) else {
            let known: Vec<&str> = chipless_neuron::Runtime::names().collect();
            let hint = suggest::hint(name, chipless_neuron::Runtime::names());
            let text = format!("expected one of {} or a mask such as 0xff, found \"{name}\"{hint}", known.join(", "));
            return Err(Failure::unusable("--runtime", text));
        };
        match self {
            Document::Npu(_) => Err(Failure::unusable("--runtime", "runtimes are known for NEFFs only")),
            Document::Neuron { container, .. } => Ok(runtime.check(&container.header)),
        }
    }

    /// What was found while reading.
    pub(crate) fn findings(&self) -> &[Finding] {
        match self {
            Document::Npu(document) => document.findings(),
            Document::Neuron { findings, .. } => findings,
        }
    }

    /// Makes the program of the file and does something with it and with what should be known of its numbers. The findings say why there is
    /// none: Chipless does not support the file, or it is wrong.
    pub(crate) fn with_program<T>(
        &self,
        options: &Lowering,
        then: impl FnOnce(&Program<'_>, Vec<String>) -> T,
    ) -> Result<Result<T, Vec<Finding>>, Failure> {
        match self {
            Document::Npu(document) => {
                let machine = options.machine(chipless_npu::Machine::from_toml)?.unwrap_or_default();
                let npu = chipless_npu::Options { machine, kernels: options.kernels.clone(), limits: options.limits.clone() };
                Ok(npu_program(document, &npu, |program| then(program, Vec::new())))
            }
            Document::Neuron { container, limits, .. } => {
                let machine = options.machine(chipless_neuron::machine::Machine::parse)?;
                Ok(neuron_program(container, machine, limits, then))
            }
        }
    }
}

fn npu_program<T>(
    document: &chipless_npu::Document<'_>,
    options: &chipless_npu::Options,
    then: impl FnOnce(&Program<'_>) -> T,
) -> Result<T, Vec<Finding>> {
    document.supported().map_err(|finding| vec![*finding])?;
    let image = chipless_npu::Image::load(document, &options.limits)?;
    let program = chipless_npu::lower(document, &image, options)?;
    Ok(then(&program))
}

fn neuron_program<T>(
    container: &chipless_neuron::Container<'_>,
    machine: Option<chipless_neuron::machine::Machine>,
    limits: &Limits,
    then: impl FnOnce(&Program<'_>, Vec<String>) -> T,
) -> Result<T, Vec<Finding>> {
    let neff = chipless_neuron::Neff::read(container, limits).map_err(|finding| vec![*finding])?;
    let own = neff.architecture.machine();
    let mut notes = Vec::new();
    if machine.is_none() && own.is_none() {
        notes.push("there is no machine file for this architecture: timed with the figures of trn2".to_owned());
    }
    let Some(machine) = machine.or(own).or_else(|| chipless_neuron::machine::Machine::named("trn2")) else { return Err(Vec::new()) };
    let mut lowered = chipless_neuron::lower(&neff, &machine, limits).map_err(|finding| vec![*finding])?;
    chipless_neuron::attach_labels(&neff, &mut lowered.program);
    notes.append(&mut lowered.notes);
    Ok(then(&lowered.program, notes))
}
