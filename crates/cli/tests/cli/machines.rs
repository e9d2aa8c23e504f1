//! Machine files of earlier versions: what they lack is built in, and every answer that rests on it says so.

use crate::support::{done, json_of, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const BLOB: &str = "fixtures/npu/net_cnn_dpu/program.blob";

/// Figures that came later than others: of programs, and of the device.
const LATER: [&str; 6] = [
    "constant_bytes_per_second = 0.0",
    "cold = false",
    "prefetch_pages = 1",
    "grant = 50.0",
    "[shave.data]",
    "cmx_bytes_per_second = 31.2e9",
];

/// A machine file with some lines changed.
fn file(folder: &Path, change: impl Fn(&str) -> Option<String>) -> PathBuf {
    let whole = done(&["machine", "npu4", "--template"]);
    let lines = whole.lines().filter_map(change);
    let text: String = lines.map(|line| line + "\n").collect();
    let path = folder.join("old.toml");
    fs::write(&path, text).expect("a file");
    path
}

fn old(folder: &Path) -> PathBuf {
    // Without the section of data caches, its figures that stay would be those of the section before.
    let of_data = [
        "l2_bypass",
        "l1 =",
        "l2_bytes",
        "latency = 878.378",
        "ddr_bytes_per_second = 31",
    ];
    file(folder, |line| {
        let is_later = LATER.contains(&line);
        let doubled = of_data.iter().any(|name| line.starts_with(name));
        (!is_later && !doubled).then(|| line.to_owned())
    })
}

#[test]
fn a_machine_file_of_an_earlier_version_is_taken_with_what_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = old(folder.path());
    let name = path.to_str().expect("a name");

    // The same time, and it says which figures are built in.
    let run_by = |more: &[&str]| {
        let all = [&["run", BLOB, "--timing-only", "--json"], more].concat();
        json_of(&all)
    };
    let (own, by_old) = (run_by(&[]), run_by(&["--machine", name]));
    // The latency of DMA is among the lines that were taken out.
    assert_eq!(by_old["latency_ns"], own["latency_ns"]);
    let defaulted = by_old["timed_by"]["defaulted"].as_array().expect("keys");
    let has = |key: &str| defaulted.contains(&json!(key));
    assert!(has("dma.constant_bytes_per_second") && has("dma.latency") && has("shave.data.cold"));
    assert!(!has("mmu.prefetch_pages") && !has("clock.dpu"));
    assert!(own["timed_by"].get("defaulted").is_none());
    let said = done(&["run", BLOB, "--timing-only", "--machine", name]);
    assert!(said.contains(&format!(
        "it lacks {} parameters: built-in",
        defaulted.len()
    )));

    // What it lacks can be set like any other figure.
    let set = run_by(&["--machine", name, "--set", "dma.latency=2us"]);
    assert_eq!(
        set["latency_ns"],
        run_by(&["--set", "dma.latency=2us"])["latency_ns"]
    );

    // The device says the same, with its own figures.
    let workload = "fixtures/device/one_camera.yaml";
    let device = json_of(&["device", workload, "--machine", name, "--json"]);
    let defaulted = device["defaulted"].as_array().expect("keys");
    for key in ["dma.latency", "mmu.prefetch_pages", "doorbell.grant"] {
        assert!(defaulted.contains(&json!(key)), "{key}");
    }
    let built_in = json_of(&["device", workload, "--json"]);
    assert_eq!(device["streams"], built_in["streams"]);
    assert_eq!(device["grades"], built_in["grades"]);
    assert_eq!(built_in["defaulted"], json!([]));
    let said = done(&["device", workload, "--machine", name]);
    assert!(said.contains("the machine file lacks"), "{said}");

    // All its figures, those that it lacks marked; and a file that lacks none.
    let all = json_of(&["machine", name, "--json"]);
    let of = |key: &str| {
        let mut figures = all["figures"].as_array().expect("figures").iter();
        figures
            .find(|figure| figure["key"] == key)
            .cloned()
            .expect("a figure")
    };
    assert_eq!(of("dma.latency")["defaulted"], true);
    assert_eq!(of("dma.latency")["grade"], "cost model");
    assert!(of("clock.dpu").get("defaulted").is_none());
    let said = done(&["machine", name]);
    assert!(said.contains("878.378 ns  (built-in: the file lacks it) cost model: "));
    let new = folder.path().join("new.toml");
    fs::write(&new, done(&["machine", name, "--template"])).expect("a file");
    let by_new = run_by(&["--machine", new.to_str().expect("a name")]);
    assert!(by_new["timed_by"].get("defaulted").is_none());
    assert_eq!(by_new["latency_ns"], own["latency_ns"]);
}

/// A built-in machine is as good as its file, and its name means it even where a file is called so.
#[test]
fn machines_are_taken_by_their_names() {
    let timed =
        |more: &[&str]| json_of(&[&["run", BLOB, "--timing-only", "--json"], more].concat());
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("own.toml");
    fs::write(&own, done(&["machine", "npu5", "--template"])).expect("a file");
    let by_file = timed(&["--machine", own.to_str().expect("a name")]);
    let by_name = timed(&["--machine", "npu5"]);
    assert_eq!(by_name["latency_ns"], by_file["latency_ns"]);
    assert_eq!(
        by_name["timed_by"],
        json!({"name": "NPU5", "file": null, "set": [], "other_calibrations": ["silicon"]})
    );
    assert_eq!(
        timed(&["--machine", "npu4"])["latency_ns"],
        timed(&[])["latency_ns"]
    );
    for (name, said) in [
        ("npu6", "did you mean \"npu4\"?"),
        (
            "trn2",
            "expected a machine of target npu (npu4, npu5, npu3, or a file), found `trn2`, one of neuron",
        ),
    ] {
        let (code, _, err) = run(&["run", BLOB, "--timing-only", "--machine", name]);
        assert!(code == 2 && err.contains(said), "{err}");
    }
}

/// What a program does on a chip that it was not compiled for is said, and so is what that chip lacks.
#[test]
fn a_program_on_another_generation_says_so() {
    let text = done(&["run", BLOB, "--timing-only", "--machine", "npu5"]);
    let said = "compiled for NPU4000, timed on NPU5 (NPU5010): tasks and their tiles stay as compiled. The program uses 4 tiles, NPU5 has 3";
    assert!(text.contains(said), "{text}");
    let whole = [
        "run",
        "fixtures/npu/conv_leaky_5010/program.blob",
        "--timing-only",
    ];
    assert!(!done(&whole).contains("compiled for"));
    let fits = done(&[&whole[..], &["--machine", "npu4"]].concat());
    assert!(
        fits.contains("compiled for NPU5010, timed on NPU4") && !fits.contains("could not"),
        "{fits}"
    );
    let six = [
        "run",
        BLOB,
        "--timing-only",
        "--machine",
        "npu5",
        "--what-if",
        "tiles=6",
    ];
    let (code, _, err) = run(&six);
    assert!(code == 2 && err.contains("expected tiles=1 to 3"), "{err}");
}

/// Many parameters have one source.
#[test]
fn machines_say_a_source_once_and_can_be_searched() {
    let all = done(&["machine", "npu"]);
    let lines: Vec<&str> = all.lines().collect();
    let source = |line: &str| {
        line.split_once("cost model: ")
            .map(|(_, source)| source.to_owned())
    };
    let repeated = lines
        .windows(2)
        .find(|pair| source(pair[0]).is_some() && source(pair[0]) == source(pair[1]));
    assert_eq!(repeated, None);
    let one = done(&["machine", "npu", "dma.latency"]);
    assert!(
        one.lines().count() == 3 && one.contains("  dma.latency          878.378 ns"),
        "{one}"
    );
    let few = json_of(&["machine", "npu4", "dma", "--json"]);
    assert!(
        few["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .all(|f| f["key"].as_str().expect("a key").contains("dma"))
    );
    let (code, _, err) = run(&["machine", "npu", "dma.latncy"]);
    assert!(
        code == 2 && err.contains("did you mean \"dma.latency\"?"),
        "{err}"
    );
}

#[test]
fn unknown_figures_stay_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), |line| {
        Some(line.replace("prefetch_pages =", "prefetch_page ="))
    });
    let name = path.to_str().expect("a name");
    let (code, _, err) = run(&[
        "device",
        "fixtures/device/one_camera.yaml",
        "--machine",
        name,
    ]);
    assert!(code == 2 && err.contains("mmu.prefetch_page"), "{err}");
    let path = file(folder.path(), |line| {
        Some(line.replace("synchronise =", "synchronize ="))
    });
    let name = path.to_str().expect("a name");
    let (code, _, err) = run(&["run", BLOB, "--timing-only", "--machine", name]);
    assert!(code == 2 && err.contains("synchronize"), "{err}");
    let nothing = folder.path().join("nothing.toml");
    fs::write(&nothing, "[a]\nb = 1\n").expect("a file");
    let (code, _, err) = run(&["machine", nothing.to_str().expect("a name")]);
    assert!(
        code == 2 && err.contains("expected a machine file"),
        "{err}"
    );
}

#[test]
fn every_figure_of_an_npu_has_a_grade_and_results_rest_on_them() {
    for machine in ["npu4", "npu5", "npu3"] {
        let all = json_of(&["machine", machine, "--json"]);
        for figure in all["figures"].as_array().expect("figures") {
            assert!(figure.get("grade").is_some(), "{machine}: {figure}");
        }
    }
    // A program of a file rests on the figures of its times; a made-up one on those of the device alone.
    let grades = |workload: &str, more: &[&str]| {
        let all = [&["device", workload, "--json"], more].concat();
        json_of(&all)["grades"].clone()
    };
    let count = |grades: &Value, name: &str| grades[name].as_u64().expect("a count");
    let made_up = grades("fixtures/device/memory.yaml", &[]);
    let file = grades("fixtures/device/one_camera.yaml", &[]);
    assert!(count(&file, "cost_model") > count(&made_up, "cost_model") + 10);
    // What is set rests on whoever sets it.
    let set = grades(
        "fixtures/device/one_camera.yaml",
        &["--set", "dma.latency=900"],
    );
    assert_eq!(count(&set, "cost_model") + 1, count(&file, "cost_model"));
}

/// A queue stands for all of its tasks, as it does for `list`.
#[test]
fn all_tasks_of_a_queue_can_be_left_out() {
    let latency = |change: &str| {
        let four = "fixtures/npu/chain_tiles4/program.blob";
        let report = json_of(&["run", four, "--timing-only", "--json", "--what-if", change]);
        // In whole picoseconds.
        (report["what_if"][0]["latency_ns"].as_f64().unwrap() * 1e3).round() as u64
    };
    assert_eq!(latency("without=dpu*"), latency("without=dpu*[0..999]"));
    assert!(latency("without=dpu*") < latency("without=dpu0"));
}

/// A schedule that is right is not clean on a machine that it does not fit.
#[test]
fn a_check_knows_the_machine() {
    let schedule = "fixtures/gemini/four_cores/schedule.json";
    done(&["check", schedule, "--machine", "mesh2x2"]);
    for command in ["check", "run"] {
        let (code, _, err) = run(&[command, schedule, "--machine", "mesh1x1"]);
        assert!(
            code == 2 && err.contains("the schedule uses 4 cores, this machine has 1"),
            "{err}"
        );
    }
}
