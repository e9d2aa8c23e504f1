//! Descriptors field by field, under the names of the public register tables.
//!
//! The tables of a [`Generation`] say where each field stands, and whether Chipless takes it into account. Some fields share their bits: what they mean
//! then depends on others.

use crate::address::{self, Target};
use crate::generation::Generation;
use crate::image::Image;
use crate::structures::{Layout, TaskKind, TaskSection};

/// A descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// `dma`, `variant`, `invariant`, `invocation` or `range`.
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The descriptors of a task: a DMA's own, a DPU workload's variant and invariant, a SHAVE invocation and its range. Nothing where the
/// place is that of no descriptor.
pub fn of_task(
    image: &Image<'_>,
    generation: Generation,
    part: &str,
    offset: u64,
) -> Vec<Structure> {
    let structure = |kind, section: &str, index| structure(image, generation, kind, section, index);
    let found = TaskKind::of_section(part)
        .zip(image.section(part))
        .and_then(|(list, section)| {
            let start = image.sections().get(section)?.file_offset;
            let index = offset.checked_sub(start)? / list.record_size() as u64;
            Some((list, index))
        });
    let Some((list, index)) = found else {
        return Vec::new();
    };
    let kind = list.kind;
    if list.layout == Layout::Npu3720 {
        return of_list(&structure, list, part, index);
    }
    let mut structures: Vec<Structure> = structure(kind, part, index).into_iter().collect();
    match kind {
        TaskKind::Variant => {
            let of = part.replace(".variant.", ".invariant.");
            structures.extend(
                owner(image, &of, index)
                    .and_then(|owner| structure(TaskKind::Invariant, &of, owner)),
            );
        }
        TaskKind::Invocation => {
            let of = part.replace(".invocation.", ".range.");
            let field = structures.first().and_then(|invocation| {
                let mut fields = invocation.fields.iter();
                fields.find(|field| field.name == "kernel_range_index")
            });
            structures.extend(field.and_then(|field| structure(TaskKind::Range, &of, field.value)));
        }
        _ => {}
    }
    structures
}

/// The descriptors of a task of NPU3720: its record names the other one by number.
fn of_list(
    structure: &impl Fn(TaskKind, &str, u64) -> Option<Structure>,
    list: TaskSection,
    part: &str,
    index: u64,
) -> Vec<Structure> {
    let mut structures: Vec<Structure> = structure(list.kind, part, index).into_iter().collect();
    let other = match list.kind {
        TaskKind::Variant => Some((
            TaskKind::Invariant,
            ".text.DPUInvariants",
            "invariant_index_",
        )),
        TaskKind::Invocation => Some((
            TaskKind::Range,
            ".text.ActKernelRanges",
            "kernel_range_index",
        )),
        _ => None,
    };
    let found = other.and_then(|(kind, section, name)| {
        let mut fields = structures.first()?.fields.iter();
        let number = fields.find(|field| field.name == name)?.value;
        structure(kind, section, number)
    });
    structures.extend(found);
    structures
}

/// The invariant that a variant belongs to: the variants of an invariant stand together, as many as it counts.
fn owner(image: &Image<'_>, invariants: &str, variant: u64) -> Option<u64> {
    let records = image
        .bytes(image.section(invariants)?)
        .chunks_exact(TaskKind::Invariant.record_size());
    let mut end = 0;
    for (index, record) in records.enumerate() {
        end += number(record, 0x158, 0, 16);
        if variant < end {
            return Some(index as u64);
        }
    }
    None
}

fn structure(
    image: &Image<'_>,
    generation: Generation,
    kind: TaskKind,
    section: &str,
    index: u64,
) -> Option<Structure> {
    let name = match kind {
        TaskKind::DmaDdr | TaskKind::DmaCmx => "dma",
        TaskKind::Invariant => "invariant",
        TaskKind::Variant => "variant",
        TaskKind::Range => "range",
        TaskKind::Invocation => "invocation",
    };
    let list = TaskKind::of_section(section)?;
    let (at, size) = (image.section(section)?, list.record_size());
    let start = usize::try_from(index).ok()?.checked_mul(size)?;
    let record = image.bytes(at).get(start..start.checked_add(size)?)?;
    let tables = generation.registers.iter();
    let lines = tables.flat_map(|table| table.lines().skip(1));
    let fields = lines.filter_map(|line| {
        let mut columns = line.split(',');
        if columns.next()? != name {
            return None;
        }
        let (register, field) = (columns.next()?, columns.next()?);
        let byte = columns.next()?.parse().ok()?;
        let (bit, width) = (columns.next()?.parse().ok()?, columns.next()?.parse().ok()?);
        let used = columns.next()? == "1";
        let value = number(record, byte, bit, width);
        Some(Field {
            register,
            name: field,
            byte,
            bit,
            width,
            value,
            meaning: meaning((image, list.layout), name, field, width, value),
            used,
        })
    });
    let mut fields: Vec<Field> = fields.collect();
    // Fields that share bits stay in the order of their table.
    fields.sort_by_key(|field| field.byte);
    Some(Structure {
        structure: name,
        section: section.to_owned(),
        index,
        offset: image.sections().get(at)?.file_offset + start as u64,
        size: size as u64,
        fields,
    })
}

/// Bits of a register, little endian; zero beyond the record.
fn number(record: &[u8], byte: usize, bit: u32, width: u32) -> u64 {
    let bytes = record.get(byte..).unwrap_or_default().iter().take(16);
    let word = bytes
        .rev()
        .fold(0u128, |word, byte| word << 8 | u128::from(*byte));
    let mask = u128::from(u64::MAX) >> (64 - width.clamp(1, 64));
    (word >> bit & mask) as u64
}

fn meaning(
    (image, layout): (&Image<'_>, Layout),
    structure: &str,
    name: &str,
    width: u32,
    value: u64,
) -> String {
    const ELEMENTS: [&str; 10] = [
        "float16",
        "uint8",
        "int8",
        "int4",
        "int2",
        "bfloat16",
        "uint4",
        "binary",
        "float8 e5m2",
        "float8 e4m3fn",
    ];
    const ORDERS: [&str; 6] = ["zxy", "zyx", "yzx", "yxz", "xzy", "xyz"];
    let one_of = |names: &[&str]| {
        let name = names.get(value as usize).copied();
        name.unwrap_or("no known value").to_owned()
    };
    match (structure, name) {
        ("dma", "dma_cfg_fields_num_dim") => format!("{} dimensions", value + 1),
        ("dma", "dma_width_src" | "dma_width_dst") => format!("{value} bytes a run"),
        ("dma", "dma_cfg_fields_conversion_cfg") => one_of(&[
            "none",
            "int8 to int4",
            "float16 to float8",
            "float32 to float16",
            "float32 to bfloat16",
        ]),
        ("dma", "dma_cfg_fields_acceleration_cfg") => {
            one_of(&["none", "compression", "decompression", "weight preparation"])
        }
        ("dma", "dma_cfg_fields_src_list_cfg" | "dma_cfg_fields_dst_list_cfg") => {
            one_of(&["no list", "a list of addresses", "a list of row indices"])
        }
        ("dma", _) if name.contains("dim_size") => format!("{} times", value + 1),
        ("dma", _) if name.contains("stride") => format!("{} bytes apart", value as u32 as i32),
        ("invariant", "te_dim_x" | "te_dim_y" | "te_dim_z") => format!("{} positions", value + 1),
        ("invariant", "ac_base") => format!("byte {:#x} of the tile", value * 16),
        ("invariant", "permutation") => format!("{}, innermost first", one_of(&ORDERS)),
        ("invariant", "amode" | "wmode") => one_of(&ELEMENTS),
        ("invariant", "dtype") if layout == Layout::Npu3720 => one_of(&[
            "float16", "uint8", "uint8", "int8", "32 bits", "4 bits", "2 bits", "log", "binary",
        ]),
        ("invariant", "dtype") => format!("elements of {} bits", 1u64 << value.min(7)),
        ("invariant", "elop_operation") => one_of(&["add", "subtract", "multiply"]),
        ("invariant", "ppe_mode") => one_of(&["none", "scale, bias, slope", "lookup table"]),
        ("invariant", "ppe_lut_ptr") => format!("byte {:#x} of the tile", value * 32),
        ("invariant", "workload_operation") => {
            one_of(&["convolution", "max pool", "average pool", "elementwise"])
        }
        ("variant", "invar_ptr" | "next_sram_job_addr") => {
            format!("byte {:#x} of the tile", value * 32)
        }
        ("range", "type") => match value {
            0 => "kernel".to_owned(),
            4 => "debug".to_owned(),
            5..=7 => "cache maintenance".to_owned(),
            8 => "prefetch".to_owned(),
            _ => "no known value".to_owned(),
        },
        ("range", "code_size") => format!("{value} bytes"),
        _ if name.starts_with("cbarrier")
            || name.starts_with("pbarrier")
            || name.ends_with("_mask")
            || name.contains("mask_") =>
        {
            let from = if name.ends_with("hi") || name.contains("_hi") || name.ends_with("upper") {
                64
            } else {
                0
            };
            barriers(value, from)
        }
        _ if width >= 48 => place(image, value),
        _ if width == 1 => if value == 0 { "off" } else { "on" }.to_owned(),
        _ if value > 9 => format!("{value} ({value:#x})"),
        _ => value.to_string(),
    }
}

/// The barriers of a mask, whose lowest bit is barrier `from`.
fn barriers(mask: u64, from: u32) -> String {
    let numbers: Vec<String> = (0..64)
        .filter(|bit| mask >> bit & 1 == 1)
        .map(|bit| (from + bit).to_string())
        .collect();
    match numbers.len() {
        0 => "none".to_owned(),
        1 => format!("barrier {}", numbers[0]),
        _ => format!("barriers {}", numbers.join(", ")),
    }
}

/// What an address names.
fn place(image: &Image<'_>, address: u64) -> String {
    if address == 0 {
        return "none".to_owned();
    }
    match image.resolve(address) {
        Target::Section(section, offset) => {
            let name = image
                .sections()
                .get(section)
                .map_or("", |section| &*section.name);
            format!("{name}+{offset:#x}")
        }
        Target::Cmx { tiles, offset } => {
            let tiles: Vec<String> = address::tiles(tiles).map(|tile| tile.to_string()).collect();
            format!("CMX of tile {}, byte {offset:#x}", tiles.join(", "))
        }
        Target::Register(register) => format!("hardware register {register:#x}"),
        Target::Unmapped => "nothing that is mapped".to_owned(),
    }
}
