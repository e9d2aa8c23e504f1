//! IOSpec and FQIR: the contract between a host and Femtosense's sparse processing unit (SPU), and the program behind it.
//!
//! Three kinds of file belong to this target:
//!
//! | file | what it is | module |
//! |---|---|---|
//! | IOSpec (YAML) | inputs, outputs, and which come before which | [`iospec`] |
//! | runtime plan (JSON) | the quantised program, executable bit for bit | [`fqir`] |
//! | `.femto` | what a compile leaves for the firmware: vectors, sequences, encrypted memories | [`iospec::Femto`] |
pub mod fqir;
pub mod iospec;
pub mod yaml;

use chipless_model::Rule;

/// Every rule of this target.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    iospec::rules::ALL.iter().map(|law| law.under(iospec::RuleSet::Spec)).chain(fqir::rules::ALL.iter().copied())
}
