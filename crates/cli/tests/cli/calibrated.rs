//! `schedule --calibrate`: data in, scales and what they cost out.

use crate::support::{npy, run};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

const NETWORK: &str = "fixtures/schedule/small.onnx";
const MACHINE: &str = "fixtures/schedule/mesh2x2.json";

fn npz(path: &Path, arrays: &[(&str, Vec<u8>)]) {
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).expect("a file"));
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default();
        writer
            .start_file(format!("{name}.npy"), options)
            .expect("a member");
        writer.write_all(bytes).expect("its bytes");
    }
    writer.finish().expect("an archive");
}

fn schedule(directory: &Path, more: &[&str]) -> (i32, String, String) {
    let output = directory.join("schedule.json");
    let output = output.to_str().expect("a plain path");
    let given = [
        "schedule",
        NETWORK,
        "--machine",
        MACHINE,
        "--trees",
        "50",
        "-o",
        output,
    ];
    run(&[&given, more].concat())
}

/// Small images, which bounds would round away.
fn images(count: u64) -> Vec<u8> {
    let each: u64 = 3 * 8 * 8;
    let values: Vec<f32> = (0..count * each)
        .map(|n| ((n * 37 % 255) as f32 / 127.0 - 1.0) * 0.01)
        .collect();
    npy(&[count, 3, 8, 8], &values)
}

#[test]
fn data_make_int8_accurate() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("data.npz");
    npz(&archive, &[("anything", images(3))]);
    let archive = archive.to_str().expect("a plain path");
    for method in ["min-max", "percentile", "mse"] {
        let more = ["--calibrate", archive, "--calibration", method, "--json"];
        let (code, out, err) = schedule(directory.path(), &more);
        assert_eq!(code, 0, "{err}");
        let said: Value = serde_json::from_str(&out).expect("JSON");
        let comparison = &said["comparison"];
        let error = comparison["outputs"][0]["relative_error"]
            .as_f64()
            .expect("a number");
        assert!(error < 0.1, "{method}: {error}");
        assert!(!err.contains("without calibration data"), "{err}");
    }
    // The same as a directory.
    std::fs::write(directory.path().join("x.npy"), images(1)).expect("a file");
    let path = directory.path().to_str().expect("a plain path");
    let (code, out, err) = schedule(directory.path(), &["--calibrate", path]);
    assert!(code == 0 && out.contains("relative error"), "{out}{err}");
}

#[test]
fn data_that_do_not_fit_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("a plain path").to_owned()
    };
    let cases = [
        (
            file("text.npz", b"no archive"),
            "expected a .npz file or a directory",
        ),
        (
            file("wrong.npy", &npy(&[1, 5], &[0.0; 5])),
            "expected images of",
        ),
        (file("empty.npy", &npy(&[0, 3], &[])), "expected images of"),
        (
            directory.path().join("absent.npz").display().to_string(),
            "absent.npz",
        ),
    ];
    for (path, message) in cases {
        let (code, _, err) = schedule(directory.path(), &["--calibrate", &path]);
        assert!(code == 2 && err.contains(message), "{path}: {err}");
    }
    let (code, _, err) = schedule(directory.path(), &["--calibration", "mse"]);
    assert!(code == 2 && err.contains("--calibrate"), "{err}");
    let fp16 = file("one.npy", &images(1));
    let (code, _, err) = schedule(
        directory.path(),
        &["--calibrate", &fp16, "--precision", "fp16"],
    );
    assert!(code == 2 && err.contains("--calibrate"), "{err}");
}

/// A schedule does not carry its machine: given again, it is the one by which the schedule was replayed.
#[test]
fn a_schedule_runs_by_the_mesh_that_it_was_made_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = std::fs::read_to_string(crate::support::root().join(MACHINE)).expect("a machine");
    let slow = directory.path().join("slow.json");
    let slower = text.replace(
        "\"columns\", \"bytes_per_cycle\": 4",
        "\"columns\", \"bytes_per_cycle\": 1",
    );
    assert_ne!(slower, text);
    std::fs::write(&slow, slower).expect("a file");
    let slow = slow.to_str().expect("a plain path");
    let (code, out, err) = run(&[
        "schedule",
        NETWORK,
        "--machine",
        slow,
        "--trees",
        "50",
        "--json",
        "--no-compare",
        "-o",
        directory
            .path()
            .join("schedule.json")
            .to_str()
            .expect("a plain path"),
    ]);
    assert_eq!(code, 0, "{err}");
    let replayed: Value = serde_json::from_str(&out).expect("JSON");
    let schedule = directory.path().join("schedule.json");
    let schedule = schedule.to_str().expect("a plain path");
    let latency = |more: &[&str]| {
        let (code, out, err) = run(&[&["run", schedule, "--timing-only", "--json"], more].concat());
        assert_eq!(code, 0, "{err}");
        let summary: Value = serde_json::from_str(&out).expect("JSON");
        summary["latency_ns"].as_f64().expect("a time")
    };
    // A cycle of this mesh is a nanosecond.
    let delay = replayed["replay"]["delay_cycles"].as_f64().expect("cycles");
    assert!((latency(&["--machine", slow]) - delay).abs() < 1.0);
    assert!((latency(&[]) - delay).abs() > 100.0);
}

/// The model itself is computed for the inputs of the run.
#[test]
fn a_run_is_compared_with_its_model() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (network, weights) = (path("net.json"), path("weights"));
    let beside = ["--network-out", &network, "--weights-out", &weights];
    let (code, _, err) = schedule(
        directory.path(),
        &[&["--precision", "fp16"], &beside[..]].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let schedule = path("schedule.json");
    let compared = |model: &str, more: &[&str]| {
        let given = [
            "run",
            &schedule,
            "--machine",
            MACHINE,
            "--network",
            &network,
            "--weights",
            &weights,
            "--json",
            "--compare",
            model,
        ];
        run(&[&given, more].concat())
    };
    let (code, out, err) = compared(NETWORK, &["--tolerance", "1%"]);
    assert_eq!(code, 0, "{err}");
    let said: Value = serde_json::from_str(&out).expect("JSON");
    let found = &said["compare"][0];
    assert!(
        found["agrees"] == true && found["differing"].as_u64() > Some(0),
        "{found}"
    );
    // What is off by more than a tolerance may be so by rounding alone: the model with layers rounded to half precision tells.
    let (code, out, _) = compared(NETWORK, &["--tolerance", "0.001%"]);
    assert_eq!(code, 1);
    let said: Value = serde_json::from_str(&out).expect("JSON");
    let found = &said["compare"][0];
    let number = |key: &str| found[key].as_f64().expect("a number");
    assert!(
        number("rounding") > 0.0 && number("relative_error") < 2.0 * number("rounding"),
        "{found}"
    );
    let (code, _, err) = compared(NETWORK, &["--constant", "rate=16000"]);
    let expected = "as --constant, found `rate`";
    assert!(code == 2 && err.contains(expected), "{err}");
    // Half of a model is none.
    let model = std::fs::read(crate::support::root().join(NETWORK)).expect("a fixture");
    std::fs::write(path("half.onnx"), &model[..model.len() / 2]).expect("written");
    let (code, _, err) = compared(&path("half.onnx"), &[]);
    assert!(code == 2 && err.contains("half.onnx"), "{err}");
    let (code, _, err) = compared(NETWORK, &["--timing-only"]);
    assert!(code == 2 && err.contains("a run with data"), "{err}");
    // The batch is the program's, whatever the model was exported for.
    let two = ["--precision", "fp16", "--batch", "2"];
    let (code, _, err) = self::schedule(directory.path(), &[&two, &beside[..]].concat());
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = compared(NETWORK, &["--tolerance", "1%"]);
    assert_eq!(code, 0, "{out}{err}");
    // Integers of a quantised schedule are no numbers of the model.
    let (code, _, err) = self::schedule(
        directory.path(),
        &[&["--precision", "int8"], &beside[..]].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = compared(NETWORK, &[]);
    let said = "whose scale the program does not say, found reals";
    assert!(code == 2 && err.contains(said), "{err}");
}

#[test]
fn constants_are_inputs_of_the_network_and_numbers_or_arrays() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |constant: &str| {
        let (code, _, err) = schedule(directory.path(), &["--constant", constant]);
        assert_eq!(code, 2, "{err}");
        err
    };
    assert!(refused("rate=16k").contains("expected a number or FILE.npy for rate, found \"16k\""));
    assert!(refused("rate").contains("expected NAME=NUMBER or NAME=FILE.npy"));
    let named = refused("rate=16000");
    assert!(
        named.contains("expected the name of an input (") && named.contains("found `rate`"),
        "{named}"
    );
    assert!(refused("rate=absent.npy").contains("No such file"));
}
