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

/// The language of a text: that of the editor's id where it names one, else by ending and content.
pub(crate) fn language(id: &str, name: &str, text: &str) -> &'static dyn Language {
    let all = ALL.iter().copied();
    if let Some(known) = all.clone().find(|language| language.id() == id) {
        return known;
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let of_extension = |l: &&dyn Language| l.extensions().contains(&extension);
    let by_both = all.clone().filter(of_extension).find(|l| l.recognize(text));
    by_both
        .or_else(|| all.clone().find(of_extension))
        .or_else(|| all.clone().find(|l| l.recognize(text)))
        .unwrap_or(&Plain)
}

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
