//! Files of every dialect: read, checked, converted, written, and broken on purpose.

use crate::generate::{Plan, said};
use chipless_gemini::{Assembly, Data, Dialect, Document, FileKind, Machine, Schedule, unzip};
use chipless_model::Limits;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

const DIALECTS: [(&str, Dialect); 3] = [
    ("set.json", Dialect::Set),
    ("set_address.json", Dialect::SetAddress),
    ("ir_tiling.json", Dialect::IrTiling),
];

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fixtures/gemini")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn plan() -> Plan {
    Plan {
        columns: 2,
        rows: 1,
        ..Plan::default()
    }
}

#[test]
fn dialects_are_recognised_and_mean_the_same() {
    for (name, dialect) in DIALECTS {
        let bytes = fixture(name);
        assert_eq!(FileKind::of(&bytes), Some(FileKind::Schedule), "{name}");
        let document = Document::read(&bytes, "net_b1_c2_bw16_x.json", &Limits::default())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let schedule = &document.schedule;
        assert_eq!(schedule.dialect, dialect);
        assert_eq!(
            (
                schedule.mesh,
                schedule.cores.len(),
                schedule.workloads().count()
            ),
            ([2, 1], 2, 2),
            "{name}"
        );
        assert_eq!(
            schedule
                .cores
                .iter()
                .map(|core| (core.id, schedule.file_core(core.id)))
                .collect::<Vec<_>>(),
            [(0, 1), (1, 2)]
        );
        let sizes: Vec<u64> = schedule.dram_out.iter().map(|entry| entry.size).collect();
        assert_eq!(
            sizes,
            [12, 48, 8],
            "{name}: bits become bytes, interleaved transfers one"
        );
        let first = &schedule.cores[0].workloads[0];
        assert_eq!(
            (
                first.ofmaps.len(),
                first.ofmaps[0].transfer,
                first.ofmaps[0].size
            ),
            (1, 3, Some(64)),
            "{name}"
        );
        assert_eq!(document.name.dram_bandwidth, Some(16));
        let info = document.info();
        assert_eq!(info.outputs.len(), 1, "{name}");
        assert_eq!(
            (info.outputs[0].name.as_str(), &info.outputs[0].shape[..]),
            ("conv2", &[1, 2, 4, 4][..]),
            "{name}"
        );
        assert_eq!(
            document.findings(None, None, &Limits::default()),
            [],
            "{name}"
        );
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
        assert_eq!(
            after.write(),
            written,
            "{name}: written again it is the same"
        );
        let bytes = |s: &Schedule| s.dram_out.iter().map(|entry| entry.size).sum::<u64>();
        assert_eq!(
            (bytes(&after), after.workloads().count()),
            (bytes(&before), 2),
            "{name}"
        );
        let ids: Vec<Vec<u32>> = after
            .cores
            .iter()
            .map(|core| core.workloads.iter().map(|w| w.id).collect())
            .collect();
        assert_eq!(ids, [[0], [0]], "{name}: ids count on each core");
        assert_eq!(
            after.cores[0].workloads[0].ofmaps[0].destinations[0].workload,
            Some(0),
            "{name}"
        );
    }
}

/// What is converted is as clean as what it was converted from, and runs in one DRAM queue.
#[test]
fn converted_schedules_are_clean() {
    let machine = Machine::named("spec").expect("known");
    for (name, _) in DIALECTS {
        let text = String::from_utf8(fixture(name)).expect("text");
        let written = Schedule::read(&text)
            .expect("a schedule")
            .convert(None)
            .write();
        assert_eq!(said(&written, None), ["gemini-packed"], "{name}");
        let schedule = Schedule::read(&written).expect("a schedule");
        let lowered =
            chipless_gemini::lower(&schedule, &Data::default(), &machine, &Limits::default())
                .expect("a program");
        chipless_verify::verify(&lowered.program)
            .unwrap_or_else(|findings| panic!("{name}: {}", findings[0]));
        chipless_sim::run(
            &chipless_sim::Verified::assume(&lowered.program),
            &mut chipless_sim::TimingOnly,
        )
        .end
        .expect("done");
    }
}

/// An interleaved transfer stands in every group that holds a part of its data; a bare 0 is DRAM and names no group.
#[test]
fn interleaved_transfers_stand_in_all_their_groups() {
    let good: Value = serde_json::from_slice(&fixture("ir_tiling.json")).expect("JSON");
    for (list, id) in [("in", 4), ("out", 0), ("out", 1), ("out", 2)] {
        let mut damaged = good.clone();
        let entries = damaged["DRAM"]["1"][list].as_array_mut().expect("a list");
        entries.retain(|entry| entry["transfer_id"] != id);
        assert_eq!(
            said(&damaged.to_string(), None),
            ["gemini-dram-group"],
            "{list} {id}"
        );
    }
    // What nobody names is read from where it was stored.
    let text = good.to_string().replace(r#""id":[0,1]"#, r#""id":0"#);
    assert_eq!(said(&text, None), [""; 0]);
    let mut damaged: Value = serde_json::from_str(&text).expect("JSON");
    damaged["DRAM"]["1"]["out"] = json!([]);
    assert_eq!(
        said(&damaged.to_string(), None),
        [""; 0],
        "nothing says that it is interleaved"
    );
}

/// Both operands of an addition lie on each other in the ancestors; converted they are two.
#[test]
fn operands_come_apart() {
    let mut set: Value = serde_json::from_slice(&fixture("set.json")).expect("JSON");
    let workload = &mut set["2"][0];
    workload["layer_type"] = json!("element_wise");
    let tensor = workload["buffer"]
        .as_array_mut()
        .expect("a list")
        .iter_mut()
        .find(|t| t["type"] == "ifmap")
        .expect("an input");
    let mut second = tensor["source"][0].clone();
    (second["transfer_id"], second["layer_name"]) = (json!(77), json!("other"));
    tensor["source"]
        .as_array_mut()
        .expect("a list")
        .push(second);
    tensor["transfer_id"]
        .as_array_mut()
        .expect("a list")
        .push(json!(77));
    workload["ifmap"]["transfer_id"]
        .as_array_mut()
        .expect("a list")
        .push(json!(77));
    let schedule = Schedule::read(&set.to_string())
        .expect("a schedule")
        .convert(None);
    let workload = &schedule.cores[1].workloads[0];
    assert_eq!(
        workload
            .ifmaps
            .iter()
            .map(|ifmap| ifmap.transfers.to_vec())
            .collect::<Vec<_>>()[1],
        [77]
    );
    let tensors: Vec<_> = workload
        .buffer
        .iter()
        .filter(|tensor| tensor.current)
        .collect();
    assert!(
        tensors.len() == 2 && tensors[0].address != tensors[1].address,
        "{tensors:?}"
    );
    assert!(workload.tiles[0].ifmap2.is_some());
}

#[test]
fn unknown_keys_are_written_back_wherever_they_are() {
    let mut schedule = crate::generate::schedule(&plan());
    let places = [
        "/odd",
        "/0/0/odd",
        "/0/0/buffer/0/odd",
        "/0/0/buffer/0/source/0/odd",
        "/0/0/ofmap/0/destination/0/odd",
        "/-1/out/0/destination/0/odd",
    ];
    for (number, place) in places.iter().enumerate() {
        let (owner, key) = place.rsplit_once('/').expect("a pointer");
        schedule
            .pointer_mut(owner)
            .unwrap_or_else(|| panic!("{owner}"))[key] = json!({"number": number});
    }
    let written = Schedule::read(&schedule.to_string())
        .expect("a schedule")
        .write();
    let again: Value = serde_json::from_str(&written).expect("JSON");
    for place in places {
        assert_eq!(again.pointer(place), schedule.pointer(place), "{place}");
    }
}

#[test]
fn gzipped_files_are_read_and_damaged_ones_refused() {
    let text = crate::generate::schedule(&plan()).to_string();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    assert_eq!(FileKind::of(&packed), Some(FileKind::Schedule));
    assert_eq!(
        &*unzip(&packed, &Limits::default()).expect("whole"),
        text.as_bytes()
    );
    let error = Document::read(&packed[..packed.len() / 2], "x.json.gz", &Limits::default())
        .expect_err("cut off");
    assert_eq!(error.rule.code, "gemini-gzip");
}

#[test]
fn what_the_name_of_a_file_says_is_compared_with_it() {
    let text = crate::generate::schedule(&plan()).to_string();
    let said = |path: &str, batch| -> Vec<String> {
        let document =
            Document::read(text.as_bytes(), path, &Limits::default()).expect("a schedule");
        let codes = ["gemini-file-name", "gemini-batch", "gemini-batch-unmade"];
        let findings = document.findings(None, batch, &Limits::default());
        findings
            .into_iter()
            .filter(|f| codes.contains(&f.rule.code))
            .map(|f| f.to_string())
            .collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(said("x_b2_c2_bw16_schedule.json", None), none);
    assert_eq!(
        said("x_b7_9x9.json", None),
        none,
        "names of other tools mean what they mean"
    );
    assert_eq!(
        said("x_b7_c9_bw0_schedule.json", None),
        [
            "/, line 1, column 1: expected the batch of 7 that the file name says, found workloads for 2 images [gemini-file-name]",
            "/, line 1, column 1: expected the 9 cores that the file name says, found a mesh of 2 x 1 [gemini-file-name]",
            "/, line 1, column 1: expected a bandwidth above 0 in the file name, found bw0 [gemini-file-name]",
        ]
    );
    assert_eq!(
        said("x.json", Some(3)),
        [
            "/, line 1, column 1: expected workloads for 3 images, as --batch says, found 2 [gemini-batch-unmade]"
        ]
    );
    assert!(
        said("x.json", Some(1))[0]
            .ends_with("expected images 0 to 0, those of --batch, found image 1 [gemini-batch]")
    );
}

#[test]
fn a_front_end_file_is_no_schedule() {
    let bytes = crate::generate::network(&plan()).to_string();
    assert_eq!(FileKind::of(bytes.as_bytes()), Some(FileKind::Network));
    let error = Document::read(bytes.as_bytes(), "", &Limits::default()).expect_err("no schedule");
    assert!(error.message.contains("--network"), "{error}");
}

#[test]
fn errors_say_pointer_line_and_column() {
    let error = Schedule::read("{\"-1\": {\"in\": [],\n \"out\": []}, \"0\": [{\"buffer\": 3}],\n\"buffersize\": 1, \"top_batch_cut\": 1, \"xlen\": 1, \"ylen\": 1}").expect_err("wrong");
    assert_eq!(
        error.to_string(),
        "/0/0/buffer, line 2, column 31: expected a list, found 3 [gemini-json-value]"
    );
}

#[test]
fn faults_of_text_are_found() {
    let good = crate::generate::schedule(&plan()).to_string();
    assert_eq!(said(&good[..good.len() / 2], None), ["gemini-json"]);
    assert_eq!(said(&format!("{good} x"), None), ["gemini-json"]);
    assert_eq!(said(&format!("[{good}]"), None), ["gemini-json-value"]);
    assert_eq!(
        said(&good.replacen("{\"", "{\"0\": [], \"", 1), None),
        ["gemini-key-twice"]
    );
    let deep = format!(
        "{{\"x\": {}1{}, {}",
        "[".repeat(1000),
        "]".repeat(1000),
        &good[1..]
    );
    assert_eq!(said(&deep, None), ["gemini-limit"]);
}

#[test]
fn braces_in_names_do_not_mislead() {
    let good = crate::generate::schedule(&plan()).to_string();
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
        let assembly =
            Assembly::read(&bytes, &Limits::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            (assembly.instructions.len(), assembly.is_trace()),
            (8, name == "trace.txt")
        );
        assert_eq!(assembly.findings(), []);
        let program = assembly
            .lower(&machine, None, &Limits::default())
            .expect("a program");
        chipless_verify::verify(&program)
            .unwrap_or_else(|findings| panic!("{name}: {}", findings[0]));
        let outcome = chipless_sim::run(
            &chipless_sim::Verified::assume(&program),
            &mut chipless_sim::TimingOnly,
        );
        outcome.end.expect("done");
        if let Some(end) = assembly.end() {
            assert_eq!(
                machine.cycles_of(outcome.timeline.end),
                end,
                "the tokens alone put every instruction where the trace has it"
            );
        }
        let text = String::from_utf8(bytes).expect("text");
        let codes = |text: &str| match Assembly::read(text.as_bytes(), &Limits::default()) {
            Ok(assembly) => assembly
                .findings()
                .iter()
                .map(|f| f.rule.code)
                .collect::<Vec<_>>(),
            Err(finding) => vec![finding.rule.code],
        };
        assert_eq!(
            codes(&text.replace("'Next_Insts': ['ST']", "'Next_Insts': []")),
            ["gemini-token-missing"]
        );
        assert_eq!(
            codes(&text.replace("'Prev_Insts': ['PE']", "'Prev_Insts': []")),
            ["gemini-token-left"]
        );
        assert_eq!(
            codes(&text.replace("[pe_conv", "[xy_conv")),
            ["gemini-instruction"]
        );
        assert_eq!(
            codes(&text.replace("<DataFmt.INT8: 1>", "<DataFmt.INT8: 1")),
            ["gemini-instruction"]
        );
    }
}

proptest! {
    #![proptest_config(chipless_rounds::cases(24))]

    #[test]
    fn what_is_written_reads_the_same(columns in 1u32..3, rows in 1u32..3, blocks in 1u32..3, tiles in 1u32..4) {
        let plan = Plan { columns, rows, tiles, blocks, ..Plan::default() };
        let text = crate::generate::schedule(&plan).to_string();
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
        let mut bytes = names.get(which).map_or_else(|| crate::generate::schedule(&plan()).to_string().into_bytes(), |name| fixture(name));
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let limits = Limits::default();
        match FileKind::of(&bytes) {
            Some(FileKind::Assembly) => {
                if let Ok(assembly) = Assembly::read(&bytes, &limits) {
                    let _ = (assembly.findings(), assembly.info(), assembly.raw(), assembly.lower(&Machine::named("spec").expect("known"), None, &limits));
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
