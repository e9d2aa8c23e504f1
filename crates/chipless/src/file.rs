//! A file from its bytes on: whose it is, what is in it, what is wrong with it.

use crate::capability::{Contracts, Planned};
use crate::failure::{Failure, FailureKind};
use crate::foreign;
use crate::machine::{self, Guess};
use crate::options::Options;
use crate::rules;
use crate::target::{Document, Lowered, Package, Parts, Picture, Source, Target, describe};
use crate::targets::{self, TARGETS};
use chipless_model::{Finding, Limits, Place, Program};
use chipless_report::TimedBy;
use chipless_report::findings::Drivable;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::Path;

/// An open file. Documents borrow from it.
pub struct File<'f> {
    source: Source<'f>,
    target: &'static dyn Target,
    package: Box<dyn Package + 'f>,
}

/// Opens a file by its bytes. The name is for messages, and for files too damaged to be recognised by their content.
///
/// # Errors
/// Bytes that no target recognises, options that the file's target does not have, and what the target finds wrong with the
/// container.
pub fn open<'f>(name: &'f str, bytes: &'f [u8], options: &'f Options) -> Result<File<'f>, Failure> {
    open_as(target_of(name, bytes, options)?, name, bytes, options)
}

/// Opens a file of this target.
///
/// # Errors
/// What the target finds wrong with the container.
pub fn open_as<'f>(
    target: &'static dyn Target,
    name: &'f str,
    bytes: &'f [u8],
    options: &'f Options,
) -> Result<File<'f>, Failure> {
    let source = Source {
        name,
        bytes,
        options,
    };
    let package = target.open(source).map_err(|failure| failure.about(name))?;
    Ok(File {
        source,
        target,
        package,
    })
}

/// The target of a file, all of whose options it has.
fn target_of(name: &str, bytes: &[u8], options: &Options) -> Result<&'static dyn Target, Failure> {
    let refused = || {
        let finding = unknown(name, bytes);
        let advice = finding
            .hint
            .map_or_else(String::new, |hint| format!(". {hint}"));
        Failure::unreadable(name, finding.message + &advice)
    };
    if foreign::machine(bytes).is_some() {
        return Err(refused());
    }
    let owners: Vec<&'static str> = options.owners();
    // An option that a single target has says whose a file is that does not say so itself.
    let meant = || match owners.as_slice() {
        [owner] => targets::target(owner),
        _ => None,
    };
    let target = recognize(name, bytes).or_else(meant).ok_or_else(refused)?;
    options.fit(target)?;
    Ok(target)
}

/// The target of a file: by its content, or by its name where the content is too damaged to tell.
pub fn recognize(name: &str, bytes: &[u8]) -> Option<&'static dyn Target> {
    if foreign::machine(bytes).is_some() || foreign::is_graph_text(bytes) {
        return None;
    }
    let mut targets = TARGETS.iter().copied();
    let by_content = targets.clone().find(|target| target.recognize(bytes));
    by_content.or_else(|| {
        if foreign::is_no_program(bytes) {
            return None;
        }
        let extension = Path::new(name).extension()?.to_str()?;
        targets.find(|target| target.extensions().contains(&extension))
    })
}

/// Whether a file is an ONNX model, which no compiler has seen.
pub fn is_onnx(name: &str, bytes: &[u8]) -> bool {
    foreign::is_onnx(bytes) && recognize(name, bytes).is_none()
}

/// What a file is that should have been a network or a text, and what to do about it; `None` where it may be a damaged one.
pub fn kind_of(name: &str, bytes: &[u8]) -> Option<String> {
    if let Some(target) = recognize(name, bytes) {
        return Some(format!("a compiled program of target {}", target.name()));
    }
    let (kind, advice) = foreign::kind(bytes).filter(|(kind, _)| *kind != foreign::ONNX)?;
    Some(match advice {
        "" => kind.to_owned(),
        advice => format!("{kind}. {advice}"),
    })
}

/// What to say about a file that no target knows, and what to do about it where that is known.
fn unknown(name: &str, bytes: &[u8]) -> Finding {
    let of = |text: String| rules::UNKNOWN.at(Place::bytes(0, 8), text + targets::LEFT_OUT);
    if let Some(found) = foreign::machine(bytes) {
        return of(expected(&found));
    }
    let is_assembler = Path::new(name).extension().is_some_and(|e| e == "asm");
    if is_assembler && std::str::from_utf8(bytes).is_ok() {
        let packed = Path::new(name).with_extension("neff");
        let advice = format!(
            "Pack it first: `chipless pack {name} -o {}`",
            packed.display()
        );
        return of(not_compiled("assembler text of a NEFF")).hint(advice);
    }
    match foreign::kind(bytes) {
        Some((kind, "")) => of(not_compiled(kind)),
        Some((kind, advice)) => of(not_compiled(kind)).hint(advice),
        None if bytes.is_empty() => of(expected("an empty file")),
        None => {
            let start = bytes.iter().take(8).map(|b| format!("{b:02x}"));
            let start: Vec<String> = start.collect();
            let found = format!("a file that starts with {}", start.join(" "));
            of(expected(&found))
        }
    }
}

/// What to say of a file that is known to be none of a target.
fn not_compiled(kind: &str) -> String {
    format!("expected a compiled program (`chipless targets` lists the formats), found {kind}")
}

/// What a file should be, and what it is.
fn expected(found: &str) -> String {
    let known: Vec<&str> = TARGETS
        .iter()
        .flat_map(|target| target.files())
        .copied()
        .collect();
    let (last, others) = known.split_last().unwrap_or((&"", &[]));
    format!("expected {} or {last}, found {found}", others.join(", "))
}

impl<'f> File<'f> {
    /// As the user named it.
    pub fn name(&self) -> &'f str {
        self.source.name
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'f [u8] {
        self.source.bytes
    }

    /// Whose it is.
    pub fn target(&self) -> &'static dyn Target {
        self.target
    }

    /// Reads the document.
    ///
    /// # Errors
    /// A file that cannot be read to its end; the findings say why.
    pub fn read(&self) -> Result<OpenDocument<'_>, Failure> {
        let document = self.part()?;
        if document.is_complete() {
            Ok(document)
        } else {
            Err(Failure {
                kind: FailureKind::Unreadable,
                ..Failure::reading(document.findings().to_vec())
            }
            .about(self.name()))
        }
    }

    /// As much of the document as can be read: [`Document::is_complete`](crate::Document::is_complete) says whether that is all of it.
    pub fn part(&self) -> Result<OpenDocument<'_>, Failure> {
        let document = self
            .package
            .read()
            .map_err(|failure| failure.about(self.name()))?;
        Ok(OpenDocument {
            document,
            name: self.name(),
            options: self.source.options,
        })
    }

    /// The parts that findings are about and that are packed into the file, so that places in them count from their own start.
    pub fn parts(&self, findings: &[Finding]) -> Parts {
        let places = findings.iter().flat_map(|f| {
            std::iter::once(&f.place).chain(f.related.iter().map(|(place, _)| place))
        });
        let names: BTreeSet<&str> = places.map(|place| &*place.part).collect();
        self.package.parts(&names)
    }
}

/// A document, held to the limits.
pub struct OpenDocument<'d> {
    document: Box<dyn Document + 'd>,
    name: &'d str,
    options: &'d Options,
}

impl<'d> Deref for OpenDocument<'d> {
    type Target = dyn Document + 'd;

    fn deref(&self) -> &Self::Target {
        &*self.document
    }
}

impl OpenDocument<'_> {
    /// The file, as the user named it.
    pub fn name(&self) -> &str {
        self.name
    }

    /// The options that it was opened with.
    pub(crate) fn options(&self) -> &Options {
        self.options
    }

    /// The limits that it is held to.
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Why a run can time the program but not compute its values; `None` where it can do both.
    pub fn times_only(&self) -> Option<&'static str> {
        self.document.times_only()
    }

    /// The text of the machine that runs of the program rest on; `None` where there is none.
    ///
    /// # Errors
    /// Machine figures that were given and cannot be set.
    pub fn machine_text(&self) -> Result<Option<String>, Failure> {
        let own = self.document.own_machine();
        own.map(|(own, change)| self.options.machine_text(own, change.as_slice()))
            .transpose()
    }

    /// The machine that runs of the program are timed by; `None` where there is none.
    ///
    /// # Errors
    /// A machine file that cannot be read.
    pub fn timed_by(&self) -> Result<Option<TimedBy>, Failure> {
        let own = self.document.own_machine();
        own.map(|(own, _)| self.options.timed_by(own)).transpose()
    }

    /// The compiler's own estimate of the latency in nanoseconds, where the file carries one and runs rest on the same machine: that of the
    /// program, as it is built in. Beside another machine or calibration the two would differ by that alone.
    ///
    /// # Errors
    /// A machine file that cannot be used.
    pub fn estimate_ns(&self) -> Result<Option<f64>, Failure> {
        let planned = self.capabilities().planned;
        let Some(estimate) = planned.and_then(Planned::estimate_ns) else {
            return Ok(None);
        };
        let own = self
            .document
            .own_machine()
            .map(|(own, _)| machine::name(own));
        let is_own = self.timed_by()?.is_none_or(|by| {
            let is_changed = by.file.is_some() || by.calibration.is_some() || !by.set.is_empty();
            !is_changed && own == Some(&*by.name)
        });
        Ok(is_own.then_some(estimate))
    }

    /// The costs of the program that nobody knows, as the machine file says.
    fn guesses(&self, program: &Program<'_>) -> Result<Vec<Guess>, Failure> {
        let own = self.document.own_machine();
        let Some((own, changes)) = own.filter(|(own, _)| machine::has_guesses(own)) else {
            return Ok(Vec::new());
        };
        let (_, documented) = self.options.base_machine(own, changes.as_slice())?;
        machine::guesses(program, &documented, || {
            self.options.machine_text(own, changes.as_slice())
        })
    }

    /// The change of the machine with which guessed costs count the bytes that they leave out, at the rates that their sources name; nothing
    /// where none leaves out any.
    ///
    /// # Errors
    /// A machine file that cannot be used.
    pub fn guesses_with_bytes(&self, program: &Program<'_>) -> Result<Option<String>, Failure> {
        let guesses = self.guesses(program)?.into_iter();
        let changes: Vec<String> = guesses.filter_map(|guess| guess.with_bytes).collect();
        Ok((!changes.is_empty()).then(|| changes.join(",")))
    }

    /// The contract of the file (an `IOSpec`): its own, or that of its program.
    ///
    /// # Errors
    /// A file without a contract whose program cannot be made.
    pub fn contract(&self) -> Result<String, Failure> {
        if let Some(own) = self.capabilities().contracts {
            return own.contract();
        }
        let lowered = self.lower()?;
        let contract = chipless_spu::iospec::of_interface(
            &lowered.program.interface,
            self.has_varying_outputs(),
        );
        Ok(chipless_spu::yaml::write(&contract))
    }

    /// What is drawn of the file beside its run; nothing where its target draws nothing, or cannot draw this file.
    pub fn pictures(&self) -> Vec<Picture> {
        let draws = self.capabilities().draws;
        draws
            .and_then(|draws| draws.pictures().ok())
            .unwrap_or_default()
    }

    /// Makes the program of the file.
    ///
    /// # Errors
    /// What [`Document::lower`] says, and more tasks than the limit.
    pub fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let mut lowered = self.document.lower()?;
        let (tasks, most) = (lowered.program.tasks.len(), self.limits().tasks);
        if tasks as u64 > most {
            let text = format!("expected at most {most} tasks (--limit tasks), found {tasks}");
            let finding = rules::TASKS.at(Place::file(), text);
            return Err(Failure::program(vec![finding]));
        }
        for guess in self.guesses(&lowered.program)? {
            lowered.program.guessed.extend(guess.tasks);
            lowered.program.guess_lacks += guess.lacks;
            lowered.notes.push(guess.note);
        }
        Ok(lowered)
    }

    /// Puts advice that was tried into what a proof of the program found. The changes are tried on a program of their own.
    pub fn advise(&self, findings: &mut [Finding]) {
        if let Ok(mut lowered) = self.lower() {
            chipless_verify::advise(&mut lowered.program, findings);
            describe(findings, &lowered.program);
        }
    }

    /// What is wrong with the program of the document.
    fn check_program(&self) -> Result<Vec<Finding>, Failure> {
        let mut lowered = match self.lower() {
            Ok(lowered) => lowered,
            Err(failure) if failure.findings.is_empty() => return Err(failure),
            Err(failure) => return Ok(failure.findings),
        };
        let buffers = lowered.program.buffers.iter();
        let bytes: u128 = buffers.map(|buffer| u128::from(buffer.size)).sum();
        let most = self.limits().memory_bytes;
        let mut findings = Vec::new();
        if bytes > u128::from(most) {
            let text = format!(
                "expected buffers of at most {most} bytes together (--limit memory_bytes), found {bytes}"
            );
            findings.push(rules::MEMORY.at(Place::file(), text));
        }
        let proof = lowered
            .verify()
            .map(|verified| verified.warnings().to_vec());
        findings.extend(proof.unwrap_or_else(|mut found| {
            chipless_verify::advise(&mut lowered.program, &mut found);
            found
        }));
        describe(&mut findings, &lowered.program);
        Ok(findings)
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Whose it is, where that is known.
    pub target: Option<&'static str>,
    /// What was found, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Parts that the findings are about and that are packed into the file.
    pub parts: Parts,
    /// Whether the file could be read to its end.
    pub is_readable: bool,
    /// Whether a contract can be driven.
    pub drivable: Option<Drivable>,
    /// What was not checked, because something that the check takes was not passed.
    pub unchecked: Option<&'static str>,
}

impl Checked {
    /// The result for a file whose bytes nobody got, and why.
    pub fn unreadable(why: impl Into<String>) -> Checked {
        Checked {
            findings: vec![rules::UNREADABLE.at(Place::file(), why)],
            ..Checked::default()
        }
    }
}

/// Finds out what is wrong with a file: its structures, and its program under every order that it allows. A file that cannot be read is not a
/// failure: findings say why.
///
/// # Errors
/// Options that do not fit.
pub fn check(name: &str, bytes: &[u8], options: &Options) -> Result<Checked, Failure> {
    let target = match target_of(name, bytes, options) {
        Ok(target) => target,
        Err(failure) if failure.kind == FailureKind::Misuse => return Err(failure),
        Err(_) => {
            return Ok(Checked {
                findings: vec![unknown(name, bytes)],
                ..Checked::default()
            });
        }
    };
    check_as(target, name, bytes, options)
}

/// Finds out what is wrong with a file of this target.
///
/// # Errors
/// Options that do not fit.
pub fn check_as(
    target: &'static dyn Target,
    name: &str,
    bytes: &[u8],
    options: &Options,
) -> Result<Checked, Failure> {
    let mut checked = Checked {
        target: Some(target.name()),
        ..Checked::default()
    };
    let unread = |failure: Failure| {
        if failure.findings.is_empty() {
            Err(failure)
        } else {
            Ok(failure.findings)
        }
    };
    let file = match open_as(target, name, bytes, options) {
        Ok(file) => file,
        Err(failure) => {
            checked.findings = unread(failure)?;
            return Ok(checked);
        }
    };
    match file.part() {
        Ok(document) => {
            checked.is_readable = document.is_complete();
            checked.unchecked = document.unchecked();
            checked.findings = document.findings().to_vec();
            let contracts = document.capabilities().contracts;
            checked.drivable = contracts.and_then(Contracts::drivable);
            // Whoever sets limits wants to know what the program takes, and a machine may be too small for it.
            let asks = ["limit", "machine"].map(|option| options.value(option).is_some());
            let is_known = document.is_proven() && asks == [false; 2];
            if document.is_program() && !is_known {
                let found = document
                    .check_program()
                    .map_err(|failure| failure.about(name))?;
                // A target whose `lower` refuses what is wrong says it again.
                let known = document.findings();
                let new = found.into_iter().filter(|found| !known.contains(found));
                checked.findings.extend(new);
            }
        }
        Err(failure) => checked.findings = unread(failure)?,
    }
    checked.parts = file.parts(&checked.findings);
    Ok(checked)
}
