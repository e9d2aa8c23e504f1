//! A blob as it stands in the file: nothing moved, nothing lost, every byte borrowed.

use crate::elf::{Elf, Note};
use crate::generation::Generation;
use crate::metadata::{Metadata, PerformanceMetrics, single};
use crate::rules;
use crate::section::{Section, section_type};
use crate::trailer::{Container, Trailer};
use chipless_model::{Finding, Place};
use std::fmt;
use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::{U32, U64};

/// The chip that a program is for (`ArchKind` of meta.PlatformInfo).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// VPUX37XX, `ArchKind` 3.
    Npu3720,
    /// VPUX40XX, `ArchKind` 4.
    Npu4000,
    /// VPUX501X, `ArchKind` 5.
    Npu5010,
    /// Any other number.
    Other(u64),
}

impl Platform {
    /// By `ArchKind`.
    pub fn from_arch_kind(kind: u64) -> Platform {
        match kind {
            3 => Platform::Npu3720,
            4 => Platform::Npu4000,
            5 => Platform::Npu5010,
            other => Platform::Other(other),
        }
    }

    /// Frequency in MHz of the timer in which [`PerformanceMetrics`] count, and the DPU clock at which the compiler
    /// states its own estimate. Found by comparing both in compiled programs.
    pub const fn clocks(self) -> Option<(f64, f64)> {
        match self {
            Platform::Npu3720 => Some((38.4, 1300.0)),
            Platform::Npu4000 => Some((19.2, 1850.0)),
            Platform::Npu5010 => Some((19.2, 2100.0)),
            Platform::Other(_) => None,
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Platform::Npu3720 => f.write_str("NPU3720"),
            Platform::Npu4000 => f.write_str("NPU4000"),
            Platform::Npu5010 => f.write_str("NPU5010"),
            Platform::Other(kind) => write!(f, "ArchKind {kind}"),
        }
    }
}

/// A version in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Structures changed.
    pub major: u32,
    /// Something was added.
    pub minor: u32,
    /// Nothing that a program sees.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A version and the note that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNote {
    /// The version.
    pub version: Version,
    section: usize,
    /// Of the four numbers in the file.
    offset: u64,
}

/// A blob, read. Whatever is not understood stays reachable as bytes of its section.
#[derive(Clone, Debug)]
pub struct Document<'f> {
    bytes: &'f [u8],
    elf: Elf<'f>,
    trailer: Option<Trailer<'f>>,
    notes: Vec<Note<'f>>,
    platform: (Platform, Place),
    loader_abi: Option<VersionNote>,
    mapped_inference: Option<VersionNote>,
    metadata: Metadata<'f>,
    performance: Option<&'f PerformanceMetrics>,
    compiler_hash: &'f str,
    compatibility: &'f str,
    warnings: Vec<Finding>,
}

impl<'f> Document<'f> {
    /// Tiles that the program was compiled for.
    pub fn tiles(&self) -> u8 {
        self.metadata.resources.tiles
    }

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

    /// The file.
    pub fn bytes(&self) -> &'f [u8] {
        self.bytes
    }

    /// Headers, symbols, relocations.
    pub fn elf(&self) -> &Elf<'f> {
        &self.elf
    }

    /// The sections in their order, with name, type, flags and place in the file.
    pub fn sections(&self) -> &[Section<'f>] {
        self.elf.sections()
    }

    /// The first section of this name, and its bytes in the file.
    pub fn section(&self, name: &str) -> Option<(&Section<'f>, &'f [u8])> {
        let index = self.elf.section(name)?;
        Some((self.sections().get(index)?, self.elf.section_bytes(index)))
    }

    /// The plugin's metadata; `None` where the file is an ELF alone.
    pub fn trailer(&self) -> Option<&Trailer<'f>> {
        self.trailer.as_ref()
    }

    /// The notes.
    pub fn notes(&self) -> &[Note<'f>] {
        &self.notes
    }

    /// The chip.
    pub fn platform(&self) -> Platform {
        self.platform.0
    }

    /// Version of the loader's ABI.
    pub fn loader_abi(&self) -> Option<Version> {
        self.loader_abi.map(|note| note.version)
    }

    /// Version of the mapped inference, the runtime's root structure.
    pub fn mapped_inference(&self) -> Option<Version> {
        self.mapped_inference.map(|note| note.version)
    }

    /// What the program says about the network.
    pub fn metadata(&self) -> &Metadata<'f> {
        &self.metadata
    }

    /// The compiler's estimate of the latency.
    pub fn performance(&self) -> Option<&'f PerformanceMetrics> {
        self.performance
    }

    /// The compiler's commit; empty where the file does not say.
    pub fn compiler_hash(&self) -> &'f str {
        self.compiler_hash
    }

    /// The generation that the program is for; `None` where Chipless does not run it.
    pub fn generation(&self) -> Option<Generation> {
        Generation::of(self.platform())
    }

    /// What the program needs, as text: `compiler=8.4;npu=4000;t=4;elf=1.2.2;mi=11.4.10`. Empty where the file does not say.
    pub fn compatibility(&self) -> &'f str {
        self.compatibility
    }

    /// What the reader found odd but could live with.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// Whether this is a program for a chip that Chipless runs, in a known version; if not, why.
    pub fn supported(&self) -> Result<(), Box<Finding>> {
        let (platform, place) = &self.platform;
        let Some(generation) = Generation::of(*platform) else {
            let message = format!("{platform} is not supported; NPU3720, NPU4000 and NPU5010 are");
            return Err(Box::new(
                rules::UNSUPPORTED_PLATFORM.at(place.clone().at("ArchKind"), message),
            ));
        };
        if let Some(trailer) = &self.trailer {
            trailer.supported()?;
        }
        for (what, note, known) in [
            ("loader ABI", &self.loader_abi, generation.loader_abi),
            (
                "mapped inference",
                &self.mapped_inference,
                generation.mapped_inference,
            ),
        ] {
            let (place, message) = match note {
                Some(note) if note.version.major == known => continue,
                Some(note) => (
                    self.version_place(note),
                    format!("{what} {} is not supported; {known}.x is", note.version),
                ),
                None => (
                    Place::file(),
                    format!("a program without a note of its {what} version is not supported"),
                ),
            };
            return Err(Box::new(rules::UNSUPPORTED_VERSION.at(place, message)));
        }
        let tiles = self.metadata.resources.tiles;
        if tiles > generation.tiles {
            let message = format!(
                "a program for {tiles} tiles is not supported; {platform} has {}",
                generation.tiles
            );
            return Err(Box::new(
                rules::UNSUPPORTED_PLATFORM.at(self.metadata_place(), message),
            ));
        }
        Ok(())
    }

    /// The network's description, in the file.
    pub(crate) fn metadata_place(&self) -> Place {
        let index = self
            .elf
            .sections()
            .iter()
            .position(|section| section.kind == section_type::NETDESC);
        index.map_or_else(Place::file, |index| place(&self.elf, index))
    }

    /// The note of the mapped inference's version, in the file.
    pub(crate) fn mapped_inference_place(&self) -> Place {
        self.mapped_inference
            .as_ref()
            .map_or_else(Place::file, |note| self.version_place(note))
    }

    fn version_place(&self, note: &VersionNote) -> Place {
        let name = self
            .elf
            .sections()
            .get(note.section)
            .map_or("", |section| section.name);
        Place::bytes(note.offset, 16)
            .in_part(name.to_owned())
            .at("version")
    }
}

/// A section in the file.
pub(crate) fn place(elf: &Elf<'_>, index: usize) -> Place {
    elf.sections()
        .get(index)
        .map_or_else(Place::file, |section| {
            let size = if section.is_memory_only() {
                0
            } else {
                section.size
            };
            Place::bytes(section.offset, size).in_part(section.name.to_owned())
        })
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
