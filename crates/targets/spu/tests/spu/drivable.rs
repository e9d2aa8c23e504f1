//! Proofs that a contract can be driven, against a search by calls of sessions.

use chipless_spu::iospec::{Call, Document, Event, RuleSet, Session, Verdict, drivable};

fn document(sequences: &str, rules: RuleSet) -> Document {
    let vector = |name: &str, side: &str| {
        format!(
            "  {name}: {{type: {side}, varname: {name}, length: 1, precision: 16, padded_length: null}}\n"
        )
    };
    let inputs: String = ["a", "b", "c"].iter().map(|n| vector(n, "input")).collect();
    let outputs: String = ["x", "y"].iter().map(|n| vector(n, "output")).collect();
    let text = format!("inputs:\n{inputs}outputs:\n{outputs}{sequences}");
    Document::read(&text, rules).unwrap_or_else(|f| panic!("{f:?}: {text}"))
}

const SOUND: &str = "simple_sequences:\n  s: {type: simple_sequence, inputs: [a, b], outputs: [x]}\n  t: {type: simple_sequence, inputs: [c], outputs: [y]}\n";

#[test]
fn sound_contracts_are_proved() {
    for rules in RuleSet::ALL {
        assert_eq!(drivable(&document(SOUND, rules), rules), Verdict::Drivable);
    }
}

#[test]
fn many_independent_sequences_are_no_product_of_states() {
    let vectors = |side: &str, stem: &str| {
        (0..500).map(|n| format!("  {stem}{n}: {{type: {side}, varname: {stem}{n}, length: 1, precision: 16, padded_length: null}}\n")).collect::<String>()
    };
    let sequences: String = (0..500)
        .map(|n| format!("  s{n}: {{type: simple_sequence, inputs: [i{n}], outputs: [o{n}]}}\n"))
        .collect();
    let text = format!(
        "inputs:\n{}outputs:\n{}simple_sequences:\n{sequences}",
        vectors("input", "i"),
        vectors("output", "o")
    );
    for rules in RuleSet::ALL {
        let document = Document::read(&text, rules).expect("sound");
        assert_eq!(drivable(&document, rules), Verdict::Drivable);
    }
}

#[test]
fn an_output_in_no_sequence_cannot_be_read() {
    let text = "simple_sequences:\n  s: {type: simple_sequence, inputs: [a, b, c], outputs: [x]}\n";
    let stuck = Verdict::Stuck {
        calls: Vec::new(),
        cannot: Event::Output("y".to_owned()),
    };
    assert_eq!(
        drivable(&document(text, RuleSet::Spec), RuleSet::Spec),
        stuck
    );
    // The package fails on reading, whatever is ready.
    let verdict = drivable(&document(text, RuleSet::Femtorun41), RuleSet::Femtorun41);
    assert!(
        matches!(verdict, Verdict::Stuck { calls, cannot: Event::Output(_) } if calls.is_empty())
    );
}

#[test]
fn a_shared_input_in_two_turns_leads_to_a_dead_end_by_a_shortest_way() {
    // a must come first in s and second in t: neither can begin.
    let text = "simple_sequences:\n  s: {type: simple_sequence, inputs: [a, b], outputs: [x]}\n  t: {type: simple_sequence, inputs: [c, a], outputs: [y]}\n";
    let document = document(text, RuleSet::Spec);
    let Verdict::Stuck { calls, cannot } = drivable(&document, RuleSet::Spec) else {
        // Each firing of s takes one of t along, and the other way round: that can go on for ever.
        assert_eq!(drivable(&document, RuleSet::Spec), Verdict::Drivable);
        return;
    };
    let mut session = Session::new(&document, RuleSet::Spec);
    for call in &calls {
        match call {
            Call::Write(name) => drop(
                session
                    .write(&[(name.clone(), None)])
                    .expect("a legal call"),
            ),
            Call::Read => drop(session.read().expect("a legal call")),
        }
    }
    let (inputs, outputs) = session.next();
    assert!(
        !inputs
            .iter()
            .any(|v| matches!(&cannot, Event::Input(name) if v.varname == *name))
    );
    assert!(
        !outputs
            .iter()
            .any(|v| matches!(&cannot, Event::Output(name) if v.varname == *name))
    );
}

#[test]
fn counts_that_never_meet_are_stuck() {
    // a twice for s and once for t: after a second a, t has one too many.
    let text = "complex_sequences:\n  s: {type: complex_sequence, inputs: {a: 2, b: 1}, outputs: {x: 1}}\n  t: {type: complex_sequence, inputs: {a: 1, c: 1}, outputs: {y: 1}}\n";
    let rules = RuleSet::Femtorun41;
    let document = document(text, rules);
    let verdict = drivable(&document, rules);
    let finding = verdict.finding(&document, rules);
    match verdict {
        Verdict::Drivable => assert!(finding.is_none()),
        Verdict::Stuck { .. } => assert!(finding.is_some_and(|f| !f.is_error())),
        Verdict::Unknown(reason) => panic!("{reason}"),
    }
}
