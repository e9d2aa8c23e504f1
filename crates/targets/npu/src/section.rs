//! Sections: the types and flags that the vendor added to ELF's, and what a header says.
//!
//! Source: `npu_compiler_elf`, `vpux_elf/types/vpu_extensions.hpp`.

use std::borrow::Cow;

/// Section types (`sh_type`).
pub mod section_type {
    /// Bytes of the program.
    pub const PROGBITS: u32 = 1;
    /// Symbols, 24 bytes each.
    pub const SYMTAB: u32 = 2;
    /// NUL-terminated strings.
    pub const STRTAB: u32 = 3;
    /// Relocations with addend, 24 bytes each.
    pub const RELA: u32 = 4;
    /// Notes: here versions.
    pub const NOTE: u32 = 7;
    /// Memory without bytes in the file.
    pub const NOBITS: u32 = 8;
    /// The network's description for the host (`MetadataSection`).
    pub const NETDESC: u32 = 0x8aaa_aaaa;
    /// Names of the profiled tasks, a `FlatBuffer`.
    pub const PROF: u32 = 0x8aaa_aaab;
    /// On-chip memory that holds descriptors; no bytes in the file.
    pub const CMX_METADATA: u32 = 0x8aaa_aaac;
    /// On-chip memory of a tile that holds tensors; no bytes in the file.
    pub const CMX_WORKSPACE: u32 = 0x8aaa_aaad;
    /// The compiler's estimate of the latency.
    pub const PERF_METRICS: u32 = 0x8aaa_aaae;
    /// The chip that the program was compiled for.
    pub const PLATFORM_INFO: u32 = 0x8aaa_aaaf;
    /// The compiler's commit.
    pub const COMPILER_HASH: u32 = 0x8aaa_aab0;
    /// Symbols of DMAs with dynamic strides.
    pub const DMA_SYMBOLS: u32 = 0x8aaa_aab1;
    /// Requirements on the runtime as text.
    pub const COMPATIBILITY_STRING: u32 = 0x8aaa_aab2;
    /// Reserved for the host's parsed inference.
    pub const HPI: u32 = 0x8aaa_aab3;

    /// Every type that has a name.
    pub const NAMES: &[(u32, &str)] = &[
        (0, "NULL"),
        (PROGBITS, "PROGBITS"),
        (SYMTAB, "SYMTAB"),
        (STRTAB, "STRTAB"),
        (RELA, "RELA"),
        (5, "HASH"),
        (6, "DYNAMIC"),
        (NOTE, "NOTE"),
        (NOBITS, "NOBITS"),
        (9, "REL"),
        (10, "SHLIB"),
        (11, "DYNSYM"),
        (NETDESC, "VPU_NETDESC"),
        (PROF, "VPU_PROF"),
        (CMX_METADATA, "VPU_CMX_METADATA"),
        (CMX_WORKSPACE, "VPU_CMX_WORKSPACE"),
        (PERF_METRICS, "VPU_PERF_METRICS"),
        (PLATFORM_INFO, "VPU_PLATFORM_INFO"),
        (COMPILER_HASH, "VPU_COMPILER_HASH"),
        (DMA_SYMBOLS, "VPU_DMA_SYMBOLS"),
        (COMPATIBILITY_STRING, "VPU_COMPATIBILITY_STRING"),
        (HPI, "VPU_HPI"),
    ];
}

/// Section flags (`sh_flags`).
pub mod section_flag {
    /// The NPU writes it.
    pub const WRITE: u64 = 0x1;
    /// The loader gives it an address.
    pub const ALLOC: u64 = 0x2;
    /// Executable.
    pub const EXECINSTR: u64 = 0x4;
    /// `sh_info` is a section.
    pub const INFO_LINK: u64 = 0x40;
    /// Relocated before each inference: it depends on the host's tensors.
    pub const JIT: u64 = 0x10_0000;
    /// An input of the network.
    pub const USER_INPUT: u64 = 0x20_0000;
    /// An output of the network.
    pub const USER_OUTPUT: u64 = 0x40_0000;
    /// The profiling output.
    pub const PROFILING_OUTPUT: u64 = 0x80_0000;
    /// The DPU reaches it.
    pub const DPU: u64 = 0x1000_0000;
    /// The DMA reaches it.
    pub const DMA: u64 = 0x2000_0000;
    /// The SHAVE reaches it.
    pub const SHAVE: u64 = 0x4000_0000;

    /// Every flag that has a name.
    pub const NAMES: &[(u64, &str)] = &[
        (WRITE, "WRITE"),
        (ALLOC, "ALLOC"),
        (EXECINSTR, "EXECINSTR"),
        (INFO_LINK, "INFO_LINK"),
        (JIT, "VPU_JIT"),
        (USER_INPUT, "VPU_USERINPUT"),
        (USER_OUTPUT, "VPU_USEROUTPUT"),
        (PROFILING_OUTPUT, "VPU_PROFOUTPUT"),
        (DPU, "VPU_PROC_DPU"),
        (DMA, "VPU_PROC_DMA"),
        (SHAVE, "VPU_PROC_SHAVE"),
    ];
}

/// One section, as its header says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'f> {
    /// Name from the section name table.
    pub name: &'f str,
    /// One of [`section_type`].
    pub kind: u32,
    /// A sum of [`section_flag`].
    pub flags: u64,
    /// `sh_addr`; 0 in every file seen.
    pub address: u64,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// The section that it refers to; what it is depends on the type.
    pub link: u32,
    /// Another reference; what it is depends on the type.
    pub info: u32,
    /// Alignment in bytes; 0 and 1 are none.
    pub alignment: u64,
    /// Bytes of one entry of a table.
    pub entry_size: u64,
}

impl Section<'_> {
    /// Whether it takes memory but no bytes of the file.
    pub fn is_memory_only(&self) -> bool {
        matches!(
            self.kind,
            section_type::NOBITS | section_type::CMX_METADATA | section_type::CMX_WORKSPACE
        )
    }

    /// The type's name, or its number.
    pub fn kind_name(&self) -> Cow<'static, str> {
        match section_type::NAMES
            .iter()
            .find(|(kind, _)| *kind == self.kind)
        {
            Some((_, name)) => Cow::Borrowed(name),
            None => Cow::Owned(format!("{:#x}", self.kind)),
        }
    }

    /// The flags' names, joined by `|`; bits without a name as a number.
    pub fn flag_names(&self) -> String {
        let mut names: Vec<Cow<'_, str>> = Vec::new();
        let mut rest = self.flags;
        for (flag, name) in section_flag::NAMES {
            if self.flags & flag != 0 {
                names.push(Cow::Borrowed(name));
                rest &= !flag;
            }
        }
        if rest != 0 {
            names.push(Cow::Owned(format!("{rest:#x}")));
        }
        names.join("|")
    }
}
