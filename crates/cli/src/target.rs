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
}

impl Target {
    /// What a file must be, for the message about one that is not.
    pub(crate) const EXPECTED: &str = "an Intel NPU blob (ELF)";

    /// The target of a file, by its content.
    pub(crate) fn recognize(bytes: &[u8]) -> Option<Target> {
        chipless_npu::recognize(bytes).then_some(Target::Npu)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Target::Npu => "npu",
        }
    }

    /// Rules of all targets.
    pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
        chipless_npu::rules()
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
    npu: chipless_npu::Options,
}

impl LoweringOptions {
    /// Reads the files that the options name.
    pub(crate) fn load(&self) -> Result<Lowering, Failure> {
        let machine = match &self.machine {
            Some(path) => chipless_npu::Machine::from_toml(&files::read_text(path)?)
                .map_err(|error| Failure::unusable(path.display(), error.trim_end()))?,
            None => chipless_npu::Machine::default(),
        };
        let mut kernels = chipless_npu::KernelTable::default();
        if let Some(path) = &self.kernel_table {
            kernels.extend_from_toml(&files::read_text(path)?).map_err(|error| Failure::unusable(path.display(), error))?;
        }
        for entry in &self.kernels {
            kernels.insert_entry(entry).map_err(|error| Failure::unusable("--kernel", error))?;
        }
        Ok(Lowering { npu: chipless_npu::Options { machine, kernels, limits: self.limits()? } })
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
        &self.npu.limits
    }
}

/// A file that was read.
pub(crate) enum Document<'f> {
    Npu(chipless_npu::Document<'f>),
}

impl<'f> Document<'f> {
    /// Reads a file of a target; the findings say why it cannot be read.
    pub(crate) fn read(target: Target, bytes: &'f [u8]) -> Result<Document<'f>, Vec<Finding>> {
        match target {
            Target::Npu => chipless_npu::Document::read(bytes).map(Document::Npu),
        }
    }

    pub(crate) fn info(&self) -> Info {
        match self {
            Document::Npu(document) => document.info(),
        }
    }

    /// The file's own structures.
    pub(crate) fn raw(&self) -> Node {
        match self {
            Document::Npu(document) => document.raw(),
        }
    }

    /// What was found while reading.
    pub(crate) fn findings(&self) -> &[Finding] {
        match self {
            Document::Npu(document) => document.findings(),
        }
    }

    /// Makes the program of the file and does something with it. The findings say why there is none: Chipless does not
    /// support the file, or it is wrong.
    pub(crate) fn with_program<T>(&self, options: &Lowering, then: impl FnOnce(&Program<'_>) -> T) -> Result<T, Vec<Finding>> {
        match self {
            Document::Npu(document) => {
                document.supported().map_err(|finding| vec![*finding])?;
                let image = chipless_npu::Image::load(document, &options.npu.limits)?;
                let program = chipless_npu::lower(document, &image, &options.npu)?;
                Ok(then(&program))
            }
        }
    }
}
