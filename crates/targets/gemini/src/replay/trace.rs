//! What the comparison needs of a trace.

use std::collections::HashMap;

/// When a workload ran in a trace, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of its first compute instruction.
    pub start: u64,
    /// End of its last.
    pub end: u64,
}

/// When things happened in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Largest end of all instructions.
    pub end: u64,
    /// Workloads by id.
    pub spans: HashMap<u32, Span>,
}
