//! The languages, a module each.

mod assembler;
pub(crate) mod dfg;
pub(crate) mod iospec;
mod json;
pub(crate) mod machine;
mod plan;
mod workload;
pub(crate) mod yaml;

use crate::analysis::Analysis;
use crate::language::Language;

/// All of them; where several share an ending, the first whose content fits, or else the first.
pub(crate) static ALL: &[&dyn Language] = &[
    &dfg::Dfg,
    &iospec::IoSpec,
    &workload::WorkloadFile,
    &plan::PlanFile,
    &assembler::Assembler,
    &machine::MachineFile,
    &json::Json,
];

/// A text of no known kind.
pub(crate) struct Plain;

impl Language for Plain {
    fn id(&self) -> &'static str {
        "plaintext"
    }

    fn name(&self) -> &'static str {
        "text"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    fn recognize(&self, _text: &str) -> bool {
        false
    }

    fn analyse(&self, _text: &str) -> Analysis {
        Analysis::default()
    }
}
