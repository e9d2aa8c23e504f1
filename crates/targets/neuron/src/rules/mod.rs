//! What can be wrong with a NEFF: one rule for each kind of finding, with its own code.

pub mod container;
pub mod definition;
pub mod dma;
pub mod stream;
pub mod tables;
pub mod triggers;

use chipless_model::Rule;

/// Every rule of this target.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        container::ALL,
        definition::ALL,
        dma::ALL,
        tables::ALL,
        triggers::ALL,
        crate::lint::completion::ALL,
        stream::ALL,
        crate::stream::legal::ALL,
        crate::lower::ALL,
        crate::kernels::integers::ALL,
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
                code.starts_with("neff-")
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
