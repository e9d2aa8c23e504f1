//! Which code is which operation.
//!
//! A blob does not name its SHAVE kernels. A kernel is known by the size of its code and the SHA-1 over it; the table
//! that comes with Chipless covers one release of the compiler, and users can add to it.

use super::operation::{Operation, UnknownOperation};
use serde::Deserialize;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// The first four bytes of the SHA-1 over a kernel's code, printed as eight hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeHash(pub u32);

impl fmt::Display for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// On what an entry of the table rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A compiled program computes its model's result with this reading.
    Proven,
    /// The compiler's source and the tensors, no result.
    Source,
    /// The user said so.
    User,
}

/// What is known of a kernel's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the code.
    pub hash: CodeHash,
    /// Size of the code in bytes.
    pub size: u64,
    /// The operation and on what its name rests; `None` for code that no table knows.
    pub operation: Option<(Operation, Evidence)>,
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
    /// An entry of the command line that is not `HASH=OPERATION`.
    #[error("kernel entry `{0}`: expected HASH=OPERATION, for example 7668bb1c=convert")]
    Entry(String),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    size: Option<u64>,
    operation: Operation,
    evidence: Evidence,
}

type Entries = BTreeMap<CodeHash, Entry>;

static BUILTIN: LazyLock<Entries> =
    LazyLock::new(|| parse(include_str!("kernels.toml")).unwrap_or_default());

/// Code hashes and operations: the table of Chipless with the user's additions before it.
#[derive(Clone, Debug, Default)]
pub struct KernelTable {
    additions: Entries,
}

impl KernelTable {
    /// The table that comes with Chipless. It is parsed when a kernel is identified for the first time.
    pub fn builtin() -> KernelTable {
        KernelTable::default()
    }

    /// Adds or replaces entries from TOML: `kernels = [{ sha1 = "7668bb1c", operation = "convert", size = 704 }, …]`, size and
    /// evidence (`proven`, `source`, `user`) optional. An entry without a size holds for code of any size. Nothing is
    /// taken from a text with an error.
    pub fn extend_from_toml(&mut self, text: &str) -> Result<(), TableError> {
        self.additions.extend(parse(text)?);
        Ok(())
    }

    /// Adds or replaces one entry. The hash may be longer than the eight digits that count.
    pub fn insert(&mut self, hash: &str, operation: &str) -> Result<(), TableError> {
        let (hash, operation) = parse_names(hash, operation)?;
        self.additions.insert(
            hash,
            Entry {
                size: None,
                operation,
                evidence: Evidence::User,
            },
        );
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
        let digest = Sha1::digest(code);
        let hash = CodeHash(
            digest
                .iter()
                .take(4)
                .fold(0, |hash, byte| hash << 8 | u32::from(*byte)),
        );
        let size = code.len() as u64;
        let known = |entries: &Entries| {
            entries
                .get(&hash)
                .copied()
                .filter(|entry| entry.size.is_none_or(|expected| expected == size))
        };
        let entry = known(&self.additions).or_else(|| known(&BUILTIN));
        Identity {
            hash,
            size,
            operation: entry.map(|entry| (entry.operation, entry.evidence)),
        }
    }
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
    operation: String,
    evidence: Option<Evidence>,
}

fn parse(text: &str) -> Result<Entries, TableError> {
    let file: File = toml::from_str(text).map_err(|error| TableError::Form(error.to_string()))?;
    let mut entries = Entries::new();
    for row in file.kernels {
        let (hash, operation) = parse_names(&row.sha1, &row.operation)?;
        entries.insert(
            hash,
            Entry {
                size: row.size,
                operation,
                evidence: row.evidence.unwrap_or(Evidence::User),
            },
        );
    }
    Ok(entries)
}

fn parse_names(hash: &str, operation: &str) -> Result<(CodeHash, Operation), TableError> {
    let refused = || TableError::Hash(hash.to_owned());
    if !(8..=40).contains(&hash.len()) || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refused());
    }
    let prefix = hash
        .get(..8)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(refused)?;
    let hash = CodeHash(prefix);
    let operation = operation
        .parse()
        .map_err(|unknown| TableError::Operation { hash, unknown })?;
    Ok((hash, operation))
}
