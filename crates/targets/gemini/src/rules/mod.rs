//! What can be wrong with a file of this target: one rule for each kind of finding, with its own code.

pub mod assembly;
pub mod lowering;
pub mod meaning;
pub mod memory;
pub mod reading;
pub mod schedule;

use chipless_model::Rule;

chipless_model::rules! {
    MORE_FINDINGS Limit Note Chipless "gemini-more-findings" "there are more findings than are shown"
        "Only so many are kept for one file; the rest is counted."
        "Raise the limit with --limit findings=NUMBER."
        "Chipless";
}

/// Every rule of this target.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        reading::ALL,
        schedule::ALL,
        memory::ALL,
        meaning::ALL,
        assembly::ALL,
        ALL,
        lowering::ALL,
    ]
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
            assert!(
                code.starts_with("gemini-")
                    && code
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{code}"
            );
        }
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
