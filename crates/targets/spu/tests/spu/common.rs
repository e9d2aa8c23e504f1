//! The fixtures of this target.

use std::fs;
use std::path::PathBuf;

/// The fixtures with a plan, a contract and the numbers of their steps.
pub(crate) const FIXTURES: [&str; 6] = [
    "addition",
    "latched",
    "dense",
    "recurrent",
    "operations",
    "choice",
];

/// A file of a fixture.
pub(crate) fn fixture(name: &str, file: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fixtures/spu")
        .join(name)
        .join(file);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A text file of a fixture.
pub(crate) fn text(name: &str, file: &str) -> String {
    String::from_utf8(fixture(name, file)).expect("text")
}
