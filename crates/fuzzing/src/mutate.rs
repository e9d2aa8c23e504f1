//! Mutations that keep the structure of a text (JSON, YAML, graphs, assembler text, lists) or the places of a binary file (ELF, tar), so that more of
//! them get past the reader.

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

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        (self.0.number() % n.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let at = self.below(list.len());
        list.get(at)
    }
}

/// Changes a number, a word, an element of a list, a value in brackets or a line of a text; nothing where it has none. Most numbers change a
/// little, or become another number of the text: what is far off is refused before it does harm.
pub fn mutate_values(bytes: &mut Vec<u8>, seed: u64) {
    let random = &mut Random(SplitMix64(seed));
    let change = match random.below(16) {
        0 => hurting_number(bytes, random),
        1..=5 => near_number(bytes, random),
        6 => alike(bytes, &numbers(bytes), random),
        7 | 8 => alike(bytes, &words(bytes), random),
        9 | 10 => alike(bytes, &values(bytes), random),
        11 | 12 => element(bytes, random),
        _ => line(bytes, random),
    };
    if let Some((old, new)) = change {
        bytes.splice(old, new);
    }
}

/// Changes a byte, a number of four bytes, a digit or a piece of a file, and leaves everything at its place: sections and members stay whole.
/// Most of such a file is padding, which is left alone.
pub fn mutate_in_place(bytes: &mut [u8], seed: u64) {
    let random = &mut Random(SplitMix64(seed));
    if bytes.len() < 64 {
        return;
    }
    let mut at = random.below(bytes.len());
    for _ in 0..16 {
        if bytes[at] != 0 {
            break;
        }
        at = random.below(bytes.len());
    }
    let aligned = (at & !3).min(bytes.len() - 4);
    match random.below(6) {
        0 => bytes[at] = random.below(256) as u8,
        1 => bytes[at] ^= 1 << random.below(8),
        2 => {
            let number = u32::from_le_bytes(bytes[aligned..][..4].try_into().expect("four bytes"));
            let near = number.wrapping_add(random.below(9) as u32).wrapping_sub(4);
            bytes[aligned..][..4].copy_from_slice(&near.to_le_bytes());
        }
        3 => {
            let numbers = [0, 1, 0x8000_0000, u32::MAX, bytes.len() as u32];
            let number = numbers[random.below(numbers.len())];
            bytes[aligned..][..4].copy_from_slice(&number.to_le_bytes());
        }
        4 => {
            let size = [4, 8, 16, 64][random.below(4)];
            let places = bytes.len() / size;
            let (from, to) = (random.below(places) * size, at / size % places * size);
            bytes.copy_within(from..from + size, to);
        }
        _ => {
            let digits = bytes[at..].iter().position(u8::is_ascii_digit);
            if let Some(digit) = digits {
                bytes[at + digit] = b'0' + random.below(10) as u8;
            }
        }
    }
}

/// A place, and what comes there.
type Change = (Range<usize>, Vec<u8>);

fn hurting_number(bytes: &[u8], random: &mut Random) -> Option<Change> {
    let old = random.of(&numbers(bytes))?.clone();
    Some((old, random.of(NUMBERS)?.as_bytes().to_vec()))
}

fn near_number(bytes: &[u8], random: &mut Random) -> Option<Change> {
    let old = random.of(&numbers(bytes))?.clone();
    let number: u64 = std::str::from_utf8(&bytes[old.clone()])
        .ok()?
        .parse()
        .ok()?;
    let new = match random.below(6) {
        0 => number.wrapping_add(1),
        1 => number.saturating_sub(1),
        2 => number.wrapping_mul(2),
        3 => number / 2,
        4 => number ^ (1 << random.below(8)),
        _ => random.below(10) as u64,
    };
    Some((old, new.to_string().into_bytes()))
}

/// One of these becomes like another of them.
fn alike(bytes: &[u8], places: &[Range<usize>], random: &mut Random) -> Option<Change> {
    let old = random.of(places)?.clone();
    // Of what starts with the same byte there is more hope.
    let mut other = random.of(places)?;
    for _ in 0..4 {
        if bytes[other.start] == bytes[old.start] {
            break;
        }
        other = random.of(places)?;
    }
    let new = bytes[other.clone()].to_vec();
    Some((old, new))
}

/// An element of a list is gone, stands twice, or changes places with the next one.
fn element(bytes: &[u8], random: &mut Random) -> Option<Change> {
    let list = random.of(&values(bytes))?.clone();
    let inner = list.start + 1..list.end - 1;
    let (mut depth, mut elements, mut start) = (0usize, Vec::new(), inner.start);
    for at in inner.clone() {
        match bytes[at] {
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                elements.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    elements.push(start..inner.end);
    let count = elements.len();
    let at = random.below(count);
    let mut new: Vec<&[u8]> = elements.into_iter().map(|e| &bytes[e]).collect();
    match random.below(3) {
        0 => _ = new.remove(at),
        1 => new.insert(at, new[at]),
        _ => new.swap(at, (at + 1) % count),
    }
    Some((inner, new.join(&b',')))
}

/// A line is gone, stands twice, or becomes like another one.
fn line(bytes: &[u8], random: &mut Random) -> Option<Change> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        lines.push(start..start + line.len());
        start += line.len();
    }
    let old = random.of(&lines)?.clone();
    match random.below(4) {
        0 => Some((old, Vec::new())),
        1 => Some((old.start..old.start, bytes[old].to_vec())),
        2 => alike(bytes, &lines, random),
        _ => {
            let other = bytes[random.of(&lines)?.clone()].to_vec();
            Some((old.start..old.start, other))
        }
    }
}

/// Where such bytes stand one after another.
fn runs(bytes: &[u8], is: fn(&u8) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match found.last_mut() {
            _ if !is(byte) => {}
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

/// Where digits stand.
fn numbers(bytes: &[u8]) -> Vec<Range<usize>> {
    runs(bytes, u8::is_ascii_digit)
}

/// Where names stand.
fn words(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = runs(bytes, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
    });
    found.retain(|word| !bytes[word.start].is_ascii_digit());
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
