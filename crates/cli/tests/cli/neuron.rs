//! NEFFs through the command line: measured profiles, integers that lose digits.

use crate::support::{done, root, run};
use serde_json::{Value, json};

#[test]
fn a_neff_is_compared_with_a_profile_of_the_hardware() {
    let directory = tempfile::tempdir().unwrap();
    let [source, neff, profile] =
        ["p.asm", "p.neff", "p.json"].map(|name| directory.path().join(name).display().to_string());
    let text = "neff t trn2\ninput x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\nengine dve\n\
        MEMSET dst=fp32@0x4000[1,0,0,0][64,1,1,1] value=0x0 channels=128\n\
        COPY dst=fp32@0x8000[1,0,0,0][64,1,1,1] src=fp32@0x4000[1,0,0,0][64,1,1,1] channels=128\n";
    std::fs::write(&source, text).unwrap();
    done(&["pack", &source, &neff]);
    let measured = r#"{"summary":[{"total_time":5e-7}],"instruction":[
        {"label":"Vector","opcode":"MEMSET","compiler_pc":0,"timestamp":100,"duration":100},
        {"label":"Vector","opcode":"COPY","compiler_pc":1,"timestamp":220,"duration":200,"nki_source_location":"k.py:9"}]}"#;
    std::fs::write(&profile, measured).unwrap();
    let arguments = [
        "run",
        &neff,
        "--timing-only",
        "--no-verify",
        "--compare",
        &profile,
    ];
    let said: Value = serde_json::from_str(&done(&[&arguments[..], &["--json"]].concat())).unwrap();
    let compared = &said["compared"];
    assert_eq!(
        (
            &compared["origin"],
            &compared["matched"],
            &compared["unmatched"]
        ),
        (&json!("measured"), &json!(2), &json!(0))
    );
    assert_eq!(compared["trace_latency_ns"], 320.0);
    let copy = compared["worst"].as_array().unwrap();
    let copy = copy.iter().find(|t| t["task"] == "sg00.dve[1]").unwrap();
    assert_eq!(
        (&copy["source"], &copy["trace_start_ns"]),
        (&json!("k.py:9"), &json!(120.0))
    );
    let operations = compared["operations"].as_array().unwrap();
    let memset = operations
        .iter()
        .find(|o| o["operation"] == "MEMSET")
        .unwrap();
    let error = memset["busy_ns"].as_f64().unwrap() / 100.0 - 1.0;
    assert!(
        (memset["median_error"].as_f64().unwrap() - error.abs()).abs() < 1e-9,
        "{memset}"
    );
    let shown = done(&arguments);
    assert!(
        shown.contains("beside the measured profile") && shown.contains("k.py:9"),
        "{shown}"
    );
    std::fs::write(
        &profile,
        measured
            .replace("MEMSET", "COPY")
            .replace("1,\"timestamp\":220", "0,\"timestamp\":220"),
    )
    .unwrap();
    let (code, _, err) = run(&arguments);
    assert!(code == 2 && err.contains("another program"), "{code} {err}");
}

/// The task that the advice changes has its line in the text, and none is named twice.
#[test]
fn advice_shows_the_line_that_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.asm").display().to_string();
    let source = crate::support::root().join("fixtures/neuron/softmax/program.asm");
    let text = std::fs::read_to_string(source).unwrap();
    let wait = " $S[8]>=16 $S[6]++@complete";
    let broken = text.replace(wait, " $S[6]++@complete");
    let line = text.lines().position(|line| line.ends_with(wait)).unwrap() + 1;
    std::fs::write(&path, &broken).unwrap();
    let (status, said, _) = run(&["check", &path]);
    assert_eq!(status, 1, "{said}");
    let race = said.split("\n\n").next().unwrap();
    assert!(
        race.contains("--- sg00.dve[0] has no waits of its own; signals sg00 $S[6]")
            && race.contains(
                "^ sg00.qSPDynamicHW[0] waits for its start (by sg00.sp[0]); signals sg00 $S[8]"
            )
            && race.contains("help: Let sg00.dve[0] wait for sg00 $S[8] ≥ 16."),
        "{said}"
    );
    // The help changes a task of the finding: each of the two lines stands there once.
    assert!(
        race.contains(&format!("p.asm:{line}:1")) && race.matches("p.asm:").count() == 2,
        "{said}"
    );
    // The activation waits for the transfer in place of the reduction: an instruction in front of it has to wait for that.
    let other = broken.replace(" $S[6]>=1 $S[4]++", " $S[8]>=16 $S[4]++");
    let line = text
        .lines()
        .position(|line| line == "ACTIVATION_TABLE_LOAD");
    let line = line.unwrap() + 1;
    std::fs::write(&path, &other).unwrap();
    let (_, said, _) = run(&["check", &path]);
    assert!(
        said.contains(&format!("p.asm:{line}:1"))
            && said.contains(
                "--- sg00.act[0] (which the help changes) has no waits of its own and gives no signal"
            )
            && said.contains("help: Let sg00.act[0] wait for sg00 $S[6] ≥ 1."),
        "{said}"
    );
    std::fs::write(&path, &text).unwrap();
    assert_eq!(done(&["check", &path]), format!("{path}: clean\n"));
}

/// Instructions are named as the tasks that they are.
#[test]
fn findings_about_instructions_name_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.asm").display().to_string();
    let source = crate::support::root().join("fixtures/neuron/gelu_mlp/program.asm");
    let text = std::fs::read_to_string(source).unwrap();
    // The first transfer, and whatever waits for it, with a semaphore that the queue set does not have.
    std::fs::write(&path, text.replace("$S[8]", "$S[77]")).unwrap();
    let (status, said, _) = run(&["check", &path]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("^ sg00.sp[0]\n"), "{said}");
    assert!(
        said.contains("$S[77] is not in the semaphore_set of qSPDynamicHW, which has [8, 9, 10,"),
        "{said}"
    );
}

#[test]
fn a_run_reports_integers_that_lose_digits() {
    let directory = tempfile::tempdir().unwrap();
    let [source, neff, x] =
        ["p.asm", "p.neff", "x.npy"].map(|name| directory.path().join(name).display().to_string());
    let text = "neff t trn2\ninput x int32 [2]\noutput o int64 [2]\nsubgraph sg00\nqueue q data owner=sp\nvar x input\nvar o output\nengine sp\n\
        dma id=0 queue=q\n  cast o [1:16] int64 <- x [1:8] int32\n";
    std::fs::write(&source, text).unwrap();
    done(&["pack", &source, &neff]);
    let header = format!(
        "{:<117}\n",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }"
    );
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend(header.as_bytes());
    array.extend([1i32, 16_777_217].into_iter().flat_map(i32::to_le_bytes));
    std::fs::write(&x, array).unwrap();
    let input = format!("x={x}");
    let arguments = ["run", &neff, "--input", &input];
    let said: Value = serde_json::from_str(&done(&[&arguments[..], &["--json"]].concat())).unwrap();
    let found = said["findings"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["code"], &found[0]["severity"]),
        (&json!("neff-integer-rounded"), &json!("warning"))
    );
    assert!(found[0]["message"].as_str().unwrap().contains("16777217"));
    assert!(done(&arguments).contains("neff-integer-rounded"));
    let denied = run(&[&arguments[..], &["--deny", "neff-integer-rounded"]].concat());
    assert_eq!(denied.0, 1, "{}", denied.2);
    let allowed = done(
        &[
            &arguments[..],
            &["--json", "--allow", "neff-integer-rounded"],
        ]
        .concat(),
    );
    assert!(!allowed.contains("neff-integer-rounded"));
}

/// A mixture of experts whose matrix engine waits for one transfer of weights too few, as whoever looks for the race meets it.
#[test]
fn a_race_is_found_from_its_finding_to_its_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let [source, racy] = ["p.asm", "p.neff"].map(|name| {
        let path = directory.path().join(name);
        path.display().to_string()
    });
    let fixture = root().join("fixtures/neuron/mixture_of_experts");
    let file = |name: &str| fixture.join(name).display().to_string();
    let text = std::fs::read_to_string(file("program.asm")).unwrap();
    std::fs::write(&source, text.replacen("$S[10]>=128", "$S[10]>=112", 1)).unwrap();
    done(&["pack", &source, "-o", &racy]);

    // Of the pairs that one finding stands for, --all and JSON tell each.
    let (code, short, _) = run(&["check", &racy]);
    assert!(code == 1 && !short.contains("qSPDynamicHW[9]"), "{short}");
    let (_, all, _) = run(&["check", &racy, "--all"]);
    assert!(
        all.contains("   + sg00.pe[15] (LDWEIGHTS) reads sg00.sbuf 0x50e0..0x5100 (likewise in 31 more rows, 0x40000 bytes apart) and sg00.qSPDynamicHW[9] (dma copy) writes them"),
        "{all}"
    );
    let (_, json, _) = run(&["check", &racy, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let alike = &json["files"][0]["findings"][0]["alike"];
    assert_eq!(alike.as_array().map(Vec::len), Some(7), "{alike}");

    // Queues without what stands before the dot, and operations.
    let whole = done(&["list", &racy, "sg00.pe[0]"]);
    assert_eq!(done(&["list", &racy, "pe[0]"]), whole);
    assert_eq!(done(&["list", &racy, "pe[0..0]"]), whole);
    assert_eq!(done(&["list", &racy, "p?[0..0]"]), whole);
    let weights = done(&["list", &racy, "ldweights"]);
    assert_eq!(weights.matches("LDWEIGHTS").count(), 8, "{weights}");
    let (_, _, said) = run(&["list", &racy, "pe[99]"]);
    assert!(
        said.contains("expected a task sg00.pe[0] to sg00.pe[16]"),
        "{said}"
    );

    let right = file("program.neff");
    let (_, difference, _) = run(&["diff", &right, &racy]);
    assert!(
        difference.contains(
            "sg00.pe[15]  LDWEIGHTS  data flow\n      reads initial values, was: what sg00.qSPDynamicHW[9] writes\n"
        ),
        "{difference}"
    );
    let inputs = ["hidden", "logits", "weights"];
    let inputs = inputs.map(|name| format!("{name}={}", file(&format!("input_{name}.npy"))));
    let given = inputs.iter().flat_map(|input| ["--input", input]);
    let arguments: Vec<&str> = ["diff", &right, &racy, "--values"]
        .into_iter()
        .chain(given)
        .collect();
    let (_, given, said) = run(&arguments);
    assert!(
        given.contains("first difference") || given.contains("values"),
        "{given}{said}"
    );
    let (_, random, _) = run(&["diff", &right, &racy, "--values"]);
    assert_ne!(given, random);
    let (code, _, said) = run(&["diff", &right, &racy, "--input", &inputs[0]]);
    assert!(
        code == 2 && said.contains("expected --values beside it"),
        "{said}"
    );
    let (code, _, said) = run(&["diff", &right, &racy, "--values", "--input", "hiden=x.npy"]);
    assert!(
        code == 2 && said.contains("did you mean \"hidden\"?"),
        "{said}"
    );

    let script = directory.path().join("script").display().to_string();
    std::fs::write(
        &script,
        "goto pe[15]\nprint pe[15].in[0].dtype\nwriter sg00.sbuf+0x50e0\nwriter fp32 sbuf+0x50e0\nwriter sbuf+0x50e0..0x50e3\n",
    )
    .unwrap();
    let said = done(&["debug", &racy, "--no-verify", "--script", &script]);
    let ends: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("initial value"))
        .collect();
    assert!(said.contains("\nfloat16\n"), "{said}");
    assert_eq!(
        ends,
        [
            "1 byte has its initial value",
            "4 bytes have their initial values",
            "3 bytes have their initial values"
        ],
        "{said}"
    );
}

/// A wait that is too short lets `pool[1]` overwrite what `dve[1]` reads. The least wait that orders the two is advised, and one of the two orders shows
/// the wrong numbers.
#[test]
fn a_race_shows_when_one_of_its_tasks_is_late() {
    let folder = root().join("fixtures/neuron/rotary_embedding");
    let text = std::fs::read_to_string(folder.join("program.asm")).unwrap();
    let racy = text.replace("channels=64 $S[6]>=3 $S[7]", "channels=64 $S[6]>=1 $S[7]");
    assert_ne!(text, racy);
    let directory = tempfile::tempdir().unwrap();
    let [source, neff] =
        ["p.asm", "p.neff"].map(|name| directory.path().join(name).display().to_string());
    std::fs::write(&source, racy).unwrap();
    done(&["pack", &source, &neff]);

    let (code, said, _) = run(&["check", &neff]);
    assert_eq!(code, 1, "{said}");
    for part in [
        "waits for sg00 $S[6] ≥ 1 (by sg00.dve[0])",
        "wait for sg00 $S[6] ≥ 2 instead of ≥ 1. With that, no error is left.",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let (code, said, err) = run(&["check", "--fix", "--diff", &source]);
    assert_eq!((code, said.as_str()), (1, ""), "{err}");
    assert!(err.contains("nothing that --fix can change"), "{err}");

    let inputs = ["x", "cos", "sin"].map(|name| {
        let file = folder.join(format!("input_{name}.npy"));
        format!("{name}={}", file.display())
    });
    let expected = folder.join("output_y.npy").display().to_string();
    let mut arguments = vec!["run", &neff, "--no-verify", "--compare", &expected];
    arguments.extend(inputs.iter().flat_map(|input| ["--input", input]));
    let late = |task: &str| done(&[&arguments[..], &["--order", &format!("late:{task}")]].concat());
    let [reader, writer] = ["dve[1]", "pool[1]"].map(late);
    assert!(reader.contains("1022 of 2048 differ"), "{reader}");
    assert!(
        reader.contains("sg00.dve[1] ran as late as the waits let it"),
        "{reader}"
    );
    assert!(writer.contains("  y  equal"), "{writer}");

    let (code, _, err) = run(&[&arguments[..], &["--order", "late:dve[9]"]].concat());
    assert!(
        code == 2 && err.contains("expected a task sg00.dve[0] to sg00.dve[3]"),
        "{err}"
    );
    let (code, _, err) = run(&[&arguments[..], &["--order", "late"]].concat());
    assert!(code == 2 && err.contains("`late:` and a task"), "{err}");
}
