//! What a target is to the rest of Chipless: a way to recognise its files, its options as data, and a document for each file.

use crate::capability::{Capabilities, Capability};
use crate::failure::Failure;
use crate::machine::Leniency;
use crate::options::{OptionSpec, Options};
use chipless_model::{Finding, Info, Node, Program, Rule};
pub use chipless_report::page::Picture;
use chipless_sim::Timeline;
use chipless_verify::Verified;
use std::collections::BTreeSet;

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

    /// How machine files may differ from those: figures that a file lacks are then the machine's that comes with Chipless. `None`: a file has all
    /// that it needs, or the target's reader knows what counts without.
    fn leniency(&self) -> Option<Leniency> {
        None
    }

    /// What can be done with its files, or some of them, beyond what [`Document`] promises of all.
    fn capabilities(&self) -> &'static [Capability] {
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

/// A file that was read: what every file can be asked. What only some can do stands in its [`capabilities`](Document::capabilities).
pub trait Document: Send + Sync {
    /// What it is.
    fn info(&self) -> Info;

    /// The file's own structures.
    fn raw(&self) -> Node;

    /// What was found while reading.
    fn findings(&self) -> &[Finding];

    /// What a check of this file leaves out, because something that it takes was not passed.
    fn unchecked(&self) -> Option<&'static str> {
        None
    }

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
    /// wrong. Errors among [`findings`](Document::findings) that leave a program are no reason to refuse: who runs it stops at them, unless asked
    /// to go on.
    fn lower(&self) -> Result<Lowered<'_>, Failure>;

    /// The program for a list: every task once, each with a text of its own. It is not for running.
    fn listed(&self) -> Result<Lowered<'_>, Failure> {
        self.lower()
    }

    /// The file of the program's own machine, and a change of it that the program asks for, as `--set` takes it; `None` where times rest on
    /// no machine.
    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        None
    }

    /// Why a run can time the program but not compute its values; `None` where it can do both.
    fn times_only(&self) -> Option<&'static str> {
        None
    }

    /// Why the values of the program cannot be computed from this file, whatever is passed beside it, and what to do for them.
    fn no_values(&self) -> Option<String> {
        None
    }

    /// Whether the program depends on the data of a run: then each run needs a program of its own.
    fn depends_on_data(&self) -> bool {
        false
    }

    /// Whether the values that are given decide how many elements come out.
    fn has_varying_outputs(&self) -> bool {
        false
    }

    /// Whether weights are made up for the program, so that each seed has a program of its own.
    fn makes_weights(&self) -> bool {
        false
    }

    /// What else can be done with this file; the rest is refused by name.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::default()
    }

    /// What the target knows of a run of the program that [`lower`](Document::lower) made, besides what all targets do.
    fn facts(&self, _program: &Program<'_>, _timeline: &Timeline) -> Result<Vec<Node>, Failure> {
        Ok(Vec::new())
    }

    /// How to read these facts, where somebody could take them wrong: a sentence each.
    fn remarks(&self, _facts: &[Node]) -> Vec<String> {
        Vec::new()
    }

    /// What makes such a program faster on the machine as it is, where a run is so many times as fast with twice of this machine parameter, or
    /// gains with none: sentences with a command.
    fn faster(&self, _limit: Option<(&str, f64)>) -> Option<String> {
        None
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
        chipless_verify::verify(&self.program).map_err(|mut findings| {
            describe(&mut findings, &self.program);
            findings
        })
    }
}

/// Says of each task that findings name what it does, and in which layer.
pub(crate) fn describe(findings: &mut [Finding], program: &Program<'_>) {
    for finding in findings {
        let related = finding.related.iter_mut().map(|(place, _)| place);
        for place in std::iter::once(&mut finding.place).chain(related) {
            let Some(task) = program.task_named(&place.item) else {
                continue;
            };
            let operation = program.kernel(task).operation();
            place.about = match program.layer(task) {
                Some(layer) => format!("{operation} of layer {layer}"),
                None => operation.into_owned(),
            };
        }
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
