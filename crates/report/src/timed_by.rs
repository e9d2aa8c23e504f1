//! By which machine a run was timed, as summaries and pages say it.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Changes of a machine that are named; of more, the number is.
const NAMED: usize = 3;

/// The machine whose parameters a run was timed by.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct TimedBy {
    /// The machine's name for itself: `NPU4`.
    pub name: String,
    /// The file or the mesh that was given for it; null where it is built in.
    pub file: Option<String>,
    /// Changes of it, as `--set` takes them.
    pub set: Vec<String>,
    /// The calibration whose figures count, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// The calibrations that the machine has besides, where none was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_calibrations: Vec<String>,
    /// Parameters that the file lacks; their values are the built-in ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub defaulted: Vec<String>,
}

/// `NPU4 (--machine gives another)`, or `mesh.json with dram.efficiency=0.9`.
impl fmt::Display for TimedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => f.write_str(file)?,
            None => write!(f, "{} (--machine gives another)", self.name)?,
        }
        match &*self.defaulted {
            [] => {}
            few if few.len() <= NAMED => write!(f, " (it lacks {}: built-in)", few.join(", "))?,
            many => write!(f, " (it lacks {} parameters: built-in)", many.len())?,
        }
        if let Some(calibration) = &self.calibration {
            write!(f, ", calibration {calibration}")?;
        }
        if !self.other_calibrations.is_empty() {
            let others = self.other_calibrations.join(", ");
            write!(
                f,
                " by its compiler's figures (--calibration {others}: by measured ones)"
            )?;
        }
        match &*self.set {
            [] => Ok(()),
            few if few.len() <= NAMED => write!(f, " with {}", few.join(", ")),
            many => write!(f, " with {} changed parameters", many.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_named_with_what_was_changed() {
        let mut by = TimedBy {
            name: "NPU4".into(),
            file: None,
            set: vec![],
            calibration: None,
            other_calibrations: vec![],
            defaulted: vec![],
        };
        assert_eq!(by.to_string(), "NPU4 (--machine gives another)");
        by.other_calibrations = vec!["silicon".into()];
        assert_eq!(
            by.to_string(),
            "NPU4 (--machine gives another) by its compiler's figures (--calibration silicon: by measured ones)"
        );
        by.other_calibrations.clear();
        by.file = Some("mine.toml".into());
        by.set = vec!["dma.latency=500".into()];
        by.calibration = Some("silicon".into());
        assert_eq!(
            by.to_string(),
            "mine.toml, calibration silicon with dma.latency=500"
        );
        by.defaulted = vec!["shave.scale".into()];
        assert_eq!(
            by.to_string(),
            "mine.toml (it lacks shave.scale: built-in), calibration silicon with dma.latency=500"
        );
        by.set = vec!["clock.dpu=2x".into(); 4];
        assert!(by.to_string().ends_with("with 4 changed parameters"));
    }
}
