//! Sequences under both rule sets, findings with their places, the wire.

use crate::common::{fixture, text};
use chipless_spu::iospec::{Document, Femto, RuleSet, Session, Side, convert, lint, wire};
use proptest::prelude::*;

fn document(text: &str, rules: RuleSet) -> Document {
    Document::read(text, rules).unwrap_or_else(|f| panic!("{f:?}"))
}

fn vector(name: &str, side: &str) -> String {
    format!(
        "  {name}: {{type: {side}, varname: {name}, length: 8, precision: 16, padded_length: 8}}\n"
    )
}

/// A document of inputs, outputs, and the text of its sequences.
fn spec(inputs: &[&str], outputs: &[&str], sequences: &str) -> String {
    let of = |names: &[&str], side| names.iter().map(|n| vector(n, side)).collect::<String>();
    format!(
        "inputs:\n{}outputs:\n{}{sequences}",
        of(inputs, "input"),
        of(outputs, "output")
    )
}

fn simple(name: &str, inputs: &str, outputs: &str) -> String {
    format!("  {name}: {{type: simple_sequence, inputs: [{inputs}], outputs: [{outputs}]}}\n")
}

/// Runs steps like `B C`, `read`, `reset`; `!` for each that was refused, the outputs of each read.
fn drive(text: &str, rules: RuleSet, steps: &[&str]) -> Vec<String> {
    let document = document(text, rules);
    let mut session = Session::new(&document, rules);
    let one = |step: &&str| match *step {
        "read" => session
            .read()
            .map_or_else(|_| "!".to_owned(), |r| r.outputs.join(" ")),
        "reset" => {
            session.reset();
            String::new()
        }
        names => {
            let act: Vec<_> = names
                .split(' ')
                .map(|name| (name.to_owned(), None))
                .collect();
            session
                .write(&act)
                .map_or_else(|_| "!".to_owned(), |_| String::new())
        }
    };
    steps.iter().map(one).collect()
}

#[test]
fn the_text_is_strict_and_the_package_is_not() {
    let text = text("addition", "iospec.yaml");
    for (steps, spec, femtorun) in [
        (
            &["B", "C", "read"][..],
            ["", "", "A"].as_slice(),
            ["", "", "A"].as_slice(),
        ),
        (&["C", "B", "read"], &["!", "", ""], &["", "", "A"]),
        (&["C B", "read"], &["!", ""], &["", "A"]),
        (&["B", "B"], &["", "!"], &["", "!"]),
        (
            &["B", "C", "B", "read", "C", "read"],
            &["", "", "!", "A", "!", ""],
            &["", "", "", "A", "", "A"],
        ),
        // An error sticks in the package, and is undone under the text.
        (
            &["B", "B", "C", "read"],
            &["", "!", "", "A"],
            &["", "!", "!", ""],
        ),
        (
            &["B", "reset", "B C", "read"],
            &["", "", "", "A"],
            &["", "", "", "A"],
        ),
        (&["nope", "main_seq"], &["!", "!"], &["!", "!"]),
    ] {
        assert_eq!(drive(&text, RuleSet::Spec, steps), spec, "spec {steps:?}");
        assert_eq!(
            drive(&text, RuleSet::Femtorun41, steps),
            femtorun,
            "femtorun {steps:?}"
        );
    }
}

#[test]
fn latched_inputs_come_first_within_an_act_and_keep_their_values() {
    let text = text("latched", "iospec.yaml");
    for rules in RuleSet::ALL {
        assert_eq!(
            drive(
                &text,
                rules,
                &[
                    "B",
                    "read",
                    "B latchedC",
                    "read",
                    "latchedC",
                    "latchedC",
                    "B",
                    "read"
                ]
            )[7],
            "A"
        );
    }
}

#[test]
fn violations_say_whose_turn_it_is() {
    let document = document(&text("addition", "iospec.yaml"), RuleSet::Spec);
    let mut session = Session::new(&document, RuleSet::Spec);
    let write = |session: &mut Session<'_>, name: &str| session.write(&[(name.to_owned(), None)]);
    let early = write(&mut session, "C").expect_err("B first");
    assert_eq!(early.code(), Some("kSpuSequenceError"));
    assert_eq!(
        early.to_string(),
        "kSpuSequenceError: it is the turn of B in main_seq: expected B, came C"
    );
    assert_eq!(early.expected, ["write B"]);
    write(&mut session, "B")
        .and_then(|_| write(&mut session, "C"))
        .expect("in order");
    let unread = write(&mut session, "B").expect_err("A first");
    assert_eq!(unread.expected, ["read A"]);
    let (inputs, outputs) = session.next();
    assert!(inputs.is_empty() && outputs[0].key == "A");
}

#[test]
fn complex_sequences_count() {
    let sequence = "complex_sequences:\n  c: {type: complex_sequence, inputs: {B: 2, C: 1}, outputs: {A: 2}}\n";
    let text = spec(&["B", "C"], &["A"], sequence);
    let round = ["B", "B", "C"];
    let steps: Vec<&str> = round
        .into_iter()
        .chain(["read"])
        .chain(round)
        .chain(["read"])
        .collect();
    for rules in RuleSet::ALL {
        // The output comes after two firings.
        assert_eq!(
            drive(&text, rules, &steps),
            ["", "", "", "", "", "", "", "A"],
            "{rules}"
        );
    }
    assert_eq!(drive(&text, RuleSet::Spec, &["B", "C"]), ["", "!"]);
    assert_eq!(
        drive(&text, RuleSet::Femtorun41, &["B", "C", "B", "B", "B", "B"]),
        ["", "", "", "", "", "!"]
    );
}

#[test]
fn several_sequences_run_side_by_side_and_a_finding_says_that_firmware_does_not() {
    let sequences = format!(
        "simple_sequences:\n{}{}",
        simple("p", "P", "R"),
        simple("q", "Q", "S")
    );
    let text = spec(&["P", "Q"], &["R", "S"], &sequences);
    assert_eq!(
        drive(&text, RuleSet::Spec, &["Q", "P", "read"]),
        ["", "", "R S"]
    );
    let findings = lint(&document(&text, RuleSet::Spec), RuleSet::Spec);
    assert!(
        findings
            .iter()
            .any(|f| f.rule.code == "iospec-firmware-sequences" && !f.is_error()),
        "{findings:?}"
    );
}

#[test]
fn calls_by_sequence_id_and_by_message_meet_calls_by_name() {
    let document = document(&text("addition", "iospec.yaml"), RuleSet::Spec);
    let mut session = Session::new(&document, RuleSet::Spec).with_wire();
    let sent = session
        .write_sequence(0, &[vec![1; 60], vec![2; 60]])
        .expect("in order");
    let words: Vec<u64> = sent.messages.concat();
    assert_eq!((words[0], words[17]), (0, 12 << 32));
    assert!(session.write_sequence(1, &[]).is_err() && session.read_sequence(7).is_err());
    assert_eq!(session.read_sequence(0).expect("fired").outputs, ["A"]);
    // The same again, message by message.
    assert_eq!(
        session.write_words(&words).expect("in order").messages,
        sent.messages
    );
    assert!(session.read_mailbox(4).is_err());
    assert_eq!(session.read_mailbox(3).expect("fired").outputs, ["A"]);
}

#[test]
fn advice_does_not_contradict_itself() {
    let input = |more: &str| {
        format!(
            "  B: {{type: input, varname: B, length: 8, precision: 16, padded_length: 8{more}}}\n"
        )
    };
    let said = |inputs: &str, sequences: &str| -> Vec<String> {
        let text = format!(
            "inputs:\n{inputs}outputs:\n{}simple_sequences:\n{sequences}",
            vector("A", "output")
        );
        let findings = match Document::read(&text, RuleSet::Spec) {
            Ok(document) => lint(&document, RuleSet::Spec),
            Err(findings) => findings,
        };
        findings
            .iter()
            .map(|f| format!("{} {}", f.rule.code, f.message))
            .collect()
    };
    let found = |said: &[String], text: &str| said.iter().any(|said| said.contains(text));
    let uses = simple("main", "B", "A");
    let latched = said(
        &input(", comments: {latched: false}"),
        &simple("main", "", "A"),
    );
    assert!(found(
        &latched,
        "iospec-latched-hint expected latch: true for `B` (no sequence with outputs takes it), found latched: false"
    ));
    let text = said(&input(", comments: {latch: 'yes'}"), &uses);
    assert!(
        found(
            &text,
            "iospec-latched-hint expected true or false as the hint latch of `B`, found text \"yes\""
        ),
        "{text:?}"
    );
    let typo = said(
        &input(", core: 1, quantization: {scale: 1, zero: 0}"),
        &uses,
    );
    assert!(
        found(
            &typo,
            "iospec-field-unknown expected fields that the format knows, found `core` in `B`"
        ),
        "{typo:?}"
    );
    assert!(
        found(
            &typo,
            "iospec-field-unknown expected fields that the format knows, found `zero` in `B`"
        ),
        "{typo:?}"
    );
    let meant = said(&input(", quantisation: {scale: 0.5, zero_pt: 0}"), &uses);
    assert!(
        found(
            &meant,
            "iospec-field-misspelt expected fields that the format knows, found `quantisation` in `B`; did you mean \"quantization\"?"
        ),
        "{meant:?}"
    );
    assert!(
        !found(
            &said(&input(", comments: {anything: 1}"), &uses),
            "iospec-field-unknown"
        ),
        "comments are free"
    );
    let empty = said(&input("").replace("length: 8,", "length: 0,"), &uses);
    assert!(
        found(
            &empty,
            "iospec-empty-vector expected a length of at least 1 for `B`, found 0"
        ),
        "{empty:?}"
    );
    assert!(found(
        &said(&input("").replace("length: 8,", "length: -1,"), &uses),
        "expected an integer from 0 on as length"
    ));
    let named = said(&input(""), &(uses + &simple("B", "B", "")));
    assert!(
        found(
            &named,
            "iospec-cycle expected a name of its own for the sequence, found `B`, the input: the two form a circle"
        ),
        "{named:?}"
    );
}

#[test]
fn replies_are_decoded() {
    let document = document(&text("addition", "iospec.yaml"), RuleSet::Spec);
    let values: Vec<i64> = (-30..30).collect();
    let reply = wire::reply(&document.outputs[0], &values).expect("fits");
    assert_eq!(reply[0], 3 << 32 | 0x1f);
    let mut session = Session::new(&document, RuleSet::Spec);
    session
        .write(&[("B".to_owned(), None), ("C".to_owned(), None)])
        .expect("in order");
    assert_eq!(
        session.receive(&reply).expect("whole").values,
        [("A".to_owned(), values)]
    );
    for broken in [
        vec![],
        vec![9 << 32 | 0x1f],
        vec![3 << 32],
        reply[..5].to_vec(),
    ] {
        session.reset();
        session
            .write(&[("B".to_owned(), None), ("C".to_owned(), None)])
            .expect("in order");
        assert!(session.receive(&broken).is_err(), "{broken:?}");
    }
    assert!(wire::decode(&document, Side::Input, &[77 << 32]).is_err());
}

#[test]
fn findings_have_line_and_column() {
    let good = text("latched", "iospec.yaml");
    let code = |from: &str, to: &str| {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        match Document::read(&changed, RuleSet::Spec) {
            Ok(document) => lint(&document, RuleSet::Spec),
            Err(findings) => findings,
        }
    };
    for (from, to, wanted, line) in [
        (
            "length_64b_words: 16",
            "length_64b_words: 15",
            "iospec-words",
            7,
        ),
        (
            "padded_length: 64",
            "padded_length: 61",
            "iospec-padding",
            6,
        ),
        ("precision: 16", "precision: 12", "iospec-precision", 8),
        ("varname: \"B\"", "varname: \"b\"", "iospec-key-varname", 4),
        ("varname: \"B\"", "varname: on", "iospec-field-type", 4),
        ("core_id: 0", "core_id: 4", "iospec-core", 10),
        ("pc: 0", "pc: 8192", "iospec-pc", 11),
        ("pc: 12", "pc: 0", "iospec-pc-clash", 21),
        (
            "\"scale\": 0.000244140625",
            "\"scale\": 0.0003",
            "iospec-scale",
            9,
        ),
        ("latch\": true", "latch\": false", "iospec-latched-hint", 22),
        ("length: 60", "length: 60.0", "iospec-field-type", 5),
        (
            "length: 60",
            "length: 99999999999999999999999999999999999999999",
            "iospec-yaml",
            5,
        ),
        (
            "    length: 60\n",
            "    length: 60\n    length: 61\n",
            "iospec-duplicate-key",
            6,
        ),
        ("[\"B\"]", "[\"b\"]", "iospec-undefined-name", 39),
        ("inputs:", "imputs:", "iospec-section", 1),
        ("inputs:", "---\na: 1\n---\ninputs:", "iospec-yaml", 3),
    ] {
        let findings = code(from, to);
        let found = findings
            .iter()
            .find(|f| f.rule.code == wanted)
            .unwrap_or_else(|| panic!("{wanted}: {findings:?}"));
        assert_eq!(
            found.place.position.map(|(line, _)| line),
            Some(line),
            "{wanted}: {}",
            found.place
        );
    }
}

#[test]
fn what_the_package_accepts_stays_a_warning_under_its_rules() {
    let text = text("addition", "iospec.yaml");
    for (from, to) in [
        ("\"B\"]", "\"B\", \"Z\"]"),
        ("type: \"input\"", "type: \"banana\""),
        ("core_id: 0", "core_id: x"),
        ("inputs: [\"B\", \"C\"]", "inputs: B"),
    ] {
        let changed = text.replacen(from, to, 1).replacen(
            "[\"B\", \"C\"]",
            if from == "\"B\"]" {
                "[\"B\", \"C\", \"Z\"]"
            } else {
                "[\"B\", \"C\"]"
            },
            1,
        );
        assert_ne!(changed, text);
        let package = Document::read(&changed, RuleSet::Femtorun41)
            .unwrap_or_else(|f| panic!("{from}: {f:?}"));
        let findings = lint(&package, RuleSet::Femtorun41);
        assert!(
            !findings.is_empty() && !findings.iter().any(chipless_model::Finding::is_error),
            "{from}: {findings:?}"
        );
        let strict =
            Document::read(&changed, RuleSet::Spec).map_or_else(|f| f, |d| lint(&d, RuleSet::Spec));
        assert!(
            strict.iter().any(chipless_model::Finding::is_error),
            "{from}"
        );
    }
}

#[test]
fn the_flat_dialect_is_recognised_and_converted() {
    let flat = "B: {type: input, varname: B, length: 4, precision: 16, padded_length: 4}\n\
                s: {type: simple_sequence, inputs: [B], outputs: [A]}\n\
                A: {type: output, varname: A, length: 4, precision: 16, padded_length: 4, note: kept}\n";
    let refused = Document::read(flat, RuleSet::Spec).expect_err("flat");
    assert!(
        refused[0].rule.code == "iospec-flat"
            && refused[0].rule.remedy.contains("chipless convert")
    );
    let written = convert(flat, RuleSet::Spec).expect("sound").write();
    assert!(written.contains("note: kept"));
    assert_eq!(drive(&written, RuleSet::Spec, &["B", "read"]), ["", "A"]);
}

#[test]
fn anchors_are_read_and_bombs_are_not() {
    let shared = "inputs: {}\noutputs: {}\nsimple_sequences:\n  a: &one {type: simple_sequence, inputs: [], outputs: []}\n  b: *one\n";
    assert_eq!(document(shared, RuleSet::Spec).sequences.len(), 2);
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{inner}]\n");
    }
    let findings = Document::read(&bomb, RuleSet::Spec).expect_err("too much");
    assert!(
        findings[0].message.contains("aliases") && findings[0].place.position.is_some(),
        "{findings:?}"
    );
    for deep in [
        "[".repeat(100_000),
        "- ".repeat(100_000),
        "{a: ".repeat(100_000),
    ] {
        assert!(Document::read(&deep, RuleSet::Spec).is_err());
    }
}

proptest! {
    /// Whatever is packed comes out, padded with zeros.
    #[test]
    fn packing_is_undone_by_unpacking(values in prop::collection::vec(-128i64..128, 0..40), wide in any::<bool>()) {
        let precision = if wide { 16 } else { 8 };
        let padded = values.len().div_ceil(8) * 8;
        let words = wire::pack(&values, precision, padded as i64).expect("fits");
        let mut back = wire::unpack(&words, precision).expect("precision");
        prop_assert_eq!(back.len(), padded);
        prop_assert!(back.split_off(values.len()).iter().all(|v| *v == 0));
        prop_assert_eq!(back, values);
    }

    /// A trace that the strict rules accept is accepted by the package, with the same outputs as a set.
    #[test]
    fn what_the_text_allows_the_package_allows(
        sequences in prop::collection::vec((prop::collection::btree_set(0usize..4, 1..4), any::<bool>()), 1..4),
        writes in prop::collection::vec(0usize..5, 0..40),
    ) {
        let names = ["P", "Q", "R", "S"];
        let outputs = ["W", "X", "Y", "Z"];
        let mut body = "simple_sequences:\n".to_owned();
        for (number, (inputs, gives)) in sequences.iter().enumerate() {
            let takes: Vec<&str> = inputs.iter().map(|i| names[*i]).collect();
            body += &simple(&format!("s{number}"), &takes.join(", "), if *gives { outputs[number] } else { "" });
        }
        let used: Vec<&str> = sequences.iter().enumerate().filter(|(_, s)| s.1).map(|(n, _)| outputs[n]).collect();
        let text = spec(&names, &used, &body);
        let text = if used.is_empty() { text.replace("outputs:\nsimple", "outputs: {}\nsimple") } else { text };
        let (strict, lenient) = (document(&text, RuleSet::Spec), document(&text, RuleSet::Femtorun41));
        let (mut strict, mut lenient) = (Session::new(&strict, RuleSet::Spec), Session::new(&lenient, RuleSet::Femtorun41));
        for write in writes {
            if write == 4 {
                let (mut a, mut b) = (strict.read().expect("never fails").outputs, lenient.read().expect("sound").outputs);
                a.sort();
                b.sort();
                prop_assert_eq!(a, b);
            } else {
                let act = [(names[write].to_owned(), None)];
                // What the strict rules refuse changes nothing there, so the other session does not see it.
                if strict.write(&act).is_ok() {
                    prop_assert!(lenient.write(&act).is_ok());
                }
            }
        }
    }
}

#[test]
fn a_container_gives_its_contract_and_its_banks() {
    let femto = Femto::read(&fixture("container", "program.femto")).expect("a container");
    assert_eq!(
        (
            &*femto.model,
            femto.part,
            femto.key,
            femto.mhz,
            femto.pages.len()
        ),
        ("latched", 1, 32, 150, 1)
    );
    assert_eq!(femto.sequences, [(vec![0], vec![2]), (vec![1], vec![])]);
    let banks: Vec<(u8, u8)> = femto.cores[0]
        .banks
        .iter()
        .map(|b| (b.uid, b.state))
        .collect();
    assert_eq!(
        (femto.cores[0].status, banks),
        (1, vec![(0x00, 4), (0x20, 4), (0x30, 4)])
    );
    let text = chipless_spu::yaml::write(&femto.iospec());
    assert_eq!(
        drive(&text, RuleSet::Spec, &["1", "0", "0", "read", "0", "read"]),
        ["", "", "!", "2", "", "2"]
    );
}

#[test]
fn yaml_is_that_of_the_package() {
    let with = |field: &str| {
        spec(
            &["B"],
            &["A"],
            &format!("simple_sequences:\n{}", simple("s", "B", "A")),
        )
        .replacen("varname: B", field, 1)
    };
    for (field, loads) in [
        ("varname: 2020-01-01", false),
        ("varname: 2020-1-1", true),
        ("varname: 2020-01-41", false),
        ("varname: 1:30.5", false),
        ("varname: =", false),
        ("varname: <<", false),
        ("varname: \"<<\"", true),
        ("varname: !!binary aGk=", false),
        ("varname: B, note: !!binary aGk=", true),
        ("varname: B, =: 1", true),
        ("varname: !!str on", true),
        ("varname: B, note: 0x_", false),
        ("varname: B, note: 2001-12-14t21:59:43.10-05:00", true),
    ] {
        let read = Document::read(&with(field), RuleSet::Femtorun41);
        assert_eq!(read.is_ok(), loads, "{field}: {read:?}");
        if let Ok(document) = read {
            assert_eq!(
                Document::read(&document.write(), RuleSet::Femtorun41)
                    .expect("printed")
                    .root,
                document.root,
                "{field}"
            );
        }
    }
}

#[test]
fn merged_fields_give_way_to_own_ones() {
    let text = "
inputs:
  B: &b {type: input, varname: B, length: 8, precision: 16, padded_length: 8}
  C: {varname: C, <<: *b, length: 4}
  D: {<<: [{varname: D, length: 2}, *b]}
outputs:
  A: {<<: *b, type: output, varname: A}
simple_sequences:
  s: {type: simple_sequence, inputs: [B, C, D], outputs: [A]}
";
    let document = document(text, RuleSet::Spec);
    let vectors: Vec<(&str, i64)> = document
        .vectors()
        .map(|v| (&*v.varname, v.length))
        .collect();
    assert_eq!(vectors, [("B", 8), ("C", 4), ("D", 2), ("A", 8)]);
    assert!(document.findings.is_empty(), "{:?}", document.findings);
}

#[test]
fn in_the_package_an_output_that_nothing_produces_may_be_sent() {
    // B stands on both sides: the output takes the place of the input, and the sequence takes it.
    let both = spec(
        &["B"],
        &["B", "A"],
        &format!("simple_sequences:\n{}", simple("s", "B", "A")),
    );
    assert_eq!(
        drive(&both, RuleSet::Femtorun41, &["B", "B", "reset", "B"]),
        ["", "!", "", ""]
    );
    let produced = spec(
        &["C"],
        &["A"],
        &format!("simple_sequences:\n{}", simple("s", "C", "A")),
    );
    assert_eq!(
        drive(&produced, RuleSet::Femtorun41, &["A", "C", "read"]),
        ["!", "", "A"]
    );
}

#[test]
fn the_package_looks_at_no_count_after_one_above_one() {
    let counted = |first: i32, second: &str| {
        let sequences = format!(
            "complex_sequences:\n  s: {{type: complex_sequence, inputs: {{B: {first}, C: {second}}}, outputs: {{A: 1}}}}\n"
        );
        spec(&["B", "C"], &["A"], &sequences)
    };
    assert!(Document::read(&counted(1, "often"), RuleSet::Femtorun41).is_err());
    assert!(Document::read(&counted(2, "often"), RuleSet::Spec).is_err());
    assert_eq!(
        drive(&counted(2, "often"), RuleSet::Femtorun41, &["B", "C"]),
        ["!", "!"]
    );
    let nameless = spec(
        &["B"],
        &["A"],
        "simple_sequences:\n  null: {type: simple_sequence, inputs: [B], outputs: [A]}\n",
    );
    assert!(Document::read(&nameless, RuleSet::Femtorun41).is_err());
}
