//! Writes small NPU4000 blobs: one tile, one DPU task, two DMA descriptors, and everything that a reader looks at.

use chipless_npu::section::{section_flag, section_type};

/// A section.
pub(crate) struct Part {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub bytes: Vec<u8>,
    /// `sh_size` of a section without bytes.
    pub size: u64,
}

/// A relocation: target section and offset, kind, symbol's section, addend.
pub(crate) struct Patch(
    pub &'static str,
    pub u64,
    pub u32,
    pub &'static str,
    pub i64,
);

pub(crate) struct Blob {
    pub parts: Vec<Part>,
    pub patches: Vec<Patch>,
    pub trailer: Vec<u8>,
}

const ALLOC: u64 = section_flag::ALLOC;
const CMX_SYMBOL: u64 = 0x4020_0000;

pub(crate) fn put(bytes: &mut [u8], offset: usize, value: impl AsRef<[u8]>) {
    let value = value.as_ref();
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn note(name: [u8; 3], kind: u32, version: [u32; 3]) -> Vec<u8> {
    let mut note = words(&[4, 16, kind]);
    note.extend(name);
    note.push(0);
    note.extend(words(&[0, version[0], version[1], version[2]]));
    note
}

/// One serialised value, as platform and compiler hash are stored.
fn serialised(count: u64, size: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = [32, 0, count, size]
        .iter()
        .flat_map(|value: &u64| value.to_le_bytes())
        .collect();
    bytes.extend(data);
    bytes
}

fn tensor(name: &str, dtype: u32, element_bits: u64, shape: &[u32]) -> Vec<u8> {
    let mut tensor = vec![0; 384];
    put(&mut tensor, 0, element_bits.to_le_bytes());
    let mut stride = element_bits;
    for (axis, size) in shape.iter().enumerate().rev() {
        put(&mut tensor, 8 + axis * 8, stride.to_le_bytes());
        put(&mut tensor, 72 + axis * 4, size.to_le_bytes());
        stride *= u64::from(*size);
    }
    put(&mut tensor, 104, name);
    let order = (1..=shape.len() as u64).fold(0, |order, digit| order << 4 | digit);
    put(&mut tensor, 360, order.to_le_bytes());
    put(&mut tensor, 368, dtype.to_le_bytes());
    put(&mut tensor, 372, (shape.len() as u32).to_le_bytes());
    put(&mut tensor, 376, (shape.len() as u32).to_le_bytes());
    tensor
}

fn node(name: &str, element: u32) -> Vec<u8> {
    let mut node = vec![0; 8784];
    put(&mut node, 0, name);
    put(&mut node, 8768, element.to_le_bytes());
    put(&mut node, 8776, 1u32.to_le_bytes());
    node
}

/// The network's description: an input `x` of 2×8 float16, an output `y` that the model calls `result`. With `sizes` there are
/// tensors of these as well.
fn metadata(sizes: bool) -> Vec<u8> {
    let mut identification = vec![0; 512];
    put(&mut identification, 0, "NPU4000");
    put(&mut identification, 256, "tiny");
    let mut resources = vec![0; 12];
    put(&mut resources, 10, [1]);
    let (mut x, mut y) = (tensor("x", 3, 16, &[2, 8]), tensor("y", 3, 16, &[2, 8]));
    if sizes {
        x.extend(tensor("vpux_ie_shape_x", 10, 32, &[2]));
        y.extend(tensor("vpux_ie_shape_y", 10, 32, &[2]));
    }
    let elements: [(u64, Vec<u8>); 10] = [
        (512, identification),
        (12, resources),
        (384, x.clone()),
        (384, y.clone()),
        (384, x),
        (384, y),
        (384, vec![]),
        (268, vec![]),
        (8784, node("x", 4)),
        (8784, node("result", 4)),
    ];
    let mut bytes = Vec::new();
    for (index, (size, data)) in elements.iter().enumerate() {
        let start = bytes.len() as u64;
        let end = (start + 32 + data.len() as u64).next_multiple_of(8);
        let next = if index == elements.len() - 1 { 0 } else { end };
        let count = data.len() as u64 / size;
        for value in [
            if count == 0 { 0 } else { start + 32 },
            next,
            count,
            if count == 0 { 0 } else { *size },
        ] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(data);
        bytes.resize(end as usize, 0);
    }
    bytes
}

fn performance() -> Vec<u8> {
    let mut bytes = words(&[900, 200, 2000, 100]);
    for row in 0..5u64 {
        for _ in 0..5 {
            // 18 000 cycles in ticks of 19.2 MHz.
            bytes.extend((18_000 * 192 / 10 / (900 + 200 * row)).to_le_bytes());
        }
    }
    bytes.resize(316, 0);
    bytes.extend(0.25f32.to_le_bytes());
    bytes
}

fn mapped_inference() -> Vec<u8> {
    let mut bytes = vec![0; 1728 + 704];
    let counts = [(64, 1), (304, 1), (544, 1), (784, 1), (1544, 2), (1688, 1)];
    let managed = [
        (1728 + 8, 3),
        (1728 + 48, 2),
        (1728 + 328, 2),
        (1728 + 368, 1),
    ];
    for (reference, count) in counts.into_iter().chain(managed) {
        put(&mut bytes, reference + 32, (count as u64).to_le_bytes());
    }
    for version in [0, 1728] {
        put(&mut bytes, version, 0x000b_0004u32.to_le_bytes());
    }
    put(&mut bytes, 1728 + 4, 1u32.to_le_bytes());
    put(&mut bytes, 1728 + 409, [1]);
    put(&mut bytes, 1728 + 696, 2u32.to_le_bytes());
    bytes
}

fn barriers() -> Vec<u8> {
    // next_same_id, producers and consumers, real_id, work item, enqueue count, reserved
    words(&[
        u32::MAX,
        0x0001_0001,
        0,
        2,
        1,
        0,
        u32::MAX,
        0x0000_0001,
        1,
        0,
        0,
        0,
    ])
}

fn work_items() -> Vec<u8> {
    let mut bytes = vec![0; 3 * 64];
    put(&mut bytes, 8, [1, 0, 0]);
    put(&mut bytes, 64 + 8, [1, 0, 1]);
    put(&mut bytes, 128, 0x4020_3c00u64.to_le_bytes());
    bytes
}

fn trailer() -> Vec<u8> {
    let mut bytes = words(&[0x0002_0007]);
    bytes.extend([2026u16, 4, 1].iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(0i64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    for _ in 0..2 {
        bytes.extend(5u16.to_le_bytes());
        bytes.extend(b"[...]");
    }
    bytes.extend(0x0008_0004u32.to_le_bytes());
    bytes.push(0);
    bytes.extend(12u64.to_le_bytes());
    bytes.extend(b"compiler=8.4");
    bytes.push(0);
    bytes
}

impl Blob {
    /// A whole program.
    pub(crate) fn tiny() -> Blob {
        let mut parts = Vec::new();
        let mut bytes = |name, kind, flags, bytes: Vec<u8>| {
            parts.push(Part {
                name,
                kind,
                flags,
                size: bytes.len() as u64,
                bytes,
            });
        };
        let program = section_type::PROGBITS;
        bytes("MetadataSection", section_type::NETDESC, 0, metadata(false));
        bytes("buffer.Constant.0.constant", program, ALLOC, vec![7; 64]);
        bytes(
            "shave.params",
            program,
            ALLOC | section_flag::SHAVE,
            vec![0; 16],
        );
        bytes("program.managedBarrier", program, ALLOC, barriers());
        bytes("task.dpu.invariant.0.0", program, ALLOC, vec![0; 352]);
        bytes("task.dpu.variant.0.0", program, ALLOC, vec![0; 224]);
        let mut descriptor = vec![0; 224];
        put(&mut descriptor, 24, 32u32.to_le_bytes());
        bytes("task.dma.0.0", program, ALLOC, descriptor);
        bytes("task.dma.0.1", program, ALLOC, vec![0; 224]);
        bytes(
            "meta.PlatformInfo",
            section_type::PLATFORM_INFO,
            0,
            serialised(1, 8, &4u64.to_le_bytes()),
        );
        bytes("program.workItem", program, ALLOC, work_items());
        bytes("program.bootstrap", program, ALLOC, words(&[0, 1]));
        bytes(
            "note.MappedInferenceVersion",
            section_type::NOTE,
            0,
            note(*b"MIV", 0xa000, [11, 4, 10]),
        );
        bytes(
            "program.mapped_inference",
            program,
            ALLOC,
            mapped_inference(),
        );
        bytes("program.nnrt_config", program, ALLOC, vec![0; 112]);
        bytes("perf.metrics", section_type::PERF_METRICS, 0, performance());
        bytes(
            "note.LoaderABIVersion",
            section_type::NOTE,
            0,
            note(*b"GNU", 1, [1, 2, 2]),
        );
        bytes(
            "info.compiler.hash",
            section_type::COMPILER_HASH,
            0,
            serialised(4, 1, b"cafe"),
        );
        bytes(
            "compatibility_string",
            section_type::COMPATIBILITY_STRING,
            0,
            b"compiler=8.3;npu=4000\0".to_vec(),
        );
        parts.extend(memories());
        Blob {
            parts,
            patches: patches(),
            trailer: trailer(),
        }
    }

    /// A program whose input and output have sizes with upper bounds.
    pub(crate) fn bounded() -> Blob {
        let mut blob = Blob::tiny();
        blob.part("MetadataSection").bytes = metadata(true);
        blob
    }

    /// A part by name.
    pub(crate) fn part(&mut self, name: &str) -> &mut Part {
        self.parts
            .iter_mut()
            .find(|part| part.name == name)
            .expect("the part exists")
    }

    /// Writes over the bytes of a part.
    pub(crate) fn with(mut self, name: &str, offset: usize, value: impl AsRef<[u8]>) -> Blob {
        put(&mut self.part(name).bytes, offset, value);
        self
    }

    /// The ELF alone.
    pub(crate) fn elf(&self) -> Vec<u8> {
        let mut headers = vec![
            Header::new("", 0, vec![], 0, 0, 0),
            Header::new(".strtab", section_type::STRTAB, vec![], 0, 0, 0),
            Header::new(".symstrtab", section_type::STRTAB, vec![], 0, 0, 0),
        ];
        for part in &self.parts {
            let size = part.size;
            headers.push(Header {
                size,
                ..Header::new(part.name, part.kind, part.bytes.clone(), 0, 0, part.flags)
            });
        }
        let mut names = vec![0];
        let mut symbol = |name: &str, kind: u8, section: u32, value: u64, size: u64| {
            let mut symbol = words(&[names.len() as u32]);
            names.extend(name.bytes().chain([0]));
            symbol.extend([kind, 0]);
            symbol.extend((section as u16).to_le_bytes());
            symbol.extend(value.to_le_bytes());
            symbol.extend(size.to_le_bytes());
            symbol
        };
        for (table, name, flag) in [
            (
                "symtab.io.NetworkInput",
                "io.NetworkInput.0",
                section_flag::USER_INPUT,
            ),
            (
                "symtab.io.NetworkOutput",
                "io.NetworkOutput.0",
                section_flag::USER_OUTPUT,
            ),
        ] {
            let mut symbols = vec![0; 24];
            symbols.extend(symbol(name, 3, self.index_of(name), 0, 32));
            headers.push(Header::new(
                table,
                section_type::SYMTAB,
                symbols,
                2,
                0,
                flag,
            ));
        }
        let mut symbols = vec![0; 24];
        for part in &self.parts {
            let value = if part.kind == section_type::CMX_WORKSPACE {
                CMX_SYMBOL
            } else {
                0
            };
            symbols.extend(symbol(part.name, 3, self.index_of(part.name), value, 0));
        }
        symbols.extend(symbol(
            "entry",
            10,
            self.index_of("program.mapped_inference"),
            0,
            0,
        ));
        let table = headers.len() as u32;
        headers.push(Header::new(
            "symtab",
            section_type::SYMTAB,
            symbols,
            2,
            0,
            0,
        ));
        for part in &self.parts {
            let relocations = self.relocations(part);
            if !relocations.is_empty() {
                let name = format!("rela.{}", part.name);
                headers.push(Header::new(
                    &name,
                    section_type::RELA,
                    relocations,
                    table,
                    self.index_of(part.name),
                    section_flag::INFO_LINK,
                ));
            }
        }
        headers[2].bytes = names;
        headers[1].bytes = headers
            .iter()
            .flat_map(|header| header.name.bytes().chain([0]))
            .collect();

        image(&headers)
    }

    /// The index of the section of a part: behind the empty one and those of names.
    fn index_of(&self, name: &str) -> u32 {
        self.parts
            .iter()
            .position(|part| part.name == name)
            .expect("the part exists") as u32
            + 3
    }

    /// The relocations of a part.
    fn relocations(&self, part: &Part) -> Vec<u8> {
        let mut relocations = Vec::new();
        for Patch(_, offset, kind, symbol, addend) in
            self.patches.iter().filter(|patch| patch.0 == part.name)
        {
            relocations.extend(offset.to_le_bytes());
            relocations.extend(words(&[*kind, self.index_of(symbol) - 2]));
            relocations.extend(addend.to_le_bytes());
        }
        relocations
    }

    /// The file: the ELF and the trailer.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut file = self.elf();
        let size = file.len() as u64;
        file.extend(&self.trailer);
        file.extend(size.to_le_bytes());
        file.extend(b"OVNPU");
        file
    }
}

/// Memory that has no bytes in the file.
fn memories() -> Vec<Part> {
    let memory = |name, kind, flags, size| Part {
        name,
        kind,
        flags,
        size,
        bytes: Vec::new(),
    };
    vec![
        memory(
            "io.NetworkInput.0",
            section_type::NOBITS,
            ALLOC | section_flag::USER_INPUT,
            32,
        ),
        memory(
            "io.NetworkOutput.0",
            section_type::NOBITS,
            ALLOC | section_flag::USER_OUTPUT,
            64,
        ),
        memory(
            "program.metadata.cmx",
            section_type::CMX_METADATA,
            0,
            0xc800,
        ),
        memory("buffer.DDR.0", section_type::NOBITS, ALLOC, 0),
        memory("buffer.DDR.1", section_type::NOBITS, ALLOC, 4096),
        memory("buffer.CMX_NN.0", section_type::CMX_WORKSPACE, 0, 0x19000),
    ]
}

/// Addresses that the loader fills in.
fn patches() -> Vec<Patch> {
    let root = "program.mapped_inference";
    vec![
        Patch("shave.params", 4, 4, "shave.params", 8),
        Patch("shave.params", 8, 0, "buffer.CMX_NN.0", 0x100),
        Patch("task.dma.0.0", 40, 0, "io.NetworkInput.0", 16),
        Patch("task.dma.0.1", 48, 0, "io.NetworkOutput.0", 0),
        Patch("program.workItem", 0, 0, "task.dma.0.0", 0),
        Patch("program.workItem", 64, 0, "task.dma.0.1", 0),
        Patch(root, 64 + 24, 0, "task.dma.0.0", 0),
        Patch(root, 304 + 24, 0, "task.dma.0.1", 0),
        Patch(root, 544 + 24, 0, "task.dpu.invariant.0.0", 0),
        Patch(root, 784 + 24, 0, "task.dpu.variant.0.0", 0),
        Patch(root, 1544 + 24, 0, "program.managedBarrier", 0),
        Patch(root, 1688 + 24, 0, root, 1728),
        Patch(root, 1728 + 8 + 24, 0, "program.workItem", 0),
        Patch(root, 1728 + 48 + 24, 0, "program.managedBarrier", 0),
        Patch(root, 1728 + 328 + 24, 0, "program.bootstrap", 0),
        Patch(root, 1728 + 368 + 24, 0, "program.nnrt_config", 0),
    ]
}

/// A section and its entry of the table.
struct Header {
    name: String,
    kind: u32,
    flags: u64,
    bytes: Vec<u8>,
    size: u64,
    link: u32,
    info: u32,
}

impl Header {
    fn new(name: &str, kind: u32, bytes: Vec<u8>, link: u32, info: u32, flags: u64) -> Header {
        Header {
            name: name.to_owned(),
            kind,
            flags,
            size: bytes.len() as u64,
            bytes,
            link,
            info,
        }
    }
}

/// An ELF of sections.
fn image(headers: &[Header]) -> Vec<u8> {
    let mut file = vec![0; 64 + headers.len() * 64];
    put(&mut file, 0, b"\x7fELF\x02\x01");
    put(&mut file, 16, 1u16.to_le_bytes());
    put(&mut file, 40, 64u64.to_le_bytes());
    put(&mut file, 58, 64u16.to_le_bytes());
    put(&mut file, 60, (headers.len() as u16).to_le_bytes());
    put(&mut file, 62, 1u16.to_le_bytes());
    let mut name = 0u32;
    for (index, header) in headers.iter().enumerate() {
        let at = 64 + index * 64;
        let is_memory = header.bytes.is_empty();
        let size = if is_memory {
            header.size
        } else {
            header.bytes.len() as u64
        };
        put(&mut file, at, name.to_le_bytes());
        put(&mut file, at + 4, header.kind.to_le_bytes());
        put(&mut file, at + 8, header.flags.to_le_bytes());
        let start = if is_memory { 0 } else { file.len() as u64 };
        put(&mut file, at + 24, start.to_le_bytes());
        put(&mut file, at + 32, size.to_le_bytes());
        put(&mut file, at + 40, header.link.to_le_bytes());
        put(&mut file, at + 44, header.info.to_le_bytes());
        put(&mut file, at + 48, 8u64.to_le_bytes());
        let entry = if matches!(header.kind, section_type::SYMTAB | section_type::RELA) {
            24u64
        } else {
            1
        };
        put(&mut file, at + 56, entry.to_le_bytes());
        file.extend(&header.bytes);
        file.resize(file.len().next_multiple_of(8), 0);
        name += header.name.len() as u32 + 1;
    }
    file.resize(file.len().next_multiple_of(4096), 0);
    file
}
