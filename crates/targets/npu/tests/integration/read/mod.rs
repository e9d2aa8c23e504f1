//! Reading NPU blobs: what is read, what is placed, and that every fault is found where it is.

mod blob;
mod faults;

use blob::{Blob, Patch, put};
use chipless_model::{ElementType, Finding, Limits, Node, Value};
use chipless_npu::document::{Document, Version};
use chipless_npu::generation::Platform;
use chipless_npu::image::{BASE, Image};
use chipless_npu::inference::Inference;
use chipless_npu::info::{Edge, Tensor, info};
use chipless_npu::structures::TaskKind;
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Everything that a reader does with a file.
pub(crate) fn read_all(file: &[u8]) -> Result<Vec<Finding>, Vec<Finding>> {
    let document = Document::read(file)?;
    document.info();
    document.raw();
    let image = Image::load(&document, &Limits::default())?;
    Inference::read(&document, &image)?;
    Ok(document.warnings().to_vec())
}

#[test]
fn a_whole_blob_is_read() {
    let file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    assert_eq!(document.platform(), Platform::Npu4000);
    assert_eq!(
        document.loader_abi(),
        Some(Version {
            major: 1,
            minor: 2,
            patch: 2
        })
    );
    assert_eq!(
        document.mapped_inference(),
        Some(Version {
            major: 11,
            minor: 4,
            patch: 10
        })
    );
    assert_eq!(
        (document.compiler_hash(), document.compatibility()),
        ("cafe", "compiler=8.3;npu=4000")
    );
    assert_eq!(document.supported(), Ok(()));
    assert!(document.warnings().is_empty());
    let (section, bytes) = document
        .section("buffer.Constant.0.constant")
        .expect("the section exists");
    assert_eq!(
        (section.kind_name(), section.flag_names()),
        (Cow::Borrowed("PROGBITS"), "ALLOC".to_owned())
    );
    assert_eq!(bytes, [7; 64]);
    let trailer = document.trailer().expect("the file has one");
    assert_eq!(
        (trailer.version.to_string(), trailer.openvino),
        ("2.7".to_owned(), [2026, 4, 1])
    );
    assert_eq!(
        (&trailer.input_layouts[..], trailer.compatibility),
        (&["[...]"][..], "compiler=8.4")
    );
}

#[test]
fn info_tells_what_the_file_says() {
    let file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    let info = document.info();
    assert_eq!(
        (info.target, info.platform.as_str(), info.name.as_str()),
        ("npu", "NPU4000", "tiny")
    );
    let [input] = &info.inputs[..] else {
        panic!("one input")
    };
    assert_eq!(
        (input.name.as_str(), input.element, &input.shape[..]),
        ("x", ElementType::Float16, &[2, 8][..])
    );
    assert_eq!(info.outputs[0].name, "result");
    for (name, count) in [
        ("barriers", 2),
        ("physical_barriers", 2),
        ("dma", 2),
        ("dma_nonempty", 1),
        ("dpu_variants", 1),
        ("work_items", 3),
    ] {
        assert!(
            info.counts.contains(&(name.to_owned(), count)),
            "{name} in {:?}",
            info.counts
        );
    }
    let facts: BTreeMap<_, _> = info.facts.into_iter().collect();
    assert_eq!(facts["compiler"], Value::Text("8.4".to_owned()));
    assert_eq!(facts["embeds_shave_code"], Value::Text("yes".to_owned()));
    for (name, count) in [
        ("tiles", 1),
        ("constant_bytes", 64),
        ("ddr_scratch_bytes", 4096),
        ("io_bytes", 64),
        ("cmx0_bytes", 0x19000),
    ] {
        assert_eq!(facts[name], Value::Integer(count), "{name}");
    }
    let number = |name| {
        if let Value::Number(number) = facts[name] {
            number
        } else {
            panic!("{name} is a number")
        }
    };
    assert!((number("compiler_estimate_us") - 18_000.0 / 1850.0).abs() < 0.05);
    assert!((number("compiler_activity_factor") - 0.25).abs() < 1e-6);
}

#[test]
fn an_elf_without_trailer_is_read() {
    let file = Blob::tiny().elf();
    let document = Document::read(&file).expect("the blob is good");
    assert!(document.trailer().is_none() && document.warnings().is_empty());
    assert!(
        info(&document)
            .facts
            .contains(&("compiler".to_owned(), Value::Text("8.3".to_owned())))
    );
}

#[test]
fn older_metadata_has_fewer_fields() {
    // Bytes of each version's fields: 2.0 has the OpenVINO release, 2.1 init schedules, 2.2 the batch, ...
    for (minor, size) in [
        (0, 10),
        (1, 18),
        (2, 26),
        (3, 56),
        (4, 60),
        (5, 61),
        (6, 81),
        (7, 82),
    ] {
        let mut blob = Blob::tiny();
        blob.trailer.truncate(size);
        blob.trailer[0] = minor;
        let file = blob.file();
        let document =
            Document::read(&file).unwrap_or_else(|findings| panic!("2.{minor}: {}", findings[0]));
        let trailer = document.trailer().expect("the file has one");
        assert_eq!(
            (trailer.padding.len(), trailer.input_layouts.len()),
            (0, usize::from(minor >= 3)),
            "2.{minor}"
        );
    }
}

#[test]
fn programs_for_other_chips_are_read_but_not_loaded() {
    for (kind, name) in [(7u64, "ArchKind 7"), (99, "ArchKind 99")] {
        let file = Blob::tiny()
            .with("meta.PlatformInfo", 32, kind.to_le_bytes())
            .file();
        let document = Document::read(&file).expect("the structure is good");
        assert_eq!(document.platform().to_string(), name);
        let message = document.supported().expect_err("another chip").message;
        assert!(
            message.contains(name) && message.contains("not supported"),
            "{message}"
        );
        assert_eq!(document.info().inputs.len(), 1);
        let findings = Image::load(&document, &Limits::default()).expect_err("another chip");
        assert_eq!(findings[0].rule.code, "npu-unsupported-platform");
    }
}

#[test]
fn sections_are_placed_and_relocated() {
    let file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    let image = Image::load(&document, &Limits::default()).expect("the blob is good");
    let address =
        |name: &str| image.sections()[image.section(name).expect("the section exists")].address;
    assert_eq!(address("shave.params"), Some(BASE));
    assert_eq!(
        (
            address("buffer.CMX_NN.0"),
            address("program.metadata.cmx"),
            address("perf.metrics")
        ),
        (None, None, None)
    );
    assert_ne!(address("buffer.DDR.0"), address("buffer.DDR.1"));

    let parameters = image.bytes(image.section("shave.params").expect("the section exists"));
    assert_eq!(parameters[4..8], (BASE as u32 + 8).to_le_bytes());
    assert_eq!(parameters[8..], 0x4020_0100u64.to_le_bytes());
    let dma = &image.sections()[image.section("task.dma.0.0").expect("the section exists")];
    assert_eq!(
        dma.bytes[40..48],
        (address("io.NetworkInput.0").expect("it has an address") + 16).to_le_bytes()
    );
    assert!(matches!(dma.bytes, Cow::Owned(_)));
    let constants = image
        .section("buffer.Constant.0.constant")
        .expect("the section exists");
    assert!(matches!(
        image.sections()[constants].bytes,
        Cow::Borrowed(_)
    ));
    assert_eq!(
        image.place(constants, 3, 1).offset,
        Some(image.sections()[constants].file_offset + 3)
    );
}

#[test]
fn addresses_lead_back_to_their_sections() {
    let file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    let image = Image::load(&document, &Limits::default()).expect("the blob is good");
    for (index, section) in image.sections().iter().enumerate() {
        let Some(address) = section.address else {
            continue;
        };
        assert_eq!(address % 4096, 0);
        let inside = |offset| (offset < section.size).then_some((index, offset));
        for offset in [
            0,
            1,
            section.size / 2,
            section.size.saturating_sub(1),
            section.size,
        ] {
            assert_eq!(
                image.locate(address + offset),
                inside(offset),
                "{} + {offset}",
                section.name
            );
        }
    }
    assert_eq!(
        (
            image.locate(0),
            image.locate(BASE - 1),
            image.locate(u64::MAX)
        ),
        (None, None, None)
    );
}

#[test]
fn the_inference_leads_to_every_list() {
    let file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    let image = Image::load(&document, &Limits::default()).expect("the blob is good");
    let inference = Inference::read(&document, &image).expect("the blob is good");
    let counts = TaskKind::ALL.map(|kind| inference.tasks(kind, 0).count());
    assert_eq!(counts, [1, 1, 1, 1, 0, 0]);
    assert_eq!(inference.tasks(TaskKind::DmaDdr, 7).count(), 0);
    assert_eq!(
        (
            inference.barriers.1.len(),
            inference.work_items.1.len(),
            inference.bootstrap.1.len()
        ),
        (2, 3, 2)
    );
    assert_eq!(
        (
            inference.managed.final_barrier.get(),
            inference.managed.bootstrap_work_items.get()
        ),
        (1, 2)
    );
    assert_eq!((inference.tiles(), inference.runtime.is_some()), (1, true));
    let record = inference
        .tasks(TaskKind::DmaCmx, 0)
        .each()
        .next()
        .expect("one descriptor");
    assert_eq!(record.len(), 224);
    let place = inference.record_place(&image, TaskKind::DmaCmx, 0, 0);
    assert_eq!(
        (place.part.as_ref(), place.item.as_str()),
        ("task.dma.0.1", "descriptor 0")
    );
}

#[test]
fn merging_relocations_may_share_a_field() {
    let mut blob = Blob::tiny();
    // The lower half of a word from one address, the upper from another, as invariant links are patched.
    blob.patches.push(Patch(
        "task.dpu.variant.0.0",
        8,
        14,
        "buffer.CMX_NN.0",
        0x2000,
    ));
    blob.patches.push(Patch(
        "task.dpu.variant.0.0",
        8,
        19,
        "buffer.CMX_NN.0",
        0x4000,
    ));
    let file = blob.file();
    let document = Document::read(&file).expect("the structure is good");
    let image = Image::load(&document, &Limits::default()).expect("the relocations are good");
    let variant = image.bytes(
        image
            .section("task.dpu.variant.0.0")
            .expect("the section exists"),
    );
    assert_eq!(variant[8..12], 0x0200_0100u32.to_le_bytes());
}

#[test]
fn tensors_that_are_not_row_major_tell_their_layout() {
    let mut blob = Blob::tiny();
    let metadata = &mut blob.part("MetadataSection").bytes;
    let input = metadata
        .windows(2)
        .position(|bytes| bytes == b"x\0")
        .expect("the input's name")
        - 104;
    put(metadata, input + 360, 0x21u64.to_le_bytes());
    let file = blob.file();
    let edge = Edge::read(&Document::read(&file).expect("the structure is good"));
    assert_eq!(edge.inputs[0].layout, Some((vec![128, 16], 0x21)));
}

/// The compiler's tensors of sizes are no inputs and outputs; the others keep the names of the model.
#[test]
fn sizes_with_upper_bounds_are_facts() {
    let file = Blob::bounded().file();
    let document = Document::read(&file).expect("the blob is good");
    let edge = Edge::read(&document);
    let names = |tensors: &[Tensor]| {
        let names = tensors.iter().map(|tensor| tensor.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&edge.inputs), ["x"]);
    assert_eq!(names(&edge.outputs), ["result"]);
    let sections = edge.bounds.iter().map(|bounds| &bounds.section[..]);
    assert_eq!(
        sections.collect::<Vec<_>>(),
        ["io.NetworkInput.1", "io.NetworkOutput.1"]
    );
    // Innermost first, as the program reads them.
    assert_eq!(edge.bounds[0].bytes(), [8, 0, 0, 0, 2, 0, 0, 0]);
    let facts: BTreeMap<_, _> = info(&document).facts.into_iter().collect();
    assert_eq!(facts["upper_bounds_x"], Value::Text("2×8".to_owned()));
    assert!(!facts.contains_key("upper_bounds_result"));
}

#[test]
fn the_dump_shows_every_level() {
    let file = Blob::tiny().file();
    let dump = Document::read(&file).expect("the blob is good").raw();
    let names: Vec<&str> = dump
        .children
        .iter()
        .map(|part| part.name.as_str())
        .collect();
    let levels = [
        "elf_header",
        "sections",
        "symbols",
        "relocations",
        "notes",
        "platform",
        "metadata",
        "barriers",
        "work_items",
        "plugin_metadata",
    ];
    assert!(
        levels.iter().all(|level| names.contains(level)),
        "{names:?}"
    );
    let text = format!("{dump:?}");
    for part in [
        "e_shnum",
        "VPU_NETDESC",
        "R_VPU_32",
        "MIV",
        "NPU4000",
        "next_same_id",
        "Integer(-1)",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

/// What stands at an offset of the dump is what the dump says, for the numbers of every table.
#[test]
fn numbers_of_the_dump_stand_where_it_says() {
    fn numbers(node: &Node, inside: &str, found: &mut Vec<(String, u64, i128)>) {
        if let (Some(Value::Integer(value)), Some(offset)) = (&node.value, node.offset) {
            found.push((format!("{inside}/{}", node.name), offset, *value));
        }
        node.children
            .iter()
            .for_each(|child| numbers(child, &format!("{inside}/{}", node.name), found));
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../fixtures/npu/conv1x1/program.blob"
    );
    let file = std::fs::read(path).expect("the fixture is there");
    let dump = Document::read(&file).expect("a blob").raw();
    let mut found = Vec::new();
    numbers(&dump, "", &mut found);
    for part in [
        "elf_header",
        "sections",
        "symbols",
        "relocations",
        "notes",
        "metadata",
        "barriers",
        "work_items",
    ] {
        assert!(found.iter().any(|(name, ..)| name.contains(part)), "{part}");
    }
    for (name, offset, value) in found {
        // Half a byte is what fields that share a byte have at least.
        let byte = file[offset as usize];
        let low = value as u8;
        assert!(
            byte == low || byte & 15 == low || byte >> 4 == low,
            "{name} @{offset:#x}: {value}, found {byte:#x}"
        );
    }
    let tasks = dump
        .children
        .iter()
        .find(|part| part.name == "tasks")
        .expect("tasks");
    let variants = tasks
        .children
        .iter()
        .find(|section| section.name.starts_with("task.dpu.variant"))
        .expect("variants");
    let first = &variants.children[0];
    let at = first.offset.expect("an offset") as usize;
    let word = u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    assert!(
        matches!(&first.value, Some(Value::Text(words)) if words.starts_with(&format!("{word:08x} "))),
        "{first:?}"
    );
}

/// Changes to a file of `size` bytes: place, value, bytes of it that are written; and where to cut.
fn damages(size: usize) -> impl Strategy<Value = (Vec<(usize, u64, usize)>, usize)> {
    // Most of the file is names of 256 bytes; two thirds of the changes go to headers and trailer.
    let place = prop_oneof![0..size, 0..64 * 40usize, size - 110..size];
    let value = prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        0..300u64,
        Just(u64::MAX - 7)
    ];
    let width = prop_oneof![Just(1usize), Just(2), Just(4), Just(8)];
    (
        prop::collection::vec((place, value, width), 1..5),
        prop_oneof![4 => Just(size), 1 => 0..size],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..chipless_rounds::cases(2000) })]

    /// Whatever the file, reading ends with a result, and faults are inside the file.
    #[test]
    fn damaged_files_give_findings((changes, cut) in damages(Blob::tiny().file().len())) {
        let mut file = Blob::tiny().file();
        for (place, value, width) in changes {
            let width = width.min(file.len() - place);
            put(&mut file, place, &value.to_le_bytes()[..width]);
        }
        file.truncate(cut);
        for finding in read_all(&file).unwrap_or_else(|findings| findings) {
            prop_assert!(finding.place.offset.is_none_or(|offset| offset <= file.len() as u64), "{finding}");
        }
        if let Ok(document) = Document::read(&file) {
            prop_assert!(document.raw().children.iter().any(|part| part.name == "sections"));
        }
    }
}
