//! IOSpec: the contract between a host and the program on the accelerator.
//!
//! [`Document::read`] makes a typed document of YAML, with findings that know line and column; [`lint`] says what is
//! doubtful; [`Document::write`] prints it so that it reads the same. [`sequence`] holds the two state machines that say
//! what may be written when, [`Session`] drives one, with the values and the words on the [`wire`].

mod against;
pub mod diagram;
mod document;
mod drivable;
mod flat;
mod host;
mod info;
mod interface;
mod lint;
mod quantize;
mod read;
pub mod rules;
pub mod sequence;
mod session;
mod violation;
pub mod wire;

pub use crate::femto::{Bank, Core, Femto, FemtoSequence, FemtoVector, VectorKind};
pub use against::{Expected, against, of_lowered, of_program};
pub use document::{Document, Member, Quantization, Sequence, SequenceKind, Side, Stage, Vector};
pub use drivable::{Call, Event, Verdict, drivable};
pub use flat::convert;
pub use host::{HostFile, host};
pub use info::{info, raw};
pub use interface::of_interface;
pub use lint::lint;
pub use quantize::{dequantize, quantize, quantize_to};
pub use session::{Act, Behind, Reading, Sent, Session};
pub use violation::Violation;

use std::fmt;

/// Whose rules count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RuleSet {
    /// The text of the format: strict order within a sequence, nothing twice, outputs in sequence order.
    #[default]
    Spec,
    /// What version 4.1 of the Python package femtorun does.
    Femtorun41,
}

impl RuleSet {
    /// Both.
    pub const ALL: [RuleSet; 2] = [RuleSet::Spec, RuleSet::Femtorun41];

    /// As the command line names it.
    pub const fn name(self) -> &'static str {
        match self {
            RuleSet::Spec => "spec",
            RuleSet::Femtorun41 => "femtorun-4.1",
        }
    }
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
