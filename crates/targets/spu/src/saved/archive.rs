//! The zip archive around the pickle.

use super::Error;
use crate::fqir::rules;
use chipless_model::{Limits, Place, Rule};
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// Bytes that a compressed member may grow to whatever the ratio.
const FREE_BYTES: u64 = 64 << 20;
/// The member that holds the graph.
const PICKLE: &str = "data.pkl";

/// Whether a file is an archive with a pickle in it as torch saves it, or a pickle without one. Other archives are nobody's: the pickle
/// is named at the start of the file, where it is the first member, and in the directory at its end.
pub(crate) fn recognize(bytes: &[u8]) -> bool {
    const NAME: &[u8] = b"data.pkl";
    const NEAR: usize = 1 << 16;
    let start = &bytes[..bytes.len().min(NEAR)];
    let end = &bytes[bytes.len().saturating_sub(NEAR)..];
    let names = |part: &[u8]| part.windows(NAME.len()).any(|window| window == NAME);
    bytes.starts_with(b"PK\x03\x04") && (names(start) || names(end)) || is_bare(bytes)
}

/// A pickle without an archive around it.
fn is_bare(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

fn wrong(rule: &'static Rule, part: &str, message: impl Into<String>) -> Error {
    Box::new(rule.at(Place::file().in_part(part.to_owned()), message.into()))
}

/// The pickle of an archive, as its one member `data.pkl` in a folder of any name holds it.
///
/// # Errors
/// An archive that is damaged, whose directory does not tell the truth, without such a member or with two, or one that
/// inflates beyond the limits.
pub(crate) fn data(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    if is_bare(bytes) {
        let message = "expected a zip archive as torch.save has written it since version 1.6, found a bare pickle: load the graph and save it again with fmot.save";
        return Err(wrong(&rules::PICKLE_PROTOCOL, "", message));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| {
        wrong(
            &rules::ARCHIVE,
            "",
            format!("expected a zip archive, found a damaged one: {e}"),
        )
    })?;
    if archive.len() as u64 > limits.entries {
        let message = format!(
            "{} members exceed the limit entries = {}",
            archive.len(),
            limits.entries
        );
        return Err(wrong(&rules::LIMIT, "", message));
    }
    let mut found = Vec::new();
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|e| {
            wrong(
                &rules::ARCHIVE,
                "",
                format!("expected whole members, found member {index} damaged: {e}"),
            )
        })?;
        let name = String::from_utf8_lossy(member.name_raw()).into_owned();
        if name.len() as u64 > limits.path_bytes {
            let message = format!(
                "the name of a member has {} bytes, more than the limit path_bytes = {}",
                name.len(),
                limits.path_bytes
            );
            return Err(wrong(&rules::LIMIT, "", message));
        }
        if name == PICKLE
            || name
                .strip_suffix(PICKLE)
                .is_some_and(|folder| folder.ends_with('/'))
        {
            found.push((index, name, member.size(), member.compressed_size()));
        }
    }
    let (index, name, stated, compressed) = match &mut found[..] {
        [one] => std::mem::take(one),
        [] => {
            let message = format!(
                "expected a member {PICKLE}, found none among {}",
                archive.len()
            );
            return Err(wrong(&rules::ARCHIVE, "", message));
        }
        [first, second, ..] => {
            let message = format!(
                "expected one member {PICKLE}, found `{}` and `{}`",
                first.1, second.1
            );
            return Err(wrong(&rules::ARCHIVE, "", message));
        }
    };
    let by_ratio = FREE_BYTES.max(compressed.saturating_mul(limits.inflate_ratio));
    let most = limits.inflated_bytes.min(by_ratio);
    if stated > most {
        let message = format!(
            "{stated} bytes exceed the limits inflated_bytes = {} and inflate_ratio = {}",
            limits.inflated_bytes, limits.inflate_ratio
        );
        return Err(wrong(&rules::LIMIT, &name, message));
    }
    let damaged = |e: &dyn std::fmt::Display| {
        wrong(
            &rules::ARCHIVE,
            &name,
            format!("expected a whole member, found it damaged: {e}"),
        )
    };
    let member = archive.by_index(index).map_err(|e| damaged(&e))?;
    // The stated size is a claim: room is made as bytes come.
    let mut pickle = Vec::with_capacity(stated.min(bytes.len() as u64) as usize);
    member
        .take(stated.saturating_add(1))
        .read_to_end(&mut pickle)
        .map_err(|e| damaged(&e))?;
    if pickle.len() as u64 != stated {
        let message = format!(
            "expected {stated} bytes as the directory says, found {}",
            if pickle.len() as u64 > stated {
                "more".to_owned()
            } else {
                pickle.len().to_string()
            }
        );
        return Err(wrong(&rules::ARCHIVE, &name, message));
    }
    Ok(pickle)
}
