//! Workloads on a device: programs of any target, many at a time.

mod alone;
mod calibrate;
mod load;
mod study;

pub use calibrate::{Calibration, Pair, calibrate};
pub use load::with_program;
pub use study::{Output, Request, check, run};

use crate::failure::{Failure, FailureKind};
use crate::machine::figures;
use crate::options::Options;
use crate::targets::TARGETS;
use chipless_device::Machine;
use chipless_device::figures::is_figure;
use chipless_model::Finding;

pub use chipless_device::{Breakdown, Engine, Record, Report, Status, Workload, Yields, yields};

/// A time such as `350us`, in picoseconds.
pub fn time(text: &str) -> Option<u64> {
    chipless_device::quantity::time(text, None)
}

/// A machine with a device: its name, and its figures as text.
#[derive(Clone, Debug)]
struct Described {
    /// The file that it stands in; `None` for one that comes with Chipless.
    file: Option<String>,
    machine: Machine,
}

/// The machine of this name, or of this machine file. The error says what was expected.
fn machine(name: &str, path: &str, options: &Options) -> Result<Described, String> {
    let mut known = TARGETS.iter().flat_map(|target| target.machines());
    let known = known.find(|(known, _)| *known == name);
    let (text, file) = match known {
        Some((_, text)) => ((*text).to_owned(), None),
        None if options.exists(path) => {
            let input = options.open(path).map_err(|failure| failure.message)?;
            let text = input.text().map_err(|failure| failure.message)?.to_owned();
            toml::from_str::<toml::Table>(&text).map_err(|error| error.to_string())?;
            (text, Some(path.to_owned()))
        }
        None => {
            return Err(format!(
                "expected npu4 or a machine file, found \"{name}\", which is neither"
            ));
        }
    };
    let mut machine = Machine {
        name: name.to_owned(),
        ..Machine::default()
    };
    for figure in figures(&text) {
        let value = figure.value.trim_matches('"').to_owned();
        if let Some(grade) = figure.grade {
            machine.grades.insert(figure.key.clone(), grade);
        }
        if is_figure(&figure.key) {
            machine.values.push((figure.key, value));
        } else {
            machine.program.push((figure.key, value));
        }
    }
    if !machine.values.iter().any(|(key, _)| key == "device.tiles") {
        return Err(format!(
            "expected a machine that describes a device (npu4), found \"{name}\", which has no device.tiles"
        ));
    }
    Ok(Described { file, machine })
}

/// A mistake in a workload file.
fn mistake(file: &str, finding: Finding) -> Failure {
    Failure {
        findings: vec![finding],
        ..Failure::new(
            FailureKind::Unreadable,
            file,
            "is no workload that can be simulated",
        )
    }
}
