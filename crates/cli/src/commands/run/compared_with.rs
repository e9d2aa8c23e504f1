//! What `--compare` is given.

use chipless::npy;
use chipless_model::ElementType;
use std::path::Path;

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
