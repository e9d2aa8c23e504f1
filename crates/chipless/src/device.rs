//! Workloads on a device: programs of any target, many at a time.

mod alone;
mod calibrate;
mod load;
mod study;

pub use calibrate::{Calibration, Pair, calibrate};
pub use load::with_program;
pub use study::{Output, Request, check, run};

use crate::failure::{Failure, FailureKind};
use crate::machine::{built_in, completed, figures, nearest, unknown};
use crate::options::Options;
use chipless_device::Machine;
use chipless_device::figures::is_figure;
use chipless_model::Finding;

pub use chipless_device::{
    Breakdown, Engine, Point, Record, Report, Status, Workload, Yields, yields,
};

/// A time such as `350us`, in picoseconds.
pub fn time(text: &str) -> Option<u64> {
    chipless_device::quantity::time(text, None)
}

/// The machine file whose figures of the device stand in for those that another file lacks.
const NPU4: &str = chipless_npu::MACHINES[0].1;

/// A machine with a device: its name, and its figures as text.
#[derive(Clone, Debug)]
struct Described {
    /// The file that it stands in; `None` for one that comes with Chipless.
    file: Option<String>,
    machine: Machine,
}

/// The machine of this name, or of this machine file. The error says what was expected.
fn machine(name: &str, path: &str, options: &Options) -> Result<Described, String> {
    let (text, file) = match built_in(name) {
        Some((.., text)) => (text.to_owned(), None),
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
    let has_device = figures(&text).iter().any(|f| f.key == "device.tiles");
    if !has_device {
        return Err(format!(
            "expected a machine that describes a device (npu4), found \"{name}\", which has no device.tiles"
        ));
    }
    // A machine of another generation has programs' figures of its own; those of the device are the NPU4's.
    let near = nearest(&text).map_or(NPU4, |(_, _, near)| near);
    if let Some(wrong) = unknown(&text, near) {
        return Err(wrong);
    }
    let programs = completed(&text, near);
    let whole = completed(&programs.text, NPU4);
    let mut machine = Machine {
        name: name.to_owned(),
        defaulted: programs
            .defaulted
            .into_iter()
            .chain(whole.defaulted)
            .collect(),
        ..Machine::default()
    };
    let known = figures(near);
    for figure in figures(&whole.text) {
        let value = figure.value.trim_matches('"').to_owned();
        // Without a remark, a figure is worth what the same one is worth that comes with Chipless.
        let same = || {
            known
                .iter()
                .find(|k| k.key == figure.key && k.value == figure.value)
        };
        if let Some(grade) = figure.grade.or_else(|| same()?.grade) {
            machine.grades.insert(figure.key.clone(), grade);
        }
        if is_figure(&figure.key) {
            machine.values.push((figure.key, value));
        } else {
            machine.program.push((figure.key, value));
        }
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
