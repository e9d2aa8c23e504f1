//! Fixtures through the public door: contracts are kept, and every number is the one that an independent evaluation gives.

use crate::common::{FIXTURES, fixture, text};
use chipless_model::{Limits, Severity, Storage};
use chipless_spu::fqir::{Lowered, MACHINE, Machine, Plan, Runner, lower};
use chipless_spu::iospec::{Document, RuleSet, Session, dequantize, lint, quantize};
use serde_json::Value;

/// The program of a fixture, from its plan and from the graph that torch saved.
fn with_lowered(name: &str, then: impl Fn(&Lowered<'_>)) {
    let limits = Limits::default();
    let machine = Machine::parse(MACHINE).expect("sound");
    let (plan, graph) = (fixture(name, "plan.json"), fixture(name, "model.pt"));
    for plan in [
        Plan::read(&plan, &limits),
        Plan::read_saved(&graph, &limits),
    ] {
        let plan = plan.unwrap_or_else(|e| panic!("{name}: {e}"));
        then(&lower(&plan, &machine, &limits).unwrap_or_else(|e| panic!("{name}: {e}")));
    }
}

fn steps(name: &str) -> Vec<Value> {
    let steps: Value = serde_json::from_slice(&fixture(name, "steps.json")).expect("JSON");
    steps["steps"].as_array().expect("steps").clone()
}

fn vectors(object: &Value) -> Vec<(String, Vec<i64>)> {
    let numbers = |v: &Value| {
        v.as_array()
            .expect("list")
            .iter()
            .map(|n| n.as_i64().expect("integer"))
            .collect()
    };
    object
        .as_object()
        .expect("object")
        .iter()
        .map(|(name, v)| (name.clone(), numbers(v)))
        .collect()
}

#[test]
fn a_session_gives_the_numbers_of_every_step() {
    for name in FIXTURES {
        for rules in RuleSet::ALL {
            let document = Document::read(&text(name, "iospec.yaml"), rules)
                .unwrap_or_else(|f| panic!("{name}: {f:?}"));
            let findings = lint(&document, rules);
            assert!(
                findings.iter().all(|f| f.rule.severity == Severity::Note),
                "{name}: {findings:?}"
            );
            with_lowered(name, |lowered| {
                let runner = Runner::new(lowered, &Limits::default()).expect("fits");
                let mut session = Session::new(&document, rules)
                    .with_program(runner)
                    .expect("matches")
                    .with_wire();
                // Twice: a reset brings the state back.
                for round in 0..2 {
                    for (number, step) in steps(name).iter().enumerate() {
                        let act: Vec<_> = vectors(&step["inputs"])
                            .into_iter()
                            .map(|(name, values)| (name, Some(values)))
                            .collect();
                        let sent = session
                            .write(&act)
                            .unwrap_or_else(|v| panic!("{name}, step {number}: {v}"));
                        assert_eq!(sent.messages.len(), act.len());
                        let reading = session.read().expect("in order");
                        let mut values = reading.values;
                        values.sort();
                        assert_eq!(
                            values,
                            vectors(&step["outputs"]),
                            "{name}, round {round}, step {number}"
                        );
                    }
                    session.reset();
                }
            });
        }
    }
}

#[test]
fn the_engine_gives_the_numbers_of_the_first_step_in_a_verified_program() {
    for name in FIXTURES {
        with_lowered(name, |lowered| {
            let program = &lowered.program;
            let verified =
                chipless_verify::verify(program).unwrap_or_else(|f| panic!("{name}: {f:?}"));
            assert!(
                verified
                    .warnings()
                    .iter()
                    .all(|f| f.rule.severity != Severity::Error),
                "{name}"
            );
            let step = &steps(name)[0];
            let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("fits");
            let given = vectors(&step["inputs"]);
            for port in &program.interface.inputs {
                if let Some((_, values)) = given.iter().find(|(name, _)| *name == port.name) {
                    let bytes = values
                        .iter()
                        .flat_map(|v| v.to_le_bytes()[..port.element.bits() as usize / 8].to_vec())
                        .collect::<Vec<u8>>();
                    storage.set(port.buffer, bytes.into());
                }
            }
            let outcome = chipless_sim::run(
                &chipless_sim::Verified::assume(program),
                &mut chipless_sim::Functional::new(&mut storage),
            );
            outcome
                .end
                .unwrap_or_else(|stop| panic!("{name}: {stop:?}"));
            for (output, values) in vectors(&step["outputs"]) {
                let port = program
                    .interface
                    .outputs
                    .iter()
                    .find(|p| p.name == output)
                    .expect("known");
                let bytes = storage.bytes(port.buffer);
                let size = (port.element.bits() / 8) as usize;
                let found: Vec<i64> = bytes
                    .chunks(size)
                    .map(|b| {
                        b.iter()
                            .rev()
                            .fold(i64::from(b[size - 1] as i8) >> 7, |n, byte| {
                                n << 8 | i64::from(*byte)
                            })
                    })
                    .collect();
                assert_eq!(found, values, "{name}: {output}");
            }
        });
    }
}

#[test]
fn written_documents_read_the_same() {
    for name in FIXTURES {
        let document = Document::read(&text(name, "iospec.yaml"), RuleSet::Spec).expect("sound");
        let again = Document::read(&document.write(), RuleSet::Spec).expect("sound");
        assert_eq!(document.root, again.root, "{name}");
    }
}

#[test]
fn a_million_steps_keep_to_their_memory() {
    // The state of a runner is its storage: as many bytes after many steps as at the start, and steps do not depend on their number.
    with_lowered("recurrent", |lowered| {
        let bytes: u64 = lowered.program.buffers.iter().map(|b| b.size).sum();
        assert!(bytes < 1 << 20, "{bytes}");
        let mut runner = Runner::new(lowered, &Limits::default()).expect("fits");
        let mut values = Vec::new();
        for step in 0..1000 {
            runner.set_input(0, &[step; 32]);
            runner.step().expect("runs");
            runner.output(0, &mut values);
        }
        assert_eq!(values.len(), 64);
    });
}

#[test]
fn quantising_rounds_down_and_clips() {
    let document = Document::read(&text("dense", "iospec.yaml"), RuleSet::Spec).expect("sound");
    let vector = &document.inputs[0];
    assert_eq!(
        quantize(vector, &[1.0, -1.0, 0.000_3, -0.000_1, 100.0, -100.0]).expect("fits"),
        [4096, -4096, 1, -1, 32767, -32768]
    );
    assert_eq!(
        dequantize(vector, [4096, -1]).expect("scale"),
        [1.0, -1.0 / 4096.0]
    );
    assert!(quantize(vector, &[f64::NAN]).is_err());
}
