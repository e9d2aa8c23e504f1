//! Schedules through the commands that read and write them: what they say of dialects, machines, scales and files.

use crate::support::{done, json_of, npy, run};
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
    // As many cores in another shape: nothing else would tell.
    let turned = notes("mesh4x1");
    let note = "of mesh4x1 (4 columns, 1 rows) only the other parameters are used";
    assert!(turned.contains(note), "{turned}");
}

#[test]
fn a_run_names_its_mesh() {
    let made = Made::with(&[]);
    let run = |machine: &str| {
        let given = ["--machine", machine, "--timing-only", "--json"];
        json_of(&[&["run", &made.schedule], &given[..]].concat())["timed_by"].clone()
    };
    let of_file = run(MACHINE);
    assert_eq!(
        (&of_file["name"], &of_file["file"]),
        (&"mesh2x2".into(), &MACHINE.into())
    );
    assert_eq!(run("mesh4x4")["name"], "mesh4x4");
}

/// A mesh whose L2 has so many bytes: what does not fit goes through DRAM.
fn small_mesh(directory: &TempDir, bytes: u64) -> String {
    let text = std::fs::read_to_string(crate::support::root().join(MACHINE)).unwrap();
    let mut mesh: Value = serde_json::from_str(&text).unwrap();
    mesh["l2"]["bytes"] = bytes.into();
    mesh["ofmap_stream_bytes"] = 256.into();
    let path = directory.path().join("small.json");
    std::fs::write(&path, mesh.to_string()).unwrap();
    path.display().to_string()
}

/// Results that go to DRAM and are read from there again are nobody's but the schedule's, with the network and without.
#[test]
fn what_is_read_again_is_no_output() {
    let directory = tempfile::tempdir().unwrap();
    for (bytes, more) in [(1024, &[][..]), (2048, &["--precision", "fp16"])] {
        let made = Made::on(&small_mesh(&directory, bytes), more);
        let schedule: Value =
            serde_json::from_slice(&std::fs::read(&made.schedule).unwrap()).unwrap();
        let stored = schedule["-1"]["in"].as_array().unwrap().iter();
        assert!(stored.filter(|of| of["layer_name"] != "logits").count() > 0);
        let names = |said: &Value| -> Vec<String> {
            let outputs = said["outputs"].as_array().unwrap().iter();
            outputs.map(|of| of["name"].to_string()).collect()
        };
        let info = json_of(&["info", &made.schedule, "--json"]);
        let (code, out, err) = made.with_files("run", &["--json"]);
        assert_eq!(code, 0, "{err}");
        let ran: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (names(&info), names(&ran)),
            (vec!["\"logits\"".to_owned()], vec!["\"logits\"".to_owned()])
        );
        if more.is_empty() {
            assert_eq!(info["outputs"][0]["dtype"], ran["outputs"][0]["dtype"]);
        }
        for files in [&[][..], &["--network", &made.network]] {
            let contract = done(&[&["iospec", &made.schedule], files].concat());
            assert_eq!(contract.matches("type: output").count(), 1, "{contract}");
        }
    }
}

/// In int8, tensors have names of their own, and the model's serve as well.
#[test]
fn an_input_has_the_names_of_the_schedule_and_of_the_model() {
    for more in [&[][..], &["--precision", "fp16"]] {
        let made = Made::with(more);
        let path = made.path("x.npy");
        let values = vec![0.0; 3 * 8 * 8];
        std::fs::write(&path, npy(&[1, 3, 8, 8], &values)).unwrap();
        for name in ["input", "input1"] {
            let given = format!("{name}={path}");
            let (code, out, err) = made.with_files("run", &["--input", &given]);
            let is_taken = code == 0 || err.contains("input \"input1\": expected");
            assert!(
                is_taken && !out.contains("random data"),
                "{name}: {out}{err}"
            );
        }
    }
}

/// Another machine for the second program is one of those that the option takes, and outputs have a verdict.
#[test]
fn schedules_are_compared_on_meshes_and_by_their_outputs() {
    let (one, other) = (Made::with(&[]), Made::on("mesh4x4", &[]));
    let given = ["--machine", MACHINE, "--other", "machine=mesh4x4", "--json"];
    let (code, out, err) = run(&[&["diff", &one.schedule, &other.schedule], &given[..]].concat());
    assert_eq!(code, 1, "{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert!(
        said["time"]["machine"]
            .as_array()
            .is_some_and(|of| !of.is_empty())
    );
    let (_, out, err) = one.with_files("diff", &[&other.schedule, "--values", "--json"]);
    let said: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    let values = &said["values"];
    assert_eq!(
        (
            &values["outputs"][0]["output"],
            &values["outputs"][0]["agrees"]
        ),
        (&"logits".into(), &true.into())
    );
    let by = &values["first"]["max_abs"];
    assert!(
        by.is_null() || by.as_f64().is_some_and(|by| by > 0.0),
        "{values}"
    );
    let (_, out, _) = one.with_files("diff", &[&other.schedule, "--values"]);
    assert!(out.contains("  logits  equal\n"), "{out}");
}

/// A search that was too short to find much says so.
#[test]
fn few_trees_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("s.json").display().to_string();
    let given = [
        "schedule",
        NETWORK,
        "--machine",
        MACHINE,
        "--no-compare",
        "-o",
        &output,
    ];
    let (code, _, err) = run(&[&given[..], &["--seconds", "0"]].concat());
    // On a busy computer, that is the reason that is given.
    let is_told = err.contains("evaluated for 6 layers") || err.contains("the computer is busy");
    assert!(code == 0 && is_told, "{err}");
    let (code, _, err) = run(&[&given[..], &["--trees", "3"]].concat());
    assert!(code == 0 && !err.contains("evaluated for"), "{err}");
}

/// Names are those that a run prints, and what people read says what it is.
#[test]
fn a_schedule_speaks_to_people() {
    let made = Made::with(&[]);
    let mesh = done(&["machine", "mesh4x4", "dram.bytes_per_second"]);
    assert!(
        mesh.contains("dram.bytes_per_cycle") && !mesh.contains("l2.bytes"),
        "{mesh}"
    );
    assert!(done(&["machine", "mesh4x4", "overhead.tile"]).contains("overhead.tile"));
    let info = done(&["info", &made.schedule]);
    assert!(
        info.contains("stores to DRAM") && !info.contains("dram_in"),
        "{info}"
    );
    assert!(json_of(&["info", &made.schedule, "--json"])["counts"]["dram_in"].is_u64());
    let check = |more: &[&str]| done(&[&["check", &made.schedule], more].concat());
    assert!(check(&[]).contains("clean; without --network, "));
    assert!(check(&["--network", &made.network]).ends_with(": clean\n"));
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
        out.contains("does not agree")
            && out.contains("; the largest difference is 1, where 0.7500 is expected, "),
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
    let (code, _, err) = run(&["report", &made.schedule, "-o", &made.path("pictures")]);
    assert_eq!(code, 0, "{err}");
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
        "-o s.json --network-out net.json --weights-out weights".to_owned(),
        "`chipless tune`".to_owned(),
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

/// Images of `--batch` and of `--shape` are a batch in fp16, and the file is named first.
#[test]
fn images_of_a_shape_are_a_batch() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("s.json").display().to_string();
    let given = ["schedule", NETWORK, "--machine", MACHINE, "--no-compare"];
    let shape = ["--shape", "input=4,3,8,8"];
    let batch = ["--batch", "4", "--precision", "fp16"];
    for images in [&shape[..], &batch[..]] {
        let search = ["--trees", "5", "-o", &output];
        let (code, out, err) = run(&[&given, images, &search[..]].concat());
        assert_eq!(code, 0, "{err}");
        assert!(out.starts_with("small.onnx"), "{out}");
        assert!(out.contains(" layers, batch 4, on"), "{out}");
        assert!(out.contains("\n5 trees in"), "{out}");
    }
}

/// Machines of `run` have no mesh that a network could be scheduled for.
#[test]
fn a_target_is_no_mesh() {
    for name in ["gemini", "spec", "set"] {
        let (code, _, err) = run(&["schedule", NETWORK, "--machine", name, "-o", "s.json"]);
        assert_eq!(code, 2, "{err}");
        assert!(
            err.contains("mesh4x4") && err.contains("machine for `run`"),
            "{err}"
        );
    }
}

/// A tree that is given is evaluated by both measures, and its schedule is written in the dialect that a search writes.
#[test]
fn a_tree_that_is_given_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (tree, one, other) = (path("t.json"), path("s.json"), path("e.json"));
    let given = ["schedule", NETWORK, "--machine", MACHINE, "--no-compare"];
    let with = |more: &[&str]| {
        let (code, out, err) = run(&[&given[..], &["--precision", "fp16"], more].concat());
        assert_eq!(code, 0, "{err}");
        out
    };
    let found = with(&["--trees", "50", "-o", &one, "--tree", &tree]);
    let line = |text: &str, title: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| line.starts_with(title))
            .map(str::to_owned)
    };
    let evaluated = with(&["--evaluate", &tree, "-o", &other]);
    assert!(
        evaluated.contains(&format!("written: {other}")),
        "{evaluated}"
    );
    for title in ["replay", "floor", "SET's model"] {
        assert_eq!(line(&found, title), line(&evaluated, title), "{title}");
    }
    assert!(line(&found, "layer by layer").is_some(), "{found}");
    let text = |path: &str| std::fs::read_to_string(path).unwrap();
    assert_eq!(text(&one), text(&other));
    let only = with(&["--evaluate", &tree]);
    assert!(
        !only.contains("written") && only.contains("replay"),
        "{only}"
    );
}

/// The page says of each segment what the replay says.
#[test]
fn the_page_is_of_the_replay() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (page, output) = (path("r.html"), path("s.json"));
    let given = [
        "schedule",
        NETWORK,
        "--machine",
        MACHINE,
        "--no-compare",
        "--trees",
        "20",
    ];
    for more in ["fp16", "int8"] {
        let outputs = ["-o", &output, "--report", &page, "--precision", more];
        let (code, said, err) = run(&[&given[..], &outputs[..]].concat());
        assert_eq!(code, 0, "{err}");
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(
            text.contains("--batch 4") && text.contains("DRAM busy"),
            "{text}"
        );
        let replay = said.lines().find(|line| line.trim().starts_with("replay"));
        assert!(text.contains(replay.unwrap()), "{text}");
    }
}

/// A network is no program; `info` says what goes in and out, and how it becomes one.
#[test]
fn a_network_is_described_with_what_to_do_next() {
    let out = done(&["info", NETWORK]);
    for expected in [
        "input  float32  ",
        "outputs",
        " Conv",
        "chipless schedule fixtures/schedule/small.onnx --machine mesh4x4",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
}

/// Pictures say by which machine they are timed, as a run does, and a run takes keys of meshes.
#[test]
fn the_machine_of_a_schedule_is_told() {
    let made = Made::with(&["--precision", "fp16"]);
    let (_, _, err) = run(&["report", &made.schedule, "-o", &made.path("pictures")]);
    assert!(
        err.contains("timed by spec (--machine gives another)"),
        "{err}"
    );
    let time = |figure: &str| {
        let out = done(&[
            "run",
            &made.schedule,
            "--machine",
            MACHINE,
            "--timing-only",
            "--set",
            figure,
        ]);
        out.lines().next().map(str::to_owned)
    };
    assert_eq!(
        time("dram.bytes_per_cycle=4"),
        time("dram.bytes_per_second=4e9")
    );
    assert_ne!(
        time("dram.bytes_per_cycle=4"),
        time("dram.bytes_per_cycle=8")
    );
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
    let number = |text: &str| -> Option<f64> {
        let (value, unit) = text.split_once(' ')?;
        let units = [
            ("ns", 1e-9),
            ("µs", 1e-6),
            ("ms", 1e-3),
            ("nJ", 1e-9),
            ("µJ", 1e-6),
            ("mJ", 1e-3),
        ];
        let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
        Some(value.parse::<f64>().ok()? * size)
    };
    let products = |measure: &str| -> Vec<f64> {
        let of_line = |line: &str| {
            let (_, figures) = line.split_once("best so far ")?;
            let (time, energy) = figures.split_once(measure)?.0.split_once(" and ")?;
            Some(number(time)? * number(energy)?)
        };
        err.lines().filter_map(of_line).collect()
    };
    let (of_model, of_replay) = (products(" in SET's model"), products(" by the replay"));
    assert!(!of_model.is_empty() || !of_replay.is_empty(), "{err}");
    for products in [&of_model, &of_replay] {
        // Figures are rounded.
        assert!(products.is_sorted_by(|a, b| a * 1.002 >= *b), "{err}");
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

/// Names in a network are shown, not obeyed; and what begins like one is not read as one.
#[test]
fn names_of_networks_are_inert() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hostile.onnx");
    let bytes = std::fs::read(crate::support::root().join(NETWORK)).unwrap();
    let (name, code) = (b"input", b"\x1b[31m");
    let mut hostile = bytes.clone();
    for at in 0..=bytes.len() - name.len() {
        if bytes[at..].starts_with(name) {
            hostile[at..at + name.len()].copy_from_slice(code);
        }
    }
    std::fs::write(&path, &hostile).unwrap();
    let said = done(&["info", path.to_str().unwrap()]);
    assert!(
        said.contains("[31m") && !said.contains('\u{1b}'),
        "{said:?}"
    );
    let cut = directory.path().join("cut.onnx");
    std::fs::write(&cut, &bytes[..40]).unwrap();
    let (code, _, _) = run(&["info", cut.to_str().unwrap()]);
    assert_eq!(code, 2);
}
