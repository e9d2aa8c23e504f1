//! The container: an ELF and, behind it, what `OpenVINO`'s plugin keeps about the exported model.
//!
//! ```text
//! ELF payload, padded to 4096 | u32 version | fields, by version | u64 payload size | "OVNPU"
//! ```
//! Everything is little endian and unaligned; the file is read from its end. A file without the footer is an ELF alone.
//!
//! Source: `OpenVINO` `src/plugins/intel_npu/src/plugin/src/metadata.cpp`, versions 2.0 to 2.7.

use crate::elf::range;
use crate::rules;
use chipless_model::{Finding, Place, Rule};

const MAGIC: &[u8] = b"OVNPU";
/// Payload size and magic.
const FOOTER: usize = 8 + MAGIC.len();
const PART: &str = "plugin metadata";

/// A version of two numbers, packed into 32 bits with the major above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackedVersion {
    /// Major.
    pub major: u16,
    /// Minor.
    pub minor: u16,
}

impl From<u32> for PackedVersion {
    fn from(packed: u32) -> PackedVersion {
        PackedVersion {
            major: (packed >> 16) as u16,
            minor: packed as u16,
        }
    }
}

impl std::fmt::Display for PackedVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The plugin's metadata. Fields that the file's version does not have yet are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trailer<'f> {
    /// Where it starts in the file.
    pub offset: u64,
    /// Version of this list of fields.
    pub version: PackedVersion,
    /// The `OpenVINO` release that wrote it.
    pub openvino: [u16; 3],
    /// Sizes in bytes of the init schedules at the end of the payload (since 2.1).
    pub init_sizes: Vec<u64>,
    /// Batch that the plugin runs one by one, 0 none (since 2.2).
    pub batch: i64,
    /// Layout of each input, such as `[N,C,H,W]` or `[...]` (since 2.3).
    pub input_layouts: Vec<&'f str>,
    /// Layout of each output (since 2.3).
    pub output_layouts: Vec<&'f str>,
    /// The compiler's version (since 2.4).
    pub compiler: Option<PackedVersion>,
    /// Whether the payload is encrypted (since 2.5).
    pub encrypted: bool,
    /// What the program needs from the runtime, as text (since 2.6).
    pub compatibility: &'f str,
    /// What the payload is: 0 ELF, 1 LLVM, 2 bytecode (since 2.7).
    pub payload_kind: u8,
    /// Bytes between the last field and the footer: padding of older plugins.
    pub padding: &'f [u8],
    /// Bytes of the payload.
    pub payload_size: u64,
}

/// A file cut into its parts.
#[derive(Clone, Debug)]
pub struct Container<'f> {
    /// The main ELF, or what may be one.
    pub elf: &'f [u8],
    /// The plugin's metadata, where the file has the footer.
    pub trailer: Option<Trailer<'f>>,
}

impl<'f> Container<'f> {
    /// Cuts a file. Faults of the trailer go to `findings`; the ELF is whatever can still be taken for it.
    pub fn read(bytes: &'f [u8], findings: &mut Vec<Finding>) -> Container<'f> {
        let Some(end) = bytes
            .len()
            .checked_sub(FOOTER)
            .filter(|_| bytes.ends_with(MAGIC))
        else {
            return Container {
                elf: bytes,
                trailer: None,
            };
        };
        let mut cursor = Cursor {
            bytes,
            at: end,
            end: end + 8,
        };
        let payload = cursor.u64("payload size").unwrap_or_default();
        let Some(elf) = range(&bytes[..end], 0, payload).filter(|elf| end - elf.len() >= 4) else {
            let place = Place::bytes(end as u64, 8).in_part(PART).at("payload size");
            let message = format!(
                "a payload of {payload} bytes leaves no room for metadata in a file of {} bytes",
                bytes.len()
            );
            findings.push(rules::TRAILER_SIZE.at(place, message));
            return Container {
                elf: bytes,
                trailer: None,
            };
        };
        match Trailer::read(
            Cursor {
                bytes,
                at: elf.len(),
                end,
            },
            payload,
        ) {
            Ok(trailer) => {
                let inits = trailer
                    .init_sizes
                    .iter()
                    .fold(0, |sum: u64, size| sum.saturating_add(*size));
                let main = payload.saturating_sub(inits);
                Container {
                    elf: range(elf, 0, main).unwrap_or(elf),
                    trailer: Some(trailer),
                }
            }
            Err(finding) => {
                findings.push(*finding);
                Container { elf, trailer: None }
            }
        }
    }
}

impl<'f> Trailer<'f> {
    fn read(mut cursor: Cursor<'f>, payload_size: u64) -> Result<Trailer<'f>, Box<Finding>> {
        let offset = cursor.at as u64;
        let version = PackedVersion::from(cursor.u32("version")?);
        if version.major != 2 || version.minor > 7 {
            let message = format!(
                "metadata version {version} is not supported; 2.0 to 2.7 are, or the footer's payload size is wrong"
            );
            return Err(Box::new(
                rules::TRAILER_VERSION
                    .at(Place::bytes(offset, 4).in_part(PART).at("version"), message),
            ));
        }
        let since = |minor| version.minor >= minor;
        let openvino = [
            cursor.u16("OpenVINO major")?,
            cursor.u16("OpenVINO minor")?,
            cursor.u16("OpenVINO patch")?,
        ];
        let mut init_sizes = Vec::new();
        if since(1) {
            let count = cursor.count(8, "number of init schedules")?;
            for _ in 0..count {
                init_sizes.push(cursor.u64("size of an init schedule")?);
            }
        }
        let sum = init_sizes
            .iter()
            .try_fold(0, |sum: u64, size| sum.checked_add(*size));
        if sum.is_none_or(|sum| sum > payload_size) {
            let place = Place::bytes(offset + 10, 8)
                .in_part(PART)
                .at("size of an init schedule");
            let message = format!(
                "{} init schedules are larger than the payload of {payload_size} bytes",
                init_sizes.len()
            );
            return Err(Box::new(rules::TRAILER_COUNT.at(place, message)));
        }
        let batch = if since(2) {
            cursor.u64("batch")? as i64
        } else {
            0
        };
        let (mut input_layouts, mut output_layouts) = (Vec::new(), Vec::new());
        if since(3) {
            // Both counts come before the first layout.
            let inputs = cursor.count(2, "number of inputs")?;
            let outputs = cursor.count(2, "number of outputs")?;
            for _ in 0..inputs {
                let size = cursor.u16("layout length")?;
                input_layouts.push(cursor.string(size.into(), "input layout")?);
            }
            for _ in 0..outputs {
                let size = cursor.u16("layout length")?;
                output_layouts.push(cursor.string(size.into(), "output layout")?);
            }
        }
        let compiler = if since(4) {
            Some(cursor.u32("compiler version")?).filter(|version| *version != 0)
        } else {
            None
        };
        let encrypted = since(5) && cursor.take(1, "encryption")? != [0];
        let mut compatibility = "";
        if since(6) {
            let size = cursor.u64("compatibility length")?;
            compatibility = cursor.string(size, "compatibility string")?;
        }
        let payload_kind = if since(7) {
            cursor.take(1, "blob type")?.iter().sum()
        } else {
            0
        };
        let padding = cursor.bytes.get(cursor.at..cursor.end).unwrap_or_default();
        let compiler = compiler.map(PackedVersion::from);
        Ok(Trailer {
            offset,
            version,
            openvino,
            init_sizes,
            batch,
            input_layouts,
            output_layouts,
            compiler,
            encrypted,
            compatibility,
            payload_kind,
            padding,
            payload_size,
        })
    }

    /// Why the payload cannot be read as one ELF, if so.
    pub fn supported(&self) -> Result<(), Box<Finding>> {
        let what = if self.encrypted {
            "an encrypted payload".to_owned()
        } else if self.payload_kind != 0 {
            let name = ["", "LLVM", "bytecode"]
                .get(usize::from(self.payload_kind))
                .unwrap_or(&"unknown");
            format!("a payload of type {} ({name})", self.payload_kind)
        } else if !self.init_sizes.is_empty() {
            format!(
                "a program with {} init schedules (weights separation)",
                self.init_sizes.len()
            )
        } else {
            return Ok(());
        };
        let place = Place::bytes(self.offset, 0).in_part(PART);
        Err(Box::new(
            rules::TRAILER_UNSUPPORTED.at(place, format!("{what} is not supported")),
        ))
    }
}

/// Reads fields one after the other, up to the footer.
struct Cursor<'f> {
    bytes: &'f [u8],
    at: usize,
    end: usize,
}

impl<'f> Cursor<'f> {
    fn fault(&self, rule: &'static Rule, item: &str, message: String) -> Box<Finding> {
        let left = self.end.saturating_sub(self.at) as u64;
        Box::new(rule.at(
            Place::bytes(self.at as u64, left).in_part(PART).at(item),
            message,
        ))
    }

    fn left(&self) -> u64 {
        self.end.saturating_sub(self.at) as u64
    }

    fn take(&mut self, size: usize, item: &str) -> Result<&'f [u8], Box<Finding>> {
        let taken = self
            .bytes
            .get(self.at..self.end)
            .and_then(|rest| rest.get(..size));
        let Some(taken) = taken else {
            return Err(self.fault(
                &rules::TRAILER_SHORT,
                item,
                format!(
                    "{item} takes {size} bytes; {} are left before the footer",
                    self.left()
                ),
            ));
        };
        self.at += size;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, item: &str) -> Result<[u8; N], Box<Finding>> {
        let taken = self.take(N, item)?;
        Ok(taken.try_into().unwrap_or([0; N]))
    }

    fn u16(&mut self, item: &str) -> Result<u16, Box<Finding>> {
        self.array(item).map(u16::from_le_bytes)
    }

    fn u32(&mut self, item: &str) -> Result<u32, Box<Finding>> {
        self.array(item).map(u32::from_le_bytes)
    }

    fn u64(&mut self, item: &str) -> Result<u64, Box<Finding>> {
        self.array(item).map(u64::from_le_bytes)
    }

    /// A number of elements that take at least `size` bytes each.
    fn count(&mut self, size: u64, item: &str) -> Result<u64, Box<Finding>> {
        let start = self.at;
        let count = self.u64(item)?;
        if count > self.left() / size {
            let message = format!(
                "{item} is {count}; the metadata has {} bytes left, {size} at least for each",
                self.left()
            );
            self.at = start;
            return Err(self.fault(&rules::TRAILER_COUNT, item, message));
        }
        Ok(count)
    }

    fn string(&mut self, size: u64, item: &str) -> Result<&'f str, Box<Finding>> {
        if size > self.left() {
            return Err(self.fault(
                &rules::TRAILER_STRING,
                item,
                format!(
                    "{item} is {size} bytes long; {} are left before the footer",
                    self.left()
                ),
            ));
        }
        let taken = self.take(size as usize, item)?;
        std::str::from_utf8(taken)
            .map_err(|_| self.fault(&rules::TRAILER_STRING, item, format!("{item} is not UTF-8")))
    }
}
