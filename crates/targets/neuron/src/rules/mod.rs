//! What can be wrong with a NEFF: one rule for each kind of finding, with its own code.

pub mod container;
pub mod definition;
pub mod dma;

use chipless_model::Rule;

/// Declares rules: name, severity, code, summary, explanation, remedy, source.
macro_rules! rules {
    ($($name:ident $severity:ident $code:literal $summary:literal $explanation:literal $remedy:literal $source:literal;)*) => {
        $(
            #[doc = $summary]
            #[allow(unreachable_pub, reason = "rules of private modules are reached through `all`")]
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
        #[allow(unreachable_pub, dead_code, reason = "as above")]
        pub static ALL: &[&Rule] = &[$(&$name,)*];
    };
}
pub(crate) use rules;

/// Every rule of this target.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [container::ALL, definition::ALL, dma::ALL, crate::lint::completion::ALL, crate::stream::rules::ALL, crate::lower::ALL]
        .into_iter()
        .flatten()
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let mut codes: Vec<&str> = all().map(|r| r.code).collect();
        for code in &codes {
            assert!(code.starts_with("neff-") && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{code}");
        }
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
