//! A file of this target, as it is opened.

use crate::assembly::Assembly;
use crate::filename::NameFacts;
use crate::lint::{Given, lint};
use crate::network::Network;
use crate::place;
use crate::read::{Error, text};
use crate::rules::reading as rules;
use crate::schedule::Schedule;
use crate::unzip;
use chipless_model::{Finding, Limits, Place};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// Bytes from which a file is recognised.
const LOOKED_AT: usize = 64 << 10;

/// A schedule with its text and what its file name says.
#[derive(Debug)]
pub struct Document<'a> {
    bytes: Cow<'a, [u8]>,
    /// What the file name says.
    pub name: NameFacts,
    /// The schedule.
    pub schedule: Schedule,
}

/// What kind of file bytes look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A schedule of any dialect.
    Schedule,
    /// A front-end file.
    Network,
    /// Assembly of a core, or a trace.
    Assembly,
}

impl FileKind {
    /// Recognises a file by its content, gzipped or not.
    pub fn of(bytes: &[u8]) -> Option<FileKind> {
        let mut start = Vec::new();
        let start: &[u8] = if bytes.starts_with(b"\x1f\x8b") {
            // What is there of a damaged file is enough to recognise it.
            let _ = MultiGzDecoder::new(bytes)
                .take(LOOKED_AT as u64)
                .read_to_end(&mut start);
            &start
        } else {
            &bytes[..bytes.len().min(LOOKED_AT)]
        };
        if Assembly::recognize(start) {
            return Some(FileKind::Assembly);
        }
        let start = String::from_utf8_lossy(start);
        let keys = place::top_keys(start.strip_prefix('\u{feff}').unwrap_or(&start));
        let schedule = |(key, first): &(String, u8)| {
            let core = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit()) && *first == b'[';
            core || ["-1", "DRAM", "metadata", "buffersize", "top_batch_cut"]
                .contains(&key.as_str())
        };
        if keys.iter().any(schedule) {
            return Some(FileKind::Schedule);
        }
        Network::recognize(start.as_bytes()).then_some(FileKind::Network)
    }
}

impl<'a> Document<'a> {
    /// Reads a schedule; `path` is that of its file, for what the name says.
    ///
    /// # Errors
    /// As [`Schedule::read`]; a damaged gzip file; a file of another kind.
    pub fn read(bytes: &'a [u8], path: &str, limits: &Limits) -> Result<Document<'a>, Error> {
        let bytes = unzip(bytes, limits)?;
        if FileKind::of(&bytes) == Some(FileKind::Network) {
            let message = "expected a schedule, found a front-end file: give it beside its schedule, with --network";
            return Err(Box::new(rules::NETWORK.at(Place::file(), message)));
        }
        let schedule = Schedule::read(text(&bytes, limits)?)?;
        Ok(Document {
            bytes,
            name: NameFacts::parse(path),
            schedule,
        })
    }

    /// The text of the schedule.
    pub fn text(&self) -> &str {
        // It was read as text.
        let bytes = self
            .bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&self.bytes);
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Checks the schedule; see [`lint`].
    pub fn findings(
        &self,
        network: Option<&Network>,
        batch: Option<u32>,
        limits: &Limits,
    ) -> Vec<Finding> {
        lint(
            &self.schedule,
            self.text(),
            Given {
                network,
                batch,
                name: self.name,
            },
            limits,
        )
    }
}
