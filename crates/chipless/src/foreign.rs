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

/// What to do with a network that no compiler has seen.
const COMPILE: &str = "It is not compiled: `chipless schedule` makes a schedule of an ONNX model; docs/targets.md says how to get the files of other targets";
pub(crate) const ONNX: &str = "an ONNX model";
pub(crate) const UNPACK: &str = "Unpack it first";

/// First bytes, what has them, and what to do about it.
const MAGIC: [(&[u8], &str, &str); 16] = [
    (
        b"\x93NUMPY",
        "a NumPy array",
        "`chipless run PROGRAM --input NAME=FILE.npy` takes it",
    ),
    (b"\x1f\x8b", "a gzip archive", UNPACK),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"BZh", "a bzip2 archive", UNPACK),
    (b"\xfd7zXZ\0", "an xz archive", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", UNPACK),
    (b"\x89PNG", "a PNG image", ""),
    (b"%PDF", "a PDF document", ""),
    (b"\x89HDF\r\n", "an HDF5 file", ""),
    (b"PAR1", "a Parquet file", ""),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program", ""),
    (b"MZ", "a Windows program", ""),
    (b"#!", "a script", ""),
    (b"<?xml", "an XML document", ""),
    (
        b"version https://git-lfs",
        "a Git LFS pointer",
        "Run `git lfs pull` to get the file itself",
    ),
    (b"<!doctype html", "an HTML page", DOWNLOAD),
];
const GRAPH: &str = "It is a printout, which cannot be executed. Pass what fmot.save(graph, \"model.pt\") or graph.save_runtime_plan(\"plan.json\") wrote";
const DOWNLOAD: &str = "Download the file again: a web server sent this page instead of it";

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

/// What another file is, and what to do about it; the latter is empty where there is nothing to say.
pub(crate) fn kind(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let starts = |magic: &[u8]| {
        let start = bytes.get(..magic.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(magic))
    };
    let magic = MAGIC.iter().find(|(magic, ..)| starts(magic));
    let named = magic.map(|(_, name, advice)| (*name, *advice));
    named
        .or_else(|| is_onnx(bytes).then_some((ONNX, COMPILE)))
        .or_else(|| (bytes.get(4..8) == Some(b"TFL3")).then_some(("a TensorFlow Lite model", "")))
        .or_else(|| is_graph_text(bytes).then_some(("the text form of a graph of fmot", GRAPH)))
}

/// Whether a file is certainly another one than its name says. An archive may be a damaged container.
pub(crate) fn is_no_program(bytes: &[u8]) -> bool {
    kind(bytes).is_some_and(|(_, advice)| advice != UNPACK)
}

/// What fmot prints of a graph: `inputs:`, and names with their types behind, such as `x: int16<8,q=0>`.
pub(crate) fn is_graph_text(bytes: &[u8]) -> bool {
    let Some(behind) = bytes.strip_prefix(b"inputs:") else {
        return false;
    };
    let mut lines = behind.trim_ascii_start().split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next().unwrap_or_default());
    let kind = first.ok().and_then(|first| first.split_once(": "));
    kind.is_some_and(|(_, kind)| {
        let rest = kind.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        rest.len() < kind.len() && rest.starts_with('<')
    })
}

/// A `ModelProto`: its version, then its producer, its operator sets or its graph (onnx.proto3: fields 1, 2, 7, 8).
pub(crate) fn is_onnx(bytes: &[u8]) -> bool {
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
        let name = |bytes: &[u8]| kind(bytes).map(|(name, _)| name);
        assert_eq!(name(b"\x93NUMPY\x01\0"), Some("a NumPy array"));
        assert_eq!(name(b"\x08\x0a\x12\x07pytorch"), Some("an ONNX model"));
        assert_eq!(name(b"\x1f\x8b\x08"), Some("a gzip archive"));
        assert_eq!(name(b"<!DOCTYPE html><html>"), Some("an HTML page"));
        let graph = b"inputs:\n   %x.1: float<8>\nnodes:\n";
        assert_eq!(name(graph), Some("the text form of a graph of fmot"));
        let graph = b"inputs:\n   gate: int16<1,q=0>\n   x: int16<8,q=0>\nnodes:\n";
        assert_eq!(name(graph), Some("the text form of a graph of fmot"));
        assert_eq!(name(b"inputs:\n  x:\n    type: input\n"), None);
        assert_eq!((name(b"hello"), name(b"")), (None, None));
    }
}
