//! Architecture graphs: reading their forms, judging them, refusing what is none.

use chipless_dsa::adg::{self, Adg, Form};
use chipless_model::Limits;
use serde_json::Value;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../../fixtures/dsa/adg/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const ALL: &[&str] = &[
    "mesh2x2",
    "mesh3x3",
    "mesh5x5",
    "narrow4x4",
    "shared3x3",
    "two-outputs3x3",
    "ordered4x4",
    "shallow4x4",
    "arrays",
];

#[test]
fn counts_and_order_of_links() {
    let (adg, findings) = Adg::read(&fixture("mesh3x3"), &Limits::default()).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(adg.counts(), [4, 9, 3, 2, 3]);
    let counts = adg.info().counts;
    assert!(
        counts.contains(&("links".to_owned(), adg.links.len() as u64)),
        "{counts:?}"
    );
    // The first input of processing element 0 comes from switch 0, the last from switch 4.
    let unit = &adg.elements[adg.find("ProcessingElement", 0).unwrap()];
    let names: Vec<String> = unit
        .inputs
        .iter()
        .map(|link| adg.source(*link).to_string())
        .collect();
    assert_eq!(names, ["Switch.0", "Switch.1", "Switch.3", "Switch.4"]);
    // Numbers in the whole graph go by the names as text.
    assert_eq!(adg.find("DirectMemoryAccess", 0).unwrap().index(), 0);
    assert_eq!(adg.find("InputVectorPort", 0).unwrap().index(), 1);
}

#[test]
fn the_form_of_2020_becomes_the_same() {
    let (adg, findings) = Adg::read(&fixture("arrays"), &Limits::default()).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!((adg.form, adg.counts()), (Form::Arrays, [1, 3, 2, 1, 0]));
    let text = adg.to_json().to_string();
    assert!(adg::recognize(text.as_bytes()));
    let (again, _) = Adg::read(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(
        (again.form, again.elements, again.links),
        (Form::Generator, adg.elements, adg.links)
    );
}

#[test]
fn every_form_survives_being_written_and_read() {
    for name in ALL {
        let (adg, _) = Adg::read(&fixture(name), &Limits::default()).unwrap();
        let (again, _) =
            Adg::read(adg.to_json().to_string().as_bytes(), &Limits::default()).unwrap();
        assert_eq!(
            (&again.elements, &again.links),
            (&adg.elements, &adg.links),
            "{name}"
        );
    }
}

#[test]
fn names_with_underscores_are_read() {
    let text = String::from_utf8(fixture("mesh2x2")).unwrap();
    let older = text
        .replace("\"Switch.", "\"Switch_")
        .replace("\"ProcessingElement.", "\"ProcessingElement_");
    let (adg, _) = Adg::read(older.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(
        (adg.form, adg.counts()),
        (Form::GeneratorUnderscore, [1, 4, 2, 1, 3])
    );
}

/// Reads the 2×2 mesh after a change to its JSON.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Vec<String>, String> {
    let mut value: Value = serde_json::from_slice(&fixture("mesh2x2")).unwrap();
    change(&mut value);
    let read = Adg::read(value.to_string().as_bytes(), &Limits::default());
    read.map(|(_, findings)| findings.iter().map(ToString::to_string).collect())
        .map_err(|finding| finding.to_string())
}

fn edge(from: (&str, u32), to: (&str, u32)) -> Value {
    serde_json::json!({
        "SourceNodeType": from.0, "SourceNodeId": from.1, "SourceIndex": 9,
        "SinkNodeType": to.0, "SinkNodeId": to.1, "SinkIndex": 9,
    })
}

#[test]
fn each_rule_finds_its_fault() {
    const UNIT: &str = "ProcessingElement.0";
    let add =
        |value: &mut Value, edge: Value| value["DSAGenEdges"].as_array_mut().unwrap().push(edge);
    let has = |findings: Vec<String>, code: &str| {
        assert!(
            findings.iter().any(|finding| finding.contains(code)),
            "{code}: {findings:?}"
        );
    };
    let comp = "dsagen2.comp.config.CompKeys$CompNode$";
    has(
        changed(|v| v["DSAGenNodes"][UNIT][comp]["compUnitBits"] = 24.into()).unwrap(),
        "adg-granularity",
    );
    let operations = "dsagen2.comp.config.CompKeys$DsaOperations$";
    has(
        changed(|v| v["DSAGenNodes"][UNIT][operations]["isDynamic"] = false.into()).unwrap(),
        "adg-flow-control",
    );
    has(
        changed(|v| {
            v["DSAGenNodes"][UNIT][operations]["OperationDataTypeSet"] = Value::Array(vec![]);
        })
        .unwrap(),
        "adg-no-operation",
    );
    has(
        changed(|v| add(v, edge(("ScratchpadMemory", 0), ("Switch", 0)))).unwrap(),
        "adg-direction",
    );
    has(
        changed(|v| add(v, edge(("Switch", 0), ("Switch", 1)))).unwrap(),
        "adg-link-index",
    );
    has(
        changed(|v| {
            v["DSAGenEdges"]
                .as_array_mut()
                .unwrap()
                .retain(|e| e["SinkNodeType"] != "ProcessingElement");
        })
        .unwrap(),
        "adg-unconnected",
    );
    has(
        changed(|v| {
            let mut seen = 0;
            v["DSAGenEdges"].as_array_mut().unwrap().retain(|e| {
                let of = e["SourceNodeType"] == "InputVectorPort" && e["SourceNodeId"] == 0;
                seen += u32::from(of);
                !of || seen < 2
            });
        })
        .unwrap(),
        "adg-no-lane",
    );
}

#[test]
fn errors_name_the_place() {
    let error = |change: fn(&mut Value)| changed(change).unwrap_err();
    let said = error(|v| v["DSAGenEdges"][3]["SinkNodeId"] = "one".into());
    assert!(
        said.contains("/DSAGenEdges/3/SinkNodeId") && said.contains("found \"one\""),
        "{said}"
    );
    let said = error(|v| v["DSAGenEdges"][0]["SourceNodeId"] = 77.into());
    assert!(
        said.contains("/DSAGenEdges/0") && said.contains("adg-dangling-link"),
        "{said}"
    );
    let said = error(|v| v["DSAGenNodes"]["Widget.0"] = serde_json::json!({}));
    assert!(
        said.contains("/DSAGenNodes/Widget.0") && said.contains("found \"Widget\""),
        "{said}"
    );
    let said = error(|v| *v = serde_json::json!({"DSAGenNodes": {}}));
    assert!(
        said.contains("expected the field \"DSAGenEdges\""),
        "{said}"
    );
    let said = Adg::read(b"{\"DSAGenNodes\": {,", &Limits::default())
        .unwrap_err()
        .to_string();
    assert!(said.contains("line 1, column"), "{said}");
    let said = Adg::read(
        b"[fu-model]\n[switch-model]\n[io-model]\n",
        &Limits::default(),
    )
    .unwrap_err()
    .to_string();
    assert!(
        said.contains(".sbmodel") && said.contains("adg-unsupported"),
        "{said}"
    );
    let limits = Limits {
        json_bytes: 100,
        ..Limits::default()
    };
    assert!(
        Adg::read(&fixture("mesh2x2"), &limits)
            .unwrap_err()
            .to_string()
            .contains("json_bytes = 100")
    );
}

#[test]
fn only_architecture_graphs_are_recognised() {
    for name in ALL {
        assert!(adg::recognize(&fixture(name)), "{name}");
    }
    for text in [
        &b""[..],
        b"{}",
        b"Input: a\n",
        b"{\"nodes\": [], \"links\": []}",
        b"\x7fELF",
    ] {
        assert!(!adg::recognize(text));
    }
}

#[test]
fn truncated_and_mutated_graphs_never_panic() {
    let mut random = 0x2545_F491_4F6C_DD1Du64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for name in ["mesh2x2", "arrays", "narrow4x4"] {
        let bytes = fixture(name);
        for round in 0..250 {
            let mut mutant = bytes.clone();
            if round % 5 == 0 {
                mutant.truncate(next(bytes.len()));
            } else {
                for _ in 0..=next(4) {
                    let at = next(mutant.len());
                    mutant[at] = b"0123456789,:{}[]\"xe-"[next(20)];
                }
            }
            if let Ok((adg, _)) = Adg::read(&mutant, &Limits::default()) {
                let _ = (
                    adg.info(),
                    adg.raw(),
                    adg.to_json(),
                    chipless_dsa::pictures::svg(&adg, None),
                );
            }
        }
    }
}
