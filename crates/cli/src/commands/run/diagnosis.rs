//! For the person with wrong numbers: outputs beside references, the first NaN, and what the numbers rest on.

use super::compared_with::{ComparedWith, Model, ModelOutput, compared_with};
use crate::commands::full;
use crate::failure::Failure;
use crate::files::{self, Names};
use chipless::{FailureKind, npy, suggest};
use chipless_kernels::cast::decode_f64;
use chipless_model::{Grade, Kind, Port, Program, Scale, Storage, TaskId};
use chipless_report::{Comparison, FirstNan, Reference, Searched, Tolerance};
use chipless_sim::{Timeline, origin};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Outputs that have a reference: those with a file in a directory, `NAME.npy` as `--output-dir` names it, `output_NAME.npy` or `output_N.npy`, under either name
/// of an output that has two; or the one that a file is for.
fn references<'p>(
    program: &'p Program<'_>,
    path: &Path,
) -> Result<Vec<(&'p Port, PathBuf)>, Failure> {
    let ports = &program.interface.outputs;
    let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
    if path.is_dir() {
        let (mut plain, mut prefixed) = (Names::default(), Names::default());
        let named: Vec<_> = ports
            .iter()
            .enumerate()
            .map(|(number, port)| {
                // A file system may allow what Chipless does not write.
                let exact = |name: &str| {
                    let is_file = !name.contains(['/', '\\']);
                    is_file.then(|| path.join(format!("{name}.npy")))
                };
                let mut files: Vec<PathBuf> = exact(&port.name).into_iter().collect();
                files.extend([
                    plain.npy(path, &port.name),
                    prefixed.npy(path, &format!("output_{}", port.name)),
                ]);
                if let Some(alias) = &port.alias {
                    files.extend(exact(alias));
                    files.push(plain.npy(path, alias));
                    files.push(prefixed.npy(path, &format!("output_{alias}")));
                }
                files.push(path.join(format!("output_{number}.npy")));
                (port, files)
            })
            .collect();
        let found: Vec<_> = named
            .iter()
            .filter_map(|(port, files)| {
                Some((*port, files.iter().find(|file| file.exists())?.clone()))
            })
            .collect();
        if found.is_empty() {
            let files = named.iter().flat_map(|(_, files)| files);
            let files = files.filter_map(|file| file.file_name());
            let mut files: Vec<_> = files.map(OsStr::to_string_lossy).collect();
            files.dedup();
            let text = format!("expected {}, found none", files.join(" or "));
            return Err(Failure::unreadable(path.display(), text));
        }
        return Ok(found);
    }
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let prefixed = stem.strip_prefix("output_").unwrap_or(stem);
    let named = |name: &str| Port::position(ports, name).map(|at| &ports[at]);
    let numbered = || {
        prefixed
            .parse()
            .ok()
            .and_then(|number: usize| ports.get(number))
    };
    let port = named(stem)
        .or_else(|| named(prefixed))
        .or_else(numbered)
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
        Failure::unreadable(path.display(), text)
    })?;
    Ok(vec![(port, path.to_owned())])
}

/// The outputs beside what they should be; without a tolerance, that of their types.
pub(super) fn compare(
    program: &Program<'_>,
    storage: &Storage<'_>,
    timeline: &Timeline,
    model: Model<'_>,
    tolerance: Option<Tolerance>,
) -> Result<Vec<Comparison>, Failure> {
    let path = model.path;
    let beside = |port: &Port, path: &Path, file: &[u8]| {
        let unreadable = |error: String| Failure::unreadable(path.display(), error);
        let expected = npy::reference(file, port).map_err(unreadable)?;
        let scale = scale(port, &expected).map_err(unreadable)?;
        let unit = scale.map_or(1.0, |scale| scale.step.abs());
        let numbers = |start: u64, slots: &mut [f64]| expected.fill(port.element, start, slots);
        let reference = Reference {
            numbers: &numbers,
            scale,
            tolerance: tolerance.unwrap_or_else(|| Tolerance::of(port.element, unit)),
        };
        let found = chipless::output(port, storage)?;
        let compared = Comparison::of(port, found, &reference);
        let (mut comparison, place) = compared
            .ok_or_else(|| unreadable(format!("expected numbers, as {} has them", port.element)))?;
        if comparison.differing > 0 {
            let byte = place * port.element.bits() / 8;
            let task = origin(program, timeline, port.buffer, byte);
            comparison.task = task.map(|task| program.task_name(task));
        }
        Ok(comparison)
    };
    if compared_with(path) == ComparedWith::Model {
        let made = made_by(program, storage, model)?;
        let compared = made
            .iter()
            .map(|(port, made)| beside(port, path, &made.file()));
        let mut compared: Vec<Comparison> = compared.collect::<Result<_, _>>()?;
        if compared.iter().any(|comparison| !comparison.agrees)
            && let Ok(in_half) = made_by(
                program,
                storage,
                Model {
                    in_half: true,
                    ..model
                },
            )
        {
            let pairs = made.iter().zip(&in_half);
            for (comparison, ((_, made), (_, rounded))) in compared.iter_mut().zip(pairs) {
                comparison.rounding = made.rounding(rounded);
            }
        }
        return Ok(compared);
    }
    let compared = references(program, path)?.into_iter().map(|(port, path)| {
        let file =
            files::open(&path).map_err(|error| Failure::unreadable(path.display(), error))?;
        beside(port, &path, &file)
    });
    compared.collect()
}

/// Outputs that a model has as well, with what it computes for the inputs of the run: in single precision, or with layers rounded to half.
fn made_by<'p>(
    program: &'p Program<'_>,
    storage: &Storage<'_>,
    model: Model<'_>,
) -> Result<Vec<(&'p Port, ModelOutput)>, Failure> {
    let numbers = |port: &Port| {
        let bytes = chipless::output(port, storage).map_err(|failure| failure.message)?;
        let mut numbers = vec![0.0; port.shape.iter().product::<u64>() as usize];
        let decoded = decode_f64(port.element, bytes, &mut numbers);
        decoded.map_err(|error| error.to_string())?;
        Ok(numbers)
    };
    let inputs = (program.target, &*program.interface.inputs);
    let made = full::model_outputs(model, inputs, &numbers)?;
    let ports = &program.interface.outputs;
    let alone = ports.len() == 1 && made.len() == 1;
    let names: Vec<String> = made.iter().map(|output| output.name.clone()).collect();
    let found: Vec<(&Port, ModelOutput)> = made
        .into_iter()
        .filter_map(|output| {
            let at = Port::position(ports, &output.name).or(alone.then_some(0))?;
            Some((&ports[at], output))
        })
        .collect();
    if found.is_empty() {
        let own: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
        let text = format!(
            "expected a model with an output of the program ({}), found {}",
            own.join(", "),
            names.join(", ")
        );
        return Err(Failure::unreadable(model.path.display(), text));
    }
    Ok(found)
}

/// What the integers of an output stand for in the numbers of its reference, where that has the reals.
fn scale(port: &Port, expected: &npy::Reference<'_>) -> Result<Option<Scale>, String> {
    let npy::Reference::Numbers(numbers) = expected else {
        return Ok(None);
    };
    if port.element.kind() == Kind::Float || numbers.is_integer() {
        return Ok(None);
    }
    if port.scale.is_some() {
        return Ok(port.scale);
    }
    let elements = port.shape.iter().product::<u64>() as usize;
    let mut reals = numbers.reals(0, elements);
    match reals.find(|real| real.fract() != 0.0) {
        None => Ok(None),
        Some(real) => Err(format!(
            "expected whole numbers, as output \"{}\" is {}, found {real}: the file does not hold the scale of this output. Pass numpy.round(x / scale) + zero_point",
            port.name, port.element
        )),
    }
}

/// Looks for the place where numbers go wrong, task by task.
#[derive(Default)]
pub(super) struct Search(Searched);

impl Search {
    /// Looks at what a task has just written.
    pub(super) fn observe(&mut self, program: &Program<'_>, task: TaskId, storage: &Storage<'_>) {
        let Searched { first_nan, clipped } = &mut self.0;
        if first_nan.0.is_none() {
            let found = chipless_sim::nonfinite(program, task, storage);
            first_nan.0 = found.map(|found| FirstNan {
                task: program.task_name(found.task),
                buffer: program.buffers[found.buffer].name.clone(),
                offset: found.byte,
            });
        }
        let values = chipless_sim::clipped(program, task, storage);
        if values > 0 {
            clipped.values += values;
            clipped.tasks += 1;
            let first = || program.task_name(task);
            clipped.first.get_or_insert_with(first);
        }
    }

    pub(super) fn found(self) -> Searched {
        self.0
    }
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
