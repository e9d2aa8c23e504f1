//! What the language allows and nobody means.

use crate::document::Document;
use chipless_model::{Finding, Limits};

/// Everything that was found in a file: while reading, and by the rules.
pub fn lint(document: &Document<'_>, _limits: &Limits) -> Vec<Finding> {
    document.findings.clone()
}
