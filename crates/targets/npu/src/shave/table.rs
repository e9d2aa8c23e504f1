//! Which code is which operation.
//!
//! A blob does not name its SHAVE kernels. A kernel is known by the SHA-1 over its code, and the vendor's compiler library
//! names that code: the table that comes with Chipless lists the kernels of the compiler's releases from 2026.0.0 to
//! 2026.4.1, and [`import`](super::import()) makes such a table from any other library.

use super::names::operation_of;
use super::operation::{Operation, UnknownOperation};
use serde::Deserialize;
use sha1::{Digest, Sha1};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// The first four bytes of the SHA-1 over a kernel's code, printed as eight hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeHash(pub u32);

impl CodeHash {
    /// Of a kernel's code.
    pub fn of(code: &[u8]) -> CodeHash {
        let digest = Sha1::digest(code);
        let first = digest.iter().take(4);
        CodeHash(first.fold(0, |hash, byte| hash << 8 | u32::from(*byte)))
    }
}

impl fmt::Display for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What is known of a kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the code.
    pub hash: CodeHash,
    /// Size of the code in bytes.
    pub size: u64,
    /// What the vendor's library calls it; `None` for code that no table names.
    pub name: Option<Cow<'static, str>>,
    /// What it computes; `None` where that is not known.
    pub operation: Option<Operation>,
}

/// Why a table or an entry was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The text is not TOML of the table's form; the message has line and column.
    #[error("{0}")]
    Form(String),
    /// A hash is not hexadecimal or too short.
    #[error(
        "kernel hash `{0}`: expected 8 to 40 hexadecimal digits, the start of the SHA-1 over the kernel's code"
    )]
    Hash(String),
    /// An operation that does not exist.
    #[error("kernel {hash}: {unknown}")]
    Operation {
        /// Whose operation it was to be.
        hash: CodeHash,
        /// The name and those close to it.
        unknown: UnknownOperation,
    },
    /// An entry of a table with neither a name nor an operation.
    #[error("kernel {0}: expected a name or an operation")]
    Empty(CodeHash),
    /// An entry of the command line that is not `HASH=OPERATION`.
    #[error("kernel entry `{0}`: expected HASH=OPERATION, for example 7668bb1c=convert")]
    Entry(String),
}

#[derive(Clone, Debug)]
struct Entry {
    size: Option<u64>,
    name: Option<String>,
    operation: Option<Operation>,
}

type Entries = BTreeMap<CodeHash, Entry>;

/// The kernels of the compiler's releases: `sha1,size,kernel,first,last`, sorted by the first eight digits of the SHA-1.
const BUILTIN: &str = include_str!("kernels.csv");

/// Code hashes and operations: the table of Chipless with the user's additions before it.
#[derive(Clone, Debug, Default)]
pub struct KernelTable {
    additions: Entries,
}

impl KernelTable {
    /// The table that comes with Chipless.
    pub fn builtin() -> KernelTable {
        KernelTable::default()
    }

    /// Adds or replaces entries from TOML: `kernels = [{ sha1 = "7668bb1c", name = "convert", operation = "convert", size = 704 },
    /// …]`. Of name and operation one may be missing: names of the vendor's library have their operation, unknown ones have
    /// none. An entry without a size holds for code of any size. Nothing is taken from a text with an error.
    pub fn extend_from_toml(&mut self, text: &str) -> Result<(), TableError> {
        self.additions.extend(parse(text)?);
        Ok(())
    }

    /// Adds or replaces one entry. The hash may be longer than the eight digits that count.
    pub fn insert(&mut self, hash: &str, operation: &str) -> Result<(), TableError> {
        let hash = parse_hash(hash)?;
        let operation = Some(parse_operation(hash, operation)?);
        let entry = Entry {
            size: None,
            name: None,
            operation,
        };
        self.additions.insert(hash, entry);
        Ok(())
    }

    /// Adds or replaces one entry of the form `HASH=OPERATION`.
    pub fn insert_entry(&mut self, entry: &str) -> Result<(), TableError> {
        let (hash, operation) = entry
            .split_once('=')
            .ok_or_else(|| TableError::Entry(entry.to_owned()))?;
        self.insert(hash.trim(), operation.trim())
    }

    /// Identifies a kernel by its code: the `code size` bytes at the `text` address of its range.
    pub fn identify(&self, code: &[u8]) -> Identity {
        let (hash, size) = (CodeHash::of(code), code.len() as u64);
        let added = self
            .additions
            .get(&hash)
            .filter(|entry| entry.size.is_none_or(|expected| expected == size));
        let (name, operation) = if let Some(entry) = added {
            (entry.name.clone().map(Cow::Owned), entry.operation)
        } else {
            let name = builtin(hash, size);
            (name.map(Cow::Borrowed), name.and_then(operation_of))
        };
        Identity {
            hash,
            size,
            name,
            operation,
        }
    }
}

/// The name of a kernel of the compiler's releases. The text is searched as it is: its lines are sorted.
pub(super) fn builtin(hash: CodeHash, size: u64) -> Option<&'static str> {
    let key = hash.to_string();
    let (mut low, mut high) = (BUILTIN.find('\n')? + 1, BUILTIN.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = BUILTIN[..middle]
            .rfind('\n')
            .map_or(0, |at| at + 1)
            .max(low);
        let end = BUILTIN[start..]
            .find('\n')
            .map_or(BUILTIN.len(), |length| start + length + 1);
        let mut columns = BUILTIN[start..end].split(',');
        match columns.next()?.cmp(&key) {
            Ordering::Less => low = end,
            Ordering::Greater => high = start,
            Ordering::Equal => {
                let known: u64 = columns.next()?.parse().ok()?;
                return columns.next().filter(|_| known == size);
            }
        }
    }
    None
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kernels: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    sha1: String,
    size: Option<u64>,
    name: Option<String>,
    operation: Option<String>,
}

fn parse(text: &str) -> Result<Entries, TableError> {
    let file: File = toml::from_str(text).map_err(|error| TableError::Form(error.to_string()))?;
    let mut entries = Entries::new();
    for row in file.kernels {
        let hash = parse_hash(&row.sha1)?;
        let operation = match (&row.operation, &row.name) {
            (Some(operation), _) => Some(parse_operation(hash, operation)?),
            (None, Some(name)) => operation_of(name),
            (None, None) => return Err(TableError::Empty(hash)),
        };
        let entry = Entry {
            size: row.size,
            name: row.name,
            operation,
        };
        entries.insert(hash, entry);
    }
    Ok(entries)
}

fn parse_hash(hash: &str) -> Result<CodeHash, TableError> {
    let refused = || TableError::Hash(hash.to_owned());
    if !(8..=40).contains(&hash.len()) || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refused());
    }
    hash.get(..8)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .map(CodeHash)
        .ok_or_else(refused)
}

fn parse_operation(hash: CodeHash, operation: &str) -> Result<Operation, TableError> {
    operation
        .parse()
        .map_err(|unknown| TableError::Operation { hash, unknown })
}
