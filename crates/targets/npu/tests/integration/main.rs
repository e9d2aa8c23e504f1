//! What this crate promises to others, tested through its public door. One binary: building tests is what costs.

mod limits;
mod npu3720;
mod read;

/// The program of a fixture.
fn program(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fixtures/npu")
        .join(name)
        .join("program.blob");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
