//! What `--compare` is given.

use chipless::npy;
use chipless_model::ElementType;
use clap::Args;
use std::path::Path;

/// What --compare has to know of a model besides its file.
#[derive(Args, Debug)]
pub(super) struct ModelOptions {
    /// Fix an input of the model that --compare computes.
    ///
    /// An input that the program does not have, as it was fixed when that was made: the number or the array of `schedule --constant`.
    #[arg(
        long = "constant",
        value_name = "NAME=NUMBER|FILE.npy",
        requires = "compare"
    )]
    pub(super) constants: Vec<String>,
}

impl ModelOptions {
    /// The model of a file.
    pub(super) fn of<'m>(&'m self, path: &'m Path) -> Model<'m> {
        Model {
            path,
            constants: &self.constants,
            in_half: false,
        }
    }
}

/// A model to compute.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "full"),
    expect(dead_code, reason = "what schedules networks computes them")
)]
pub(crate) struct Model<'m> {
    pub(crate) path: &'m Path,
    /// Inputs that are fixed.
    pub(crate) constants: &'m [String],
    /// Whether the results of its layers are rounded to half precision.
    pub(crate) in_half: bool,
}

/// An output as a model computes it.
pub(crate) struct ModelOutput {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    /// Row by row.
    pub(crate) numbers: Vec<f64>,
}

impl ModelOutput {
    /// The numbers as a file.
    pub(super) fn file(&self) -> Vec<u8> {
        let bytes = self.numbers.iter().flat_map(|n| n.to_le_bytes());
        let header = npy::write_header(ElementType::Float64, &self.shape);
        header.into_iter().chain(bytes).collect()
    }

    /// The norm of what rounding changes as a part of the norm of the numbers, where those are finite and not all 0.
    pub(super) fn rounding(&self, rounded: &ModelOutput) -> Option<f64> {
        let pairs = self.numbers.iter().zip(&rounded.numbers);
        let changed: f64 = pairs
            .map(|(exact, rounded)| (exact - rounded).powi(2))
            .sum();
        let all: f64 = self.numbers.iter().map(|n| n.powi(2)).sum();
        let part = (changed / all).sqrt();
        part.is_finite().then_some(part)
    }
}

/// What a run is compared with follows from what is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedWith {
    /// Arrays.
    Values,
    /// The trace of a schedule, as text.
    Trace,
    /// A compiler's schedule trace.
    Schedule,
    /// A model, which is computed for the same inputs.
    Model,
}

impl ComparedWith {
    /// Whether outputs are compared with numbers, not tasks with times.
    pub(super) fn is_of_values(self) -> bool {
        matches!(self, ComparedWith::Values | ComparedWith::Model)
    }
}

pub(super) fn compared_with(path: &Path) -> ComparedWith {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() || name.ends_with(".npy") {
        ComparedWith::Values
    } else if name.ends_with(".json") || name.ends_with(".json.gz") {
        ComparedWith::Schedule
    } else if name.ends_with(".onnx") {
        ComparedWith::Model
    } else {
        ComparedWith::Trace
    }
}
