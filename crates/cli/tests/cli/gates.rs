//! What continuous integration asks: budgets, regressions, formats; and that layers and live bytes add up.

use crate::support::{json_of, root, run};
use serde_json::Value;
use std::collections::HashSet;

const BLOB: &str = "fixtures/npu/resblock/program.blob";
const NAMED: &str = "fixtures/npu/var_prof/program.blob";
const PLAN: &str = "fixtures/spu/choice/plan.json";
/// Every time of [`PLAN`] is rounded to 0 ps.
const ENDLESSLY_FAST: &str = "clock.mhz=1e9x";
const RING: &str = "fixtures/broken/ring.neff";

#[test]
fn a_run_over_its_budget_says_by_how_much() {
    let asked = |budget: &str| run(&["run", BLOB, "--timing-only", "--json", "--budget", budget]);
    let (code, out, err) = asked("latency=10us,peak.cmx=100%");
    let report: Value = serde_json::from_str(&out).unwrap();
    let within: Vec<_> = (report["budgets"].as_array().unwrap().iter())
        .map(|budget| budget["within"].as_bool().unwrap())
        .collect();
    assert_eq!((code, within), (1, vec![false, true]));
    assert!(
        err.contains("latency=10us: 15.68 µs of 10.00 µs, 56.8 % over the budget"),
        "{err}"
    );
    assert_eq!(asked("latency=1ms").0, 0);
    let (code, _, err) = asked("peak.cnx=1");
    assert!(code == 2 && err.contains("cmx0"), "{err}");
    assert_eq!(asked("latency=soon").0, 2);
    let (code, _, err) = asked("latency=0ns,moved=0,peak.cmx=0%");
    assert!(
        code == 1 && err.contains("15.68 µs of 0.000 ns, over the budget"),
        "{err}"
    );
    assert!(!err.contains("inf") && err.lines().count() == 3, "{err}");
}

#[test]
fn a_run_of_no_time_passes_no_gate_in_silence() {
    let (code, out, _) = run(&[
        "run",
        PLAN,
        "--timing-only",
        "--set",
        ENDLESSLY_FAST,
        "--budget",
        "latency=0ns",
    ]);
    assert!(code == 0 && out.contains("the run takes no time"), "{out}");
    let compared = |set: &str, other: &str| {
        run(&[
            "diff",
            PLAN,
            PLAN,
            "--set",
            set,
            "--other",
            &format!("set={other}"),
            "--max-regression",
            "3%",
        ])
    };
    let (code, _, err) = compared(ENDLESSLY_FAST, "clock.mhz=150");
    assert!(
        code == 1 && err.contains("takes 80.00 ns, ") && err.contains(" no time;"),
        "{err}"
    );
    for before in ["clock.mhz=150", ENDLESSLY_FAST] {
        let (code, _, err) = compared(before, ENDLESSLY_FAST);
        assert!(code == 0 && err.contains("takes no time"), "{err}");
    }
}

#[test]
fn a_slower_program_is_a_regression() {
    let compared = |other: &str, most: &str| {
        run(&[
            "diff",
            BLOB,
            BLOB,
            "--other",
            other,
            "--max-regression",
            most,
        ])
    };
    let (code, _, err) = compared("set=clock.scale=0.5x", "3%");
    assert!(code == 1 && err.contains("% longer than"), "{err}");
    assert_eq!(compared("set=clock.scale=2x", "3%").0, 0);
    assert_eq!(compared("set=clock.scale=0.5x", "fast").0, 2);
}

#[test]
fn findings_have_the_forms_of_ci_systems() {
    let (code, out, _) = run(&["check", "--format", "junit", RING, BLOB]);
    assert!(
        code == 1
            && out.contains("tests=\"2\" failures=\"1\"")
            && out.contains("type=\"deadlock\""),
        "{out}"
    );
    let (code, out, _) = run(&["check", "--format", "gitlab", "--exit-zero", RING]);
    let issues: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &issues[0]["check_name"], &issues[0]["severity"]),
        (0, &"deadlock".into(), &"critical".into())
    );
    let (code, out, _) = run(&[
        "check",
        "--statistics",
        "--format",
        "json",
        "fixtures/broken",
    ]);
    let statistics: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (
            code,
            &statistics["statistics"][0]["code"],
            &statistics["statistics"][0]["count"]
        ),
        (1, &"deadlock".into(), &4.into())
    );
}

#[test]
fn fingerprints_last_while_lines_move() {
    let graph = std::fs::read_to_string(root().join("fixtures/dsa/broken/names.dfg")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.dfg").display().to_string();
    let fingerprints = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let asked = |format, results, key| {
            let (_, out, _) = run(&["check", "--format", format, &path]);
            let report: Value = serde_json::from_str(&out).unwrap();
            let results = report.pointer(results).and_then(Value::as_array).unwrap();
            let each = results
                .iter()
                .map(|result| result.pointer(key).unwrap().clone());
            each.collect::<Vec<Value>>()
        };
        [
            asked("gitlab", "", "/fingerprint"),
            asked(
                "sarif",
                "/runs/0/results",
                "/partialFingerprints/chipless~1v1",
            ),
        ]
    };
    let before = fingerprints(&graph);
    for each in &before {
        let different: HashSet<&Value> = each.iter().collect();
        assert!(each.len() > 1 && different.len() == each.len(), "{each:?}");
    }
    assert_eq!(fingerprints(&format!("\n\n{graph}")), before);
}

#[test]
fn statistics_refuse_formats_of_single_findings_before_they_check() {
    for format in ["sarif", "github", "junit", "gitlab"] {
        let (code, out, err) = run(&["check", "--statistics", "--format", format, "missing/*"]);
        assert!(
            code == 2 && out.is_empty() && err.starts_with("--statistics: "),
            "{err}"
        );
    }
}

#[test]
fn layers_add_up_to_the_run() {
    let report = json_of(&["run", NAMED, "--timing-only", "--json"]);
    let sum = |key: &str| -> f64 {
        let rows = report[key].as_array().into_iter().flatten();
        rows.map(|row| row["critical_ns"].as_f64().unwrap()).sum()
    };
    let latency = report["latency_ns"].as_f64().unwrap();
    assert!(
        (sum("layers") + sum("outside_layers") - latency).abs() < 1e-3,
        "{report}"
    );
    let picoseconds = |ns: &Value| (ns.as_f64().unwrap() * 1e3).round() as u64;
    let engines = report["critical"]["by_engine"].as_array().unwrap();
    let engines: u64 = engines
        .iter()
        .map(|engine| picoseconds(&engine["ns"]))
        .sum();
    assert_eq!(engines, picoseconds(&report["latency_ns"]));
    let shares = report["critical"]["by_engine"].as_array().unwrap().iter();
    let shares: f64 = shares.map(|engine| engine["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    // A transfer that brings weights has no name of its own.
    let listed = json_of(&["list", NAMED, "dma*", "--format", "json"]);
    let tasks = listed["tasks"].as_array().unwrap();
    let by_reader = tasks.iter().filter(|task| task["layer_source"] == "reader");
    assert!(by_reader.count() > 0, "{listed}");
}

#[test]
fn live_bytes_are_bytes_not_spans() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("memory.csv").display().to_string();
    let neff = "fixtures/neuron/matmul_five_engines/program.neff";
    run(&["run", neff, "--timing-only", "--memory", &table]);
    let text = std::fs::read_to_string(&table).unwrap();
    let live = text.lines().filter(|line| line.starts_with("sg00.sbuf,"));
    let most = live
        .filter_map(|line| line.rsplit(',').next()?.parse::<u64>().ok())
        .max();
    // All rectangles that the program touches there have 38,912 bytes together.
    assert!(
        most.is_some_and(|most| most > 0 && most <= 38_912),
        "{most:?}"
    );
}

#[cfg(unix)]
#[test]
fn an_endless_device_is_refused_at_once() {
    let (code, _, err) = run(&["info", "/dev/zero"]);
    assert!(code == 2 && err.contains("a character device"), "{err}");
}

/// A schedule alone says when, not what.
#[test]
fn a_schedule_without_its_network_is_timed_and_says_so_first() {
    let schedule = "fixtures/gemini/four_cores/schedule.json";
    let (code, out, err) = run(&["run", schedule]);
    assert!(code == 0 && out.contains("111 tasks"), "{out}{err}");
    assert!(
        err.contains("times only") && err.contains("--network"),
        "{err}"
    );
    let (_, timed, _) = run(&["run", schedule, "--timing-only"]);
    assert_eq!(out, timed);
    for asked in [["--output-dir", "out"], ["--dump", "core0.pe"]] {
        let (code, _, err) = run(&[&["run", schedule], &asked[..]].concat());
        assert!(code == 2 && err.contains("--network"), "{err}");
    }
}

/// What a program measures of itself is no output and belongs to no layer; `list` takes layers by the names of `run`.
#[test]
fn profiling_and_layers_are_told_apart() {
    let report = json_of(&["run", NAMED, "--timing-only", "--json"]);
    let rows = report["transfers"].as_array().unwrap();
    let carried = |name: &str| {
        let row = rows.iter().find(|row| row["carries"] == name);
        row.unwrap()["transfers"].as_u64()
    };
    assert_eq!(
        (carried("profiling"), carried("output")),
        (Some(4), Some(4))
    );
    let outside = report["outside_layers"].as_array().unwrap();
    let own = outside.iter().find(|part| part["part"] == "profiling");
    assert_eq!(own.unwrap()["tasks"], 4);
    for layer in report["layers"].as_array().unwrap() {
        let name = layer["layer"].as_str().unwrap();
        let listed = json_of(&["list", NAMED, name, "--format", "json"]);
        let listed = listed["tasks"].as_array().unwrap().len();
        assert_eq!(layer["tasks"], listed, "{name}");
    }
    let (code, _, err) = run(&["list", NAMED, "add_9"]);
    assert!(
        code == 2
            && err.contains(
                "expected a queue, an operation, a layer, what transfers carry (spill), or a task"
            ),
        "{err}"
    );
}

/// A word in place of a parameter is answered with the parameters that are meant.
#[test]
fn words_are_answered_with_parameters() {
    for (word, meant) in [
        ("bandwidth", "one of dma.ddr_bytes_per_second, "),
        ("clock", "one of clock.dpu, "),
        ("reference_clok", "\"shave.reference_clock\""),
    ] {
        let changed = format!("{word}=2x");
        let (code, _, err) = run(&["run", BLOB, "--timing-only", "--what-if", &changed]);
        assert_eq!(code, 2);
        assert!(err.contains(&format!("did you mean {meant}")), "{err}");
    }
}

/// The start of an inference is a part of its own, whoever asks.
#[test]
fn the_start_of_an_inference_is_no_layers() {
    const START: &str = "start of the inference";
    let report = json_of(&[
        "run",
        BLOB,
        "--timing-only",
        "--json",
        "--calibration",
        "silicon",
    ]);
    let engines = report["critical"]["by_engine"].as_array().unwrap();
    let own = engines.iter().find(|part| part["engine"] == START).unwrap();
    assert_eq!(own["ns"], 150_000.0);
    let all: f64 = engines
        .iter()
        .map(|part| part["ns"].as_f64().unwrap())
        .sum();
    assert!((all - report["latency_ns"].as_f64().unwrap()).abs() < 1e-3);
    let other = ["--other", "calibration=silicon", "--time", "--json"];
    let difference = json_of(&[&["diff", BLOB, BLOB][..], &other].concat());
    let layers = difference["time"]["layers"].as_array().unwrap();
    let own = layers.iter().find(|part| part["layer"] == START).unwrap();
    assert_eq!(own["contribution_ns"], 150_000.0);
}

/// Weights of a schedule are no inputs, also where nobody gives any.
#[test]
fn weights_that_the_host_brings_are_weights() {
    let schedule = "fixtures/gemini/four_cores/schedule.json";
    let report = json_of(&["run", schedule, "--timing-only", "--json"]);
    let rows = report["transfers"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["carries"] == "weights"));
}

/// A contract and a program side by side are checked one by one, and that is said.
#[test]
fn what_is_not_compared_is_told() {
    let contract = "fixtures/spu/choice/iospec.yaml";
    let (code, out, err) = run(&["check", contract, PLAN]);
    assert_eq!(code, 0, "{out}");
    assert!(
        err.contains(&format!("check {contract} --program {PLAN}` compares them")),
        "{err}"
    );
}

/// Multiplications are those of the layers: two operations each, without padding and parameters.
#[test]
fn operations_of_a_schedule_are_its_multiplications() {
    let folder = "fixtures/gemini/four_cores";
    let (schedule, network) = (
        format!("{folder}/schedule.json"),
        format!("{folder}/network.json"),
    );
    let given = [
        "run",
        &schedule,
        "--network",
        &network,
        "--timing-only",
        "--json",
    ];
    let report = json_of(&given);
    let roofline = report["roofline"].as_array().unwrap();
    let of = |operation: &str| {
        let mut rows = roofline.iter();
        rows.find(|row| row["operation"] == operation).unwrap()["ops"].clone()
    };
    assert_eq!(of("pe"), 2 * 36352);
}
