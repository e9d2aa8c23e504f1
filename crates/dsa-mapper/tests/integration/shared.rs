//! Elements shared in time: the smallest interval, proofs of it, schedules that the judge and a run cycle by cycle agree with.

#![allow(clippy::unwrap_used, reason = "tests")]

use chipless_dsa::Document;
use chipless_dsa::adg::Adg;
use chipless_dsa::adg::edit::{Change, apply};
use chipless_dsa::adg::mesh::{Shape, mesh};
use chipless_dsa::graph::Graph;
use chipless_dsa_mapper::judge::judge;
use chipless_dsa_mapper::{self as mapper, Options, Outcome, cycles};
use chipless_model::Limits;
use std::fmt::Write;
use std::time::Duration;

fn graph(text: &str) -> Graph {
    let document = Document::read(text.as_bytes(), &Limits::default());
    assert!(document.is_complete(), "{:?}", document.findings);
    document.graph
}

/// A mesh of 3 × 3 elements, of which these hold 16 instructions each.
fn fabric(shared: &[u32]) -> Adg {
    let names = ["Add64", "Mul64", "Xor", "FMul64", "FDiv64"];
    let shape = Shape {
        columns: 3,
        rows: 3,
        operations: names.map(str::to_owned).to_vec(),
        delay_depth: 4,
        inputs: 3,
        outputs: 3,
        stated: [0, 0],
        lanes: 2,
        slots: 1,
    };
    let mut file = mesh(&shape).unwrap().to_json();
    let changes: Vec<Change> = shared
        .iter()
        .map(|number| {
            let element = format!("ProcessingElement.{number}");
            Change::Set(element, "instSlotSize".to_owned(), "16".to_owned())
        })
        .collect();
    apply(&mut file, &changes).unwrap();
    Adg::read(file.to_string().as_bytes(), &Limits::default())
        .unwrap()
        .0
}

fn chain(name: &str, count: usize, source: &str) -> String {
    let mut text = String::new();
    for index in 0..count {
        let operand = if index == 0 {
            source.to_owned()
        } else {
            format!("{name}{}", index - 1)
        };
        let operation = ["Add64", "Xor", "FMul64"][index % 3];
        writeln!(
            text,
            "{name}{index} = {operation}({operand}, {})",
            index + 3
        )
        .unwrap();
    }
    text
}

/// Maps, and holds everything that is said of the mapping against the judge and against a run.
fn mapped(text: &str, adg: &Adg) -> (Graph, Outcome) {
    let graph = graph(text);
    let options = Options {
        time_limit: Duration::from_mins(1),
        ..Options::default()
    };
    let outcome = mapper::map(&graph, adg, &options, &mut |_| {});
    let mapping = outcome
        .mapping
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", outcome.reason));
    let verdict = judge(&graph, adg, mapping);
    assert_eq!(verdict.faults, Vec::<String>::new());
    assert_eq!(
        (
            verdict.latency,
            verdict.mismatch,
            verdict.initiation_interval
        ),
        (
            outcome.latency,
            outcome.mismatch,
            outcome.initiation_interval
        )
    );
    let shown = cycles::run(&graph, adg, mapping, &verdict, 64).unwrap();
    assert_eq!(shown.latency, u64::from(outcome.latency), "{text}");
    assert!(
        (shown.interval - f64::from(outcome.initiation_interval)).abs() < 0.01,
        "{text}: {shown:?}"
    );
    (graph, outcome)
}

#[test]
fn a_chain_on_one_element_takes_a_cycle_for_each_instruction() {
    for count in 2..10 {
        let text = format!(
            "#pragma group temporal\nInput: a\n{}p = t{}\nOutput: p\n",
            chain("t", count, "a"),
            count - 1
        );
        let (_, outcome) = mapped(&text, &fabric(&[4]));
        assert_eq!(outcome.initiation_interval as usize, count);
        assert!(outcome.is_interval_proved());
    }
}

#[test]
fn a_result_that_comes_back_through_a_register_holds_the_next_row() {
    let text = "Input: a\n#pragma $Reg0 d\nd = FDiv64(a, $Reg0)\np = d\nOutput: p\n";
    let (_, outcome) = mapped(text, &fabric(&[]));
    assert_eq!(outcome.initiation_interval, 12);
    assert!(outcome.is_interval_proved());
}

#[test]
fn two_chains_take_two_elements_beside_a_dedicated_group() {
    let text = format!(
        "Input: c\n{}r = d1\nOutput: r\n----\n#pragma group temporal\nInput: a\nInput: b\n{}{}p = t4\nOutput: p\nq = u3\nOutput: q\n",
        chain("d", 2, "c"),
        chain("t", 5, "a"),
        chain("u", 4, "b"),
    );
    let (_, outcome) = mapped(&text, &fabric(&[0, 8]));
    assert_eq!(
        (outcome.initiation_interval, outcome.interval_bound),
        (5, 5)
    );
}

#[test]
fn two_instructions_of_one_element_never_start_in_one_cycle() {
    let text = format!(
        "#pragma group temporal\nInput: a\n{}p = t3\nOutput: p\n",
        chain("t", 4, "a")
    );
    let adg = fabric(&[4]);
    let (graph, outcome) = mapped(&text, &adg);
    let mut mapping = outcome.mapping.unwrap();
    let instructions: Vec<_> = graph.instructions().map(|(id, ..)| id).collect();
    mapping.starts[instructions[1]] = mapping.starts[instructions[0]];
    assert!(!judge(&graph, &adg, &mapping).is_legal());
}

#[test]
fn what_no_element_can_hold_is_refused_with_a_proof() {
    let text = format!(
        "#pragma group temporal\nInput: a\n{}p = t1\nOutput: p\n",
        chain("t", 2, "a")
    );
    let outcome = mapper::map(
        &graph(&text),
        &fabric(&[]),
        &Options::default(),
        &mut |_| {},
    );
    assert!(
        outcome.mapping.is_none() && outcome.proved,
        "{:?}",
        outcome.reason
    );
}

#[test]
fn a_mapping_is_the_same_when_it_is_written_and_read() {
    let text = format!(
        "#pragma group temporal\nInput: a\n{}p = t5\nOutput: p\n",
        chain("t", 6, "a")
    );
    let adg = fabric(&[4]);
    let (graph, outcome) = mapped(&text, &adg);
    let mapping = outcome.mapping.unwrap();
    let file = mapper::write(&mapping, &graph, &adg, &[]).to_string();
    let again = mapper::read(file.as_bytes(), &graph, &adg, &Limits::default()).unwrap();
    assert_eq!(
        (again.starts, again.interval),
        (mapping.starts, mapping.interval)
    );
}
