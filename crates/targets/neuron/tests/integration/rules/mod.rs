//! Every rule about files, tables and descriptors finds the fault that it is for.

mod container;
mod definition;
mod dma;

use chipless_model::Limits;
use chipless_neuron::pack::{header_json, pack};
use chipless_neuron::{Container, Neff, Packing, Runtime, lint, rules};
use chipless_neuron_assembler::assemble;
use std::collections::BTreeSet;

const PROGRAM: &str = "
neff base trn2
input  x   float32 [4, 16]
output out float32 [4, 16]
subgraph sg00
queue q data owner=sp queues=4
var SB  state-buffer
var x   input
var out output
var c   file c.npy uint8 [2, 2] 1 2 3 4
var t   tmp-buf size=256
var p   pointer to=t
var v   virtual size=256 at=0
var T   dge-table x out
engine sp
dma id=0 queue=q semaphore=9
  copy t [1:256] <- x [1:256]
dma id=1 queue=q
  add out [1:256] float32 <- t [1:256] float32, x [1:256] float32
NOP
";

const NEFF: &str = "neff.json";
const KELF: &str = "kelf-0.json";
const INFO: &str = "info.json";
const DEF: &str = "sg00/def.json";
const SP: &str = "sg00/SP.json";
const ACT: &str = "sg00/Activation.json";
const TO: &str = r#""to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#;
const FROM: &str = r#""from":"x","from_off":0,"from_sizes":[256],"from_steps":[1],"#;

/// A text of a member, and what takes its place.
type Edit<'t> = (&'t str, &'t str, &'t str);

/// The code of a rule, and edits that break it.
type Case = (&'static str, &'static [Edit<'static>]);

/// The program compiled for the oldest hardware.
const INF1: Edit<'_> = (KELF, "cayman", "tonga");

/// Another field in the place of a queue set's number of queues.
const fn queue(field: &str) -> Edit<'_> {
    (DEF, r#""num_queues": 4"#, field)
}

/// Other fields in the place of a descriptor's number.
const fn entry(field: &str) -> Edit<'_> {
    (SP, r#""id":1,"#, field)
}

/// The codes of everything found in a file.
fn codes(file: &[u8]) -> Vec<&'static str> {
    let limits = Limits::default();
    let container = match Container::open(file, &limits) {
        Ok(container) => container,
        Err(why) => return vec![why.rule.code],
    };
    match Neff::read(&container, &limits) {
        Ok(neff) => lint(&neff, &limits).iter().map(|f| f.rule.code).collect(),
        Err(why) => vec![why.rule.code],
    }
}

fn program() -> Vec<u8> {
    let draft = assemble(PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    draft
        .write(&Limits::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

/// The program with texts of its members replaced; an empty text stands for the whole member, and nothing for it takes it away.
fn edited(edits: &[Edit<'_>]) -> Vec<u8> {
    let limits = Limits::default();
    let file = program();
    let container = Container::open(&file, &limits).expect("sound");
    let mut members: Vec<(String, Vec<u8>)> = container
        .members()
        .map(|m| (m.path.to_owned(), m.bytes.to_vec()))
        .collect();
    for (path, from, to) in edits {
        let at = members
            .iter()
            .position(|(p, _)| p == path)
            .unwrap_or_else(|| panic!("no member {path}"));
        if from.is_empty() && to.is_empty() {
            members.remove(at);
        } else if from.is_empty() {
            members[at].1 = to.as_bytes().to_vec();
        } else {
            let text = String::from_utf8(members[at].1.clone()).expect("text");
            assert!(text.contains(from), "{path} has no {from}: {text}");
            members[at].1 = text.replacen(from, to, 1).into_bytes();
        }
    }
    let header = header_json(&container);
    pack(
        members.iter().map(|(p, b)| (p.as_str(), b.as_slice())),
        Some(&header),
        &limits,
    )
    .expect("packed")
}

#[test]
fn the_program_without_a_fault_has_none() {
    assert_eq!(codes(&program()), [""; 0]);
}

#[test]
fn every_rule_finds_its_fault() {
    let mut hit: BTreeSet<&str> = BTreeSet::new();
    let mut missed = Vec::new();
    let cases = [container::CASES, definition::CASES, dma::CASES];
    for (code, edits) in cases.into_iter().flatten() {
        let found = codes(&edited(edits));
        if found.contains(code) {
            hit.insert(code);
        } else {
            missed.push(format!("{edits:?} should be {code}, found {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    hit.extend(by_bytes());
    hit.extend(by_programs());
    let all = [
        rules::container::ALL,
        rules::definition::ALL,
        rules::dma::ALL,
    ];
    // Bounds have tests of their own.
    let untested: Vec<&str> = all
        .into_iter()
        .flatten()
        .map(|rule| rule.code)
        .filter(|code| !hit.contains(code) && !matches!(*code, "neff-limit" | "neff-more-findings"))
        .collect();
    assert!(untested.is_empty(), "not tested: {untested:?}");
}

/// Faults of the container, made on the file's bytes.
fn by_bytes() -> Vec<&'static str> {
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = program();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        codes(&file)
    };
    let one = |code: &'static str, found: Vec<&'static str>| {
        assert!(found.contains(&code), "should be {code}, found {found:?}");
        code
    };
    let mut longer = program();
    longer.push(0);
    let file = program();
    let Packing::Gzip { compressed } = Container::open(&file, &Limits::default())
        .expect("sound")
        .packing
    else {
        panic!("compressed")
    };
    let crc = 1024 + compressed as usize - 8;
    let plain = plain();
    vec![
        one("neff-header-truncated", codes(&program()[..1023])),
        one("neff-header-size", patched(8, &[0, 8])),
        one("neff-package-version", patched(0, &[3])),
        one("neff-version", patched(24, &[3])),
        one("neff-data-size", patched(16, &[1])),
        one("neff-payload", patched(1024, &[0])),
        one("neff-gzip", patched(crc, &[0, 0])),
        one("neff-trailing-bytes", codes(&longer)),
        one("neff-hash", patched(172, &[0])),
        one("neff-hash-kind", patched(0, &[1])),
        one("neff-feature-unknown", patched(549, &[1])),
        one("neff-header-pad", patched(1023, &[1])),
        one("neff-core-count", patched(480, &[2])),
        one("neff-logical-core-size", patched(552, &[3])),
        one("neff-feature-logical-core", patched(545, &[4])),
        one("neff-padding", patched(crc + 8, &[1])),
        one(
            "neff-tar",
            codes(&with_entry(&plain, |header| header[148] ^= 1, false)),
        ),
        one(
            "neff-tar-entry-type",
            codes(&with_entry(&plain, |header| header[156] = b'2', true)),
        ),
        one(
            "neff-tar-path",
            codes(&with_entry(
                &plain,
                |header| header[..3].copy_from_slice(b"../"),
                true,
            )),
        ),
        one(
            "neff-tar-path",
            codes(&with_entry(
                &plain,
                |header| header[..12].copy_from_slice(b"kelf-0.json\0"),
                true,
            )),
        ),
    ]
}

/// The program with its tarball uncompressed.
fn plain() -> Vec<u8> {
    let limits = Limits::default();
    let file = program();
    let container = Container::open(&file, &limits).expect("sound");
    let header = header_json(&container).replace("\"gzip\"", "\"tar\"");
    pack(container.members().map(Into::into), Some(&header), &limits).expect("packed")
}

/// Changes the tar header of the first member, with or without its checksum.
fn with_entry(plain: &[u8], change: impl FnOnce(&mut [u8]), sum: bool) -> Vec<u8> {
    let mut file = plain.to_vec();
    let header = &mut file[1024..1536];
    change(header);
    if sum {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    file
}

/// Faults that take another program than the one above.
fn by_programs() -> Vec<&'static str> {
    let assembled = |text: &str| {
        let draft = assemble(text).unwrap_or_else(|e| panic!("{e}"));
        draft
            .write(&Limits::default())
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let one = |code: &'static str, found: &[&'static str]| {
        assert!(found.contains(&code), "should be {code}, found {found:?}");
        code
    };
    let source = "x [1:4]";
    let sources = vec![source; 17].join(", ");
    let many = format!(
        "neff n trn2\nsubgraph s\nqueue q data owner=sp\nvar x tmp-buf size=4\nengine sp\ndma id=0 queue=q\nadd x [1:4] <- {sources}\n"
    );
    let two = "neff n trn2\noutput o uint8 [4]\nsubgraph a\nvar o output\nsubgraph b\nvar o output size=5\n";
    let old = "neff n trn1\nsubgraph a\nsubgraph b\n";
    let limits = Limits::default();
    let turned = {
        let file = program();
        let container = Container::open(&file, &limits).expect("sound");
        let members: Vec<(&str, Vec<u8>)> = container
            .members()
            .map(|m| {
                let text = String::from_utf8_lossy(m.bytes);
                let bytes = if m.path == "sg00/c.npy" {
                    m.bytes.to_vec()
                } else {
                    text.into_owned().into_bytes()
                };
                let at = bytes.windows(6).position(|w| w == b"False,");
                (
                    m.path,
                    match at {
                        Some(at) if m.path == "sg00/c.npy" => {
                            [&bytes[..at], b"True ,", &bytes[at + 6..]].concat()
                        }
                        _ => bytes,
                    },
                )
            })
            .collect();
        pack(
            members.iter().map(|(p, b)| (*p, b.as_slice())),
            Some(&header_json(&container)),
            &limits,
        )
        .expect("packed")
    };
    let mut header = chipless_neuron::Header::read(program().first_chunk().expect("a header"));
    header.feature_bits = chipless_neuron::features::Features(0x100);
    header.neff_version_major = 2;
    let refused = |name: &str| -> Vec<&'static str> {
        Runtime::named(name)
            .expect("known")
            .check(&header)
            .iter()
            .map(|f| f.rule.code)
            .collect()
    };
    vec![
        one("neff-descriptor-sources", &codes(&assembled(&many))),
        one("neff-io-differs", &codes(&assembled(two))),
        one("neff-constant-order", &codes(&turned)),
        one("neff-runtime-features", &refused("late-2023")),
        one("neff-runtime-version", &refused("neff-1")),
        one("neff-runtime-rings", &ring_faults(17)),
        one("neff-targets-differ", &codes(&two_kelfs())),
        one("neff-logical-core-architecture", &codes(&assembled(old))),
        one("neff-subgraph-twice", &codes(&one_name())),
    ]
}

/// What a runtime would refuse of a program with so many queue sets of 16 queues.
fn ring_faults(sets: usize) -> Vec<&'static str> {
    let sets: Vec<String> = (0..sets)
        .map(|n| format!("queue q{n} data owner=sp queues=16\n"))
        .collect();
    let sets = sets.concat();
    let limits = Limits::default();
    let text = format!("neff n trn2\nsubgraph s\n{sets}engine sp\nNOP\n");
    let draft = assemble(&text).unwrap_or_else(|e| panic!("{e}"));
    let file = draft.write(&limits).unwrap_or_else(|e| panic!("{e}"));
    let container = Container::open(&file, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("read");
    let findings = Runtime::named("2.31").expect("known").check_program(&neff);
    findings.iter().map(|f| f.rule.code).collect()
}

/// A core has as many rings as 16 queue sets of 16 queues take.
#[test]
fn queue_sets_may_take_every_ring() {
    assert_eq!(ring_faults(16), [""; 0]);
}

/// A kelf file of two subgraphs with one name.
fn one_name() -> Vec<u8> {
    let members: [(&str, &[u8]); 4] = [
        ("neff.json", br#"{"nodes": [{"op": "tvm_op", "attrs": {"kelf": "a.json"}}]}"#),
        (
            "a.json",
            br#"{"graphs": [{"definition": "a/def.json", "name": "s"}, {"definition": "b/def.json", "name": "s"}], "target": "cayman"}"#,
        ),
        ("a/def.json", b"{}"),
        ("b/def.json", b"{}"),
    ];
    pack(members, None, &Limits::default()).expect("packed")
}

#[test]
fn kelf_files_may_use_the_same_names() {
    let limits = Limits::default();
    let file = two_kelfs();
    let container = Container::open(&file, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("read");
    let names: Vec<&str> = neff.subgraphs.iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["s", "kelf1.s"]);
    assert!(!codes(&file).contains(&"neff-subgraph-twice"));
}

/// What a field says that holds without it too asks for nothing.
#[test]
fn defaults_are_no_features() {
    let copies = PROGRAM.replace(
        "add out [1:256] float32 <- t [1:256] float32, x [1:256] float32",
        "copy out [1:256] <- t [1:256]",
    );
    let copies = copies
        .replace("trn2", "inf1")
        .replace("queues=4", "queues=1");
    let draft = assemble(&copies).unwrap_or_else(|e| panic!("{e}"));
    let file = draft
        .write(&Limits::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let before = codes(&file);
    let limits = Limits::default();
    let container = Container::open(&file, &limits).expect("sound");
    let edit = |m: chipless_neuron::Member<'_>| {
        let said = r#""id":0,"function_start":"","instance_name":"","section_start_desc":false,"#;
        let text = |from: &str, to: &str| {
            String::from_utf8(m.bytes.to_vec())
                .expect("text")
                .replace(from, to)
                .into_bytes()
        };
        let bytes = match m.path {
            SP => text(r#""id":0,"#, said),
            DEF => text(
                r#""num_queues": 1"#,
                r#""num_queues": 1, "pinned": false, "queue_instances": []"#,
            ),
            _ => m.bytes.to_vec(),
        };
        (m.path.to_owned(), bytes)
    };
    let members: Vec<(String, Vec<u8>)> = container.members().map(edit).collect();
    let sp = members
        .iter()
        .find(|(path, _)| path == SP)
        .expect("a member");
    assert!(String::from_utf8_lossy(&sp.1).contains("section_start_desc"));
    let file = pack(
        members.iter().map(|(p, b)| (p.as_str(), b.as_slice())),
        Some(&header_json(&container)),
        &limits,
    )
    .expect("packed");
    assert_eq!(codes(&file), before);
}

/// What is said of values that have another type than the format gives them, and the codes of everything found.
fn wrong_types(edits: &[Edit<'_>]) -> (Vec<String>, Vec<&'static str>) {
    let limits = Limits::default();
    let file = edited(edits);
    let container = Container::open(&file, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("read");
    let findings = lint(&neff, &limits);
    let codes = findings.iter().map(|f| f.rule.code).collect();
    let wrong = findings
        .into_iter()
        .filter(|f| f.rule.code == "neff-json-type");
    (wrong.map(|f| f.message).collect(), codes)
}

#[test]
fn types_are_named_as_the_format_has_them() {
    let (wrong, _) = wrong_types(&[(DEF, r#""num_queues": 4"#, r#""num_queues": 1.5"#)]);
    assert_eq!(
        wrong,
        ["invalid type: floating point `1.5`, expected a whole number from 0 to 2^64 - 1"]
    );
    let (wrong, _) = wrong_types(&[(SP, r#""op":"add""#, r#""op":"add","scale":"x""#)]);
    assert_eq!(wrong, ["invalid type: string \"x\", expected a number"]);
}

#[test]
fn what_has_a_wrong_type_hides_nothing_else() {
    let (wrong, codes) = wrong_types(&[
        (DEF, r#""num_queues": 4"#, r#""num_queues": "4""#),
        (DEF, r#""tmp-buf""#, r#""temporary""#),
        (SP, r#""op":"add""#, r#""op":"add","scale":"x""#),
        (SP, r#""to":"t""#, r#""to":"none""#),
    ]);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(codes.contains(&"neff-variable-type"), "{codes:?}");
    assert!(codes.contains(&"neff-descriptor-variable"), "{codes:?}");
}

/// A graph with two program nodes for different hardware.
fn two_kelfs() -> Vec<u8> {
    let limits = Limits::default();
    let graph = r#"{"nodes": [{"op": "tvm_op", "attrs": {"kelf": "a.json"}}, {"op": "tvm_op", "attrs": {"kelf": "b.json"}}]}"#;
    let members: [(&str, &[u8]); 5] = [
        ("neff.json", graph.as_bytes()),
        (
            "a.json",
            br#"{"graphs": [{"definition": "a/def.json", "name": "s"}], "target": "sunda"}"#,
        ),
        (
            "b.json",
            br#"{"graphs": [{"definition": "b/def.json", "name": "s"}], "target": "cayman"}"#,
        ),
        ("a/def.json", b"{}"),
        ("b/def.json", b"{}"),
    ];
    pack(members, None, &limits).expect("packed")
}

/// Editors count characters, the JSON parser bytes.
#[test]
fn columns_count_characters() {
    let at = |edits: &[Edit<'_>]| {
        let limits = Limits::default();
        let file = edited(edits);
        let container = Container::open(&file, &limits).expect("sound");
        let findings = match Neff::read(&container, &limits) {
            Ok(neff) => lint(&neff, &limits),
            Err(why) => vec![*why],
        };
        let positions: Vec<_> = findings.iter().filter_map(|f| f.place.position).collect();
        positions
    };
    assert!(at(&[(DEF, "", r#"{"ääääää": 1, ?"#)]).contains(&(1, 15)));
    assert!(at(&[(DEF, "", "{\n \"ä\": [\n   \"ää\", ?]}")]).contains(&(3, 10)));
    // What is no mistake of the syntax stands where it does in the text, whatever comes before it.
    let named = r#"{"name": "ää", "dma_queue": {"ö": {"type": "none"}}}"#;
    assert!(at(&[(DEF, "", named)]).contains(&(1, 44)));
    let typed = r#"{"name": "ää", "var": {"ö": {"size": "x"}}}"#;
    assert!(at(&[(DEF, "", typed)]).contains(&(1, 38)));
}

/// Where one instruction starts descriptors, all are started so: those of an engine whose instructions start none never move.
#[test]
fn an_engine_that_starts_nothing_is_missed_where_others_do() {
    let program = |act: &str| {
        let text = format!(
            "neff t trn2\ninput x uint8 [64]\noutput y uint8 [64]\nsubgraph sg00\nqueue q data owner=sp\nqueue r data owner=act\n\
             var x input\nvar y output\nvar t tmp-buf size=64\n\
             engine act\ndma id=0 queue=r semaphore=61\n  copy t [1:64] <- x [1:64]\n{act}\n\
             engine sp\ndma id=0 queue=q semaphore=60\n  copy y [1:64] <- t [1:64]\n\
             PSEUDO_DMA_TRIGGER queue=q $S[61]>=1\nNOP $S[60]>=1\n"
        );
        codes(
            &assemble(&text)
                .unwrap_or_else(|e| panic!("{e}"))
                .write(&Limits::default())
                .expect("a file"),
        )
    };
    assert_eq!(program("PSEUDO_DMA_TRIGGER queue=r"), Vec::<&str>::new());
    assert_eq!(program("NOP"), ["neff-not-triggered"]);
}

/// Descriptors that instructions start do not run by themselves where no such instruction is reached.
#[test]
fn a_trigger_that_is_never_reached_starts_nothing() {
    let text = "neff t trn2\ninput x uint8 [64]\noutput y uint8 [64]\nsubgraph sg00\nqueue q data owner=sp\nvar x input\nvar y output\n\
         engine sp\ndma id=0 queue=q function=g semaphore=60\n  copy y [1:64] <- x [1:64]\n\
         PSEUDO_FUNCTION_BEGIN name=f\nPSEUDO_FUNCTION_RETURN\nPSEUDO_FUNCTION_BEGIN name=g\nPSEUDO_DMA_TRIGGER queue=q\n";
    let file = assemble(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        codes(&file.write(&Limits::default()).expect("a file")),
        ["neff-not-triggered"]
    );
}

/// An instruction is named as its task; in functions, which run in another order than they stand in, by its number.
#[test]
fn findings_name_instructions_as_tasks() {
    let item = |code: &str, functions: &str, wrong: &str| {
        let text = format!(
            "neff t trn2\ninput x uint8 [64]\noutput y uint8 [64]\nsubgraph sg00\nqueue q data owner=sp\nvar x input\nvar y output\n\
             engine sp\ndma id=0 queue=q semaphore=60\n  copy y [1:64] <- x [1:64]\n{functions}NOP\n{wrong}\n"
        );
        let file = assemble(&text).unwrap_or_else(|e| panic!("{e}"));
        let file = file.write(&Limits::default()).expect("a file");
        let container = Container::open(&file, &Limits::default()).expect("a container");
        let neff = Neff::read(&container, &Limits::default()).expect("a document");
        let mut found = lint(&neff, &Limits::default()).into_iter();
        let found = found.find(|finding| finding.rule.code == code);
        found.expect(code).place.item
    };
    assert_eq!(
        item("neff-trigger-queue", "", "PSEUDO_DMA_TRIGGER queue=none"),
        "sg00.sp[1]"
    );
    let begin = "PSEUDO_FUNCTION_BEGIN name=f\n";
    assert_eq!(
        item("neff-function-called", begin, "PSEUDO_FUNCTION_CALL name=g"),
        "instruction 2 of sg00.sp"
    );
}
