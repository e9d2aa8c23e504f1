//! The rules of the target.

#[test]
fn codes_are_unique_and_kebab_case() {
    let mut codes: Vec<&str> = chipless_dsa::rules().map(|rule| rule.code).collect();
    for code in &codes {
        let of_the_target = ["dfg-", "adg-"]
            .iter()
            .any(|prefix| code.starts_with(prefix));
        assert!(
            of_the_target
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
