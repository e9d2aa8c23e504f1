//! Gzipped files.

use crate::read::Error;
use crate::rules::reading as rules;
use chipless_model::{Limits, Place};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// Bytes that a compressed file may grow to whatever the ratio.
const FREE_BYTES: u64 = 64 << 20;

/// The bytes of a file, unpacked if it is gzipped.
///
/// # Errors
/// A damaged gzip file, or one that grows beyond the limits.
pub fn unzip<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, Error> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return Ok(Cow::Borrowed(bytes));
    }
    let by_ratio = FREE_BYTES.max((bytes.len() as u64).saturating_mul(limits.inflate_ratio));
    let most = limits.inflated_bytes.min(by_ratio);
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes)
        .take(most.saturating_add(1))
        .read_to_end(&mut unpacked);
    let wrong = |message: String| Box::new(rules::GZIP.at(Place::file(), message));
    match read {
        Err(error) => Err(wrong(format!(
            "expected a whole gzip file, found {error} after {} bytes of text",
            unpacked.len()
        ))),
        Ok(_) if unpacked.len() as u64 > most => Err(wrong(format!(
            "the text is larger than {most} bytes, the limits inflated_bytes and inflate_ratio"
        ))),
        Ok(_) => Ok(Cow::Owned(unpacked)),
    }
}
