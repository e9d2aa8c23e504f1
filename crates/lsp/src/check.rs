//! What is wrong with a text of any kind.

use crate::language::Language;
use crate::languages::language;
use chipless::{Checked, Failure, Options};

/// Finds out what is wrong with a file: with programs as the targets do, with workloads, plans, machine files and assembler as their readers do.
///
/// # Errors
/// Options that do not fit.
pub fn check(name: &str, bytes: &[u8], options: &Options) -> Result<Checked, Failure> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => check_as(language("", name, text), name, text, options),
        _ => chipless::check(name, bytes, options),
    }
}

/// The same for a text whose language is known.
pub(crate) fn check_as(
    language: &dyn Language,
    name: &str,
    text: &str,
    options: &Options,
) -> Result<Checked, Failure> {
    match language.check(name, text, options) {
        Some(checked) => Ok(checked),
        None => chipless::check(name, text.as_bytes(), options),
    }
}
