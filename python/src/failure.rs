//! Failures as exceptions.

use chipless::{Failure, Options};
use chipless_report::findings::{Checked, FileReport};
use pyo3::prelude::*;

/// The exception of a failure. The Python half knows the classes.
pub(crate) fn raise(py: Python<'_>, failure: &Failure) -> PyErr {
    let checked = Checked {
        path: &failure.subject,
        target: None,
        bytes: &[],
        parts: &[],
        findings: &failure.findings,
    };
    let findings = serde_json::to_string(&FileReport::from(&checked).findings);
    let made = py.import("chipless._errors").and_then(|module| {
        module.getattr("of")?.call1((
            failure.kind.name(),
            failure.to_string(),
            findings.unwrap_or_default(),
        ))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Options from their names and values.
pub(crate) fn options(given: &[(String, String)]) -> Result<Options, Failure> {
    let mut options = Options::with_files(chipless::disk::Disk);
    for (name, value) in given {
        options.set(name, value.as_str())?;
    }
    Ok(options)
}
