//! Schedules through the commands that read and write them: what they say of dialects, machines, scales and files.

use crate::support::{done, npy, run};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NETWORK: &str = "fixtures/schedule/small.onnx";
const MACHINE: &str = "fixtures/schedule/mesh2x2.json";

/// A schedule with its network and its arrays, and what the command said.
struct Made {
    directory: TempDir,
    schedule: String,
    network: String,
    weights: String,
    said: String,
}

impl Made {
    fn with(more: &[&str]) -> Made {
        Made::on(MACHINE, more)
    }

    fn on(machine: &str, more: &[&str]) -> Made {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (schedule, network, weights) = (path("s.json"), path("n.json"), path("w"));
        let outputs = [
            "--trees",
            "50",
            "-o",
            &schedule,
            "--network-out",
            &network,
            "--weights-out",
            &weights,
        ];
        let given = ["schedule", NETWORK, "--machine", machine, "--no-compare"];
        let (code, said, err) = run(&[&given, &outputs[..], more].concat());
        assert_eq!(code, 0, "{err}");
        Made {
            directory,
            schedule,
            network,
            weights,
            said,
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// A command on the schedule with the files that were written beside it.
    fn with_files(&self, command: &str, more: &[&str]) -> (i32, String, String) {
        let files = ["--network", &self.network, "--weights", &self.weights];
        run(&[&[command, &self.schedule], &files[..], more].concat())
    }
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(arguments)).unwrap()
}

/// SET's dialect has times. Where the values are to be had is said by whoever is asked for them.
#[test]
fn a_schedule_of_sets_dialect_says_where_its_values_are() {
    let made = Made::with(&["--dialect", "set"]);
    assert!(made.said.contains("convert it first"), "{}", made.said);
    for command in ["run", "check"] {
        let (code, _, err) = made.with_files(command, &[]);
        assert!(
            code == 2 && err.starts_with("--weights: values cannot be computed"),
            "{err}"
        );
        let conversion = format!("chipless convert {}", made.schedule);
        assert!(err.contains(&conversion), "{err}");
    }
    for files in [&[][..], &["--network", &made.network]] {
        let (code, _, err) = run(&[&["run", &made.schedule], files].concat());
        assert!(
            code == 2 && err.contains("values cannot be computed") && err.contains("convert"),
            "{err}"
        );
    }
    done(&["run", &made.schedule, "--timing-only"]);
    done(&["check", &made.schedule, "--network", &made.network]);
    // Half precision is lost in this dialect, and no conversion brings it back.
    let made = Made::with(&["--dialect", "set", "--precision", "fp16"]);
    let counts = "counts a byte for each element";
    assert!(made.said.contains(counts), "{}", made.said);
    let (code, _, err) = made.with_files("run", &[]);
    assert!(code == 2 && err.contains(counts), "{err}");
    assert!(!err.contains("chipless convert"), "{err}");
}

/// A task goes by one name, whichever machine times it.
#[test]
fn names_of_tasks_do_not_depend_on_the_machine() {
    let made = Made::with(&[]);
    let tasks = |more: &[&str]| -> Vec<String> {
        let listed = json_of(&[&["list", &made.schedule, "--json"], more].concat());
        let tasks = listed["tasks"].as_array().unwrap().iter();
        let units = tasks.filter(|task| {
            let name = task["name"].as_str().unwrap();
            ["pe", "vp", "dt"].iter().any(|unit| name.contains(unit))
        });
        units
            .map(|task| format!("{} {} {}", task["name"], task["operation"], task["label"]))
            .collect()
    };
    let of_spec = tasks(&[]);
    assert!(of_spec.len() > 4);
    assert_eq!(of_spec, tasks(&["--machine", MACHINE]));
}

#[test]
fn a_schedule_for_another_mesh_is_noted() {
    let made = Made::with(&[]);
    let notes = |machine: &str| {
        let given = ["--machine", machine, "--timing-only", "--json"];
        json_of(&[&["run", &made.schedule], &given[..]].concat())["notes"].to_string()
    };
    let other = notes("mesh8x8");
    let note = "made for a mesh of 2 columns and 2 rows, and uses 4 of the 64 cores of mesh8x8";
    assert!(other.contains(note), "{other}");
    assert!(!notes(MACHINE).contains("made for a mesh"));
}

/// What cannot be written is said before anything is searched.
#[test]
fn outputs_are_tried_before_a_search() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (output, nowhere) = (path("s.json"), path("nowhere/file"));
    std::fs::write(path("file"), "").unwrap();
    let below = path("file/below");
    let schedule = |more: &[&str]| {
        let given = ["schedule", NETWORK, "--machine", MACHINE, "--seconds", "60"];
        run(&[&given, more].concat())
    };
    let started = Instant::now();
    for more in [
        &["-o", &nowhere][..],
        &["-o", &output, "--network-out", &nowhere],
        &["-o", &output, "--tree", &nowhere],
        &["-o", &output, "--report", &nowhere],
        &["-o", &output, "--weights-out", &below],
    ] {
        let (code, _, err) = schedule(more);
        assert!(code == 2 && err.contains("cannot be written"), "{err}");
    }
    assert!(started.elapsed() < Duration::from_secs(50));
    assert!(!Path::new(&output).exists());
}

/// The front-end file says what the integers of an output stand for, so that they are compared with real numbers.
#[test]
fn integers_are_compared_with_the_reals_that_they_stand_for() {
    let made = Made::with(&[]);
    let said = "output logits: in real numbers ";
    assert!(made.said.contains(said), "{}", made.said);
    let (code, _, err) = made.with_files("run", &["--output-dir", &made.path("out")]);
    assert_eq!(code, 0, "{err}");
    let network = std::fs::read_to_string(&made.network).unwrap();
    let network: Value = serde_json::from_str(&network).unwrap();
    let stored = |name: &str| network["logits"]["quant_info"][name].as_f64().unwrap();
    let bytes = std::fs::read(made.path("out/logits.npy")).unwrap();
    let integers: Vec<f64> = bytes[128..].iter().map(|b| f64::from(*b as i8)).collect();
    let zero = stored("output_zero_point");
    let mut reals: Vec<f32> = integers
        .iter()
        .map(|n| ((n - zero) / stored("output_scale")) as f32)
        .collect();
    let shape = [1, reals.len() as u64, 1, 1];
    let compared = |reals: &[f32]| {
        let path = made.path("logits.npy");
        std::fs::write(&path, npy(&shape, reals)).unwrap();
        made.with_files("run", &["--compare", &path])
    };
    let (code, out, err) = compared(&reals);
    assert!(code == 0 && out.contains("logits  equal"), "{out}{err}");
    reals[1] += (4.0 / stored("output_scale")) as f32;
    let (_, out, _) = compared(&reals);
    assert!(
        out.contains("does not agree") && out.contains("% of the reference's root mean square)"),
        "{out}"
    );
}

/// Several pictures need a directory: a name of a picture is none.
#[test]
fn several_pictures_are_not_one_file() {
    let made = Made::with(&[]);
    let picture = made.path("x.svg");
    let (code, _, err) = run(&["report", &made.schedule, "-o", &picture]);
    assert!(
        code == 2 && err.contains("expected a directory for"),
        "{err}"
    );
    assert!(!Path::new(&picture).exists());
    done(&["report", &made.schedule, "-o", &made.path("pictures")]);
}

/// A ranking says what each row is worth, what explains it, and what helps without another machine.
#[test]
fn a_ranking_of_a_schedule_says_what_to_try() {
    let made = Made::with(&["--precision", "fp16"]);
    let given = ["--machine", MACHINE, "--timing-only", "--rank"];
    let out = done(&[&["run", &made.schedule], &given[..]].concat());
    for expected in [
        format!("chipless machine {MACHINE} explains each parameter"),
        format!("chipless schedule NET.onnx --machine {MACHINE} --"),
        "if it cost nothing and all else stayed".to_owned(),
    ] {
        assert!(out.contains(&expected), "{expected}: {out}");
    }
    assert!(done(&["machine", MACHINE]).contains("dram.bytes_per_cycle"));
}

/// A line that says that something is gone and one that says that it is there say nothing.
#[test]
fn a_difference_takes_nothing_back() {
    let (one, other) = (
        Made::with(&["--precision", "fp16"]),
        Made::on("mesh4x4", &[]),
    );
    let difference = run(&["diff", &one.schedule, &other.schedule, "--json"]).1;
    let difference: Value = serde_json::from_str(&difference).unwrap();
    let changed = difference["tasks"]["changed"].as_array().unwrap();
    assert!(!changed.is_empty());
    for task in changed {
        let said: Vec<&str> = task["syncs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for gone in said
            .iter()
            .filter_map(|text| text.strip_prefix("no longer "))
        {
            let back = format!("now {gone}");
            assert!(!said.contains(&&*back), "{said:?}");
        }
    }
}

/// Images that `--shape` gives are layers of their own, and are counted as images.
#[test]
fn images_of_a_shape_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("s.json").display().to_string();
    let given = ["schedule", NETWORK, "--machine", MACHINE, "--no-compare"];
    let shape = ["--shape", "input=4,3,8,8", "--trees", "5", "-o", &output];
    let (code, out, err) = run(&[&given, &shape[..]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(" layers, 4 images ("), "{out}");
}

/// Gives every box of a transfer one output channel more.
fn widen(value: &mut Value, transfer: &Value, upper: &Value) {
    match value {
        Value::Object(fields) => {
            let of = fields.get("transfer_id");
            let is_it = of.is_some_and(|of| of == transfer || of[0] == *transfer);
            if is_it && fields.get("upper") == Some(upper) {
                let channels = upper[1].as_u64().unwrap() + 1;
                fields["upper"][1] = channels.into();
            }
            fields
                .values_mut()
                .for_each(|value| widen(value, transfer, upper));
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| widen(value, transfer, upper)),
        _ => {}
    }
}

/// What a run would refuse of any weights, a check without weights finds.
#[test]
fn more_channels_than_the_layer_has_are_found_without_weights() {
    let made = Made::with(&["--dialect", "set"]);
    let path = made.directory.path().join("spec.json");
    let spec = path.to_str().unwrap();
    let network = &made.network;
    done(&["convert", &made.schedule, "--network", network, "-o", spec]);
    let mut schedule: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let transfers = schedule["-1"]["out"].as_array().unwrap();
    let weight = transfers.iter().find(|out| out["type"] == "weight");
    let (transfer, upper) = weight
        .map(|out| (out["transfer_id"].clone(), out["upper"].clone()))
        .unwrap();
    widen(&mut schedule, &transfer, &upper);
    std::fs::write(&path, schedule.to_string()).unwrap();
    let (code, said, _) = run(&["check", spec, "--network", network]);
    assert!(
        code == 1
            && said.contains("gemini-weights-do-not-fit")
            && said.contains("expected output channels up to 8, found 9"),
        "{said}"
    );
}

#[test]
fn a_schedule_says_which_latency_counts_and_how_it_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (schedule, network, weights) = (path("s.json"), path("n.json"), path("w"));
    let arguments = [
        "schedule",
        "fixtures/schedule/small.onnx",
        "--machine",
        "mesh2x2",
        "-o",
        &schedule,
        "--network-out",
        &network,
        "--weights-out",
        &weights,
        "--seconds",
        "4",
    ];
    let (code, out, err) = run(&arguments);
    assert_eq!(code, 0, "{err}");
    // The best so far never becomes worse, by either measure.
    let figures = |from: &str, to: &str| -> Vec<f64> {
        let lines = err.lines().filter(|line| line.contains("best so far"));
        let between = |line: &str| {
            let (before, _) = line.split_once(to)?;
            before.rsplit_once(from)?.1.trim().parse().ok()
        };
        lines.filter_map(between).collect()
    };
    let of_model = figures("so far ", " pJ cycles in SET");
    let of_replay = figures("bound), ", " by the replay");
    assert!(!of_model.is_empty(), "{err}");
    for figures in [&of_model, &of_replay] {
        assert!(figures.is_sorted_by(|a, b| a >= b), "{err}");
    }
    // The latency that counts is that of the run that it proposes.
    let command = out
        .lines()
        .find_map(|line| line.trim().strip_prefix("chipless "));
    let command: Vec<&str> = command
        .unwrap_or_else(|| panic!("{out}"))
        .split(' ')
        .collect();
    let report: Value = serde_json::from_str(&done(&[&command[..], &["--json"]].concat())).unwrap();
    let cycles = format!("{} cycles", report["latency_cycles"]);
    let replay = out
        .lines()
        .find(|line| line.contains("the result: as `run` times it"));
    assert!(
        replay.is_some_and(|line| line.contains(&cycles)),
        "{cycles}: {out}"
    );
}
