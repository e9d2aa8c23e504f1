//! What `check --fix` makes of texts.

use chipless::disk::Disk;
use chipless::{Options, dsa};

/// The text after all fixes, and the titles of the mends.
fn fix(name: &str, text: &str) -> (String, Vec<String>) {
    let options = Options::with_files(Disk);
    let fixed =
        chipless_lsp::fix(name, text.as_bytes(), &options, &|_| false).expect("options that fit");
    match fixed {
        Some(fixed) => {
            let again = chipless_lsp::fix(name, fixed.text.as_bytes(), &options, &|_| false);
            assert_eq!(again.expect("options that fit"), None, "twice is once");
            (
                fixed.text,
                fixed.mends.into_iter().map(|(_, title)| title).collect(),
            )
        }
        None => (text.to_owned(), Vec::new()),
    }
}

fn dfg(text: &str) -> String {
    fix("a.dfg", text).0
}

const PORTS: &str = "Input64: a\nInput64: b\n";

/// A graph with these lines between its ports and its output `c`.
fn graph(lines: &str) -> String {
    format!("{PORTS}{lines}Output64: c\n")
}

#[test]
fn graphs_are_mended() {
    for (wrong, right) in [
        // Line ends.
        (
            graph("c = Add_I64(a, b)\n").trim_end().to_owned(),
            graph("c = Add_I64(a, b)\n"),
        ),
        (
            graph("c = Add_I64(a, b)\n").replace('\n', "\r\n"),
            graph("c = Add_I64(a, b)\n"),
        ),
        (
            format!("\u{feff}{}", graph("c = Add_I64(a, b)\n")),
            graph("c = Add_I64(a, b)\n"),
        ),
        // Misspelt names, operations, keys: every place of a name.
        (
            graph("c = Ad_I64(a, Ad_I64(a, b))\n"),
            graph("c = Add_I64(a, Add_I64(a, b))\n"),
        ),
        (
            graph("long_name = Add_I64(a, b)\nc = Add_I64(logn_name, logn_name)\n"),
            graph("long_name = Add_I64(a, b)\nc = Add_I64(long_name, long_name)\n"),
        ),
        (
            graph("c = Add_I64(a, crtl=b & 1{0: d})\n"),
            graph("c = Add_I64(a, ctrl=b & 1{0: d})\n"),
        ),
        // What nothing uses.
        (
            graph("c = Add_I64(a, b)\nd = a b\n"),
            graph("c = Add_I64(a, b)\n"),
        ),
        (
            graph("c = Add_I64(a, b)\nd = Mul_I64(a, b)  # spare\n"),
            graph("c = Add_I64(a, b)\n  # spare\n"),
        ),
        (
            format!("Array: m 64 dma\n{}", graph("c = Add_I64(a, b)\n")),
            graph("c = Add_I64(a, b)\n"),
        ),
        // Forms of the specification.
        (
            "Input64 a[2]\nOut_0 = Add_I64(a_0, a_1)\nOutput64: Out\n".to_owned(),
            "Input64: a[2]\nOut_0 = Add_I64(a0, a1)\nOutput64: Out\n".to_owned(),
        ),
        (
            graph("// sums\nc = Add_I64(a, b)\n"),
            graph("# sums\nc = Add_I64(a, b)\n"),
        ),
    ] {
        let found = dfg(&wrong);
        if wrong.contains("Out_0") {
            assert!(
                found.contains("Input64: a[2]") && found.contains("Add_I64(a0, a1)"),
                "{found}"
            );
        } else if wrong.contains("spare") {
            assert!(!found.contains("Mul_I64"), "{found}");
        } else {
            assert_eq!(found, right, "{wrong}");
        }
    }
}

#[test]
fn forms_of_older_dialects_are_mended() {
    let list = "InputVec: in [0, 1]\nsum = Add64(in0, in1)\nOutput: sum\n";
    assert_eq!(dfg(list), list.replace("[0, 1]", "[2]"));
    // One slice whose bounds run backwards makes all slices of the file widths and indices: they change together.
    let slices = "Input64: a\nb = Add_I32x2(a:32:1 a:32:0, a)\nOutput64: b\n";
    let bits = slices
        .replace("a:32:1", "a:32:63")
        .replace("a:32:0", "a:0:31");
    assert_eq!(dfg(slices), bits);
    let array = "dma m 128\nInput64: a source=m\nb = Add_I64(a, 1)\nOutput64: b\n";
    assert_eq!(dfg(array), array.replace("dma m 128", "Array: m 128 dma"));
    let pragma = "#pragma repeat 4\nInput64: a\nb = Add_I64(a, 1)\n#pragma repeat 2\nOutput64: b\n";
    assert!(dfg(pragma).contains("#pragma repeat=2\nOutput64"));
    let twice = "Input: a\nS = Add64(a, 1)\nS = Add64(S, 2)\nOutput: S\n";
    assert_eq!(
        dfg(twice),
        "Input: a\nS_1x = Add64(a, 1)\nS = Add64(S_1x, 2)\nOutput: S\n"
    );
    let control = "Input64: a\nInput64: s\nb = Acc64(a, control=s & 1{1: r})\nOutput64: b\n";
    assert!(dfg(control).contains("ctrl=s"));
}

#[test]
fn what_has_no_one_mend_stays() {
    for text in [
        // Two operations are as near.
        graph("c = Bogus_I64(a, b)\n"),
        graph("c = Add_I64(nowhere, b)\n"),
        // The result may hold operands back.
        graph("c = Add_I64(a, b)\nd = Add_I64(a, ctrl=b & 1{0: b1})\n"),
        "not a graph (\n".to_owned(),
        String::new(),
    ] {
        assert_eq!(dfg(&text), text);
    }
}

#[test]
fn a_valid_graph_computes_the_same_after_all_fixes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/dsa");
    let kernels = std::fs::read_dir(folder)
        .expect("fixtures")
        .chain(std::fs::read_dir(format!("{folder}/kernels")).expect("fixtures"));
    let mut changed = 0;
    for path in kernels
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "dfg"))
    {
        let text = std::fs::read_to_string(&path).expect("a text");
        let (new, _) = fix("a.dfg", &text);
        changed += usize::from(new != text);
        let read = |text: &str| {
            let document = dsa::Document::read(text.as_bytes(), &chipless_model::Limits::default());
            let (ports, complete) = (document.graph.counts(), document.is_complete());
            (
                ports.input_ports,
                ports.output_ports,
                ports.instructions,
                complete,
            )
        };
        assert_eq!(read(&new), read(&text), "{}", path.display());
    }
    assert!(changed >= 2, "{changed}");
}

const VECTOR: &str = "    precision: 16\n    padded_length: 8\n    length_64b_words: 2\n";

/// A contract with an input `x` and outputs `y` and `z`.
fn contract() -> String {
    format!(
        "inputs:\n  x:\n    type: input\n    varname: x\n    length: 6\n{VECTOR}    core_id: 0\n    pc: 0\noutputs:\n  \
         y:\n    type: output\n    varname: y\n    length: 8\n{VECTOR}    mailbox_id: 0\n  z:\n    type: output\n    varname: z\n    length: 8\n{VECTOR}    \
         mailbox_id: 1\nsimple_sequences:\n  main:\n    type: simple_sequence\n    inputs: [x]\n    outputs: [y, z]\n"
    )
}

#[test]
fn contracts_are_mended() {
    let right = contract();
    let with = |from: &str, to: &str| right.replacen(from, to, 1);
    assert_eq!(
        fix("i.yaml", &right),
        (right.clone(), Vec::new()),
        "nothing is wrong with it"
    );
    for wrong in [
        with(
            "padded_length: 8\n    length_64b_words: 2",
            "padded_length: 6\n    length_64b_words: 2",
        ),
        with("padded_length: 8", "padded_length: 4"),
        with("length_64b_words: 2", "length_64b_words: 9"),
        with("    type: input\n", ""),
        with("    varname: x\n", "")
            .replace("    type: input\n", "    varname: x\n    type: input\n")
            .replace("    varname: x\n", ""),
        with("type: input", "type: output"),
        with("type: simple_sequence", "type: complex_sequence"),
        with("    length: 6", "    lenght: 6"),
        with("simple_sequences:", "simple_sequence:"),
        with("outputs: [y, z]", "outputs: [z, y]"),
        with("inputs: [x]", "inputs: [x, x]"),
        with("    mailbox_id: 0\n", "    mailbox_id: 0\n    pc: 3\n"),
        with("core_id", "core_idd"),
    ] {
        let (new, mends) = fix("i.yaml", &wrong);
        let same = |text: &str| {
            let tree = chipless_yaml::read(text, chipless_yaml::Budget::default()).expect("YAML");
            let sorted = format!("{:?}", tree.root.expect("a tree").value);
            let mut words: Vec<String> = sorted
                .split("Text")
                .map(|part| part.split(',').next().unwrap_or_default().to_owned())
                .collect();
            words.sort();
            words
        };
        assert!(!mends.is_empty(), "{wrong}");
        assert_eq!(same(&new), same(&right), "{wrong}\nbecame\n{new}");
    }
}

#[test]
fn remarks_and_the_rest_of_a_contract_stay() {
    let wrong = contract().replacen("padded_length: 8", "padded_length: 7 # to be checked", 1);
    let (new, mends) = fix("i.yaml", &wrong);
    assert_eq!(new, wrong.replace("padded_length: 7", "padded_length: 8"));
    assert_eq!(mends, ["Pad to 8 elements"]);
}

#[test]
fn the_flat_dialect_becomes_todays_form() {
    let flat = "x:\n  type: input\n  varname: x\n  length: 8\n  precision: 16\n  padded_length: 8\ny:\n  type: output\n  varname: y\n  length: 8\n  \
                precision: 16\n  padded_length: 8\nmain:\n  type: simple_sequence\n  inputs: [x]\n  outputs: [y]\n";
    let (new, _) = fix("flat.yaml", flat);
    assert!(
        new.starts_with("inputs:\n") && new.contains("simple_sequences:"),
        "{new}"
    );
}

#[test]
fn keys_of_workloads_and_machines_are_mended() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/device");
    let name = format!("{folder}/two_networks.yaml");
    let text = std::fs::read_to_string(&name).expect("the fixture");
    let wrong = text
        .replace("duration", "durtion")
        .replace("ddr.bandwidth=", "ddr.bandwdth=")
        .replacen("arrivals", "arivals", 1);
    let (new, mends) = fix(&name, &wrong);
    assert_eq!(new, text);
    assert_eq!(mends.len(), 3, "{mends:?}");
    let machine = chipless::target("dsa").expect("a target").machines()[0].1;
    let (new, _) = fix("my.toml", &machine.replacen("clock =", "clokc =", 1));
    assert_eq!(new, machine);
}

#[test]
fn what_is_no_text_is_left_alone() {
    let options = Options::default();
    for bytes in [&b"\xff\xfe"[..], b"Input64: a\0", b"\x7fELF"] {
        let fixed = chipless_lsp::fix("a.dfg", bytes, &options, &|_| false);
        assert_eq!(fixed.expect("options that fit"), None);
    }
}

#[test]
fn what_is_allowed_is_not_fixed() {
    let text = graph("c = Add_I64(a, b)\n");
    let text = text.trim_end();
    let fixed = chipless_lsp::fix("a.dfg", text.as_bytes(), &Options::default(), &|code| {
        code == "dfg-final-newline"
    });
    assert_eq!(fixed.expect("options that fit"), None);
}
