//! One fault at a time in a sound container.

use crate::common::fixture;
use chipless_spu::femto::Femto;

/// What is said of a container: codes and severities.
fn said(bytes: &[u8]) -> Vec<&'static str> {
    match Femto::read(bytes) {
        Ok(femto) => femto.verify().iter().map(|f| f.rule.code).collect(),
        Err(finding) => vec![finding.rule.code],
    }
}

fn with(edits: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = fixture("container", "program.femto");
    for (at, new) in edits {
        bytes[*at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

#[test]
fn a_sound_container_has_no_findings_whatever_its_contents() {
    assert_eq!(said(&with(&[])), [""; 0]);
    assert_eq!(
        said(&with(&[(768 + 8, &[0xab; 8]), (26, b"another")])),
        [""; 0]
    );
}

#[test]
fn every_fault_has_its_code() {
    // The model's configuration stands at 256, its first vector at 272; the chip's at 512, its core at 522; the page at 768.
    for (code, what, edits) in [
        ("femto-file", "another byte order", (5, &[2][..])),
        ("femto-file", "a name that is no text", (26, &[0xff])),
        ("femto-size", "one page more than there are", (258, &[2])),
        ("femto-size", "a section that leaves a gap", (84, &[1])),
        (
            "femto-size",
            "a sequence of more vectors than its record",
            (317, &[9]),
        ),
        ("femto-part", "a chip that nobody knows", (512, &[2])),
        ("femto-key", "key 33", (513, &[33])),
        (
            "femto-clock",
            "more MHz than the chip's highest",
            (514, &[151]),
        ),
        ("femto-core", "a core that the chip lacks", (522, &[2])),
        ("femto-core", "a status that does not exist", (523, &[3])),
        ("femto-bank", "a bank that the chip lacks", (526, &[0x05])),
        ("femto-bank", "a bank twice", (528, &[0x00])),
        ("femto-bank", "a state that does not exist", (527, &[6])),
        ("femto-vector", "a core that the chip lacks", (274, &[2])),
        ("femto-vector", "12 bits", (275, &[12])),
        ("femto-vector", "padded below its length", (278, &[0])),
        ("femto-vector", "a start beyond the program", (281, &[0x10])),
        ("femto-vector", "a kind that does not exist", (273, &[3])),
        ("femto-page", "63 words", (770, &[63])),
        ("femto-page", "a number out of turn", (768, &[1])),
        (
            "femto-page",
            "an address outside all memories",
            (775, &[0x7f]),
        ),
        ("femto-page", "an address between words", (772, &[2])),
        (
            "femto-page",
            "over the end of its bank",
            (772, &[0xfc, 0xff]),
        ),
    ] {
        let found = said(&with(&[edits]));
        assert!(found.contains(&code), "{what}: {found:?}");
    }
}

#[test]
fn the_same_page_is_judged_by_the_chip() {
    // 0x110000 is data memory of core 0 on SPU-001, and in no memory of SPU-150.
    assert!(said(&with(&[(512, &[4])])).contains(&"femto-page"));
    let moved = with(&[(512, &[4]), (772, &0x2030_0000u32.to_le_bytes())]);
    assert_eq!(said(&moved), [""; 0]);
    let simulated = with(&[(512, &[3]), (772, &0x0030_0000u32.to_le_bytes())]);
    assert_eq!(said(&simulated), [""; 0]);
}

#[test]
fn a_damaged_byte_never_goes_unread() {
    let good = fixture("container", "program.femto");
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let _ = said(&bytes);
        }
        let _ = said(&good[..at]);
    }
}
