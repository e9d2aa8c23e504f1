//! The one place that knows which targets there are.
//!
//! Its files and those of targets, options, machines and abilities name each other in a circle, since users may ask of one target what
//! another has: an option, a figure or an ability that a file does not have is refused with the names of the targets that do, and so what a
//! target is given looks at the list of all of them.

#[cfg(feature = "full")]
mod dsa;
#[cfg(feature = "full")]
mod gemini;
#[cfg(feature = "full")]
mod neuron;
mod npu;
pub(crate) mod spu;

use crate::failure::Failure;
use crate::options::{self, OptionSpec};
use crate::target::Target;
use chipless_model::Rule;
use chipless_model::suggest;

/// All targets, in the order in which they are asked whether a file is theirs.
pub static TARGETS: &[&dyn Target] = &[
    &npu::Npu,
    #[cfg(feature = "full")]
    &neuron::Neuron,
    #[cfg(feature = "full")]
    &gemini::Gemini,
    &spu::Spu,
    #[cfg(feature = "full")]
    &dsa::Dsa,
];

/// What to add where a target or a file is unknown: the targets that this build has not.
pub(crate) const LEFT_OUT: &str = if cfg!(feature = "full") {
    ""
} else {
    " (neuron, gemini and dsa are not in this build, which was made without the feature `full`)"
};

/// The target of this name.
pub fn target(name: &str) -> Option<&'static dyn Target> {
    TARGETS.iter().copied().find(|target| target.name() == name)
}

/// The target of a name that a user typed.
///
/// # Errors
/// A name that no target has.
pub fn known(name: &str) -> Result<&'static dyn Target, Failure> {
    target(name).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name()).collect();
        let hint = suggest::hint(name, names.iter().copied());
        let text = format!(
            "expected one of {}, found \"{name}\"{hint}{LEFT_OUT}",
            names.join(", ")
        );
        Failure::misuse("target", text)
    })
}

/// Every rule: of files, of the program model, of all targets.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let targets = TARGETS.iter().flat_map(|target| target.rules());
    crate::rules::ALL
        .iter()
        .chain(chipless_verify::RULES)
        .chain(chipless_device::rules::ALL)
        .chain(crate::texts::ALL)
        .copied()
        .chain(targets)
}

/// The same, each rule once, with the targets whose files it is about: all of them for rules of files and of the program model.
pub fn rules_of_targets() -> Vec<(&'static Rule, Vec<&'static str>)> {
    let everyone: Vec<&str> = TARGETS.iter().map(|target| target.name()).collect();
    let shared = crate::rules::ALL.iter().chain(chipless_verify::RULES);
    let shared = shared.chain(chipless_device::rules::ALL);
    let shared = shared.chain(crate::texts::ALL);
    let mut all: Vec<(&'static Rule, Vec<&'static str>)> =
        shared.map(|rule| (*rule, everyone.clone())).collect();
    for target in TARGETS {
        for rule in target.rules() {
            match all.iter_mut().find(|(known, _)| known.code == rule.code) {
                Some((_, targets)) => targets.push(target.name()),
                None => all.push((rule, vec![target.name()])),
            }
        }
    }
    all
}

/// Every option with the targets that have it: first those of all targets.
pub fn options() -> Vec<(&'static OptionSpec, Vec<&'static str>)> {
    let mut all: Vec<(&'static OptionSpec, Vec<&'static str>)> = Vec::new();
    let everyone: Vec<&str> = TARGETS.iter().map(|target| target.name()).collect();
    all.extend(options::COMMON.iter().map(|spec| (spec, everyone.clone())));
    for target in TARGETS {
        for spec in target.options() {
            match all.iter_mut().find(|(known, _)| known.name == spec.name) {
                Some((_, owners)) => owners.push(target.name()),
                None => all.push((spec, vec![target.name()])),
            }
        }
    }
    all
}
