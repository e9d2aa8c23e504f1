//! What the tests of the binary share: it runs in the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The binary, without anything to read from.
pub(crate) fn chipless() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chipless"));
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Exit status, standard output, standard error.
pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = chipless().args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        status.code().expect("ended by a signal"),
        text(stdout),
        text(stderr),
    )
}

/// What a command prints that must come to its end without complaints.
pub(crate) fn done(arguments: &[&str]) -> String {
    let (code, out, err) = run(arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    out
}

/// What a command says in JSON that must come to its end without complaints.
pub(crate) fn json_of(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&done(arguments)).expect("JSON")
}

/// A `.npy` file of float32.
pub(crate) fn npy(shape: &[u64], values: &[f32]) -> Vec<u8> {
    use npyz::WriterBuilder as _;
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(shape)
        .writer(&mut bytes)
        .begin_nd()
        .expect("a header");
    writer.extend(values.iter().copied()).expect("numbers");
    writer.finish().expect("an array");
    bytes
}
