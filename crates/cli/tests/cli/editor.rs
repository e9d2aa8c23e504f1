//! `check --fix`, and the language server as a process.

use crate::support::{chipless, done, root, run};
use std::io::{Read, Write};
use std::process::Stdio;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const BROKEN: &str = "Input64: a\nb = Ad_I64(a, 1)\nOutput64: b";
const MENDED: &str = "Input64: a\nb = Add_I64(a, 1)\nOutput64: b\n";

#[test]
fn a_diff_shows_fixes_and_writes_nothing() {
    let folder = folder(&[("kernel.dfg", BROKEN)]);
    let path = folder.path().join("kernel.dfg").display().to_string();
    let (code, out, err) = run(&["check", "--fix", "--diff", &path]);
    assert_eq!(
        (code, err.as_str()),
        (1, ""),
        "an error is in the file as it is"
    );
    let body = out.lines().skip(2).collect::<Vec<_>>().join("\n");
    assert_eq!(
        body,
        "@@ -1,3 +1,3 @@\n Input64: a\n-b = Ad_I64(a, 1)\n-Output64: b\n\\ No newline at end of file\n+b = Add_I64(a, 1)\n+Output64: b"
    );
    assert!(out.starts_with("--- a/") && out.contains("kernel.dfg\n+++ b/"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), BROKEN);
}

#[test]
fn fixes_are_written_and_the_rest_is_told() {
    let folder = folder(&[
        ("kernel.dfg", BROKEN),
        ("spare.dfg", &MENDED.replace('1', "2")),
    ]);
    let path = folder.path().join("kernel.dfg").display().to_string();
    let spare = folder.path().join("spare.dfg").display().to_string();
    let (code, out, err) = run(&["check", "--fix", &path, &spare]);
    assert_eq!((code, out), (0, format!("{path}: clean\n{spare}: clean\n")));
    assert_eq!(err, format!("{path}: 2 fixes made\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), MENDED);
    let (_, _, err) = run(&["check", "--fix", &path]);
    assert_eq!(err, "", "nothing is left to fix");
    // What cannot be fixed stays, and is told.
    std::fs::write(&path, format!("{BROKEN}\nc = Bogus(nowhere)\n")).unwrap();
    let (code, out, _) = run(&["check", "--fix", &path]);
    assert_eq!(code, 2, "a graph with errors cannot be read to its end");
    assert!(
        out.contains("dfg-undefined") && !out.contains("Ad_I64"),
        "{out}"
    );
}

#[test]
fn fixes_keep_to_what_is_asked_for() {
    let folder = folder(&[("kernel.dfg", BROKEN)]);
    let path = folder.path().join("kernel.dfg").display().to_string();
    run(&["check", "--fix", "--allow", "dfg-final-newline", &path]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), MENDED.trim_end());
    let (code, _, err) = run(&["check", "--fix", "-"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("standard input cannot be written back"),
        "{err}"
    );
    let (code, _, err) = run(&["check", "--diff", &path]);
    assert_eq!(code, 2);
    assert!(err.contains("--fix"), "{err}");
}

#[test]
fn programs_in_binary_are_left_as_they_are() {
    let blob = root().join("fixtures/npu/add/program.blob");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.blob");
    std::fs::copy(&blob, &path).unwrap();
    let shown = path.display().to_string();
    let out = done(&["check", "--fix", &shown]);
    assert_eq!(out, format!("{shown}: clean\n"));
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(blob).unwrap());
}

#[test]
fn a_fixed_graph_runs_as_before() {
    // Older forms, and a name that nothing uses: the outputs are the same to the bit.
    let text = "InputVec: in [0, 1]\nspare = in0 in1\nsum = Add64(in0, in1)\nOutput: sum\n";
    let folder = folder(&[("old.dfg", text)]);
    let path = folder.path().join("old.dfg").display().to_string();
    let outputs = |name: &str| {
        let out = folder.path().join(name);
        done(&[
            "run",
            &path,
            "--seed",
            "3",
            "--json",
            "--output-dir",
            out.to_str().unwrap(),
        ]);
        std::fs::read(out.join("sum.npy")).unwrap()
    };
    let before = outputs("before");
    run(&["check", "--fix", &path]);
    let fixed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        fixed,
        "InputVec: in [2]\nsum = Add64(in0, in1)\nOutput: sum\n"
    );
    assert_eq!(outputs("after"), before);
}

#[test]
fn texts_that_no_target_reads_are_checked() {
    let name = "fixtures/device/cameras.yaml";
    assert_eq!(done(&["check", name]), format!("{name}: clean\n"));
    // Assembler text is checked as the program that it describes.
    let codes = |name: &str| -> Vec<String> {
        let checked: serde_json::Value =
            serde_json::from_str(&run(&["check", name, "--json"]).1).unwrap();
        let found = checked["files"][0]["findings"].as_array().unwrap();
        let code = |finding: &serde_json::Value| finding["code"].as_str().unwrap().to_owned();
        found.iter().map(code).collect()
    };
    let found = codes("fixtures/broken/ring.asm");
    assert_eq!(found, codes("fixtures/broken/ring.neff"));
    assert!(!found.is_empty());
    let plan = "version: 1\nprograms: [a.blob]\nsampel: {method: grid}\n";
    let folder = folder(&[
        ("plan.yaml", plan),
        ("my.toml", "name = \"dsa\"\nclokc = 3\n"),
    ]);
    for (name, code, place) in [
        ("plan.yaml", "plan-invalid", ":3:1"),
        ("my.toml", "machine-key", ":2:1"),
    ] {
        let path = folder.path().join(name).display().to_string();
        let (status, out, _) = run(&["check", &path]);
        assert_eq!(status, 2, "what cannot be read: {out}");
        assert!(out.contains(code) && out.contains(place), "{out}");
        assert!(done(&["explain", code]).contains(code));
    }
}

#[test]
fn the_server_speaks_over_stdio_and_ends_with_the_client() {
    let message = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let speak = |bodies: &[&str]| {
        let mut server = chipless()
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said: String = bodies.iter().map(|body| message(body)).collect();
        server
            .stdin
            .take()
            .unwrap()
            .write_all(said.as_bytes())
            .unwrap();
        let mut out = String::new();
        server
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        let ended = server.wait_with_output().unwrap();
        (
            ended.status.code(),
            out,
            String::from_utf8(ended.stderr).unwrap(),
        )
    };
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
    let shutdown = r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#;
    let exit = r#"{"jsonrpc":"2.0","method":"exit"}"#;
    let (code, out, err) = speak(&[initialize, initialized, shutdown, exit]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(
        out.contains("\"hoverProvider\":true") && out.contains("\"id\":2,\"result\":null"),
        "{out}"
    );
    let (code, _, err) = speak(&[initialize, initialized, exit]);
    assert_eq!(code, Some(2));
    assert!(err.contains("the client left without a shutdown"), "{err}");
}
