//! A blob that was read: its structures, as they stand in the file.

use crate::elf::{Elf, Note};
use crate::generation::{Generation, Platform};
use crate::metadata::{Metadata, PerformanceMetrics};
use crate::rules;
use crate::section::{Section, section_type};
use crate::trailer::Trailer;
use chipless_model::{Finding, Place};
use std::fmt;

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
    pub(crate) section: usize,
    /// Of the four numbers in the file.
    pub(crate) offset: u64,
}

/// A blob, read. Whatever is not understood stays reachable as bytes of its section.
#[derive(Clone, Debug)]
pub struct Document<'f> {
    pub(crate) bytes: &'f [u8],
    pub(crate) elf: Elf<'f>,
    pub(crate) trailer: Option<Trailer<'f>>,
    pub(crate) notes: Vec<Note<'f>>,
    pub(crate) platform: (Platform, Place),
    pub(crate) loader_abi: Option<VersionNote>,
    pub(crate) mapped_inference: Option<VersionNote>,
    pub(crate) metadata: Metadata<'f>,
    pub(crate) performance: Option<&'f PerformanceMetrics>,
    pub(crate) compiler_hash: &'f str,
    pub(crate) compatibility: &'f str,
    pub(crate) warnings: Vec<Finding>,
}

impl<'f> Document<'f> {
    /// Tiles that the program was compiled for.
    pub fn tiles(&self) -> u8 {
        self.metadata.resources.tiles
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
