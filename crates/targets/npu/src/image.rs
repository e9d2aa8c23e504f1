//! A program as the loader places it: every section that needs memory has an address, and relocations are applied.
//!
//! Addresses are arbitrary but fixed: sections start at multiples of 4 KiB from 2 GiB on, with at least one unused byte
//! behind each, so that an address one beyond a section is in none. `shave.*` comes first: the kernels' parameters hold
//! 32-bit addresses of each other. On-chip memory (`buffer.CMX_NN.*`, `program.metadata.cmx`) and registers
//! (`reg.Register.*`) are no sections of DDR; their symbols carry addresses of the chip.
//!
//! Source: `npu_compiler_elf` `vpux_loader.cpp`; what is placed is proven by running programs.

use crate::address::{self, Target};
use crate::document::Document;
use crate::elf::{RUNTIME_SYMBOLS, Relocation, SYMBOL_ENTRY};
use crate::npu3720;
use crate::relocation::{Formula, RUNTIME, RelocationKind};
use crate::rules;
use crate::section::{Section, section_flag, section_type};
use chipless_model::{Finding, Limits, Place};
use std::borrow::Cow;
use std::ops::Range;

/// Where the first section is placed.
pub const BASE: u64 = 0x8000_0000;
/// Sections start at multiples of this.
const PAGE: u64 = 4096;
/// A file with more faults than this is not worth a longer list.
const MOST_FINDINGS: usize = 32;
/// The chip's address space.
const ADDRESS_SPACE: u64 = 1 << 48;

/// One section of the file, placed.
#[derive(Clone, Debug)]
pub struct Placed<'f> {
    /// Name: that of the section, or `io.NetworkInput.N` and the like where inputs and outputs are symbols alone (NPU3720).
    pub name: Cow<'f, str>,
    /// Address of the first byte; `None` where the section takes no memory in DDR.
    pub address: Option<u64>,
    /// Bytes of memory.
    pub size: u64,
    /// Content after relocation: borrowed from the file where nothing was patched, empty where the section has memory only.
    pub bytes: Cow<'f, [u8]>,
    /// Where the content lies in the file.
    pub file_offset: u64,
}

/// A loaded program. It borrows the file alone.
#[derive(Clone, Debug)]
pub struct Image<'f> {
    sections: Vec<Placed<'f>>,
    /// Indices of placed sections by address.
    by_address: Vec<usize>,
    /// Section and offset of the entry.
    entry: (usize, u64),
    /// Inputs and outputs that are symbols alone: symbol table, number of the symbol, and index among the sections.
    interface: Vec<(usize, u32, usize)>,
    /// Tiles that the program was compiled for, where it relocates against symbols of the runtime.
    runtime: Option<u8>,
}

impl<'f> Image<'f> {
    /// Places the sections and applies the relocations. Programs for other chips are refused.
    ///
    /// Errors: everything that [`Document::supported`] says, sections that cannot be placed or need more than
    /// `limits.memory_bytes`, relocations that cannot be applied, no entry. One fault at most for each relocation section.
    pub fn load(document: &Document<'f>, limits: &Limits) -> Result<Image<'f>, Vec<Finding>> {
        document.supported().map_err(|finding| vec![*finding])?;
        let mut findings = Vec::new();
        let mut image = place(document, limits, &mut findings);
        if !findings.is_empty() {
            return Err(findings);
        }
        check_symbols(document, &mut findings);
        let mut patched = vec![Vec::new(); image.sections.len()];
        for (index, section) in document
            .sections()
            .iter()
            .enumerate()
            .filter(|(_, section)| section.kind == section_type::RELA)
        {
            if let Err(finding) = image.relocate(document, index, section, &mut patched) {
                findings.push(*finding);
            }
        }
        findings.truncate(MOST_FINDINGS);
        match entry(document, &image) {
            Ok(entry) => image.entry = entry,
            Err(finding) => findings.push(*finding),
        }
        if findings.is_empty() {
            Ok(image)
        } else {
            Err(findings)
        }
    }

    /// The sections in the order of the file.
    pub fn sections(&self) -> &[Placed<'f>] {
        &self.sections
    }

    /// The first section of this name.
    pub fn section(&self, name: &str) -> Option<usize> {
        self.sections
            .iter()
            .position(|section| section.name == name)
    }

    /// The bytes of a section; none where it has none.
    pub fn bytes(&self, section: usize) -> &[u8] {
        self.sections
            .get(section)
            .map_or(&[], |section| &section.bytes)
    }

    /// Tiles that the program uses: those with a workspace in on-chip memory.
    pub fn tiles(&self) -> u8 {
        if let Some(tiles) = self.runtime {
            return tiles;
        }
        let tile = |section: &Placed<'_>| {
            section
                .name
                .strip_prefix("buffer.CMX_NN.")?
                .parse::<u8>()
                .ok()
        };
        self.sections
            .iter()
            .filter_map(tile)
            .max()
            .map_or(0, |last| last.saturating_add(1))
    }

    /// Section and offset of the program's root structure.
    pub fn entry(&self) -> (usize, u64) {
        self.entry
    }

    /// What an address of a descriptor names.
    pub(crate) fn resolve(&self, address: u64) -> Target {
        if let Some((tiles, offset)) = address::cmx(address) {
            return Target::Cmx { tiles, offset };
        }
        if address::REGISTERS.contains(&address) {
            return Target::Register(address);
        }
        self.locate(address)
            .map_or(Target::Unmapped, |(section, offset)| {
                Target::Section(section, offset)
            })
    }

    /// The section at an address, and the offset in it; `None` where no section is.
    pub fn locate(&self, address: u64) -> Option<(usize, u64)> {
        let behind = self
            .by_address
            .partition_point(|index| self.start(*index) <= address);
        let index = *self.by_address.get(behind.checked_sub(1)?)?;
        let offset = address - self.start(index);
        (offset < self.sections.get(index)?.size).then_some((index, offset))
    }

    fn start(&self, index: usize) -> u64 {
        self.sections
            .get(index)
            .and_then(|section| section.address)
            .unwrap_or(u64::MAX)
    }

    /// Where bytes of a section lie in the file; only the section's name where they do not.
    pub fn place(&self, section: usize, offset: u64, size: u64) -> Place {
        let Some(section) = self.sections.get(section) else {
            return Place::file();
        };
        let place = if section.bytes.is_empty() {
            Place::file()
        } else {
            Place::bytes(
                section
                    .file_offset
                    .saturating_add(offset.min(section.bytes.len() as u64)),
                size,
            )
        };
        place.in_part(section.name.clone().into_owned())
    }

    /// Applies one relocation section.
    fn relocate(
        &mut self,
        document: &Document<'f>,
        index: usize,
        section: &Section<'f>,
        patched: &mut [Vec<u64>],
    ) -> Result<(), Box<Finding>> {
        let header = document.elf().header_offset(index);
        let fault = |offset, item: &str, message: String| {
            let place = Place::bytes(header + offset, 4)
                .in_part(section.name.to_owned())
                .at(item);
            Err(Box::new(rules::RELOCATION_SECTION.at(place, message)))
        };
        let (link, target) = (section.link as usize, section.info as usize);
        let is_runtime = section.link == RUNTIME_SYMBOLS;
        if is_runtime && self.runtime.is_none() {
            return fault(
                40,
                "sh_link",
                "relocations against the runtime's own symbols (NPU3720) are not supported"
                    .to_owned(),
            );
        }
        let sections = document.sections();
        if !is_runtime
            && sections
                .get(link)
                .is_none_or(|table| table.kind != section_type::SYMTAB)
        {
            return fault(
                40,
                "sh_link",
                format!(
                    "section {link} is not a symbol table; the file has {} sections",
                    sections.len()
                ),
            );
        }
        if section.flags & section_flag::INFO_LINK == 0 {
            return fault(
                8,
                "sh_flags",
                "the flag INFO_LINK is missing: sh_info is not known to be the target".to_owned(),
            );
        }
        let has_bytes = |target: &Placed<'_>| target.address.is_some() && !target.bytes.is_empty();
        let Some((target, marks)) = self
            .sections
            .get(target)
            .filter(|target| has_bytes(target))
            .and(patched.get_mut(target))
            .map(|marks| (target, marks))
        else {
            return fault(
                44,
                "sh_info",
                format!(
                    "section {target} is not a loaded section with bytes; the file has {} sections",
                    sections.len()
                ),
            );
        };
        for (number, relocation) in document.elf().relocations(index).enumerate() {
            self.patch(document, link, target, &relocation, marks)
                .map_err(|(rule, message)| {
                    let place = Place::bytes(section.offset.saturating_add(number as u64 * 24), 24)
                        .in_part(section.name.to_owned());
                    let found = rule.at(place.at(format!("relocation {number}")), message);
                    Box::new(
                        found.with(self.place(target, relocation.offset, 0), "what it patches"),
                    )
                })?;
        }
        Ok(())
    }

    fn patch(
        &mut self,
        document: &Document<'f>,
        table: usize,
        target: usize,
        relocation: &Relocation,
        marks: &mut Vec<u64>,
    ) -> Result<(), (&'static chipless_model::Rule, String)> {
        let Some(kind) = RelocationKind::of(relocation.kind) else {
            return Err((
                &rules::RELOCATION_KIND,
                format!("relocation kind {} is unknown", relocation.kind),
            ));
        };
        let is_foreign = match kind.formula {
            Formula::Foreign(why) => Some(why),
            Formula::Runtime(_) if table != RUNTIME_SYMBOLS as usize => Some(RUNTIME),
            _ => None,
        };
        if let Some(why) = is_foreign {
            return Err((
                &rules::RELOCATION_UNSUPPORTED,
                format!("{} is not supported: {why}", kind.name),
            ));
        }
        let (symbol, slots) = self.symbol_value(document, table, relocation.symbol)?;
        let is_runtime = table == RUNTIME_SYMBOLS as usize;
        let Some(place) = self.sections.get_mut(target) else {
            return Ok(());
        };
        let size = place.bytes.len();
        let Some(range) = field(relocation.offset, kind.size, size) else {
            let message = format!(
                "{} patches {} bytes at {:#x}; {} has {size:#x}",
                kind.name, kind.size, relocation.offset, place.name
            );
            return Err((&rules::RELOCATION_OFFSET, message));
        };
        let is_first = !matches!(kind.formula, Formula::Replace) || mark(marks, &range, size);
        let Some(bytes) = place.bytes.to_mut().get_mut(range) else {
            return Ok(());
        };
        let mut old = [0; 8];
        old.iter_mut()
            .zip(bytes.iter())
            .for_each(|(to, from)| *to = *from);
        let old = u64::from_le_bytes(old);
        let new = match kind.formula {
            Formula::Runtime(_) => kind.apply_runtime(old, symbol, slots, relocation.addend),
            _ => symbol
                .checked_add_signed(relocation.addend)
                .and_then(|sum| kind.apply(old, sum)),
        };
        let Some(new) = new else {
            let message = format!(
                "S {symbol:#x} + A {:#x} does not fit the {} bytes of {}",
                relocation.addend, kind.size, kind.name
            );
            return Err((&rules::RELOCATION_OVERFLOW, message));
        };
        // The compiler lists some relocations of profiled programs twice: the same value again loses nothing. The runtime's
        // symbols are applied one after the other, and an elementwise operation's input address is told twice.
        if !is_first && !is_runtime && new != old {
            let message = format!(
                "the {} bytes at {:#x} of {} were relocated before, to {old:#x}; now to {new:#x}",
                kind.size, relocation.offset, place.name
            );
            return Err((&rules::RELOCATION_TWICE, message));
        }
        bytes
            .iter_mut()
            .zip(new.to_le_bytes())
            .for_each(|(to, from)| *to = from);
        Ok(())
    }

    /// S: the address of the symbol, and how many slots the runtime has there.
    fn symbol_value(
        &self,
        document: &Document<'f>,
        table: usize,
        index: u32,
    ) -> Result<(u64, u64), (&'static chipless_model::Rule, String)> {
        let rule = &rules::RELOCATION_SYMBOL;
        if table == RUNTIME_SYMBOLS as usize {
            let symbol = npu3720::runtime_symbol(index, self.runtime.unwrap_or(1));
            let unknown = || {
                (
                    rule,
                    format!("symbol {index} of the runtime does not exist; 0 to 7 do"),
                )
            };
            return symbol
                .map(|symbol| (symbol.value, symbol.slots))
                .ok_or_else(unknown);
        }
        if let Some((.., section)) = self
            .interface
            .iter()
            .find(|(of, number, _)| (*of, *number) == (table, index))
        {
            return Ok((self.start(*section), 0));
        }
        let Some(symbol) = document.elf().symbol(table, index) else {
            let count = document.elf().symbols(table).len();
            return Err((
                rule,
                format!("symbol {index} does not exist; the table has {count}"),
            ));
        };
        let Some(section) = self
            .sections
            .get(usize::from(symbol.section))
            .filter(|_| symbol.section != 0)
        else {
            let count = self.sections.len();
            return Err((
                rule,
                format!(
                    "symbol {index} belongs to section {:#x}; the file has {count} sections",
                    symbol.section
                ),
            ));
        };
        if let Some(address) = section.address {
            return address
                .checked_add(symbol.value)
                .map(|value| (value, 0))
                .ok_or_else(|| (rule, format!("the value of symbol {index} is beyond 2^64")));
        }
        let memory = document
            .sections()
            .get(usize::from(symbol.section))
            .is_some_and(Section::is_memory_only);
        if memory {
            Ok((symbol.value, 0))
        } else {
            Err((
                rule,
                format!(
                    "symbol {index} belongs to {}, which is not loaded",
                    section.name
                ),
            ))
        }
    }
}

/// The bytes of a field that a relocation patches, where they lie inside.
fn field(offset: u64, size: u8, section: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start
        .checked_add(usize::from(size))
        .filter(|end| *end <= section)?;
    Some(start..end)
}

/// Marks bytes as patched, one bit each; `false` where one was before.
fn mark(marks: &mut Vec<u64>, range: &Range<usize>, size: usize) -> bool {
    if marks.is_empty() {
        marks.resize(size.div_ceil(64), 0);
    }
    let mut fresh = true;
    for byte in range.clone() {
        let Some(word) = marks.get_mut(byte / 64) else {
            return fresh;
        };
        fresh &= *word >> (byte % 64) & 1 == 0;
        *word |= 1 << (byte % 64);
    }
    fresh
}

/// Gives addresses.
fn place<'f>(document: &Document<'f>, limits: &Limits, findings: &mut Vec<Finding>) -> Image<'f> {
    let elf = document.elf();
    let runtime = document
        .generation()
        .is_some_and(|generation| generation.runtime_symbols);
    let placed = |(index, section): (usize, &Section<'f>)| Placed {
        name: Cow::Borrowed(section.name),
        address: None,
        size: section.size,
        bytes: Cow::Borrowed(elf.section_bytes(index)),
        file_offset: section.offset,
    };
    let mut sections: Vec<Placed<'f>> = elf.sections().iter().enumerate().map(placed).collect();
    let is_placed = |section: &Section<'_>| {
        matches!(section.kind, section_type::PROGBITS | section_type::NOBITS)
            && (runtime || section.flags & section_flag::ALLOC != 0)
    };
    let shave = |section: &Section<'_>| {
        ["shave.", ".text.Kernel"]
            .iter()
            .any(|prefix| section.name.starts_with(prefix))
    };
    let mut by_address = Vec::with_capacity(sections.len());
    let mut next = BASE;
    for first in [true, false] {
        for (index, section) in elf
            .sections()
            .iter()
            .enumerate()
            .filter(|(_, section)| is_placed(section) && shave(section) == first)
        {
            match next_address(next, (section.alignment, section.size), limits) {
                Ok((address, end)) => {
                    next = end;
                    by_address.push(index);
                    if let Some(placed) = sections.get_mut(index) {
                        placed.address = Some(address);
                    }
                }
                Err((rule, offset, message)) => {
                    let place = Place::bytes(elf.header_offset(index) + offset, 8)
                        .in_part(section.name.to_owned());
                    findings.push(rule.at(place, message));
                }
            }
        }
    }
    let mut interface = Vec::new();
    if runtime {
        for (table, number, name, size) in interface_symbols(document) {
            match next_address(next, (1, size), limits) {
                Ok((address, end)) => {
                    next = end;
                    by_address.push(sections.len());
                    interface.push((table, number, sections.len()));
                    sections.push(Placed {
                        name: Cow::Owned(name),
                        address: Some(address),
                        size,
                        bytes: Cow::Borrowed(&[]),
                        file_offset: 0,
                    });
                }
                Err((rule, _, message)) => {
                    findings.push(rule.at(Place::file().in_part(name), message));
                }
            }
        }
    }
    for (index, section) in elf.sections().iter().enumerate() {
        // As the loader: what it cannot give a meaning it refuses, unless the type is left to users.
        let known = matches!(section.kind, 0..=4 | 7 | 8 | 0x8000_0000..=0xffff_ffff);
        if !known {
            let place = Place::bytes(elf.header_offset(index) + 4, 4)
                .in_part(section.name.to_owned())
                .at("sh_type");
            findings.push(rules::ELF_SECTION_KIND.at(
                place,
                format!(
                    "the loader refuses sections of type {}",
                    section.kind_name()
                ),
            ));
        }
    }
    findings.truncate(MOST_FINDINGS);
    Image {
        sections,
        by_address,
        entry: (0, 0),
        interface,
        runtime: runtime.then(|| document.tiles().max(1)),
    }
}

/// Symbols of inputs and outputs, which are all that a program for NPU3720 has of them: symbol table, number of the symbol, name as a section,
/// and size.
pub(crate) fn interface_symbols(document: &Document<'_>) -> Vec<(usize, u32, String, u64)> {
    let mut found = Vec::new();
    for (index, table) in document.sections().iter().enumerate() {
        let name = match table.flags {
            flags if flags & section_flag::USER_INPUT != 0 => "NetworkInput",
            flags if flags & section_flag::USER_OUTPUT != 0 => "NetworkOutput",
            flags if flags & section_flag::PROFILING_OUTPUT != 0 => "ProfilingOutput",
            _ => continue,
        };
        if table.kind != section_type::SYMTAB {
            continue;
        }
        for (number, symbol) in document.elf().symbols(index).enumerate().skip(1) {
            let section = format!("io.{name}.{}", number - 1);
            found.push((index, number as u32, section, symbol.size));
        }
    }
    found
}

/// The address of the next section and the end of the pages that it takes; or the rule it breaks, the offset of the
/// field in its header and a message.
fn next_address(
    next: u64,
    (alignment, size): (u64, u64),
    limits: &Limits,
) -> Result<(u64, u64), (&'static chipless_model::Rule, u64, String)> {
    let alignment = alignment.max(1);
    if !alignment.is_power_of_two() {
        return Err((
            &rules::ELF_ALIGNMENT,
            48,
            format!("an alignment of {alignment} is not a power of two"),
        ));
    }
    let address = next.checked_next_multiple_of(alignment.max(PAGE));
    let end = address.and_then(|address| {
        address
            .checked_add(size)?
            .checked_add(1)?
            .checked_next_multiple_of(PAGE)
    });
    let limit = limits.memory_bytes.min(ADDRESS_SPACE - BASE);
    match (address, end) {
        (Some(address), Some(end))
            if address - BASE <= limit && size <= limit - (address - BASE) =>
        {
            Ok((address, end))
        }
        _ => {
            let before = next - BASE;
            let message = format!(
                "{size} bytes, behind {before} bytes of other sections, exceed memory_bytes = {limit}"
            );
            Err((&rules::ELF_MEMORY_LIMIT, 32, message))
        }
    }
}

/// Symbols must belong to sections of the file; the first fault of each table is told.
fn check_symbols(document: &Document<'_>, findings: &mut Vec<Finding>) {
    let count = document.sections().len();
    for (index, table) in document.sections().iter().enumerate() {
        let mut symbols = document.elf().symbols(index).enumerate();
        if let Some((number, symbol)) =
            symbols.find(|(_, symbol)| usize::from(symbol.section) >= count)
        {
            let place = Place::bytes(table.offset.saturating_add(number as u64 * 24 + 6), 2)
                .in_part(table.name.to_owned());
            let message = format!(
                "symbol {number} ({}) belongs to section {:#x}; the file has {count} sections",
                symbol.name, symbol.section
            );
            findings
                .push(rules::RELOCATION_SYMBOL.at(place.at(format!("symbol {number}")), message));
        }
    }
}

/// The one entry of the program.
fn entry(document: &Document<'_>, image: &Image<'_>) -> Result<(usize, u64), Box<Finding>> {
    let fault = |place, message: String| Box::new(rules::PROGRAM_ENTRY.at(place, message));
    let mut found: Option<(usize, u64, Place)> = None;
    let mut named = Place::file();
    for (index, table) in document.sections().iter().enumerate() {
        for (number, symbol) in document.elf().symbols(index).enumerate() {
            let is_entry = symbol.kind == SYMBOL_ENTRY;
            if !is_entry && symbol.name != "entry" {
                continue;
            }
            let place = Place::bytes(table.offset.saturating_add(number as u64 * 24), 24)
                .in_part(table.name.to_owned());
            let place = place.at(format!("symbol {number}"));
            if !is_entry {
                named = place;
                continue;
            }
            if let Some((_, _, first)) = found {
                return Err(Box::new(
                    fault(place, "a second symbol is an entry".to_owned())
                        .with(first, "the first entry"),
                ));
            }
            let section = usize::from(symbol.section);
            if image.bytes(section).is_empty()
                || image
                    .sections()
                    .get(section)
                    .is_none_or(|section| section.address.is_none())
            {
                return Err(fault(
                    place,
                    format!(
                        "the entry is in section {section}, which is not a loaded section with bytes"
                    ),
                ));
            }
            found = Some((section, symbol.value, place));
        }
    }
    let missing = || {
        fault(
            named,
            "no symbol has the type 10 of an entry (VPU_STT_ENTRY)".to_owned(),
        )
    };
    found
        .map(|(section, offset, _)| (section, offset))
        .ok_or_else(missing)
}
