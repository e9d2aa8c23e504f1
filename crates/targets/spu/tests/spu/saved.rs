//! `.pt` files: what is read, and what is refused by its name.

use crate::common::{FIXTURES, fixture};
use chipless_model::{Finding, Limits};
use chipless_spu::fqir::{MACHINE, Machine, Plan, Runner, lower, lower_watched};
use proptest::prelude::*;
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

fn pickle_of(name: &str) -> Vec<u8> {
    let bytes = fixture(name, "model.pt");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let mut pickle = Vec::new();
    archive
        .by_name("model/data.pkl")
        .expect("a pickle")
        .read_to_end(&mut pickle)
        .expect("whole");
    pickle
}

fn zipped(members: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).expect("a member");
        writer.write_all(bytes).expect("room");
    }
    writer.finish().expect("an archive").into_inner()
}

fn read(bytes: &[u8], limits: &Limits) -> Result<(), Box<Finding>> {
    Plan::read_saved(bytes, limits).map(drop)
}

/// What is said of a pickle.
fn refused(pickle: &[u8]) -> Finding {
    let bytes = zipped(&[("m/data.pkl", pickle)], CompressionMethod::Stored);
    *read(&bytes, &Limits::default()).expect_err("refused")
}

fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

fn text(text: &str) -> Vec<u8> {
    let mut out = vec![b'X'];
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
    out
}

#[test]
fn other_names_and_methods_are_the_same_graph() {
    let pickle = pickle_of("choice");
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = zipped(
            &[("größe/data.pkl", &pickle), ("größe/version", b"3\n")],
            method,
        );
        assert_eq!(read(&bytes, &Limits::default()), Ok(()));
    }
}

#[test]
fn calls_of_every_kind_are_refused_by_name() {
    let call = [global("posix", "system"), text("true"), b"\x85R".to_vec()].concat();
    let cases: [(&str, Vec<u8>); 8] = [
        ("posix.system", call),
        (
            "posix.system",
            [b"(".to_vec(), text("true"), b"iposix\nsystem\n".to_vec()].concat(),
        ),
        ("posix.system", b"\x8c".to_vec()),
        ("builtins.eval", global("builtins", "eval")),
        (
            "fmot.fqir.graph_proto.graph_proto.os.system",
            global("fmot.fqir.graph_proto.graph_proto", "os.system"),
        ),
        ("PERSID", [text("storage"), b"Q".to_vec()].concat()),
        ("EXT", b"\x82\x01".to_vec()),
        (
            "NEWOBJ",
            [global("numpy", "ndarray"), b")\x81".to_vec()].concat(),
        ),
    ];
    for (named, opcodes) in cases {
        let finding = refused(&[b"\x80\x02".to_vec(), opcodes.clone(), b".".to_vec()].concat());
        let known = ["fqir-pickle-call", "fqir-pickle"].contains(&finding.rule.code);
        assert!(known, "{finding}");
        if opcodes != b"\x8c" {
            assert!(
                finding.rule.code == "fqir-pickle-call" && finding.message.contains(named),
                "{finding}"
            );
        }
    }
}

#[test]
fn claims_of_size_are_not_believed() {
    for pickle in [
        &b"\x80\x02X\xf0\xff\xff\xff."[..],
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"\x80\x02Nr\xff\xff\xff\xff.",
        b"\x80\x02j\xff\xff\xff\x7f.",
        b"\x80\x02",
        b"\x80\x02t.",
        b"",
    ] {
        assert_eq!(refused(pickle).rule.code, "fqir-pickle");
    }
    assert_eq!(refused(b"\x80\x04N.").rule.code, "fqir-pickle-protocol");
    assert_eq!(refused(b"\x80\x02N.").rule.code, "fqir-saved");
    let deep = [
        b"\x80\x02".to_vec(),
        vec![b']'; 100_000],
        vec![b'a'; 99_999],
        b".".to_vec(),
    ]
    .concat();
    assert_eq!(refused(&deep).rule.code, "fqir-saved");
    let limits = Limits {
        declarations: 1000,
        ..Limits::default()
    };
    let bytes = zipped(&[("m/data.pkl", &deep)], CompressionMethod::Stored);
    assert_eq!(
        read(&bytes, &limits).expect_err("too many").rule.code,
        "fqir-limit"
    );
}

#[test]
fn archives_tell_the_truth() {
    let pickle = pickle_of("dense");
    let none = zipped(&[("m/version", b"3")], CompressionMethod::Stored);
    let two = zipped(
        &[("a/data.pkl", &pickle), ("b/data.pkl", &pickle)],
        CompressionMethod::Stored,
    );
    let zeros = zipped(
        &[("m/data.pkl", &vec![0; 1 << 20])],
        CompressionMethod::Deflated,
    );
    let limits = Limits {
        inflated_bytes: 1 << 16,
        ..Limits::default()
    };
    assert_eq!(
        read(&none, &Limits::default()).expect_err("none").rule.code,
        "fqir-archive"
    );
    assert_eq!(
        read(&two, &Limits::default()).expect_err("two").rule.code,
        "fqir-archive"
    );
    assert_eq!(
        read(&zeros, &limits).expect_err("too large").rule.code,
        "fqir-limit"
    );
    let whole = zipped(&[("m/data.pkl", &pickle)], CompressionMethod::Stored);
    for cut in [10, whole.len() / 2, whole.len() - 5] {
        assert!(read(&whole[..cut], &Limits::default()).is_err());
    }
    // The directory: sizes, checksum, method, place.
    let entry = whole
        .windows(4)
        .rposition(|w| w == b"PK\x01\x02")
        .expect("a directory");
    for (at, value) in [
        (24, 0x7fff_ffffu32),
        (20, 0x7fff_ffff),
        (42, 0x7fff_ff00),
        (16, 0x1234_5678),
    ] {
        let mut bytes = whole.clone();
        bytes[entry + at..entry + at + 4].copy_from_slice(&value.to_le_bytes());
        assert!(read(&bytes, &Limits::default()).is_err(), "{at}");
    }
}

#[test]
fn a_graph_that_is_written_as_a_plan_computes_the_same() {
    let (limits, machine) = (Limits::default(), Machine::parse(MACHINE).expect("sound"));
    for name in FIXTURES {
        let graph = fixture(name, "model.pt");
        let saved = Plan::read_saved(&graph, &limits).expect("a graph");
        let text = saved.write().expect("a plan");
        let written =
            Plan::read(text.as_bytes(), &limits).unwrap_or_else(|e| panic!("{name}: {e}"));
        let lowered =
            [&saved, &written].map(|plan| lower(plan, &machine, &limits).expect("lowered"));
        let [mut first, mut second] = lowered
            .each_ref()
            .map(|lowered| Runner::new(lowered, &limits).expect("fits"));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for step in 0..4 {
            for (input, port) in lowered[0].program.interface.inputs.iter().enumerate() {
                let values: Vec<i64> = (0..port.shape.iter().product::<u64>() as i64)
                    .map(|n| (n * 37 + step * 11) % 90 - 45)
                    .collect();
                first.set_input(input, &values);
                second.set_input(input, &values);
            }
            first.step().expect("runs");
            second.step().expect("runs");
            for output in 0..lowered[0].program.interface.outputs.len() {
                first.output(output, &mut a);
                second.output(output, &mut b);
                assert_eq!(a, b, "{name}, step {step}");
            }
        }
    }
}

#[test]
fn health_counts_what_is_clipped() {
    let (limits, machine) = (Limits::default(), Machine::parse(MACHINE).expect("sound"));
    let graph = fixture("choice", "model.pt");
    let plan = Plan::read_saved(&graph, &limits).expect("a graph");
    let (lowered, health) = lower_watched(&plan, &machine, &limits).expect("lowered");
    let mut runner = Runner::new(&lowered, &limits).expect("fits");
    // total is [100, -100, 32767, 0]: one of four sums is clipped.
    runner.set_input(0, &[1]);
    runner.set_input(1, &[1, -1, 1, 1]);
    runner.step().expect("runs");
    let health = health.lock().expect("unpoisoned");
    let nodes: Vec<_> = health
        .executed()
        .map(|n| (&*n.graph, n.index, &*n.operation, n.values, n.saturated))
        .collect();
    assert_eq!(
        nodes,
        [
            ("ARITH/0/true", 0, "vvadd", 4, 1),
            ("ARITH/0/true", 1, "assign", 0, 0)
        ]
    );
}

proptest! {
    #![proptest_config(chipless_rounds::cases(300))]

    #[test]
    fn changed_pickles_are_survived(at in 0usize..2000, value: u8, cut in 0usize..4000) {
        let mut pickle = pickle_of("choice");
        let length = pickle.len();
        pickle[at % length] = value;
        pickle.truncate(cut.max(1).min(length));
        let limits = Limits { memory_bytes: 64 << 20, tasks: 20_000, ..Limits::default() };
        let bytes = zipped(&[("m/data.pkl", &pickle)], CompressionMethod::Stored);
        if let Ok(plan) = Plan::read_saved(&bytes, &limits) {
            let machine = Machine::parse(MACHINE).expect("sound");
            if let Ok(lowered) = lower(&plan, &machine, &limits) && let Ok(mut runner) = Runner::new(&lowered, &limits) {
                let _ = runner.step();
            }
        }
    }
}
