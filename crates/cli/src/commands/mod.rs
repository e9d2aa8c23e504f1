//! One file for each command, and how they all open a program.

pub(crate) mod check;
mod contract;
pub(crate) mod diff;
pub(crate) mod explain;
#[cfg(feature = "full")]
pub(crate) mod full;
#[cfg(not(feature = "full"))]
#[path = "left_out.rs"]
pub(crate) mod full;
pub(crate) mod info;
pub(crate) mod list;
mod order;
mod page;
mod pool;
pub(crate) mod report;
pub(crate) mod retime;
pub(crate) mod run;
pub(crate) mod targets;
pub(crate) mod view;

use crate::failure::{Failure, Told};
use crate::files::{self, Bytes};
use crate::terminal;
use chipless::{Behind, File, OpenDocument, Options};
use chipless_model::Finding;
use chipless_report::findings::{Checked, FileReport};
use std::path::Path;

/// A file.
struct Opened {
    /// As the user named it.
    path: String,
    bytes: Bytes,
}

impl Opened {
    fn open(path: &Path) -> Result<Opened, Failure> {
        let path_shown = path.display().to_string();
        match files::open(path) {
            Ok(bytes) => Ok(Opened {
                path: path_shown,
                bytes: full::program(path, bytes)?,
            }),
            Err(error) => Err(Failure::unreadable(path_shown, error)),
        }
    }

    /// The name of the file's target.
    fn target(&self) -> Option<&'static str> {
        chipless::recognize(&self.path, &self.bytes).map(chipless::Target::name)
    }

    /// Whether files of its target take an option.
    fn has_option(&self, name: &str) -> bool {
        let target = self.target().unwrap_or_default();
        let mut options = chipless::options().into_iter();
        options.any(|(spec, owners)| spec.name == name && owners.contains(&target))
    }

    /// Refuses files of other targets.
    fn expect(&self, target: &str, expected: &str) -> Result<(), Failure> {
        let found = match self.target() {
            Some(found) if found == target => return Ok(()),
            Some(found) => format!("a program of target {found}"),
            None => chipless::kind_of(&self.path, &self.bytes)
                .unwrap_or_else(|| "a file of no target".to_owned()),
        };
        let text = format!("expected {expected}, found {found}");
        Err(Failure::unreadable(&self.path, text))
    }

    /// Opens the file and does something with it. Findings that end it are shown with their places in the file.
    fn with_file<T>(
        &self,
        options: &Options,
        then: impl FnOnce(&File<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let file = chipless::open(&self.path, &self.bytes, options)
            .map_err(|failure| self.told(failure, None))?;
        then(&file).map_err(|failure| match failure {
            Failure::Plain(failure) => self.told(*failure, Some(&file)),
            failure => failure,
        })
    }

    /// Reads the file and does something with its document.
    fn with_document<T>(
        &self,
        options: &Options,
        then: impl FnOnce(&OpenDocument<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with_file(options, |file| then(&file.read()?))
    }

    /// Makes the program ready to be driven and does something with it. Findings that end it are shown with their places in the file.
    fn with_behind<T>(
        &self,
        options: &Options,
        then: impl FnOnce(Behind<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        chipless::with_behind(&self.path, &self.bytes, options, then).map_err(|failure| {
            match failure {
                Failure::Plain(failure) => self.told(*failure, None),
                failure => failure,
            }
        })
    }

    /// A failure with its findings in full.
    fn told(&self, failure: chipless::Failure, file: Option<&File<'_>>) -> Failure {
        let failure = failure.about(&self.path);
        if failure.subject != self.path {
            return failure.into();
        }
        let parts = file.map_or_else(Vec::new, |file| file.parts(&failure.findings));
        told(&self.path, self.target(), &self.bytes, &parts, failure)
    }
}

/// A failure with its findings in full, and the bytes of the file that they are about.
fn told(
    path: &str,
    target: Option<&str>,
    bytes: &[u8],
    parts: &[(String, Vec<u8>)],
    failure: chipless::Failure,
) -> Failure {
    let failure = failure.about(path);
    let errors: Vec<Finding> = failure
        .findings
        .iter()
        .filter(|f| f.is_error())
        .cloned()
        .collect();
    if errors.is_empty() {
        return failure.into();
    }
    let checked = Checked {
        path,
        target,
        bytes,
        parts,
        findings: &errors,
    };
    let text = checked.text(terminal::err(), false, false);
    let findings = serde_json::to_value(FileReport::from(&checked).findings);
    Told {
        text: format!("{path}: {}\n\n{}\n", failure.message, text.trim_end()),
        details: findings
            .into_iter()
            .map(|found| ("findings", found))
            .collect(),
        failure,
    }
    .into()
}

/// `3%` or `3`, for options.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    let number = number.ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| "expected a percentage from 0 on, such as 3%".to_owned())
}
