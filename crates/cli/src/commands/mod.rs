//! One file for each command, and how they all open a program.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod drive;
pub(crate) mod explain;
pub(crate) mod format;
pub(crate) mod info;
pub(crate) mod iospec;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod pack;
pub(crate) mod report;
pub(crate) mod run;

use crate::failure::{Exit, Failure};
use crate::files::{self, Bytes};
use crate::targets::{Document, Lowering, Source, Target};
use crate::terminal;
use chipless_model::{Finding, Limits};
use chipless_report::findings::Checked;
use std::path::Path;

/// A file whose target is known.
struct Opened {
    /// As the user named it.
    path: String,
    target: Target,
    bytes: Bytes,
}

impl Opened {
    fn open(path: &Path) -> Result<Opened, Failure> {
        let name = path.display().to_string();
        let bytes = files::open(path).map_err(|error| Failure::unusable(&name, error))?;
        let target = Target::recognize(path, &bytes)
            .ok_or_else(|| Failure::unusable(&name, unknown(&bytes)))?;
        Ok(Opened {
            path: name,
            target,
            bytes,
        })
    }

    fn source(&self) -> Source<'_> {
        Source {
            path: &self.path,
            bytes: &self.bytes,
            rules: None,
        }
    }

    /// Reads the file and does something with its document.
    fn with_document<T>(
        &self,
        lowering: &Lowering,
        then: impl FnOnce(&dyn Document) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let done = self
            .target
            .with_document(self.source(), lowering, |document| {
                if !document.is_complete() {
                    return Err(self.refuse("cannot be read", document.findings(), Exit::Unusable));
                }
                then(document)
            });
        done.unwrap_or_else(|findings| {
            Err(self.refuse("cannot be read", &findings, Exit::Unusable))
        })
    }

    /// The end of a command that findings stand in the way of.
    fn refuse(&self, why: &str, findings: &[Finding], exit: Exit) -> Failure {
        let errors: Vec<Finding> = findings.iter().filter(|f| f.is_error()).cloned().collect();
        let paint = terminal::err();
        let parts = self
            .target
            .parts(self.source(), &Limits::default(), &errors);
        let target = Some(self.target.name());
        let text = Checked {
            path: &self.path,
            target,
            bytes: &self.bytes,
            parts: &parts,
            findings: &errors,
        }
        .text(paint, false);
        Failure::Said(
            exit,
            format!("{}: {why}\n\n{}\n", self.path, text.trim_end()),
        )
    }

    /// The end of a command for which the file gave no program.
    fn refuse_program(&self, findings: &[Finding]) -> Failure {
        let exit = Exit::of(findings).max(Exit::Wrong);
        if findings.is_empty() {
            return Failure::unusable(
                &self.path,
                "expected a program, found a file that holds none (chipless drive takes a contract, chipless map a fabric)",
            );
        }
        let why = if exit == Exit::Unusable {
            "is not supported"
        } else {
            "is not a program that can run"
        };
        self.refuse(why, findings, exit)
    }
}

/// What to say about a file that no target knows.
fn unknown(bytes: &[u8]) -> String {
    let start: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let found = if start.is_empty() {
        "an empty file".to_owned()
    } else {
        format!("a file that starts with {}", start.join(" "))
    };
    format!("expected {}, found {found}", Target::EXPECTED)
}
