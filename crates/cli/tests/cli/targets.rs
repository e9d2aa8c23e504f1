//! The main job of each target through the binary, on the fixtures.

use crate::support::{chipless, done, json_of, npy, root, run};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_schedule_of_four_cores_runs_tile_by_tile() {
    let folder = "fixtures/gemini/four_cores";
    let (schedule, network) = (
        format!("{folder}/schedule.json"),
        format!("{folder}/network.json"),
    );
    let out = tempfile::tempdir().unwrap();
    let summary = json_of(&[
        "run",
        &schedule,
        "--network",
        &network,
        "--output-dir",
        out.path().to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(summary["tasks"], 111);
    let outputs: Vec<&str> = summary["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        outputs,
        ["Conv_0", "MaxPool_1", "Conv_2", "Add_3", "Conv_last"]
    );
    let written = std::fs::read(out.path().join("Conv_last.npy")).unwrap();
    assert!(written.len() == 128 + 16 * 4 * 4 && written[128..].iter().any(|b| *b != written[128]));
    // Another legal order, the same numbers.
    let other = tempfile::tempdir().unwrap();
    let directory = other.path().to_str().unwrap();
    done(&[
        "run",
        &schedule,
        "--network",
        &network,
        "--order",
        "random:3",
        "--output-dir",
        directory,
    ]);
    assert_eq!(
        written,
        std::fs::read(other.path().join("Conv_last.npy")).unwrap()
    );
    let pictures = done(&["report", &schedule]);
    assert!(pictures.starts_with("Cores, transfers between them, and DRAM over "));
    assert!(pictures.contains(
        "L2 of core 0: 11 tensors, at most 576 bytes at a time\naddress in L2\n     0x260 │"
    ));
}

/// A schedule as SET writes it says neither where bytes lie nor what is beside weights. Converted, it computes what the same network does otherwise.
#[test]
fn a_converted_schedule_computes_its_network() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (network, weights) = (path("network.json"), path("weights"));
    let make = |dialect: &str, output: &str| {
        let folder = "fixtures/schedule";
        let (onnx, machine) = (
            format!("{folder}/small.onnx"),
            format!("{folder}/mesh2x2.json"),
        );
        let (code, _, err) = run(&[
            "schedule",
            &onnx,
            "--machine",
            &machine,
            "--dialect",
            dialect,
            "--trees",
            "500",
            "-o",
            output,
            "--network-out",
            &network,
            "--weights-out",
            &weights,
        ]);
        // Without calibration data the weights alone say the scales, and the command says so.
        assert!(
            code == 0 && err.contains("without calibration data"),
            "{err}"
        );
    };
    let [spec, set, converted] = ["spec.json", "set.json", "converted.json"].map(path);
    make("spec", &spec);
    make("set", &set);
    done(&["convert", &set, "--network", &network, "-o", &converted]);
    let checked = done(&["check", &converted, "--network", &network]);
    assert!(
        checked.contains("gemini-packed") && !checked.contains("error"),
        "{checked}"
    );
    let run = |schedule: &str, output: &str| {
        let output = path(output);
        let summary = json_of(&[
            "run",
            schedule,
            "--network",
            &network,
            "--weights",
            &weights,
            "--seed",
            "3",
            "--output-dir",
            &output,
            "--json",
        ]);
        let result = std::fs::read(Path::new(&output).join("logits.npy")).unwrap();
        (summary["notes"].to_string(), result)
    };
    let ((_, expected), (notes, found)) = (run(&spec, "a"), run(&converted, "b"));
    assert_eq!(found, expected);
    assert!(notes.contains("data are packed"), "{notes}");
}

#[test]
fn a_kernel_goes_from_text_to_picture_and_runs_as_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (mapping, picture) = (path("dot.json"), path("dot.svg"));
    let (kernel, fabric) = (
        "fixtures/dsa/kernels/dot.dfg",
        "fixtures/dsa/adg/mesh5x5.json",
    );
    done(&[
        "map", kernel, "--adg", fabric, "--output", &mapping, "--svg", &picture,
    ]);
    assert!(
        std::fs::read_to_string(&picture)
            .unwrap()
            .starts_with("<svg")
    );
    done(&["map", kernel, "--adg", fabric, "--check", &mapping]);
    done(&[
        "run",
        kernel,
        "--seed",
        "5",
        "--output-dir",
        &path("unmapped"),
    ]);
    let mapped = json_of(&[
        "run",
        kernel,
        "--seed",
        "5",
        "--map",
        &mapping,
        "--output-dir",
        &path("mapped"),
        "--json",
    ]);
    assert_eq!(
        std::fs::read(path("unmapped/sum.npy")).unwrap(),
        std::fs::read(path("mapped/sum.npy")).unwrap()
    );
    let notes = mapped["notes"].as_array().unwrap();
    assert!(
        notes.iter().any(|n| n
            .as_str()
            .unwrap()
            .starts_with("mapped: 9 cycles of latency")),
        "{notes:?}"
    );
}

#[test]
fn a_contract_is_driven_to_its_violation() {
    let arguments = [
        "drive",
        "fixtures/spu/latched/iospec.yaml",
        "--script",
        "fixtures/spu/latched/walk.yaml",
    ];
    let output = chipless().args(arguments).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(
        out.contains(
            "4 write B: kSpuSequenceError: expected A of main_seq to be read first, came B"
        ),
        "{out}"
    );
}

/// Exit status, standard output and standard error of a command that reads this.
fn fed(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = chipless();
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn steps_in_words_come_through_a_pipe() {
    let spec = "fixtures/spu/addition/iospec.yaml";
    let (code, out, err) = fed(
        &["drive", spec],
        "write B,\nnext\nwrite C\n\nread\nquit\nnonsense\n",
    );
    let expected =
        "   1 write B: ok\nnext: write C\n   2 write C: ok, main_seq fired\n   3 read: A\n";
    assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""));
    let (code, out, _) = fed(&["drive", spec], "help\n");
    assert!(code == 0 && out.contains("write"), "{out}");
    // A line that is no step is one that failed, and the next one is taken.
    let (code, out, _) = fed(&["drive", spec], "rite B\nwrite B\n");
    let said = "line 1: expected write, read, reset, next, help or quit, found \"rite B\"";
    assert!(
        code == 1 && out.contains(said) && out.contains("2 write B: ok"),
        "{out}"
    );
}

#[test]
fn a_script_is_read_to_its_end_before_its_first_step() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("steps.yaml");
    for text in [
        "- write: [B]\n- write: {C: [x]}\n",
        "{write: [B]}\n{write: {C: [x]}}\n",
    ] {
        std::fs::write(&script, text).unwrap();
        let (code, out, err) = fed(
            &[
                "drive",
                "fixtures/spu/addition/iospec.yaml",
                "--script",
                script.to_str().unwrap(),
            ],
            "",
        );
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
    }
}

#[test]
fn a_graph_that_gives_nothing_because_its_streams_end_does_not_hang() {
    let directory = tempfile::tempdir().unwrap();
    let run = |text: &str| {
        let path = directory.path().join("a.dfg");
        std::fs::write(&path, text).unwrap();
        fed(&["run", path.to_str().unwrap()], "")
    };
    let held =
        "Input64: a\nInput64: b\nInput64: c\nr = Add_I64(a, b, ctrl=c & 0{0: b1|a})\nOutput64: r\n";
    let (code, out, err) = run(held);
    assert_eq!(
        (code, out.contains("waits for input")),
        (0, true),
        "{out}{err}"
    );
    // Nothing comes back that never went out.
    let (code, _, err) = run(
        "Array: s 0 rec\n----\nInput64: x\nInput64: b source=s\ny = Add_I64(x, b, ctrl=x & 0{0: b1|b2|a})\nOutput64: y destination=s\n",
    );
    assert_eq!((code, err.contains("file:5:1")), (1, true), "{err}");
}

#[test]
fn the_contract_of_a_graph_is_for_the_streams_that_are_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(
        format!(
            "{:<117}\n",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (3, 1), }"
        )
        .into_bytes(),
    );
    npy.extend([0; 24]);
    std::fs::write(path("x.npy"), npy).unwrap();
    std::fs::write(
        path("a.dfg"),
        "Input64: x\ny = Add_I64(x, 1)\nOutput64: y\n",
    )
    .unwrap();
    let (graph, input, spec) = (
        path("a.dfg"),
        format!("x={}", path("x.npy")),
        path("a.yaml"),
    );
    done(&["iospec", &graph, "--input", &input, "-o", &spec]);
    done(&["run", &graph, "--iospec", &spec, "--input", &input]);
    assert!(done(&["list", &graph]).contains("Add_I64"));
}

#[test]
fn a_plan_runs_step_by_step() {
    let summary = json_of(&["run", "fixtures/spu/recurrent/plan.json", "--json"]);
    assert_eq!(
        (&summary["target"], &summary["outputs"][0]["dtype"]),
        (&json!("spu"), &json!("int16"))
    );
}

/// A random order is one in every step, and what cannot be done for every step is refused.
#[test]
fn many_steps_run_in_the_order_that_was_asked_for() {
    let plan = "fixtures/spu/recurrent/plan.json";
    let info = json_of(&["info", plan, "--format", "json"]);
    let input = &info["inputs"][0];
    let (name, shape) = (input["name"].as_str().unwrap(), &input["shape"]);
    let size: u64 = shape
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d.as_u64().unwrap())
        .product();
    assert_eq!(input["dtype"], "int16");
    let directory = tempfile::tempdir().unwrap();
    let rows = directory.path().join("rows.npy");
    let header = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': (3, {size}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((117u16).to_le_bytes());
    bytes.extend(format!("{header:<116}\n").bytes());
    bytes.extend((0..3 * size as i16).flat_map(|i| (i * 7 - 40).to_le_bytes()));
    std::fs::write(&rows, bytes).unwrap();
    let given = format!("{name}={}", rows.display());
    let run = |more: &[&str]| {
        fed(
            &[&["run", plan, "--json", "--input", &given], more].concat(),
            "",
        )
    };
    let outputs =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["outputs"].clone();
    let (code, timed, err) = run(&[]);
    assert_eq!(code, 0, "{err}");
    let (code, random, err) = run(&["--order", "random:7"]);
    assert_eq!((code, outputs(&random)), (0, outputs(&timed)), "{err}");
    let (code, _, err) = run(&["--dump", "core0[0]"]);
    assert_eq!((code, err.contains("--dump")), (2, true), "{err}");
}

/// Where outputs differ from references, which task computed them, and what they rest on.
#[test]
fn wrong_numbers_are_traced_to_their_task() {
    let folder = "fixtures/neuron/vector_stream";
    let program = format!("{folder}/program.neff");
    let input = format!("x={folder}/input_x.npy");
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", &program, "--input", &input, "--json"];
        arguments.extend(more);
        json_of(&arguments)
    };
    let reference = format!("{folder}/output_out.npy");
    let same = run(&["--compare", &reference, "--find-nan"]);
    assert_eq!(same["compare"][0]["max_abs"], 0.0);
    assert_eq!(same["first_nan"], Value::Null);
    assert!(same["compare"][0].get("task").is_none());
    // The last element of the reference is another number now.
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join("out.npy");
    let mut bytes = std::fs::read(crate::support::root().join(&reference)).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&1e6f32.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let wrong = run(&["--compare", other.path().to_str().unwrap()]);
    let compared = &wrong["compare"][0];
    assert_eq!(
        (&compared["index"], &compared["differing"]),
        (&json!([31, 39]), &json!(1))
    );
    assert_eq!(compared["task"], "sg00.dve[2]");
    // Infinities among the inputs are first written by whoever brings them.
    let folder = "fixtures/neuron/cast_half";
    let (program, input) = (
        format!("{folder}/program.neff"),
        format!("x={folder}/input_x.npy"),
    );
    let found = json_of(&["run", &program, "--input", &input, "--find-nan", "--json"]);
    assert_eq!(found["first_nan"]["buffer"], "b");
    // Sums that float16 does not hold are clipped.
    let program = "fixtures/npu/add/program.blob";
    let of = |bits: u16| {
        let (element, shape) = (chipless_model::ElementType::Float16, [1, 32, 16, 16]);
        let values = bits.to_le_bytes().repeat(32 * 16 * 16);
        let (header, values) = chipless::npy::write(element, &shape, &values).unwrap();
        let file = other.path().join(format!("{bits:x}.npy"));
        std::fs::write(&file, [&*header, &*values].concat()).unwrap();
        file.display().to_string()
    };
    let clipped = |x: u16, y: u16| {
        let (x, y) = (format!("x={}", of(x)), format!("y={}", of(y)));
        let inputs = ["--input", &x, "--input", &y];
        let all = [&["run", program, "--find-nan", "--json"], &inputs[..]].concat();
        json_of(&all)["clipped"].clone()
    };
    assert_eq!(clipped(0x7b00, 0x7b00)["values"], 32 * 16 * 16);
    let none = json!({"values": 0, "tasks": 0, "first": null});
    assert_eq!(clipped(0x7b00, 0x3c00), none);
    // A program of quoted operations is refused where proof is demanded.
    let program = "fixtures/neuron/rmsnorm/program.neff";
    let (status, _, said) = crate::support::run(&["run", program, "--evidence", "proven"]);
    assert!(status == 2 && said.contains("TENSOR_REDUCE"), "{said}");
    done(&["run", program, "--evidence", "quoted"]);
}

/// References of other types are compared as numbers, integers by the scale of the file; an output agrees within what rounding explains.
#[test]
fn outputs_agree_within_a_tolerance() {
    let folder = "fixtures/npu/resblock";
    let program = format!("{folder}/program.blob");
    let input = format!("x={folder}/input_0.npy");
    // The program computes in float16, its reference is float32.
    let reference = format!("{folder}/output_0.npy");
    let blob = ["run", &program, "--input", &input, "--compare", &reference];
    let json = [&blob[..], &["--json"]].concat();
    let compared = &json_of(&json)["compare"][0];
    assert_eq!(
        (
            &compared["agrees"],
            &compared["beyond"],
            &compared["tolerance"]
        ),
        (
            &json!(true),
            &json!(0),
            &json!({"absolute": 0.0, "relative": 0.01})
        )
    );
    assert!(compared["differing"].as_u64() > Some(1000), "{compared}");
    assert!(done(&blob).contains("relu_10  agrees within 1 %; "));
    done(&[&blob[..], &["--tolerance", "0.5%"]].concat());
    let (status, said, why) = run(&[&blob[..], &["--tolerance", "1e-4%"]].concat());
    assert!(
        status == 1 && said.contains("does not agree within 1.000e-4 %"),
        "{said}"
    );
    assert!(
        why.starts_with(&format!("{program}: relu_10 does not agree")),
        "{why}"
    );

    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    // A unit of its int16 is worth 2^-12, and one element of the reference is two units off.
    let plan = "fixtures/spu/addition/plan.json";
    let out = directory.path().join("out").display().to_string();
    done(&["run", plan, "--output-dir", &out]);
    let bytes = std::fs::read(directory.path().join("out/A.npy")).unwrap();
    let units = bytes[128..].chunks_exact(2);
    let units = units.map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])));
    let mut reals: Vec<f32> = units.map(|unit| unit / 4096.0).collect();
    let elements = reals.len() as u64;
    let compared = |reals: &[f32]| {
        let path = file("A.npy", &npy(&[1, elements], reals));
        json_of(&["run", plan, "--compare", &path, "--json"])["compare"][0].clone()
    };
    assert_eq!(compared(&reals)["differing"], 0);
    reals[3] += 1.0 / 4096.0;
    assert_eq!(compared(&reals)["agrees"], true);
    reals[3] += 1.0 / 4096.0;
    let off = compared(&reals);
    assert_eq!(
        (&off["agrees"], &off["index"], &off["max_abs"]),
        (&json!(false), &json!([3]), &json!(2.0 / 4096.0))
    );

    // An NPU blob does not say what one of its uint8 is worth.
    let program = "fixtures/npu/qadd_u8/program.blob";
    let path = file("reals.npy", &npy(&[1, 16, 16, 16], &[0.5; 4096]));
    let (status, _, why) = run(&["run", program, "--compare", &path]);
    assert!(
        status == 2 && why.contains("is uint8, found 0.5: the file does not hold the scale"),
        "{why}"
    );
    // What --output-dir writes, --compare finds again; a directory without outputs is of no use.
    let schedule = "fixtures/gemini/four_cores/schedule.json";
    let network = "fixtures/gemini/four_cores/network.json";
    let run_with = |more: &[&str]| run(&[&["run", schedule, "--network", network], more].concat());
    let outputs = directory.path().join("outputs").display().to_string();
    assert_eq!(run_with(&["--output-dir", &outputs]).0, 0);
    let (status, said, _) = run_with(&["--compare", &outputs, "--tolerance", "0"]);
    assert!(status == 0 && said.contains("  equal\n"), "{said}");
    let empty = root().join("docs").display().to_string();
    let (status, _, why) = run_with(&["--compare", &empty]);
    assert!(status == 2 && why.contains(".npy, found none"), "{why}");
    let (status, _, why) = run_with(&["--tolerance", "1%", "--compare", "docs/index.md"]);
    assert!(
        status == 2 && why.starts_with("--tolerance: expected"),
        "{why}"
    );
}

/// numpy makes integers 64 bits long when nobody says otherwise.
#[test]
fn default_integers_of_numpy_are_taken_where_they_fit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b.npy");
    let out = directory.path().join("out");
    let run_with = |last: i64| {
        let head = "{'descr': '<i8', 'fortran_order': False, 'shape': (60,), }";
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{head:<117}\n").bytes());
        let numbers = (0..59).chain([last]);
        file.extend(numbers.flat_map(i64::to_le_bytes));
        std::fs::write(&path, file).unwrap();
        let (path, out) = (path.display(), out.display().to_string());
        let (b, c) = (format!("B={path}"), format!("C={path}"));
        let program = "fixtures/spu/addition/model.pt";
        run(&[
            "run",
            program,
            "--input",
            &b,
            "--input",
            &c,
            "--output-dir",
            &out,
        ])
    };
    let (code, _, err) = run_with(-59);
    let note = "note: input \"B\" is int16, and this file is int64; its values are taken where all of them fit";
    assert!(code == 0 && err.contains(note), "{code}: {err}");
    let written = std::fs::read(out.join("A.npy")).unwrap();
    let last = &written[written.len() - 4..];
    assert_eq!(last, [58 * 2, 0, 0x8a, 0xff], "58 + 58 and -59 - 59");
    let (code, _, err) = run_with(32768);
    let wrong = "expected numbers from -32768 to 32767, as int16 has them, found 32768";
    assert!(code == 2 && err.contains(wrong), "{code}: {err}");
}

#[test]
fn info_shows_what_can_be_read_of_a_graph() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("part.dfg");
    std::fs::write(
        &path,
        "Input64: a\nthis is ?? no line\nc = Add64(a, a)\nOutput64: c\n",
    )
    .unwrap();
    let (code, out, err) = run(&["info", path.to_str().unwrap()]);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("part.dfg:2:6") && err.contains("expected `=` or `,`, found `is`"),
        "{err}"
    );
    assert!(out.contains("inputs") && out.contains("outputs"), "{out}");
}

/// Assembler text is a program like the file that it makes.
#[test]
fn assembler_text_runs_as_it_is() {
    let folder = "fixtures/neuron/softmax";
    let of = |name: &str| {
        let path = format!("{folder}/{name}");
        let mut run: Value = serde_json::from_str(&done(&["run", &path, "--json"])).unwrap();
        let run = run.as_object_mut().unwrap();
        assert!(run.remove("program").is_some() && run.remove("wall_ms").is_some());
        run.clone()
    };
    assert_eq!(of("program.asm"), of("program.neff"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.asm");
    std::fs::write(&path, "neff wrong trn2\nsubgraph sg00\nthis is no line\n").unwrap();
    let (code, _, said) = run(&["run", path.to_str().unwrap()]);
    assert!(code == 2 && said.contains("wrong.asm: line 3"), "{said}");
}
