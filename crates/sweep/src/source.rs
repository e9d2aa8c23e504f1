//! Files that a plan needs, recorded on one machine and carried to another.

use chipless::{Bytes, Files};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that all documents of a program share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Bytes>);

impl Shared {
    /// These.
    pub(crate) fn new(bytes: Bytes) -> Shared {
        Shared(Arc::new(bytes))
    }
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Files that all runs share.
#[derive(Clone)]
pub(crate) struct AnyFiles(pub(crate) Arc<dyn Files>);

impl Files for AnyFiles {
    fn open(&self, name: &str) -> Result<Bytes, String> {
        self.0.open(name)
    }

    fn exists(&self, name: &str) -> bool {
        self.0.exists(name)
    }
}

/// Files that remember what was asked of them.
#[derive(Clone)]
pub(crate) struct Recorded {
    files: Arc<dyn Files>,
    opened: Arc<Mutex<BTreeSet<String>>>,
}

impl Recorded {
    /// Over these files.
    pub(crate) fn new(files: impl Files + 'static) -> Recorded {
        Recorded {
            files: Arc::new(files),
            opened: Arc::default(),
        }
    }

    /// The bytes of everything that was opened or found, by name.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |name: &String| Some((name.clone(), self.files.open(name).ok()?.to_vec()));
        opened.iter().filter_map(bytes).collect()
    }

    fn note(&self, name: &str) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(name.to_owned());
    }
}

impl Files for Recorded {
    fn open(&self, name: &str) -> Result<Bytes, String> {
        self.note(name);
        self.files.open(name)
    }

    fn exists(&self, name: &str) -> bool {
        let exists = self.files.exists(name);
        if exists {
            self.note(name);
        }
        exists
    }
}

/// Files that were carried here.
#[derive(Clone)]
pub struct Carried(Arc<BTreeMap<String, Shared>>);

impl Carried {
    /// These files, by name.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Carried {
        let shared = files
            .into_iter()
            .map(|(name, bytes)| (name, Shared::new(Box::new(bytes))));
        Carried(Arc::new(shared.collect()))
    }

    /// The files that a pattern fits, sorted. The error is what to say.
    pub fn matching(&self, pattern: &Path) -> Result<Vec<PathBuf>, String> {
        let text = pattern.to_string_lossy();
        let glob = glob::Pattern::new(&text)
            .map_err(|error| format!("expected a pattern, found {text}: {}", error.msg))?;
        // As on disk.
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::default()
        };
        let names = self
            .0
            .keys()
            .filter(|name| glob.matches_with(name, options));
        let mut files: Vec<PathBuf> = names.map(PathBuf::from).collect();
        files.sort();
        Ok(files)
    }
}

impl Files for Carried {
    fn open(&self, name: &str) -> Result<Bytes, String> {
        match self.0.get(name) {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => Err("cannot be read: it was not carried here".to_owned()),
        }
    }

    fn exists(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
