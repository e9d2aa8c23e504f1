//! Files of every dialect: read, checked, converted, written, and broken on purpose.

mod generate;

use chipless_gemini::{Assembly, Dialect, Document, FileKind, Given, Machine, Network, Schedule, lint, unzip};
use chipless_model::Limits;
use generate::Plan;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

const DIALECTS: [(&str, Dialect); 3] =
    [("set.json", Dialect::Set), ("set_address.json", Dialect::SetAddress), ("ir_tiling.json", Dialect::IrTiling)];

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/gemini").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Codes of everything that is said about a text.
fn said(text: &str, network: Option<&Network>) -> Vec<&'static str> {
    match Schedule::read(text) {
        Err(finding) => vec![finding.rule.code],
        Ok(schedule) => {
            let findings = lint(&schedule, text, Given { network, batch: None }, &Limits::default());
            findings.into_iter().map(|finding| finding.rule.code).collect()
        }
    }
}

fn plan() -> Plan {
    Plan { columns: 2, rows: 1, ..Plan::default() }
}

#[test]
fn dialects_are_recognised_and_mean_the_same() {
    for (name, dialect) in DIALECTS {
        let bytes = fixture(name);
        assert_eq!(FileKind::of(&bytes), Some(FileKind::Schedule), "{name}");
        let document = Document::read(&bytes, "net_b1_c2_bw16_x.json", &Limits::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let schedule = &document.schedule;
        assert_eq!(schedule.dialect, dialect);
        assert_eq!((schedule.mesh, schedule.cores.len(), schedule.workloads().count()), ([2, 1], 2, 2), "{name}");
        assert_eq!(schedule.cores.iter().map(|core| (core.id, schedule.file_core(core.id))).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        let sizes: Vec<u64> = schedule.dram_out.iter().map(|entry| entry.size).collect();
        assert_eq!(sizes, [12, 48, 8], "{name}: bits become bytes, interleaved transfers one");
        let first = &schedule.cores[0].workloads[0];
        assert_eq!((first.ofmaps.len(), first.ofmaps[0].transfer, first.ofmaps[0].size), (1, 3, Some(64)), "{name}");
        assert_eq!(document.name.dram_bandwidth, Some(16));
        let info = document.info();
        assert_eq!(info.outputs.len(), 1, "{name}");
        assert_eq!((info.outputs[0].name.as_str(), &info.outputs[0].shape[..]), ("conv2", &[1, 2, 4, 4][..]), "{name}");
        assert_eq!(document.findings(None, None, &Limits::default()), [], "{name}");
    }
}

#[test]
fn the_ancestors_become_the_spec_s_dialect() {
    for (name, _) in DIALECTS {
        let text = String::from_utf8(fixture(name)).expect("text");
        let before = Schedule::read(&text).expect("a schedule");
        let written = before.clone().convert(None).write();
        let after = Schedule::read(&written).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(after.dialect, Dialect::Spec);
        assert_eq!(after.write(), written, "{name}: written again it is the same");
        let bytes = |s: &Schedule| s.dram_out.iter().map(|entry| entry.size).sum::<u64>();
        assert_eq!((bytes(&after), after.workloads().count()), (bytes(&before), 2), "{name}");
        let ids: Vec<Vec<u32>> = after.cores.iter().map(|core| core.workloads.iter().map(|w| w.id).collect()).collect();
        assert_eq!(ids, [[0], [0]], "{name}: ids count on each core");
        assert_eq!(after.cores[0].workloads[0].ofmaps[0].destinations[0].workload, Some(0), "{name}");
    }
}

#[test]
fn gzipped_files_are_read_and_damaged_ones_refused() {
    let text = generate::schedule(&plan()).to_string();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    assert_eq!(FileKind::of(&packed), Some(FileKind::Schedule));
    assert_eq!(&*unzip(&packed, &Limits::default()).expect("whole"), text.as_bytes());
    let error = Document::read(&packed[..packed.len() / 2], "x.json.gz", &Limits::default()).expect_err("cut off");
    assert_eq!(error.rule.code, "gemini-gzip");
}

#[test]
fn a_front_end_file_is_no_schedule() {
    let bytes = generate::network(&plan()).to_string();
    assert_eq!(FileKind::of(bytes.as_bytes()), Some(FileKind::Network));
    let error = Document::read(bytes.as_bytes(), "", &Limits::default()).expect_err("no schedule");
    assert!(error.message.contains("--network"), "{error}");
}

#[test]
fn errors_say_pointer_line_and_column() {
    let error = Schedule::read("{\"-1\": {\"in\": [],\n \"out\": []}, \"0\": [{\"buffer\": 3}],\n\"buffersize\": 1, \"top_batch_cut\": 1, \"xlen\": 1, \"ylen\": 1}").expect_err("wrong");
    assert_eq!(error.to_string(), "/0/0/buffer (line 2, column 31): expected a list, found 3 [gemini-json-value]");
}

/// A change of a good schedule, and the finding that it must bring.
type Fault = (&'static str, fn(&mut Value));

/// The first workload of core 0 that has the keys.
fn with(schedule: &mut Value, has: impl Fn(&Value) -> bool) -> &mut Value {
    let list = schedule["0"].as_array_mut().expect("a list");
    list.iter_mut().find(|workload| has(workload)).expect("such a workload")
}

fn each(_: &Value) -> bool {
    true
}

const FAULTS: &[Fault] = &[
    ("gemini-top-batch-cut", |s| s["top_batch_cut"] = json!(0)),
    ("gemini-mesh", |s| s["xlen"] = json!(0)),
    ("gemini-core", |s| s["xlen"] = json!(1)),
    ("gemini-core-idle", |s| s["ylen"] = json!(2)),
    ("gemini-buffersize", |s| s["buffersize"] = json!(0)),
    ("gemini-key-unknown", |s| s["surprise"] = json!({"a": [1]})),
    ("gemini-key-missing", |s| drop(s.as_object_mut().and_then(|o| o.remove("ylen")))),
    ("gemini-key-missing", |s| drop(with(s, each).as_object_mut().and_then(|o| o.remove("workload")))),
    ("gemini-json-value", |s| with(s, each)["layer_type"] = json!("gpu")),
    ("gemini-json-value", |s| with(s, each)["time"] = json!(-1)),
    ("gemini-json-value", |s| with(s, each)["ifmap"][0]["lower"][1] = json!(0.5)),
    ("gemini-json-value", |s| with(s, each)["ifmap"][0]["upper"] = json!([0, 1, 2])),
    ("gemini-dialect", |s| s["-1"]["out"][0]["destination"][0]["id"] = json!(0)),
    ("gemini-workload-order", |s| s["0"].as_array_mut().expect("a list").swap(0, 1)),
    ("gemini-box", |s| with(s, each)["ifmap"][0]["lower"][2] = json!(1_000_000)),
    ("gemini-transfer-without-source", |s| drop(s["-1"]["out"].as_array_mut().map(|a| a.remove(0)))),
    ("gemini-transfer-two-sources", |s| {
        let copy = s["-1"]["out"][0].clone();
        s["-1"]["out"].as_array_mut().expect("a list").push(copy);
    }),
    ("gemini-dram-in", |s| s["-1"]["in"][0]["transfer_id"] = json!(999_999)),
    ("gemini-related-unknown", |s| s["-1"]["out"][0]["related_ifmap"] = json!([999_999])),
    ("gemini-size", |s| with(s, each)["ofmap_size"] = json!(7)),
    ("gemini-size-differs", |s| {
        let out = s["-1"]["out"].as_array_mut().expect("a list");
        let read = out.iter_mut().find(|entry| entry["type"] == json!("fmap")).expect("an input");
        read["size"] = json!(read["size"].as_u64().expect("a size") + 8);
    }),
    ("gemini-bitwidth", |s| with(s, each)["ifmap"][0]["bitwidth"] = json!(7)),
    ("gemini-ring-region", |s| with(s, each)["ring_buffer_info"] = json!([])),
    ("gemini-ring-wrap", |s| with(s, each)["ring_buffer_info"] = json!([[0, 1], [1, 2], [2, 65536]])),
    ("gemini-l2-overlap", |s| {
        let workload = with(s, |w| w["buffer"].as_array().is_some_and(|b| b.len() > 1));
        workload["buffer"].as_array_mut().expect("a list").iter_mut().for_each(|tensor| tensor["address"] = json!(0));
    }),
    ("gemini-newly-added", |s| {
        let workload = with(s, |w| w["buffer"].as_array().is_some_and(|b| b.iter().any(|t| t["newly_added"] == json!(true))));
        let tensors = workload["buffer"].as_array_mut().expect("a list");
        tensors.iter_mut().find(|t| t["newly_added"] == json!(true)).expect("a new one")["newly_added"] = json!(false);
    }),
    ("gemini-ifmap-missing", |s| with(s, each)["buffer"] = json!([])),
    ("gemini-tile-cover", |s| with(s, each)["tile_info"] = json!({})),
    ("gemini-tile", |s| {
        with(s, |w| w["tile_info"]["tile_num_0"]["loop_order"].is_string())["tile_info"]["tile_num_0"]["loop_order"] = json!("KNHZ");
    }),
];

#[test]
fn good_schedules_are_clean_and_every_fault_is_found() {
    let network = Network::read(generate::network(&plan()).to_string().as_bytes(), &Limits::default()).expect("a network");
    let good = generate::schedule(&plan());
    let clean = said(&good.to_string(), Some(&network));
    for (code, change) in FAULTS {
        let mut broken = good.clone();
        change(&mut broken);
        let found = said(&broken.to_string(), Some(&network));
        assert!(found.contains(code) && !clean.contains(code), "expected {code}, found {found:?}; without the fault {clean:?}");
    }
}

#[test]
fn faults_of_text_are_found() {
    let good = generate::schedule(&plan()).to_string();
    assert_eq!(said(&good[..good.len() / 2], None), ["gemini-json"]);
    assert_eq!(said(&format!("{good} x"), None), ["gemini-json"]);
    assert_eq!(said(&format!("[{good}]"), None), ["gemini-json-value"]);
    assert_eq!(said(&good.replacen("{\"", "{\"0\": [], \"", 1), None), ["gemini-key-twice"]);
    let deep = format!("{{\"x\": {}1{}, {}", "[".repeat(1000), "]".repeat(1000), &good[1..]);
    assert_eq!(said(&deep, None), ["gemini-limit"]);
}

#[test]
fn braces_in_names_do_not_mislead() {
    let good = generate::schedule(&plan()).to_string();
    let odd = good.replace("Conv_", "Co{n}v[\\\"{_");
    assert!(odd != good, "the generator names layers Conv_");
    assert_eq!(said(&odd, None), said(&good, None));
}

#[test]
fn assembly_and_trace_are_programs() {
    let machine = Machine::named("spec").expect("known");
    for name in ["asm.txt", "trace.txt"] {
        let bytes = fixture(name);
        assert_eq!(FileKind::of(&bytes), Some(FileKind::Assembly), "{name}");
        let assembly = Assembly::read(&bytes, &Limits::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((assembly.instructions.len(), assembly.is_trace()), (8, name == "trace.txt"));
        assert_eq!(assembly.findings(), []);
        let program = assembly.lower(&machine);
        chipless_verify::verify(&program).unwrap_or_else(|findings| panic!("{name}: {}", findings[0]));
        let outcome = chipless_sim::run(&program, &mut chipless_sim::TimingOnly);
        outcome.end.expect("done");
        if let Some(end) = assembly.end() {
            assert_eq!(machine.cycles_of(outcome.timeline.end), end, "the tokens alone put every instruction where the trace has it");
        }
        let text = String::from_utf8(bytes).expect("text");
        let codes = |text: &str| match Assembly::read(text.as_bytes(), &Limits::default()) {
            Ok(assembly) => assembly.findings().iter().map(|f| f.rule.code).collect::<Vec<_>>(),
            Err(finding) => vec![finding.rule.code],
        };
        assert_eq!(codes(&text.replace("'Next_Insts': ['ST']", "'Next_Insts': []")), ["gemini-token-missing"]);
        assert_eq!(codes(&text.replace("'Prev_Insts': ['PE']", "'Prev_Insts': []")), ["gemini-token-left"]);
        assert_eq!(codes(&text.replace("[pe_conv", "[xy_conv")), ["gemini-instruction"]);
        assert_eq!(codes(&text.replace("<DataFmt.INT8: 1>", "<DataFmt.INT8: 1")), ["gemini-instruction"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_reads_the_same(columns in 1u32..3, rows in 1u32..3, blocks in 1u32..3, tiles in 1u32..4) {
        let plan = Plan { columns, rows, tiles, blocks, ..Plan::default() };
        let text = generate::schedule(&plan).to_string();
        let schedule = Schedule::read(&text).expect("a schedule");
        let written = schedule.write();
        // The same values: keys in order, numbers as text.
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        prop_assert_eq!(Schedule::read(&written).expect("a schedule").write(), &written[..]);
        prop_assert_eq!(value(&text)["-1"].clone(), value(&written)["-1"].clone());
    }

    /// Files that are cut off or damaged give an answer, never a panic.
    #[test]
    fn damaged_files_are_survived(which in 0usize..6, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let names = ["set.json", "set_address.json", "ir_tiling.json", "asm.txt", "trace.txt"];
        let mut bytes = names.get(which).map_or_else(|| generate::schedule(&plan()).to_string().into_bytes(), |name| fixture(name));
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let limits = Limits::default();
        match FileKind::of(&bytes) {
            Some(FileKind::Assembly) => {
                if let Ok(assembly) = Assembly::read(&bytes, &limits) {
                    let _ = (assembly.findings(), assembly.info(), assembly.raw(), assembly.lower(&Machine::named("spec").expect("known")));
                }
            }
            _ => {
                if let Ok(document) = Document::read(&bytes, "", &limits) {
                    let _ = (document.findings(None, None, &limits), document.info(), document.raw());
                    let _ = document.schedule.clone().convert(None).write();
                }
            }
        }
    }
}
