//! A blob as it stands in the file: nothing moved, nothing lost, every byte borrowed.

use crate::document::{Document, Version, VersionNote, place};
use crate::elf::{Elf, Note};
use crate::generation::Platform;
use crate::metadata::{Metadata, PerformanceMetrics, single};
use crate::rules;
use crate::section::section_type;
use crate::trailer::Container;
use chipless_model::{Finding, Place};
use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::{U32, U64};

impl<'f> Document<'f> {
    /// Reads the structure of a blob: container, headers, tables, versions, network description. Programs for other chips
    /// are read as well; see [`Document::supported`]. The program itself is not looked at: that is
    /// [`Image`](crate::image::Image)'s.
    ///
    /// All faults that can be told apart are returned together, the first one first.
    pub fn read(bytes: &'f [u8]) -> Result<Document<'f>, Vec<Finding>> {
        let mut findings = Vec::new();
        let container = Container::read(bytes, &mut findings);
        // Without an ELF there is nothing to read; init schedules behind it are no reason to stop.
        if let Some(trailer) = container
            .trailer
            .as_ref()
            .filter(|trailer| trailer.encrypted || trailer.payload_kind != 0)
        {
            return Err(trailer
                .supported()
                .err()
                .into_iter()
                .map(|finding| *finding)
                .collect());
        }
        let Some(elf) = Elf::read(container.elf, &mut findings) else {
            return Err(findings);
        };
        if container.trailer.is_none() {
            findings.extend(stray_bytes(bytes, &elf));
        }
        let notes = elf.notes(&mut findings);
        let loader_abi = version(&elf, &notes, b"GNU", 1, &mut findings);
        let mapped_inference = version(&elf, &notes, b"MIV", 0xa000, &mut findings);
        let platform = only(&elf, section_type::PLATFORM_INFO, &mut findings).and_then(|index| {
            let place = place(&elf, index);
            let kind = single::<U64>(elf.section_bytes(index), &place, "ArchKind");
            match kind.map(|kinds| kinds.first().copied()) {
                Ok(Some(kind)) => Some((Platform::from_arch_kind(kind.get()), place)),
                Ok(None) => {
                    findings.push(rules::SECTION_SIZE.at(place, "the section holds no ArchKind"));
                    None
                }
                Err(finding) => {
                    findings.push(*finding);
                    None
                }
            }
        });
        let metadata = only(&elf, section_type::NETDESC, &mut findings).and_then(|index| {
            let read = Metadata::read(elf.section_bytes(index), &place(&elf, index));
            read.map_err(|finding| findings.push(*finding)).ok()
        });
        let performance = performance(&elf, &mut findings);
        let compiler_hash = text(&elf, section_type::COMPILER_HASH, &mut findings);
        let compatibility = text(&elf, section_type::COMPATIBILITY_STRING, &mut findings);
        let (Some(platform), Some(metadata), false) =
            (platform, metadata, findings.iter().any(Finding::is_error))
        else {
            return Err(findings);
        };
        let mut document = Document {
            bytes,
            elf,
            trailer: container.trailer,
            notes,
            platform,
            loader_abi,
            mapped_inference,
            metadata,
            performance,
            compiler_hash,
            compatibility,
            warnings: findings,
        };
        let sizes = crate::inference::interface_sizes(&document);
        document.warnings.extend(sizes);
        Ok(document)
    }
}

/// The one section of a type that every program has once.
fn only(elf: &Elf<'_>, kind: u32, findings: &mut Vec<Finding>) -> Option<usize> {
    let mut found = elf
        .sections()
        .iter()
        .enumerate()
        .filter(|(_, section)| section.kind == kind)
        .map(|(index, _)| index);
    let name = section_type::NAMES
        .iter()
        .find(|(number, _)| *number == kind)
        .map_or("", |(_, name)| name);
    match (found.next(), found.next()) {
        (Some(index), None) => Some(index),
        (None, _) => {
            findings.push(
                rules::SECTION_COUNT.at(Place::file(), format!("no section has the type {name}")),
            );
            None
        }
        (Some(first), Some(second)) => {
            let message = format!("a second section has the type {name}");
            findings.push(
                rules::SECTION_COUNT
                    .at(place(elf, second), message)
                    .with(place(elf, first), "the first one"),
            );
            None
        }
    }
}

/// The version in the note of this name and type.
fn version(
    elf: &Elf<'_>,
    notes: &[Note<'_>],
    name: &[u8],
    kind: u32,
    findings: &mut Vec<Finding>,
) -> Option<VersionNote> {
    let note = notes
        .iter()
        .find(|note| note.name == name && note.kind == kind)?;
    let Ok([_, major, minor, patch]) = <[U32; 4]>::ref_from_bytes(note.description) else {
        let place = Place::bytes(note.offset + 4, 4).in_part(
            elf.sections()
                .get(note.section)
                .map_or("", |section| section.name)
                .to_owned(),
        );
        findings.push(rules::ELF_NOTE.at(
            place.at("n_descsz"),
            format!("a version takes 16 bytes, not {}", note.description.len()),
        ));
        return None;
    };
    let offset = note.offset + 12 + note.name.len() as u64 + 1;
    let version = Version {
        major: major.get(),
        minor: minor.get(),
        patch: patch.get(),
    };
    Some(VersionNote {
        version,
        section: note.section,
        offset,
    })
}

fn performance<'f>(elf: &Elf<'f>, findings: &mut Vec<Finding>) -> Option<&'f PerformanceMetrics> {
    let index = elf
        .sections()
        .iter()
        .position(|section| section.kind == section_type::PERF_METRICS)?;
    let bytes = elf.section_bytes(index);
    let metrics = PerformanceMetrics::ref_from_bytes(bytes).ok();
    if metrics.is_none() {
        findings.push(rules::SECTION_SIZE.at(
            place(elf, index),
            format!("performance metrics take 320 bytes, not {}", bytes.len()),
        ));
    }
    metrics
}

/// The text of the compiler hash (serialised) or of the compatibility string (plain); empty where there is none.
fn text<'f>(elf: &Elf<'f>, kind: u32, findings: &mut Vec<Finding>) -> &'f str {
    let Some(index) = elf
        .sections()
        .iter()
        .position(|section| section.kind == kind)
    else {
        return "";
    };
    let place = place(elf, index);
    let bytes = elf.section_bytes(index);
    let bytes = if kind == section_type::COMPILER_HASH {
        single::<u8>(bytes, &place, "compiler hash")
    } else {
        Ok(bytes)
    };
    let text = bytes.and_then(|bytes| {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(text)
            .map_err(|_| Box::new(rules::ELF_STRING.at(place, "the text is not UTF-8")))
    });
    text.map_err(|finding| findings.push(*finding))
        .unwrap_or_default()
}

/// What lies behind an ELF that has no trailer, unless it only pads the file to a page.
fn stray_bytes(bytes: &[u8], elf: &Elf<'_>) -> Option<Finding> {
    let end = usize::try_from(elf.end()).ok()?;
    let page = end.next_multiple_of(4096);
    let is_padding = bytes
        .get(end..page.min(bytes.len()))?
        .iter()
        .all(|byte| *byte == 0);
    let start = if is_padding { page } else { end };
    let size = bytes.len().checked_sub(start).filter(|size| *size != 0)?;
    let place = Place::bytes(start as u64, size as u64).in_part("behind the ELF");
    Some(rules::TRAILER_FOOTER.at(
        place,
        format!("{size} bytes behind the ELF do not end in the footer OVNPU; only the ELF is used"),
    ))
}
