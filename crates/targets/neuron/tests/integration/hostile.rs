//! Files that mean harm: every one is an answer or an error that says where, within bounds.

use chipless_model::{Limits, Severity};
use chipless_neuron::pack::{header_json, pack, unpack};
use chipless_neuron::{AccessPattern, Container, Error, MemoryPlan, Neff, info, lint, memory, raw};
use chipless_neuron_assembler::assemble;
use chipless_rounds::{are_all, rounds};
use std::io::Write;
use std::path::Path;

/// What a fuzz target would do with any bytes.
fn exercise(bytes: &[u8], limits: &Limits) -> Result<usize, Error> {
    let container = Container::open(bytes, limits)?;
    raw(&container);
    header_json(&container);
    if let Ok((members, header)) = unpack(&container) {
        let again = pack(
            members.iter().map(|m| (m.path, m.bytes)),
            Some(&header),
            limits,
        )?;
        assert_eq!(
            Container::open(&again, limits)?.members().len(),
            members.len()
        );
    }
    let neff = Neff::read(&container, limits)?;
    let findings = lint(&neff, limits);
    info(&neff);
    MemoryPlan::new(&neff, memory::SCRATCHPAD_PAGE).node();
    for room in neff.subgraphs.iter().flat_map(|s| &s.engines) {
        for descriptor in room.file.dma.iter().flat_map(|d| &d.descriptors) {
            let _ = descriptor
                .sources()
                .chain([&descriptor.to])
                .filter_map(AccessPattern::pattern)
                .count();
        }
    }
    assert!(findings.len() as u64 <= limits.findings + 1);
    Ok(findings
        .iter()
        .filter(|f| f.rule.severity == Severity::Error)
        .count())
}

/// Numbers that look random and are the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fixtures/neuron")
        .join(name)
        .join("program.neff");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

const FIXTURES: &[&str] = &[
    "matmul_five_engines",
    "compute_min_max",
    "two_subgraphs",
    "constants",
    "instances_and_functions",
    "transpose",
];

#[test]
fn damaged_bytes_are_survived() {
    let limits = Limits::default();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let rounds = rounds(150);
    let mut refused = 0;
    for name in FIXTURES {
        let good = fixture(name);
        for _ in 0..rounds {
            let mut bytes = good.clone();
            for _ in 0..=dice.roll(4) {
                let at = dice.roll(bytes.len().min(4096));
                bytes[at] ^= 1 << dice.roll(8);
            }
            bytes.truncate(
                bytes.len()
                    - if dice.roll(3) == 0 {
                        dice.roll(bytes.len())
                    } else {
                        0
                    },
            );
            refused += usize::from(exercise(&bytes, &limits).is_err());
        }
    }
    let files = FIXTURES.len() * rounds;
    assert!(
        refused * 3 > files,
        "{refused} of {files} damaged files were refused"
    );
}

/// Takes a file apart, changes one member and puts it together again, so that the change reaches the readers behind the tarball.
fn with_member(file: &[u8], path: &str, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let limits = Limits::default();
    let container = Container::open(file, &limits).expect("sound");
    let mut change = Some(change);
    let members: Vec<(String, Vec<u8>)> = container
        .members()
        .map(|m| {
            let bytes = match change.take_if(|_| m.path == path) {
                Some(change) => change(m.bytes),
                None => m.bytes.to_vec(),
            };
            (m.path.to_owned(), bytes)
        })
        .collect();
    assert!(change.is_none(), "no member {path}");
    let header = header_json(&container);
    pack(
        members.iter().map(|(p, b)| (p.as_str(), b.as_slice())),
        Some(&header),
        &limits,
    )
    .expect("packed")
}

fn members(file: &[u8]) -> Vec<(String, usize)> {
    let container = Container::open(file, &Limits::default()).expect("sound");
    container
        .members()
        .map(|m| (m.path.to_owned(), m.bytes.len()))
        .collect()
}

#[test]
fn damaged_members_are_survived() {
    let limits = Limits::default();
    let mut dice = Dice(0x0123_4567_89ab_cdef);
    for name in FIXTURES {
        let good = fixture(name);
        for (path, size) in members(&good).into_iter().filter(|(_, size)| *size > 0) {
            for _ in 0..rounds(12) {
                let file = with_member(&good, &path, |bytes| {
                    let mut bytes = bytes.to_vec();
                    match dice.roll(4) {
                        0 => bytes[dice.roll(size)] ^= 1 << dice.roll(8),
                        1 => bytes.truncate(dice.roll(size)),
                        2 => drop(bytes.drain(dice.roll(size / 2)..size / 2 + dice.roll(size / 2))),
                        _ => {
                            let at = dice.roll(size);
                            let copy = bytes[..at].to_vec();
                            bytes.splice(at..at, copy);
                        }
                    }
                    bytes
                });
                let _ = exercise(&file, &limits);
            }
        }
    }
}

/// Where the values of a JSON text stand: everything between `:`, `[` or `,` and the next of `,`, `]`, `}`.
fn values(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    for (at, _) in text.match_indices([':', '[', ',']) {
        let start = at + 1 + text[at + 1..].len() - text[at + 1..].trim_start().len();
        let rest = &text[start..];
        let size = match rest.chars().next() {
            Some('{' | '[') | None => continue,
            Some('"') => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            Some(_) => rest.find([',', ']', '}']).unwrap_or(rest.len()),
        };
        if size > 0 && !rest[size..].trim_start().starts_with(':') {
            ranges.push(start..start + size);
        }
    }
    ranges
}

/// Every value of every JSON member becomes, one at a time, a value of another type or size.
#[test]
fn every_value_may_be_anything() {
    let limits = Limits::default();
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    let long = format!("\"{}\"", "n".repeat(20_000));
    let strange = [
        "null",
        "-1",
        "0",
        "18446744073709551615",
        "18446744073709551616",
        "9223372036854775807",
        "1e400",
        "0.5",
        "\"\"",
        "{}",
        "[[],{}]",
        &long,
        &deep,
    ];
    let (mut refused, mut reported, mut count) = (0, 0, 0);
    for name in ["compute_min_max", "transpose"] {
        let good = fixture(name);
        for (path, _) in members(&good)
            .into_iter()
            .filter(|(path, _)| path.split('.').next_back() == Some("json"))
        {
            let container = Container::open(&good, &limits).expect("sound");
            let text = String::from_utf8(container.member(&path).expect("there").bytes.to_vec())
                .expect("text");
            // Without all rounds each ninth place: with thirteen strange values every one has its turn all the same.
            let step = if are_all() { 1 } else { 9 };
            for (index, range) in values(&text).into_iter().enumerate().step_by(step) {
                // Two of the strange values for each place, so that all of them meet all kinds of places.
                for strange in [
                    strange[index % strange.len()],
                    strange[(index * 5 + 3) % strange.len()],
                ] {
                    let mut changed = text.clone();
                    changed.replace_range(range.clone(), strange);
                    let file = with_member(&good, &path, |_| changed.into_bytes());
                    count += 1;
                    match exercise(&file, &limits) {
                        Ok(errors) => reported += usize::from(errors > 0),
                        Err(why) => {
                            refused += 1;
                            let shown = why.to_string();
                            assert!(shown.len() < 2000, "{} bytes of message", shown.len());
                            assert!(shown.contains(".json, /"), "{shown} has no JSON pointer");
                        }
                    }
                }
            }
        }
    }
    assert!(
        refused > count / 4 && reported > count / 20,
        "{refused} refused and {reported} reported of {count}"
    );
}

fn refusal(file: &[u8], limits: &Limits) -> String {
    exercise(file, limits).expect_err("refused").to_string()
}

/// What is said of a file that can be read.
fn messages(file: &[u8], limits: &Limits) -> Vec<String> {
    exercise(file, limits).expect("read");
    let container = Container::open(file, limits).expect("sound");
    let neff = Neff::read(&container, limits).expect("read");
    let findings = lint(&neff, limits);
    findings.into_iter().map(|f| f.message).collect()
}

/// A file whose payload inflates to so many zeros.
fn deflated(size: usize) -> Vec<u8> {
    let mut payload = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..size / zeros.len() {
        payload.write_all(&zeros).expect("memory");
    }
    let payload = payload.finish().expect("memory");
    let mut file = fixture("compute_min_max")[..1024].to_vec();
    file[16..24].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    file.extend(payload);
    file
}

#[test]
fn bombs_name_their_limit() {
    let limits = Limits::default();
    let zeros = vec![0; 96 << 20];
    let bomb = pack([("neff.json", &zeros[..])], None, &limits).expect("packed");
    assert!(bomb.len() < 1 << 20);
    // A constant of zeros may be large, and is not refused for that.
    assert!(!refusal(&bomb, &limits).contains("inflate_ratio"));
    assert!(refusal(&deflated(1100 << 20), &limits).contains("inflate_ratio = 100"));
    let narrow = Limits {
        inflated_bytes: 1 << 20,
        ..Limits::default()
    };
    assert!(refusal(&bomb, &narrow).contains("inflated_bytes = 1048576"));

    let good = fixture("compute_min_max");
    for (limits, name) in [
        (
            Limits {
                entries: 3,
                ..Limits::default()
            },
            "entries",
        ),
        (
            Limits {
                path_bytes: 5,
                ..Limits::default()
            },
            "path_bytes",
        ),
        (
            Limits {
                json_bytes: 100,
                ..Limits::default()
            },
            "json_bytes",
        ),
        (
            Limits {
                transfers: 2,
                ..Limits::default()
            },
            "transfers",
        ),
        (
            Limits {
                declarations: 5,
                ..Limits::default()
            },
            "declarations",
        ),
    ] {
        assert!(
            refusal(&good, &limits).contains(name),
            "{}",
            refusal(&good, &limits)
        );
    }
}

/// What is small in a file must not be large in memory or long in time.
#[test]
fn small_things_in_great_number_are_refused() {
    let limits = Limits {
        transfers: 10_000,
        declarations: 10_000,
        ..Limits::default()
    };
    let good = fixture("compute_min_max");
    let swap = |path: &str, text: String| {
        refusal(&with_member(&good, path, |_| text.into_bytes()), &limits)
    };
    assert!(
        swap(
            "sg00/SP.json",
            format!("{{\"dma\":[{}{{}}]}}", "{},".repeat(100_000))
        )
        .contains("transfers")
    );
    assert!(
        swap(
            "sg00/SP.json",
            format!("{{\"dma\":[{{\"desc\":[{}{{}}]}}]}}", "{},".repeat(100_000))
        )
        .contains("transfers")
    );
    let sources = format!(
        "{{\"dma\":[{{\"desc\":[{{\"from_arr\":[{}{{}}]}}]}}]}}",
        "{},".repeat(100_000)
    );
    // A faulty entry is reported; a file of them is given up.
    let found = messages(
        &with_member(&good, "sg00/SP.json", |_| sources.into_bytes()),
        &limits,
    );
    assert!(
        found.iter().any(|m| m.contains("at most 4096")),
        "{found:?}"
    );
    let wrong = |count: usize| {
        let entries = vec![r#"{"id":"x"}"#; count].join(",");
        format!("{{\"dma\":[{entries}]}}")
    };
    let found = messages(
        &with_member(&good, "sg00/SP.json", |_| wrong(64).into_bytes()),
        &limits,
    );
    let is_wrong = |m: &&String| m.contains("invalid type: string \"x\"");
    assert_eq!(found.iter().filter(is_wrong).count(), 64, "{found:?}");
    assert!(swap("sg00/SP.json", wrong(100_000)).contains("/dma/64/id"));
    let variables: Vec<String> = (0..20_000).map(|n| format!("\"v{n}\":{{}}")).collect();
    assert!(
        swap(
            "sg00/def.json",
            format!("{{\"var\":{{{}}}}}", variables.join(","))
        )
        .contains("declarations")
    );
    let variables: Vec<String> = (0..9_000)
        .map(|n| format!("\"v{n}\":{{\"size\":\"x\"}}"))
        .collect();
    assert!(
        swap(
            "sg00/def.json",
            format!("{{\"var\":{{{}}}}}", variables.join(","))
        )
        .contains("/var/v64/size")
    );
    let graphs = "{\"definition\":\"sg00/def.json\"},".repeat(60);
    assert!(
        swap(
            "kelf-0.json",
            format!("{{\"graphs\":[{graphs}{{\"definition\":\"x\"}}]}}")
        )
        .contains("a second time")
    );
    assert!(
        swap(
            "kelf-0.json",
            format!(
                "{{\"graphs\":[{}{{\"definition\":\"x\"}}]}}",
                graphs.repeat(2)
            )
        )
        .contains("at most 64")
    );
}

#[test]
fn findings_are_bounded_and_counted() {
    let limits = Limits {
        findings: 7,
        ..Limits::default()
    };
    let good = fixture("compute_min_max");
    let file = with_member(&good, "sg00/SP.json", |_| {
        format!("{{\"dma\":[{}{{}}]}}", "{},".repeat(500)).into_bytes()
    });
    let container = Container::open(&file, &limits).expect("sound");
    let findings = lint(&Neff::read(&container, &limits).expect("readable"), &limits);
    let codes: Vec<&str> = findings.iter().map(|f| f.rule.code).collect();
    assert_eq!(codes.len(), 8);
    assert_eq!(codes[7], "neff-more-findings");
    assert!(
        findings[7].message.starts_with("1496 more"),
        "{}",
        findings[7].message
    );
}

#[test]
fn any_text_assembles_or_says_where_not() {
    let mut dice = Dice(0xfeed_5eed_1234_5678);
    for name in FIXTURES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../fixtures/neuron")
            .join(name)
            .join("program.asm");
        let good = std::fs::read_to_string(&path).expect("readable");
        for _ in 0..rounds(200) {
            let mut bytes = good.clone().into_bytes();
            for _ in 0..=dice.roll(3) {
                let at = dice.roll(bytes.len());
                match dice.roll(3) {
                    0 => bytes[at] = b" []:,+*=-0129x<\n$"[dice.roll(17)],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, b"9[]:, $"[dice.roll(7)]),
                }
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Ok(draft) = assemble(&text)
                && let Ok(file) = draft.write(&Limits::default())
            {
                let _ = exercise(&file, &Limits::default());
            }
        }
    }
}
