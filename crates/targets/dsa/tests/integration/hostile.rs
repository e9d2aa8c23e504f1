//! Damaged, hostile and immense files: findings within bounded time and memory, never a panic.

use crate::{fixtures, read};
use chipless_dsa::Document;
use chipless_model::Limits;
use chipless_rounds::{are_all, rounds};
use std::fmt::Write;

fn survive(bytes: &[u8]) {
    let limits = Limits::default();
    let document = Document::read(bytes, &limits);
    let findings = chipless_dsa::lint(&document, &limits);
    assert!(findings.len() as u64 <= 3 * (limits.findings + 1));
    chipless_dsa::info(&document);
    chipless_dsa::raw(&document);
    chipless_dsa::recognize(bytes);
    if let Some(text) = document.format() {
        let again = read(&text);
        assert_eq!(
            again.format().as_deref(),
            Some(&*text),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn cut_and_changed_files_are_survived() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let pieces: [&[u8]; 12] = [
        b"\0",
        b"\n",
        b"(",
        b"----",
        b"#pragma",
        b"/*",
        b"\xFF\xFE",
        b"Input64: ",
        b"[",
        b":",
        b"$",
        b"0x",
    ];
    for (_, bytes) in fixtures("").into_iter().chain(fixtures("broken")) {
        // Odd, so that no place of a file of equal lines is left out in all files.
        let step = if are_all() { 1 } else { 7 };
        for cut in (0..=bytes.len()).step_by(step) {
            survive(&bytes[..cut]);
        }
        for _ in 0..rounds(200).min(bytes.len() * 10) {
            let mut changed = bytes.clone();
            for _ in 0..=random() % 3 {
                let at = random() % changed.len();
                match random() % 3 {
                    0 => changed[at] = random() as u8,
                    1 => drop(changed.drain(at..changed.len().min(at + random() % 9))),
                    _ => drop(
                        changed.splice(at..at, pieces[random() % pieces.len()].iter().copied()),
                    ),
                }
                if changed.is_empty() {
                    break;
                }
            }
            survive(&changed);
        }
    }
}

#[test]
fn nesting_ends() {
    let text = format!(
        "Input64: a\nb = {}a{}\nOutput64: b\n",
        "Copy(".repeat(100_000),
        ")".repeat(100_000)
    );
    let document = read(&text);
    assert_eq!(document.findings[0].rule.code, "dfg-nesting");
    assert_eq!(document.findings[0].place.position.unwrap().0, 2);
}

#[test]
fn growth_ends() {
    let mut text = "Input64: a\nv0 = a a\n".to_owned();
    for index in 1..64 {
        let _ = writeln!(text, "v{index} = v{} v{}", index - 1, index - 1);
    }
    assert_eq!(read(&text).findings[0].rule.code, "dfg-concatenation");
    assert_eq!(
        read("Input64: a[4000000000]\nOutput64: a[4000000000]\n").findings[0]
            .rule
            .code,
        "dfg-limit"
    );
    let ports = "Input64: a\n".repeat(1_000_001);
    let document = read(&ports);
    assert!(!document.is_complete());
    assert!(document.findings.len() < 600);
    let limits = Limits {
        text_bytes: 5,
        ..Limits::default()
    };
    assert_eq!(
        Document::read(b"Input64: a\n", &limits).findings[0]
            .rule
            .code,
        "dfg-limit"
    );
}

#[test]
fn a_million_names_are_read_in_a_moment() {
    let mut text = "Input64: v0\n".to_owned();
    for index in 0..300_000 {
        let _ = writeln!(text, "v{} = Add_I64(v{index}, {index})", index + 1);
    }
    text += "Output64: v300000\n";
    let document = read(&text);
    assert!(document.is_complete());
    assert_eq!(document.graph.counts().instructions, 300_000);
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let document = Document::read(
        b"Input64: a\nb = Add_I64(a, \0\0\0 1)\n# \xFF\xFE\nOutput64: \xE9\n",
        &Limits::default(),
    );
    let places: Vec<_> = document
        .findings
        .iter()
        .map(|finding| finding.place.position.unwrap())
        .collect();
    assert_eq!(places, [(2, 16), (4, 11)]);
}
