//! What a search found: the mapping with its figures, or why there is none.

use crate::Mapping;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The mapping, if there is one.
    pub mapping: Option<Mapping>,
    /// Cycles from the first input to the last output of the first row.
    pub latency: u32,
    /// Cycles by which operands of one node miss each other.
    pub mismatch: u32,
    /// Cycles from one row to the next.
    pub initiation_interval: u32,
    /// No mapping of the graph onto the fabric has a smaller interval.
    pub interval_bound: u32,
    /// Links that carry something.
    pub links: u32,
    /// No mapping with this interval and without mismatch has a smaller latency.
    pub latency_bound: u32,
    /// Trials made.
    pub trials: u32,
    /// Why there is no mapping, or why a mapping has a mismatch.
    pub reason: Option<String>,
    /// Whether the reason proves that there is none.
    pub proved: bool,
}

impl Outcome {
    pub(crate) fn refused(reason: String, proved: bool) -> Outcome {
        Outcome {
            mapping: None,
            latency: 0,
            mismatch: 0,
            initiation_interval: 0,
            interval_bound: 0,
            links: 0,
            latency_bound: 0,
            trials: 0,
            reason: Some(reason),
            proved,
        }
    }

    /// Whether no mapping has a smaller initiation interval.
    pub fn is_interval_proved(&self) -> bool {
        self.mapping.is_some() && self.initiation_interval == self.interval_bound
    }
}
