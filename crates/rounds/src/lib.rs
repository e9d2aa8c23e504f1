//! How many cases random tests try. Whoever builds Chipless wants to know in minutes whether it works: `cargo test` tries an eighth of the
//! cases. `cargo xtask ci` asks for all of them.

use proptest::test_runner::Config;

/// The variable of the environment that asks for all cases, whatever its value.
pub const ALL: &str = "CHIPLESS_ALL_ROUNDS";

/// Whether all cases are asked for.
pub fn are_all() -> bool {
    std::env::var_os(ALL).is_some()
}

/// How many rounds a loop makes that makes `all` of them where they are asked for. Otherwise an eighth, but not less than four.
pub fn rounds(all: usize) -> usize {
    if are_all() {
        all
    } else {
        all.div_ceil(8).max(all.min(4))
    }
}

/// The same for a test of `proptest!`.
pub fn cases(all: u32) -> Config {
    Config::with_cases(rounds(all as usize) as u32)
}
