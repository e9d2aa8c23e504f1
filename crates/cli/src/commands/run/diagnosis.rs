//! For the person with wrong numbers: outputs beside references, the first NaN, and what the numbers rest on.

use crate::failure::Failure;
use crate::files;
use chipless::{FailureKind, npy, suggest};
use chipless_model::{Grade, Port, Program, Storage};
use chipless_report::{Comparison, FirstNan, NanSearch};
use chipless_sim::{Nonfinite, Timeline, origin};
use std::path::{Path, PathBuf};

/// Outputs that have a reference: those with a file `NAME.npy` in a directory, or the one that a file is for.
fn references<'p>(
    program: &'p Program<'_>,
    path: &Path,
) -> Result<Vec<(&'p Port, PathBuf)>, Failure> {
    let ports = &program.interface.outputs;
    let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
    if path.is_dir() {
        let named = ports
            .iter()
            .map(|port| (port, path.join(format!("{}.npy", port.name))));
        let found: Vec<_> = named.filter(|(_, file)| file.exists()).collect();
        if found.is_empty() {
            let text = format!(
                "expected NAME.npy of an output ({}), found none",
                names.join(", ")
            );
            return Err(Failure::wrong(path.display(), text));
        }
        return Ok(found);
    }
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let port = ports
        .iter()
        .find(|port| port.name == stem)
        .or(match &ports[..] {
            [only] => Some(only),
            _ => None,
        });
    let port = port.ok_or_else(|| {
        let hint = suggest::hint(stem, names.iter().copied());
        let text = format!(
            "expected the name of an output ({}), found \"{stem}\"{hint}",
            names.join(", ")
        );
        Failure::wrong(path.display(), text)
    })?;
    Ok(vec![(port, path.to_owned())])
}

/// The outputs beside what they should be.
pub(super) fn compare(
    program: &Program<'_>,
    storage: &Storage<'_>,
    timeline: &Timeline,
    path: &Path,
) -> Result<Vec<Comparison>, Failure> {
    let compared = references(program, path)?.into_iter().map(|(port, path)| {
        let unreadable = |error: String| Failure::unreadable(path.display(), error);
        let file = files::open(&path).map_err(unreadable)?;
        let expected = npy::read_port(&file, port).map_err(unreadable)?;
        let held = storage.bytes(port.buffer);
        let found = held.get(..expected.len());
        let compared = found.and_then(|found| Comparison::of(port, found, &expected));
        let (mut comparison, place) = compared.ok_or_else(|| {
            Failure::wrong(
                path.display(),
                format_args!(
                    "expected {} bytes of output \"{}\", found {}",
                    expected.len(),
                    port.name,
                    held.len()
                ),
            )
        })?;
        if comparison.differing > 0 {
            let byte = place * port.element.bits() / 8;
            let task = origin(program, timeline, port.buffer, byte);
            comparison.task = task.map(|task| program.task_name(task));
        }
        Ok(comparison)
    });
    compared.collect()
}

/// Where a NaN was found, in the program's names.
pub(super) fn first_nan(program: &Program<'_>, found: Option<Nonfinite>) -> NanSearch {
    NanSearch(found.map(|found| FirstNan {
        task: program.task_name(found.task),
        buffer: program.buffers[found.buffer].name.clone(),
        offset: found.byte,
    }))
}

/// Refuses a program that rests on anything weaker than what was asked for.
pub(super) fn demand(program: &Program<'_>, path: &str, evidence: Grade) -> Result<(), Failure> {
    let weaker = chipless::unproven(program, evidence);
    if weaker.is_empty() {
        return Ok(());
    }
    let text = format!(
        "expected what it does to be {evidence} (--evidence), found\n  {}",
        weaker.join("\n  ")
    );
    Err(chipless::Failure::new(FailureKind::Unsupported, path, text).into())
}
