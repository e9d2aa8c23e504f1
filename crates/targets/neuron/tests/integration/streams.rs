//! Every rule about instructions finds the fault that it is for: one field of one slot of a sound program is changed.

use chipless_model::Limits;
use chipless_neuron::pack::{header_json, pack};
use chipless_neuron::{Container, Neff, lint};
use std::collections::BTreeSet;

/// Member, slot, offset in the slot, and the bytes that take the place of those there.
type Change<'c> = (&'c str, usize, usize, &'c [u8]);

fn program() -> Vec<u8> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../fixtures/neuron/matmul_five_engines/program.neff"
    );
    std::fs::read(path).expect("the fixture is there")
}

fn codes(change: Option<Change<'_>>) -> Vec<&'static str> {
    let limits = Limits::default();
    let file = program();
    let container = Container::open(&file, &limits).expect("sound");
    let mut members: Vec<(String, Vec<u8>)> = container
        .members()
        .map(|m| (m.path.to_owned(), m.bytes.to_vec()))
        .collect();
    if let Some((member, slot, offset, bytes)) = change {
        let (_, stream) = members
            .iter_mut()
            .find(|(path, _)| path == member)
            .expect("the member is there");
        stream[slot * 64 + offset..][..bytes.len()].copy_from_slice(bytes);
    }
    let header = header_json(&container);
    let changed = pack(
        members.iter().map(|(p, b)| (p.as_str(), b.as_slice())),
        Some(&header),
        &limits,
    )
    .expect("packed");
    let container = Container::open(&changed, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("sound");
    lint(&neff, &limits).iter().map(|f| f.rule.code).collect()
}

#[test]
fn every_rule_finds_its_fault() {
    assert_eq!(codes(None), [""; 0]);
    let (pe, dve, pool, sp) = (
        "sg00/PE.bin",
        "sg00/DVE.bin",
        "sg00/Pool.bin",
        "sg00/SP.bin",
    );
    let cases: &[(&str, Change<'_>)] = &[
        ("neff-slot-length", (pe, 2, 1, &[15])),
        ("neff-opcode", (pe, 2, 0, &[0xee])),
        ("neff-not-executed", (pe, 2, 0, &[0x45])),
        ("neff-not-executed", (pe, 2, 0x2c, &[0x10])),
        ("neff-not-executed", (pe, 3, 0x2b, &[0xff])),
        ("neff-event-mode", (pe, 1, 4, &[0x77])),
        ("neff-element-code", (pe, 2, 0x20, &[0])),
        ("neff-tile-bounds", (pe, 2, 0x10, &[0, 0, 0, 0xf0])),
        (
            "neff-start-partition",
            (pe, 2, 0x10, &[0x3e, 0x40, 0x04, 0]),
        ),
        ("neff-tile-size", (pe, 2, 0x26, &[0])),
        ("neff-tile-size", (pe, 3, 0x27, &[0])),
        ("neff-tile-size", (pe, 2, 0x26, &[129])),
        ("neff-psum-bank", (pe, 3, 0x30, &[0xf0, 0x07, 0, 2])),
        ("neff-element-count", (dve, 2, 0x1a, &[47])),
        ("neff-instruction", (dve, 2, 0x0e, &[0xc4])),
        ("neff-dma-target", (sp, 1, 0x16, &[0, 0x50])),
        ("neff-dma-variable", (sp, 1, 0x14, &[99])),
        ("neff-dma-bounds", (sp, 1, 0x10, &[0, 0, 0, 0x7f])),
        ("neff-dma-count", (sp, 1, 0x24, &[63])),
        ("neff-dma-writes-input", (pool, 3, 0x2c, &[0])),
        ("neff-dma-overlap", (sp, 1, 0x30, &[0, 0, 0, 0])),
        ("neff-dma-queue", (sp, 1, 0x0e, &[15])),
        ("neff-kept-bytes", (sp, 1, 0x28, &[0, 0, 0, 0])),
        ("neff-kept-bytes", (dve, 2, 0x30, &[0, 0x10, 0, 0])),
        ("neff-operand-alignment", (pe, 2, 0x10, &[0x3f])),
        ("neff-psum-group", (pe, 3, 0x2b, &[3])),
        ("neff-psum-group", (pe, 5, 0x2b, &[0])),
        ("neff-psum-group", (pe, 5, 0x2b, &[3])),
        ("neff-wait-part", (pe, 1, 8, &[15])),
        ("neff-output-not-awaited", (pool, 4, 4, &[0])),
    ];
    let mut hit: BTreeSet<&str> = BTreeSet::new();
    for (code, change) in cases {
        let found = codes(Some(*change));
        assert!(
            found.contains(code),
            "{change:?} should be {code}, found {found:?}"
        );
        hit.insert(code);
    }
    let all = chipless_neuron::rules::stream::ALL
        .iter()
        .map(|rule| rule.code);
    let untested: Vec<&str> = all
        .filter(|code| !hit.contains(code) && *code != "neff-stream-length")
        .collect();
    assert!(untested.is_empty(), "not tested: {untested:?}");
}
