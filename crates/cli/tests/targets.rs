//! The main job of each target through the binary, on the fixtures.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// What a command printed; it must have come to its end.
fn done(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_chipless")).current_dir(root).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(arguments)).unwrap()
}

#[test]
fn a_schedule_of_four_cores_runs_tile_by_tile() {
    let folder = "fixtures/gemini/four_cores";
    let (schedule, network) = (format!("{folder}/schedule.json"), format!("{folder}/network.json"));
    let out = tempfile::tempdir().unwrap();
    let summary = json_of(&["run", &schedule, "--network", &network, "--output-dir", out.path().to_str().unwrap(), "--json"]);
    assert_eq!(summary["tasks"], 111);
    let outputs: Vec<&str> = summary["outputs"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(outputs, ["Conv_0", "MaxPool_1", "Conv_2", "Add_3", "Conv_last"]);
    let written = std::fs::read(out.path().join("Conv_last.npy")).unwrap();
    assert!(written.len() == 128 + 16 * 4 * 4 && written[128..].iter().any(|b| *b != written[128]));
    // Another legal order, the same numbers.
    let other = tempfile::tempdir().unwrap();
    let directory = other.path().to_str().unwrap();
    done(&["run", &schedule, "--network", &network, "--order", "random:3", "--output-dir", directory]);
    assert_eq!(written, std::fs::read(other.path().join("Conv_last.npy")).unwrap());
    assert!(done(&["report", &schedule]).starts_with("L2 of core 0: 11 tensors, at most 576 bytes at a time\n       260 │"));
}

#[test]
fn a_kernel_goes_from_text_to_picture_and_runs_as_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (mapping, picture) = (path("dot.json"), path("dot.svg"));
    let (kernel, fabric) = ("fixtures/dsa/kernels/dot.dfg", "fixtures/dsa/adg/mesh5x5.json");
    done(&["map", kernel, "--adg", fabric, "--output", &mapping, "--svg", &picture]);
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    done(&["map", kernel, "--adg", fabric, "--check", &mapping]);
    done(&["run", kernel, "--seed", "5", "--output-dir", &path("unmapped")]);
    let mapped = json_of(&["run", kernel, "--seed", "5", "--map", &mapping, "--output-dir", &path("mapped"), "--json"]);
    assert_eq!(std::fs::read(path("unmapped/sum.npy")).unwrap(), std::fs::read(path("mapped/sum.npy")).unwrap());
    let notes = mapped["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().starts_with("mapped: 10 cycles of latency")), "{notes:?}");
}

#[test]
fn a_contract_is_driven_to_its_violation() {
    let arguments = ["drive", "fixtures/spu/latched/iospec.yaml", "--script", "fixtures/spu/latched/walk.yaml"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_chipless")).current_dir(root).args(arguments).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("4 write B: kSpuSequenceError: expected A of main_seq to be read first, came B"), "{out}");
}

#[test]
fn a_plan_runs_step_by_step() {
    let summary = json_of(&["run", "fixtures/spu/recurrent/plan.json", "--json"]);
    assert_eq!((&summary["target"], &summary["outputs"][0]["dtype"]), (&json!("spu"), &json!("int16")));
}
