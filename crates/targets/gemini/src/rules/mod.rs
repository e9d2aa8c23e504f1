//! What can be wrong with a file of this target: one rule for each kind of finding, with its own code.

pub mod assembly;
pub mod memory;
pub mod reading;
pub mod schedule;

use chipless_model::{Rule, Severity};

/// Declares rules: name, severity, code, summary, explanation, remedy, source.
macro_rules! rules {
    ($($name:ident $severity:ident $code:literal $summary:literal $explanation:literal $remedy:literal $source:literal;)*) => {
        $(
            #[doc = $summary]
            pub static $name: Rule = Rule {
                code: $code,
                severity: Severity::$severity,
                summary: $summary,
                explanation: $explanation,
                remedy: $remedy,
                source: $source,
            };
        )*

        /// Every rule of this part.
        pub static ALL: &[&Rule] = &[$(&$name,)*];
    };
}
pub(crate) use rules;

/// Findings beyond the limit.
pub static MORE_FINDINGS: Rule = Rule {
    code: "gemini-more-findings",
    severity: Severity::Note,
    summary: "there are more findings than are shown",
    explanation: "Only so many are kept for one file; the rest is counted.",
    remedy: "Raise the limit with --limit findings=NUMBER.",
    source: "Chipless",
};

/// Every rule of this target.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [reading::ALL, schedule::ALL, memory::ALL, assembly::ALL].into_iter().flatten().copied().chain([
        &MORE_FINDINGS,
        &crate::lower::NOT_LOWERED,
        &crate::lower::DATA,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let mut codes: Vec<&str> = all().map(|r| r.code).collect();
        for code in &codes {
            assert!(
                code.starts_with("gemini-") && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{code}"
            );
        }
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
