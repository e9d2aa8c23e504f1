//! Kernels in the vendor's libraries: each is a whole ELF file of 32 bits, somewhere in a file that is anything.
//!
//! The code is the section `.text`; its name is the global symbol whose value is the entry of the ELF file.

use super::names::operation_of;
use super::operation::Operation;
use sha1::{Digest, Sha1};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A kernel that a library holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryKernel {
    /// SHA-1 over its code, 40 hexadecimal digits.
    pub sha1: String,
    /// Bytes of its code.
    pub size: u64,
    /// What the library calls it.
    pub name: String,
    /// What it computes, where the name says so.
    pub operation: Option<Operation>,
}

/// The start of an ELF file of 32 bits, little endian, of the only version there is.
const MAGIC: [u8; 7] = *b"\x7fELF\x01\x01\x01";
/// Sections of one kernel, at most; they have some twenty.
const MAX_SECTIONS: usize = 1 << 12;
/// Bytes of a name, at most.
const MAX_NAME: usize = 256;
const SECTION_HEADER: usize = 40;
const SYMBOL: usize = 16;
const SYMBOL_TABLE: u32 = 2;
const GLOBAL: u8 = 1;

/// Every kernel in the bytes of a file, each code once, in their order. What looks like a kernel and is damaged is passed over.
pub fn import(library: &[u8]) -> Vec<LibraryKernel> {
    let mut known = HashSet::new();
    let mut kernels = Vec::new();
    let mut at = 0;
    while let Some(found) = find(library, at) {
        at = found + MAGIC.len();
        if let Some((name, code)) = kernel(&library[found..]) {
            let mut sha1 = String::with_capacity(40);
            for byte in Sha1::digest(code) {
                // Writing to a string cannot fail.
                _ = write!(sha1, "{byte:02x}");
            }
            if known.insert(sha1.clone()) {
                kernels.push(LibraryKernel {
                    sha1,
                    size: code.len() as u64,
                    name: name.to_owned(),
                    operation: operation_of(name),
                });
            }
        }
    }
    kernels
}

/// The table that [`KernelTable::extend_from_toml`](super::KernelTable::extend_from_toml) reads.
pub fn table_text(kernels: &[LibraryKernel]) -> String {
    let mut text = String::from("kernels = [\n");
    for kernel in kernels {
        let name = kernel.name.replace(['\\', '"'], "_");
        let operation = kernel.operation.map_or_else(String::new, |operation| {
            format!(", operation = \"{operation}\"")
        });
        _ = writeln!(
            text,
            "  {{ sha1 = \"{}\", size = {}, name = \"{name}\"{operation} }},",
            kernel.sha1, kernel.size
        );
    }
    text.push_str("]\n");
    text
}

fn find(library: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find(library.get(from..)?, &MAGIC).map(|at| from + at)
}

/// Name and code of the ELF file that starts here.
fn kernel(image: &[u8]) -> Option<(&str, &[u8])> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(
            image.get(at..at.checked_add(4)?)?.try_into().ok()?,
        ))
    };
    let half = |at: usize| -> Option<usize> {
        Some(usize::from(u16::from_le_bytes(
            image.get(at..at.checked_add(2)?)?.try_into().ok()?,
        )))
    };
    let range = |start: u32, size: u32| image.get(start as usize..)?.get(..size as usize);
    let (entry, headers) = (word(24)?, word(32)? as usize);
    let (header_size, count, names) = (half(46)?, half(48)?, half(50)?);
    if header_size != SECTION_HEADER || count > MAX_SECTIONS || names >= count {
        return None;
    }
    image.get(headers..headers.checked_add(count * SECTION_HEADER)?)?;
    // Words of a section's header: 0 name, 1 type, 3 address, 4 offset, 5 size, 6 link.
    let field = |section: usize, field: usize| {
        word(headers.checked_add(section * SECTION_HEADER + 4 * field)?)
    };
    let content = |section: usize| range(field(section, 4)?, field(section, 5)?);
    let names = content(names)?;
    let text = (1..count)
        .find(|s| field(*s, 0).and_then(|at| text_at(names, at as usize)) == Some(".text"))?;
    let code = content(text).filter(|code| !code.is_empty())?;
    let symbols = (1..count).find(|s| field(*s, 1) == Some(SYMBOL_TABLE))?;
    let strings = field(symbols, 6).filter(|link| (*link as usize) < count)?;
    let strings = content(strings as usize)?;
    let symbol = content(symbols)?
        .chunks_exact(SYMBOL)
        .find(|symbol| symbol[4..8] == entry.to_le_bytes() && symbol[12] >> 4 == GLOBAL)?;
    let at = u32::from_le_bytes(symbol.get(..4)?.try_into().ok()?);
    let name = text_at(strings, at as usize).filter(|name| !name.is_empty())?;
    Some((name, code))
}

/// The zero-terminated name at an offset: printable ASCII.
fn text_at(strings: &[u8], at: usize) -> Option<&str> {
    let rest = strings.get(at..)?;
    let end = rest.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
    let name = rest.get(..end)?;
    name.iter().all(u8::is_ascii_graphic).then_some(())?;
    std::str::from_utf8(name).ok()
}
