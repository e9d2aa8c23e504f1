//! The file as a container: header, payload, members of the tarball.

use crate::header::{HEADER_BYTES, Header};
use crate::json::Error;
use crate::rules::container as rules;
use chipless_model::{Limits, Place};
use flate2::{Decompress, FlushDecompress, Status};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::ops::Range;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BLOCK: usize = 512;
/// Payloads up to this size are not held to the limit `inflate_ratio`.
const FREE_BYTES: u64 = 1 << 30;
/// Payloads beyond this size that shrank to less than a part in `STEEP` are counted before memory is given for them.
const COUNTED_BYTES: u64 = 64 << 20;
const STEEP: u64 = 16;
/// Bytes that the inflated payload grows by at a time, at most.
const GROWTH: usize = 16 << 20;

/// How the payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// One gzip member of this many bytes, then padding.
    Gzip {
        /// Bytes of the gzip member.
        compressed: u64,
    },
    /// The tarball as it is.
    Plain,
}

/// A file taken apart: nothing of it is interpreted but the container itself.
#[derive(Clone, Debug)]
pub struct Container<'f> {
    /// The header.
    pub header: Header,
    /// Everything behind the header that `data_size` covers, as it stands in the file.
    pub data: &'f [u8],
    /// Bytes behind the data that belong to nothing.
    pub trailing: u64,
    /// How the tarball is stored.
    pub packing: Packing,
    /// Padding behind the gzip member that is not zero.
    pub dirty_padding: bool,
    /// Whether the tarball ends as it should: two blocks of zeros and nothing behind them.
    pub clean_end: bool,
    tarball: Cow<'f, [u8]>,
    members: IndexMap<String, Range<usize>>,
}

/// A member of the tarball.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Path without a leading `./`.
    pub path: &'a str,
    /// Content.
    pub bytes: &'a [u8],
}

impl Member<'_> {
    /// Whether the path ends in a dot and this extension. The format tells kinds of members apart by it, in lower case.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.path
            .rsplit('/')
            .next()
            .and_then(|name| name.rsplit_once('.'))
            .is_some_and(|(_, e)| e == extension)
    }
}

impl<'f> Container<'f> {
    /// Takes a file apart. The payload is inflated in memory, within the limits; nothing is written anywhere.
    ///
    /// # Errors
    /// A header that does not fit the file, a payload that is neither gzip nor tar or is damaged, a member that no
    /// NEFF has (links, devices, absolute paths, `..`, duplicates), and whatever is beyond a limit.
    pub fn open(file: &'f [u8], limits: &Limits) -> Result<Container<'f>, Error> {
        let (header, data) = Header::open(file)?;
        let trailing = (file.len() - HEADER_BYTES - data.len()) as u64;
        let (tarball, packing, dirty_padding) = if data.starts_with(&GZIP_MAGIC) {
            let (tarball, compressed) = inflate(data, limits)?;
            let padding = data.get(compressed..).unwrap_or_default();
            (
                Cow::Owned(tarball),
                Packing::Gzip {
                    compressed: compressed as u64,
                },
                padding.iter().any(|b| *b != 0),
            )
        } else if data.get(257..262) == Some(b"ustar") {
            (Cow::Borrowed(data), Packing::Plain, false)
        } else {
            let start = data.get(..4).unwrap_or(data);
            let message = format!(
                "the payload starts with {start:02x?}: neither gzip (1f 8b) nor a tarball (`ustar` at 257)"
            );
            return Err(Box::new(
                rules::PAYLOAD.at(payload_place(0, data.len()), message),
            ));
        };
        let (members, clean_end) = members_of(&tarball, limits)?;
        Ok(Container {
            header,
            data,
            trailing,
            packing,
            dirty_padding,
            clean_end,
            tarball,
            members,
        })
    }

    /// The tarball, inflated.
    pub fn tarball(&self) -> &[u8] {
        &self.tarball
    }

    /// Members in file order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'_>> {
        self.members.iter().map(|(path, range)| Member {
            path,
            bytes: self.bytes(range),
        })
    }

    /// The member of this path; a leading `./` does not matter.
    pub fn member(&self, path: &str) -> Option<Member<'_>> {
        let (_, path, range) = self
            .members
            .get_full(path.strip_prefix("./").unwrap_or(path))?;
        Some(Member {
            path,
            bytes: self.bytes(range),
        })
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.tarball.get(range.clone()).unwrap_or_default()
    }
}

fn payload_place(offset: usize, size: usize) -> Place {
    Place::bytes((HEADER_BYTES + offset) as u64, size as u64).in_part("payload")
}

/// Inflates the gzip member at the start of the data; gives its content and its length.
fn inflate(data: &[u8], limits: &Limits) -> Result<(Vec<u8>, usize), Error> {
    let damaged = |message: String| Box::new(rules::GZIP.at(payload_place(0, data.len()), message));
    let body = gzip_body(data).ok_or_else(|| {
        damaged("the gzip header is cut off or has a method other than deflate".into())
    })?;
    let by_ratio = (data.len() as u64)
        .saturating_mul(limits.inflate_ratio)
        .max(FREE_BYTES);
    let most = by_ratio.min(limits.inflated_bytes);
    let mut stream = Decompress::new(false);
    let mut content: Vec<u8> = Vec::new();
    let mut counted = false;
    loop {
        let consumed = stream.total_in() as usize;
        let input = data.get(body + consumed..).unwrap_or_default();
        let is_steep =
            stream.total_out() >= COUNTED_BYTES && stream.total_out() / STEEP > stream.total_in();
        let too_large = content.len() as u64 >= most
            || (is_steep && !std::mem::replace(&mut counted, true) && exceeds(data, body, most));
        if too_large {
            let (name, value) = if by_ratio < limits.inflated_bytes {
                ("inflate_ratio", limits.inflate_ratio)
            } else {
                ("inflated_bytes", limits.inflated_bytes)
            };
            let message = format!(
                "{} bytes of payload inflate to more than {most} bytes: beyond the limit {name} = {value}",
                data.len()
            );
            return Err(Box::new(
                rules::LIMIT.at(payload_place(0, data.len()), message),
            ));
        }
        let room =
            (content.len().clamp(1 << 16, GROWTH) as u64).min(most - content.len() as u64) as usize;
        content.reserve_exact(room);
        let before = (stream.total_in(), stream.total_out());
        match stream.decompress_vec(input, &mut content, FlushDecompress::None) {
            Ok(Status::StreamEnd) => break,
            Ok(_)
                if (stream.total_in(), stream.total_out()) == before
                    && content.len() < content.capacity() =>
            {
                return Err(damaged(format!(
                    "the deflate data ends early, after {} bytes of content",
                    content.len()
                )));
            }
            Ok(_) => {}
            Err(e) => {
                return Err(damaged(format!(
                    "the deflate data is damaged after {} bytes of content: {e}",
                    content.len()
                )));
            }
        }
    }
    let end = body + stream.total_in() as usize;
    let trailer = data.get(end..).and_then(|rest| rest.first_chunk::<8>());
    let Some([c0, c1, c2, c3, s0, s1, s2, s3]) = trailer else {
        return Err(damaged("the gzip member ends before its checksum".into()));
    };
    let (crc, size) = (
        u32::from_le_bytes([*c0, *c1, *c2, *c3]),
        u32::from_le_bytes([*s0, *s1, *s2, *s3]),
    );
    let mut check = flate2::Crc::new();
    check.update(&content);
    if check.sum() != crc {
        return Err(damaged(format!(
            "the content has CRC-32 {:08x}, the gzip member says {crc:08x}",
            check.sum()
        )));
    }
    if content.len() as u32 != size {
        return Err(damaged(format!(
            "the content has {} bytes, the gzip member says {size} (modulo 2^32)",
            content.len()
        )));
    }
    Ok((content, end + 8))
}

/// Whether the deflate data inflate to more bytes than these; what is wrong with them otherwise is found when they are kept.
fn exceeds(data: &[u8], body: usize, most: u64) -> bool {
    let mut stream = Decompress::new(false);
    let mut scratch = vec![0; 1 << 16];
    loop {
        let input = data
            .get(body + stream.total_in() as usize..)
            .unwrap_or_default();
        let before = (stream.total_in(), stream.total_out());
        let status = stream.decompress(input, &mut scratch, FlushDecompress::None);
        if stream.total_out() > most {
            return true;
        }
        if !matches!(status, Ok(Status::Ok | Status::BufError))
            || (stream.total_in(), stream.total_out()) == before
        {
            return false;
        }
    }
}

/// Where the deflate data starts (RFC 1952, section 2.3).
fn gzip_body(data: &[u8]) -> Option<usize> {
    let [_, _, method, flags, ..] = *data.first_chunk::<10>()?;
    if method != 8 || flags & 0xe0 != 0 {
        return None;
    }
    let mut at = 10;
    if flags & 4 != 0 {
        let size = data.get(at..)?.first_chunk::<2>()?;
        at += 2 + usize::from(u16::from_le_bytes(*size));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            at += data.get(at..)?.iter().position(|b| *b == 0)? + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    (at <= data.len()).then_some(at)
}

/// The members of a tarball and whether it ends as it should. Directories are looked at and dropped; whatever else is
/// no regular file is an error.
fn members_of(
    tarball: &[u8],
    limits: &Limits,
) -> Result<(IndexMap<String, Range<usize>>, bool), Error> {
    let damaged = |at: usize, message: String| Box::new(rules::TAR.at(header_place(at), message));
    let mut members = IndexMap::new();
    let mut directories = HashSet::new();
    let mut end = 0;
    let mut count = 0u64;
    let mut archive = tar::Archive::new(Cursor::new(tarball));
    let entries = archive
        .entries_with_seek()
        .map_err(|e| damaged(0, e.to_string()))?;
    for entry in entries {
        let mut entry = entry.map_err(|e| {
            damaged(
                end,
                format!("the tarball is damaged behind offset {end}: {e}"),
            )
        })?;
        let at = entry.raw_header_position() as usize;
        count += 1;
        if count > limits.entries {
            let message = format!(
                "the tarball has more than {} entries: beyond the limit entries",
                limits.entries
            );
            return Err(Box::new(rules::LIMIT.at(header_place(at), message)));
        }
        let raw_path = entry.path_bytes().into_owned();
        if let Some(records) = entry
            .pax_extensions()
            .map_err(|e| damaged(at, e.to_string()))?
        {
            for record in records {
                record.map_err(|e| {
                    damaged(at, format!("an extended header record is damaged: {e}"))
                })?;
            }
        }
        let shown = String::from_utf8_lossy(&raw_path).into_owned();
        let kind = entry.header().entry_type();
        if !kind.is_file() && !kind.is_dir() {
            let message = format!(
                "`{shown}` is {}; a NEFF holds regular files",
                describe(kind)
            );
            return Err(Box::new(
                rules::TAR_ENTRY_TYPE.at(header_place(at).at(shown), message),
            ));
        }
        let path = checked_path(raw_path, limits)
            .map_err(|why| Box::new(rules::TAR_PATH.at(header_place(at).at(shown.clone()), why)))?;
        let Some(content) = content_of(&entry, tarball.len()) else {
            let message = format!(
                "`{shown}` has {} bytes by its header, {} follow",
                entry.size(),
                tarball.len().saturating_sub(at + BLOCK)
            );
            return Err(damaged(at, message));
        };
        end = content.end.next_multiple_of(BLOCK).min(tarball.len());
        if kind.is_dir() {
            directories.insert(path);
        } else if members.insert(path, content).is_some() {
            return Err(Box::new(
                rules::TAR_PATH.at(header_place(at).at(shown), "a second member of this path"),
            ));
        }
    }
    no_file_is_a_folder(&members, &directories)?;
    let rest = tarball.get(end..).unwrap_or_default();
    let clean_end = rest.len() >= 2 * BLOCK && rest.iter().all(|b| *b == 0);
    Ok((members, clean_end))
}

/// Where the header of an entry stands.
fn header_place(at: usize) -> Place {
    Place::bytes(at as u64, BLOCK as u64).in_part("tarball")
}

/// Where the bytes of an entry stand, if the tarball has all of them.
fn content_of(entry: &tar::Entry<'_, impl Read>, length: usize) -> Option<Range<usize>> {
    let start = usize::try_from(entry.raw_file_position()).ok()?;
    let size = usize::try_from(entry.size()).ok()?;
    let stop = start.checked_add(size)?;
    (stop <= length).then_some(start..stop)
}

/// Refuses a member whose path is that of a folder, too.
fn no_file_is_a_folder(
    members: &IndexMap<String, Range<usize>>,
    directories: &HashSet<String>,
) -> Result<(), Error> {
    let path = members
        .keys()
        .find(|path| directories.contains(*path))
        .map(String::as_str);
    if let Some(path) = path.or_else(|| file_and_folder(members.keys().map(String::as_str))) {
        let message = format!("`{path}` is both a file and a folder");
        return Err(Box::new(rules::TAR_PATH.at(
            Place::file().in_part("tarball").at(path.to_owned()),
            message,
        )));
    }
    Ok(())
}

/// The first path that is also the folder of another one. Sorted segment by segment, a folder stands right before what it holds.
pub(crate) fn file_and_folder<'p>(paths: impl Iterator<Item = &'p str>) -> Option<&'p str> {
    let mut sorted: Vec<&str> = paths.collect();
    sorted.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    let pair = sorted.windows(2).find(|pair| {
        pair[1]
            .strip_prefix(pair[0])
            .is_some_and(|rest| rest.starts_with('/'))
    })?;
    Some(pair[0])
}

fn describe(kind: tar::EntryType) -> &'static str {
    match kind {
        tar::EntryType::Link => "a hard link",
        tar::EntryType::Symlink => "a symbolic link",
        tar::EntryType::Char => "a character device",
        tar::EntryType::Block => "a block device",
        tar::EntryType::Fifo => "a named pipe",
        tar::EntryType::GNUSparse => "a sparse file",
        _ => "an entry of an unknown kind",
    }
}

/// A path without its leading `./`, or why it cannot be one of a NEFF.
pub(crate) fn checked_path(raw: Vec<u8>, limits: &Limits) -> Result<String, String> {
    if raw.len() as u64 > limits.path_bytes {
        return Err(format!(
            "the path has {} bytes: beyond the limit path_bytes = {}",
            raw.len(),
            limits.path_bytes
        ));
    }
    let path = String::from_utf8(raw).map_err(|_| "the path is not UTF-8".to_owned())?;
    if path.contains(['\0', '\\']) {
        return Err(format!("the path {path:?} holds a NUL or a backslash"));
    }
    if path.starts_with('/') {
        return Err(format!("`{path}` is an absolute path"));
    }
    let segments: Vec<&str> = path
        .split('/')
        .filter(|s| !matches!(*s, "" | "."))
        .collect();
    if segments.contains(&"..") {
        return Err(format!("`{path}` leaves its folder"));
    }
    if segments.is_empty() && !path.trim_end_matches('/').ends_with('.') {
        return Err("the path is empty".to_owned());
    }
    Ok(segments.join("/"))
}
