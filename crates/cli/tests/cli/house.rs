//! What holds for all targets alike: options, machines, limits, JSON, classes of findings.

use crate::support::{done, json_of, root, run};
use chipless_model::Limits;
use serde_json::Value;

/// A program of each target that runs as it is.
const PROGRAMS: [(&str, &str); 5] = [
    ("npu", "fixtures/npu/conv1x1/program.blob"),
    ("neuron", "fixtures/neuron/matmul_five_engines/program.neff"),
    ("gemini", "fixtures/gemini/four_cores/schedule.json"),
    ("dsa", "fixtures/dsa/kernels/dot.dfg"),
    ("spu", "fixtures/spu/recurrent/plan.json"),
];

/// What a command says in JSON that fails.
fn failure(arguments: &[&str]) -> (i32, String) {
    let (code, out, err) = run(arguments);
    assert!(!err.is_empty(), "{arguments:?}");
    let said: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
    assert!(said["schema_version"].is_u64() && said["failure"]["message"].is_string());
    let kind = said["failure"]["kind"].as_str().unwrap_or_default();
    (code, kind.to_owned())
}

#[test]
fn options_of_another_target_are_refused_by_name() {
    for (file, option, owner) in [
        (PROGRAMS[0].1, ["--batch", "2"], "gemini"),
        (PROGRAMS[3].1, ["--kernel", "00=relu"], "npu"),
        (PROGRAMS[1].1, ["--map", "x.json"], "dsa"),
        (PROGRAMS[4].1, ["--network", "x.json"], "gemini"),
    ] {
        let (code, _, err) = run(&["run", file, option[0], option[1]]);
        assert!(
            code == 2 && err.contains(option[0]) && err.contains(owner),
            "{err}"
        );
    }
    let help = done(&["drive", "--help"]);
    assert!(help.contains("--rules") && !help.contains("--batch") && !help.contains("--kernel"));
}

#[test]
fn machines_are_told_and_changed_without_a_file() {
    for (target, file) in PROGRAMS {
        let machine = json_of(&["machine", target, "--json"]);
        let latency = |options: &[&str]| {
            let run = [&["run", file, "--timing-only", "--json"], options].concat();
            json_of(&run)["latency_ns"].as_f64().expect("a time")
        };
        let (base, mut moved) = (latency(&[]), 0);
        let figures = machine["figures"].as_array().expect("figures");
        for figure in figures.iter().filter(|figure| figure["value"].is_number()) {
            let (key, value) = (figure["key"].as_str().expect("a key"), &figure["value"]);
            if moved == 0 {
                let half = value.as_f64().expect("a number") / 2.0;
                let half = if value.is_u64() {
                    half.floor().max(1.0)
                } else {
                    half
                };
                let half = format!("{key}={half}");
                let (code, out, _) = run(&["run", file, "--timing-only", "--json", "--set", &half]);
                let changed: Value = serde_json::from_str(&out).unwrap_or_default();
                moved += usize::from(code == 0 && changed["latency_ns"] != base);
            }
        }
        assert!(moved > 0, "{target}: no figure changes the time");
        let first = figures[0]["key"].as_str().expect("a key");
        let same = format!("{first}={}", figures[0]["value"]);
        assert!((latency(&["--set", &same]) - base).abs() < 1e-9, "{target}");
        let (code, _, err) = run(&["run", file, "--set", &format!("{first}x=1")]);
        assert!(code == 2 && err.contains(first) && err.len() < 200, "{err}");
    }
    assert_eq!(run(&["machine", "npx"]).0, 2);
    assert!(json_of(&["targets", "--json"])["targets"][0]["options"].is_array());
}

/// Which limits bound a file of each kind. The others must leave it alone: a limit that is named and does nothing is not there.
const BOUND: [(&str, &[&str]); 7] = [
    (
        "fixtures/npu/conv1x1/program.blob",
        &["memory_bytes", "tasks"],
    ),
    (
        "fixtures/neuron/compute_add/program.neff",
        &[
            "memory_bytes",
            "tasks",
            "inflated_bytes",
            "entries",
            "path_bytes",
            "json_bytes",
            "transfers",
            "declarations",
        ],
    ),
    (
        "fixtures/gemini/four_cores/schedule.json",
        &["memory_bytes", "tasks", "json_bytes"],
    ),
    ("fixtures/gemini/asm.txt", &["tasks", "json_bytes"]),
    (
        "fixtures/dsa/kernels/dot.dfg",
        &[
            "memory_bytes",
            "tasks",
            "text_bytes",
            "transfers",
            "declarations",
        ],
    ),
    (
        "fixtures/spu/recurrent/plan.json",
        &["memory_bytes", "tasks", "json_bytes", "declarations"],
    ),
    (
        "fixtures/spu/recurrent/model.pt",
        &[
            "memory_bytes",
            "tasks",
            "inflated_bytes",
            "entries",
            "path_bytes",
            "declarations",
        ],
    ),
];

#[test]
fn limits_hold_for_every_target() {
    for (file, bound) in BOUND {
        for (limit, _) in Limits::NAMES {
            let holds = bound.contains(limit);
            for command in ["run", "check"] {
                let (usual, _, _) = run(&[command, file]);
                let (code, out, err) = run(&[command, file, "--limit", &format!("{limit}=1")]);
                let said = out.contains(limit) || err.contains(limit);
                assert!(
                    code == if holds { 2 } else { usual } && (said || !holds),
                    "{command} {file} --limit {limit}=1: {code}\n{out}{err}"
                );
            }
        }
    }
}

/// A limit of findings leaves the first and counts the rest.
#[test]
fn findings_are_limited() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("wrong.dfg");
    let text = "Input64: a\nthis is wrong\n".to_owned() + &"that is wrong\n".repeat(100);
    std::fs::write(&path, text + "Output64: a\n").expect("written");
    let path = path.display().to_string();
    let count = |limit: &[&str]| {
        let arguments = [&["check", "--format", "json", path.as_str()], limit].concat();
        let (code, out, _) = run(&arguments);
        assert_eq!(code, 2);
        let value: Value = serde_json::from_str(&out).expect("JSON");
        value["files"][0]["findings"].as_array().map_or(0, Vec::len)
    };
    assert!(count(&[]) > 100);
    assert!(count(&["--limit", "findings=10"]) < 13);
}

#[test]
fn failures_are_json_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (cut, nothing, array) = (path("cut.blob"), path("nothing.bin"), path("x.npy"));
    let blob = std::fs::read(root().join(PROGRAMS[0].1)).expect("a fixture");
    std::fs::write(&cut, &blob[..4000]).expect("written");
    std::fs::write(&nothing, [0; 100]).expect("written");
    std::fs::write(&array, [0; 10]).expect("written");
    let input = format!("nobody={array}");
    let ring = "fixtures/broken/ring.neff";
    for (arguments, code, kind) in [
        (vec!["run", "--json", "--no-verify", ring], 1, "deadlock"),
        (vec!["run", "--json", ring], 1, "refused"),
        (
            vec!["run", "--json", "--limit", "tasks=2", PROGRAMS[1].1],
            2,
            "limit",
        ),
        (vec!["run", "--json", &cut], 2, "unreadable"),
        (vec!["info", "--format", "json", &nothing], 2, "unreadable"),
        (
            vec!["list", "--format=json", "no-such.blob"],
            2,
            "unreadable",
        ),
        (vec!["check", "--json", "no-such.blob"], 2, "unreadable"),
        (
            vec!["run", "--json", "--input", &input, PROGRAMS[0].1],
            2,
            "misuse",
        ),
        (
            vec!["run", "--json", "--seed", "x", PROGRAMS[0].1],
            2,
            "misuse",
        ),
    ] {
        assert_eq!(
            failure(&arguments),
            (code, kind.to_owned()),
            "{arguments:?}"
        );
    }
}

#[test]
fn rules_have_a_class_and_evidence() {
    let rules = json_of(&["explain", "--json"]);
    let rules = rules["rules"].as_array().expect("rules");
    assert!(rules.len() > 200);
    let deadlock = done(&["explain", "deadlock"]);
    assert!(
        deadlock.contains("fault") && deadlock.contains("proof"),
        "{deadlock}"
    );
    for rule in rules {
        assert!(
            rule["evidence"].is_string() && rule["class"].is_string(),
            "{rule}"
        );
        if rule["class"] == "departure" {
            assert_ne!(rule["severity"], "error", "{rule}");
        }
    }
}

#[test]
fn queues_are_never_more_than_busy() {
    for (target, file) in PROGRAMS {
        let run = json_of(&["run", "--timing-only", "--json", file]);
        let latency = run["latency_ns"].as_f64().expect("a time");
        for queue in run["queues"].as_array().expect("queues") {
            let number = |key: &str| queue[key].as_f64().expect("a number");
            let share = number("busy_ns") / (latency * number("servers"));
            assert!(
                (share - number("utilization")).abs() < 1e-6 && share < 1.000_001,
                "{target}: {queue}"
            );
        }
    }
}
