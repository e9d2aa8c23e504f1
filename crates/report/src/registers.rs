//! Hardware descriptors field by field, as text and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// A descriptor.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Descriptor {
    /// Its kind, as the target names it: `dma`, `variant`, `invariant`, `invocation` or `range`.
    pub structure: &'static str,
    /// The section that holds it.
    pub section: String,
    /// Which one of the section's descriptors.
    pub index: u64,
    /// Its place in the file.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// Its fields in the order of the table.
    pub fields: Vec<Field>,
}

/// A field of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Field {
    /// The register that it is a part of.
    pub register: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Byte of the register in the structure.
    pub byte: usize,
    /// Lowest bit in the register.
    pub bit: u32,
    /// Bits.
    pub width: u32,
    /// The unsigned number, with relocations applied.
    pub value: u64,
    /// What the number means; empty where there is no more to say.
    pub meaning: String,
    /// Whether Chipless takes it into account.
    pub used: bool,
}

/// The descriptors as lines of text.
pub fn text(structures: &[Descriptor]) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for structure in structures {
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            "      {} {} of {} @{:#x}, {} B",
            structure.structure,
            structure.index,
            structure.section,
            structure.offset,
            structure.size
        );
        for field in &structure.fields {
            let last = field.bit + field.width - 1;
            let name = if field.register == field.name {
                field.name.to_owned()
            } else {
                format!("{}.{}", field.register, field.name)
            };
            let bits = format!("[{last}:{}]", field.bit);
            let unused = if field.used { "" } else { "  (not used)" };
            let line = format!(
                "        {:#05x} {bits:8} {name:40} {:#x}  {}{unused}",
                field.byte, field.value, field.meaning
            );
            _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}
