//! Headers of `.npy` files, and what to say where a file has none.

use chipless_kernels::npy::{self, Header, HeaderError, NumpyKind, NumpyType};

/// The header of a file, and the bytes behind it. The error is what to say after the file's name.
pub(super) fn header(file: &[u8]) -> Result<(Header, &[u8]), String> {
    npy::read(file).map_err(|error| match error {
        HeaderError::NotNpy => not_npy(file),
        HeaderError::Wrong(text) => text,
    })
}

fn not_npy(file: &[u8]) -> String {
    if file.starts_with(b"PK\x03\x04") {
        return "expected an .npy file, found a zip archive, as .npz files are: take the array out with numpy.save(\"x.npy\", numpy.load(\"FILE.npz\")[\"NAME\"])".to_owned();
    }
    let is_cut = file.starts_with(npy::MAGIC);
    if let Some((kind, _)) = crate::foreign::kind(file).filter(|_| !is_cut) {
        return format!("expected an .npy file, found {kind}");
    }
    let start: Vec<String> = file.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let found = if start.is_empty() {
        "no bytes".to_owned()
    } else {
        start.join(" ")
    };
    format!("{}, found {found}", HeaderError::NotNpy)
}

/// What people call a numpy type.
pub(super) fn name(found: &NumpyType) -> String {
    let bits = found.size.saturating_mul(8);
    match found.kind {
        NumpyKind::Bool => "bool".to_owned(),
        NumpyKind::Signed => format!("int{bits}"),
        NumpyKind::Unsigned => format!("uint{bits}"),
        NumpyKind::Float => format!("float{bits}"),
        NumpyKind::Raw | NumpyKind::Other => format!("type {}", found.text),
    }
}
