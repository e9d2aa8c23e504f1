//! Mutations that keep the structure of a text of numbers and brackets (JSON, YAML in flow style, graphs), so that more of them get past the reader.

use chipless_model::SplitMix64;
use std::ops::Range;

/// Numbers that hurt.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "7",
    "255",
    "256",
    "65535",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "0.5",
    "1e308",
];

/// Changes one number or one value in brackets of a text; nothing where it has none.
pub fn mutate_values(bytes: &mut Vec<u8>, seed: u64) {
    let mut random = SplitMix64(seed);
    let mut below = |n: usize| (random.number() % n.max(1) as u64) as usize;
    let new = if below(4) == 0 {
        let spans = values(bytes);
        if spans.is_empty() {
            return;
        }
        // Another value of the text takes its place, or it is gone.
        let (old, other) = (
            spans[below(spans.len())].clone(),
            spans[below(spans.len())].clone(),
        );
        let other = bytes[other].to_vec();
        (old, if below(4) == 0 { Vec::new() } else { other })
    } else {
        let numbers = numbers(bytes);
        if numbers.is_empty() {
            return;
        }
        let old = numbers[below(numbers.len())].clone();
        let new = if below(2) == 0 {
            NUMBERS[below(NUMBERS.len())].as_bytes().to_vec()
        } else {
            bytes[numbers[below(numbers.len())].clone()].to_vec()
        };
        (old, new)
    };
    bytes.splice(new.0, new.1);
}

/// Where digits stand.
fn numbers(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match found.last_mut() {
            _ if !byte.is_ascii_digit() => {}
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

/// Where brackets stand with what is in them.
fn values(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' | b'{' | b'(' => open.push(at),
            b']' | b'}' | b')' => found.extend(open.pop().map(|start| start..at + 1)),
            _ => {}
        }
    }
    found
}
