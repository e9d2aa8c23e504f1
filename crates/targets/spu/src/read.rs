//! From bytes to a file of one of the four kinds.

use crate::femto::Femto;
use crate::fqir::{self, Plan};
use crate::iospec::{self, RuleSet};
use crate::saved;
use chipless_model::{Finding, Limits, Place};

/// A file of this target.
#[derive(Debug)]
pub enum File<'f> {
    /// An IOSpec.
    Contract(iospec::Document),
    /// An IOSpec of the older dialect: it can be converted, and nothing else. Its text, and what it is refused for.
    Flat(&'f str, Vec<Finding>),
    /// A `.femto` container.
    Container(Femto),
    /// A plan or a `.pt` file.
    Program(Plan<'f>),
}

impl<'f> File<'f> {
    /// Reads a file; an IOSpec under a rule set.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(
        bytes: &'f [u8],
        rules: RuleSet,
        limits: &Limits,
    ) -> Result<File<'f>, Vec<Finding>> {
        let one = |finding: Box<Finding>| vec![*finding];
        if Femto::recognize(bytes) {
            return Femto::read(bytes).map(File::Container).map_err(one);
        }
        if saved::recognize(bytes) {
            return Plan::read_saved(bytes, limits)
                .map(File::Program)
                .map_err(one);
        }
        if fqir::recognize(bytes) {
            return Plan::read(bytes, limits).map(File::Program).map_err(one);
        }
        let text = text(bytes, rules)?;
        match iospec::Document::read(text, rules) {
            Ok(document) => Ok(File::Contract(document)),
            Err(findings) if iospec::convert(text, rules).is_ok() => Ok(File::Flat(text, findings)),
            Err(findings) => Err(findings),
        }
    }
}

/// The text of an IOSpec.
fn text(bytes: &[u8], rules: RuleSet) -> Result<&str, Vec<Finding>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let place = Place::bytes(error.valid_up_to() as u64, 1);
        let rule = iospec::rules::SYNTAX.under(rules);
        vec![rule.at(place, "expected text in UTF-8, found other bytes")]
    })
}

/// Bytes of a text that are looked at to recognise it.
const HEAD: usize = 64 << 10;

/// Whether a file belongs to this target: a `.femto` container, an archive or bare pickle as torch saves them, a plan, or
/// text that looks like an IOSpec of either dialect.
pub fn recognize(bytes: &[u8]) -> bool {
    if Femto::recognize(bytes) || saved::recognize(bytes) || fqir::recognize(bytes) {
        return true;
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The cut may go through a character.
        Err(error) if head.len() - error.valid_up_to() < 4 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let section = |line: &str| {
        let name = line
            .split(':')
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\'', '{', ' ', ',']);
        matches!(
            name,
            "inputs" | "outputs" | "simple_sequences" | "complex_sequences"
        ) && line.contains(':')
    };
    let block = text
        .lines()
        .any(|line| section(line) && !line.starts_with([' ', '\t', '-']));
    let flow = text.trim_start().starts_with('{')
        && text.contains("_sequences")
        && text.contains("inputs");
    let flat = ["type: input", "type: simple_sequence", "type: output"]
        .iter()
        .any(|mark| text.contains(mark));
    let empty = text.trim() == "{}";
    empty || block && !text.trim_start().starts_with('{') || flow || flat
}
