//! One damaged blob for each rule: it must be found, and where it is.

use super::blob::{Blob, Patch, put};
use super::read_all;
use chipless_npu::document::Document;
use chipless_npu::rules::ALL as RULES;
use std::collections::BTreeSet;

/// Rule, part of the file that the finding must name, and the damaged file.
type Case = (&'static str, &'static str, Vec<u8>);

/// A field of a section header, by its offset there, overwritten in a good file.
fn header(section: &str, field: usize, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    let index = document.elf().section(section).expect("the section exists");
    let offset = document.elf().header_offset(index) as usize;
    put(&mut file, offset + field, value);
    file
}

/// Bytes of a section, overwritten in a good file.
fn content(section: &str, offset: usize, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut file = Blob::tiny().file();
    let document = Document::read(&file).expect("the blob is good");
    let start = document
        .section(section)
        .expect("the section exists")
        .0
        .offset as usize;
    put(&mut file, start + offset, value);
    file
}

fn edited(edit: impl FnOnce(&mut Blob)) -> Vec<u8> {
    let mut blob = Blob::tiny();
    edit(&mut blob);
    blob.file()
}

fn changed(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut file = Blob::tiny().file();
    edit(&mut file);
    file
}

#[expect(clippy::too_many_lines, reason = "a table: one line for each damage")]
fn file_cases() -> Vec<Case> {
    let strings = header("program.workItem", 0, 60_000u32.to_le_bytes());
    let end = Blob::tiny().elf().len();
    vec![
        (
            "trailer-footer",
            "behind the ELF",
            changed(|file| file.truncate(file.len() - 7)),
        ),
        (
            "trailer-size",
            "plugin metadata",
            changed(|file| {
                let at = file.len() - 13;
                put(file, at, u64::MAX.to_le_bytes());
            }),
        ),
        (
            "trailer-version",
            "plugin metadata",
            edited(|blob| put(&mut blob.trailer, 0, 0x0003_0000u32.to_le_bytes())),
        ),
        (
            "trailer-string",
            "plugin metadata",
            edited(|blob| put(&mut blob.trailer, 42, 0xfff0u16.to_le_bytes())),
        ),
        (
            "trailer-count",
            "plugin metadata",
            edited(|blob| put(&mut blob.trailer, 26, (1u64 << 40).to_le_bytes())),
        ),
        (
            "trailer-count",
            "plugin metadata",
            edited(|blob| put(&mut blob.trailer, 10, u64::MAX.to_le_bytes())),
        ),
        (
            "trailer-short",
            "plugin metadata",
            edited(|blob| blob.trailer.truncate(58)),
        ),
        (
            "trailer-unsupported",
            "plugin metadata",
            edited(|blob| blob.trailer[60] = 1),
        ),
        (
            "trailer-unsupported",
            "plugin metadata",
            edited(|blob| blob.trailer[81] = 2),
        ),
        ("elf-header", "ELF header", Vec::new()),
        ("elf-header", "ELF header", changed(|file| file[3] = b'X')),
        ("elf-header", "ELF header", changed(|file| file[5] = 2)),
        ("elf-header", "ELF header", changed(|file| file[18] = 62)),
        (
            "elf-section-table",
            "ELF header",
            changed(|file| put(file, 40, (end as u64).to_le_bytes())),
        ),
        (
            "elf-section-table",
            "ELF header",
            changed(|file| put(file, 58, 40u16.to_le_bytes())),
        ),
        (
            "elf-section-table",
            "ELF header",
            changed(|file| put(file, 60, 0xfff0u16.to_le_bytes())),
        ),
        (
            "elf-section-table",
            "ELF header",
            changed(|file| put(file, 60, 0u16.to_le_bytes())),
        ),
        (
            "elf-section-table",
            "ELF header",
            changed(|file| put(file, 62, 5u16.to_le_bytes())),
        ),
        (
            "elf-section-beyond-file",
            "task.dma.0.0",
            header("task.dma.0.0", 32, (u64::MAX - 15).to_le_bytes()),
        ),
        (
            "elf-section-beyond-file",
            "ELF header",
            header(".strtab", 24, u64::MAX.to_le_bytes()),
        ),
        (
            "elf-section-overlap",
            "task.dma.0.0",
            header("task.dpu.variant.0.0", 32, 225u64.to_le_bytes()),
        ),
        ("elf-string", "section 12", strings),
        (
            "elf-string",
            "symtab",
            content("symtab", 24, 60_000u32.to_le_bytes()),
        ),
        (
            "elf-entry-size",
            "rela.program.workItem",
            header("rela.program.workItem", 56, [0]),
        ),
        (
            "elf-entry-size",
            "rela.program.workItem",
            header("rela.program.workItem", 32, [47]),
        ),
        ("elf-link", "symtab", header("symtab", 40, [9])),
        (
            "elf-note",
            "note.LoaderABIVersion",
            content("note.LoaderABIVersion", 4, 4096u32.to_le_bytes()),
        ),
        (
            "elf-note",
            "note.LoaderABIVersion",
            content("note.LoaderABIVersion", 4, 12u32.to_le_bytes()),
        ),
        (
            "elf-section-kind",
            "program.nnrt_config",
            header("program.nnrt_config", 4, [6]),
        ),
        (
            "elf-alignment",
            "buffer.DDR.1",
            header("buffer.DDR.1", 48, [3]),
        ),
        ("elf-alignment", "symtab", header("symtab", 48, [3])),
        (
            "elf-memory-limit",
            "buffer.DDR.1",
            header("buffer.DDR.1", 32, (1u64 << 52).to_le_bytes()),
        ),
        (
            "elf-memory-limit",
            "buffer.DDR.1",
            header("buffer.DDR.1", 32, u64::MAX.to_le_bytes()),
        ),
        (
            "section-size",
            "perf.metrics",
            header("perf.metrics", 32, 312u64.to_le_bytes()),
        ),
        (
            "section-size",
            "meta.PlatformInfo",
            content("meta.PlatformInfo", 24, [4]),
        ),
        (
            "section-count",
            "",
            edited(|blob| blob.parts.retain(|part| part.name != "meta.PlatformInfo")),
        ),
        (
            "section-count",
            "perf.metrics",
            header("perf.metrics", 4, 0x8aaa_aaafu32.to_le_bytes()),
        ),
        (
            "metadata-structure",
            "MetadataSection",
            content("MetadataSection", 544 + 8, 16u64.to_le_bytes()),
        ),
        (
            "metadata-structure",
            "MetadataSection",
            content("MetadataSection", 16, u64::MAX.to_le_bytes()),
        ),
        (
            "metadata-structure",
            "MetadataSection",
            content("MetadataSection", 24, 511u64.to_le_bytes()),
        ),
        (
            "metadata-value",
            "MetadataSection",
            content("MetadataSection", 32, [b'x'; 256]),
        ),
        (
            "npu-unsupported-platform",
            "meta.PlatformInfo",
            content("meta.PlatformInfo", 32, [7]),
        ),
        (
            "npu-unsupported-version",
            "note.LoaderABIVersion",
            content("note.LoaderABIVersion", 20, [7]),
        ),
        (
            "npu-unsupported-version",
            "note.MappedInferenceVersion",
            content("note.MappedInferenceVersion", 20, [9]),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table: one line for each damage")]
fn program_cases() -> Vec<Case> {
    let relocations = "rela.program.workItem";
    let root = "program.mapped_inference";
    let managed = |offset: usize, value: u32| content(root, 1728 + offset, value.to_le_bytes());
    vec![
        ("program-version", root, content(root, 2, [9])),
        ("program-version", root, managed(0, 0x000b_0005)),
        (
            "relocation-section",
            relocations,
            header(relocations, 40, [200]),
        ),
        (
            "relocation-section",
            relocations,
            header(relocations, 40, 0xff20u32.to_le_bytes()),
        ),
        (
            "relocation-section",
            relocations,
            header(relocations, 44, [200]),
        ),
        (
            "relocation-section",
            relocations,
            header(relocations, 8, [0]),
        ),
        (
            "relocation-symbol",
            relocations,
            content(relocations, 12, 60_000u32.to_le_bytes()),
        ),
        (
            "relocation-symbol",
            "symtab",
            content("symtab", 24 * 3 + 6, 0x7f00u16.to_le_bytes()),
        ),
        (
            "relocation-symbol",
            "rela.shave.params",
            edited(|blob| blob.patches[0].3 = "perf.metrics"),
        ),
        (
            "relocation-offset",
            relocations,
            content(relocations, 0, (3 * 64 - 4u64).to_le_bytes()),
        ),
        (
            "relocation-offset",
            relocations,
            content(relocations, 0, u64::MAX.to_le_bytes()),
        ),
        (
            "relocation-kind",
            relocations,
            content(relocations, 8, [99]),
        ),
        (
            "relocation-unsupported",
            relocations,
            content(relocations, 8, [7]),
        ),
        (
            "relocation-unsupported",
            relocations,
            content(relocations, 8, [25]),
        ),
        (
            "relocation-overflow",
            "rela.shave.params",
            content("rela.shave.params", 16, (1i64 << 33).to_le_bytes()),
        ),
        (
            "relocation-overflow",
            "rela.shave.params",
            content("rela.shave.params", 16, i64::MIN.to_le_bytes()),
        ),
        (
            "relocation-twice",
            relocations,
            content(relocations, 24, 4u64.to_le_bytes()),
        ),
        (
            "program-entry",
            "symtab",
            content("symtab", 24 * 25 + 4, [3]),
        ),
        (
            "program-entry",
            "symtab",
            content("symtab", 24 * 2 + 4, [10]),
        ),
        (
            "program-entry",
            "symtab",
            content("symtab", 24 * 25 + 6, [0]),
        ),
        (
            "program-record-size",
            "task.dma.0.1",
            header("task.dma.0.1", 32, 223u64.to_le_bytes()),
        ),
        (
            "program-record-size",
            "program.bootstrap",
            header("program.bootstrap", 32, 7u64.to_le_bytes()),
        ),
        ("program-task-count", root, content(root, 784 + 32, [2])),
        (
            "program-task-count",
            root,
            content(root, 784 + 40 + 32, [1]),
        ),
        ("program-task-count", root, managed(328 + 32, 1)),
        (
            "program-reference",
            root,
            edited(|blob| blob.patches.retain(|patch| patch.1 != 64 + 24)),
        ),
        (
            "program-reference",
            root,
            edited(|blob| {
                blob.patches[7] = Patch("program.mapped_inference", 304 + 24, 0, "task.dma.0.1", 8);
            }),
        ),
        (
            "program-reference",
            root,
            edited(|blob| blob.patches.retain(|patch| patch.1 != 1688 + 24)),
        ),
        (
            "program-reference",
            root,
            edited(|blob| {
                let part = blob.part(root);
                part.bytes.truncate(1000);
                blob.patches.retain(|patch| patch.1 < 992);
            }),
        ),
        (
            "program-interface",
            "MetadataSection",
            header("io.NetworkInput.0", 32, [31]),
        ),
        (
            "program-interface",
            "MetadataSection",
            edited(|blob| blob.part("buffer.DDR.1").name = "io.NetworkOutput.1"),
        ),
        (
            "program-interface-size",
            "MetadataSection",
            content("symtab.io.NetworkInput", 24 + 16, [33]),
        ),
        (
            "program-barrier-index",
            "program.bootstrap",
            content("program.bootstrap", 4, [2]),
        ),
        ("program-barrier-index", root, managed(4, 2)),
        (
            "program-barrier-index",
            "program.managedBarrier",
            content("program.managedBarrier", 0, 1u32.to_le_bytes()),
        ),
        (
            "program-barrier-index",
            "program.managedBarrier",
            content("program.managedBarrier", 24, 1u32.to_le_bytes()),
        ),
        (
            "program-work-item-range",
            "program.managedBarrier",
            content("program.managedBarrier", 16, [2]),
        ),
        ("program-work-item-range", root, managed(696, 4)),
        (
            "program-work-item-range",
            "program.workItem",
            content("program.workItem", 12, [3]),
        ),
        (
            "program-work-item-kind",
            "program.workItem",
            content("program.workItem", 8, [9]),
        ),
        (
            "program-work-item-kind",
            "program.workItem",
            content("program.workItem", 9, [6]),
        ),
        (
            "program-work-item-address",
            "program.workItem",
            content("program.workItem", 128 + 2, [0x60]),
        ),
        (
            "program-work-item-address",
            "program.workItem",
            content(relocations, 16, [100]),
        ),
    ]
}

#[test]
fn the_undamaged_blob_has_no_findings() {
    assert_eq!(read_all(&Blob::tiny().file()), Ok(Vec::new()));
}

/// Compilers list some relocations of profiled programs twice.
#[test]
fn the_same_relocation_twice_loses_nothing() {
    let file = edited(|blob| {
        let Patch(section, offset, kind, symbol, addend) = blob.patches[7];
        let again = Patch(section, offset, kind, symbol, addend);
        blob.patches.insert(7, again);
    });
    assert_eq!(read_all(&file), Ok(Vec::new()));
}

#[test]
fn every_fault_is_found_where_it_is() {
    for (index, (code, part, file)) in file_cases().into_iter().chain(program_cases()).enumerate() {
        let findings = read_all(&file).unwrap_or_else(|findings| findings);
        let first = findings
            .first()
            .unwrap_or_else(|| panic!("case {index}: {code} in {part} is not found"));
        assert_eq!(
            (first.rule.code, first.place.part.as_ref()),
            (code, part),
            "case {index}: {first}"
        );
        assert_eq!(
            read_all(&file).is_err(),
            first.is_error(),
            "case {index}: errors must refuse the file"
        );
    }
}

#[test]
fn every_rule_has_a_fault() {
    let found: BTreeSet<&str> = file_cases()
        .into_iter()
        .chain(program_cases())
        .map(|case| case.0)
        .collect();
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(found, rules);
    assert_eq!(rules.len(), RULES.len(), "codes are unique");
}
