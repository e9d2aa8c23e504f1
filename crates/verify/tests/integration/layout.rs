//! Where buffers lie: apart, inside their memories, aligned; and programs that name what they do not have.

use chipless_model::{Buffer, Builder, Limits, MemoryId, MemoryKind, PieceId, Role};
use proptest::prelude::*;

/// Codes that are found for buffers of these addresses, sizes and alignments in a memory of 64 bytes.
fn codes(buffers: &[(Option<u64>, u64, u64)]) -> Vec<&'static str> {
    let mut build = Builder::new("test", &Limits::default());
    let memories = ["a", "b"].map(|name| build.memory(name, 64, MemoryKind::Scratchpad));
    let buffer =
        |i: usize, memory: MemoryId, (address, size, alignment): (Option<u64>, u64, u64)| Buffer {
            address,
            alignment,
            ..Buffer::new(format!("b{i}"), memory, size, Role::State)
        };
    // The same bytes of another memory are others.
    build.buffer(buffer(99, memories[1], (Some(0), 64, 1)));
    for (i, found) in buffers.iter().enumerate() {
        build.buffer(buffer(i, memories[0], *found));
    }
    let program = build.finish().expect("a program");
    match chipless_verify::verify(&program) {
        Ok(verified) => verified.warnings().iter().map(|f| f.rule.code).collect(),
        Err(findings) => findings.iter().map(|f| f.rule.code).collect(),
    }
}

#[test]
fn buffers_lie_apart_inside_and_aligned() {
    assert!(codes(&[(Some(0), 32, 1), (Some(32), 32, 32), (None, 64, 8)]).is_empty());
    assert!(codes(&[(Some(16), 0, 1), (Some(0), 32, 1), (Some(32), 0, 1)]).is_empty());
    assert_eq!(
        codes(&[(Some(0), 33, 1), (Some(32), 8, 1)]),
        ["buffer-overlap"]
    );
    assert_eq!(codes(&[(Some(40), 25, 8)]), ["buffer-beyond-memory"]);
    assert_eq!(codes(&[(Some(u64::MAX), 2, 1)]), ["buffer-beyond-memory"]);
    assert!(codes(&[(None, 65, 8)]).is_empty(), "it has no place yet");
    assert_eq!(codes(&[(Some(4), 8, 8)]), ["buffer-misaligned"]);
}

proptest! {
    #[test]
    fn overlaps_are_those_of_the_definition(
        buffers in prop::collection::vec((0u64..56, 0u64..9), 0..8),
    ) {
        let overlap = buffers.iter().enumerate().any(|(i, (a, n))| {
            buffers[..i].iter().any(|(b, m)| a.max(b) < &(a + n).min(b + m))
        });
        let given: Vec<_> = buffers.iter().map(|(a, n)| (Some(*a), *n, 1)).collect();
        prop_assert_eq!(codes(&given).contains(&"buffer-overlap"), overlap);
    }
}

#[test]
fn a_program_that_names_what_it_does_not_have_is_refused() {
    let mut build = Builder::new("test", &Limits::default());
    build.program.initial.push(PieceId::from_raw(7));
    let program = std::mem::take(&mut build.program);
    let found = chipless_verify::verify(&program).expect_err("no piece 7");
    assert_eq!(found[0].rule.code, "program-malformed");
    build.program.initial.push(PieceId::from_raw(7));
    let error = build.finish().expect_err("no piece 7");
    assert_eq!(error.to_string(), "a piece that is released does not exist");
}

#[test]
fn limits_bound_what_is_built() {
    let limits = Limits {
        memory_bytes: 100,
        ..Limits::default()
    };
    let mut build = Builder::new("test", &limits);
    let memory = build.memory("m", 1000, MemoryKind::Dram);
    build.buffer(Buffer::new("b", memory, 101, Role::State));
    let error = build.finish().expect_err("101 bytes");
    assert_eq!(
        error.to_string(),
        "the program exceeds the limit memory_bytes = 100"
    );
}
