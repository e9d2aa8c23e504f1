//! What holds for all targets alike: options, machines, limits, JSON, classes of findings.

use crate::support::{done, json_of, root, run};
use chipless_model::Limits;
use serde::Deserialize;
use serde_json::Value;

/// A file of `fixtures/programs.json`, which lists for each target what it reads.
#[derive(Deserialize)]
struct Example {
    target: String,
    file: String,
    /// Whether it runs as it is.
    #[serde(default)]
    runs: bool,
    /// The limits that bound it. Where they are listed, all others must leave it alone: a limit that is named and does nothing is not there.
    limits: Option<Vec<String>>,
}

fn examples() -> Vec<Example> {
    let text = std::fs::read(root().join("fixtures/programs.json")).expect("a list");
    serde_json::from_slice(&text).expect("a list of examples")
}

/// A program of each target that runs as it is, in the order of the targets.
fn programs() -> Vec<(String, String)> {
    let examples = examples();
    let of_target = |target: &str| {
        let found = examples.iter().find(|e| e.target == target && e.runs);
        let found = found
            .unwrap_or_else(|| panic!("fixtures/programs.json: no program of {target} that runs"));
        (found.target.clone(), found.file.clone())
    };
    chipless::TARGETS
        .iter()
        .map(|target| of_target(target.name()))
        .collect()
}

fn program(target: &str) -> String {
    let found = programs().into_iter().find(|(name, _)| name == target);
    found.expect("a target").1
}

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
    for (target, option, owner) in [
        ("npu", ["--batch", "2"], "gemini"),
        ("dsa", ["--kernel", "00=relu"], "npu"),
        ("neuron", ["--map", "x.json"], "dsa"),
        ("spu", ["--network", "x.json"], "gemini"),
    ] {
        let (code, _, err) = run(&["run", &program(target), option[0], option[1]]);
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
    for (target, file) in programs() {
        let machine = json_of(&["machine", &target, "--json"]);
        let latency = |options: &[&str]| {
            let run = [&["run", &*file, "--timing-only", "--json"], options].concat();
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
                let (code, out, _) =
                    run(&["run", &file, "--timing-only", "--json", "--set", &half]);
                let changed: Value = serde_json::from_str(&out).unwrap_or_default();
                moved += usize::from(code == 0 && changed["latency_ns"] != base);
            }
        }
        assert!(moved > 0, "{target}: no figure changes the time");
        // The name that a run prints is taken.
        let by = json_of(&["run", &file, "--timing-only", "--json"]);
        let name = by["timed_by"]["name"].as_str().expect("a name");
        assert_eq!(json_of(&["machine", name, "--json"])["target"], *target);
        let first = figures[0]["key"].as_str().expect("a key");
        let same = format!("{first}={}", figures[0]["value"]);
        assert!((latency(&["--set", &same]) - base).abs() < 1e-9, "{target}");
        let (code, _, err) = run(&["run", &file, "--set", &format!("{first}x=1")]);
        assert!(code == 2 && err.contains(first) && err.len() < 200, "{err}");
    }
    assert_eq!(run(&["machine", "npx"]).0, 2);
    assert!(json_of(&["targets", "--json"])["targets"][0]["options"].is_array());
}

#[test]
fn limits_hold_for_every_target() {
    for Example { file, limits, .. } in examples() {
        let Some(bound) = limits else { continue };
        let file = file.as_str();
        for (limit, _) in Limits::NAMES {
            let holds = bound.iter().any(|name| name == limit);
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
    let blob = std::fs::read(root().join(program("npu"))).expect("a fixture");
    std::fs::write(&cut, &blob[..4000]).expect("written");
    std::fs::write(&nothing, [0; 100]).expect("written");
    std::fs::write(&array, [0; 10]).expect("written");
    let input = format!("nobody={array}");
    let ring = "fixtures/broken/ring.neff";
    let (neff, npu) = (program("neuron"), program("npu"));
    for (arguments, code, kind) in [
        (vec!["run", "--json", "--no-verify", ring], 1, "deadlock"),
        (vec!["run", "--json", ring], 1, "refused"),
        (
            vec!["run", "--json", "--limit", "tasks=2", &neff],
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
        (vec!["run", "--json", "--input", &input, &npu], 2, "misuse"),
        (vec!["run", "--json", "--seed", "x", &npu], 2, "misuse"),
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
    for (target, file) in programs() {
        let run = json_of(&["run", "--timing-only", "--json", &file]);
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

/// What [`Document`](chipless::Document) promises of every file.
#[test]
fn every_target_does_what_all_do() {
    for Example {
        target, file, runs, ..
    } in examples()
    {
        let file = file.as_str();
        assert_eq!(
            json_of(&["info", "--json", file])["target"],
            *target,
            "{file}"
        );
        assert!(!done(&["info", "--raw", file]).is_empty(), "{file}");
        let (code, out, err) = run(&["check", "--json", file]);
        let checked: Value =
            serde_json::from_str(&out).unwrap_or_else(|e| panic!("{file}: {e}: {err}"));
        assert_eq!(
            (code, &checked["files"][0]["target"]),
            (0, &Value::from(&*target)),
            "{file}: {out}"
        );
        if !runs {
            continue;
        }
        let listed = json_of(&["list", "--json", file]);
        assert!(
            listed["tasks"]
                .as_array()
                .is_some_and(|tasks| !tasks.is_empty()),
            "{file}"
        );
        let timed = json_of(&["run", "--timing-only", "--json", file]);
        // Those that lack weights say so.
        let (code, whole, _) = run(&["run", "--json", file]);
        let whole: Value = serde_json::from_str(&whole).expect("JSON");
        assert_eq!(
            (code, &timed["latency_ns"]),
            (0, &whole["latency_ns"]),
            "{file}"
        );
        let (code, same, _) = run(&["diff", "--json", file, file]);
        let same: Value = serde_json::from_str(&same).expect("JSON");
        assert_eq!(
            (code, &same["equal"]),
            (0, &Value::Bool(true)),
            "{file}: {same}"
        );
    }
}
