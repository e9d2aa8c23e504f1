//! Graphs as programs: what a run computes, and when.

#![allow(clippy::unwrap_used, reason = "tests")]

use chipless_dsa::evaluate::{Settings, Stream, evaluate};
use chipless_dsa::{Document, Given, Input, MACHINES, Machine, course, inputs, lower};
use chipless_model::{ElementType, Limits, Storage};
use chipless_sim::{Session, Stop};
use chipless_verify::verify;
use std::borrow::Cow;

fn kernels() -> Vec<(String, String)> {
    let folder = format!(
        "{}/../../../fixtures/dsa/kernels",
        env!("CARGO_MANIFEST_DIR")
    );
    let files = std::fs::read_dir(folder).unwrap();
    let mut kernels: Vec<(String, String)> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "dfg"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    kernels.sort();
    kernels
}

fn machine() -> Machine {
    Machine::from_toml(MACHINES[0].1).unwrap()
}

/// Streams for the ports of a graph, with numbers that depend on a seed.
fn streams<'g>(document: &'g Document<'_>, seed: u64, given: &'g [Given<'g>]) -> Vec<Input<'g>> {
    let mut random = |_: ElementType, array: usize, bytes: &mut [u8]| {
        let mut state = seed
            .wrapping_mul(0x9E37_79B9)
            .wrapping_add(array as u64 + 1);
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = (state >> 33) as u8 & 3;
        }
    };
    inputs(&document.graph, given, &mut random, &Limits::default()).unwrap()
}

/// The bytes of all outputs, flags behind the rows that they belong to.
type Outputs = Vec<(String, Vec<u8>)>;

/// Makes the program of a graph on some inputs and runs it on others.
fn run(document: &Document<'_>, made: &[Input<'_>], on: &[Input<'_>]) -> Result<Outputs, Stop> {
    let (limits, settings) = (Limits::default(), Settings::default());
    let outcome = course(&document.graph, made, settings, &limits);
    let program = lower(
        &document.graph,
        made,
        settings,
        &outcome,
        &machine(),
        None,
        &limits,
    );
    let program = program.unwrap();
    let verified = verify(&program).unwrap();
    let mut storage = Storage::new(&program.buffers, &limits).unwrap();
    for port in &program.interface.inputs {
        let id = document
            .graph
            .inputs()
            .find(|(_, node, _)| node.name == port.name)
            .unwrap()
            .0;
        let input = on.iter().find(|input| input.node == id).unwrap();
        storage.set(port.buffer, Cow::Owned(input.stream.bytes.to_vec()));
    }
    let mut session = Session::new(&verified, storage);
    session.run()?;
    let outputs = program.interface.outputs.iter();
    Ok(outputs
        .map(|port| {
            let bytes = session.storage().bytes(port.buffer).to_vec();
            (port.name.clone(), bytes)
        })
        .collect())
}

/// What the graph computes on these inputs, without a program.
fn computed(document: &Document<'_>, on: &[Input<'_>]) -> Outputs {
    let streams: Vec<Stream<'_>> = on.iter().map(|input| input.stream.clone()).collect();
    let limits = Limits::default();
    let found = evaluate(&document.graph, &streams, Settings::default(), &limits).unwrap();
    let mut outputs = Vec::new();
    for ((_, node, _), rows) in document.graph.outputs().zip(found.outputs) {
        outputs.push((node.name.clone(), rows.bytes));
        if let Some(valid) = rows.valid {
            outputs.push((format!("{}.valid", node.name), valid));
        }
    }
    outputs
}

#[test]
fn runs_give_what_graphs_compute() {
    let mut executed = 0;
    for (name, text) in kernels() {
        let document = Document::read(text.as_bytes(), &Limits::default());
        let on = streams(&document, 1, &[]);
        match run(&document, &on, &on) {
            Ok(outputs) => {
                assert_eq!(outputs, computed(&document, &on), "{name}");
                executed += 1;
            }
            Err(stop) => assert!(matches!(stop, Stop::Fault { .. }), "{name}: {stop:?}"),
        }
    }
    assert!(executed >= 12, "{executed}");
}

#[test]
fn a_run_computes_on_the_inputs_that_it_is_given() {
    for name in ["axpy", "dot", "row_sums", "halves", "deep"] {
        let (_, text) = kernels().into_iter().find(|(of, _)| of == name).unwrap();
        let document = Document::read(text.as_bytes(), &Limits::default());
        let (made, on) = (streams(&document, 1, &[]), streams(&document, 2, &[]));
        let expected = computed(&document, &on);
        assert_ne!(expected, computed(&document, &made), "{name}");
        assert_eq!(run(&document, &made, &on).unwrap(), expected, "{name}");
    }
}

#[test]
fn rows_that_other_inputs_bring_out_have_no_room() {
    let text = "Input: a\nInput: c\nx = Copy(a, ctrl=c{1: d})\nOutput: x\n";
    let document = Document::read(text.as_bytes(), &Limits::default());
    let array = |name: &str, elements: [u64; 4]| Given {
        name: name.to_owned(),
        element: ElementType::UInt64,
        shape: vec![4],
        bytes: Cow::Owned(elements.iter().flat_map(|e| e.to_le_bytes()).collect()),
    };
    let given = |control| [array("a", [1, 2, 3, 4]), array("c", control)];
    let (first, second, third) = (
        given([0, 1, 0, 1]),
        given([1, 0, 1, 0]),
        given([1, 0, 0, 0]),
    );
    let made = streams(&document, 0, &first);
    let rows = |elements: [u64; 2]| {
        let bytes = elements.iter().flat_map(|e| e.to_le_bytes()).collect();
        vec![("x".to_owned(), bytes)]
    };
    assert_eq!(run(&document, &made, &made).unwrap(), rows([1, 3]));
    let message = |on: &[Given<'_>]| {
        let on = streams(&document, 0, on);
        match run(&document, &made, &on) {
            Err(Stop::Fault { fault, .. }) => fault.message,
            other => panic!("{other:?}"),
        }
    };
    let expected =
        "0 bytes of output x come out; on the inputs that the program was made for it was 8 bytes";
    assert_eq!(message(&second), expected);
    assert_eq!(message(&third), expected);
}

#[test]
fn many_ports_are_moved_together() {
    use std::fmt::Write;
    let mut text = String::new();
    for port in 0..100 {
        writeln!(text, "Input: a{port}_").unwrap();
    }
    for port in 0..100 {
        writeln!(text, "b{port}_ = Add64(a{port}_, {port})\nOutput: b{port}_").unwrap();
    }
    let document = Document::read(text.as_bytes(), &Limits::default());
    let on = streams(&document, 3, &[]);
    assert_eq!(run(&document, &on, &on).unwrap(), computed(&document, &on));
}
