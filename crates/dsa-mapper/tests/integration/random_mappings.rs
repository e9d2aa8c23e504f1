//! Random graphs on random fabrics: whatever the mapper makes the judge must find legal, with the latency and mismatch that it claims.

#![allow(clippy::unwrap_used, reason = "tests")]

use chipless_dsa::Document;
use chipless_dsa::adg::Adg;
use chipless_dsa_mapper::judge::judge;
use chipless_dsa_mapper::{self as mapping, Objective, Options};
use chipless_model::Limits;
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

const OPERATIONS: &[(&str, u32, usize, usize)] = &[
    ("Add64", 64, 2, 1),
    ("Select", 64, 3, 1),
    ("DivRem64", 64, 2, 2),
    ("Mul32", 32, 2, 1),
    ("Add16", 16, 2, 1),
];

/// Links of a fabric, each with its place among those of its ends.
#[derive(Default)]
struct Links {
    edges: Vec<Value>,
    counts: BTreeMap<(String, bool), usize>,
}

impl Links {
    fn add(&mut self, from: (&str, usize), to: (&str, usize)) {
        let mut next = |key: (&str, usize), out: bool| {
            let count = self
                .counts
                .entry((format!("{}.{}", key.0, key.1), out))
                .or_default();
            *count += 1;
            *count - 1
        };
        self.edges.push(json!({
            "SourceNodeType": from.0, "SourceNodeId": from.1, "SourceIndex": next(from, true),
            "SinkNodeType": to.0, "SinkNodeId": to.1, "SinkIndex": next(to, false),
        }));
    }
}

/// A mesh with elements of many widths, ports of several kinds, and memories that not every port reaches.
fn fabric(rng: &mut Rng) -> Value {
    let (rows, columns) = (rng.usize(2..5), rng.usize(2..5));
    let (inputs, outputs) = (rng.usize(3..6), rng.usize(3..6));
    let uniform = rng
        .bool()
        .then(|| if rng.bool() { (64, 64) } else { (64, 16) });
    let mut nodes = serde_json::Map::new();
    let mut links = Links::default();
    let computing = |rng: &mut Rng| {
        let (width, granularity) = uniform.unwrap_or_else(|| {
            (
                *rng.choice(&[64, 64, 32]).unwrap(),
                *rng.choice(&[64, 32, 16, 8]).unwrap(),
            )
        });
        json!({ "compBits": width, "compUnitBits": granularity.min(width) })
    };
    let buffer = json!({ "outputBufferDepth": 2, "staticOutputBuffer": false });
    for number in 0..rows * columns {
        nodes.insert(
            format!("Switch.{number}"),
            json!({ "dsagen2.comp.config.CompKeys$CompNode$": computing(rng), "dsagen2.comp.config.CompKeys$OutputBuffer$": buffer }),
        );
    }
    let switch = |row: usize, column: usize| ("Switch", row % rows * columns + column % columns);
    let shared = if rng.u8(..3) == 0 { 8 } else { 1 };
    let names: Vec<&str> = OPERATIONS.iter().map(|operation| operation.0).collect();
    for number in 0..(rows - 1) * (columns - 1) {
        let operations = json!({
            "isDynamic": true, "OperationDataTypeSet": names, "instSlotSize": shared, "maxFifoDepth": rng.usize(1..8),
        });
        let control = json!({ "sizeLUT": 4, "inputLSBCtrl": true, "outputLSBCtrl": true });
        nodes.insert(format!("ProcessingElement.{number}"), json!({
            "dsagen2.comp.config.CompKeys$CompNode$": computing(rng), "dsagen2.comp.config.CompKeys$OutputBuffer$": buffer, "dsagen2.comp.config.CompKeys$RegFile$": { "numReg": 1 },
            "dsagen2.comp.config.CompKeys$MetaControl$": control, "dsagen2.comp.config.CompKeys$DsaOperations$": operations,
        }));
    }
    for (kind, key, count) in [
        (
            "InputVectorPort",
            "dsagen2.sync.config.SyncKeys$IVPNode$",
            inputs,
        ),
        (
            "OutputVectorPort",
            "dsagen2.sync.config.SyncKeys$OVPNode$",
            outputs,
        ),
    ] {
        for number in 0..count {
            let port = json!({ "vpImpl": if rng.u8(..3) == 0 { 2 } else { 0 }, "vpStated": rng.u8(..3) > 0, "depthByte": 2 });
            nodes.insert(format!("{kind}.{number}"), json!({ key: port }));
        }
    }
    for number in 0..2 {
        let memory =
            json!({ "readWidth": 32, "writeWidth": 32, "memUnitBits": 8, "capacity": 1024 });
        nodes.insert(
            format!("ScratchpadMemory.{number}"),
            json!({ "dsagen2.mem.config.MemKeys$MemNode$": memory }),
        );
        for port in (0..inputs).filter(|port| port % 2 == number || rng.bool()) {
            links.add(("ScratchpadMemory", number), ("InputVectorPort", port));
        }
        for port in (0..outputs).filter(|port| port % 2 == number || rng.bool()) {
            links.add(("OutputVectorPort", port), ("ScratchpadMemory", number));
        }
    }
    let width = rng.usize(3..6);
    (0..inputs).for_each(|port| {
        (0..width).for_each(|column| links.add(("InputVectorPort", port), switch(port, column)));
    });
    connect_mesh(&mut links, rows, columns);
    (0..outputs).for_each(|port| {
        (0..width).for_each(|column| {
            links.add(
                switch(rows - 1 + port, columns - 1 + column),
                ("OutputVectorPort", port),
            );
        });
    });
    json!({ "DSAGenNodes": nodes, "DSAGenEdges": links.edges })
}

/// Links between switches beside each other, and of each processing element with the switches around it.
fn connect_mesh(links: &mut Links, rows: usize, columns: usize) {
    let switch = |row: usize, column: usize| ("Switch", row * columns + column);
    for row in 0..rows {
        for column in 0..columns {
            for (other, beside) in [
                (row, column + 1),
                (row + 1, column),
                (row, column.wrapping_sub(1)),
                (row.wrapping_sub(1), column),
            ] {
                if other < rows && beside < columns {
                    links.add(switch(row, column), switch(other, beside));
                }
            }
        }
    }
    for row in 0..rows - 1 {
        for column in 0..columns - 1 {
            let element = ("ProcessingElement", row * (columns - 1) + column);
            for (down, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                links.add(switch(row + down, column + right), element);
            }
            links.add(element, switch(row + 1, column + 1));
            links.add(element, switch(row + 1, column));
        }
    }
}

/// A graph with slices, values put together, states, arrays, and outputs of everything that is left.
fn graph(rng: &mut Rng) -> String {
    let mut text = String::from("Array: left 600 spm\nArray: right 600 spm\n");
    if rng.u8(..4) == 0 {
        text.push_str("#pragma group temporal\n");
    }
    let mut values: Vec<(String, u32, bool)> = Vec::new();
    for port in 0..rng.usize(1..4) {
        let (width, lanes) = (*rng.choice(&[64, 64, 32, 16]).unwrap(), rng.usize(2..4));
        let array = ["", " source=left", " source=right"][rng.usize(..3)];
        let stated = if rng.bool() { " stated" } else { "" };
        writeln!(text, "Input{width}: p{port}x[{lanes}]{array}{stated}").unwrap();
        values.extend((0..lanes).map(|lane| (format!("p{port}x{lane}"), width, false)));
    }
    for number in 0..rng.usize(1..5) {
        let (name, width, count, results) = *rng.choice(OPERATIONS).unwrap();
        let mut operands = Vec::new();
        for _ in 0..count {
            let found: Vec<usize> = (0..values.len())
                .filter(|index| values[*index].1 >= width || values[*index].1 * 2 == width)
                .collect();
            let Some(&index) = rng.choice(&found) else {
                break;
            };
            let value = &mut values[index];
            value.2 = true;
            operands.push(match value.1 {
                own if own == width => value.0.clone(),
                own if own > width => {
                    let low = rng.u32(..own / width) * width;
                    format!("{}:{low}:{}", value.0, low + width - 1)
                }
                _ => format!("{0} {0}", value.0),
            });
        }
        if operands.len() == count {
            let names: Vec<String> = (0..results)
                .map(|result| format!("t{number}x{result}"))
                .collect();
            writeln!(
                text,
                "{} = {name}({})",
                names.join(", "),
                operands.join(", ")
            )
            .unwrap();
            values.extend(names.into_iter().map(|name| (name, width, false)));
        }
    }
    for (number, (name, width, _)) in values.iter().filter(|value| !value.2).enumerate() {
        let array = ["", " destination=left"][rng.usize(..2)];
        writeln!(text, "o{number} = {name}\nOutput{width}: o{number}{array}").unwrap();
    }
    text
}

#[test]
fn every_mapping_is_legal() {
    let rounds = chipless_rounds::rounds(400) as u64;
    let mut mapped = 0;
    for seed in 0..rounds {
        let mut rng = Rng::with_seed(seed);
        let (json, text) = (fabric(&mut rng).to_string(), graph(&mut rng));
        let limits = Limits::default();
        let document = Document::read(text.as_bytes(), &limits);
        assert!(document.is_complete(), "{text}\n{:?}", document.findings);
        let (adg, _) = Adg::read(json.as_bytes(), &limits).unwrap();
        let options = Options {
            seed,
            time_limit: Duration::from_secs(2),
            objective: Objective::Legal,
            ..Options::default()
        };
        let outcome = mapping::map(&document.graph, &adg, &options, &mut |_| {});
        let Some(mapping) = outcome.mapping else {
            assert!(outcome.reason.is_some_and(|reason| !reason.is_empty()));
            continue;
        };
        mapped += 1;
        let verdict = judge(&document.graph, &adg, &mapping);
        assert_eq!(verdict.faults, Vec::<String>::new(), "seed {seed}\n{text}");
        assert_eq!(
            (verdict.latency, verdict.mismatch),
            (outcome.latency, outcome.mismatch),
            "seed {seed}\n{text}"
        );
    }
    assert!(mapped * 20 > rounds * 3, "only {mapped} of {rounds} mapped");
}
