//! Members and header back into a file, and a header as JSON.
//!
//! `unpack` writes the members and [`HEADER_FILE`] into a folder; `pack` takes them up again. Both are pure: who calls
//! them reads and writes the files. The result depends on nothing but the members and the header's fields.

use crate::container::{Container, Member, Packing, checked_path, file_and_folder};
use crate::features::Features;
use crate::header::{HEADER_BYTES, Header, hex, md5_of, sha256_of, swap_words};
use crate::json::{Error, Source};
use crate::rules::container as rules;
use chipless_model::{Limits, Place};
use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write;

/// Name under which a header travels among unpacked members.
pub const HEADER_FILE: &str = "neff-header.json";

/// Data is padded with zeros to a multiple of this, as the compiler does it.
const BLOCKING: usize = 10240;
/// Compression level: the compiler's.
const LEVEL: u32 = 1;

/// The header's fields as JSON. Sizes and hash are told for the reader; packing makes them anew.
#[derive(Serialize, Deserialize)]
struct HeaderFields<'a> {
    pkg_version: u64,
    #[serde(default)]
    header_size: u64,
    #[serde(default)]
    data_size: u64,
    neff_version_major: u64,
    neff_version_minor: u64,
    #[serde(default)]
    neff_build_version: Text,
    num_tpb: u32,
    #[serde(borrow, default)]
    hash: Cow<'a, str>,
    #[serde(borrow, default)]
    uuid: Cow<'a, str>,
    #[serde(default)]
    name: Text,
    requested_tpb_count: u32,
    #[serde(default)]
    tpb_per_node: Vec<u8>,
    #[serde(borrow)]
    feature_bits: Cow<'a, str>,
    #[serde(default)]
    features: Vec<String>,
    lnc_size: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pad: String,
    #[serde(default)]
    packing: Storage,
}

/// A NUL-padded field: text where it is text, else its bytes in hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Bytes { hex: String },
}

impl Default for Text {
    fn default() -> Text {
        Text::Text(String::new())
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Storage {
    #[default]
    Gzip,
    Tar,
}

impl Text {
    fn of(bytes: &[u8]) -> Text {
        let end = bytes
            .iter()
            .rposition(|b| *b != 0)
            .map_or(0, |last| last + 1);
        match std::str::from_utf8(&bytes[..end]) {
            Ok(text) if !text.contains('\0') => Text::Text(text.to_owned()),
            _ => Text::Bytes {
                hex: hex(&bytes[..end]),
            },
        }
    }

    fn fill<const N: usize>(&self) -> Result<[u8; N], String> {
        match self {
            Text::Text(text) => padded(text.as_bytes()),
            Text::Bytes { hex } => padded(&unhex(hex)?),
        }
    }
}

/// Bytes with zeros behind them.
fn padded<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    let mut field = [0; N];
    field
        .get_mut(..bytes.len())
        .ok_or_else(|| format!("{} bytes, there is room for {N}", bytes.len()))?
        .copy_from_slice(bytes);
    Ok(field)
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
        pair.and_then(|p| u8::from_str_radix(p, 16).ok())
            .ok_or_else(|| format!("`{text}` is not hexadecimal"))
    });
    pairs.collect()
}

/// The header of a file as JSON: the content of [`HEADER_FILE`].
pub fn header_json(container: &Container<'_>) -> String {
    let header = &container.header;
    let last = header
        .tpb_per_node
        .iter()
        .rposition(|n| *n != 0)
        .map_or(0, |last| last + 1);
    let fields = HeaderFields {
        pkg_version: header.pkg_version,
        header_size: header.header_size,
        data_size: header.data_size,
        neff_version_major: header.neff_version_major,
        neff_version_minor: header.neff_version_minor,
        neff_build_version: Text::of(&header.neff_build_version),
        num_tpb: header.num_tpb,
        hash: hex(&header.hash).into(),
        uuid: header.uuid().into(),
        name: Text::of(&header.name),
        requested_tpb_count: header.requested_tpb_count,
        tpb_per_node: header.tpb_per_node[..last].to_vec(),
        feature_bits: format!("{:#x}", header.feature_bits.0).into(),
        features: header
            .feature_bits
            .known()
            .map(|f| f.name.to_owned())
            .collect(),
        lnc_size: header.lnc_size,
        pad: if header.pad.iter().all(|b| *b == 0) {
            String::new()
        } else {
            hex(&header.pad)
        },
        packing: if container.packing == Packing::Plain {
            Storage::Tar
        } else {
            Storage::Gzip
        },
    };
    // A structure of numbers and strings always has a JSON form.
    serde_json::to_string_pretty(&fields).unwrap_or_default() + "\n"
}

/// What `unpack` writes: every member, and the header.
///
/// # Errors
/// A member that is called like the header's file.
pub fn unpack<'a>(container: &'a Container<'_>) -> Result<(Vec<Member<'a>>, String), Error> {
    if container.member(HEADER_FILE).is_some() {
        let message = format!(
            "the tarball has a member `{HEADER_FILE}`, the name under which the header is written"
        );
        return Err(Box::new(
            rules::TAR_PATH.at(Place::file().in_part("tarball").at(HEADER_FILE), message),
        ));
    }
    Ok((container.members().collect(), header_json(container)))
}

/// Packs members into a file. Without a header's JSON the fields are those that the compiler writes for one core.
///
/// # Errors
/// JSON that is no header, and paths that [`Container::open`] would refuse.
pub fn pack<'m>(
    members: impl IntoIterator<Item = (&'m str, &'m [u8])>,
    header: Option<&str>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let (header, packing) = match header {
        None => (Header::default(), Storage::Gzip),
        Some(text) => {
            let source = Source::of(HEADER_FILE, text);
            let fields: HeaderFields<'_> = source.parse()?;
            let header = fields.header().map_err(|(field, why)| {
                let place = source.place(text, "", &format!("/{field}"));
                Box::new(rules::JSON_TYPE.at(place, format!("{field}: {why}")))
            })?;
            (header, fields.packing)
        }
    };
    write(members, header, matches!(packing, Storage::Tar), limits)
}

impl HeaderFields<'_> {
    fn header(&self) -> Result<Header, (&'static str, String)> {
        let in_field = |field: &'static str| move |why: String| (field, why);
        let bits = self
            .feature_bits
            .strip_prefix("0x")
            .unwrap_or(&self.feature_bits);
        let bits = u64::from_str_radix(bits, 16).map_err(|e| ("feature_bits", e.to_string()))?;
        let uuid = unhex(&self.uuid).map_err(in_field("uuid"))?;
        if !matches!(uuid.len(), 0 | 16) {
            return Err(("uuid", format!("{} bytes, expected 16", uuid.len())));
        }
        let pad = unhex(&self.pad)
            .and_then(|bytes| padded(&bytes))
            .map_err(in_field("pad"))?;
        Ok(Header {
            pkg_version: self.pkg_version,
            header_size: HEADER_BYTES as u64,
            data_size: 0,
            neff_version_major: self.neff_version_major,
            neff_version_minor: self.neff_version_minor,
            neff_build_version: self
                .neff_build_version
                .fill()
                .map_err(in_field("neff_build_version"))?,
            num_tpb: self.num_tpb,
            hash: [0; 32],
            uuid: padded(&uuid).map_err(in_field("uuid"))?,
            name: self.name.fill().map_err(in_field("name"))?,
            requested_tpb_count: self.requested_tpb_count,
            tpb_per_node: padded(&self.tpb_per_node).map_err(in_field("tpb_per_node"))?,
            feature_bits: Features(bits),
            lnc_size: self.lnc_size,
            pad,
        })
    }
}

/// Header, tarball, compression, hash.
pub(crate) fn write<'m>(
    members: impl IntoIterator<Item = (&'m str, &'m [u8])>,
    mut header: Header,
    plain: bool,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let mut data = tarball(members, limits)?;
    if !plain {
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(3)
            .write(Vec::new(), Compression::new(LEVEL));
        gzip.write_all(&data).map_err(|e| failed(&e))?;
        data = gzip.finish().map_err(|e| failed(&e))?;
    }
    data.resize(data.len().next_multiple_of(BLOCKING), 0);
    header.data_size = data.len() as u64;
    header.hash = [0; 32];
    if header.pkg_version == 1 {
        header.hash = sha256_of(&data);
    } else {
        header.hash[..16].copy_from_slice(&swap_words(md5_of(&data)));
    }
    let mut file = header.write().to_vec();
    file.append(&mut data);
    Ok(file)
}

/// Members sorted by path, `neff.json` last, with the owner and mode that the compiler writes and no times.
fn tarball<'m>(
    members: impl IntoIterator<Item = (&'m str, &'m [u8])>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let mut sorted = Vec::new();
    for (path, bytes) in members {
        let checked =
            checked_path(path.as_bytes().to_vec(), limits).map_err(|why| refused(path, why))?;
        if checked.is_empty() {
            return Err(refused(path, "the path is empty".to_owned()));
        }
        sorted.push((checked, bytes));
    }
    sorted.sort_by(|(a, _), (b, _)| (a == "neff.json", a).cmp(&(b == "neff.json", b)));
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(refused(
            &pair[0].0,
            "a second member of this path".to_owned(),
        ));
    }
    if let Some(path) = file_and_folder(sorted.iter().map(|(path, _)| path.as_str())) {
        return Err(refused(
            path,
            format!("`{path}` is both a file and a folder"),
        ));
    }
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in sorted {
        let mut entry = tar::Header::new_ustar();
        entry.set_size(bytes.len() as u64);
        entry.set_mode(0o664);
        entry.set_uid(1000);
        entry.set_gid(1000);
        entry.set_mtime(0);
        entry.set_username("nobody").map_err(|e| failed(&e))?;
        entry.set_groupname("nobody").map_err(|e| failed(&e))?;
        archive
            .append_data(&mut entry, &path, bytes)
            .map_err(|e| refused(&path, e.to_string()))?;
    }
    archive.into_inner().map_err(|e| failed(&e))
}

fn refused(path: &str, why: String) -> Error {
    Box::new(rules::TAR_PATH.at(Place::file().in_part("tarball").at(path.to_owned()), why))
}

/// Writing into memory does not fail; if it does, the reason is not in the file.
fn failed(error: &std::io::Error) -> Error {
    Box::new(rules::TAR.at(Place::file().in_part("tarball"), error.to_string()))
}

impl<'a> From<Member<'a>> for (&'a str, &'a [u8]) {
    fn from(member: Member<'a>) -> (&'a str, &'a [u8]) {
        (member.path, member.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(file: &[u8]) -> Container<'_> {
        Container::open(file, &Limits::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn members_and_header_survive_unpacking_and_packing() {
        let long = format!("sg00/{}/{}.npy", "f".repeat(90), "n".repeat(180));
        let members: [(&str, &[u8]); 4] = [
            ("neff.json", b"{}"),
            ("sg00/PE.bin", &[7; 1000]),
            ("a/b", b""),
            (&long, b"x"),
        ];
        let mut header = Header {
            pkg_version: 1,
            lnc_size: 2,
            uuid: [9; 16],
            ..Header::default()
        };
        header.name[..4].copy_from_slice(b"x\0\xffy");
        header.neff_build_version[..3]
            .copy_from_slice("2.é".as_bytes().first_chunk::<3>().unwrap());
        header.tpb_per_node[63] = 5;
        header.feature_bits = Features(0x8000_0000_0020_1c00);
        header.pad[467] = 1;
        for plain in [false, true] {
            let file = write(members, header.clone(), plain, &Limits::default()).unwrap();
            assert_eq!(file.len() % BLOCKING, HEADER_BYTES);
            let container = open(&file);
            assert!(container.clean_end && !container.dirty_padding);
            assert_eq!(
                container.header.hash_state(container.data),
                crate::header::HashState::Sha256
            );
            let (unpacked, json) = unpack(&container).unwrap();
            let paths: Vec<&str> = unpacked.iter().map(|m| m.path).collect();
            assert_eq!(paths, ["a/b", "sg00/PE.bin", &long, "neff.json"]);
            let again = pack(
                unpacked.into_iter().rev().map(Into::into),
                Some(&json),
                &Limits::default(),
            )
            .unwrap();
            assert_eq!(again, file);
        }
    }

    #[test]
    fn headers_that_do_not_fit_say_which_field() {
        let packed =
            |json: &str| match pack([("neff.json", &b"{}"[..])], Some(json), &Limits::default()) {
                Ok(_) => panic!("accepted: {json}"),
                Err(why) => why.to_string(),
            };
        let good = header_json(&open(
            &pack([("neff.json", &b"{}"[..])], None, &Limits::default()).unwrap(),
        ));
        for (from, to, why) in [
            ("\"0x0\"", "\"0xzz\"", "feature_bits"),
            (
                "\"pkg_version\": 2",
                "\"pkg_version\": true",
                "/pkg_version",
            ),
            ("00000000-0000", "0-0", "uuid"),
            ("\"lnc_size\": 1", "\"lnc_size\": 4294967296", "/lnc_size"),
        ] {
            let message = packed(&good.replace(from, to));
            assert!(message.contains(why), "{message} does not name {why}");
        }
        assert!(
            packed(&good.replace(
                "\"name\": \"\"",
                &format!("\"name\": \"{}\"", "n".repeat(257))
            ))
            .contains("room for 256")
        );
    }

    #[test]
    fn paths_that_could_not_be_read_are_not_written() {
        for path in ["/etc/x", "a/../b", "", "a\\b", "."] {
            assert!(
                pack([(path, &b""[..])], None, &Limits::default()).is_err(),
                "{path}"
            );
        }
        assert!(pack([("a", &b""[..]), ("./a", b"")], None, &Limits::default()).is_err());
        assert!(
            pack(
                [("a", &b""[..]), ("a-b", b""), ("a/b", b"")],
                None,
                &Limits::default()
            )
            .is_err()
        );
    }
}
