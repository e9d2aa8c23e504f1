//! The 1024-byte header of a NEFF.

use crate::features::Features;
use crate::json::Error;
use crate::rules::container as rules;
use chipless_model::Place;
use md5::Md5;
use sha2::{Digest, Sha256};

/// Bytes of the header (NEFF specification, `neff_header_t`).
pub const HEADER_BYTES: usize = 1024;

/// Major version of the format that is known; later ones change meanings.
pub(crate) const SUPPORTED_MAJOR: u64 = 2;

/// The header, field for field, as the specification's structure has it: little-endian, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of package (offset 0): 1 has a SHA-256 hash, 2 an MD5 hash.
    pub pkg_version: u64,
    /// Bytes of this header (offset 8): 1024.
    pub header_size: u64,
    /// Bytes behind the header, padding included (offset 16).
    pub data_size: u64,
    /// Format version, major (offset 24).
    pub neff_version_major: u64,
    /// Format version, minor (offset 32).
    pub neff_version_minor: u64,
    /// Version of the tool that wrote the file (offset 40), NUL-padded; the compiler leaves it empty.
    pub neff_build_version: [u8; 128],
    /// Cores for efficient execution (offset 168).
    pub num_tpb: u32,
    /// Hash of the data (offset 172).
    pub hash: [u8; 32],
    /// Identity of the file (offset 204).
    pub uuid: [u8; 16],
    /// Name (offset 220), NUL-padded.
    pub name: [u8; 256],
    /// Cores that the user asked the compiler for (offset 476).
    pub requested_tpb_count: u32,
    /// Cores of each kelf node of the graph (offset 480).
    pub tpb_per_node: [u8; 64],
    /// What a runtime must know to take the file (offset 544).
    pub feature_bits: Features,
    /// Physical cores that make one logical core (offset 552).
    pub lnc_size: u32,
    /// Unused (offset 556).
    pub pad: [u8; 468],
}

impl Default for Header {
    /// The header of an empty file as the compiler would write it.
    fn default() -> Header {
        let mut tpb_per_node = [0; 64];
        tpb_per_node[0] = 1;
        Header {
            pkg_version: 2,
            header_size: HEADER_BYTES as u64,
            data_size: 0,
            neff_version_major: 2,
            neff_version_minor: 0,
            neff_build_version: [0; 128],
            num_tpb: 1,
            hash: [0; 32],
            uuid: [0; 16],
            name: [0; 256],
            requested_tpb_count: 1,
            tpb_per_node,
            feature_bits: Features(0),
            lnc_size: 1,
            pad: [0; 468],
        }
    }
}

/// Takes fields off the front of the header.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

impl Header {
    /// The fields of a header.
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Header {
        let mut fields = Fields(bytes);
        Header {
            pkg_version: fields.u64(),
            header_size: fields.u64(),
            data_size: fields.u64(),
            neff_version_major: fields.u64(),
            neff_version_minor: fields.u64(),
            neff_build_version: fields.take(),
            num_tpb: fields.u32(),
            hash: fields.take(),
            uuid: fields.take(),
            name: fields.take(),
            requested_tpb_count: fields.u32(),
            tpb_per_node: fields.take(),
            feature_bits: Features(fields.u64()),
            lnc_size: fields.u32(),
            pad: fields.take(),
        }
    }

    /// The bytes of a header.
    pub fn write(&self) -> [u8; HEADER_BYTES] {
        let words = [
            self.pkg_version,
            self.header_size,
            self.data_size,
            self.neff_version_major,
            self.neff_version_minor,
        ];
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        bytes.extend(self.neff_build_version);
        bytes.extend(self.num_tpb.to_le_bytes());
        bytes.extend(self.hash);
        bytes.extend(self.uuid);
        bytes.extend(self.name);
        bytes.extend(self.requested_tpb_count.to_le_bytes());
        bytes.extend(self.tpb_per_node);
        bytes.extend(self.feature_bits.0.to_le_bytes());
        bytes.extend(self.lnc_size.to_le_bytes());
        bytes.extend(self.pad);
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&bytes);
        header
    }

    /// Whether a file looks like a NEFF. There is no magic number: the header's own size says so, or compressed data behind it.
    pub fn looks_like(file: &[u8]) -> bool {
        let Some(head) = file.first_chunk::<16>() else {
            return false;
        };
        let mut fields = Fields(head);
        let (_version, size) = (fields.u64(), fields.u64());
        size == HEADER_BYTES as u64
            || file
                .get(HEADER_BYTES..)
                .is_some_and(|data| data.starts_with(&[0x1f, 0x8b]))
    }

    /// The header of a file, and the data that it speaks of.
    ///
    /// # Errors
    /// A file shorter than the header says, a size that is not 1024, a package or format version that is not known.
    pub fn open(file: &[u8]) -> Result<(Header, &[u8]), Error> {
        let Some((bytes, data)) = file.split_first_chunk::<HEADER_BYTES>() else {
            let message = format!(
                "the file has {} bytes, the header alone has {HEADER_BYTES}",
                file.len()
            );
            return Err(Box::new(rules::HEADER_TRUNCATED.at(
                Place::bytes(0, file.len() as u64).in_part("header"),
                message,
            )));
        };
        let header = Header::read(bytes);
        let field = |offset, name: &str| Place::bytes(offset, 8).in_part("header").at(name);
        if !(1..=2).contains(&header.pkg_version) {
            let message = format!(
                "package version {} is not supported; versions 1 and 2 are",
                header.pkg_version
            );
            return Err(Box::new(
                rules::PACKAGE_VERSION.at(field(0, "pkg_version"), message),
            ));
        }
        if header.header_size != HEADER_BYTES as u64 {
            let message = format!(
                "header_size is {}, expected {HEADER_BYTES}",
                header.header_size
            );
            return Err(Box::new(
                rules::HEADER_SIZE.at(field(8, "header_size"), message),
            ));
        }
        if header.neff_version_major > SUPPORTED_MAJOR {
            let version = header.version();
            let message = format!(
                "NEFF version {version} is not supported; versions up to {SUPPORTED_MAJOR} are"
            );
            return Err(Box::new(
                rules::NEFF_VERSION.at(field(24, "neff_version_major"), message),
            ));
        }
        let known = usize::try_from(header.data_size)
            .ok()
            .and_then(|size| data.get(..size));
        let Some(known) = known else {
            let message = format!(
                "data_size is {}, but {} bytes follow the header",
                header.data_size,
                data.len()
            );
            return Err(Box::new(
                rules::DATA_SIZE.at(field(16, "data_size"), message),
            ));
        };
        Ok((header, known))
    }

    /// Format version: `2.0`.
    pub fn version(&self) -> String {
        format!("{}.{}", self.neff_version_major, self.neff_version_minor)
    }

    /// Name up to its first NUL.
    pub fn name(&self) -> String {
        text(&self.name)
    }

    /// Build version up to its first NUL.
    pub fn build_version(&self) -> String {
        text(&self.neff_build_version)
    }

    /// Identity in the usual form: `00a04c53-5fd9-4f07-bffd-d5eacdefc852`.
    pub fn uuid(&self) -> String {
        let hex = hex(&self.uuid);
        let (a, rest) = hex.split_at(8);
        let (b, rest) = rest.split_at(4);
        let (c, rest) = rest.split_at(4);
        let (d, e) = rest.split_at(4);
        format!("{a}-{b}-{c}-{d}-{e}")
    }

    /// What the hash is a hash of.
    pub fn hash_state(&self, data: &[u8]) -> HashState {
        if self.hash == [0; 32] {
            return HashState::Absent;
        }
        let candidates = if self.pkg_version == 1 {
            [
                HashState::Sha256,
                HashState::Sha256Swapped,
                HashState::Md5,
                HashState::Md5Swapped,
            ]
        } else {
            [
                HashState::Md5,
                HashState::Md5Swapped,
                HashState::Sha256,
                HashState::Sha256Swapped,
            ]
        };
        let (mut md5, mut sha256) = (None, None);
        for candidate in candidates {
            let fits = match candidate {
                HashState::Md5 => self
                    .hash
                    .starts_with(md5.get_or_insert_with(|| md5_of(data))),
                HashState::Md5Swapped => self
                    .hash
                    .starts_with(&swap_words(*md5.get_or_insert_with(|| md5_of(data)))),
                HashState::Sha256 => self.hash == *sha256.get_or_insert_with(|| sha256_of(data)),
                _ => self.hash == swap_words(*sha256.get_or_insert_with(|| sha256_of(data))),
            };
            if fits {
                return candidate;
            }
        }
        HashState::Mismatch
    }
}

/// What the header's hash is a hash of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashState {
    /// All zero.
    Absent,
    /// MD5 in the usual order, then 16 bytes of any value.
    Md5,
    /// MD5 with the bytes of each 32-bit word reversed, as the compiler writes it.
    Md5Swapped,
    /// SHA-256.
    Sha256,
    /// SHA-256 with the bytes of each 32-bit word reversed.
    Sha256Swapped,
    /// Of other data.
    Mismatch,
}

impl HashState {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            HashState::Absent => "absent",
            HashState::Md5 => "MD5, matches",
            HashState::Md5Swapped => "MD5 with swapped words, matches",
            HashState::Sha256 => "SHA-256, matches",
            HashState::Sha256Swapped => "SHA-256 with swapped words, matches",
            HashState::Mismatch => "does not match",
        }
    }
}

/// MD5 of the data.
pub(crate) fn md5_of(data: &[u8]) -> [u8; 16] {
    Md5::digest(data).into()
}

/// SHA-256 of the data.
pub(crate) fn sha256_of(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

/// Reverses the bytes of each 32-bit word.
pub(crate) fn swap_words<const N: usize>(mut digest: [u8; N]) -> [u8; N] {
    digest.chunks_mut(4).for_each(<[u8]>::reverse);
    digest
}

/// Text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_header_survives() {
        let mut bytes = [0; HEADER_BYTES];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index * 7 % 251) as u8;
        }
        let header = Header::read(&bytes);
        assert_eq!(header.write(), bytes);
        assert_eq!(
            header.lnc_size,
            u32::from_le_bytes([bytes[552], bytes[553], bytes[554], bytes[555]])
        );
        assert_eq!(header.hash[..], bytes[172..204]);
    }

    #[test]
    fn both_word_orders_of_both_hashes_are_known() {
        let data = b"The quick brown fox jumps over the lazy dog";
        // RFC 1321's algorithm over the pangram gives 9e107d9d372bb6826bd81d3542a419d6.
        let plain = [
            0x9e, 0x10, 0x7d, 0x9d, 0x37, 0x2b, 0xb6, 0x82, 0x6b, 0xd8, 0x1d, 0x35, 0x42, 0xa4,
            0x19, 0xd6,
        ];
        let mut header = Header {
            pkg_version: 2,
            ..Header::default()
        };
        assert_eq!(header.hash_state(data), HashState::Absent);
        header.hash[..16].copy_from_slice(&plain);
        assert_eq!(header.hash_state(data), HashState::Md5);
        header.hash = [b'0'; 32];
        header.hash[..16].copy_from_slice(&swap_words(plain));
        assert_eq!(header.hash_state(data), HashState::Md5Swapped);
        header.hash = sha256_of(data);
        header.pkg_version = 1;
        assert_eq!(header.hash_state(data), HashState::Sha256);
        header.hash = swap_words(header.hash);
        assert_eq!(header.hash_state(data), HashState::Sha256Swapped);
        header.hash[0] ^= 1;
        assert_eq!(header.hash_state(data), HashState::Mismatch);
    }
}
