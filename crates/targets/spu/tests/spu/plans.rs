//! One fault at a time in a good plan, and what must be said about it.

use crate::common::fixture;
use chipless_model::{Finding, Limits};
use chipless_spu::fqir::{MACHINE, Machine, Plan, info, lower};
use serde_json::{Value, json};

/// What is said about a plan on reading and lowering it.
fn said(plan: &Value) -> Vec<Finding> {
    let text = plan.to_string();
    let plan = match Plan::read(text.as_bytes(), &Limits::default()) {
        Ok(plan) => plan,
        Err(finding) => return vec![*finding],
    };
    let lowered = lower(
        &plan,
        &Machine::parse(MACHINE).expect("sound"),
        &Limits::default(),
    );
    plan.findings
        .iter()
        .cloned()
        .chain(lowered.err().map(|finding| *finding))
        .collect()
}

fn step(plan: &mut Value) -> &mut Value {
    &mut plan["subgraphs"]["ARITH"]
}

/// A change of a good plan, and code, place and words of the finding that it must bring.
type Fault = (&'static str, &'static str, &'static str, fn(&mut Value));

const FAULTS: &[Fault] = &[
    (
        "fqir-no-outputs",
        "/subgraphs/ARITH/outputs",
        "found none",
        |p| drop(step(p).as_object_mut().and_then(|o| o.remove("outputs"))),
    ),
    (
        "fqir-produced-twice",
        "/subgraphs/ARITH/nodes/",
        "expected one node that gives",
        |p| {
            let nodes = step(p)["nodes"].as_array_mut().expect("a list");
            nodes.push(nodes[0].clone());
        },
    ),
    (
        "fqir-version-missing",
        "",
        "expected the version of the plan",
        |p| drop(p.as_object_mut().and_then(|o| o.remove("version"))),
    ),
    (
        "fqir-version",
        "/version",
        "expected version 1, found 2",
        |p| p["version"] = json!(2),
    ),
    (
        "fqir-operation",
        "/subgraphs/ARITH/nodes/0",
        "(op_name) or a subgraph, found neither",
        |p| {
            drop(
                step(p)["nodes"][0]
                    .as_object_mut()
                    .and_then(|o| o.remove("op_name")),
            );
        },
    ),
];

#[test]
fn good_plans_are_clean_and_every_fault_is_found() {
    let good: Value = serde_json::from_slice(&fixture("dense", "plan.json")).expect("JSON");
    assert_eq!(said(&good), []);
    for (code, part, words, change) in FAULTS {
        let mut broken = good.clone();
        change(&mut broken);
        let found = said(&broken);
        let hit = found.iter().any(|f| {
            f.rule.code == *code && f.place.part.starts_with(part) && f.message.contains(words)
        });
        assert!(hit, "expected {code} at {part}, found {found:?}");
    }
}

#[test]
fn info_names_types_as_arrays_have_them() {
    let bytes = fixture("dense", "plan.json");
    let plan = Plan::read(&bytes, &Limits::default()).expect("a plan");
    let types: Vec<String> = info(&plan)
        .inputs
        .into_iter()
        .map(|input| input.dtype)
        .collect();
    assert_eq!(types, ["int16"]);
}
