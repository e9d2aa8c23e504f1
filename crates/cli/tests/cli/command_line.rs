//! The binary from the outside: what it prints, what it writes, and its exit status.

use crate::support::{chipless, done, json_of, root, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const CONV: &str = "fixtures/npu/conv1x1/program.blob";
const CONV_INPUT: &str = "x=fixtures/npu/conv1x1/input_0.npy";

/// The fixture with one byte changed.
fn changed(directory: &Path, at: usize, from: u8, to: u8) -> PathBuf {
    let mut bytes = std::fs::read(root().join(CONV)).unwrap();
    assert_eq!(std::mem::replace(&mut bytes[at], to), from);
    let path = directory.join("changed.blob");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_command_explains_itself() {
    for command in [
        "",
        "info",
        "check",
        "explain",
        "run",
        "list",
        "format",
        "map",
        "report",
        "view",
        "diff",
        "drive",
        "iospec",
        "convert",
        "unpack",
        "pack",
        "completions",
    ] {
        let arguments: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|a| !a.is_empty())
            .collect();
        let help = done(&arguments);
        assert!(
            help.contains("Examples:") && help.contains("Exit status:"),
            "{command}"
        );
        insta::assert_snapshot!(format!("help_{command}"), help);
    }
}

/// Lines of a paragraph end where the next word does not fit, and nowhere else.
#[test]
fn help_is_wrapped_once() {
    let commands = [
        "info", "check", "explain", "run", "list", "format", "map", "report", "drive", "host",
        "iospec", "convert", "unpack", "pack",
    ];
    for width in [80, 100] {
        for command in commands {
            let output = chipless()
                .args([command, "--help"])
                .env("COLUMNS", width.to_string())
                .output()
                .unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let length = |line: &str| line.chars().count();
                assert!(
                    length(pair[0]) <= width,
                    "{command} at {width}: {}",
                    pair[0]
                );
                let plain =
                    |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
                if plain(pair[0]) && plain(pair[1]) {
                    let next = pair[1].split(' ').next().unwrap_or_default();
                    assert!(
                        length(pair[0]) + 1 + length(next) > width,
                        "{command} at {width}: {}",
                        pair.join(" / ")
                    );
                }
            }
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_status_2_whatever_is_done_with_it() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.dfg", "Input64: a\nb = Add_I64(a,\n"),
        ("a.yaml", "inputs: [\n"),
        ("a.json", "{\"-1\": {\"in\": ["),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        for command in ["info", "check", "run", "list"] {
            assert_eq!(
                run(&[command, path.to_str().unwrap()]).0,
                2,
                "{command} {name}"
            );
        }
    }
}

#[test]
fn misuse_is_told_on_stderr_with_status_2() {
    let (code, out, err) = run(&[]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("Usage: chipless"), "{err}");
    let directory = tempfile::tempdir().unwrap();
    let zip = directory.path().join("model.zip");
    std::fs::write(&zip, b"PK\x03\x04 and so on").unwrap();
    let zip = zip.to_str().unwrap();
    for (arguments, said) in [
        (vec!["run", "absent.blob"], "absent.blob: cannot be read: No such file or directory (os error 2)\n".to_owned()),
        (vec!["list", "fixtures"], "fixtures: cannot be read: expected a file, found a directory\n".to_owned()),
        (vec!["list", zip], format!("{zip}: expected a compiled program (`chipless targets` lists the formats), found a zip archive. Unpack it first\n")),
        (
            vec!["run", "fixtures/gemini/set.json"],
            "fixtures/gemini/set.json: values cannot be computed: this dialect does not say how elements lie in memory. For those of an int8 network, write the schedule in the spec's dialect with `chipless convert fixtures/gemini/set.json --network net.json -o spec.json`, and run spec.json; or pass `--timing-only`\n"
                .to_owned(),
        ),
        (vec!["run", CONV, "--input", "X=x.npy"], format!("{CONV}: expected the name of an input (x), found \"X\"; did you mean \"x\"?\n")),
        (vec!["run", CONV, "--input", "x.npy"], "--input: expected NAME=FILE.npy, found \"x.npy\"; did you mean \"x=x.npy\"?\n".to_owned()),
        (vec!["run", CONV, "--input", "x=absent.npy"], "absent.npy: cannot be read: No such file or directory (os error 2)\n".to_owned()),
        (
            vec!["run", CONV, "--input", CONV_INPUT, "--input", CONV_INPUT],
            format!("{CONV}: expected one file for input \"x\", found another: fixtures/npu/conv1x1/input_0.npy\n"),
        ),
        (
            vec!["run", CONV, "--input", "x=fixtures/npu/add/input_0.npy"],
            "fixtures/npu/add/input_0.npy: input \"x\": expected float16 [1, 16, 16, 16], found float16 [1, 32, 16, 16]\n".to_owned(),
        ),
        (vec!["list", CONV, "dpu0[2]"], format!("{CONV}: expected a task dpu0[0] to dpu0[1], found \"dpu0[2]\"\n")),
        (vec!["run", CONV, "--dump", "dpu0"], format!("{CONV}: expected a task dpu0[0] to dpu0[1], found \"dpu0\"\n")),
        (
            vec!["check", CONV, "--limit", "task=1"],
            "--limit: expected one of memory_bytes, tasks, inflated_bytes, inflate_ratio, entries, path_bytes, json_bytes, text_bytes, transfers, declarations, findings, pipe_bytes, found \"task\"; did you mean \"tasks\"?\n".to_owned(),
        ),
        (vec!["check", CONV, "--limit", "tasks=many"], "--limit: expected a whole number for tasks, found \"many\"\n".to_owned()),
        (
            vec!["explain", "deadlok"],
            "explain: expected the code of a finding, found \"deadlok\"; did you mean \"deadlock\"? (`chipless explain` lists them)\n"
                .to_owned(),
        ),
        (
            vec!["explain", "race"],
            "explain: expected the code of a finding, found \"race\"; did you mean one of race-write-write, race-read-write, race-duplicate-write? (`chipless explain` lists them)\n"
                .to_owned(),
        ),
    ] {
        assert_eq!(run(&arguments), (2, String::new(), said), "{arguments:?}");
    }
    let (code, _, err) = run(&["list", CONV, "dqu0"]);
    assert!(code == 2 && err.contains("did you mean \"dpu0\"?"), "{err}");
    assert_eq!(
        run(&["run", CONV, "--timing-only", "--output-dir", "out"]).0,
        2
    );
}

#[test]
fn a_run_gives_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let (out, trace) = (
        directory.path().join("out"),
        directory.path().join("run.pftrace"),
    );
    let (out, trace_path) = (out.to_str().unwrap(), trace.to_str().unwrap());
    let summary = json_of(&[
        "run",
        CONV,
        "--input",
        CONV_INPUT,
        "--output-dir",
        out,
        "--dump",
        "dpu0[0]",
        "--trace",
        trace_path,
        "--json",
    ]);
    assert_eq!(
        (summary["target"].as_str(), summary["program"].as_str()),
        (Some("npu"), Some(CONV))
    );
    assert!(summary["latency_ns"].as_f64().unwrap() > 1000.0);
    assert!(summary["moved_bytes"].as_u64().unwrap() > 0 && summary.get("seed").is_none());
    let tasks: u64 = summary["queues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| q["tasks"].as_u64().unwrap())
        .sum();
    assert_eq!(summary["tasks"].as_u64(), Some(tasks));
    let output = &summary["outputs"][0];
    assert_eq!(
        (output["name"].as_str(), output["dtype"].as_str()),
        (Some("conv_3"), Some("float16"))
    );
    assert_eq!(output["shape"], serde_json::json!([1, 32, 16, 16]));
    let written = std::fs::read(output["path"].as_str().unwrap()).unwrap();
    assert!(written.starts_with(b"\x93NUMPY") && written.len() == 128 + 2 * 32 * 16 * 16);
    let dumped = std::fs::read(Path::new(out).join("dpu0_0_.npy")).unwrap();
    assert!(dumped.len() > 128 && dumped.windows(5).any(|w| w == b"'<f2'"));
    assert!(std::fs::metadata(trace).unwrap().len() > 1000);
    // The times do not depend on the data.
    let timed = json_of(&["run", CONV, "--timing-only", "--json"]);
    assert_eq!(
        (&timed["latency_ns"], &timed["tasks"]),
        (&summary["latency_ns"], &summary["tasks"])
    );
    assert_eq!(timed["outputs"], serde_json::json!([]));
}

#[test]
fn random_inputs_follow_their_seed_and_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = |seed: &str, name: &str| {
        let out = directory.path().join(name);
        let summary = json_of(&[
            "run",
            CONV,
            "--seed",
            seed,
            "--output-dir",
            out.to_str().unwrap(),
            "--json",
        ]);
        assert_eq!(summary["seed"].as_u64(), seed.parse().ok());
        assert_eq!(
            summary["notes"][0],
            format!("random data (seed {seed}) for x; --input x=FILE.npy gives real ones")
        );
        std::fs::read(out.join("conv_3.npy")).unwrap()
    };
    let first = bytes("7", "a");
    assert!(first == bytes("7", "b") && first != bytes("8", "c"));
}

#[test]
fn a_program_that_hangs_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    // A transfer of the input waits for a barrier that nobody programs.
    let blob = changed(directory.path(), 33386, 0x00, 0x10);
    let blob = blob.to_str().unwrap();
    let (code, out, _) = run(&["check", blob, "--format", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1);
    assert_eq!(found["files"][0]["findings"][0]["severity"], "error");
    for more in [&[][..], &["--timing-only"]] {
        let (code, out, err) = run(&[&["run", blob], more].concat());
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.starts_with(&format!("{blob}: ")), "{err}");
    }
}

#[test]
fn several_files_are_all_told() {
    let (code, out, err) = run(&["info", "--format", "json", CONV, "absent.blob", CONV]);
    let infos: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, infos["files"].as_array().unwrap().len()), (2, 2));
    assert!(err.starts_with("absent.blob: "), "{err}");
    let (code, out, err) = run(&["check", CONV, "absent.blob", CONV]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(out.matches(CONV).count(), 2, "{out}");
    assert!(out.contains("file-unreadable"), "{out}");
    // A file that is not there hides nothing that was found in the others; by itself it is a failure.
    let (code, out, _) = run(&["check", "--format", "json", CONV, "absent.blob"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let codes: Vec<_> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["findings"][0]["code"])
        .collect();
    assert_eq!(
        (code, codes),
        (2, vec![&Value::Null, &"file-unreadable".into()])
    );
    let (code, out, err) = run(&["check", "--format", "json", "absent.blob"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &report["failure"]["kind"]),
        (2, &"unreadable".into())
    );
    assert!(err.starts_with("absent.blob: "), "{err}");
    let (code, out, _) = run(&["check", "--format", "json", CONV]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &report["files"][0]),
        (
            0,
            &serde_json::json!({ "path": CONV, "target": "npu", "findings": [], "left_out": 0 })
        )
    );
}

#[test]
fn graphs_are_told_judged_and_formatted() {
    let info = json_of(&["info", "--format", "json", "fixtures/dsa/axpy.dfg"]);
    assert_eq!(
        (&info["target"], &info["counts"]["edges"]),
        (&"dsa".into(), &23.into())
    );
    let broken = "fixtures/dsa/broken/names.dfg";
    let (code, out, err) = run(&["info", broken]);
    assert!(code == 2 && out.contains("sum"), "{out}");
    assert!(
        err.contains("broken/names.dfg:3:23") && err.contains("did you mean `alpha`?"),
        "{err}"
    );
    assert_eq!(
        run(&["check", broken]).0,
        2,
        "a file that no other command reads"
    );

    let (given, canonical) = (
        "fixtures/dsa/specification.dfg",
        done(&["format", "fixtures/dsa/specification.dfg"]),
    );
    let (code, out, err) = run(&["format", "--check", given, "fixtures/dsa/axpy.dfg"]);
    assert_eq!(
        (code, out.as_str(), err.lines().count()),
        (1, "", 1),
        "{err}"
    );
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.dfg");
    std::fs::copy(root().join(given), &copy).unwrap();
    done(&["format", "--write", copy.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), canonical);
    done(&["format", "--check", copy.to_str().unwrap()]);
    assert_eq!(run(&["format", "fixtures/dsa/broken/lines.dfg"]).0, 2);
    let (code, out, err) = run(&["format", "fixtures/dsa/complex_legacy.dfg"]);
    assert!(
        code == 0 && out.contains("A0:0:31") && err.contains("slices as width and index"),
        "{out}{err}"
    );
    assert_eq!(run(&["format", CONV]).0, 2);
}

/// A file that only its name tells is read by the reader that can say what is wrong with it.
#[test]
fn a_damaged_file_is_known_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    for (name, code) in [
        ("kernel.dfg", "dfg-syntax"),
        ("model.neff", "neff-"),
        ("model.blob", "elf-"),
        ("model.bin", "file-unknown"),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, "a = = b\n").unwrap();
        let (exit, out, _) = run(&["check", path.to_str().unwrap()]);
        assert!(
            exit > 0 && out.contains(&format!("error[{code}")),
            "{name}: {out}"
        );
    }
}

#[test]
fn a_listing_can_be_narrowed() {
    let all = &json_of(&["list", "--format", "json", CONV])["tasks"];
    let some = &json_of(&["list", "--json", CONV, "dpu1", "dma0.ddr[3]"])["tasks"];
    let names: Vec<&str> = some
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dma0.ddr[3]", "dpu1[0]", "dpu1[1]"]);
    assert!(
        some.as_array()
            .unwrap()
            .iter()
            .all(|task| all.as_array().unwrap().contains(task))
    );
    assert!(done(&["list", CONV, "dpu1"]).starts_with("dpu1: 2 tasks\n  dpu1[0]  "));
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let mut child = chipless()
        .args(["list", CONV])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

#[test]
fn colours_come_when_they_are_asked_for() {
    assert!(!done(&["info", CONV]).contains('\u{1b}'));
    assert!(done(&["info", CONV, "--color", "always"]).contains('\u{1b}'));
}

#[test]
fn shells_get_their_completions() {
    for (shell, sign) in [
        ("bash", "_chipless()"),
        ("zsh", "#compdef chipless"),
        ("fish", "complete -c chipless"),
    ] {
        assert!(done(&["completions", shell]).contains(sign), "{shell}");
    }
}

#[test]
fn files_of_others_are_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for (bytes, expected) in [
        (
            &b"version https://git-lfs.github.com/spec/v1\n"[..],
            "found a Git LFS pointer. Run `git lfs pull`",
        ),
        (
            b"<!DOCTYPE html><html>404</html>",
            "found an HTML page. Download",
        ),
        (
            b"\x08\x0a\x12\x07pytorch",
            "found an ONNX model. It is not compiled: `chipless schedule`",
        ),
    ] {
        let path = directory.path().join("model.blob");
        std::fs::write(&path, bytes).unwrap();
        for command in ["info", "run", "check"] {
            let (code, out, err) = run(&[command, path.to_str().unwrap()]);
            let said = out + &err;
            // A finding has what to do on a line of its own.
            let is_said = expected.split(". ").all(|part| said.contains(part));
            assert!(code == 2 && is_said, "{command}: {said}");
        }
    }
}

#[test]
fn targets_list_options_with_the_commands_that_take_them() {
    let said = done(&["targets"]);
    assert!(said.contains("--batch N") && !said.contains("()"), "{said}");
}

#[test]
fn what_is_meant_by_another_name_is_said() {
    let program = "fixtures/npu/add/program.blob";
    let directory = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["run", program, "-o", "out"][..], "`--output-dir`"),
        (&["rnu", program], "  tip: did you mean `chipless run`?"),
        (
            &["info", "fixtures/npu/add/progam.blob"],
            "did you mean \"program.blob\"?",
        ),
        (
            &["run", program, "--machine", "fixtures/schedule/mesh2x2.jsn"],
            "did you mean \"mesh2x2.json\"?",
        ),
        (
            &["run", program, "--compare", "fixtures/npu/ad"],
            "did you mean \"add\"?",
        ),
        (
            &["disasm", program],
            "  tip: `chipless list FILE` lists tasks",
        ),
        (&["run", program, "--gdb"], "chipless debug FILE"),
        (
            &["run", program, "--machine", "mesh4x4"],
            "`mesh4x4`, one of gemini",
        ),
    ] {
        let (code, out, err) = run(arguments);
        assert!(
            code == 2 && err.contains(expected) && !err.contains("-- -o"),
            "{arguments:?}: {out}{err}"
        );
    }
    // What is no program says in its help what to do with it, and nothing else.
    let onnx = directory.path().join("net.onnx");
    std::fs::write(&onnx, b"\x08\x08\x12\x07pytorch").unwrap();
    let (_, out, _) = run(&["check", onnx.to_str().unwrap()]);
    assert!(
        out.contains("help: It is not compiled: `chipless schedule`") && !out.contains("unpack"),
        "{out}"
    );
}
