//! IOSpecs, and the programs behind them.

use crate::support::{done, json_of, root, run};
use serde_json::{Value, json};

#[test]
fn what_a_contract_states_of_a_vector_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spec.yaml");
    let vector = |kind: &str, name: &str, more: &str| {
        format!(
            "{kind}s:\n  {name}:\n    type: {kind}\n    varname: {name}\n    length: 5\n    precision: 16\n    padded_length: 8\n{more}"
        )
    };
    let input = vector(
        "input",
        "x",
        "    length_64b_words: 2\n    core_id: 1\n    pc: 77\n    quantization: {scale: 3.0517578125e-05, zero_pt: 0}\n",
    );
    let output = vector(
        "output",
        "y",
        "    length_64b_words: 2\n    mailbox_id: 9\n",
    );
    let sequence = "simple_sequences:\n  s:\n    type: simple_sequence\n    inputs: [x]\n    outputs: [y]\ncomplex_sequences: {}\n";
    std::fs::write(&path, format!("{input}{output}{sequence}")).unwrap();
    let path = path.to_str().unwrap();
    let info = json_of(&["info", "--format", "json", path]);
    assert_eq!(
        info["inputs"],
        json!([{
            "name": "x", "dtype": "int16", "shape": [5], "padded_length": 8, "length_64b_words": 2, "core_id": 1, "pc": 77,
            "scale": 3.051_757_812_5e-5, "zero_pt": 0.0,
        }])
    );
    assert_eq!(
        info["outputs"],
        json!([{
            "name": "y", "dtype": "int16", "shape": [5], "padded_length": 8, "length_64b_words": 2, "mailbox_id": 9,
        }])
    );
    let said = done(&["info", path]);
    assert!(
        said.contains("pc 77, scale 0.000030517578125, zero_pt 0"),
        "{said}"
    );
}

#[test]
fn calibration_is_part_of_the_summary() {
    let folder = "fixtures/spu/dense";
    let (model, steps) = (format!("{folder}/model.pt"), format!("{folder}/steps.json"));
    let summary = json_of(&["run", &model, "--calibrate", &steps, "--json"]);
    assert!(summary["latency_ns"].as_f64().unwrap() > 0.0);
    let nodes = summary["calibration"].as_array().unwrap();
    assert!(!nodes.is_empty());
    for node in nodes {
        assert!(node["graph"].as_str().unwrap().starts_with("ARITH"));
        assert!(node["values"].as_u64() >= node["saturated"].as_u64());
    }
}

/// Integers of 64 bits without a sign are quantised and come back as they are.
#[test]
fn wide_integers_are_quantised() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (graph, spec, script) = (path("a.dfg"), path("a.yaml"), path("a.json"));
    std::fs::write(&graph, "Input64: x\ny = Add_I64(x, 1)\nOutput64: y\n").unwrap();
    let vector = |kind: &str, name: &str, scale: f64| {
        format!(
            "{kind}s:\n  {name}:\n    type: {kind}\n    varname: {name}\n    length: 256\n    precision: 64\n    quantization: {{scale: {scale}, zero_pt: 0}}\n"
        )
    };
    let (input, output) = (vector("input", "x", 0.25), vector("output", "y", 0.5));
    let sequence = "simple_sequences:\n  s:\n    type: simple_sequence\n    inputs: [x]\n    outputs: [y]\ncomplex_sequences: {}\n";
    let text = format!("{input}{output}{sequence}").replace(
        "    quantization",
        "    padded_length: 256\n    quantization",
    );
    std::fs::write(&spec, text).unwrap();
    let mut given = vec![2.125; 256];
    // Below 0, and 2^63: no integer with a sign.
    (given[1], given[2]) = (-3.0, 2f64.powi(61));
    let steps = json!({"steps": [{"write": {"x": given}}, {"read": true}]});
    std::fs::write(&script, steps.to_string()).unwrap();
    let (code, out, err) = run(&[
        "drive",
        &spec,
        "--program",
        &graph,
        "--script",
        &script,
        "--quantize",
        "--format",
        "json",
    ]);
    assert!(
        code == 0 && err.contains("2 of 256 values of `x` are beyond the range"),
        "{err}"
    );
    let driven: Value = serde_json::from_str(&out).unwrap();
    let came = &driven["steps"][1]["values"]["y"];
    assert_eq!(
        (&came[0], &came[1], &came[2], &came[255]),
        (&json!(4.5), &json!(0.5), &json!(2f64.powi(62)), &json!(4.5))
    );
}

#[test]
fn a_program_behind_a_contract_takes_the_options_of_its_target() {
    let folder = "fixtures/gemini/four_cores";
    let (schedule, network) = (
        format!("{folder}/schedule.json"),
        format!("{folder}/network.json"),
    );
    let directory = tempfile::tempdir().unwrap();
    let contract = directory.path().join("contract.yaml");
    let text = done(&["iospec", &schedule, "--network", &network]);
    std::fs::write(&contract, text).unwrap();
    let contract = contract.to_str().unwrap();
    let script = directory.path().join("steps");
    std::fs::write(&script, "reset\n").unwrap();
    let script = script.to_str().unwrap();

    let behind = ["--program", &*schedule, "--network", &*network];
    done(&[&["drive", contract, "--script", script][..], &behind].concat());
    let firmware = directory.path().join("firmware");
    let output = ["host", contract, "-o", firmware.to_str().unwrap()];
    done(&[&output[..], &behind].concat());
    let model = std::fs::read_to_string(firmware.join("model.c")).unwrap();
    let absolute = root().canonicalize().unwrap().join(&network);
    let expected = format!("    \"--network\",\n    \"{}\",\n", absolute.display());
    assert!(model.contains(&expected), "{model}");

    // Without a program, or with one of another target, they are refused and not ignored.
    let refused = |arguments: &[&str]| {
        let (code, _, said) = run(arguments);
        assert_eq!(code, 2, "{said}");
        said
    };
    let alone = refused(&["drive", contract, "--script", script, "--network", "n.json"]);
    assert!(alone.contains("--network"), "{alone}");
    let other = refused(&[&output[..], &behind, &["--map", "m.json"]].concat());
    assert!(other.contains("--map"), "{other}");
}

#[test]
fn an_application_writes_latched_inputs_before_what_uses_them() {
    let contract = "fixtures/spu/latched/iospec.yaml";
    let directory = tempfile::tempdir().unwrap();
    let firmware = directory.path().join("firmware");
    let said = done(&["host", contract, "-o", firmware.to_str().unwrap()]);
    assert!(said.contains("make -C"), "{said}");
    let application = std::fs::read_to_string(firmware.join("app.c")).unwrap();
    let (_, round) = application.split_once("round++").unwrap();
    let calls: Vec<usize> = ["take_0()", "take_1()", "sequence_1()", "sequence_0()"]
        .iter()
        .map(|call| {
            round
                .find(call)
                .unwrap_or_else(|| panic!("{call}: {round}"))
        })
        .collect();
    assert!(calls.is_sorted(), "{round}");
}

#[test]
fn files_that_somebody_changed_are_kept() {
    let contract = "fixtures/spu/latched/iospec.yaml";
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let output = directory.path().to_str().unwrap();
    let host = ["host", contract, "-o", output];
    done(&host);
    // Nothing changed: all of it is written again.
    assert!(!done(&host).contains("Kept"));
    let own = "int main(void) { return 0; }\n";
    std::fs::write(path("app.c"), own).unwrap();
    std::fs::remove_file(path("model.c")).unwrap();
    let said = done(&host);
    assert!(said.contains("would write: app.c (--force"), "{said}");
    assert_eq!(std::fs::read_to_string(path("app.c")).unwrap(), own);
    assert!(path("model.c").exists());
    // A contract of somebody else's stays, and nothing else is written.
    std::fs::write(path("iospec.yaml"), "# mine\n").unwrap();
    std::fs::remove_file(path("model.c")).unwrap();
    let (code, _, said) = run(&host);
    assert!(
        code == 2 && said.contains("iospec.yaml") && said.contains("--force"),
        "{said}"
    );
    assert!(!path("model.c").exists());
    done(&[&host[..], &["--force"]].concat());
    assert_ne!(std::fs::read_to_string(path("app.c")).unwrap(), own);
    // Files that are renewed say so, and a change of theirs is not lost.
    let model = std::fs::read_to_string(path("model.h")).unwrap();
    std::fs::write(path("model.h"), format!("{model}/* mine */\n")).unwrap();
    let (code, _, said) = run(&host);
    assert!(
        code == 2 && said.contains("model.h") && said.contains("--force"),
        "{code} {said}"
    );
    std::fs::write(path("model.h"), &model).unwrap();
    done(&host);
}

/// An application in C++ links with the library, and what is missing without PATH has a name.
#[test]
fn an_application_may_be_in_another_language() {
    use std::process::Command;
    let contract = "fixtures/spu/latched/iospec.yaml";
    let directory = tempfile::tempdir().unwrap();
    let firmware = directory.path().to_str().unwrap();
    done(&["host", contract, "-o", firmware]);
    let make = |arguments: &[&str]| {
        let mut command = Command::new("make");
        command.current_dir(firmware).args(arguments).status()
    };
    // Who has no compiler builds no firmware.
    if !make(&["CFLAGS=-O0"]).is_ok_and(|status| status.success()) {
        return;
    }
    let app = Command::new(directory.path().join("app"))
        .env("CHIPLESS", directory.path().join("nothing"))
        .stdin(std::fs::File::open(directory.path().join("app")).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&app.stderr);
    assert!(said.contains("environment variable CHIPLESS"), "{said}");
    let plus = "#include \"model.h\"\n#include \"spu.h\"\nint main() { return SpuReadData(99, nullptr) + (int)model_sequence_count == 0; }\n";
    std::fs::write(directory.path().join("app2.cpp"), plus).unwrap();
    let built = Command::new("c++")
        .current_dir(firmware)
        .args(["-I.", "app2.cpp", "model.o", "spu_mock.o", "-o", "app2"])
        .output();
    if let Ok(built) = built {
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{said}");
    }
}

#[test]
fn what_is_no_step_or_no_contract_says_what_to_do() {
    let contract = "fixtures/spu/latched/iospec.yaml";
    let model = "fixtures/spu/latched/model.pt";
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("steps");
    let script = script.to_str().unwrap();
    for (text, expected) in [
        (
            "next\nread\n",
            "line 1: expected write, read or reset, found \"next\"",
        ),
        (
            "read A\n",
            "line 1: expected `read` by itself, found \"read A\"",
        ),
        (
            "raed\n",
            "line 1, column 1: expected write, read, reset, next, help or quit, found \"raed\"; did you mean \"read\"?",
        ),
        (
            "write B=1 B=2\n",
            "line 1: expected values for `B` once, found them twice",
        ),
        ("write B = 1\n", "expected 60 (padded 64) elements"),
    ] {
        std::fs::write(script, text).unwrap();
        let (code, out, said) = run(&["drive", contract, "--script", script]);
        assert!(code > 0 && (out + &said).contains(expected), "{said}");
    }
    for arguments in [
        &["drive", model][..],
        &["drive", contract, "--script", model],
    ] {
        let (code, _, said) = run(arguments);
        assert!(
            code == 2 && said.contains("`chipless iospec fixtures/spu/latched/model.pt"),
            "{said}"
        );
    }
}

#[test]
fn values_beyond_their_scale_are_told() {
    let contract = "fixtures/spu/latched/iospec.yaml";
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("steps.json");
    let mut values = vec![1.0; 60];
    (values[3], values[7]) = (100.0, -9.0);
    let steps = json!([{"write": {"B": values, "latchedC": vec![0.5; 60]}}, {"read": true}]);
    std::fs::write(&script, steps.to_string()).unwrap();
    let drive = [
        "drive",
        contract,
        "--script",
        script.to_str().unwrap(),
        "--quantize",
    ];
    let (code, _, said) = run(&drive);
    let expected = "2 of 60 values of `B` are beyond the range of its scale and are clipped; the first is 100, which becomes 7.999755859375";
    assert!(code == 0 && said.matches(expected).count() == 1, "{said}");
}

/// A join gives as many elements as its lists have in common, over as many rows as the contract has.
#[test]
fn a_contract_says_that_data_decide_a_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let list = |name: &str, values: [u64; 5]| {
        let data: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let (element, shape) = (chipless_model::ElementType::UInt64, [5, 1]);
        let mut bytes = chipless::npy::write_header(element, &shape);
        bytes.extend(data);
        std::fs::write(path(&format!("{name}.npy")), bytes).unwrap();
        format!("{name}={}", path(&format!("{name}.npy")))
    };
    let given = [
        list("keyA", [1, 3, 5, 7, 9]),
        list("keyB", [2, 3, 7, 8, 10]),
        list("valueA", [10, 20, 30, 40, 50]),
        list("valueB", [1, 2, 3, 4, 5]),
    ];
    let (program, contract) = ("fixtures/dsa/join.dfg", path("join.yaml"));
    let mut arguments = vec!["iospec", program, "-o", &contract];
    for array in &given {
        arguments.extend(["--input", array]);
    }
    done(&arguments);
    let text = std::fs::read_to_string(&contract).unwrap();
    assert_eq!(text.matches("length_depends_on_data: true").count(), 2);
    let script = path("steps.yaml");
    let steps = "- write: {keyA: [1, 2, 3, 4, 5], keyB: [1, 2, 4, 5, 6], valueA: [1, 2, 3, 4, 5], valueB: [10, 10, 10, 10, 10]}\n- read: true\n";
    std::fs::write(&script, steps).unwrap();
    let drive = [
        "drive",
        &contract,
        "--program",
        program,
        "--script",
        &script,
    ];
    let driven = json_of(&[&drive[..], &["--json"]].concat());
    let values = &driven["steps"][1]["values"];
    assert_eq!(values["key"], json!([1, 2, 4, 5]));
    assert_eq!(values["product"], json!([10, 20, 40, 50]));
    // Where the contract does not say so, the program does not fit it, and the message tells how to say it.
    let fixed = text.replace("length_depends_on_data: true", "fixed: true");
    std::fs::write(&contract, fixed).unwrap();
    let (code, _, err) = run(&drive);
    assert!(
        code != 0 && err.contains("length_depends_on_data"),
        "{code} {err}"
    );
}

/// Rows within rows: a contract has the shape of its inputs in its comments, and `drive` computes what `run` does.
#[test]
fn a_stated_stream_is_driven_in_the_loops_of_its_contract() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut bytes = chipless::npy::write_header(chipless_model::ElementType::UInt64, &[2, 3, 1]);
    bytes.extend((1..=6u64).flat_map(u64::to_le_bytes));
    std::fs::write(path("cell.npy"), bytes).unwrap();
    let (program, contract) = ("fixtures/dsa/row_sums.dfg", path("sums.yaml"));
    let given = format!("cell={}", path("cell.npy"));
    done(&["iospec", program, "--input", &given, "-o", &contract]);
    let text = std::fs::read_to_string(&contract).unwrap();
    // The place in the loops decides what comes out, not the data.
    assert!(!text.contains("length_depends_on_data"), "{text}");
    let script = path("steps.yaml");
    std::fs::write(
        &script,
        "- write: {cell: [1, 2, 3, 4, 5, 6]}\n- read: true\n",
    )
    .unwrap();
    let drive = ["drive", &contract, "--program", program, "--json"];
    let driven = json_of(&[&drive[..], &["--script", &script]].concat());
    assert_eq!(driven["steps"][1]["values"]["sum"], json!([6, 15]));
    // The program fits the contract, whatever number of rows it has.
    let (code, out, _) = run(&["check", &contract, "--program", program]);
    assert!(code == 0 && !out.contains("program-length"), "{out}");
}

/// The key that was meant for a field is named, and so is what repairs it.
#[test]
fn a_misspelt_field_is_named() {
    let text = std::fs::read_to_string(root().join("fixtures/spu/latched/iospec.yaml")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("iospec.yaml");
    std::fs::write(&path, text.replacen("precision:", "precison:", 1)).unwrap();
    let path = path.to_str().unwrap();
    let (code, said, _) = run(&["check", path]);
    assert!(
        code != 0 && said.contains("found none but `precison`") && said.contains("--fix"),
        "{said}"
    );
    let (code, said, _) = run(&["check", path, "--fix"]);
    assert_eq!(code, 0, "{said}");
}

/// An input that a step leaves out keeps its values; and a step of the one command is none of the other.
#[test]
fn steps_of_calibration_keep_what_they_do_not_name() {
    let folder = "fixtures/spu/latched";
    let (model, steps) = (format!("{folder}/model.pt"), format!("{folder}/steps.json"));
    let said = done(&["run", &model, "--calibrate", &steps]);
    assert!(said.contains("4 steps"), "{said}");
    let directory = tempfile::tempdir().unwrap();
    let wrong = directory.path().join("steps.json");
    let text = json!({"steps": [{"inputs": {"B": vec![1; 60], "C": vec![1; 60]}}, {"inputs": {"latchedC": vec![1; 60]}}]});
    std::fs::write(&wrong, text.to_string()).unwrap();
    let (code, _, said) = run(&["run", &model, "--calibrate", wrong.to_str().unwrap()]);
    assert!(
        code == 2 && said.contains("found `C`; did you mean \"latchedC\"?"),
        "{said}"
    );
    let contract = format!("{folder}/iospec.yaml");
    let (code, _, said) = run(&["drive", &contract, "--script", &steps]);
    assert!(code == 2 && said.contains("`run --calibrate`"), "{said}");
}

/// What no application can drive is not made one, and what it would do wrong is said.
#[test]
fn host_says_where_its_application_has_to_be_changed() {
    let text = std::fs::read_to_string(root().join("fixtures/spu/latched/iospec.yaml")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("iospec.yaml");
    let path = path.to_str().unwrap();
    let output = directory.path().join("firmware");
    let host = |text: &str| {
        std::fs::write(path, text).unwrap();
        run(&["host", path, "-o", output.to_str().unwrap()])
    };
    // The second sequence waits for what only the first can give.
    let undrivable = text.replace("inputs: [\"B\"]", "inputs: []");
    let (code, _, said) = host(&undrivable);
    assert!(
        code == 2 && said.contains("expected a contract that can be driven"),
        "{said}"
    );
    assert!(!output.exists());
    let two = text.replace(
        "  latched_seq:",
        "  other_seq:\n    type: simple_sequence\n    inputs: [\"B\"]\n    outputs: [\"D\"]\n  latched_seq:",
    );
    let two = two.replace(
        "\nsimple_sequences:",
        "  D:\n    type: output\n    varname: D\n    length: 60\n    padded_length: 64\n    length_64b_words: 16\n    precision: 16\n    mailbox_id: 4\n\nsimple_sequences:",
    );
    let (code, _, said) = host(&two);
    assert!(
        code == 0 && said.contains("the input `B` belongs to several sequences"),
        "{said}"
    );
}

/// A line of words has no columns but its own, and its number.
#[test]
fn mistakes_in_words_have_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.txt");
    std::fs::write(&script, "read\nwrite B=1,x\n").unwrap();
    let contract = "fixtures/spu/latched/iospec.yaml";
    let (code, _, said) = run(&["drive", contract, "--script", script.to_str().unwrap()]);
    assert!(
        code == 2 && said.contains("script.txt: line 2: expected a number"),
        "{said}"
    );
}

/// Outputs of a file stand beside those that come.
#[test]
fn outputs_of_steps_are_compared() {
    let folder = root().join("fixtures/spu/latched");
    let model = folder.join("model.pt");
    let model = model.to_str().unwrap();
    let text = std::fs::read_to_string(folder.join("steps.json")).unwrap();
    let mut steps: Value = serde_json::from_str(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("steps.json");
    let compared = |steps: &Value, status: i32| {
        std::fs::write(&path, steps.to_string()).unwrap();
        let calibrate = [
            "run",
            model,
            "--calibrate",
            path.to_str().unwrap(),
            "--json",
        ];
        let (code, out, err) = run(&calibrate);
        assert_eq!(code, status, "{err}");
        serde_json::from_str::<Value>(&out).unwrap()["outputs_beside"].clone()
    };
    let same = compared(&steps, 0);
    assert!(
        same["elements"].as_u64() > Some(0) && same["differing"] == 0,
        "{same}"
    );
    let outputs = steps["steps"][1]["outputs"].as_object_mut().unwrap();
    let (name, values) = outputs.iter_mut().next().unwrap();
    let name = name.clone();
    let right = values[3].as_i64().unwrap();
    values[3] = json!(right + 1);
    let other = compared(&steps, 1);
    assert_eq!(
        (&other["elements"], &other["differing"]),
        (&same["elements"], &json!(1))
    );
    let first =
        json!({"step": 1, "output": name, "element": 3, "found": right, "expected": right + 1});
    assert_eq!(other["first"], first);
    let (code, said, _) = run(&["run", model, "--calibrate", path.to_str().unwrap()]);
    assert_eq!(code, 1, "{said}");
    let expected = format!(
        "`{name}`[3] of step 1: expected {}, found {right}.",
        right + 1
    );
    assert!(said.contains(&expected), "{said}");
    steps["steps"][1]["outputs"] = json!({"nothing": [0]});
    std::fs::write(&path, steps.to_string()).unwrap();
    let (code, _, said) = run(&["run", model, "--calibrate", path.to_str().unwrap()]);
    assert!(
        code == 2 && said.contains("expected names of outputs in step 1"),
        "{said}"
    );
}

#[test]
fn inputs_that_wait_for_each_other_are_told_with_their_sequences() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crossed.yaml");
    let vector = |name: &str, side: &str| {
        format!(
            "  {name}: {{type: {side}, varname: {name}, length: 8, precision: 16, padded_length: 8}}\n"
        )
    };
    let text = format!(
        "inputs:\n{}{}outputs:\n{}simple_sequences:\n  s1: {{type: simple_sequence, inputs: [a, b], outputs: [y]}}\n  s2: {{type: simple_sequence, inputs: [b, a], outputs: []}}\n",
        vector("a", "input"),
        vector("b", "input"),
        vector("y", "output")
    );
    std::fs::write(&path, text).unwrap();
    let (code, said, _) = run(&["check", path.to_str().unwrap()]);
    assert!(
        code == 1 && said.contains("The sequences `s1`, `s2` take it"),
        "{said}"
    );
}

/// The contract that a program states of itself is one, whichever command writes it.
#[test]
fn the_contract_of_a_program_has_its_scales() {
    let directory = tempfile::tempdir().unwrap();
    let (plan, converted) = (
        directory.path().join("plan.json"),
        directory.path().join("iospec.yaml"),
    );
    let (plan, converted) = (plan.to_str().unwrap(), converted.to_str().unwrap());
    let model = "fixtures/spu/latched/model.pt";
    done(&["convert", model, "-o", plan, "--iospec", converted]);
    let printed = done(&["iospec", model]);
    assert_eq!(printed, std::fs::read_to_string(converted).unwrap());
    assert!(printed.contains("scale: "), "{printed}");

    // An application would have the other scale, and every number would be wrong.
    let (before, rest) = printed.split_once("scale: ").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    std::fs::write(converted, format!("{before}scale: 0.75\n{after}")).unwrap();
    let application = directory.path().join("host");
    let host = ["host", converted, "-o", application.to_str().unwrap()];
    let (code, _, said) = run(&[&host[..], &["--program", model]].concat());
    assert!(code == 2 && said.contains("expected the scale"), "{said}");
    assert!(!application.join("model.h").exists());
}

#[test]
fn a_program_that_cannot_be_driven_is_shown_where_it_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.json");
    let plan = std::fs::read(root().join("fixtures/spu/recurrent/plan.json")).unwrap();
    std::fs::write(&path, &plan[..plan.len() / 2]).unwrap();
    let path = path.to_str().unwrap();
    let contract = "fixtures/spu/recurrent/iospec.yaml";
    let (code, _, said) = run(&["drive", contract, "--program", path]);
    assert!(
        code == 2 && said.contains("error[fqir-json]") && said.contains("--> "),
        "{said}"
    );
}

#[test]
fn a_number_that_does_not_fit_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let steps = directory.path().join("steps.txt");
    let contract = "fixtures/spu/recurrent/iospec.yaml";
    let said = |step: &str| {
        std::fs::write(&steps, step).unwrap();
        let steps = steps.to_str().unwrap();
        let (code, _, said) = run(&["drive", contract, "--script", steps]);
        assert_eq!(code, 2, "{said}");
        said
    };
    let integers = said("write x=0.5,2,3,4\n");
    assert!(integers.contains("found 0.5 at element 0"), "{integers}");
    let word = said("write x=1,2,foo,4\n");
    assert!(word.contains("expected a number, found"), "{word}");
    assert!(word.contains("foo"), "{word}");
}

/// A read that cannot be shown on the wire has not taken anything.
#[test]
fn a_read_that_fails_leaves_what_was_ready() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (contract, steps) = (path("iospec.yaml"), path("steps.txt"));
    let whole =
        std::fs::read_to_string(crate::support::root().join("fixtures/spu/recurrent/iospec.yaml"))
            .unwrap();
    std::fs::write(&contract, whole.replace("    mailbox_id: 1\n", "")).unwrap();
    let values = vec!["1"; 32].join(",");
    std::fs::write(
        &steps,
        format!("write x={values}\nread\nwrite x={values}\n"),
    )
    .unwrap();
    let program = "fixtures/spu/recurrent/plan.json";
    let (_, said, _) = run(&[
        "drive",
        &contract,
        "--program",
        program,
        "--wire",
        "--script",
        &steps,
    ]);
    assert!(
        said.contains("mailbox_id")
            && said.contains("kSpuSequenceError: expected out of main_seq to be read first"),
        "{said}"
    );
}
