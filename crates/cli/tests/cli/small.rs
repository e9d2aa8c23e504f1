//! Small things that would annoy if they were not there.

use crate::support::{chipless, done, root, run};
use npyz::WriterBuilder as _;
use serde_json::Value;
use std::process::Stdio;

const RING: &str = "fixtures/broken/ring.neff";
const BLOB: &str = "fixtures/npu/resblock/program.blob";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn findings_that_are_left_out_are_counted() {
    let out = done(&["check", "--allow", "dead*", RING]);
    assert_eq!(out, format!("{RING}: clean\n1 finding left out\n"));
    let out = done(&[
        "check", "--allow", "deadlock", "--format", "json", RING, BLOB,
    ]);
    assert_eq!(json(&out)["files"][0]["left_out"], 1);
    assert_eq!(json(&out)["files"][1]["left_out"], 0);
    let (code, _, err) = run(&["check", "--allow", "nobody-*", RING]);
    assert!(code == 2 && err.contains("nobody-*"), "{err}");
}

#[test]
fn a_file_says_what_to_leave_out_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known.txt");
    let name = path.display().to_string();
    std::fs::write(&path, "# ours\n\ndeadlock */ring.neff  # waits for a fix\n").unwrap();
    assert!(done(&["check", "--allow-file", &name, RING]).contains("1 finding left out"));
    std::fs::write(&path, "deadlock */other.neff  # another file\n").unwrap();
    assert_eq!(run(&["check", "--allow-file", &name, RING]).0, 1);
    std::fs::write(&path, "\ndeadlock\n").unwrap();
    let (code, _, err) = run(&["check", "--allow-file", &name, RING]);
    assert!(code == 2 && err.contains(":2: expected a reason"), "{err}");
}

#[test]
fn findings_are_lines_for_github() {
    let (code, out, _) = run(&["check", "--format", "github", RING]);
    assert_eq!(code, 1);
    let line = out.lines().next().unwrap();
    let start = format!("::error file={RING},title=deadlock::");
    assert!(line.starts_with(&start), "{line}");
}

#[test]
fn standard_input_folders_and_patterns_are_taken() {
    let mut command = chipless();
    let file = std::fs::File::open(root().join(BLOB)).unwrap();
    let out = command
        .args(["info", "-"])
        .stdin(Stdio::from(file))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("-: npu program"));
    let (code, out, err) = run(&["check", "fixtures/npu/add"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "fixtures/npu/add/program.blob: clean\n")
    );
    assert!(err.contains("files passed over"), "{err}");
    let out = done(&["check", "fixtures/npu/*/program.blob"]);
    let files = || out.lines().filter(|line| line.starts_with("fixtures"));
    assert!(files().count() >= 20 && files().is_sorted(), "{out}");
    let out = done(&["info", "--json", "fixtures/npu/conv*/program.blob"]);
    assert!(json(&out)["files"].as_array().unwrap().len() > 2);
    let (code, _, err) = run(&["check", "fixtures/no*such"]);
    assert!(code == 2 && err.contains("no file fits"), "{err}");
}

#[test]
fn a_file_in_place_of_a_command_gets_a_hint() {
    let (code, _, err) = run(&[BLOB]);
    assert!(
        code == 2 && err.contains(&format!("chipless info {BLOB}")),
        "{err}"
    );
    let (code, _, err) = run(&["no-such-command"]);
    assert!(code == 2 && !err.contains("chipless info"), "{err}");
}

#[test]
fn files_of_others_are_called_what_they_are() {
    let (code, _, err) = run(&["info", "fixtures/npu/add/input_0.npy"]);
    assert!(code == 2 && err.contains("found a NumPy array"), "{err}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.blob");
    let mut elf = vec![0; 64];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[18] = 62;
    std::fs::write(&path, elf).unwrap();
    let (code, _, err) = run(&["info", &path.display().to_string()]);
    assert!(
        code == 2 && err.contains("an ELF program for x86-64"),
        "{err}"
    );
}

fn listed(pattern: &str) -> Vec<String> {
    let out = json(&done(&["list", "--json", BLOB, pattern]));
    let tasks = out["tasks"].as_array().unwrap().iter();
    tasks
        .map(|task| task["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn tasks_are_listed_by_patterns_and_ranges() {
    assert_eq!(listed("dpu*").len(), 24);
    assert_eq!(listed("dpu0[1..3]"), ["dpu0[1]", "dpu0[2]", "dpu0[3]"]);
    assert_eq!(
        listed("dpu?[2]"),
        ["dpu0[2]", "dpu1[2]", "dpu2[2]", "dpu3[2]"]
    );
    assert_eq!(listed("dpu0").len(), 6);
    let timed = json(&done(&["run", "--timing-only", "--json", BLOB]));
    for kind in ["weights", "input"] {
        let mut rows = timed["transfers"].as_array().unwrap().iter();
        let row = rows.find(|row| row["carries"] == kind).unwrap();
        let transfers = row["transfers"].as_u64().unwrap();
        assert_eq!(listed(kind).len() as u64, transfers, "{kind}");
    }
    let (code, _, err) = run(&["list", BLOB, "gpu*"]);
    assert!(
        code == 2 && err.contains("the queues are") && err.contains("dpu0–3"),
        "{err}"
    );
}

#[test]
fn a_dump_has_the_type_and_shape_of_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    let neff = "fixtures/neuron/matmul_five_engines/program.neff";
    let tasks = json(&done(&["list", "--json", neff]));
    let all = tasks["tasks"].as_array().unwrap();
    let product = all
        .iter()
        .find(|t| t["operation"].as_str().unwrap().contains("MATMUL"));
    let task = product.unwrap()["name"].as_str().unwrap();
    let out = done(&["run", neff, "--dump", task, "--output-dir", &name]);
    assert!(out.contains("wrote"), "{out}");
    let file = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().path());
    let mut dumps = file.filter(|path| path.to_string_lossy().contains("pe_"));
    let bytes = std::fs::read(dumps.next().unwrap()).unwrap();
    let array = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(array.dtype().descr(), "'<f4'");
    assert!(array.shape().len() >= 2, "{:?}", array.shape());
}

#[test]
fn shells_know_codes_and_manuals_are_written() {
    let script = done(&["completions", "bash"]);
    assert!(script.contains("race-read-write") || script.contains("deadlock"));
    let codes = done(&["completions", "--codes"]);
    assert!(codes.lines().any(|line| line == "deadlock") && codes.lines().is_sorted());
    let folder = tempfile::tempdir().unwrap();
    done(&["completions", "--man", &folder.path().display().to_string()]);
    let page = std::fs::read_to_string(folder.path().join("chipless-run.1")).unwrap();
    assert!(page.contains("timing") && folder.path().join("chipless.1").exists());
}

#[test]
fn lengths_of_a_timing_run_come_from_its_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.npy");
    // Five rows of three numbers.
    let mut file = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&[5, 3])
        .writer(std::fs::File::create(&path).unwrap())
        .begin_nd()
        .unwrap();
    file.extend(0u64..15).unwrap();
    file.finish().unwrap();
    let given = |name: &str| format!("{name}={}", path.display());
    let dot = "fixtures/dsa/kernels/dot.dfg";
    let (p, q) = (given("p_"), given("q_"));
    let timing = done(&[
        "run",
        dot,
        "--timing-only",
        "--json",
        "--input",
        &p,
        "--input",
        &q,
    ]);
    let whole = done(&["run", dot, "--json", "--input", &p, "--input", &q]);
    assert_eq!(json(&timing)["tasks"], json(&whole)["tasks"]);
    assert_eq!(json(&timing)["latency_ns"], json(&whole)["latency_ns"]);
    let (code, _, err) = run(&[
        "run",
        BLOB,
        "--timing-only",
        "--input",
        "x=fixtures/npu/resblock/input_0.npy",
    ]);
    assert!(code == 2 && err.contains("takes as long with any"), "{err}");
}
