//! What can be wrong with a NEFF: one rule for each kind of finding, with its own code.

mod container;
mod definition;
mod dma;

pub use container::*;
pub use definition::*;
pub use dma::*;

use chipless_model::Rule;

/// Declares rules: name, severity, code, summary, explanation, remedy, source.
macro_rules! rules {
    ($list:ident: $($name:ident $severity:ident $code:literal $summary:literal $explanation:literal $remedy:literal $source:literal;)*) => {
        $(
            #[doc = $summary]
            pub static $name: chipless_model::Rule = chipless_model::Rule {
                code: $code,
                severity: chipless_model::Severity::$severity,
                summary: $summary,
                explanation: $explanation,
                remedy: $remedy,
                source: $source,
            };
        )*

        pub(super) static $list: &[&chipless_model::Rule] = &[$(&$name,)*];
    };
}
use rules;

/// Every rule about the file, its tables and its descriptors.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [container::CONTAINER, definition::DEFINITION, dma::DMA].into_iter().flatten().copied()
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
