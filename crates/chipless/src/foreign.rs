//! Files that are none of ours, by the names that people have for them.

/// `e_machine` of ELF files for processors (System V ABI, registry of machines).
const MACHINES: [(u16, &str); 9] = [
    (3, "x86"),
    (8, "MIPS"),
    (20, "PowerPC"),
    (21, "PowerPC64"),
    (40, "ARM"),
    (62, "x86-64"),
    (183, "AArch64"),
    (243, "RISC-V"),
    (258, "LoongArch"),
];

/// First bytes, and what has them.
const MAGIC: [(&[u8], &str); 14] = [
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ", "a Windows program"),
    (b"#!", "a script"),
    (b"<?xml", "an XML document"),
];

/// An ELF file for a processor, which is a program of the host and not of an accelerator.
pub(crate) fn machine(bytes: &[u8]) -> Option<String> {
    let (magic, rest) = (bytes.get(..4)?, bytes.get(18..20)?);
    let number = match bytes.get(5)? {
        2 => u16::from_be_bytes([rest[0], rest[1]]),
        _ => u16::from_le_bytes([rest[0], rest[1]]),
    };
    let (_, name) = MACHINES.iter().find(|(known, _)| *known == number)?;
    (magic == b"\x7fELF").then(|| format!("an ELF program for {name}"))
}

/// What another file is.
pub(crate) fn kind(bytes: &[u8]) -> Option<&'static str> {
    let magic = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic));
    let named = magic.map(|(_, name)| *name);
    named
        .or_else(|| is_onnx(bytes).then_some("an ONNX model"))
        .or_else(|| (bytes.get(4..8) == Some(b"TFL3")).then_some("a TensorFlow Lite model"))
}

/// A `ModelProto`: its version, then its producer, its operator sets or its graph (onnx.proto3: fields 1, 2, 7, 8).
fn is_onnx(bytes: &[u8]) -> bool {
    matches!(bytes, [0x08, version, tag, ..] if (1..64).contains(version) && [0x12, 0x3a, 0x42].contains(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_what_they_are() {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(64, 0);
        assert_eq!(machine(&elf), None);
        elf[18] = 62;
        assert_eq!(machine(&elf).as_deref(), Some("an ELF program for x86-64"));
        assert_eq!(kind(b"\x93NUMPY\x01\0"), Some("a NumPy array"));
        assert_eq!(kind(b"\x08\x0a\x12\x07pytorch"), Some("an ONNX model"));
        assert_eq!(kind(b"\x1f\x8b\x08"), Some("a gzip archive"));
        assert_eq!((kind(b"hello"), kind(b"")), (None, None));
    }
}
