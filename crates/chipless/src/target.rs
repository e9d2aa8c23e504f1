//! What a target is to the rest of Chipless: a way to recognise its files, its options as data, and a document for each file.

use crate::failure::Failure;
use crate::options::{Input, OptionSpec, Options};
use chipless_device::Route;
use chipless_model::{Finding, Info, Node, Program, Rule, TaskId};
use chipless_npu::registers::Structure;
pub use chipless_report::page::Picture;
use chipless_report::schedule_trace::Schedule;
use chipless_sim::Timeline;
use chipless_verify::Verified;
use std::collections::{BTreeSet, HashMap};

/// A family of programs. `TARGETS` lists all of them.
pub trait Target: Sync {
    /// As printed: `npu`.
    fn name(&self) -> &'static str;

    /// Its kinds of files, in words: `an Intel NPU blob (ELF)`.
    fn files(&self) -> &'static [&'static str];

    /// Whether these are the bytes of a file of this target.
    fn recognize(&self, bytes: &[u8]) -> bool;

    /// Endings of names, without a dot, by which a file is known that is too damaged to be recognised.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Options that only this target has.
    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Its rules.
    fn rules(&self) -> Vec<&'static Rule>;

    /// Machine files that come with Chipless: name and text. The first is the one that is taken for a file that names none.
    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Opens a file, as far as that takes memory of its own: what documents borrow from.
    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure>;
}

/// A file as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Source<'f> {
    /// As the user named it.
    pub name: &'f str,
    /// Its bytes.
    pub bytes: &'f [u8],
    /// What the user asks for.
    pub options: &'f Options,
}

/// Names and bytes of parts that are packed into a file.
pub type Parts = Vec<(String, Vec<u8>)>;

/// A file that is open: its bytes, or what was packed into them.
pub trait Package: Send + Sync {
    /// Reads the document.
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure>;

    /// The parts of these names that are packed into the file, so that places in them count from their own start.
    fn parts(&self, _names: &BTreeSet<&str>) -> Parts {
        Parts::new()
    }
}

/// A file that was read. What a target cannot do with it, it refuses by name.
pub trait Document: Send + Sync {
    /// What it is.
    fn info(&self) -> Info;

    /// The file's own structures.
    fn raw(&self) -> Node;

    /// What was found while reading.
    fn findings(&self) -> &[Finding];

    /// Whether the document is all that the file says; otherwise findings say what is missing, and only a check goes on.
    fn is_complete(&self) -> bool {
        true
    }

    /// Whether [`findings`](Document::findings) proves more of the program than the verifier would, so that a check need not make it.
    fn is_proven(&self) -> bool {
        false
    }

    /// Whether the file holds a program; a contract or a fabric holds none.
    fn is_program(&self) -> bool {
        true
    }

    /// Makes the program of the file. A failure with findings says why there is none: Chipless does not support the file, or it is
    /// wrong.
    fn lower(&self) -> Result<Lowered<'_>, Failure>;

    /// The program for a list: every task once, each with a text of its own. It is not for running.
    fn listed(&self) -> Result<Lowered<'_>, Failure> {
        self.lower()
    }

    /// The whole program as assembler text, which packing turns back.
    fn assembler(&self) -> Result<String, Failure> {
        Err(Failure::unsupported(
            "assembler text (--asm) is made of NEFFs only",
        ))
    }

    /// The memory that a load takes.
    fn memory(&self) -> Result<Node, Failure> {
        Err(Failure::unsupported(
            "a memory plan (--memory) is made of NEFFs only",
        ))
    }

    /// The file in the present form of its format.
    fn convert(&self) -> Result<String, Failure> {
        Err(Failure::unsupported(
            "expected a file of a format that has several forms, found one that has no other",
        ))
    }

    /// The contract of the file (an `IOSpec`): its own, or that of its program.
    fn contract(&self) -> Result<String, Failure> {
        let lowered = self.lower()?;
        let contract = chipless_spu::iospec::of_interface(&lowered.program.interface);
        Ok(chipless_spu::yaml::write(&contract))
    }

    /// Whether a contract can be driven; `None` for files that are none.
    fn drivable(&self) -> Option<&chipless_spu::iospec::Verdict> {
        None
    }

    /// Whether the program depends on the data of a run: then each run needs a program of its own.
    fn depends_on_data(&self) -> bool {
        false
    }

    /// Whether weights are made up for the program, so that each seed has a program of its own.
    fn makes_weights(&self) -> bool {
        false
    }

    /// Tiles that the program holds while it runs on a device with tiles; `None`: it has the device for itself.
    fn tiles(&self) -> Option<u32> {
        None
    }

    /// The way of a queue's transfers to the memory of a device that describes one. `None`: they have a memory of their own.
    fn route(&self, queue: &str) -> Option<Route> {
        let _ = queue;
        None
    }

    /// Pictures of the file, or of a replay of its program.
    fn pictures(&self) -> Result<Vec<Picture>, Failure> {
        Err(Failure::unsupported(
            "pictures are drawn of schedules and fabrics; other programs show in run --trace",
        ))
    }

    /// Instructions of another file that belong to tasks of the program that [`lower`](Document::lower) made, a line each.
    fn beside(&self) -> Result<HashMap<TaskId, Vec<String>>, Failure> {
        Ok(HashMap::new())
    }

    /// The descriptors of a task of the program that [`lower`](Document::lower) made, field by field.
    fn registers(&self, _program: &Program<'_>, _task: TaskId) -> Result<Vec<Structure>, Failure> {
        Err(Failure::unsupported(
            "registers (--registers) are shown of NPU blobs only",
        ))
    }

    /// Name and operation of the model's node that a layer comes from, where the user gave the model.
    fn node(&self, _layer: &str) -> Option<(&str, &str)> {
        None
    }

    /// The compiler's own estimate of the latency in nanoseconds, where the file carries one.
    fn estimate_ns(&self) -> Option<f64> {
        None
    }

    /// What the compiler planned for the program, from its schedule trace.
    fn schedule(&self, _trace: &Input) -> Result<Schedule, Failure> {
        Err(Failure::unsupported(
            "a vendor's schedule trace (--compare TRACE.json) is compared with the runs of NPU blobs only",
        ))
    }

    /// The profiling buffer as the device leaves it after a run, and the number of its records.
    fn profile(
        &self,
        _program: &Program<'_>,
        _timeline: &Timeline,
    ) -> Result<(Vec<u8>, usize), Failure> {
        Err(Failure::unsupported(
            "a profiling buffer (--profile) is written of NPU blobs that were compiled with PERF_COUNT only",
        ))
    }

    /// What the target knows of a run of the program that [`lower`](Document::lower) made, besides what all targets do.
    fn facts(&self, _program: &Program<'_>, _timeline: &Timeline) -> Result<Vec<Node>, Failure> {
        Ok(Vec::new())
    }
}

/// A program, and what should be known of its numbers.
#[derive(Debug)]
pub struct Lowered<'d> {
    /// The program.
    pub program: Program<'d>,
    /// A line each.
    pub notes: Vec<String>,
}

impl<'d> Lowered<'d> {
    /// Proves the program safe.
    ///
    /// # Errors
    /// All findings, errors first.
    pub fn verify(&self) -> Result<Verified<'_, 'd>, Vec<Finding>> {
        chipless_verify::verify(&self.program)
    }
}

impl<'d> From<Program<'d>> for Lowered<'d> {
    fn from(program: Program<'d>) -> Lowered<'d> {
        Lowered {
            program,
            notes: Vec::new(),
        }
    }
}
