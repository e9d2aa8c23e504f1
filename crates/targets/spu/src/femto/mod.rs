//! The `.femto` container: what a compile for the SPU leaves for firmware to load.
//!
//! All numbers are little-endian. A header of 256 bytes names the model and four parts: the model's vectors and sequences,
//! the chip's cores and memory banks, pages of memory contents (mostly encrypted), and reference sequences.

pub mod rules;
mod verify;
mod view;

use chipless_model::{Finding, Place};
use std::ops::Range;

const MAGIC: &[u8] = b"f3mt0";
const HEADER_BYTES: usize = 256;
const PAGE_BYTES: usize = 256;
/// Bytes of the model's configuration before its vectors, of the chip's before its cores.
const MODEL_BYTES: usize = 16;
const CHIP_BYTES: usize = 6;
/// Bytes of a vector, of a sequence without its vectors, of a core without its banks.
const VECTOR_BYTES: usize = 12;
const SEQUENCE_BYTES: usize = 5;
const CORE_BYTES: usize = 4;

/// What a vector is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorKind {
    /// To the accelerator, with each firing.
    Input,
    /// To the host.
    Output,
    /// To the accelerator, now and then: a latched input.
    Parameter,
}

/// A vector of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FemtoVector {
    /// Its number.
    pub id: u8,
    /// What it is for.
    pub kind: VectorKind,
    /// Core that takes it.
    pub core: u8,
    /// Bits of an element.
    pub precision: u8,
    /// Elements of the model's vector.
    pub length: u16,
    /// Elements on the wire.
    pub padded_length: u16,
    /// Program counter of an input, mailbox of an output.
    pub address: u32,
    /// Where it stands in the file.
    offset: usize,
}

/// A memory bank and its state at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Data memory from 0x00, tables from 0x20, instructions 0x30.
    pub uid: u8,
    /// 0 off, 1 disabled, 2 sleeping, 3 in transition, 4 on, 5 by state machine.
    pub state: u8,
}

/// A page of memory contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number, counted over the whole file.
    pub number: u16,
    /// Its 32-bit words.
    pub words: u16,
    /// Where the first of them goes, on the chip's bus.
    pub address: u32,
    /// Where it stands in the file.
    pub offset: usize,
}

/// A core and its state at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its number.
    pub id: u8,
    /// 0 off, 1 on, 2 sleeping.
    pub status: u8,
    /// Its banks.
    pub banks: Vec<Bank>,
    /// Where it stands in the file.
    offset: usize,
    /// Where its banks stand.
    banks_offset: usize,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Femto {
    /// Version of the format.
    pub version: u16,
    /// Version of the driver that wrote it.
    pub driver: String,
    /// The model.
    pub model: String,
    /// Its version.
    pub model_version: String,
    /// 1 keyword spotting, 2 speech to intent, 3 speech enhancement, 10 another one.
    pub model_type: u16,
    /// The chip: 1 SPU-001, 3 and 4 SPU-150.
    pub part: u8,
    /// Key of the encryption; 32 for none.
    pub key: u8,
    /// Clock in MHz.
    pub mhz: u16,
    /// Vectors in the order of the file.
    pub vectors: Vec<FemtoVector>,
    /// Inputs and outputs of each sequence, by vector number.
    pub sequences: Vec<FemtoSequence>,
    /// Cores.
    pub cores: Vec<Core>,
    /// Pages of memory contents, in the order of the file.
    pub pages: Vec<Page>,
    /// Pages as the model's configuration counts them.
    pub stated_pages: u16,
    /// Where the configuration of the chip stands.
    chip_at: usize,
    /// Bytes of the file.
    pub size: u64,
}

/// Inputs and outputs of a sequence, by vector number.
pub type FemtoSequence = (Vec<u8>, Vec<u8>);

/// Why a container cannot be read.
type Error = Box<Finding>;

fn wrong(
    rule: &'static chipless_model::Rule,
    bytes: Range<usize>,
    part: &'static str,
    message: impl Into<String>,
) -> Error {
    let place = Place::bytes(bytes.start as u64, bytes.len() as u64).in_part(part);
    Box::new(rule.at(place, message.into()))
}

/// A section of a file, whose offsets count from its own start.
#[derive(Clone, Copy)]
struct Section<'a> {
    bytes: &'a [u8],
    /// Where it stands in the file.
    start: usize,
    name: &'static str,
}

impl<'a> Section<'a> {
    fn take(&self, offset: usize, size: usize) -> Result<&'a [u8], Error> {
        let found = offset
            .checked_add(size)
            .and_then(|end| self.bytes.get(offset..end));
        found.ok_or_else(|| {
            let message = format!(
                "expected {size} bytes at {offset} of the {}, found {} bytes in all",
                self.name,
                self.bytes.len()
            );
            let at = self.start.saturating_add(offset);
            wrong(
                &rules::SIZE,
                at..at.saturating_add(size),
                self.name,
                message,
            )
        })
    }

    fn number(&self, offset: usize, size: usize) -> Result<u32, Error> {
        let bytes = self.take(offset, size)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn byte(&self, offset: usize) -> Result<u8, Error> {
        Ok(self.take(offset, 1)?[0])
    }

    fn half(&self, offset: usize) -> Result<u16, Error> {
        Ok(self.number(offset, 2)? as u16)
    }

    /// Text up to its first zero; the rest of the field must be text as well.
    fn text(&self, offset: usize, size: usize, what: &str) -> Result<String, Error> {
        let bytes = self.take(offset, size)?;
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let at = self.start + offset + e.valid_up_to();
            wrong(
                &rules::FILE,
                at..at + 1,
                self.name,
                format!("expected the {what} in UTF-8, found other bytes"),
            )
        })?;
        Ok(text.split('\0').next().unwrap_or_default().to_owned())
    }

    /// The records of a table: entries of size and offset, offsets counted from the table.
    fn records(&self, table: usize, count: usize) -> Result<Vec<Section<'a>>, Error> {
        let mut records: Vec<Section<'a>> = Vec::with_capacity(count);
        let mut end = count * 4;
        for index in 0..count {
            let entry = table + index * 4;
            let (size, offset) = (self.half(entry)? as usize, self.half(entry + 2)? as usize);
            if offset < end {
                let message = format!(
                    "expected record {index} behind what stands before it (from {end} on), found it at {offset}"
                );
                return Err(wrong(
                    &rules::SIZE,
                    self.start + entry..self.start + entry + 4,
                    self.name,
                    message,
                ));
            }
            end = offset + size;
            let bytes = self.take(table + offset, size)?;
            records.push(Section {
                bytes,
                start: self.start + table + offset,
                name: self.name,
            });
        }
        Ok(records)
    }

    /// Refuses a record of another size than what it lists takes.
    fn expect_size(&self, size: usize) -> Result<(), Error> {
        if self.bytes.len() == size {
            return Ok(());
        }
        let message = format!(
            "expected a record of {size} bytes for what it lists, found {}",
            self.bytes.len()
        );
        Err(wrong(
            &rules::SIZE,
            self.start..self.start + self.bytes.len(),
            self.name,
            message,
        ))
    }
}

impl Femto {
    /// Whether a file starts as a container does.
    pub fn recognize(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Reads a container.
    ///
    /// # Errors
    /// Which part is missing, does not have its stated size, or makes no sense.
    pub fn read(data: &[u8]) -> Result<Femto, Error> {
        let whole = Section {
            bytes: data,
            start: 0,
            name: "file",
        };
        let header = Section {
            bytes: whole.take(0, HEADER_BYTES)?,
            start: 0,
            name: "header",
        };
        if !Femto::recognize(data) {
            return Err(wrong(
                &rules::FILE,
                0..5,
                "header",
                "expected the magic f3mt0, found another one",
            ));
        }
        if header.byte(5)? != 1 {
            let message = format!(
                "expected little-endian numbers (1), found the mark {}",
                header.byte(5)?
            );
            return Err(wrong(&rules::FILE, 5..6, "header", message));
        }
        if usize::from(header.half(6)?) != PAGE_BYTES {
            let message = format!(
                "expected chunks of {PAGE_BYTES} bytes, found {}",
                header.half(6)?
            );
            return Err(wrong(&rules::FILE, 6..8, "header", message));
        }
        // Sections follow each other without gaps.
        let mut end = HEADER_BYTES;
        let mut section = |size_at: usize, offset_at: usize, width: usize, name: &'static str| {
            let (size, offset) = (
                header.number(size_at, width)? as usize,
                header.number(offset_at, width)? as usize,
            );
            if offset != end {
                let message = format!(
                    "expected the {name} at {end}, where the section before it ends, found {offset}"
                );
                return Err(wrong(
                    &rules::SIZE,
                    offset_at..offset_at + width,
                    "header",
                    message,
                ));
            }
            let bytes = Section { name, ..whole }.take(offset, size)?;
            end = offset + size;
            Ok(Section {
                bytes,
                start: offset,
                name,
            })
        };
        let model = section(78, 80, 2, "model configuration")?;
        let chip = section(82, 84, 2, "chip configuration")?;
        let contents = section(86, 90, 4, "memory pages")?;
        section(94, 98, 4, "reference sequence")?;
        if end != data.len() {
            let message = format!(
                "expected a file of {end} bytes as the header says, found {}",
                data.len()
            );
            return Err(wrong(&rules::SIZE, end..data.len(), "file", message));
        }
        Ok(Femto {
            version: header.half(8)?,
            driver: header.text(10, 16, "version of the driver")?,
            model: header.text(26, 32, "name of the model")?,
            model_version: header.text(58, 16, "version of the model")?,
            model_type: model.half(0)?,
            part: chip.byte(0)?,
            key: chip.byte(1)?,
            mhz: chip.half(2)?,
            vectors: vectors(&model)?,
            sequences: sequences(&model)?,
            cores: cores(&chip)?,
            pages: pages(&contents)?,
            stated_pages: model.half(2)?,
            chip_at: chip.start,
            size: data.len() as u64,
        })
    }
}

fn vectors(model: &Section<'_>) -> Result<Vec<FemtoVector>, Error> {
    let (count, start) = (usize::from(model.half(4)?), usize::from(model.half(6)?));
    let sequences = usize::from(model.half(10)?);
    if start < MODEL_BYTES || start + count * VECTOR_BYTES > sequences {
        let message = format!(
            "expected {count} vectors from {MODEL_BYTES} on and before the sequences at {sequences}, found them at {start}"
        );
        return Err(wrong(
            &rules::SIZE,
            model.start + 4..model.start + 12,
            model.name,
            message,
        ));
    }
    let one = |index: usize| {
        let at = start + index * VECTOR_BYTES;
        let kind = match model.byte(at + 1)? {
            0 => VectorKind::Input,
            1 => VectorKind::Output,
            2 => VectorKind::Parameter,
            other => {
                let place = model.start + at + 1;
                return Err(wrong(
                    &rules::VECTOR,
                    place..place + 1,
                    model.name,
                    format!("expected a vector of kind 0 to 2, found {other}"),
                ));
            }
        };
        Ok(FemtoVector {
            id: model.byte(at)?,
            kind,
            core: model.byte(at + 2)?,
            precision: model.byte(at + 3)?,
            length: model.half(at + 4)?,
            padded_length: model.half(at + 6)?,
            address: model.number(at + 8, 4)?,
            offset: model.start + at,
        })
    };
    (0..count).map(one).collect()
}

fn sequences(model: &Section<'_>) -> Result<Vec<FemtoSequence>, Error> {
    let (count, table) = (usize::from(model.half(8)?), usize::from(model.half(10)?));
    let one = |record: Section<'_>| {
        let (inputs, outputs) = (usize::from(record.byte(1)?), usize::from(record.byte(3)?));
        let (inputs_at, outputs_at) = (usize::from(record.byte(2)?), usize::from(record.byte(4)?));
        record.expect_size(SEQUENCE_BYTES + inputs + outputs)?;
        Ok((
            record.take(inputs_at, inputs)?.to_vec(),
            record.take(outputs_at, outputs)?.to_vec(),
        ))
    };
    model.records(table, count)?.into_iter().map(one).collect()
}

fn cores(chip: &Section<'_>) -> Result<Vec<Core>, Error> {
    let (count, table) = (usize::from(chip.byte(4)?), usize::from(chip.byte(5)?));
    if table < CHIP_BYTES {
        let message =
            format!("expected the table of cores from {CHIP_BYTES} on, found it at {table}");
        return Err(wrong(
            &rules::SIZE,
            chip.start + 5..chip.start + 6,
            chip.name,
            message,
        ));
    }
    let one = |record: Section<'_>| {
        let (count, banks_at) = (usize::from(record.byte(2)?), usize::from(record.byte(3)?));
        record.expect_size(CORE_BYTES + 2 * count)?;
        let banks = record.take(banks_at, 2 * count)?.as_chunks::<2>().0;
        Ok(Core {
            id: record.byte(0)?,
            status: record.byte(1)?,
            banks: banks
                .iter()
                .map(|[uid, state]| Bank {
                    uid: *uid,
                    state: *state,
                })
                .collect(),
            offset: record.start,
            banks_offset: record.start + banks_at,
        })
    };
    chip.records(table, count)?.into_iter().map(one).collect()
}

fn pages(contents: &Section<'_>) -> Result<Vec<Page>, Error> {
    let (pages, rest) = contents.bytes.as_chunks::<PAGE_BYTES>();
    if !rest.is_empty() {
        let start = contents.start + pages.len() * PAGE_BYTES;
        let message = format!(
            "expected whole pages of {PAGE_BYTES} bytes, found {} bytes in the last",
            rest.len()
        );
        return Err(wrong(
            &rules::SIZE,
            start..start + rest.len(),
            contents.name,
            message,
        ));
    }
    let one = |(index, page): (usize, &[u8; PAGE_BYTES])| Page {
        number: u16::from_le_bytes([page[0], page[1]]),
        words: u16::from_le_bytes([page[2], page[3]]),
        address: u32::from_le_bytes([page[4], page[5], page[6], page[7]]),
        offset: contents.start + index * PAGE_BYTES,
    };
    Ok(pages.iter().enumerate().map(one).collect())
}
