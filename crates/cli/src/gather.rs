//! The files that a command line names: files, folders, patterns, standard input.

use crate::failure::Failure;
use crate::files;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders within folders.
const DEPTH: usize = 64;

/// The files that a command line names.
pub(crate) struct Gathered {
    pub(crate) files: Vec<PathBuf>,
    /// How many files in folders no target recognises, and the first of them.
    passed_over: (usize, Option<PathBuf>),
    /// Whether there was a folder, so that there may be any number of files.
    pub(crate) several: bool,
}

impl Gathered {
    /// Files and `-` as they are; of folders every file below that some target recognises, in sorted order; of patterns what they fit, where
    /// no file has that very name.
    /// `sources`: endings of texts that the command takes besides.
    pub(crate) fn of(paths: &[PathBuf], sources: &[&str]) -> Result<Gathered, Failure> {
        let mut gathered = Gathered {
            files: Vec::new(),
            passed_over: (0, None),
            several: paths.len() > 1,
        };
        for path in paths {
            let text = path.to_string_lossy();
            if path.is_dir() {
                gathered.several = true;
                gathered.folder(path, sources, 0)?;
            } else if text.contains(['*', '?', '[']) && !path.exists() {
                gathered.several = true;
                let found = chipless::disk::matching(path)
                    .map_err(|why| Failure::misuse(path.display(), why))?;
                if found.is_empty() {
                    let text = "cannot be read: no file fits this pattern";
                    return Err(Failure::unreadable(path.display(), text));
                }
                gathered.files.extend(found);
            } else {
                gathered.files.push(path.clone());
            }
        }
        Ok(gathered)
    }

    fn folder(&mut self, folder: &Path, sources: &[&str], depth: usize) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| {
            Failure::unreadable(folder.display(), format_args!("cannot be read: {error}"))
        };
        if depth > DEPTH {
            let text = format!("expected at most {DEPTH} folders within folders");
            return Err(Failure::unreadable(folder.display(), text));
        }
        let mut entries = fs::read_dir(folder)
            .map_err(cannot)?
            .collect::<Result<Vec<_>, _>>()
            .map_err(cannot)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type().map_err(cannot)?);
            // What a link leads to may lead back; what is hidden is nobody's program.
            if kind.is_symlink() || entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                self.folder(&path, sources, depth + 1)?;
            } else if kind.is_file() && is_ours(&path, sources) {
                self.files.push(path);
            } else {
                self.passed_over.0 += 1;
                self.passed_over.1.get_or_insert(path);
            }
        }
        Ok(())
    }

    /// What to say of files that were passed over.
    pub(crate) fn note(&self) -> Option<String> {
        let (number, first) = &self.passed_over;
        let first = first.as_ref()?.display();
        Some(match number {
            1 => format!("{first}: passed over, no target recognises it\n"),
            n => format!("{n} files passed over, no target recognises them: {first} and others\n"),
        })
    }
}

/// Endings of programs that targets do not list, because other files have them too.
const ENDINGS: [&str; 3] = ["json", "gz", ""];

/// Whether a file in a folder is a program. Its content decides, among files that are called like one: what is taken for a contract by its
/// content alone may be a script that writes one.
fn is_ours(path: &Path, sources: &[&str]) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    if sources.contains(&&*ending) {
        return true;
    }
    let known = || {
        chipless::TARGETS
            .iter()
            .flat_map(|target| target.extensions())
    };
    if !ENDINGS.contains(&&*ending) && !known().any(|known| *known == ending) {
        return false;
    }
    files::open(path)
        .is_ok_and(|bytes| chipless::recognize(&path.to_string_lossy(), &bytes).is_some())
}
