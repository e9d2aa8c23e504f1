//! Headers of `.npy` files, within bounds.

use chipless_model::{ElementType, Kind};
use npyz::{NpyHeader, TypeChar, TypeStr};
use std::borrow::Cow;

/// Bytes of a header at most. Those of plain arrays have 128.
const HEADER_LIMIT: usize = 1 << 16;

/// Brackets within brackets of a header; a structured type within another has six.
const DEPTH_LIMIT: usize = 8;

/// How numpy knows an element type: kind and bytes.
pub(super) fn numpy_type(element: ElementType) -> (TypeChar, u64) {
    let bytes = (element.bits() / 8).max(1);
    let kind = match (element, element.kind()) {
        (ElementType::Bool, _) => TypeChar::Bool,
        (ElementType::Float64 | ElementType::Float32 | ElementType::Float16, _) => TypeChar::Float,
        (_, Kind::Float) => TypeChar::RawData,
        (_, Kind::Signed) => TypeChar::Int,
        (_, Kind::Unsigned) => TypeChar::Uint,
    };
    (kind, bytes)
}

/// The header of a file, and the bytes behind it. The error is what to say after the file's name.
pub(super) fn header(file: &[u8]) -> Result<(NpyHeader, &[u8]), String> {
    let not_npy = || {
        if file.starts_with(b"PK\x03\x04") {
            return "expected an .npy file, found a zip archive, as .npz files are: take the array out with numpy.save(\"x.npy\", numpy.load(\"FILE.npz\")[\"NAME\"])".to_owned();
        }
        if let Some((kind, _)) =
            crate::foreign::kind(file).filter(|_| !file.starts_with(b"\x93NUMPY"))
        {
            return format!("expected an .npy file, found {kind}");
        }
        let start: Vec<String> = file.iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!(
            "expected an .npy file (93 4e 55 4d 50 59 …), found {}",
            if start.is_empty() {
                "no bytes".into()
            } else {
                start.join(" ")
            }
        )
    };
    let rest = file.strip_prefix(b"\x93NUMPY").ok_or_else(not_npy)?;
    let (length, start) = match *rest {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
        [major, minor, ..] if major > 3 || major == 0 => {
            return Err(format!(
                "expected version 1, 2 or 3 of the .npy format, found {major}.{minor}"
            ));
        }
        _ => return Err(not_npy()),
    };
    if length > HEADER_LIMIT {
        return Err(format!(
            "expected a header of at most {HEADER_LIMIT} bytes, found {length}"
        ));
    }
    let end = start + length;
    let (head, data) = file
        .split_at_checked(end)
        .ok_or_else(|| format!("expected a header of {length} bytes, found the end of the file"))?;
    // The parser behind tries several forms at each bracket: its time multiplies with each level.
    let depth = brackets(&head[start..]);
    if depth > DEPTH_LIMIT {
        return Err(format!(
            "expected a header of at most {DEPTH_LIMIT} brackets within brackets, found {depth}"
        ));
    }
    let header = NpyHeader::from_reader(&*known_types(head))
        .map_err(|error| format!("its header is not one of an .npy file: {error}"))?;
    Ok((header, data))
}

/// How deeply the brackets of a header are nested.
fn brackets(header: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in header {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The header with types that only the array libraries know written as raw data of the same size, which numpy knows. The
/// length stays as it was.
fn known_types(header: &[u8]) -> Cow<'_, [u8]> {
    let raw = ElementType::ALL
        .iter()
        .filter(|e| numpy_type(**e).0 == TypeChar::RawData);
    let named = raw.map(|e| {
        (
            format!("'{}'", e.name()),
            if e.bits() == 8 { "'|V1'" } else { "'<V2'" },
        )
    });
    // ml_dtypes writes float8_e5m2 as a float of one byte.
    for (unknown, known) in [("'<f1'".to_owned(), "'<V1'"), ("'|f1'".to_owned(), "'|V1'")]
        .into_iter()
        .chain(named)
    {
        if let Some(at) = header
            .windows(unknown.len())
            .position(|w| w == unknown.as_bytes())
        {
            let mut header = header.to_vec();
            let padded = format!("{known:width$}", width = unknown.len());
            header[at..at + unknown.len()].copy_from_slice(padded.as_bytes());
            return Cow::Owned(header);
        }
    }
    Cow::Borrowed(header)
}

/// What people call a numpy type.
pub(super) fn name(found: &TypeStr) -> String {
    let bits = found.size_field().saturating_mul(8);
    match found.type_char() {
        TypeChar::Bool => "bool".to_owned(),
        TypeChar::Int => format!("int{bits}"),
        TypeChar::Uint => format!("uint{bits}"),
        TypeChar::Float => format!("float{bits}"),
        _ => format!("type {found}"),
    }
}
