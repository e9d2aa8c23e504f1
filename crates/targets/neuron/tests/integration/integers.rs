//! Integers on their way through binary32: what they become, and that a run says so.

use crate::common::{assembled, buffer, with_program};
use chipless_model::{Limits, Storage};
use chipless_sim::{Functional, Verified, run};

/// What a run of a program leaves in a buffer, and what it remarks. `given` are buffers with the bytes that they start with.
fn ran(text: &str, given: &[(&str, usize, &[u8])], result: &str) -> (Vec<u8>, Vec<String>) {
    with_program(&assembled(text), |program, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        for (name, at, bytes) in given {
            let held = storage.bytes_mut(buffer(program, name));
            held[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        let end = run(
            &Verified::assume(program),
            &mut Functional::new(&mut storage),
        )
        .end;
        assert_eq!(end, Ok(()), "{text}");
        let remarks = storage.remarks().iter();
        let said = remarks.map(|r| format!("{} {}: {}", r.rule.code, r.tasks, r.message));
        let said = said.collect();
        (storage.bytes(buffer(program, result)).to_vec(), said)
    })
}

/// A descriptor between two or three tensors of so many bytes.
fn transfer(
    operation: &str,
    sources: &[(&str, &[u8])],
    to: &str,
    bytes: usize,
) -> (Vec<u8>, Vec<String>) {
    let names = ["x", "y"];
    let list = |each: &dyn Fn(&str, usize) -> String, join: &str| {
        let parts = names
            .iter()
            .zip(sources)
            .map(|(name, (_, bytes))| each(name, bytes.len()));
        parts.collect::<Vec<_>>().join(join)
    };
    let inputs = list(&|name, n| format!("input {name} uint8 [{n}]\n"), "");
    let variables = list(&|name, _| format!("var {name} input\n"), "");
    let side = |(name, (element, bytes)): (&&str, &(&str, &[u8]))| {
        format!("{name} [1:{}] {element}", bytes.len())
    };
    let from: Vec<String> = names.iter().zip(sources).map(side).collect();
    let text = format!(
        "neff t trn2\n{inputs}output o uint8 [{bytes}]\nsubgraph sg00\nqueue q data owner=sp\n{variables}var o output\nengine sp\n\
         dma id=0 queue=q\n  {operation} o [1:{bytes}] {to} <- {}\n",
        from.join(", ")
    );
    let given: Vec<(&str, usize, &[u8])> = names
        .iter()
        .zip(sources)
        .map(|(name, (_, bytes))| (*name, 0, *bytes))
        .collect();
    ran(&text, &given, "o")
}

/// Element types of descriptors with their bytes, and the codes of 0, 1, 2 and 3 of those that are floats.
const FLOATS: &[(&str, usize, [u32; 4])] = &[
    ("float8e3", 1, [0, 0x30, 0x40, 0x48]),
    ("float8e4", 1, [0, 0x38, 0x40, 0x44]),
    ("float8e5", 1, [0, 0x3c, 0x40, 0x42]),
    ("float16", 2, [0, 0x3c00, 0x4000, 0x4200]),
    ("bfloat16", 2, [0, 0x3f80, 0x4000, 0x4040]),
    ("float32", 4, [0, 0x3f80_0000, 0x4000_0000, 0x4040_0000]),
    ("float32r", 4, [0, 0x3f80_0000, 0x4000_0000, 0x4040_0000]),
];
const INTEGERS: &[(&str, usize)] = &[
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("uint8", 1),
    ("uint16", 2),
    ("uint32", 4),
    ("uint64", 8),
];

/// The range of an integer type.
fn range((name, bytes): (&str, usize)) -> (i128, i128) {
    let bits = 8 * bytes as u32;
    if name.starts_with('u') {
        (0, (1 << bits) - 1)
    } else {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    }
}

/// A value as an element, if the type holds it exactly.
fn element(name: &str, value: i128) -> Option<Vec<u8>> {
    if let Some((_, size, codes)) = FLOATS.iter().find(|(known, ..)| *known == name) {
        let code = match usize::try_from(value) {
            Ok(small) if small < 4 => codes[small],
            _ if name.starts_with("float32") && (value as f32) as i128 == value => {
                (value as f32).to_bits()
            }
            _ => return None,
        };
        return Some(code.to_le_bytes()[..*size].to_vec());
    }
    let integer = *INTEGERS.iter().find(|(known, _)| *known == name)?;
    let (low, high) = range(integer);
    (low..=high)
        .contains(&value)
        .then(|| value.to_le_bytes()[..integer.1].to_vec())
}

/// Powers of two and their neighbours, of both signs.
fn values() -> Vec<i128> {
    let around = |bit: u32| [(1i128 << bit) - 1, 1 << bit, (1 << bit) + 1];
    let positive = [0, 1, 7, 15, 23, 24, 25, 30, 31, 40, 62, 63]
        .into_iter()
        .flat_map(around);
    positive
        .flat_map(|value| [value, -value])
        .chain([2, 3])
        .collect()
}

#[test]
fn every_cast_of_two_types_goes_through_binary32() {
    let names: Vec<&str> = FLOATS
        .iter()
        .map(|(name, ..)| *name)
        .chain(INTEGERS.iter().map(|(name, _)| *name))
        .collect();
    assert_eq!(names.len() * names.len(), 225);
    let mut casts_of_wide = 0;
    for from in &names {
        for to in &names {
            // What comes out, of the values that the first type holds and whose binary32 neighbours the second one holds.
            let expected = |value: i128| {
                let passed = if from == to {
                    value
                } else {
                    (value as f32) as i128
                };
                let integer = INTEGERS.iter().find(|(known, _)| known == to);
                let ends = integer.map(|integer| range(*integer));
                let held = ends.map_or(passed, |(low, high)| passed.clamp(low, high));
                Some((
                    element(from, value)?,
                    element(to, held)?,
                    passed != value,
                    ends.is_some(),
                ))
            };
            let cases: Vec<_> = values().into_iter().filter_map(expected).collect();
            assert!(cases.len() >= 4, "{from} to {to}");
            let source: Vec<u8> = cases.iter().flat_map(|case| case.0.clone()).collect();
            let wanted: Vec<u8> = cases.iter().flat_map(|case| case.1.clone()).collect();
            let (found, said) = transfer("cast", &[(from, &source)], to, wanted.len());
            assert_eq!(found, wanted, "{from} to {to}");
            let loses = cases.iter().any(|case| case.2 && case.3);
            assert_eq!(!said.is_empty(), loses, "{from} to {to}: {said:?}");
            casts_of_wide += usize::from(loses);
        }
    }
    // Four types of 32 and 64 bits to each of the seven other types of integers.
    assert_eq!(casts_of_wide, 28);
}

fn int32(values: &[i32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn a_transfer_that_adds_integers_says_which_lost_digits() {
    let add = |x: &[i32], y: &[i32]| {
        transfer(
            "add",
            &[("int32", &int32(x)), ("int32", &int32(y))],
            "int32",
            4 * x.len(),
        )
    };
    let (sums, said) = add(&[1, 16_777_217, 3], &[0, 0, 4]);
    assert_eq!(sums, int32(&[1, 16_777_216, 7]));
    assert_eq!(
        said,
        [
            "neff-integer-rounded 1: element 1 of a source is 16777217 (int32) and becomes 16777216 in binary32"
        ]
    );
    // Both terms fit, their sum does not.
    let (sums, said) = add(&[5, 16_777_216], &[5, 1]);
    assert_eq!(sums, int32(&[10, 16_777_216]));
    assert_eq!(
        said,
        [
            "neff-integer-rounded 1: element 1 of the result should be 16777217 (int32); binary32 gives 16777216"
        ]
    );
    // Multiples of a power of two keep their digits, however large.
    let (sums, said) = add(&[i32::MIN, 1 << 30], &[0, 1 << 10]);
    assert_eq!(
        (sums, said),
        (int32(&[i32::MIN, (1 << 30) + (1 << 10)]), Vec::new())
    );
    // A copy moves bytes.
    let (moved, said) = transfer("copy", &[("int32", &int32(&[16_777_217]))], "int32", 4);
    assert_eq!((moved, said), (int32(&[16_777_217]), Vec::new()));
}

/// The first element of a partition behind a stream that adds what stands at 0x4000 and 0x5000 into 0x6000.
fn added(
    engine: &str,
    destination: &str,
    streams: usize,
    x: i32,
    y: i32,
) -> ([u8; 4], Vec<String>) {
    let line = format!(
        "TENSOR_TENSOR dst={destination}@0x6000[1,0,0][1,1,1] src0=int32@0x4000[1,0,0][1,1,1] src1=int32@0x5000[1,0,0][1,1,1] op=add channels=32\n"
    );
    let text = format!(
        "neff t trn2\ninput x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\nengine {engine}\n{}",
        line.repeat(streams)
    );
    let (x, y) = (x.to_le_bytes(), y.to_le_bytes());
    let (bytes, said) = ran(
        &text,
        &[("sg00.sbuf", 0x4000, &x), ("sg00.sbuf", 0x5000, &y)],
        "sg00.sbuf",
    );
    (bytes[0x6000..0x6004].try_into().expect("four bytes"), said)
}

#[test]
fn engines_add_integers_in_binary32_but_for_gpsimd() {
    let (sum, said) = added("dve", "int32", 3, 16_777_216, 1);
    assert_eq!(i32::from_le_bytes(sum), 16_777_216);
    assert_eq!(
        said,
        [
            "neff-integer-rounded 3: element 0 of the result should be 16777217 (int32); binary32 gives 16777216"
        ]
    );
    let (sum, said) = added("dve", "int32", 1, 16_777_219, 0);
    assert_eq!(i32::from_le_bytes(sum), 16_777_220);
    assert!(
        said[0].contains("element 0 of a source is 16777219"),
        "{said:?}"
    );
    // Three tensors of int32 on GpSimd: native integers.
    let (sum, said) = added("pool", "int32", 1, 16_777_217, 1);
    assert_eq!((i32::from_le_bytes(sum), said), (16_777_218, Vec::new()));
    // A result that is no integer is rounded anyhow.
    let (sum, said) = added("dve", "fp32", 1, 16_777_217, 0);
    assert_eq!((f32::from_le_bytes(sum), said), (16_777_216.0, Vec::new()));
}

#[test]
fn a_cast_of_an_engine_says_what_it_lost() {
    let cast = |from: &str, to: &str, value: u32| {
        let text = format!(
            "neff t trn2\ninput x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\nengine dve\n\
             COPY dst={to}@0x6000[1,0,0,0][1,1,1,1] src={from}@0x4000[1,0,0,0][1,1,1,1] channels=32\n"
        );
        let given = value.to_le_bytes();
        let (bytes, said) = ran(&text, &[("sg00.sbuf", 0x4000, &given)], "sg00.sbuf");
        (
            u32::from_le_bytes(bytes[0x6000..0x6004].try_into().expect("four bytes")),
            said.len(),
        )
    };
    assert_eq!(cast("uint32", "int32", 33_554_433), (33_554_432, 1));
    assert_eq!(cast("uint32", "int32", 33_554_436), (33_554_436, 0));
    assert_eq!(cast("uint32", "uint32", 33_554_433), (33_554_433, 0));
}
