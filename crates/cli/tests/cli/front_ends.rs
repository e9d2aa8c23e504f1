//! Networks in the front end's own form, and names that are of layers and of kinds of tasks.

use crate::support::{done, json_of, root, run};
use std::fs;

/// What comes of a short search, whose schedule goes to a file.
fn scheduled(network: &str, output: &str, more: &[&str]) -> (i32, String, String) {
    let search = [
        "schedule",
        network,
        "-o",
        output,
        "--machine",
        "mesh2x2",
        "--trees",
        "50",
    ];
    run(&[&search[..], more].concat())
}

/// The layers of a file may stand in any order: those of this fixture stand in that of their names.
#[test]
fn the_layers_of_a_front_end_file_have_any_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let network = "fixtures/gemini/four_cores/network.json";
    let output = path("s.json");
    let (code, _, err) = scheduled(network, &output, &[]);
    assert_eq!(code, 0, "{err}");
    done(&["check", &output, "--network", network]);

    let text = fs::read_to_string(root().join(network)).unwrap();
    let round = text.replace(
        "\"previous_layer\":[\"input1\"",
        "\"previous_layer\":[\"Conv_last\"",
    );
    assert_ne!(text, round);
    fs::write(path("round.json"), round).unwrap();
    let (code, _, err) = scheduled(&path("round.json"), &output, &[]);
    assert!(
        code == 2 && err.contains("reads what depends on its own result"),
        "{err}"
    );
}

/// A file in half precision is a front-end file, though it is not scheduled again.
#[test]
fn a_front_end_file_is_told_from_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (output, network) = (path("s.json"), path("n.json"));
    let half = ["--precision", "fp16"];
    let more = ["--no-compare", "--network-out", &network];
    let (code, _, err) = scheduled(
        "fixtures/schedule/small.onnx",
        &output,
        &[&half[..], &more].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = scheduled(&network, &output, &[]);
    assert!(
        code == 2 && err.contains("all its layers are float16"),
        "{code} {err}"
    );
    let (code, _, err) = scheduled(&network, &output, &half);
    assert!(
        code == 2 && err.contains("says the types of its layers"),
        "{err}"
    );
}

/// A layer that is called as what transfers carry.
#[test]
fn a_layer_and_a_kind_of_task_of_one_name_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.json");
    let text = fs::read_to_string(root().join("fixtures/schedule/small.schedule.json")).unwrap();
    fs::write(&file, text.replace("\"stem\"", "\"weights\"")).unwrap();
    let file = file.display().to_string();
    let machine = "fixtures/schedule/mesh2x2.json";
    let timed = ["run", &file, "--timing-only", "--machine", machine];
    let (code, _, err) = run(&[&timed[..], &["--what-if", "without=weights"]].concat());
    assert!(
        code == 2 && err.contains("expected without=layer:weights or without=kind:weights"),
        "{err}"
    );
    let latency = |change: &str| {
        let report = json_of(&[&timed[..], &["--json", "--what-if", change]].concat());
        report["what_if"][0]["latency_ns"].to_string()
    };
    let (layer, kind) = (
        latency("without=layer:weights"),
        latency("without=kind:weights"),
    );
    assert_ne!(layer, kind);
    assert_eq!(latency("without=kind:wei*"), kind);
    let ranked = json_of(&[&timed[..], &["--json", "--rank"]].concat());
    let changes = ranked["what_if"].as_array().unwrap();
    let changes: Vec<&str> = (changes.iter())
        .map(|change| change["change"].as_str().unwrap())
        .collect();
    assert!(changes.contains(&"without=layer:weights"), "{changes:?}");
    assert!(!changes.contains(&"without=weights"), "{changes:?}");
}
