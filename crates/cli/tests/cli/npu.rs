//! NPU programs through the public door: every fixture is run by the binary and compared with its reference.

use crate::support::{self, done, root};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Bounds on the difference from the reference, for each output: `bounds.toml` of a fixture.
#[derive(Deserialize)]
struct Bounds {
    output: Vec<Bound>,
}

#[derive(Deserialize)]
struct Bound {
    atol: f64,
    rtol: f64,
    mean_abs: Option<f64>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/npu")
}

fn chipless(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chipless"))
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = chipless(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

fn values(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = npyz::NpyFile::new(&bytes[..]).expect("an npy file");
    let npyz::DType::Plain(plain) = file.dtype() else {
        panic!("a plain type")
    };
    let name = plain.to_string();
    match &name[1..] {
        "f4" => file
            .into_vec::<f32>()
            .map(|v| v.into_iter().map(f64::from).collect()),
        "f2" => file
            .into_vec::<half::f16>()
            .map(|v| v.into_iter().map(f64::from).collect()),
        "u1" => file
            .into_vec::<u8>()
            .map(|v| v.into_iter().map(f64::from).collect()),
        "i1" => file
            .into_vec::<i8>()
            .map(|v| v.into_iter().map(f64::from).collect()),
        other => panic!("{}: type {other}", path.display()),
    }
    .expect("its elements")
}

/// Runs a fixture; its outputs must be within the bounds of the reference.
fn run(name: &str) {
    let fixture = fixtures().join(name);
    let blob = fixture.join("program.blob").display().to_string();
    let info = json(&["info", "--format", "json", &blob]);
    let inputs: Vec<String> = info["inputs"]
        .as_array()
        .expect("inputs")
        .iter()
        .enumerate()
        .map(|(k, input)| {
            format!(
                "{}={}",
                input["name"].as_str().expect("a name"),
                fixture.join(format!("input_{k}.npy")).display()
            )
        })
        .collect();
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().display().to_string();
    let mut arguments = vec!["run", &blob, "--output-dir", &directory, "--json"];
    for input in &inputs {
        arguments.extend(["--input", input]);
    }
    let summary = json(&arguments);
    let bounds = std::fs::read_to_string(fixture.join("bounds.toml")).expect("bounds");
    let bounds: Bounds = toml::from_str(&bounds).expect("bounds");
    let outputs = summary["outputs"].as_array().expect("outputs");
    assert_eq!(outputs.len(), bounds.output.len(), "{name}");
    for (k, (output, bound)) in outputs.iter().zip(&bounds.output).enumerate() {
        let got = values(Path::new(output["path"].as_str().expect("a path")));
        let want = values(&fixture.join(format!("output_{k}.npy")));
        assert_eq!(got.len(), want.len(), "{name}");
        let differences: Vec<f64> = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).collect();
        for (index, (difference, want)) in differences.iter().zip(&want).enumerate() {
            assert!(
                *difference <= bound.atol + bound.rtol * want.abs(),
                "{name}: element {index}: {} is not {want}",
                got[index]
            );
        }
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        assert!(
            bound.mean_abs.is_none_or(|limit| mean <= limit),
            "{name}: mean difference {mean}"
        );
    }
}

#[test]
fn every_fixture_comes_out_right() {
    let mut names: Vec<String> = std::fs::read_dir(fixtures())
        .expect("fixtures")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a plain name")
        })
        .collect();
    names.sort();
    assert!(names.len() >= 20, "{names:?}");
    for name in &names {
        run(name);
    }
}

/// The references of the fixtures themselves: `output_0.npy`.
#[test]
fn outputs_are_compared_with_numbered_files() {
    let fixture = fixtures().join("add");
    let path = |name: &str| fixture.join(name).display().to_string();
    let inputs = ["x", "y"].iter().enumerate();
    let inputs: Vec<String> = inputs
        .map(|(k, name)| format!("{name}={}", path(&format!("input_{k}.npy"))))
        .collect();
    let compare = |with: &str| {
        let run = ["run", &path("program.blob"), "--json", "--compare", with];
        let inputs = ["--input", &inputs[0], "--input", &inputs[1]];
        json(&[&run[..], &inputs].concat())["compare"].clone()
    };
    let expected = compare(&path("output_0.npy"));
    assert_eq!(expected[0]["agrees"], true);
    assert_eq!(compare(&path("")), expected);
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(path("output_0.npy"), folder.path().join("output_add_1.npy")).expect("a copy");
    assert_eq!(compare(&folder.path().display().to_string()), expected);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let fixture = fixtures().join("resblock");
    let blob = fixture.join("program.blob").display().to_string();
    let outputs: Vec<Vec<u8>> = ["1", "3"]
        .iter()
        .map(|threads| {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().display().to_string();
            let summary = json(&[
                "run",
                &blob,
                "--seed",
                "7",
                "--threads",
                threads,
                "--output-dir",
                &path,
                "--json",
            ]);
            std::fs::read(summary["outputs"][0]["path"].as_str().expect("a path"))
                .expect("the output")
        })
        .collect();
    assert_eq!(outputs[0], outputs[1]);
}

#[test]
fn timing_alone_gives_the_same_times() {
    let blob = fixtures()
        .join("net_cnn_dpu/program.blob")
        .display()
        .to_string();
    let whole = json(&["run", &blob, "--json"]);
    let timing = json(&["run", &blob, "--timing-only", "--json"]);
    assert_eq!(whole["latency_ns"], timing["latency_ns"]);
    assert_eq!(whole["queues"], timing["queues"]);
}

/// The parts of a batched multiplication have one workload identifier, and one record: what the last of them leaves there.
#[test]
fn parts_of_a_batch_share_a_profiling_record() {
    let blob = fixtures()
        .join("bmm_prof/program.blob")
        .display()
        .to_string();
    let tasks = json(&["list", &blob, "--format", "json"]);
    let tasks = tasks["tasks"].as_array().expect("tasks");
    let parts = tasks
        .iter()
        .filter(|task| task["queue"] == "dpu0" && task["layer"] == "matmul_3");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("profile.bin");
    let path = path.to_str().expect("a plain path");
    let summary = json(&["run", &blob, "--profile", path, "--json"]);
    let buffer = std::fs::read(path).expect("the buffer");
    let records = buffer[..buffer.len() - 64].chunks(32);
    assert!(
        records.len()
            < tasks
                .iter()
                .filter(|task| task["queue"]
                    .as_str()
                    .is_some_and(|queue| queue.starts_with("dpu")))
                .count()
    );
    assert!(parts.count() > 1);
    assert_eq!(summary["profiling"]["records"], records.len());
    assert!(
        records
            .into_iter()
            .all(|record| record.iter().any(|byte| *byte != 0))
    );
}

#[test]
fn a_truncated_file_is_refused_with_its_name_and_a_place() {
    let whole = std::fs::read(fixtures().join("conv1x1/program.blob")).expect("the fixture");
    let directory = tempfile::tempdir().expect("a directory");
    let cut = directory.path().join("cut.blob");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    let output = chipless(&["run", &cut.display().to_string()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cut.blob") && text.contains("0x"), "{text}");
}

#[test]
fn a_mistyped_input_gets_a_suggestion() {
    let blob = fixtures()
        .join("conv1x1/program.blob")
        .display()
        .to_string();
    let input = format!("X={}", fixtures().join("conv1x1/input_0.npy").display());
    let output = chipless(&["run", &blob, "--input", &input]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("did you mean"), "{text}");
}

#[test]
fn the_disassembly_of_a_small_program() {
    let blob = fixtures()
        .join("conv1x1/program.blob")
        .display()
        .to_string();
    let output = chipless(&["list", &blob]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout)
        .replace(&fixtures().display().to_string(), "fixtures/npu");
    insta::assert_snapshot!(text);
}

/// NPU3720: 16 bytes for each workload and each transfer, whose times the program takes itself, and the names of both.
#[test]
fn a_profile_of_npu3720_has_workloads_and_transfers() {
    let blob = fixtures()
        .join("conv_pair_3720_prof/program.blob")
        .display()
        .to_string();
    let list = json(&["list", &blob, "--format", "json"]);
    let tasks = list["tasks"].as_array().expect("tasks");
    let named = |queue: &str| {
        let of = |task: &&serde_json::Value| {
            task["queue"]
                .as_str()
                .is_some_and(|name| name.starts_with(queue))
                && !task["label"].is_null()
        };
        tasks.iter().filter(of).count()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("profile.bin");
    let path = path.to_str().expect("a plain path");
    let summary = json(&["run", &blob, "--profile", path, "--json"]);
    let buffer = std::fs::read(path).expect("the buffer");
    let records = named("dpu") + named("dma");
    assert!(named("dpu") == 6 && named("dma") > 6);
    assert_eq!(summary["profiling"]["records"], records);
    let word = |at: usize| u64::from_le_bytes(buffer[at..at + 8].try_into().expect("eight bytes"));
    let mask = (1 << 28) - 1;
    for at in (0..6).map(|number| 16 * number) {
        // A length in cycles of 1300 MHz and the end in cycles of 975 MHz, twice.
        let (length, end) = (word(at) & mask, word(at) >> 28 & mask);
        assert!(length > 0 && end * 4 > length * 3, "{length} {end}");
        assert_eq!(word(at), word(at + 8));
    }
    assert_eq!(buffer.len() % 64, 0);
}

#[test]
fn an_input_with_two_sizes_is_told() {
    // The symbol of the first input: its size follows 16 bytes of name, kind, section and value.
    const SIZE: usize = 45696 + 24 + 16;
    let mut blob =
        std::fs::read(crate::support::root().join("fixtures/npu/add/program.blob")).unwrap();
    let elf = blob.windows(4).position(|w| w == b"\x7fELF").unwrap();
    let size = &mut blob[elf + SIZE..elf + SIZE + 8];
    assert_eq!(size, 16384u64.to_le_bytes());
    size.copy_from_slice(&8192u64.to_le_bytes());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("two.blob");
    std::fs::write(&path, blob).unwrap();
    let (code, out, _) = crate::support::run(&["check", path.to_str().unwrap()]);
    let said = "x takes 16384 bytes; the symbol of io.NetworkInput.0 says 8192";
    assert!(
        code == 0 && out.contains("program-interface-size") && out.contains(said),
        "{code}: {out}"
    );
}

/// Fields of a DPU workload whose meaning is not public, and the name that refuses them.
const SPARSE_OUTPUTS: [(&str, &str); 3] = [
    ("write_sp", "sparse output (write_sp, sp_out_en)"),
    ("sp_out_en", "sparse output (write_sp, sp_out_en)"),
    ("write_pt", "pointer output (write_pt)"),
];

#[test]
fn outputs_with_sparsity_maps_are_listed_field_by_field_and_refused_by_name() {
    let original = "fixtures/npu/conv1x1/program.blob";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made_up.blob");
    let name = path.to_str().expect("a name");
    let field_of = |file: &str, field: &str| {
        let listed = done(&["list", file, "dpu0[0]", "--registers", "--json"]);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let structures = listed["tasks"][0]["registers"]
            .as_array()
            .expect("structures");
        let invariant = structures
            .iter()
            .find(|s| s["structure"] == "invariant")
            .expect("one");
        let mut fields = invariant["fields"].as_array().expect("fields").iter();
        let found = fields
            .find(|f| f["name"] == field)
            .expect("a field")
            .clone();
        (invariant["offset"].as_u64().expect("an offset"), found)
    };
    for (field, refused) in SPARSE_OUTPUTS {
        let (start, before) = field_of(original, field);
        assert_eq!(
            (&before["value"], &before["register"]),
            (&json!(0), &json!("odu_cfg"))
        );
        let number = |key: &str| before[key].as_u64().expect("a number");
        let mut bytes = fs::read(root().join(original)).expect("a fixture");
        let at = start + number("byte") + number("bit") / 8;
        bytes[at as usize] |= 1 << (number("bit") % 8);
        fs::write(&path, bytes).expect("a file");

        let (_, after) = field_of(name, field);
        assert_eq!(after["value"], 1, "{field}");
        // It is checked and timed; a run that computes says what it cannot.
        let (_, said, _) = support::run(&["check", name]);
        assert!(
            said.contains("npu-not-executed") && said.contains(refused),
            "{said}"
        );
        assert!(done(&["run", name, "--timing-only"]).contains("ns"));
        let (code, said, err) = support::run(&["run", name]);
        assert!(
            code != 0 && format!("{said}{err}").contains(refused),
            "{said}{err}"
        );
    }
}

/// Tasks that the compiler plans in another order than the one in which they start are known by their names.
#[test]
fn tasks_are_compared_with_what_the_trace_calls_them() {
    let blob = fixtures().join("chain_tiles4/program.blob");
    let blob = blob.to_str().expect("a path");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let mut events = Vec::new();
    for tile in 0..4 {
        let named = |what: &str, thread: u32, name: &str| json!({"ph": "M", "name": what, "pid": tile, "tid": thread, "args": {"name": name}});
        events.push(named("process_name", 1, &format!("Cluster ({tile})")));
        events.push(named("thread_name", 1, "DPU"));
        events.push(named("thread_name", 2, "DPU Variants"));
        for layer in 0..4 {
            let event = |name: &str, thread: u32, start: u32| json!({"ph": "X", "name": name, "pid": tile, "tid": thread, "ts": start, "dur": layer + 1});
            let name = format!("layer_{layer}?t_Convolution/cluster_{tile}");
            events.push(event(&name, 1, 10 * layer));
            events.push(event(&format!("{name}/variant_0"), 2, 100 - 10 * layer));
        }
    }
    fs::write(&path, json!({ "traceEvents": events }).to_string()).expect("the trace");
    let path = path.to_str().expect("a path");
    let run = json(&["run", blob, "--timing-only", "--json", "--compare", path]);
    let all = run["compared"]["worst"].as_array().expect("tasks");
    for layer in 0..4 {
        let name = format!("dpu2[{layer}]");
        let task = all.iter().find(|times| times["task"] == *name);
        let task = task.unwrap_or_else(|| panic!("{name}: {all:?}"));
        assert_eq!(
            task["trace_duration_ns"],
            f64::from(layer + 1) * 1e3,
            "{name}"
        );
    }
}

/// What the trace and the model are not is said by the name that people have for it.
#[test]
fn another_file_in_place_of_a_trace_is_named() {
    let blob = fixtures().join("add/program.blob");
    let blob = blob.to_str().expect("a path");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.onnx");
    fs::write(&path, b"\x08\x0a\x12\x07pytorch").expect("a file");
    let path = path.to_str().expect("a path");
    let (code, _, err) = support::run(&["run", blob, "--timing-only", "--names", path]);
    let said = "expected the compiler's schedule trace (JSON), found an ONNX model";
    assert!(code == 2 && err.contains(said), "{err}");
}

/// The model's nodes stand beside the layers that come from them.
#[test]
fn layers_are_shown_with_their_nodes() {
    let blob = fixtures().join("var_prof/program.blob");
    let blob = blob.to_str().expect("a path");
    let plain = json(&["run", blob, "--timing-only", "--json"]);
    let layer = plain["layers"][0]["layer"].as_str().expect("a layer");
    let node = layer.split('/').next().expect("a name");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.xml");
    let text = format!(
        "<net><layers><layer id=\"0\" name=\"{node}\" type=\"Convolution\"/></layers></net>"
    );
    fs::write(&path, text).expect("a model");
    let path = path.to_str().expect("a path");
    let with = ["run", blob, "--timing-only", "--model", path];
    let json = json(&[&with[..], &["--json"]].concat());
    assert_eq!(
        json["layers"][0]["node"],
        json!({"name": node, "operation": "Convolution"})
    );
    let text = done(&with);
    assert!(
        text.contains(&format!("node {node} (Convolution)")),
        "{text}"
    );
}

#[test]
fn names_of_another_compilation_are_not_used() {
    let blob = fixtures().join("resblock/program.blob");
    let blob = blob.to_str().expect("a path");
    let folder = tempfile::tempdir().expect("a folder");
    // Five invariants for each DPU, in as many tiles as the trace knows.
    let trace = |tiles: usize| {
        let lane = |tile: usize| {
            let named = |what: &str, name: &str| json!({"ph": "M", "name": what, "pid": tile, "tid": 1, "args": {"name": name}});
            let names = [
                named("process_name", &format!("Cluster ({tile})")),
                named("thread_name", "DPU"),
            ];
            let events = (0..5).map(move |at| {
                json!({"ph": "X", "name": format!("layer_{at}?t_Convolution"), "pid": tile, "tid": 1, "ts": at, "dur": 1})
            });
            names.into_iter().chain(events).collect::<Vec<_>>()
        };
        let events: Vec<Value> = (0..tiles).flat_map(lane).collect();
        let path = folder.path().join(format!("{tiles}.json"));
        fs::write(&path, json!({ "traceEvents": events }).to_string()).expect("the trace");
        path.to_str().expect("a path").to_owned()
    };
    let own = json(&["run", blob, "--timing-only", "--json", "--names", &trace(4)]);
    assert_eq!(own["layers"].as_array().expect("layers").len(), 5);
    // A trace that the run is compared with names its tasks, too.
    let compared = json(&[
        "run",
        blob,
        "--timing-only",
        "--json",
        "--compare",
        &trace(4),
    ]);
    assert_eq!(compared["layers"], own["layers"]);
    assert_eq!(
        compared["notes"].as_array().expect("notes").len() + 1,
        json(&["run", blob, "--timing-only", "--json"])["notes"]
            .as_array()
            .expect("notes")
            .len()
    );
    let text = done(&["run", blob, "--timing-only", "--names", &trace(1)]);
    let said = "The schedule trace is of another compilation";
    assert!(text.contains(said), "{text}");
    let other = json(&["run", blob, "--timing-only", "--json", "--names", &trace(1)]);
    assert_eq!(other["layers"], Value::Null);
}

/// Found by fuzzing: a compressed input whose channels are all left out.
#[test]
fn an_input_without_channels_is_checked_like_others() {
    let mut bytes = fs::read(root().join("fixtures/npu/conv_c3/program.blob")).unwrap();
    assert_eq!(bytes[0x6d86], 32);
    bytes[0x6d86] = 131;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("program.blob");
    fs::write(&file, bytes).unwrap();
    let (code, out, err) = support::run(&["check", file.to_str().unwrap()]);
    assert!(code == 1 && err.is_empty(), "{code} {out} {err}");
}
