//! Architecture graphs: reading their forms, judging them, refusing what is none.

use chipless_dsa::adg::{self, Adg, ElementKind, Form};
use chipless_model::Limits;
use serde_json::Value;

/// A fabric without the fields of its file that mean nothing.
fn plain(mut adg: Adg) -> Adg {
    for element in &mut adg.elements {
        element.body = std::sync::Arc::default();
    }
    adg
}

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
    let again = plain(again);
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
        let (again, adg) = (plain(again), plain(adg));
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
        said.contains("expected width and height") && said.contains("adg-text"),
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
        for round in 0..chipless_rounds::rounds(250) {
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
                let _ = (adg.info(), adg.raw(), adg.to_json());
            }
        }
    }
}

/// A text model of 2 × 1 elements, the second shared in time, with ports on the first and last switch of the edge.
const TEXT: &str = "\
[fu-model]
FU_TYPE ADDER: Add64:2, Sub64:3, Nonesuch:4
FU_TYPE ANY: ALL
[sub-model]
width: 2
height: 1
io_layout: three_in_two_out
ins_per_switch: 1
outs_per_switch: 1
temporal_x: 0
temporal_y: 0
temporal_width: 2
temporal_height: 1
SS_LAYOUT: FULL
ADDER ANY # the rest is a remark
[io-model]
PORT_IN 3: 0, 5,
PORT_OUT 0: 0
";

#[test]
fn text_models_have_the_links_of_their_mesh() {
    let (adg, findings) = Adg::read(TEXT.as_bytes(), &Limits::default()).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(adg.form, Form::Text);
    assert_eq!(adg.counts(), [2, 6, 1, 1, 0]);
    // Four links into each element, one and three more out of each; 14 between switches; one each way between the two; three of ports.
    assert_eq!(adg.links.len(), 8 + 8 + 14 + 2 + 3);
    let shared = |link: &adg::Link| link.is_shared();
    assert_eq!(adg.links.iter().filter(|link| shared(link)).count(), 2);
    let unit = |number| adg.elements[adg.find("ProcessingElement", number).unwrap()].processing();
    assert_eq!(unit(0).unwrap().operations, ["Add64", "Sub64"]);
    assert_eq!(unit(0).unwrap().instruction_slots, 64);
    assert!(unit(1).unwrap().operations.len() > 1000);
    // Inputs of the edge: switches (0, 1), (0, 0), (1, 0), (2, 0), (1, 1), (2, 1).
    let port = &adg.elements[adg.find("InputVectorPort", 3).unwrap()];
    let behind: Vec<String> = port
        .outputs
        .iter()
        .map(|id| adg.sink(*id).to_string())
        .collect();
    assert_eq!(behind, ["Switch.1", "Switch.5"]);
    // Written in the generator's form and read again it is the same fabric.
    let (again, _) = Adg::read(adg.to_json().to_string().as_bytes(), &Limits::default()).unwrap();
    assert_eq!(again.counts(), adg.counts());
    assert_eq!(again.links.iter().filter(|link| shared(link)).count(), 2);
}

#[test]
fn text_models_say_what_is_wrong_with_them() {
    let said = |from: &str, to: &str| {
        let text = TEXT.replace(from, to);
        assert_ne!(text, TEXT);
        Adg::read(text.as_bytes(), &Limits::default())
            .unwrap_err()
            .to_string()
    };
    assert!(said("width: 2", "width: many").contains("found \"many\""));
    assert!(said("ADDER ANY", "ADDER OTHER").contains("found \"OTHER\""));
    assert!(said("PORT_OUT 0: 0", "PORT_OUT 0: 99").contains("names 99"));
    assert!(said("three_in_two_out", "ring").contains("adg-unsupported"));
    assert!(said("three_in_two_out", "ring").contains("found \"ring\""));
}

#[test]
fn flags_and_tables_are_read_as_tools_write_them() {
    let mut file: Value = serde_json::from_slice(&fixture("mesh2x2")).unwrap();
    for (name, node) in file["DSAGenNodes"].as_object_mut().unwrap() {
        for section in node.as_object_mut().unwrap().values_mut() {
            for value in section.as_object_mut().unwrap().values_mut() {
                if let Value::Bool(flag) = value {
                    *value = i32::from(*flag).into();
                }
            }
        }
        if name.starts_with("Processing") {
            node["dsagen2.comp.config.CompKeys$MetaControl$"]["sizeLUT"] = true.into();
        }
    }
    let read = |file: &Value| {
        Adg::read(file.to_string().as_bytes(), &Limits::default())
            .unwrap()
            .0
    };
    let (odd, plain) = (
        read(&file),
        Adg::read(&fixture("mesh2x2"), &Limits::default())
            .unwrap()
            .0,
    );
    let mut unit = odd.elements[odd.find("ProcessingElement", 0).unwrap()]
        .processing()
        .unwrap()
        .clone();
    assert_eq!(unit.control_entries, 8);
    unit.control_entries = 4;
    let same = plain.elements[plain.find("ProcessingElement", 0).unwrap()]
        .processing()
        .unwrap();
    assert_eq!(&unit, same);
    // What a file says besides is still there when it is written.
    assert!(
        odd.to_json()["DSAGenNodes"]["ProcessingElement.0"]
            .to_string()
            .contains("sizeLUT\":true")
            || odd.to_json().to_string().contains("\"sizeLUT\":8")
    );
}

#[test]
fn meshes_are_made_changed_and_compared() {
    use adg::edit::{Change, apply, diff};
    use adg::mesh::{Shape, mesh};
    let shape = Shape {
        columns: 4,
        rows: 3,
        operations: vec!["Add_I64".to_owned(), "Mul_I64".to_owned()],
        delay_depth: 4,
        inputs: 3,
        outputs: 2,
        stated: [0, 0],
        lanes: 2,
        slots: 1,
    };
    let made = mesh(&shape).unwrap();
    assert_eq!(made.counts(), [12, 20, 3, 2, 1]);
    assert!(
        mesh(&Shape {
            columns: 0,
            ..shape
        })
        .is_err()
    );
    let read = |file: &Value| Adg::read(file.to_string().as_bytes(), &Limits::default()).unwrap();
    let mut file = made.to_json();
    let (first, findings) = read(&file);
    assert!(findings.is_empty(), "{findings:?}");
    assert!(diff(&first, &made).is_empty());
    let set = |element: &str, key: &str, value: &str| {
        Change::Set(element.to_owned(), key.to_owned(), value.to_owned())
    };
    let changes = [
        set("ProcessingElement.3", "maxFifoDepth", "13"),
        Change::Remove("OutputVectorPort.1".to_owned()),
        Change::AddLink("Switch.0".to_owned(), "Switch.19".to_owned()),
    ];
    apply(&mut file, &changes).unwrap();
    let (second, findings) = read(&file);
    assert!(findings.is_empty(), "{findings:?}");
    let found = diff(&first, &second);
    assert_eq!(found.removed, ["OutputVectorPort.1"]);
    assert_eq!(found.links_added, ["Switch.0:Switch.19"]);
    assert!(found.added.is_empty() && found.links_removed.is_empty());
    let changed: Vec<_> = found
        .changed
        .iter()
        .map(|c| (&*c.element, &*c.key, c.to.as_u64()))
        .collect();
    assert_eq!(changed, [("ProcessingElement.3", "maxFifoDepth", Some(13))]);
    for wrong in [
        set("ProcessingElement.99", "maxFifoDepth", "1"),
        set("Switch.0", "maxFifoDepth", "1"),
        set("ProcessingElement.0", "maxFifoDepth", "deep"),
    ] {
        assert!(apply(&mut file, &[wrong]).is_err());
    }
}

/// The forms that ports and layouts had between 2016 and 2018.
#[test]
fn text_models_of_every_generation_are_read() {
    let text = |layout: &str, ports: &str| {
        format!(
            "[fu-model]\nFU_TYPE FU_ADD: Add64:20\n[switch-model]\n[sub-model]\nwidth: 2\nheight: 2\nio_layout: three_sides_in\n\
             ins_per_switch: 3\nouts_per_switch: 3\n{layout}: FULL\nFU_ADD FU_ADD\nFU_ADD FU_ADD\n[io-model]\n{ports}\n"
        )
    };
    let read = |text: &str| Adg::read(text.as_bytes(), &Limits::default());
    let model = |layout: &str, ports: &str| read(&text(layout, ports)).unwrap();
    let (today, findings) = model("SS_LAYOUT", "PORT_IN 0: 2, 5, 8\nPORT_OUT 0: 1");
    assert!(findings.is_empty(), "{findings:?}");
    for (layout, ports) in [
        (
            "SB_LAYOUT",
            "VPORT_IN 0: 2:0 8, 5:1 9, 8:2 10\nVPORT_OUT 0: 1:0",
        ),
        ("DY_LAYOUT", "PORT_IN 0: 2:0, 5:1, 8:2\nPORT_OUT 0: 1"),
    ] {
        let (older, findings) = model(layout, ports);
        assert!(
            findings.is_empty() && adg::edit::diff(&older, &today).is_empty(),
            "{findings:?}"
        );
    }
    // The oldest have no sections; what they do not say is what the tool takes then.
    let oldest = "width: 2\nheight: 2\nFU_TYPE FU_ADD: Add64:20\nSB_LAYOUT: FULL\nFU_ADD FU_ADD\nFU_ADD FU_ADD\nPORT_IN 0: 1, 7\nPORT_OUT 0: 4\n";
    let (oldest, findings) = read(oldest).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    let links = |is_meant: fn(&ElementKind) -> bool| {
        let mut elements = oldest.elements.iter_enumerated();
        let (port, _) = elements.find(|(_, e)| is_meant(&e.kind)).unwrap();
        let ends = oldest.links.iter().filter_map(|link| {
            let other = match (link.source == port, link.sink == port) {
                (true, _) => link.sink,
                (_, true) => link.source,
                _ => return None,
            };
            oldest.elements[other].place
        });
        ends.collect::<Vec<_>>()
    };
    // Two inputs to a switch: the left edge upwards but for its upper corner, then the upper edge but for its right corner.
    let inputs = links(|kind| matches!(kind, ElementKind::InputPort(_)));
    assert_eq!(inputs, [(2, 0), (0, 1)]);
    // The lower edge from its second switch on, then the right edge upwards.
    let outputs = links(|kind| matches!(kind, ElementKind::OutputPort(_)));
    assert_eq!(outputs, [(1, 2)]);
    // A layout larger than the mesh counts in part.
    let larger = text("SS_LAYOUT", "PORT_IN 0: 2, 5, 8\nPORT_OUT 0: 1")
        .replace("FU_ADD FU_ADD\n[", "FU_ADD FU_ADD FU_ADD\nFU_ADD\n[");
    let (larger, findings) = read(&larger).unwrap();
    assert!(adg::edit::diff(&larger, &today).is_empty());
    assert_eq!(findings[0].rule.code, "adg-extra-types");
    let refused = read("FU_TYPE FU_ADD: Add64:20\nFU_TYPE FU_MUL: Mul64:21\n").unwrap_err();
    assert!(
        refused
            .message
            .contains("lists 2 types of elements and no mesh")
    );
    // Of two lines for one port the last counts.
    let (twice, findings) = model(
        "SS_LAYOUT",
        "PORT_IN 0: 7\nPORT_IN 0: 2, 5, 8\nPORT_OUT 0: 1",
    );
    assert!(adg::edit::diff(&twice, &today).is_empty());
    assert_eq!(findings[0].rule.code, "adg-port-twice");
}
