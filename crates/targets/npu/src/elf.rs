//! ELF64 as NPU blobs use it: relocatable, little endian, `EI_VERSION` and `e_machine` 0, no program headers, with the
//! vendor's own section types, flags, symbol type and relocations. The structs are the `object` crate's; only what it
//! refuses (`EI_VERSION` 0) and what the vendor added is done here.
//!
//! Sources: ELF-64 object file format; `openvinotoolkit/npu_compiler_elf`, `vpux_elf/types/vpu_extensions.hpp`.

use crate::rules;
use crate::section::{Section, section_flag, section_type};
use chipless_model::{Finding, Place};
use object::LittleEndian as LE;
use object::elf::{FileHeader64, NoteHeader64, Rela64, SectionHeader64, Sym64};
use object::pod;
use std::ffi::CStr;

/// The symbol type of the program's entry (`VPU_STT_ENTRY`).
pub const SYMBOL_ENTRY: u8 = 10;
/// `sh_link` of relocations against symbols that the runtime owns (`VPU_RT_SYMTAB`; NPU3720 only).
pub const RUNTIME_SYMBOLS: u32 = 0xff20;

/// Names longer than this are refused, so that tables whose entries share one endless string cost no time.
const LONGEST_NAME: usize = 4096;
/// A file with more faults than this is not worth a longer list.
const MOST_FINDINGS: usize = 32;

/// One symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'f> {
    /// Name.
    pub name: &'f str,
    /// Type: 0 none, 3 section, 10 [entry](SYMBOL_ENTRY).
    pub kind: u8,
    /// Binding: 0 local.
    pub binding: u8,
    /// Section that it belongs to; 0 none.
    pub section: u16,
    /// Offset in its section, or a fixed address on the chip.
    pub value: u64,
    /// Bytes; for inputs and outputs those of the tensor.
    pub size: u64,
}

/// One relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// First patched byte in the target section.
    pub offset: u64,
    /// Which [formula](crate::relocation).
    pub kind: u32,
    /// Index of the symbol S.
    pub symbol: u32,
    /// The addend A.
    pub addend: i64,
}

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'f> {
    /// Index of its section.
    pub section: usize,
    /// Offset of its header in the file.
    pub offset: u64,
    /// Name without the NUL.
    pub name: &'f [u8],
    /// Type.
    pub kind: u32,
    /// Content.
    pub description: &'f [u8],
}

/// The header and the sections of an ELF file. Everything borrows the file.
#[derive(Clone, Debug)]
pub struct Elf<'f> {
    bytes: &'f [u8],
    header: &'f FileHeader64<LE>,
    sections: Vec<Section<'f>>,
}

impl<'f> Elf<'f> {
    /// Reads the headers and checks every table of them: places, names, entry sizes. `None` where nothing can be read.
    pub fn read(bytes: &'f [u8], findings: &mut Vec<Finding>) -> Option<Elf<'f>> {
        let header = read_header(bytes, findings)?;
        let headers = section_headers(bytes, header, findings)?;
        let names = section_names(bytes, header, headers, findings)?;
        let mut elf = Elf {
            bytes,
            header,
            sections: Vec::with_capacity(headers.len()),
        };
        for (index, raw) in headers.iter().enumerate() {
            if findings.len() >= MOST_FINDINGS {
                return None;
            }
            elf.sections.push(section(
                raw,
                index,
                elf.header_offset(index),
                names,
                findings,
            ));
        }
        elf.check_ranges(findings);
        if findings.iter().any(Finding::is_error) {
            return None;
        }
        for index in 0..elf.sections.len() {
            if findings.len() >= MOST_FINDINGS {
                return None;
            }
            elf.check_table(index, findings);
        }
        (!findings.iter().any(Finding::is_error)).then_some(elf)
    }

    /// The file header.
    pub fn header(&self) -> &'f FileHeader64<LE> {
        self.header
    }

    /// The sections in their order.
    pub fn sections(&self) -> &[Section<'f>] {
        &self.sections
    }

    /// The first section of this name.
    pub fn section(&self, name: &str) -> Option<usize> {
        self.sections
            .iter()
            .position(|section| section.name == name)
    }

    /// The bytes of a section in the file; none where it has none there or does not exist.
    pub fn section_bytes(&self, index: usize) -> &'f [u8] {
        let Some(section) = self.sections.get(index) else {
            return &[];
        };
        if section.is_memory_only() {
            &[]
        } else {
            range(self.bytes, section.offset, section.size).unwrap_or_default()
        }
    }

    /// Offset of a section's header in the file.
    pub fn header_offset(&self, index: usize) -> u64 {
        self.header
            .e_shoff
            .get(LE)
            .saturating_add(index as u64 * 64)
    }

    /// First byte behind everything that headers and sections name.
    pub fn end(&self) -> u64 {
        let table = self.header_offset(self.sections.len());
        let sections = self
            .sections
            .iter()
            .filter(|section| !section.is_memory_only());
        sections
            .map(|section| section.offset.saturating_add(section.size))
            .fold(table, u64::max)
    }

    /// The symbols of a symbol table; none where the section is not one.
    pub fn symbols(&self, index: usize) -> impl ExactSizeIterator<Item = Symbol<'f>> + use<'f> {
        let names = self
            .sections
            .get(index)
            .map_or(&[][..], |table| self.section_bytes(table.link as usize));
        self.raw_symbols(index).iter().map(move |symbol| Symbol {
            name: string(names, symbol.st_name.get(LE)).unwrap_or_default(),
            kind: symbol.st_info.0 & 0xf,
            binding: symbol.st_info.0 >> 4,
            section: symbol.st_shndx.get(LE).0,
            value: symbol.st_value.get(LE),
            size: symbol.st_size.get(LE),
        })
    }

    /// One symbol without its name; `None` where the table has no such entry.
    pub fn symbol(&self, table: usize, index: u32) -> Option<Symbol<'f>> {
        let symbol = self.raw_symbols(table).get(index as usize)?;
        Some(Symbol {
            name: "",
            kind: symbol.st_info.0 & 0xf,
            binding: symbol.st_info.0 >> 4,
            section: symbol.st_shndx.get(LE).0,
            value: symbol.st_value.get(LE),
            size: symbol.st_size.get(LE),
        })
    }

    fn raw_symbols(&self, index: usize) -> &'f [Sym64<LE>] {
        let is_table = self
            .sections
            .get(index)
            .is_some_and(|section| section.kind == section_type::SYMTAB);
        if is_table {
            pod::slice_from_all_bytes(self.section_bytes(index)).unwrap_or_default()
        } else {
            &[]
        }
    }

    /// The relocations of a relocation section; none where the section is not one.
    pub fn relocations(&self, index: usize) -> impl ExactSizeIterator<Item = Relocation> + use<'f> {
        let is_table = self
            .sections
            .get(index)
            .is_some_and(|section| section.kind == section_type::RELA);
        let bytes = if is_table {
            self.section_bytes(index)
        } else {
            &[]
        };
        let raw: &'f [Rela64<LE>] = pod::slice_from_all_bytes(bytes).unwrap_or_default();
        raw.iter().map(|relocation| Relocation {
            offset: relocation.r_offset.get(LE),
            kind: relocation.r_type(LE, false).0,
            symbol: relocation.r_sym(LE, false),
            addend: relocation.r_addend.get(LE),
        })
    }

    /// The notes of all note sections, in their order.
    pub fn notes(&self, findings: &mut Vec<Finding>) -> Vec<Note<'f>> {
        let mut notes = Vec::new();
        for (index, section) in self
            .sections
            .iter()
            .enumerate()
            .filter(|(_, section)| section.kind == section_type::NOTE)
        {
            let bytes = self.section_bytes(index);
            let mut at = 0;
            while at < bytes.len() {
                let Some((note, next)) = note(bytes, at) else {
                    let found = bytes.len() - at;
                    let place = Place::bytes(section.offset + at as u64, found as u64)
                        .in_part(section.name.to_owned());
                    let (name_size, size) = pod::from_bytes::<NoteHeader64<LE>>(&bytes[at..])
                        .map_or((0, 0), |(header, _)| {
                            (header.n_namesz.get(LE), header.n_descsz.get(LE))
                        });
                    findings.push(rules::ELF_NOTE.at(
                        place.at("note header"),
                        format!(
                            "the note needs 12 bytes of header, {name_size} of name and {size} of content; the section has {found} left"
                        ),
                    ));
                    break;
                };
                notes.push(Note {
                    section: index,
                    offset: section.offset + at as u64,
                    ..note
                });
                at = next;
            }
        }
        notes
    }

    /// Checks that sections lie inside the file and share no bytes, so that walking all of them takes time in proportion
    /// to the file.
    fn check_ranges(&self, findings: &mut Vec<Finding>) {
        let size = self.bytes.len();
        let in_file = || {
            self.sections
                .iter()
                .enumerate()
                .filter(|(_, section)| !section.is_memory_only())
        };
        let place = |index: usize, section: &Section<'_>| {
            let place =
                Place::bytes(self.header_offset(index) + 24, 16).in_part(section.name.to_owned());
            place.at("sh_offset, sh_size")
        };
        let is_outside = |section: &Section<'_>| {
            section
                .offset
                .checked_add(section.size)
                .is_none_or(|end| end > size as u64)
        };
        let mut outside = in_file().filter(|(_, section)| is_outside(section));
        if let Some((index, section)) = outside.next() {
            let more = match outside.count() {
                0 => String::new(),
                more => format!("; so do {more} more sections"),
            };
            let message = format!(
                "{} bytes from offset {:#x} reach beyond the ELF's {size} bytes{more}",
                section.size, section.offset
            );
            findings.push(rules::ELF_SECTION_BEYOND_FILE.at(place(index, section), message));
            return;
        }
        let mut order: Vec<(usize, &Section<'_>)> =
            in_file().filter(|(_, section)| section.size != 0).collect();
        order.sort_unstable_by_key(|(_, section)| section.offset);
        for pair in order.windows(2) {
            let [(first_index, first), (index, section)] = pair else {
                continue;
            };
            let end = first.offset.saturating_add(first.size);
            if end > section.offset {
                let message = format!(
                    "the section starts at {:#x}; {} goes on to {end:#x}",
                    section.offset, first.name
                );
                findings.push(
                    rules::ELF_SECTION_OVERLAP
                        .at(place(*index, section), message)
                        .with(place(*first_index, first), "the other section"),
                );
                return;
            }
        }
    }

    /// Checks that a table consists of whole entries and that its names and strings are in place.
    fn check_table(&self, index: usize, findings: &mut Vec<Finding>) {
        let section = &self.sections[index];
        // Sections that are loaded are checked when they are placed.
        if section.flags & section_flag::ALLOC == 0 && !section.alignment.max(1).is_power_of_two() {
            let place = Place::bytes(self.header_offset(index) + 48, 8)
                .in_part(section.name.to_owned())
                .at("sh_addralign");
            findings.push(rules::ELF_ALIGNMENT.at(
                place,
                format!(
                    "an alignment of {} is not a power of two",
                    section.alignment
                ),
            ));
        }
        if !matches!(section.kind, section_type::SYMTAB | section_type::RELA) {
            return;
        }
        let header = self.header_offset(index);
        if section.entry_size != 24 {
            let place = Place::bytes(header + 56, 8)
                .in_part(section.name.to_owned())
                .at("sh_entsize");
            findings.push(rules::ELF_ENTRY_SIZE.at(
                place,
                format!(
                    "entries of {} are 24 bytes, not {}",
                    section.kind_name(),
                    section.entry_size
                ),
            ));
            return;
        }
        if !section.size.is_multiple_of(24) {
            let place = Place::bytes(header + 32, 8)
                .in_part(section.name.to_owned())
                .at("sh_size");
            findings.push(rules::ELF_ENTRY_SIZE.at(
                place,
                format!(
                    "{} bytes are not a whole number of 24-byte entries",
                    section.size
                ),
            ));
            return;
        }
        if section.kind != section_type::SYMTAB {
            return;
        }
        let link = section.link as usize;
        if self
            .sections
            .get(link)
            .is_none_or(|names| names.kind != section_type::STRTAB)
        {
            let place = Place::bytes(header + 40, 4)
                .in_part(section.name.to_owned())
                .at("sh_link");
            findings.push(
                rules::ELF_LINK.at(place, format!("the names of the symbols should be in a string table; section {link} is not one")),
            );
            return;
        }
        let names = self.section_bytes(link);
        for (number, symbol) in self.raw_symbols(index).iter().enumerate() {
            let offset = symbol.st_name.get(LE);
            if let Err(why) = string(names, offset) {
                let place = Place::bytes(section.offset + number as u64 * 24, 4)
                    .in_part(section.name.to_owned());
                let table = self.sections[link].name;
                findings.push(rules::ELF_STRING.at(
                    place.at(format!("symbol {number}")),
                    bad_string(offset, table, names.len(), why),
                ));
                return;
            }
        }
    }
}

fn read_header<'f>(bytes: &'f [u8], findings: &mut Vec<Finding>) -> Option<&'f FileHeader64<LE>> {
    let mut fault = |offset, size, message: String| {
        findings
            .push(rules::ELF_HEADER.at(Place::bytes(offset, size).in_part("ELF header"), message));
    };
    let Ok((header, _)) = pod::from_bytes::<FileHeader64<LE>>(bytes) else {
        fault(
            0,
            bytes.len() as u64,
            if bytes.is_empty() {
                "the file is empty; expected an ELF64 header".to_owned()
            } else {
                format!(
                    "expected at least the 64 bytes of an ELF64 header, found {}",
                    bytes.len()
                )
            },
        );
        return None;
    };
    let ident = &header.e_ident;
    if ident.magic != *b"\x7fELF" {
        fault(
            0,
            4,
            format!(
                "expected the magic 7f 45 4c 46 of an ELF file, found {:02x?}",
                ident.magic
            ),
        );
        return None;
    }
    let before = (
        ident.class.0,
        ident.data.0,
        header.e_type.get(LE).0,
        header.e_machine.get(LE).0,
    );
    for (offset, size, what, expected, found) in [
        (4, 1, "EI_CLASS (64 bit)", 2, u16::from(before.0)),
        (5, 1, "EI_DATA (little endian)", 1, u16::from(before.1)),
        (16, 2, "e_type (relocatable)", 1, before.2),
        (
            18,
            2,
            "e_machine (none: NPU blobs name no machine)",
            0,
            before.3,
        ),
    ] {
        if expected != found {
            fault(
                offset,
                size,
                format!("{what} should be {expected}, is {found}"),
            );
            return None;
        }
    }
    Some(header)
}

fn section_headers<'f>(
    bytes: &'f [u8],
    header: &FileHeader64<LE>,
    findings: &mut Vec<Finding>,
) -> Option<&'f [SectionHeader64<LE>]> {
    let mut fault = |offset, size, item: &str, message: String| {
        findings.push(rules::ELF_SECTION_TABLE.at(
            Place::bytes(offset, size).in_part("ELF header").at(item),
            message,
        ));
    };
    let (start, count, entry) = (
        header.e_shoff.get(LE),
        header.e_shnum.get(LE),
        header.e_shentsize.get(LE),
    );
    if entry != 64 {
        fault(
            58,
            2,
            "e_shentsize",
            format!("section headers of ELF64 are 64 bytes, not {entry}"),
        );
        return None;
    }
    if count == 0 {
        fault(60, 2, "e_shnum", "the file has no sections".to_owned());
        return None;
    }
    let size = u64::from(count) * 64;
    let table = range(bytes, start, size).and_then(|table| pod::slice_from_all_bytes(table).ok());
    if table.is_none() {
        let (offset, item) = if start > bytes.len() as u64 {
            (40, "e_shoff")
        } else {
            (60, "e_shnum")
        };
        let message = format!(
            "{count} section headers from offset {start:#x} take {size} bytes; the ELF has {} bytes",
            bytes.len()
        );
        fault(offset, if offset == 40 { 8 } else { 2 }, item, message);
    }
    table
}

fn section_names<'f>(
    bytes: &'f [u8],
    header: &FileHeader64<LE>,
    headers: &[SectionHeader64<LE>],
    findings: &mut Vec<Finding>,
) -> Option<&'f [u8]> {
    let index = header.e_shstrndx.get(LE).0;
    let place = Place::bytes(62, 2).in_part("ELF header").at("e_shstrndx");
    let Some(names) = headers
        .get(usize::from(index))
        .filter(|names| names.sh_type.get(LE).0 == section_type::STRTAB)
    else {
        let message = format!(
            "section {index} should be the string table of section names; the file has {} sections",
            headers.len()
        );
        findings.push(rules::ELF_SECTION_TABLE.at(place, message));
        return None;
    };
    let (offset, size) = (names.sh_offset.get(LE), names.sh_size.get(LE));
    let found = range(bytes, offset, size);
    if found.is_none() {
        let message = format!(
            "the section names at {offset:#x} ({size} bytes) lie beyond the ELF's {} bytes",
            bytes.len()
        );
        findings.push(rules::ELF_SECTION_BEYOND_FILE.at(place, message));
    }
    found
}

fn section<'f>(
    raw: &SectionHeader64<LE>,
    index: usize,
    header: u64,
    names: &'f [u8],
    findings: &mut Vec<Finding>,
) -> Section<'f> {
    let offset = raw.sh_name.get(LE);
    let name = string(names, offset).unwrap_or_else(|why| {
        let place = Place::bytes(header, 4)
            .in_part(format!("section {index}"))
            .at("sh_name");
        findings.push(rules::ELF_STRING.at(
            place,
            bad_string(offset, "the section name table", names.len(), why),
        ));
        ""
    });
    Section {
        name,
        kind: raw.sh_type.get(LE).0,
        flags: raw.sh_flags.get(LE).0,
        address: raw.sh_addr.get(LE),
        offset: raw.sh_offset.get(LE),
        size: raw.sh_size.get(LE),
        link: raw.sh_link.get(LE),
        info: raw.sh_info.get(LE),
        alignment: raw.sh_addralign.get(LE),
        entry_size: raw.sh_entsize.get(LE),
    }
}

fn note(bytes: &[u8], at: usize) -> Option<(Note<'_>, usize)> {
    let (header, rest) = pod::from_bytes::<NoteHeader64<LE>>(bytes.get(at..)?).ok()?;
    let name_size = header.n_namesz.get(LE) as usize;
    let name = rest.get(..name_size)?;
    let start = name_size.checked_next_multiple_of(4)?;
    let end = start.checked_add(header.n_descsz.get(LE) as usize)?;
    let description = rest.get(start..end)?;
    let name = name.strip_suffix(b"\0").unwrap_or(name);
    let next = at
        .checked_add(12)?
        .checked_add(end.checked_next_multiple_of(4)?)?;
    Some((
        Note {
            section: 0,
            offset: 0,
            name,
            kind: header.n_type.get(LE).0,
            description,
        },
        next,
    ))
}

/// A byte range of the file, where it lies inside.
pub(crate) fn range(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    bytes
        .get(usize::try_from(offset).ok()?..)?
        .get(..usize::try_from(size).ok()?)
}

/// A NUL-terminated string of a table, or what is wrong with it.
fn string(table: &[u8], offset: u32) -> Result<&str, &'static str> {
    let rest = table
        .get(offset as usize..)
        .filter(|rest| !rest.is_empty())
        .ok_or("is beyond it")?;
    let rest = &rest[..rest.len().min(LONGEST_NAME)];
    let name =
        CStr::from_bytes_until_nul(rest).map_err(|_| "has no terminating NUL within 4096 bytes")?;
    name.to_str().map_err(|_| "is not UTF-8")
}

fn bad_string(offset: u32, table: &str, size: usize, why: &str) -> String {
    format!("the name at offset {offset:#x} of {table} ({size} bytes) {why}")
}
